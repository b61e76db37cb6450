//! Lines for whoever operates the proxy, and those of scripts. Nobody who says one waits for it to
//! be written.

use crate::files::FileWork;
use crate::mail::Mail;

/// Messages of the log of one kind: what they say, names and numbers aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Number of the form: five digits, the same in each process.
    pub id: String,
    /// Thread that has said them, cores as one.
    pub thread: String,
    /// Form that they have in common: names are `'…'`, what has digits is `#`.
    pub form: String,
    /// How many there were.
    pub times: u64,
    /// When the first came, in seconds since 1970.
    pub first_s: u64,
    /// When the last came.
    pub last_s: u64,
}

/// Takes lines.
pub trait Lines: Send + Sync {
    /// A line for the log.
    fn line(&self, words: &str);

    /// Work on a file of a script. Refused where scripts have no files.
    fn file(&self, work: FileWork) {
        work.is_done(Err("scripts have no files here".into()));
    }

    /// A mail of a script. Dropped where nobody sends mails.
    fn mail(&self, _mail: Mail) {}
}

impl<F: Fn(&str) + Send + Sync> Lines for F {
    fn line(&self, words: &str) {
        self(words);
    }
}
