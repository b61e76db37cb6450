//! Memories: what servers remember of a session's past, and how the session keeps it while its connections
//! change. One table (`table.rs`), a file for each row of it, and one way to ask (`drain.rs`).

pub(crate) mod accepted;
pub(crate) mod by_state;
pub(crate) mod drain;
pub(crate) mod found_rows;
pub(crate) mod generated;
pub(crate) mod insert_id;
pub(crate) mod last_gtid;
pub(crate) mod left;
pub(crate) mod lingers;
pub(crate) mod locks;
pub(crate) mod read_back;
pub(crate) mod recall;
pub(crate) mod row;
pub(crate) mod sequences;
pub(crate) mod table;
pub(crate) mod tracked;
pub(crate) mod values;
pub(crate) mod variables;
pub(crate) mod warnings;
pub(crate) mod written;
