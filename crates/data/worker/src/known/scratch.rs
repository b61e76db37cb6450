//! Buffers that the sessions of a core borrow, so that idle ones own none.

use std::cell::RefCell;

/// Buffers kept at most.
const KEPT_MAX: usize = 64;
/// Bytes of a buffer that is kept.
const KEPT_LEN_MAX: usize = 16 << 10;

/// Empty buffers with room.
#[derive(Default)]
pub(crate) struct Scratch(RefCell<Vec<Vec<u8>>>);

impl Scratch {
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT_MAX && buffer.capacity() <= KEPT_LEN_MAX {
            buffer.clear();
            kept.push(buffer);
        }
    }
}
