//! Words of a change that several partitions make, or none of them: branches of XA, and the table in
//! which the outcome is written before the first of them commits.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/xa-statements.html>

use std::fmt;

/// Format of our branches: by it they are told from those of others.
const FORMAT: u32 = 0x4D4C_5243;
/// Beginning of our transactions' names.
const OURS: &str = "millrace-";
/// Bytes that a name may have: the servers'.
const NAME_LEN_MAX: usize = 64;

/// A branch: what a transaction has at one hostgroup.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Branch {
    /// Name of the transaction, the same at all partitions.
    pub transaction: String,
    /// The hostgroup whose partitions it changes.
    pub hostgroup: u32,
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}','{}',{FORMAT}", self.transaction, self.hostgroup)
    }
}

/// The name of a transaction, from what nobody else has.
#[must_use]
pub fn transaction(moment_us: u64, random: [u64; 2]) -> String {
    format!("{OURS}{moment_us:x}-{:016x}{:016x}", random[0], random[1])
}

/// Whether a name is one that we give. Nothing in it has to be quoted.
fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
        && name.len() <= NAME_LEN_MAX
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Branch {
    /// A row of XA RECOVER: format, lengths of name and branch, and both. `None` for those of others.
    #[must_use]
    pub fn recovered(row: &[Option<Vec<u8>>]) -> Option<Self> {
        let number = |at: usize| -> Option<usize> {
            let cell = row.get(at)?.as_deref()?;
            std::str::from_utf8(cell).ok()?.trim().parse().ok()
        };
        if number(0)? != FORMAT as usize {
            return None;
        }
        let (name_len, branch_len) = (number(1)?, number(2)?);
        let data = std::str::from_utf8(row.get(3)?.as_deref()?).ok()?;
        let (name, branch) = data.split_at_checked(name_len)?;
        let hostgroup = branch.get(..branch_len)?.parse().ok()?;
        is_ours(name).then(|| Self {
            transaction: name.to_owned(),
            hostgroup,
        })
    }
}

/// Outcome of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All its branches are committed.
    Commit,
    /// All are rolled back.
    Abort,
}

impl Outcome {
    /// The word in the table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Abort => "abort",
        }
    }

    /// Of a word in the table.
    #[must_use]
    pub fn of(word: &[u8]) -> Option<Self> {
        [Self::Commit, Self::Abort]
            .into_iter()
            .find(|outcome| word == outcome.word().as_bytes())
    }

    /// The statement that carries it out for a branch.
    #[must_use]
    pub fn of_branch(self, branch: &Branch) -> String {
        match self {
            Self::Commit => format!("XA COMMIT {branch}"),
            Self::Abort => format!("XA ROLLBACK {branch}"),
        }
    }
}

/// The name of a table of the proxy's own, `schema.table`, as statements say it; `None` for what is
/// none.
pub(crate) fn quoted_table(table: &str) -> Option<String> {
    let is_name = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-".contains(&byte);
        !name.is_empty() && name.len() <= NAME_LEN_MAX && name.bytes().all(is_plain)
    };
    let (schema, name) = table.split_once('.')?;
    (is_name(schema) && is_name(name)).then(|| format!("`{schema}`.`{name}`"))
}

/// The table of outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decisions {
    /// Hostgroup whose writer has it.
    pub hostgroup: u32,
    /// As statements say it.
    table: String,
}

impl Decisions {
    /// Of `schema.table`; `None` for what is none.
    #[must_use]
    pub fn of(hostgroup: u32, table: &str) -> Option<Self> {
        let table = quoted_table(table)?;
        Some(Self { hostgroup, table })
    }

    /// Writes an outcome down, unless there is one: the first counts.
    #[must_use]
    pub fn record(&self, transaction: &str, outcome: Outcome) -> String {
        let (table, word) = (&self.table, outcome.word());
        format!("INSERT INTO {table} (transaction, outcome) VALUES ('{transaction}', '{word}')")
    }

    /// Asks for an outcome.
    #[must_use]
    pub fn question(&self, transaction: &str) -> String {
        let table = &self.table;
        format!("SELECT outcome FROM {table} WHERE transaction = '{transaction}'")
    }

    /// Forgets an outcome that was carried out everywhere.
    #[must_use]
    pub fn forget(&self, transaction: &str) -> String {
        format!(
            "DELETE FROM {} WHERE transaction = '{transaction}'",
            self.table
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 4]) -> Vec<Option<Vec<u8>>> {
        cells.map(|cell| Some(cell.as_bytes().to_vec())).to_vec()
    }

    #[test]
    fn branches_are_found_again_and_those_of_others_are_left_alone() {
        let branch = Branch {
            transaction: transaction(u64::MAX, [u64::MAX, 7]),
            hostgroup: 12,
        };
        assert!(branch.transaction.len() <= NAME_LEN_MAX);
        let name_len = branch.transaction.len().to_string();
        let data = format!("{}12", branch.transaction);
        let format = FORMAT.to_string();
        let found = row([&format, &name_len, "2", &data]);
        assert_eq!(Branch::recovered(&found), Some(branch));
        for other in [
            ["1", &name_len, "2", &data],
            [&format, "999", "2", &data],
            [&format, &name_len, "3", &data],
            [&format, "5", "1", "other2"],
            [&format, "12", "1", "millrace-'--2"],
        ] {
            assert_eq!(Branch::recovered(&row(other)), None, "{other:?}");
        }
        assert_eq!(Branch::recovered(&[]), None);
    }

    #[test]
    fn a_table_of_decisions_has_a_schema_and_plain_names() {
        let decisions = Decisions::of(1, "millrace.decisions").unwrap();
        assert_eq!(
            decisions.record("millrace-1", Outcome::Abort),
            "INSERT INTO `millrace`.`decisions` (transaction, outcome) VALUES ('millrace-1', 'abort')"
        );
        for table in ["", "decisions", "a.b.c", "a.`b", "."] {
            assert_eq!(Decisions::of(1, table), None, "{table}");
        }
    }
}
