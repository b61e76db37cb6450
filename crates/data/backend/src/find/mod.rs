//! A command gets its connection.
//!
//! - `acquire`: the usual way; `pace`: waiting beside the line.
//! - `exactly`: at a named server; `through`: for one client alone; `copies`: for mirrors.

pub(crate) mod acquire;
pub(crate) mod copies;
pub(crate) mod exactly;
pub(crate) mod pace;
pub(crate) mod through;
