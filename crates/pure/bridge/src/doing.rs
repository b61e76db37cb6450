//! The statement that a core is at, for whoever watches it from another thread.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The statement that a core has begun last. Written by the core, read by anybody.
#[derive(Debug, Default)]
pub struct Doing {
    session: AtomicU64,
    digest: AtomicU64,
}

impl Doing {
    /// A statement of this session begins; its digest, or 0 if none is made.
    pub fn begins(&self, session: u32, digest: u64) {
        self.session.store(session.into(), Ordering::Relaxed);
        self.digest.store(digest, Ordering::Relaxed);
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.session.load(Ordering::Relaxed);
        match (session, self.digest.load(Ordering::Relaxed)) {
            (0, _) => write!(f, "no statement has begun on it"),
            (_, 0) => write!(f, "the last statement begun is of session {session}"),
            (_, digest) => write!(
                f,
                "the last statement begun is of session {session}, digest 0x{digest:016X}"
            ),
        }
    }
}
