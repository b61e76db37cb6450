//! Statements on sharded tables: rows of several partitions put together, changes that all partitions make or
//! none, transactions with a branch on each hostgroup, rows that move, and numbers of sequences.

pub(crate) mod all;
pub(crate) mod asking;
pub(crate) mod branches;
pub(crate) mod changing;
pub(crate) mod finishing;
pub(crate) mod from_query;
pub(crate) mod gathering;
pub(crate) mod in_turn;
pub(crate) mod legs;
pub(crate) mod loading;
pub(crate) mod made;
pub(crate) mod rekeying;
pub(crate) mod renaming;
pub(crate) mod returned;
pub(crate) mod said;
pub(crate) mod values;
pub(crate) mod whole_rows;
