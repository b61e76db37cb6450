//! LOAD DATA LOCAL INFILE: the client's file on its way to the server, as it comes.

use crate::command::trouble::Failed;
use crate::session::Session;
use backend::{Backend, BackendFailed, Idle};
use bridge::Counter;
use net::NetError;
use rt::Either;
use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use wire::infile::FilePackets;

/// Relays a file to its end. A server that reads slowly slows the client down; one that has
/// answered before the end, or was told to end the statement, still reads the rest, and so do we.
/// The numbers are those that the server expects next, and that the client says next.
/// `interrupting`: the server was already told to end the statement, which is done once: whatever
/// comes second would hit the statement behind this one. It is returned, too, if it was told
/// meanwhile.
pub(crate) async fn upload(
    session: &mut Session,
    backend: &mut Backend,
    (first, theirs): (u8, u8),
    limit: Duration,
    mut interrupting: Option<Interruption>,
) -> Result<Option<Interruption>, Failed> {
    // The server waits for the file, so nothing is proven.
    backend.idle = Idle::Doubtful;
    if !session
        .core
        .epoch()
        .snapshot
        .variables
        .mysql_enable_load_data_local_infile
    {
        // It was allowed when the client logged in, and the text did not tell what it would do.
        return Err(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)));
    }
    let entry = session.entry.clone();
    let rt = session.core.rt.clone();
    let until = rt.now() + limit;
    let mut interruption = interrupting
        .is_none()
        .then(|| session.interruption(backend));
    // One whose file broke off does not go on.
    session.client.in_order(true);
    let mut work = pin!(async {
        let counts = session.client.compression().is_none();
        let mut file = FilePackets::new(first, counts.then_some(theirs));
        loop {
            // A server waits for a silent client only so long (`net_read_timeout`): nobody else
            // would see that it has left.
            let mut chunk =
                match rt::select(session.client.recv(), backend.conn.socket().closed()).await {
                    Either::Left(came) => came.map_err(|_| Failed::Client)?,
                    Either::Right(()) => {
                        return Err(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)));
                    }
                };
            if chunk.is_empty() {
                return Err(Failed::Client);
            }
            // Who could not read his file and has gone on to his next command is told nothing, as
            // by a server.
            let end = file.follow(&mut chunk).map_err(|_| Failed::Client)?;
            if let Some(used) = end
                && used < chunk.len()
            {
                let part = chunk.split_to(used);
                session.client.put_back(std::mem::replace(&mut chunk, part));
            }
            #[cfg(debug_assertions)]
            if backend::planted::SPOIL_FILE.get() && chunk.len() > 100 {
                chunk[99] ^= 1;
            }
            session
                .core
                .tally
                .add(Counter::QueriesFrontendsBytesRecv, chunk.len() as u64);
            // A server may read slowly, or not at all: nobody else would see then that the client
            // has left.
            match rt::select(backend.pass(chunk), session.client.socket().closed()).await {
                Either::Left(passed) => passed.map_err(Failed::Backend)?,
                Either::Right(()) => return Err(Failed::Client),
            }
            if end.is_some() {
                session.client.in_order(false);
                return Ok(());
            }
        }
    });
    loop {
        let told = entry.told(interrupting.is_some());
        match rt
            .timeout(until - rt.now(), rt::select(work.as_mut(), told))
            .await
        {
            Ok(Either::Left(done)) => return done.map(|()| interrupting),
            Ok(Either::Right(())) if entry.killed.get() => return Err(Failed::Killed),
            Ok(Either::Right(())) if entry.cut.get() => {
                return Err(Failed::Backend(BackendFailed::CutOff));
            }
            Ok(Either::Right(())) => {
                if let Some(interrupt) = interruption.take() {
                    interrupting = Some(interrupt());
                }
            }
            Err(_late) => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                return Err(Failed::Backend(BackendFailed::TooSlow { limit_ms }));
            }
        }
    }
}

/// Of a KILL QUERY on the server: what became of it.
type Interruption = Rc<Cell<Option<bool>>>;
