//! What goes wrong between us and the servers.

use bridge::{Blame, Failure, Retry};
use net::NetError;
use std::fmt;
use wire::errors;

/// Why a statement did not get its answer.
#[derive(Debug)]
pub enum BackendFailed {
    /// No connection could be had in time.
    Timeout {
        /// Where.
        hostgroup: u32,
        /// Milliseconds waited.
        waited_ms: u64,
        /// Words of the last attempt, for the log.
        last: Option<String>,
    },
    /// Too many wait there, and this is the last of them; or it has waited for as long as its
    /// hostgroup says.
    Shed {
        /// Where.
        hostgroup: u32,
        /// `queue_max`, if so many wait.
        queue_max: Option<u32>,
        /// Milliseconds waited.
        waited_ms: u64,
        /// Milliseconds after which another try may have better luck.
        retry_ms: u64,
    },
    /// Nobody serves in the hostgroup (any more), and the statement may go elsewhere.
    NobodyServes {
        /// Where.
        hostgroup: u32,
    },
    /// The server refused the login; nobody else would do better.
    Refused {
        /// Error number of the server.
        code: u16,
        /// Its SQLSTATE.
        state: [u8; 5],
        /// Its words.
        message: String,
    },
    /// The session's state could not be brought there: the server's error.
    Sync {
        /// Error number of the server.
        code: u16,
        /// Its SQLSTATE.
        state: [u8; 5],
        /// Its words.
        message: String,
    },
    /// The server, which was the writer of its topology, takes no writes any more. Nothing was done.
    ReadOnly {
        /// Error number of the server.
        code: u16,
        /// Its words.
        message: String,
    },
    /// The transaction was the victim of a deadlock, and has been rolled back.
    Deadlock {
        /// Words of the server.
        message: String,
    },
    /// A server knows the user's password, and nobody else: no connection can be opened, and none is
    /// idle that an earlier session has left.
    Unproven,
    /// There is no way to bring the session's state there.
    Unfit,
    /// There is none on the connection that the session keeps: it would take away what it is kept
    /// for.
    Kept,
    /// The server reads the statement's strings otherwise than they were read here. Nothing was
    /// sent.
    ReadsOtherwise,
    /// The connection broke before a byte of the statement was sent.
    BrokeBefore(NetError),
    /// The connection broke after the statement was sent.
    BrokeAfter(NetError),
    /// An operator took the server away, OFFLINE_HARD or removed, while the statement ran or the
    /// session had something there.
    CutOff,
    /// The statement ran longer than it may.
    TooSlow {
        /// Milliseconds allowed.
        limit_ms: u64,
    },
}

impl BackendFailed {
    /// Whether the server wants a new password of this user before anything else (error 1820), on
    /// this connection.
    #[must_use]
    pub fn is_sandbox(&self) -> bool {
        matches!(self, Self::Sync { code, .. } if *code == errors::MUST_CHANGE_PASSWORD.number)
    }

    /// Whether the server has as many prepared statements as it may, and how many those are, as far
    /// as it says so.
    #[must_use]
    pub fn crowd(&self) -> Option<Option<u32>> {
        match self {
            Self::Sync { code, message, .. } if *code == errors::TOO_MANY_STATEMENTS.number => {
                // In whatever language: "… (current value: 16382)".
                let numbers = message.split(|c: char| !c.is_ascii_digit());
                Some(numbers.filter_map(|number| number.parse().ok()).next_back())
            }
            _ => None,
        }
    }
}

impl fmt::Display for BackendFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { hostgroup, waited_ms, .. } => {
                write!(f, "Max connect timeout reached while reaching hostgroup {hostgroup} after {waited_ms}ms")
            }
            Self::Shed { hostgroup, queue_max: Some(max), retry_ms, .. } => write!(
                f,
                "Too many statements wait for hostgroup {hostgroup}: {max} (queue_max), and this one is the last of them; \
                 try again in about {retry_ms}ms"
            ),
            Self::Shed { hostgroup, queue_max: None, waited_ms, retry_ms } => write!(
                f,
                "Too many statements wait for hostgroup {hostgroup}: this one has waited {waited_ms}ms, as long as it may (queue_ms); \
                 try again in about {retry_ms}ms"
            ),
            Self::NobodyServes { hostgroup } => {
                write!(f, "No server of hostgroup {hostgroup} takes work")
            }
            Self::Refused { message, .. } | Self::Sync { message, .. } | Self::ReadOnly { message, .. } | Self::Deadlock { message } => {
                f.write_str(message)
            }
            Self::BrokeBefore(_) | Self::BrokeAfter(_) => f.write_str("Lost connection to the server during query"),
            Self::Unproven => f.write_str(
                "Only a server knows this user's password: no connection of an earlier session is idle there, and none can be opened",
            ),
            Self::Unfit => f.write_str("The state of the session cannot be brought onto the connection to the server"),
            Self::Kept => f.write_str(
                "The state of the session cannot be brought onto the connection to the server that it keeps, for a transaction, a lock, a \
                 temporary table or the like: the statement can follow when that has ended",
            ),
            Self::ReadsOtherwise => f.write_str(
                "The server reads quotes or backslashes of this statement otherwise than the proxy knew; say it again",
            ),
            Self::CutOff => f.write_str(
                "The server was taken out of service: by the proxy's operator, or because it does not answer or has another role now",
            ),
            Self::TooSlow { limit_ms } => {
                write!(f, "Query execution was interrupted, query_timeout exceeded ({limit_ms}ms)")
            }
        }
    }
}

impl std::error::Error for BackendFailed {}

impl Failure for BackendFailed {
    fn blame(&self) -> Blame {
        match self {
            Self::Sync { .. } | Self::Kept | Self::Deadlock { .. } => Blame::Client,
            Self::Refused { .. } | Self::CutOff => Blame::Operator,
            _ => Blame::Backend,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::BrokeBefore(_) | Self::Unfit => Retry::Freely,
            Self::BrokeAfter(_) | Self::CutOff => Retry::IfHarmless,
            _ => Retry::Never,
        }
    }

    fn to_client(&self) -> (u16, &'static str, String) {
        let words = self.to_string();
        match self {
            Self::Timeout { .. } | Self::NobodyServes { .. } | Self::Shed { .. } => {
                (9001, "HY000", words)
            }
            Self::Refused { code, .. } | Self::Sync { code, .. } | Self::ReadOnly { code, .. } => {
                (*code, errors::state_of(*code), words)
            }
            Self::BrokeBefore(_) | Self::BrokeAfter(_) | Self::Unfit => (2013, "HY000", words),
            Self::Deadlock { .. } => (errors::DEADLOCK.number, errors::DEADLOCK.state, words),
            Self::Kept | Self::Unproven => (1235, "42000", words),
            Self::ReadsOtherwise => (1105, "HY000", words),
            Self::CutOff => (1053, "08S01", words),
            Self::TooSlow { .. } => (1907, "70100", words),
        }
    }
}
