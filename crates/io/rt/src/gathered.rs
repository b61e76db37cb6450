//! Several pieces that are on their way in one send of io_uring.

use crate::chunk::Chunk;

/// The longest single send: results are 32 bits, signed.
pub(crate) const SEND_MAX: usize = 1 << 30;

/// Several pieces on their way in one send. `pieces` points into `chunks`, `header` to `pieces`.
pub(crate) struct Gathered {
    header: libc::msghdr,
    pieces: Vec<libc::iovec>,
    chunks: Vec<Chunk>,
}

impl Gathered {
    /// All of these, as far as one send can be long.
    pub(crate) fn of(chunks: Vec<Chunk>) -> Box<Self> {
        let mut left = SEND_MAX;
        let mut pieces = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let iov_len = chunk.len().min(left);
            pieces.push(libc::iovec {
                iov_base: chunk.as_ptr().cast_mut().cast(),
                iov_len,
            });
            left -= iov_len;
        }
        // SAFETY: zeros are a valid msghdr.
        let header: libc::msghdr = unsafe { std::mem::zeroed() };
        let mut many = Box::new(Self {
            header,
            pieces,
            chunks,
        });
        many.header.msg_iov = many.pieces.as_mut_ptr();
        many.header.msg_iovlen = many.pieces.len() as _;
        many
    }

    /// For the kernel; it points to what lives as long as this.
    pub(crate) fn header(&self) -> *const libc::msghdr {
        &raw const self.header
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// The pieces, when the kernel has none of them any more.
    pub(crate) fn into_chunks(self) -> Vec<Chunk> {
        self.chunks
    }
}
