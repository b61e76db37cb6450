//! Binary logs of MySQL and MariaDB. The path of an event: bytes → [`Event`] → [`Log::follow`] →
//! [`Transaction`], with its GTID and the tables that it touches. Whoever wants rows has [`Watch`] see
//! the events.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html>,
//! <https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol>
#![forbid(unsafe_code)]

mod ask;
mod column;
mod event;
mod gtids;
mod json;
mod log;
mod packed;
mod place;
mod rows;
mod touched;
mod value;
mod watch;

pub use ask::{dump_from_gtids, dump_from_state};
pub use column::{Column, Kind, columns};
pub use event::{Change, Event, Rows, Table, Text};
pub use log::{Log, Transaction, fuzz_log};
pub use place::Place;
pub use rows::{Image, Row};
pub use touched::Touched;
pub use value::Value;
pub use watch::Watch;
