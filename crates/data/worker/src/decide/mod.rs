//! A statement is decided: facts of its session, columns, numbers, look-ups and gates go in, a plan comes
//! out.

pub(crate) mod come_in;
pub(crate) mod described;
pub(crate) mod facts;
pub(crate) mod inside;
pub(crate) mod lookups;
pub(crate) mod made;
pub(crate) mod numbers;
pub(crate) mod on_reader;
pub(crate) mod written_keys;
