//! HTTP calls of scripts: a core hands one over, and a control thread makes it.

use std::fmt;
use std::sync::Arc;

/// A call, and whom its answer is for.
pub struct HttpCall {
    /// Over TLS, with a certificate for `host` that the system's authorities have signed.
    pub tls: bool,
    /// A name or an address, without brackets.
    pub host: String,
    /// Of TCP.
    pub port: u16,
    /// Method: `GET` or `POST`.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// Headers beside those that every call has.
    pub headers: Vec<(String, String)>,
    /// Body of the call.
    pub body: Vec<u8>,
    /// Milliseconds that it may take, from here to the end of the answer.
    pub timeout_ms: u32,
    /// Bytes of the answer's body at most.
    pub answer_len_max: usize,
    /// Hears the answer, or why there is none.
    pub done: Box<dyn FnOnce(Result<HttpAnswer, String>) + Send>,
}

impl fmt::Debug for HttpCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method, host, port, ..
        } = self;
        write!(f, "HttpCall({method} {host}:{port})")
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status, such as 200.
    pub status: u16,
    /// Headers, by their names in small letters.
    pub headers: Vec<(String, String)>,
    /// Body, as it came.
    pub body: Vec<u8>,
}

/// Takes calls of scripts. It does not wait; false where there is no room, and the call is dropped.
pub type HttpCalls = Arc<dyn Fn(HttpCall) -> bool + Send + Sync>;
