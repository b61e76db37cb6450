//! Bytes on their way: a `Chunk` owns a piece of a buffer, pooled or on the heap, and goes from one
//! socket to another without being copied.

use crate::sys::Map;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// The size of a pooled buffer, and so the most that one `recv` returns.
pub const CHUNK_LEN: usize = 16 * 1024;

/// Owned bytes. Dropping it gives a pooled buffer back to its core.
pub struct Chunk {
    store: Store,
    start: usize, // start <= end <= the store's length
    end: usize,
}

enum Store {
    Heap(Vec<u8>),
    Pooled(Buffer),
}

impl Chunk {
    /// No bytes; owns nothing.
    pub const fn empty() -> Self {
        Self {
            store: Store::Heap(Vec::new()),
            start: 0,
            end: 0,
        }
    }

    /// Drops the first `n` bytes, or all if there are fewer.
    pub fn advance(&mut self, n: usize) {
        self.start += n.min(self.len());
    }

    /// Keeps the first `n` bytes; nothing happens if there are fewer.
    pub fn truncate(&mut self, n: usize) {
        self.end = self.start + n.min(self.len());
    }

    /// Takes the first `n` bytes (or all) out as a chunk of their own, by copying the smaller part
    /// to the heap.
    pub fn split_to(&mut self, n: usize) -> Self {
        let n = n.min(self.len());
        if n == self.len() {
            return std::mem::take(self);
        }
        if n <= self.len() / 2 {
            let front = Self::from(&self[..n]);
            self.advance(n);
            return front;
        }
        let rest = Self::from(&self[n..]);
        let mut front = std::mem::replace(self, rest);
        front.truncate(n);
        front
    }

    /// The bytes as a `Vec`; free of copying when the chunk is a whole `Vec` already.
    pub fn into_vec(mut self) -> Vec<u8> {
        if let Store::Heap(bytes) = &mut self.store
            && self.start == 0
        {
            let mut bytes = std::mem::take(bytes);
            bytes.truncate(self.end);
            return bytes;
        }
        self.to_vec()
    }

    /// Does it hold one of the core's pooled buffers?
    pub fn is_pooled(&self) -> bool {
        matches!(self.store, Store::Pooled(_))
    }

    /// Appends, if it is a heap chunk that nobody else has seen the end of yet.
    pub(crate) fn try_append(&mut self, more: &[u8], max: usize) -> bool {
        let Store::Heap(bytes) = &mut self.store else {
            return false;
        };
        if self.end - self.start + more.len() > max {
            return false;
        }
        bytes.truncate(self.end);
        bytes.extend_from_slice(more);
        self.end = bytes.len();
        true
    }

    pub(crate) fn pooled(buffer: Buffer, len: usize) -> Self {
        Self {
            store: Store::Pooled(buffer),
            start: 0,
            end: len.min(CHUNK_LEN),
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.store {
            Store::Heap(bytes) => &bytes[self.start..self.end],
            Store::Pooled(buffer) => &buffer.bytes()[self.start..self.end],
        }
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.store {
            Store::Heap(bytes) => &mut bytes[self.start..self.end],
            Store::Pooled(buffer) => &mut buffer.bytes_mut()[self.start..self.end],
        }
    }
}

impl Default for Chunk {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self {
            store: Store::Heap(bytes),
            start: 0,
            end,
        }
    }
}

impl From<&[u8]> for Chunk {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl<const N: usize> From<&[u8; N]> for Chunk {
    fn from(bytes: &[u8; N]) -> Self {
        bytes.to_vec().into()
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Chunk({} bytes{})",
            self.len(),
            if self.is_pooled() { ", pooled" } else { "" }
        )
    }
}

/// The receive buffers of a core: one mapping, cut into pieces of `CHUNK_LEN`.
pub(crate) struct Pool {
    memory: Map,
    count: u16,
    /// Last in, first out, so that the buffer used next is the one still in the cache.
    free: RefCell<Vec<u16>>,
    /// How many lie ready in the kernel's ring (uring); they count as free.
    lent: Cell<usize>,
}

impl Pool {
    pub(crate) fn new(count: u16) -> io::Result<Rc<Self>> {
        let memory = Map::new(usize::from(count) * CHUNK_LEN)?;
        let free = RefCell::new((0..count).rev().collect());
        Ok(Rc::new(Self {
            memory,
            count,
            free,
            lent: Cell::new(0),
        }))
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Buffers that could take arriving bytes now.
    pub(crate) fn available(&self) -> usize {
        self.free.borrow().len() + self.lent.get()
    }

    /// Is so little left that arriving bytes should go to the heap?
    pub(crate) fn is_low(&self) -> bool {
        self.available() < self.count() / 4
    }

    /// How many lie in the kernel's ring.
    pub(crate) fn lent(&self) -> usize {
        self.lent.get()
    }

    pub(crate) fn take(self: &Rc<Self>) -> Option<Buffer> {
        let index = self.free.borrow_mut().pop()?;
        Some(Buffer {
            pool: self.clone(),
            index,
        })
    }

    /// Lends a buffer to the kernel; it comes back by `returned`.
    pub(crate) fn lend(&self) -> Option<(u16, *mut u8)> {
        let index = self.free.borrow_mut().pop()?;
        self.lent.set(self.lent.get() + 1);
        Some((index, self.start_of(index)))
    }

    /// The kernel has filled a buffer that was lent to it.
    pub(crate) fn returned(self: &Rc<Self>, index: u16) -> Option<Buffer> {
        if index >= self.count {
            return None;
        }
        self.lent.set(self.lent.get().checked_sub(1)?);
        Some(Buffer {
            pool: self.clone(),
            index,
        })
    }

    fn start_of(&self, index: u16) -> *mut u8 {
        debug_assert!(index < self.count);
        // SAFETY: index < count, and the mapping is count * CHUNK_LEN bytes long.
        unsafe { self.memory.start().add(usize::from(index) * CHUNK_LEN) }
    }
}

/// One piece of the pool. Whoever holds it is the only one who may touch that piece.
pub(crate) struct Buffer {
    pool: Rc<Pool>,
    index: u16,
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the piece lies inside the mapping, which was zeroed by the kernel and lives as
        // long as `pool`; the index is in one place only (the free list, the kernel's ring, or this
        // Buffer), so nobody writes to it.
        unsafe { std::slice::from_raw_parts(self.pool.start_of(self.index), CHUNK_LEN) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.pool.start_of(self.index), CHUNK_LEN) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.free.borrow_mut().push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &Rc<Pool>, bytes: &[u8]) -> Chunk {
        let mut buffer = pool.take().unwrap();
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Chunk::pooled(buffer, bytes.len())
    }

    #[test]
    fn a_dropped_chunk_gives_its_buffer_back() {
        let pool = Pool::new(2).unwrap();
        let a = filled(&pool, b"a");
        let b = filled(&pool, b"b");
        assert!(pool.take().is_none());
        drop(a);
        assert_eq!(pool.available(), 1);
        assert_eq!(&*b, b"b");
    }

    #[test]
    fn splitting_keeps_every_byte_wherever_the_cut_is() {
        let pool = Pool::new(4).unwrap();
        for cut in 0..=11 {
            for mut chunk in [filled(&pool, b"hello world"), Chunk::from(b"hello world")] {
                let front = chunk.split_to(cut);
                assert_eq!(front.len(), cut.min(11));
                assert_eq!([&front[..], &chunk[..]].concat(), b"hello world");
            }
        }
        assert_eq!(pool.available(), 4);
    }

    #[test]
    fn advance_and_truncate_stop_at_the_ends() {
        let mut c = Chunk::from(b"abcdef");
        c.advance(2);
        c.truncate(3);
        assert_eq!(&*c, b"cde");
        c.truncate(99);
        c.advance(99);
        assert!(c.is_empty());
    }

    #[test]
    fn a_heap_chunk_becomes_its_vec_again_and_grows_at_its_end_only() {
        let mut c = Chunk::from(vec![1, 2, 3, 4]);
        c.advance(1);
        c.truncate(2);
        assert!(c.try_append(&[9], 100));
        assert!(!c.try_append(&[0; 100], 100));
        assert_eq!(c.into_vec(), [2, 3, 9]);
    }
}
