//! A text of ours on a connection that is nobody's, with its answer.

use crate::known::answer::Complaint;
use backend::{Backend, BackendFailed};
use net::NetError;
use rt::Chunk;
use wire::attributes::Attributes;
use wire::response::{Expect, Follow, Response};
use wire::{packet, response};

/// Bytes of an answer of which the words are read.
pub(crate) const ANSWER_LEN_MAX: usize = 4 << 10;
/// Bytes of a packet with rows of a file.
const FILE_PACKET_LEN: usize = 1 << 20;

/// A server's whole answer.
pub(crate) struct Answer {
    pub(crate) response: Response,
    /// Its beginning.
    pub(crate) bytes: Vec<u8>,
}

/// A statement of which more is to be said.
pub(crate) struct Saying<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) attributes: Option<&'a Attributes>,
    /// File for which the server may ask.
    pub(crate) file: Option<&'a [u8]>,
    /// Bytes of the answer that are kept; a chunk more where there are more.
    pub(crate) keeps: usize,
}

/// Says a statement, and hears all of the answer.
pub(crate) async fn say(
    backend: &mut Backend,
    text: &[u8],
    attributes: Option<&Attributes>,
) -> Result<Answer, BackendFailed> {
    let saying = Saying {
        text,
        attributes,
        file: None,
        keeps: ANSWER_LEN_MAX,
    };
    say_with(backend, saying).await
}

/// Says a statement, with more.
pub(crate) async fn say_with(
    backend: &mut Backend,
    saying: Saying<'_>,
) -> Result<Answer, BackendFailed> {
    let Saying {
        text,
        attributes,
        file,
        keeps,
    } = saying;
    let (mut command, caps) = (Vec::with_capacity(text.len() + 16), backend.hello.caps);
    let (mut next, none) = (0, Attributes::default());
    packet::append_with(&mut command, &mut next, |out| {
        wire::attributes::write_query(out, text, attributes.unwrap_or(&none), caps);
    });
    backend.send(Chunk::from(command)).await?;
    let mut response = Response::expect(Expect::Query, caps).to_packet(next.wrapping_sub(1));
    let mut bytes = Vec::new();
    loop {
        let chunk = backend.recv().await?;
        if bytes.len() <= keeps {
            bytes.extend_from_slice(&chunk);
        }
        let followed = response.follow(&chunk);
        let followed =
            followed.map_err(|wrong| BackendFailed::BrokeAfter(NetError::Malformed(wrong)))?;
        let Follow::Ended { used } = followed else {
            continue;
        };
        if let (response::Outcome::LocalInfile(_), Some(file)) = (response.outcome(), file) {
            let mut next = response.last_seq().wrapping_add(1);
            let mut packets = Vec::with_capacity(file.len() + 64);
            for piece in file.chunks(FILE_PACKET_LEN) {
                packet::append(&mut packets, &mut next, piece);
            }
            packet::append(&mut packets, &mut next, b"");
            backend.send(Chunk::from(packets)).await?;
            response.resume();
            bytes.clear();
            continue;
        }
        backend.ended(used, chunk.len());
        return Ok(Answer { response, bytes });
    }
}

/// Returns the error with which the server refuses, and its number.
pub(crate) fn refusal(answer: &Answer) -> Option<(u16, Complaint)> {
    error_of(&answer.response)
}

/// Returns the error of a response, and its number.
pub(crate) fn error_of(response: &Response) -> Option<(u16, Complaint)> {
    match response.outcome() {
        response::Outcome::Err {
            code,
            state,
            message,
        } => {
            let state = String::from_utf8_lossy(&state);
            let words = String::from_utf8_lossy(message);
            Some((code, Complaint::with(code, &state, words)))
        }
        _ => None,
    }
}
