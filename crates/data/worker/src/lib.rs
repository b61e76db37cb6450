//! One core of the data plane: it accepts clients and lives their sessions. Read `session.rs` first.
#![forbid(unsafe_code)]

mod absorb;
mod answer;
mod asked;
mod attributes;
mod cached;
mod certificate;
mod change_user;
mod compare;
mod core;
mod cursor;
mod cut;
mod cutoff;
mod epoch;
mod fetching;
mod firewall;
mod forward;
mod greet;
mod held;
mod infile;
mod insert_id;
mod keeper;
mod kill;
mod lanes;
mod learn;
mod lexing;
mod mirror;
mod packing;
mod peers;
mod prepared;
mod preparing;
mod received;
mod ready;
mod recall;
mod relay;
mod roster;
mod scratch;
mod session;
mod settings;
mod several;
mod statement;
mod stats;
mod stop;
mod tracked;

pub use crate::core::{Core, Setup, run};
pub use crate::peers::{FromPeer, Peer};
