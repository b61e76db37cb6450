//! Sockets and listeners as tasks see them: one API over all drivers.

use crate::address::Address;
use crate::chunk::Chunk;
use crate::conn::{Begun, Conn, Finish, Listening, Receiving, State, UNSENT_MAX, errno};
use crate::core::{Core, Rt};
use crate::handed::{Away, Handed, Kind, NotHanded};
use crate::listen::ListenOptions;
use crate::sys;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time after which a connect is tried again that has found a full backlog.
const BACKLOG_AGAIN: Duration = Duration::from_millis(2);

impl Rt {
    /// Connects, with TCP_NODELAY. There is no time limit but the kernel's: use
    /// [`timeout`](Self::timeout).
    pub async fn connect(&self, to: &Address) -> io::Result<Socket> {
        loop {
            match self.0.io.connect(to)? {
                Begun::Conn(conn) => {
                    // If this future is dropped, so is the socket, and nothing goes on.
                    let socket = Socket::new(self.0.clone(), conn);
                    poll_fn(|cx| self.0.io.poll_connected(&socket.conn, cx)).await?;
                    return Ok(socket);
                }
                Begun::Full => self.sleep(BACKLOG_AGAIN).await,
            }
        }
    }

    /// Listens.
    pub fn listen(&self, at: &Address, o: ListenOptions) -> io::Result<Listener> {
        let listening = self.0.io.listen(at, o)?;
        Ok(Listener::new(self.0.clone(), listening))
    }

    /// The connection is this core's from now on.
    ///
    /// # Errors
    /// The driver cannot take it (no memory, too many watched), or it comes from another driver.
    pub fn adopt(&self, handed: Handed) -> io::Result<Socket> {
        let conn = self.0.io.adopt(handed)?;
        Ok(Socket::new(self.0.clone(), conn))
    }
}

/// Accepts connections. Dropping it closes it.
pub struct Listener {
    core: Rc<Core>,
    listening: Rc<Listening>,
}

impl Listener {
    fn new(core: Rc<Core>, listening: Rc<Listening>) -> Self {
        Self { core, listening }
    }

    /// The next connection. An error (too many open files, say) concerns one attempt; the listener
    /// lives on, but sleep a little before the next attempt, because the reason may still be there.
    /// Cancel-safe.
    pub async fn accept(&self) -> io::Result<Socket> {
        let handed = self.accept_for_any().await?;
        let conn = self.core.io.adopt(handed)?;
        Ok(Socket::new(self.core.clone(), conn))
    }

    /// Accepts the next connection, as [`accept`](Self::accept), for whichever core
    /// [adopts](crate::Rt::adopt) it.
    pub async fn accept_for_any(&self) -> io::Result<Handed> {
        poll_fn(|cx| self.core.io.poll_accept(&self.listening, cx)).await
    }

    /// Looks whether somebody waits whom the kernel has told only another process of, which has the
    /// same listener.
    pub fn look_again(&self) {
        self.core.io.look_again(&self.listening);
    }

    /// The next of those that were accepted already, where another process accepts what comes from
    /// now on ([`crate::leave_listeners`]); none behind the last. Cancel-safe.
    pub async fn accept_last(&self) -> Option<Handed> {
        poll_fn(|cx| self.core.io.poll_last(&self.listening, cx)).await
    }

    /// Where it listens; with the port that the kernel chose, if it was asked for port 0.
    pub fn local(&self) -> Address {
        self.listening.local.clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.listening.registered.take();
        self.listening.state.borrow_mut().dropped = true;
        self.core.io.unlisten(&self.listening);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({})", self.listening.local)
    }
}

/// A connection. Dropping it closes it, after what was queued is sent or a second has passed.
pub struct Socket {
    core: Rc<Core>,
    conn: Rc<Conn>,
}

impl Socket {
    fn new(core: Rc<Core>, conn: Rc<Conn>) -> Self {
        Self { core, conn }
    }

    /// The executor on which it lives.
    pub fn rt(&self) -> Rt {
        Rt(self.core.clone())
    }

    /// The number of its descriptor, as tools of the system list it; -1 where there are none.
    pub fn descriptor(&self) -> i32 {
        self.conn.fd()
    }

    /// Bytes that came, at most [`CHUNK_LEN`](crate::CHUNK_LEN); an empty chunk says that the peer
    /// closed its side. Cancel-safe.
    pub async fn recv(&self) -> io::Result<Chunk> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// [`recv`](Self::recv) for whoever waits for several things at once.
    pub fn poll_recv(&self, cx: &Context<'_>) -> Poll<io::Result<Chunk>> {
        let mut state = self.conn.state.borrow_mut();
        if let Some(chunk) = state.inbox.pop_front() {
            state.unread -= chunk.len();
            drop(state);
            self.core.io.made_room(&self.conn);
            return Poll::Ready(Ok(chunk));
        }
        if state.recv_error != 0 {
            return Poll::Ready(Err(errno(state.recv_error)));
        }
        if state.eof {
            return Poll::Ready(Ok(Chunk::empty()));
        }
        if let Some(result) = self
            .core
            .io
            .read(&self.core.hub, &self.conn, &mut state, cx)
        {
            return Poll::Ready(result);
        }
        if state.send_error != 0 {
            return Poll::Ready(Err(errno(state.send_error)));
        }
        state.reader.register(cx);
        Poll::Pending
    }

    /// Queues bytes in order. Returns at once while less than 64 KiB is unsent, else waits until
    /// that is so again; dropping the future while it waits leaves the bytes queued. What goes
    /// wrong later surfaces in the next `send`, `flush` or `recv`.
    pub async fn send(&self, bytes: impl Into<Chunk>) -> io::Result<()> {
        self.queue(bytes)?;
        if !self.is_full() {
            return Ok(());
        }
        self.room().await
    }

    /// Waits until all that was sent has been handed to the kernel.
    pub async fn flush(&self) -> io::Result<()> {
        self.sent_below(1).await
    }

    /// Is so much unsent that a [`send`](Self::send) would wait?
    pub fn is_full(&self) -> bool {
        self.unsent() >= UNSENT_MAX
    }

    /// Waits until less than 64 KiB is unsent. Cancel-safe.
    pub async fn room(&self) -> io::Result<()> {
        self.sent_below(UNSENT_MAX).await
    }

    /// Queues in order without waiting, as [`send`](Self::send) does before it waits; the driver
    /// sends it at the end of this turn of the core, together with what joins it until then.
    pub fn queue(&self, chunk: impl Into<Chunk>) -> io::Result<()> {
        let chunk = chunk.into();
        let mut state = self.conn.state.borrow_mut();
        if state.send_error != 0 {
            return Err(errno(state.send_error));
        }
        if chunk.is_empty() {
            return Ok(());
        }
        if state.finish != Finish::No {
            return Err(errno(libc::EPIPE));
        }
        state.unsent += chunk.len();
        state.outbox.push_back(chunk);
        self.tell(&mut state);
        Ok(())
    }

    /// Ends this side: when all that was queued is sent, the peer sees the end. Receiving goes on;
    /// sending is over.
    pub fn finish(&self) {
        let mut state = self.conn.state.borrow_mut();
        if state.finish == Finish::No {
            state.finish = Finish::Asked;
            self.tell(&mut state);
        }
    }

    /// Takes an idle connection from this core, for another to [adopt](crate::Rt::adopt). What is
    /// left here is only to be dropped.
    ///
    /// # Errors
    /// It was not idle, or does not stay so, and is over; or the process has no descriptor left for
    /// it, and it stays as it was.
    pub async fn hand_over(&self) -> Result<Handed, NotHanded> {
        if !self.is_idle() {
            return Err(NotHanded::Over);
        }
        match self.hand_over_with_rest().await? {
            (handed, rest) if rest.is_empty() => Ok(handed),
            _ => Err(NotHanded::Over),
        }
    }

    /// Whether nothing is unsent, and neither side has ended.
    pub fn may_part(&self) -> bool {
        let state = self.conn.state.borrow();
        state.unsent == 0 && !state.is_over()
    }

    /// Takes a connection that [may part](Socket::may_part) from this core, with bytes that have
    /// come, for another core to [adopt](crate::Rt::adopt).
    ///
    /// # Errors
    /// As [`Socket::hand_over`].
    pub async fn hand_over_with_rest(&self) -> Result<(Handed, Vec<u8>), NotHanded> {
        if !self.may_part() {
            return Err(NotHanded::Over);
        }
        // First, since nothing has changed then.
        let duplicate = self.conn.duplicate().map_err(|_| NotHanded::Stays)?;
        self.conn.state.borrow_mut().parting = true;
        self.core.io.let_go(&self.conn);
        poll_fn(|cx| {
            let mut state = self.conn.state.borrow_mut();
            if matches!(state.receiving, Receiving::Off | Receiving::Starved) {
                return Poll::Ready(());
            }
            state.reader.register(cx);
            Poll::Pending
        })
        .await;
        let rest = {
            let mut state = self.conn.state.borrow_mut();
            if state.unsent > 0 || state.is_over() {
                return Err(NotHanded::Over);
            }
            state.unread = 0;
            let inbox = std::mem::take(&mut state.inbox);
            inbox
                .iter()
                .flat_map(|chunk| chunk.iter().copied())
                .collect()
        };
        let handed = match duplicate {
            Some(fd) => Kind::Fd(fd),
            None => {
                let mut state = self.conn.state.borrow_mut();
                state.handed = true;
                Kind::Sim(Away::from(self.conn.place.get()))
            }
        };
        Ok((Handed(handed), rest))
    }

    fn tell(&self, state: &mut State) {
        if !state.dirty {
            state.dirty = true;
            self.core.hub.has_news(self.conn.clone());
        }
    }

    async fn sent_below(&self, bytes: usize) -> io::Result<()> {
        poll_fn(|cx| {
            let mut state = self.conn.state.borrow_mut();
            if state.send_error != 0 {
                return Poll::Ready(Err(errno(state.send_error)));
            }
            if state.unsent < bytes {
                return Poll::Ready(Ok(()));
            }
            state.wait_to_write(cx);
            Poll::Pending
        })
        .await
    }

    /// Bytes that were sent here and are not yet with the kernel.
    pub fn unsent(&self) -> usize {
        self.conn.state.borrow().unsent
    }

    /// Does nothing wait: no byte, end or error to receive, nothing unsent? Then it can go back to
    /// a pool.
    pub fn is_idle(&self) -> bool {
        let mut state = self.conn.state.borrow_mut();
        state.inbox.is_empty()
            && state.unsent == 0
            && !state.is_over()
            && self.core.io.is_quiet(&self.conn, &mut state)
    }

    /// The other end.
    pub fn peer(&self) -> Address {
        self.conn.peer()
    }

    /// This end.
    pub fn local(&self) -> Address {
        self.conn.local()
    }

    /// TCP keepalive after so many idle seconds (0: after as many as the system says), or none.
    /// Nothing on a Unix socket.
    pub fn keepalive(&self, idle_secs: Option<u32>) -> io::Result<()> {
        match self.conn.peer() {
            Address::Tcp(_) if self.conn.fd() >= 0 => sys::keepalive(self.conn.fd(), idle_secs),
            _ => Ok(()),
        }
    }

    /// Resolves when the peer has closed, half-closed or reset the connection, without consuming
    /// bytes: so that a client that leaves is noticed while its query runs. While 64 KiB wait
    /// unread, the end behind them cannot be seen (uring).
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = self.conn.state.borrow_mut();
            if state.is_over() {
                return Poll::Ready(());
            }
            state.watcher.register(cx);
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.conn.state.borrow().handed {
            return;
        }
        self.conn.state.borrow_mut().abandon();
        if self.core.io.release(&self.conn) {
            self.core.linger(&self.conn);
        }
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Socket({} - {})", self.local(), self.peer())
    }
}
