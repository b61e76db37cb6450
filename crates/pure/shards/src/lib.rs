//! Tables that are spread over partitions: the map that says where rows are, the partitions that a
//! statement needs, and how their results become one.
//!
//! [`Map`] is built from rows, [`spread`] reads a statement by it, [`command`] reads `HSCALE …`.
//! What is not certain is every partition that may hold it, or refused in a sentence; never a guess.
#![forbid(unsafe_code)]

mod buckets;
mod case;
mod catalogue;
pub mod command;
mod complaint;
mod condition;
mod cuts;
mod ddl;
mod definitions;
mod described;
mod entries;
mod facts;
mod finish;
mod from_query;
mod function;
mod fuzz;
pub mod global;
mod hints;
mod inserted;
mod key;
mod listed;
mod load_data;
pub mod loaded;
mod lookups;
mod made;
mod map;
mod numbers;
mod rekey;
mod rekeyed;
mod renamed;
mod routed;
mod rows;
mod scopes;
mod scripted;
mod spread;
mod stored;
mod values;
mod written;
pub mod xa;

pub use catalogue::catalogue;
pub use command::{Command, Shown, command};
pub use cuts::{Cut, cut};
pub use described::{ColumnOrder, Described, KnownColumns, Undescribed};
pub use facts::{Facts, Making, Numbering, Numbers};
pub use finish::{Columns, Copied, Finish, Origin, finish};
pub use from_query::{FromQuery, KeyCell, Target};
pub use function::{Bucket, Function};
pub use fuzz::fuzz_routes;
pub use key::{Key, Value};
pub use listed::{Listed, lacks_columns, list};
pub use loaded::{Loaded, fuzz_file};
pub use lookups::{Asked, Entry, LookedUp, Lookup, Wanted};
pub use made::{MadeRow, Partitions, READ_AT_ONCE};
pub use map::{Automatic, Home, Kind, Map, Refused, Table};
pub use numbers::{Numbered, Sequences, number};
pub use rekeyed::{Place, Rekeyed};
pub use renamed::Rename;
pub use routed::{Leg, Routed, Spread};
pub use rows::{Declared, LookupRow, PartitionRow, TableRow};
pub use scripted::{BucketScript, Runner, Scripted};
pub use spread::spread;
pub use values::{Inner, Means, inner_queries};
