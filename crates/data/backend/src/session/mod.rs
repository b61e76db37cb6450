//! What a session has and wants: values, without a connection.

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
