//! The grammar of SET: what a client wants changed, so that it can be done again on another connection.

/// The statement is not a SET, or one whose meaning is not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUnderstood;

/// Whose value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of this session (SESSION, LOCAL, or nothing).
    Session,
    /// Of the server.
    Global,
    /// Of the server, and kept over restarts (PERSIST).
    Persist,
    /// Kept for the next start only (PERSIST_ONLY).
    PersistOnly,
    /// A user variable, `@name`.
    User,
    /// Of the next transaction only.
    NextTransaction,
}

/// The right-hand side, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// DEFAULT.
    Default,
    /// A number, a string or a keyword: means the same on every connection.
    Literal(&'a [u8]),
    /// Anything else: what it means depends on the connection and the moment.
    Expression(&'a [u8]),
}

/// `name = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// Whose.
    pub scope: Scope,
    /// In lower case, without `@`, `@@` and quotes; with its prefix if it is `cache.variable`.
    pub name: String,
    /// To what.
    pub value: Value<'a>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own names")]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// As the variable `transaction_isolation` spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ-UNCOMMITTED",
            Self::ReadCommitted => "READ-COMMITTED",
            Self::RepeatableRead => "REPEATABLE-READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// What a transaction may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// READ ONLY.
    ReadOnly,
    /// READ WRITE.
    ReadWrite,
}

/// One part of a SET statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting<'a> {
    /// `name = value` in all its forms.
    Variable(Assignment<'a>),
    /// `NAMES charset [COLLATE collation]`; `None` for DEFAULT.
    Names {
        /// Lower case, without quotes.
        charset: Option<String>,
        /// Lower case, without quotes.
        collate: Option<String>,
    },
    /// `CHARACTER SET charset`; `None` for DEFAULT.
    CharacterSet(Option<String>),
    /// `[GLOBAL | SESSION] TRANSACTION characteristics`.
    Transaction {
        /// [`Scope::NextTransaction`] when none is written.
        scope: Scope,
        /// ISOLATION LEVEL, if given.
        isolation: Option<Isolation>,
        /// READ ONLY or READ WRITE, if given.
        access: Option<Access>,
    },
    /// `PASSWORD …`: changes the server, not the session.
    Password,
    /// `ROLE …`: changes what this session may do. The text after ROLE.
    Role(&'a [u8]),
    /// `DEFAULT ROLE … TO …`: changes the server, not the session.
    DefaultRole,
    /// `RESOURCE GROUP name`, for this session if no FOR follows. The text after GROUP.
    ResourceGroup(&'a [u8]),
    /// MariaDB's `STATEMENT assignments FOR statement`: they hold during that statement only.
    Statement {
        /// What is set meanwhile.
        settings: Vec<Assignment<'a>>,
        /// The statement, which has a class of its own.
        statement: &'a [u8],
    },
}

/// Reads a SET statement. One `;` may follow.
///
/// # Errors
///
/// If it is not a SET statement, or not one whose meaning is certain.
pub fn parse(sql: &[u8]) -> Result<Vec<Setting<'_>>, NotUnderstood> {
    let _ = sql;
    Err(NotUnderstood)
}
