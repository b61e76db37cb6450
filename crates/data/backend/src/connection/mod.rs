//! A connection to a server: what is set there, asked there, and prepared there.

pub(crate) mod ask;
pub(crate) mod backend;
pub(crate) mod bring;
pub(crate) mod ends;
pub(crate) mod glimpse;
pub(crate) mod gtids;
pub(crate) mod killing;
pub(crate) mod lease;
pub(crate) mod left;
pub(crate) mod meant;
pub(crate) mod place;
pub(crate) mod prepare;
pub(crate) mod reset;
pub(crate) mod settings;
pub(crate) mod slots;
pub(crate) mod track;
