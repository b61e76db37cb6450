//! Whether a statement may go to a server that only reads: yes only if all of it is understood and
//! nothing speaks against it.
//!
//! A read that is taken for a write costs the writer a little; a write that is taken for a read is
//! lost or refused, and what asks for something that is elsewhere gets a wrong answer. So every
//! doubt is a no.

use crate::blank::Blank;
use crate::class::{Class, routines};
use crate::lexing::Lexing;
use crate::marks::{Leaves, Reads};
use crate::shift::Shift;
use crate::words::{Kind, Token, Words, unquote};
use std::borrow::Cow;
use std::fmt;

/// Objection of a statement's words to a server that only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// A beginning that is not one of something that only reads.
    Verb,
    /// CALL.
    Procedure,
    /// More than one statement.
    Several,
    /// An executable comment that not every server executes.
    Conditional,
    /// INTO.
    Into,
    /// FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.
    Lock,
    /// INSERT, UPDATE, DELETE or REPLACE inside it.
    Change,
    /// `sequence.NEXTVAL`.
    Sequence,
    /// Question about what one server knows: its role, position, locks, clients, files.
    Server,
}

/// Why [`reading`] says no, in words that follow "to the writer: ".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// The words themselves.
    Words(Against),
    /// Things that the statement may leave on its connection.
    Leaves(Leaves),
    /// Things that the statement asks its connection for.
    Reads(Reads),
    /// Call of this, of which nothing is known.
    Calls(String),
    /// Where its strings or words end depends on the session's mode or character set.
    Unclear,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(against) => f.write_str(match against {
                Against::Verb => "it does not begin as a read",
                Against::Procedure => "it calls a procedure",
                Against::Several => "it is more than one statement",
                Against::Conditional => {
                    "it has an executable comment that not every server executes"
                }
                Against::Into => "it has INTO",
                Against::Lock => "it locks what it reads",
                Against::Change => "it has INSERT, UPDATE, DELETE or REPLACE in it",
                Against::Sequence => "it may use a sequence",
                Against::Server => "it asks for what one server knows of itself",
            }),
            Self::Leaves(marks) => write!(
                f,
                "it may leave something on its connection ({})",
                joined(marks.names())
            ),
            Self::Reads(marks) => write!(
                f,
                "it asks its connection for something ({})",
                joined(marks.names())
            ),
            Self::Calls(name) => write!(f, "it calls {name}, which is not known to only read"),
            Self::Unclear => f.write_str("where its strings end depends on the session"),
        }
    }
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// A function or procedure that a statement calls, without quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routine<'a> {
    /// Its schema, if it is named.
    pub schema: Option<Cow<'a, [u8]>>,
    /// Its name.
    pub name: Cow<'a, [u8]>,
}

/// Every function that is not the server's own, and every procedure, that a statement calls. Where
/// blanks are hidden in it, one without a name besides.
#[must_use]
pub fn calls(sql: &[u8], lexing: Lexing) -> Vec<Routine<'_>> {
    let mut all = routines(lexing.words(sql));
    if matches!(lexing, Lexing::Unsure { .. }) && lexing.hides(sql) {
        all.extend(routines(Words::without_escapes(sql)));
    }
    if lexing.respaced(sql).is_some() {
        all.push(Routine {
            schema: None,
            name: Cow::Borrowed(b""),
        });
    }
    all
}

/// Whether the statement, of this class and text, may go to a server that only reads. `harmless`
/// tells which routines of users only read.
///
/// # Errors
/// What speaks against it.
pub fn reading(
    class: &Class<'_>,
    sql: &[u8],
    lexing: Lexing,
    harmless: impl Fn(&Routine<'_>) -> bool,
) -> Result<(), Unread> {
    let calls = class.against == Some(Against::Procedure);
    if let Some(against) = class.against.filter(|_| !calls) {
        return Err(Unread::Words(against));
    }
    let routine = Leaves::UNKNOWN_FUNCTION.with(if calls {
        Leaves::UNKNOWN_STATE
    } else {
        Leaves::NONE
    });
    let leaves = class.leaves.without(routine);
    if !leaves.is_empty() {
        return Err(Unread::Leaves(leaves));
    }
    // Variables of the session are the same on every connection that it gets.
    let reads = class
        .reads
        .without(Reads::SESSION_VARIABLE.with(Reads::XPATH));
    if !reads.is_empty() {
        return Err(Unread::Reads(reads));
    }
    if !lexing.is_sure_of(sql) {
        return Err(Unread::Unclear);
    }
    if calls || class.leaves.intersects(Leaves::UNKNOWN_FUNCTION) {
        let called = routines(lexing.words(sql));
        if called.is_empty() {
            return Err(Unread::Words(Against::Procedure));
        }
        if let Some(unknown) = called.iter().find(|routine| !harmless(routine)) {
            return Err(Unread::Calls(
                String::from_utf8_lossy(&unknown.name).into_owned(),
            ));
        }
    }
    Ok(())
}

/// Words behind SHOW of what is the same on every server, or is what a reader has instead.
const SHOWN: [&str; 21] = [
    "CHARACTER",
    "CHARSET",
    "COLLATION",
    "COLUMNS",
    "CREATE",
    "DATABASES",
    "ENGINES",
    "EVENTS",
    "FIELDS",
    "FUNCTION",
    "GRANTS",
    "INDEX",
    "INDEXES",
    "KEYS",
    "PACKAGE",
    "PLUGINS",
    "PRIVILEGES",
    "PROCEDURE",
    "SCHEMAS",
    "TABLE",
    "TABLES",
];

/// After SHOW.
pub(crate) fn of_show(mut words: Words<'_>) -> Option<Against> {
    let what = words.find(|token| {
        !token.is_any(&["EXTENDED", "FULL", "STORAGE", "GLOBAL", "SESSION", "LOCAL"])
    });
    let what = what.filter(|token| token.kind == Kind::Word);
    let variables = what.is_some_and(|token| token.is("VARIABLES"));
    let harmless = what.is_some_and(|token| {
        token.is_any(&SHOWN) || token.is_any(&["TRIGGERS", "WARNINGS", "ERRORS", "COUNT"])
    });
    match variables {
        true => shows_role(words).then_some(Against::Server),
        false => (!harmless).then_some(Against::Server),
    }
}

/// Names of variables in which a server and its replicas differ, and by which clients tell them
/// apart; with `_` at the end what begins so.
const ROLE: [&str; 6] = [
    "read_only",
    "super_read_only",
    "innodb_read_only",
    "last_gtid",
    "gtid_",
    "wsrep_",
];

/// Whether `SHOW VARIABLES`, of which this is the rest, may show one of [`ROLE`]: unless it names
/// those that it wants.
fn shows_role(words: Words<'_>) -> bool {
    let mut named = false;
    for token in words {
        match token.kind {
            Kind::String => {
                named = true;
                if may_be_role(&unquote(token.text)) {
                    return true;
                }
            }
            Kind::Word if token.is_any(&["LIKE", "WHERE", "VARIABLE_NAME", "IN", "OR"]) => {}
            Kind::Sign
                if [b'=', b'(', b')', b',', b';']
                    .iter()
                    .any(|sign| token.is_sign(*sign)) => {}
            _ => return true,
        }
    }
    !named
}

/// Whether a pattern of LIKE fits one of [`ROLE`], or may where nothing is sure.
fn may_be_role(pattern: &[u8]) -> bool {
    let sure = pattern
        .split(|byte| matches!(byte, b'%' | b'\\'))
        .next()
        .unwrap_or_default();
    let alike = |(a, b): (&u8, u8)| *a == b'_' || a.eq_ignore_ascii_case(&b);
    ROLE.iter().any(|role| {
        let longer = sure.len() > role.len() && !role.ends_with('_');
        let shorter = sure.len() < role.len() && sure.len() == pattern.len();
        !longer && !shorter && sure.iter().zip(role.bytes()).all(alike)
    })
}

/// Variables in which a server and its replicas differ, and by which clients tell them apart.
pub(crate) fn is_of_one_server(variable: &[u8]) -> bool {
    ROLE.iter().any(|role| {
        let begins = variable
            .get(..role.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(role.as_bytes()));
        begins && (role.ends_with('_') || variable.len() == role.len())
    })
}

/// Functions that ask for locks, positions or files of one server.
pub(crate) fn asks_one_server(function: Token<'_>) -> bool {
    function.is_any(&[
        "IS_FREE_LOCK",
        "IS_USED_LOCK",
        "LOAD_FILE",
        "MASTER_POS_WAIT",
        "MASTER_GTID_WAIT",
        "BINLOG_GTID_POS",
        "PS_THREAD_ID",
        "SOURCE_POS_WAIT",
        "WAIT_FOR_EXECUTED_GTID_SET",
        "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS",
        "WSREP_LAST_SEEN_GTID",
        "WSREP_LAST_WRITTEN_GTID",
        "WSREP_SYNC_WAIT_UPTO_GTID",
    ])
}

/// Body of a fuzz target: what may go to a reader leaves nothing, holds no second statement, and
/// means the same after blanks.
pub fn fuzz_reading(data: &[u8]) {
    let [how, sql @ ..] = data else { return };
    let lexing = [
        Lexing::Escapes,
        Lexing::NoEscapes,
        Lexing::Shifts(Shift::Gbk),
        Lexing::Unsure { shifts: false },
        Lexing::Blanks {
            blank: Blank::Latin,
            escapes: true,
        },
        Lexing::Blanks {
            blank: Blank::Any,
            escapes: false,
        },
    ][usize::from(how % 6)];
    let class = lexing.class(sql);
    let strict = reading(&class, sql, lexing, |_| false);
    let all = reading(&class, sql, lexing, |_| true);
    if strict.is_ok() {
        assert!(
            all.is_ok() && class.leaves.is_empty() && !class.multi && !class.ddl && !class.sets
        );
    }
    let longer = [sql, b"\n"].concat();
    let again = lexing.class(&longer);
    let whole = lexing.words(sql).all(|token| token.is_whole());
    if whole && strict.is_ok() {
        assert_eq!(reading(&again, &longer, lexing, |_| false), strict);
    }
}
