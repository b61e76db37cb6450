//! Lines for whoever operates the proxy, and those of scripts. Nobody who says one waits for it to
//! be written.

/// Takes lines.
pub trait Lines: Send + Sync {
    /// A line for the log.
    fn line(&self, words: &str);

    /// Text that a script appends to a file of its own. Dropped where scripts have no files.
    fn append(&self, _file: &str, _text: &[u8]) {}
}

impl<F: Fn(&str) + Send + Sync> Lines for F {
    fn line(&self, words: &str) {
        self(words);
    }
}
