//! Words with both ends: answers to the client, questions to servers, records of both.

pub(crate) mod ask;
pub(crate) mod attributes;
pub(crate) mod audit;
pub(crate) mod events;
pub(crate) mod firewall;
pub(crate) mod hand_over;
pub(crate) mod kill;
pub(crate) mod lexing;
pub(crate) mod log;
pub(crate) mod named;
pub(crate) mod pass;
pub(crate) mod received;
pub(crate) mod relayed;
pub(crate) mod reply;
pub(crate) mod scripts;
pub(crate) mod settings;
pub(crate) mod stop;
pub(crate) mod writes;
