//! A statement whose rows are those of several partitions, read or changed.

use crate::outcome::Given;
use gather::{Column, Recipe};
use shards::{Finish, FromQuery, Inner, Loaded, Rekeyed, Rename};
use std::collections::BTreeSet;
use std::fmt;

/// Texts that are asked of partitions, and what becomes of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Gather {
    /// Texts that are asked, partition by partition.
    pub parts: Vec<Part>,
    /// How the results become one; none for a change, which all make or none.
    pub recipe: Option<Recipe>,
    /// Nothing takes it back: one partition does it after another.
    pub in_turn: bool,
    /// Every partition of the table is among them.
    pub all: bool,
    /// The first table that it names, by its number in the map.
    pub table: u32,
    /// Each part is the same change of another copy of a reference table.
    pub copies: bool,
    /// The change is answered with rows: those of all parts.
    pub returns: bool,
    /// Tables that get another name in the map; the parts look whether that may be.
    pub renames: Vec<Rename>,
    /// Numbers that its rows have got from a sequence.
    pub numbered: Option<Given>,
    /// Rows that get another key, and move from some of its parts to another.
    pub rekeyed: Option<Box<Rekeyed>>,
    /// Its rows come from a client's file; the parts are where they go.
    pub loaded: Option<Box<Loaded>>,
    /// Its rows are read and then inserted where they belong.
    pub from_query: Option<Box<FromQuery>>,
    /// A change whose queries inside are read first; the parts are what these read.
    pub values: Option<Box<Values>>,
    /// One server finishes it; the parts are what is copied there.
    pub finishing: Option<Box<Finishing>>,
}

/// Answer of partitions to a SELECT whose rows could not be put together. Nothing of it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// Columns of these types, hidden ones included.
    Columns(Vec<Column>),
    /// Rows for which this is the reason.
    Beyond(String),
    /// The text of a change with the values of its queries in it.
    Values(Vec<u8>),
}

/// A change with queries inside, which are read before it is known where it goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The text in which they stand.
    pub text: Box<[u8]>,
    /// The queries, and how each is read.
    pub reads: Vec<(Inner, Gather)>,
}

impl Gather {
    /// Texts of a table's partitions, that are asked with nothing more.
    #[must_use]
    pub const fn of(parts: Vec<Part>, table: u32) -> Self {
        Self {
            parts,
            recipe: None,
            in_turn: false,
            all: false,
            table,
            copies: false,
            returns: false,
            renames: Vec::new(),
            numbered: None,
            rekeyed: None,
            loaded: None,
            from_query: None,
            values: None,
            finishing: None,
        }
    }

    /// Number of its partitions, or sets of them that share a table. One may have several parts.
    #[must_use]
    pub fn partitions(&self) -> usize {
        if !self.returns {
            return self.parts.len();
        }
        let places = self.parts.iter();
        let places = places.map(|part| (part.hostgroup, &part.partitions));
        places.collect::<BTreeSet<_>>().len()
    }

    /// Whether rows are changed.
    #[must_use]
    pub const fn is_change(&self) -> bool {
        self.recipe.is_none() || self.from_query.is_some()
    }
}

/// A statement that one server finishes, on copies of the rows that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finishing {
    /// The scratch server's hostgroup.
    pub hostgroup: u32,
    /// Why its rows cannot be put together as they arrive.
    pub why: Box<str>,
    /// Rows that are copied: a part for each source of each table, in their order.
    pub what: Finish,
    /// Text that is run there.
    pub text: Box<[u8]>,
}

/// A partition, or several that share a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The hostgroup that has it.
    pub writer: u32,
    /// Where it is read: there, or by its readers.
    pub hostgroup: u32,
    /// For people, as `table.partition`.
    pub partitions: Box<str>,
    /// Text that is sent.
    pub text: Box<[u8]>,
    /// Rows of an INSERT that it gets, by their places in the statement; none where nobody asks for them.
    pub rows: Box<[usize]>,
}

impl fmt::Display for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            let (partitions, hostgroup) = (&part.partitions, part.hostgroup);
            let text = String::from_utf8_lossy(&part.text);
            let reads = self.recipe.is_some() || self.values.is_some();
            let on = if reads { "from" } else { "at" };
            write!(f, "; {partitions} {on} hostgroup {hostgroup}: {text}")?;
        }
        if let Some(rekeyed) = &self.rekeyed {
            let condition = String::from_utf8_lossy(&rekeyed.condition);
            let to = &rekeyed.to;
            write!(
                f,
                "; rows with {condition} move to {} on hostgroup {}",
                to.table, to.hostgroup
            )?;
        }
        if let Some(Finishing {
            hostgroup, text, ..
        }) = self.finishing.as_deref()
        {
            let text = String::from_utf8_lossy(text);
            write!(f, "; finished on hostgroup {hostgroup}: {text}")?;
        }
        if self.from_query.is_some() {
            f.write_str("; each row is inserted where its key belongs")?;
        }
        match self.values {
            Some(_) => f.write_str("; their values are put in, and it goes where that belongs"),
            None => Ok(()),
        }
    }
}
