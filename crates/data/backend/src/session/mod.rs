//! Values of a session, without a connection.
//!
//! - `state`, `variables`: what a client has set; `need`: the way from one state to another.
//! - `hold`, `own`: why a connection cannot be shared.
//! - `prepared`: the statements of this core.
//! - `want`: what a command wants of its connection; `key`: who may share one; `login`, `passwords`:
//!   how one is opened for it.

pub(crate) mod hold;
pub(crate) mod key;
pub(crate) mod login;
pub(crate) mod need;
pub(crate) mod own;
pub(crate) mod passwords;
pub(crate) mod prepared;
pub(crate) mod state;
pub(crate) mod variables;
pub(crate) mod want;
