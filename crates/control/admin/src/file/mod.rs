//! The configuration file: `proxysql.cnf` in libconfig's grammar, or `millrace.toml` with the same
//! rows.
//!
//! Both become the same tree of settings, with line numbers; `load` puts it into the tables of
//! memory.

mod constraints;
mod libconfig;
mod load;
mod names;
mod process;
mod read;
mod save;
mod tree;

pub use process::{KNOWN, Settings};
pub use read::File;
pub use save::text as saved;
pub use tree::{Place, Setting, Value};

pub(crate) use load::{as_far_as_possible, into_memory};
