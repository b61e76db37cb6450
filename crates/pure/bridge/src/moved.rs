//! Sessions that go on in another process, because that takes over from this one.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Format of [`Moved::facts`]. Another one is not understood.
pub const MOVED_FORMAT: u32 = 1;

/// A session that no process has just now. Dropped, it is closed.
pub struct Moved {
    /// Number of the session, which it keeps.
    pub session: u32,
    /// Everything that is known of it, as JSON. A password may be in it.
    pub facts: String,
    /// Bytes of its next command that have come already.
    pub rest: Vec<u8>,
    /// Connection to the client.
    pub socket: OwnedFd,
}

/// Takes a session that leaves; gives it back if nobody takes any.
pub type Take = Arc<dyn Fn(Moved) -> Result<(), Moved> + Send + Sync>;

impl fmt::Debug for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} on its way", self.session)
    }
}
