//! Two bugs that are not there: the simulator's tests switch them on, to see that its oracles see them.
//! Only in builds with the feature `planted`, which nothing that ships asks for.

use std::cell::Cell;

thread_local! {
    /// A connection is given back in the middle of a transaction.
    pub static RELEASE_EARLY: Cell<bool> = const { Cell::new(false) };
    /// What a client has SET is not brought onto the next connection.
    pub static FORGET_SETS: Cell<bool> = const { Cell::new(false) };
}
