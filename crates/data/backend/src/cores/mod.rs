//! What cores have to do with each other's connections.

pub(crate) mod lent;
pub(crate) mod neighbours;
pub(crate) mod wish;
pub(crate) mod word;
