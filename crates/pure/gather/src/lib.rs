//! Results of several partitions become one, as one server would have answered.
//!
//! [`recipe`] reads a SELECT: what each partition is asked instead, and how the rows of all are put
//! together. [`Merge`] does that, row by row. What cannot be done exactly is refused in a sentence that
//! says what to do instead.
#![forbid(unsafe_code)]

mod aggregate;
mod copies;
mod decimal;
mod edit;
mod fuzz;
mod having;
mod merge;
mod order;
mod recipe;

pub use aggregate::{Aggregate, Cells, Does};
pub use copies::{BEFORE_COPIES, BEHIND_COPIES, Layout};
pub use decimal::Decimal;
pub use edit::{Edit, Piece};
pub use fuzz::fuzz_recipe;
pub use having::{Having, Operand};
pub use merge::{Merge, Row, SORTED_BYTES_MAX, SORTED_ROWS_MAX, Step};
pub use order::{Column, Kind};
pub use recipe::{Grouping, Key, Names, Recipe, Slot, recipe, recipe_for, told};
