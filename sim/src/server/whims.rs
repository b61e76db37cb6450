//! A server that hangs up when it likes: on a silent connection, and at any point of an answer.

use super::{Guest, PACKET_LEN_MAX, Server};
use net::{Conn, NetError, Packet};
use std::time::Duration;

/// Longer than any world lasts.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// Fate of a command and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whim {
    None,
    /// Silence, and the command is not done.
    Ignore,
    /// Silence, although the command is done.
    Swallow,
    /// The answer breaks off.
    BreakOff,
    /// Nothing is missing of the answer, and the end is right behind it.
    Leave,
}

impl Server {
    fn is_moody(&self) -> bool {
        self.fickle && self.judge.rough.get()
    }

    /// Chooses what the server does with the next command.
    pub(super) fn whim(&self) -> Whim {
        let mut chance = self.chance.borrow_mut();
        if !self.is_moody() || !chance.percent(4) {
            return Whim::None;
        }
        let (whim, name) = *chance.one_of(&[
            (Whim::Ignore, "hung up before a command was done"),
            (Whim::Swallow, "hung up instead of an answer"),
            (Whim::BreakOff, "hung up in an answer"),
            (Whim::Leave, "hung up behind an answer"),
            (Whim::Leave, "hung up behind an answer"),
        ]);
        self.judge.hit(name, 1);
        whim
    }

    /// How long it bears silence on a connection.
    fn patience(&self) -> Duration {
        let mut chance = self.chance.borrow_mut();
        if self.is_moody() && chance.percent(20) {
            Duration::from_micros(chance.below(40_000))
        } else {
            FOREVER
        }
    }

    /// Whether it stops reading here.
    pub(super) fn is_bored(&self) -> bool {
        self.is_moody() && self.chance.borrow_mut().percent(2)
    }

    /// Between two bytes of the same answer.
    pub(super) fn cut(&self, len: usize) -> usize {
        usize::try_from(self.chance.borrow_mut().below(len as u64)).unwrap_or(0)
    }
}

impl Guest {
    /// The next command; none if the connection ends here.
    pub(super) async fn next_command(&self, conn: &mut Conn) -> Result<Option<Packet>, NetError> {
        loop {
            let next = rt::select(conn.packet(PACKET_LEN_MAX), self.told_to_end());
            match self.server.rt.timeout(self.server.patience(), next).await {
                Ok(rt::Either::Left(packet)) => return packet.map(Some),
                Ok(rt::Either::Right(())) => {
                    self.must_be_left(conn).await;
                    return Ok(None);
                }
                Err(_silent) if self.server.is_moody() => {
                    self.server.judge.hit("hung up in silence", 1);
                    self.tell("is closed, because nobody says anything");
                    return Ok(None);
                }
                Err(_) => {}
            }
        }
    }

    pub(super) async fn told_to_end(&self) {
        while !self.order.connection.get() && !self.order.hang_up.get() {
            self.order.bell.wait().await;
        }
    }

    /// If it was killed, which is asked for only where nobody goes on: the other side closes it,
    /// too.
    pub(super) async fn must_be_left(&self, conn: &mut Conn) {
        if self.order.hang_up.get() {
            return;
        }
        let end = async { while conn.recv().await.is_ok_and(|chunk| !chunk.is_empty()) {} };
        let ended = self.server.rt.timeout(self.server.late, end).await;
        let who = format!("server {}", self.server.name);
        self.server.judge.check(ended.is_ok(), &who, || {
            format!(
                "connection {} is killed, and somebody goes on with it",
                self.id
            )
        });
    }
}
