//! Parameters of an execution, as they are kept for a copy or a replay.

use backend::{Backend, BackendFailed, Bindings, Prepared};
use rt::Chunk;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::attributes::Attributes;
use wire::caps::Caps;
use wire::command::{COM_STMT_BULK_EXECUTE, COM_STMT_SEND_LONG_DATA};
use wire::packet;

/// An execution that outlives its command.
pub(crate) struct Kept {
    pub(crate) prepared: Rc<Prepared>,
    pub(crate) bindings: Bindings,
    pub(crate) attributes: Attributes,
    pub(crate) bound: Bound,
}

/// A COM_STMT_EXECUTE but for the server's id of its statement.
#[derive(Clone)]
pub(crate) struct Bound {
    /// The payload for a server without query attributes, with room for the id.
    pub(crate) payload: Vec<u8>,
    pub(crate) params: usize,
    /// Names that the client gives its parameters, if it has any for them.
    pub(crate) names: Option<Vec<u8>>,
    pub(crate) long: BTreeMap<u16, Vec<u8>>,
}

impl Kept {
    pub(crate) fn bytes(&self) -> usize {
        self.bound.payload.len()
            + self.attributes.bytes().len()
            + self.bound.long.values().map(Vec::len).sum::<usize>()
    }

    /// As [`Execution::fits`].
    pub(crate) fn fits(&self, backend: &Backend, id: u32) -> Result<(), BackendFailed> {
        self.bound.fits(backend, id)
    }

    /// Whether something goes ahead of it.
    pub(crate) fn has_long(&self) -> bool {
        !self.bound.long.is_empty()
    }

    /// As [`Execution::write`].
    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u32, caps: Caps) {
        self.bound.write(out, id, &self.attributes, caps);
    }

    /// As [`Execution::long_data`].
    pub(crate) fn long_data(&self, id: u32) -> impl Iterator<Item = Chunk> {
        long_data(&self.bound.long, id)
    }
}

impl Bound {
    /// A COM_STMT_BULK_EXECUTE.
    pub(crate) const fn bulk(payload: Vec<u8>) -> Self {
        Self {
            payload,
            params: 0,
            names: None,
            long: BTreeMap::new(),
        }
    }

    pub(crate) fn is_bulk(&self) -> bool {
        self.payload.first() == Some(&COM_STMT_BULK_EXECUTE)
    }

    pub(crate) fn fits(&self, backend: &Backend, id: u32) -> Result<(), BackendFailed> {
        match backend.params_of(id).map(usize::from) {
            Some(there) if there != self.params && !self.is_bulk() => Err(BackendFailed::Sync {
                code: 1210,
                state: *b"HY000",
                message: format!(
                    "Incorrect arguments to EXECUTE: the statement has {there} parameters on this server, and {} where it was prepared",
                    self.params
                ),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>, id: u32, attributes: &Attributes, caps: Caps) {
        let begin = out.len();
        if self.is_bulk() {
            // It has no place for attributes.
            out.extend_from_slice(&self.payload);
        } else {
            wire::attributes::write_execution(
                out,
                &self.payload,
                self.params,
                self.names.as_deref(),
                attributes,
                caps,
            );
        }
        if let Some(at) = out.get_mut(begin + 1..begin + 5) {
            at.copy_from_slice(&id.to_le_bytes());
        }
    }
}

pub(crate) fn long_data(long: &BTreeMap<u16, Vec<u8>>, id: u32) -> impl Iterator<Item = Chunk> {
    long.iter().map(move |(param, data)| {
        let mut framed = Vec::with_capacity(data.len() + 7 + packet::HEADER_LEN);
        packet::append_with(&mut framed, &mut 0, |out| {
            out.push(COM_STMT_SEND_LONG_DATA);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&param.to_le_bytes());
            out.extend_from_slice(data);
        });
        Chunk::from(framed)
    })
}
