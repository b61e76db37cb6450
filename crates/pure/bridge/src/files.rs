//! Files of scripts: a core hands work over and does not wait, and a thread of the control plane does
//! it, in the order in which it came.

use config::Place;
use std::fmt;

/// Work on a file of a script.
pub struct FileWork {
    /// The file.
    pub place: Place,
    /// Deed to be done with it.
    pub deed: FileDeed,
    /// Hears what came of it, if somebody waits.
    pub done: Option<FileDone>,
}

/// A deed with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDeed {
    /// Text is put at its end. The file is made if there is none.
    Append(Box<[u8]>),
    /// An empty file stands in its place.
    Empty,
    /// All of it is read, unless it has more bytes than this.
    Read(usize),
    /// Removal.
    Remove,
    /// Change of its name.
    Rename(Place),
}

/// Hears the bytes that were read, none for other deeds; or why it was not done.
pub type FileDone = Box<dyn FnOnce(Result<Vec<u8>, String>) + Send>;

impl FileWork {
    /// Tells who waits what came of it.
    pub fn is_done(mut self, said: Result<Vec<u8>, String>) {
        if let Some(done) = self.done.take() {
            done(said);
        }
    }
}

impl fmt::Debug for FileWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileWork({:?}, {:?})", self.place, self.deed)
    }
}
