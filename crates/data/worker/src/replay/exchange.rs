//! A statement of a course and its answer, on a connection that is nobody's meanwhile.

use crate::core::alone;
use crate::session::course::Said;
use backend::{Backend, BackendFailed};
use net::NetError;
use rt::Chunk;
use sql::Class;
use wire::response::{Expect, Follow, Summed};
use wire::{errors, packet};

/// Errors of a server on which others are at work.
pub(super) const BUSY: [u16; 2] = [errors::DEADLOCK.number, errors::LOCK_WAIT_TIMEOUT.number];

/// Says a statement as the connection is, and sums up its answer.
pub(super) async fn exchange(
    backend: &mut Backend,
    (said, class): (&Said, &Class<'_>),
    max: u64,
) -> Result<Summed, BackendFailed> {
    let (mut command, caps) = (Vec::new(), backend.hello.caps);
    let expect = match said {
        Said::Text(text, attributes) => {
            packet::append_with(&mut command, &mut 0, |out| {
                wire::attributes::write_query(out, text, attributes, caps)
            });
            Expect::Query
        }
        Said::Execution(kept) => {
            let id = backend
                .prepare(&kept.prepared, 0, &kept.bindings, max)
                .await?;
            kept.fits(backend, id)?;
            for command in kept.long_data(id) {
                backend.send(command).await?;
            }
            packet::append_with(&mut command, &mut 0, |out| kept.write(out, id, caps));
            Expect::Execute
        }
    };
    alone::before(backend, class);
    let sent = packet::last_seq_of_framed(command.len());
    backend.send(Chunk::from(command)).await?;
    let mut summed = Summed::expect(expect, caps).to_packet(sent);
    loop {
        let chunk = backend.recv().await?;
        let followed = summed
            .follow(&chunk)
            .map_err(|malformed| BackendFailed::BrokeAfter(NetError::Malformed(malformed)))?;
        if let Follow::Ended { used } = followed {
            backend.ended(used, chunk.len());
            break;
        }
    }
    alone::learn(backend, class, summed.response());
    Ok(summed)
}
