//! The harness of the conformance tests: real servers, real clients, Millrace between them.
#![forbid(unsafe_code)]

pub mod aurora;
pub mod beside;
pub mod binlog_reader;
pub mod browser;
pub mod by_hand;
pub mod cache;
pub mod clickhouse;
pub mod clients;
pub mod compare;
pub mod definitions;
pub mod dns;
pub mod dynamic;
pub mod etcd;
pub mod galera;
pub mod group;
pub mod halves;
pub mod killer;
pub mod library;
pub mod moved;
pub mod nodes;
pub mod partitions;
pub mod process;
pub mod proxy;
pub mod proxysql;
pub mod raw;
pub mod relay;
pub mod servers;
pub mod standing;
pub mod statements;
pub mod strangers;
pub mod trials;
pub mod watch;
