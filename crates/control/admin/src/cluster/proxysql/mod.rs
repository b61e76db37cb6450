//! ProxySQLs among the other proxies: the same decisions, in ProxySQL's words.
//!
//! | to see | read |
//! |---|---|
//! | what ProxySQLs ask each other | `facts.rs` |
//! | how they hash it | `hash.rs` |
//! | a module as they have it | `form.rs`, made by `settle.rs`, kept in `forms.rs` |
//! | asking them | `follow.rs` |
//! | answering them | `answer.rs` |

mod answer;
mod facts;
mod follow;
mod form;
mod forms;
mod hash;
mod settle;
#[cfg(test)]
mod tests;

pub(crate) use facts::check_version;
pub(super) use form::Form;
pub(super) use forms::Proxysql;
pub(super) use hash::text;
