//! Results by key, bounded in bytes over all cores. The path of a result: [`Question`] →
//! [`Cache::get`] → miss → [`Gathered`] while it is relayed → [`Entry`] → [`Cache::keep`] → hit →
//! [`Entry::write`].
#![forbid(unsafe_code)]

mod entry;
mod flights;
mod gathered;
mod key;
mod names;
mod store;
mod tables;

pub use entry::{Entry, Made};
pub use flights::{Flight, Flights, Landing};
pub use gathered::{Gathered, Said};
pub use key::{Binary, Charset, Question, Read};
pub use names::TableNames;
pub use store::{Asked, Cache, Found, Numbers, Renewal};
pub use tables::{Tables, Versions, Writing};
