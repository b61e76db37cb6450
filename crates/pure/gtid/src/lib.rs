//! Sets of global transaction ids: what a session has written, what a server has executed.
//!
//! MySQL: <https://dev.mysql.com/doc/refman/en/replication-gtids-concepts.html#replication-gtids-concepts-gtid-sets>,
//! with the tags of 8.3. MariaDB: <https://mariadb.com/kb/en/gtid/>, `domain-server-sequence`.
#![forbid(unsafe_code)]

mod feed;
mod parse;
mod set;
mod tell;

pub use feed::{Feed, News, Strange, fuzz_feed};
pub use parse::{Malformed, fuzz_set};
pub use set::{Gtid, Interval, Set, Source};
pub use tell::Teller;
