//! Sessions that go on in another process, because that takes over from this one.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Format of [`Moved::facts`] that this version writes. A field that is added has a default for those that do
/// not have it. A field without which a session would be another makes this number one more.
pub const MOVED_FORMAT: u32 = 1;

/// Oldest format of [`Moved::facts`] that is understood.
pub const MOVED_OLDEST: u32 = 1;

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
