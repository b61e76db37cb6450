//! Where a statement goes, as a value.

use crate::cuts::{Cut, cut};
use crate::from_query::FromQuery;
use crate::loaded::Loaded;
use crate::lookups::Wanted;
use crate::rekeyed::Rekeyed;
use crate::renamed::Rename;
use crate::rows::PartitionRow;
use std::fmt;

/// Where a statement goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spread {
    /// The statement names no table of the map.
    Plain,
    /// To one partition.
    Point(Leg),
    /// To several, and not to all.
    Some(Vec<Leg>),
    /// To every one.
    All(Vec<Leg>),
    /// Nowhere, and why.
    Refused(String),
}

/// Leg of a statement to one home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// The partitions, as `table.partition`.
    pub partitions: Vec<String>,
    /// Changes in the text.
    pub cuts: Vec<Cut>,
    /// Rows of an INSERT that it gets, by their places in the statement.
    pub rows: Vec<usize>,
}

impl Leg {
    /// The text that is sent.
    #[must_use]
    pub fn text(&self, original: &[u8]) -> Vec<u8> {
        cut(original, &self.cuts)
    }
}

/// Where a statement goes, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// Where.
    pub spread: Spread,
    /// Sentences for EXPLAIN ROUTE.
    pub reasons: Vec<String>,
    /// The partition that must be made first.
    pub makes: Option<PartitionRow>,
    /// Number of a table whose partitions are made by themselves, where it matters that none is missing.
    pub looks: Option<u32>,
    /// The first table that it names, by its number.
    pub table: u32,
    /// Names of the table that the answer tells of, on its server and for applications.
    pub told: Option<[String; 2]>,
    /// Whether the statement changes rows.
    pub writes: bool,
    /// Whether a change is answered with rows.
    pub returns: bool,
    /// Nothing takes it back: one partition does it after another.
    pub in_turn: bool,
    /// Each leg is the same change of another copy of a reference table.
    pub copies: bool,
    /// Tables that get another name: each leg looks whether that may be.
    pub renames: Vec<Rename>,
    /// Rows that get another key, and move.
    pub rekeyed: Option<Rekeyed>,
    /// How its rows are read and inserted, where no partition can do that by itself: then it is not
    /// refused.
    pub from_query: Option<FromQuery>,
    /// How rows of a file are told apart: then it is not refused.
    pub loaded: Option<Loaded>,
    /// Look-ups that must be asked, or told, first. Until then it is not known where the statement goes.
    pub lookups: Option<Wanted>,
    /// Whether look-ups would say where it goes, and nobody asks them.
    pub looks_up: bool,
    /// Whether it may ask which tables there are.
    pub asks_catalogue: bool,
    /// How many `?` it has.
    pub parameters: usize,
}

impl Routed {
    pub(crate) fn of(spread: Spread) -> Self {
        Self {
            spread,
            reasons: Vec::new(),
            makes: None,
            looks: None,
            table: 0,
            told: None,
            writes: false,
            returns: false,
            in_turn: false,
            copies: false,
            renames: Vec::new(),
            rekeyed: None,
            from_query: None,
            loaded: None,
            lookups: None,
            looks_up: false,
            asks_catalogue: false,
            parameters: 0,
        }
    }

    pub(crate) fn refused(words: impl Into<String>) -> Self {
        Self::of(Spread::Refused(words.into()))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let legs = match self {
            Self::Plain => return f.write_str("plain: it names no sharded table"),
            Self::Refused(words) => return write!(f, "refused: {words}"),
            Self::Point(leg) => {
                f.write_str("point")?;
                std::slice::from_ref(leg)
            }
            Self::Some(legs) => {
                write!(f, "some ({})", legs.len())?;
                legs
            }
            Self::All(legs) => {
                write!(f, "all ({})", legs.len())?;
                legs
            }
        };
        for (number, leg) in legs.iter().enumerate() {
            let sign = if number == 0 { ": " } else { "; " };
            write!(
                f,
                "{sign}{} on hostgroup {}",
                leg.partitions.join(" and "),
                leg.hostgroup
            )?;
        }
        Ok(())
    }
}
