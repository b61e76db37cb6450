//! LOAD DATA LOCAL INFILE: the client's file on its way to the server, as it comes.

use crate::relay::Failed;
use crate::session::Session;
use backend::{Backend, BackendFailed, Idle};
use bridge::Counter;
use net::NetError;
use rt::Either;
use std::time::Duration;
use wire::infile::FilePackets;

/// Relays a file to its end. A server that reads slowly slows the client down; one that has answered before the end still reads the rest, and so
/// do we. `first`: the number that the server expects next.
pub(crate) async fn upload(session: &mut Session, backend: &mut Backend, first: u8, limit: Duration) -> Result<(), Failed> {
    // The server waits for the file, so nothing is proven.
    backend.idle = Idle::Doubtful;
    if !session.core.epoch().snapshot.variables.mysql_enable_load_data_local_infile {
        // It was allowed when the client logged in, and the text did not tell what it would do.
        return Err(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)));
    }
    let entry = session.entry.clone();
    let rt = session.core.rt.clone();
    let work = async {
        let mut file = FilePackets::new(first);
        loop {
            let mut chunk = session.client.recv().await.map_err(|_| Failed::Client)?;
            if chunk.is_empty() {
                return Err(Failed::Client);
            }
            let end = file.follow(&mut chunk);
            if let Some(used) = end
                && used < chunk.len()
            {
                let part = chunk.split_to(used);
                session.client.put_back(std::mem::replace(&mut chunk, part));
            }
            session.core.tally.add(Counter::QueriesFrontendsBytesRecv, chunk.len() as u64);
            backend.pass(chunk).await.map_err(Failed::Backend)?;
            if end.is_some() {
                return Ok(());
            }
        }
    };
    match rt.timeout(limit, rt::select(work, entry.told(false))).await {
        Ok(Either::Left(done)) => done,
        Ok(Either::Right(())) if entry.cut.get() && !entry.killed.get() => Err(Failed::Backend(BackendFailed::CutOff)),
        Ok(Either::Right(())) => Err(Failed::Killed),
        Err(_late) => {
            let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            Err(Failed::Backend(BackendFailed::TooSlow { limit_ms }))
        }
    }
}
