//! The record of a move, which survives the process.

use serde::{Deserialize, Serialize};

/// How far a move is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Another partition of the table is added before.
    Waiting,
    /// Rows go to the target.
    Copying,
    /// Changes that were made meanwhile follow the rows.
    CatchingUp,
    /// Both sides are compared.
    Verifying,
    /// The partition is about to be elsewhere.
    CuttingOver,
    /// The partition is elsewhere.
    Done,
    /// An operator has ended it, and nothing is left at the target.
    Cancelled,
    /// The move could not be done, and nothing is left at the target.
    Failed,
}

impl State {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Copying => "copying",
            Self::CatchingUp => "catching_up",
            Self::Verifying => "verifying",
            Self::CuttingOver => "cutting_over",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    /// Whether nothing more comes of it.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }
}

/// A partition of the map whose rows are parted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Of {
    /// Its name.
    pub partition: String,
    /// Its buckets, as the operator wrote them.
    pub value: String,
    /// The name of its table, as the operator wrote it; empty for the usual one.
    pub named: String,
    /// The buckets that it keeps.
    pub left: String,
}

/// A part of a partition, which becomes a partition of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Its buckets, as the operator wrote them.
    pub value: String,
    /// The name that its table shall have, as the operator wrote it; empty for the usual one.
    pub named: String,
    /// Its table.
    pub table: String,
    /// The schema of these tables in the map; empty where statements say it.
    pub schema: String,
    /// The table that gets the rows that stay.
    pub rest: String,
    /// The column by which rows are told apart.
    pub column: String,
    /// How the map makes buckets of it: as long as that is so, they are told apart rightly.
    pub by: String,
    /// The partition that has its rows; `None` for the default one.
    pub of: Option<Of>,
    /// No row of it was found so far: then the others stay in their table, which gets the name of
    /// `rest` at the cut.
    pub bare: bool,
}

/// A partition whose rows get those of another one beside them, in a new table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// Its name; empty for the default one.
    pub into: String,
    /// Its buckets so far, as the operator wrote them.
    pub value: String,
    /// Its buckets afterwards.
    pub whole: String,
    /// The name of its table, as the operator wrote it; empty for the usual one.
    pub named: String,
    /// The table that gets all rows, beside its own.
    pub table: String,
    /// Schema of its table.
    pub database: String,
    /// Its table.
    pub physical: String,
    /// As in the record, of its own rows.
    pub definition: String,
    /// As in the record.
    pub position: Option<String>,
    /// As in the record.
    pub copied_to: Option<Vec<String>>,
    /// As in the record.
    pub copied: bool,
    /// As in the record.
    pub fence: Option<String>,
}

/// Place from which rows come: a table, and how far its rows are.
pub(crate) struct Origin<'r> {
    pub(crate) hostgroup: u32,
    pub(crate) database: &'r str,
    pub(crate) physical: &'r str,
    pub(crate) definition: &'r mut String,
    pub(crate) position: &'r mut Option<String>,
    pub(crate) copied_to: &'r mut Option<Vec<String>>,
    pub(crate) copied: &'r mut bool,
    pub(crate) fence: &'r mut Option<String>,
}

/// A move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub id: u64,
    /// The table's schema in the map, or empty.
    pub schema: String,
    /// The table, as applications know it.
    pub table: String,
    /// The partition.
    pub partition: String,
    /// Hostgroup that has it.
    pub from: u32,
    /// Hostgroup that gets it.
    pub to: u32,
    /// Schema of its table on both servers.
    pub database: String,
    /// Its table there.
    pub physical: String,
    /// Rows of a part of the partition go: those that stay go to another table beside it.
    /// `None`: all rows go.
    #[serde(default)]
    pub split: Option<Split>,
    /// All rows go, and come together with those of another partition.
    #[serde(default)]
    pub merge: Option<Merge>,
    /// How far it is.
    pub state: State,
    /// State that the move ends in, once nothing is left of it.
    pub ending: Option<State>,
    /// The table at the target is ours, or about to be made.
    pub made: bool,
    /// The definition of the table when it began.
    pub definition: String,
    /// All changes after this place of the source's log may be missing at the target.
    pub position: Option<String>,
    /// Rows up to this key were copied: values as SQL has them.
    pub copied_to: Option<Vec<String>>,
    /// All were.
    pub copied: bool,
    /// How often rows were copied from the first one on.
    pub copies: u64,
    /// The name that the old table gets, once it is about to.
    pub fence: Option<String>,
    /// Rows that were copied.
    pub rows_copied: u64,
    /// Rows that were read again since somebody had changed them.
    pub rows_applied: u64,
    /// How often it could not be cut over in time.
    pub tries: u64,
    /// Words of what went wrong last; empty once it goes on.
    pub last_error: String,
    /// Unix seconds of its beginning.
    pub started_at: u64,
    /// Unix seconds of what is told here.
    pub changed_at: u64,
}

/// Servers allow names of 64 characters; so many are the table's in a new name of it.
const NAME_KEPT: usize = 44;

impl Record {
    /// A move that has not begun. `at`: unix seconds.
    #[must_use]
    pub fn new(id: u64, (schema, table, partition): (&str, &str, &str), at: u64) -> Self {
        Self {
            id,
            schema: schema.into(),
            table: table.into(),
            partition: partition.into(),
            from: 0,
            to: 0,
            database: String::new(),
            physical: String::new(),
            split: None,
            merge: None,
            state: State::Copying,
            ending: None,
            made: false,
            definition: String::new(),
            position: None,
            copied_to: None,
            copied: false,
            copies: 0,
            fence: None,
            rows_copied: 0,
            rows_applied: 0,
            tries: 0,
            last_error: String::new(),
            started_at: at,
            changed_at: at,
        }
    }

    /// The table as the map shows it.
    #[must_use]
    pub fn table_shown(&self) -> String {
        match self.schema.as_str() {
            "" => self.table.clone(),
            schema => format!("{schema}.{}", self.table),
        }
    }

    /// For people.
    #[must_use]
    pub fn shown(&self) -> String {
        let out_of = match (&self.split, &self.merge) {
            (Some(_), _) => format!(" out of {}", self.physical),
            (None, Some(merge)) => format!(" into {}", merge.physical),
            (None, None) => String::new(),
        };
        format!(
            "move {} of {}.{}{out_of} from hostgroup {} to {}",
            self.id,
            self.table_shown(),
            self.partition,
            self.from,
            self.to
        )
    }

    /// Whether the rows that stay, stay in their table.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.split.as_ref().is_some_and(|split| split.bare)
    }

    /// The name of an origin's old table after the cut.
    pub(crate) fn old_name(&self, at: usize) -> String {
        if let Some(split) = self.split.as_ref().filter(|split| split.bare) {
            return split.rest.clone();
        }
        let merge = self.merge.as_ref().filter(|_| at > 0);
        let physical = merge.map_or(&self.physical, |merge| &merge.physical);
        let kept: String = physical.chars().take(NAME_KEPT).collect();
        format!("{kept}_old_{}", self.started_at)
    }

    /// How many tables rows come from.
    pub(crate) fn origins(&self) -> usize {
        1 + usize::from(self.merge.is_some())
    }

    /// One of them: that of the partition first.
    pub(crate) fn origin(&mut self, at: usize) -> Origin<'_> {
        match &mut self.merge {
            Some(merge) if at > 0 => Origin {
                hostgroup: self.to,
                database: &merge.database,
                physical: &merge.physical,
                definition: &mut merge.definition,
                position: &mut merge.position,
                copied_to: &mut merge.copied_to,
                copied: &mut merge.copied,
                fence: &mut merge.fence,
            },
            _ => Origin {
                hostgroup: self.from,
                database: &self.database,
                physical: &self.physical,
                definition: &mut self.definition,
                position: &mut self.position,
                copied_to: &mut self.copied_to,
                copied: &mut self.copied,
                fence: &mut self.fence,
            },
        }
    }

    /// Whether an old table has, or may have, its new name.
    pub(crate) fn is_fenced(&self) -> bool {
        let merge = self.merge.as_ref();
        self.fence.is_some() || merge.is_some_and(|merge| merge.fence.is_some())
    }

    /// Old tables have the names again that they had.
    pub(crate) fn is_open(&mut self) {
        for at in 0..self.origins() {
            *self.origin(at).fence = None;
        }
    }

    /// Tables that are made for rows: hostgroup, schema and name.
    pub(crate) fn outlets(&self) -> Vec<(u32, &str, &str)> {
        match (&self.split, &self.merge) {
            (None, None) => vec![(self.to, &self.database, &self.physical)],
            (None, Some(merge)) => vec![(self.to, &merge.database, &merge.table)],
            (Some(split), _) => {
                let mut both = vec![
                    (self.to, &*self.database, &*split.table),
                    (self.from, &*self.database, &*split.rest),
                ];
                // Of a bare one, the rest is in the old table, which nobody has made.
                both.truncate(if split.bare { 1 } else { 2 });
                both
            }
        }
    }

    /// Nothing of what was copied counts.
    pub(crate) fn begin_anew(&mut self) {
        self.state = State::Copying;
        for at in 0..self.origins() {
            let origin = self.origin(at);
            (*origin.position, *origin.copied_to, *origin.copied) = (None, None, false);
        }
        self.rows_copied = 0;
        self.copies += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_name_is_one_that_servers_allow() {
        let mut record = Record::new(7, ("", "t", "p"), 1_800_000_000);
        record.physical = "ü".repeat(64);
        let name = record.old_name(0);
        assert!(name.ends_with("_old_1800000000"), "{name}");
        assert!(name.chars().count() <= 64, "{name}");
    }
}
