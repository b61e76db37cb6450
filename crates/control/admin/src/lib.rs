//! The admin port: tables, commands and the SQLite engine.
#![forbid(unsafe_code)]

pub mod engine;
mod functions;
pub mod grid;
pub mod tables;
