//! Bugs that are not there: the simulator's tests switch them on, to see that its oracles see them.
//! Only in builds with debug assertions, which nothing that ships has.

use crate::session::hold::{Hold, Holds};
use std::cell::Cell;

thread_local! {
    /// A hold does not hold its connection: that is given back in the middle of a transaction, with
    /// a temporary table, with a lock.
    pub static FORGET_HOLD: Cell<Option<Hold>> = const { Cell::new(None) };
    /// Memories of another session's statement are told to this one.
    pub static TELL_OTHERS: Cell<bool> = const { Cell::new(false) };
    /// Every connection is taken for the one where the session's last statement ran.
    pub static NEVER_DISTURBED: Cell<bool> = const { Cell::new(false) };
    /// KILL names another connection of the server.
    pub static KILL_ANOTHER: Cell<bool> = const { Cell::new(false) };
    /// KILL is said whoever has the number by now.
    pub static KILL_ANYBODY: Cell<bool> = const { Cell::new(false) };
    /// State that is set on a connection does not travel with it to another core.
    pub static FORGET_LENT: Cell<bool> = const { Cell::new(false) };
    /// A client is sent whatever comes as fast as it comes.
    pub static NO_PACE: Cell<bool> = const { Cell::new(false) };
    /// Variables that a client has SET are not brought onto the next connection.
    pub static FORGET_SETS: Cell<bool> = const { Cell::new(false) };
    /// A connection with a role serves those who have said nothing of roles.
    pub static FORGET_ROLE: Cell<bool> = const { Cell::new(false) };
    /// A name of ours is taken for whatever was prepared in SQL.
    pub static ANY_SLOT: Cell<bool> = const { Cell::new(false) };
    /// Who becomes somebody else keeps what it has set.
    pub static KEEP_STATE: Cell<bool> = const { Cell::new(false) };
    /// Of several statements, those behind one that failed are done, too.
    pub static GO_ON: Cell<bool> = const { Cell::new(false) };
    /// That a statement has to be prepared anew is told to its client.
    pub static TELL_STALE: Cell<bool> = const { Cell::new(false) };
    /// Where a server is gone, its clients are sent away without a word.
    pub static HANG_UP: Cell<bool> = const { Cell::new(false) };
    /// A byte of a client's file becomes another.
    pub static SPOIL_FILE: Cell<bool> = const { Cell::new(false) };
    /// The connection of a session with nothing between outlives it.
    pub static KEEP_THROUGH: Cell<bool> = const { Cell::new(false) };
    /// Types that a client leaves out are those that it sent first, not last.
    pub static OLD_TYPES: Cell<bool> = const { Cell::new(false) };
    /// A broken connection that is only kept for what it remembers is asked again, and again.
    pub static ASK_AGAIN: Cell<bool> = const { Cell::new(false) };
    /// A variable that a server names is all that a program has set.
    pub static NAMES_EXPLAIN: Cell<bool> = const { Cell::new(false) };
    /// User variables that a procedure has set are not asked for before its connection is given
    /// back.
    pub static FORGET_LEFT: Cell<bool> = const { Cell::new(false) };
    /// A server that is OFFLINE_SOFT is given new work.
    pub static WORK_OFFLINE: Cell<bool> = const { Cell::new(false) };
    /// Connections to a server that is OFFLINE_HARD are kept by those who have them.
    pub static STAY_THERE: Cell<bool> = const { Cell::new(false) };
    /// Nobody knows when a session has written.
    pub static FORGET_WRITES: Cell<bool> = const { Cell::new(false) };
    /// Statements that end a READ ONLY transaction on a reader are said to the reader.
    pub static BEGIN_THERE: Cell<bool> = const { Cell::new(false) };
    /// Writes of a statement end the use of nothing.
    pub static FORGET_TABLES: Cell<bool> = const { Cell::new(false) };
    /// A connection on which a copy has left something is given to the next.
    pub static KEEP_COPIES: Cell<bool> = const { Cell::new(false) };
    /// Statements that mean something on their own connection only are copied, too.
    pub static COPY_ALL: Cell<bool> = const { Cell::new(false) };
    /// A COMMIT whose answer was lost is said again, behind a replay of its transaction.
    pub static REPEAT_COMMITS: Cell<bool> = const { Cell::new(false) };
    /// The mark of a COMMIT whose answer was lost is never found.
    pub static MISS_MARKS: Cell<bool> = const { Cell::new(false) };
    /// The mark is always found.
    pub static TRUST_MARKS: Cell<bool> = const { Cell::new(false) };
    /// The mark is looked for before the server has applied what it got.
    pub static LOOK_EARLY: Cell<bool> = const { Cell::new(false) };
    /// A result that a script ignores goes to the client as well.
    pub static SAY_IGNORED: Cell<bool> = const { Cell::new(false) };
    /// A schema that a server does not have is passed over: what is said in it runs in the one
    /// before.
    pub static PASS_OVER: Cell<bool> = const { Cell::new(false) };
    /// On a connection that is shared, what was prepared first is executed, whatever is asked for.
    pub static ANOTHER_OF_LANE: Cell<bool> = const { Cell::new(false) };
    /// An answer on a shared connection goes to the one behind.
    pub static ANSWER_NEXT: Cell<bool> = const { Cell::new(false) };
    /// A SET does what it did in another session, whatever that had set before.
    pub static TAKE_ANY_STATE: Cell<bool> = const { Cell::new(false) };
    /// A session that is told to leave what it keeps for its memory leaves without having it asked.
    pub static LEAVE_UNASKED: Cell<bool> = const { Cell::new(false) };
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// Whether to ask it again. Nobody does for ever: no other task would come to its turn.
///
/// # Panics
/// It was done very often.
pub fn asks_again() -> bool {
    if ASK_AGAIN.get() {
        ASKED.set(ASKED.get() + 1);
        assert!(ASKED.get() < 10_000, "asked for ever");
    }
    ASK_AGAIN.get()
}

/// Removes the hold that is to be forgotten, if there is one.
pub(crate) fn forget(holds: &mut Holds) {
    if let Some(hold) = FORGET_HOLD.get() {
        holds.remove(hold);
    }
}
