//! The proxy and its servers, as a move needs them; and trouble with either.

use crate::record::Record;
use line::{Failed, Line, Who};
use rt::Rt;
use std::time::Duration;

/// A server, and as whom it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its host, or the path of its socket.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// As whom.
    pub who: Who,
}

/// How fast a move goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Rows a second that are copied; 0 for no limit.
    pub rows_per_second: u64,
    /// Rows that are copied or compared at once.
    pub rows_at_once: u64,
    /// Time for which statements are held, at most.
    pub cut_over: Duration,
}

/// Tells whether a row is of the part that goes, by what its column has there.
pub type Part = Box<dyn Fn(Option<&[u8]>) -> Result<bool, String>>;

/// The proxy, as a move needs it.
pub trait World {
    /// The server that gets the writes of a hostgroup.
    ///
    /// # Errors
    /// There is none.
    fn writer(&self, hostgroup: u32) -> impl Future<Output = Result<Place, String>>;

    /// How fast it goes from now on.
    fn pace(&self) -> Pace;

    /// Keeps what has become of a move. When it returns, it is there for good.
    ///
    /// # Errors
    /// The record of the move cannot be kept.
    fn keep(&self, record: &Record) -> Result<(), String>;

    /// How long changes of the source have been waiting: for whoever looks.
    fn lags(&self, id: u64, lag: Duration);

    /// Whether an operator has cancelled it.
    fn is_cancelled(&self, id: u64) -> bool;

    /// Whether another process goes on with it.
    fn is_stopped(&self) -> bool;

    /// Has statements for the partition wait, those that do not go on with a transaction; answers when
    /// all that began before are over.
    ///
    /// # Errors
    /// They are not over in time. They may be held all the same, until [`World::release`].
    fn hold(&self, record: &Record, within: Duration) -> impl Future<Output = Result<(), String>>;

    /// Lets them go on.
    fn release(&self, record: &Record) -> impl Future<Output = ()>;

    /// Returns what tells which rows go, where only a part does.
    ///
    /// # Errors
    /// The map does not tell it as it did when the move began.
    fn part(&self, record: &Record) -> Result<Part, String>;

    /// Changes the map: the partition is at the target from now on, also after a start.
    ///
    /// # Errors
    /// The map cannot be changed, and is as it was.
    fn put_in_force(&self, record: &Record) -> impl Future<Output = Result<(), String>>;

    /// Seconds since 1970.
    fn now_s(&self) -> u64;

    /// Tells an operator.
    fn note(&self, words: &str);
}

/// Why a move does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Trouble that may be over soon.
    Again(String),
    /// Trouble that makes what was copied useless: it is copied anew.
    Anew(String),
    /// Trouble that makes the move impossible.
    Over(String),
    /// An operator has said so.
    Cancelled,
    /// Another process goes on with it.
    Stopped,
    /// There are rows of the part that goes, where none was known.
    HasRows,
    /// A row of one partition meets one of the other: it is read again, since a row that gets another key may be read in between.
    Meets(String),
}

impl Trouble {
    pub(crate) fn words(self) -> String {
        match self {
            Self::Again(words) | Self::Anew(words) | Self::Over(words) | Self::Meets(words) => {
                words
            }
            Self::Cancelled => "it is cancelled".to_owned(),
            Self::Stopped => "another process goes on with it".to_owned(),
            Self::HasRows => "it has rows".to_owned(),
        }
    }
}

impl From<Failed> for Trouble {
    fn from(failed: Failed) -> Self {
        Self::Again(failed.to_string())
    }
}

pub(crate) fn keep<W: World>(world: &W, record: &mut Record) {
    record.changed_at = world.now_s();
    if let Err(words) = world.keep(record) {
        world.note(&format!("{} is not kept: {words}", record.shown()));
    }
}

/// A connection on which texts come as they are, and times in UTC.
pub(crate) async fn open(rt: &Rt, place: &Place) -> Result<Line, Failed> {
    let mut line = Line::open(rt, &place.host, place.port, &place.who).await?;
    for sql in [
        "SET NAMES utf8mb4",
        "SET character_set_results = NULL, time_zone = '+00:00', foreign_key_checks = 0, \
         sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    ] {
        line.ask(sql).await?;
    }
    Ok(line)
}
