//! What a fleet of proxies keeps in etcd: the truth of each module, and what each proxy has in force
//! of it.
//!
//! | to see | read |
//! |---|---|
//! | who is right | `decide.rs` |
//! | how limits are shared out | `share/` |
//! | what is kept, and under which keys | `books.rs`, `record.rs` |
//! | how etcd is asked | `store.rs` |
//! | how a module is written, and sealed | `text.rs`, `seal.rs` |
#![forbid(unsafe_code)]

mod books;
mod decide;
mod place;
mod record;
mod seal;
mod share;
mod store;
mod text;

pub use books::{Books, HISTORY_BYTES_MAX, HISTORY_MAX, Seen, Shares, Truth, Written};
pub use decide::{Own, Verdict, decide};
pub use place::Place;
pub use record::{Head, Held, Status};
pub use seal::Seal;
pub use share::{LIMITS_MAX, Ledger, Limit, MEMBERS_MAX, Need, Part, Partner, Report, Use, settle};
pub use store::{Failed, Watch};
pub use text::{Pieces, read, write};
