//! What the operator is told when rows cannot be honoured: which table, row and column, and why.

use std::fmt;

/// One reason why a LOAD is refused, or (as a notice) why a row that was accepted has less effect
/// than it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the table.
    pub table: &'static str,
    /// Its primary key as text, such as `rule_id 7`.
    pub row: String,
    /// Name of the column.
    pub column: &'static str,
    /// Predicate of a sentence that says what is wrong and begins with the column: `must be from 0
    /// to 1000; '-1' is not`.
    pub words: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.table.is_empty() && self.table != "global_variables" {
            write!(f, "{}", self.table)?;
            if !self.row.is_empty() {
                write!(f, " ({})", self.row)?;
            }
            write!(f, ": ")?;
        }
        if !self.column.is_empty() {
            write!(f, "{} ", self.column)?;
        }
        write!(f, "{}", self.words)
    }
}

impl std::error::Error for Refusal {}

/// This many are spelled out; a table of a million bad rows must not become a message of a million
/// lines.
const SPELLED_OUT_MAX: usize = 200;

/// Collects refusals of one table.
#[derive(Debug)]
pub(crate) struct Refusals {
    table: &'static str,
    list: Vec<Refusal>,
    more: usize,
}

impl Refusals {
    pub(crate) const fn of(table: &'static str) -> Self {
        Self {
            table,
            list: Vec::new(),
            more: 0,
        }
    }

    /// Name of the table.
    pub(crate) const fn table(&self) -> &'static str {
        self.table
    }

    /// `row` and `words` are made only if they are wanted.
    pub(crate) fn add(
        &mut self,
        row: impl FnOnce() -> String,
        column: &'static str,
        words: impl Into<String>,
    ) {
        if self.list.len() < SPELLED_OUT_MAX {
            self.list.push(Refusal {
                table: self.table,
                row: row(),
                column,
                words: words.into(),
            });
        } else {
            self.more += 1;
        }
    }

    /// The value as `T` if it is from `min` to `max`; otherwise a refusal, and `min`.
    pub(crate) fn number<T>(
        &mut self,
        row: impl FnOnce() -> String,
        column: &'static str,
        value: i64,
        (min, max): (i64, i64),
    ) -> T
    where
        T: TryFrom<i64> + Default,
    {
        if (min..=max).contains(&value)
            && let Ok(value) = T::try_from(value)
        {
            return value;
        }
        self.add(
            row,
            column,
            format!("must be from {min} to {max}; '{value}' is not"),
        );
        T::try_from(min).unwrap_or_default()
    }

    /// As [`Refusals::number`], where NULL stays NULL.
    pub(crate) fn number_or_null<T>(
        &mut self,
        row: impl FnOnce() -> String,
        column: &'static str,
        value: Option<i64>,
        range: (i64, i64),
    ) -> Option<T>
    where
        T: TryFrom<i64> + Default,
    {
        value.map(|value| self.number(row, column, value, range))
    }

    /// 0 or 1.
    pub(crate) fn flag(
        &mut self,
        row: impl FnOnce() -> String,
        column: &'static str,
        value: i64,
    ) -> bool {
        self.number::<u8>(row, column, value, (0, 1)) == 1
    }

    pub(crate) fn or<T>(self, value: T) -> Result<T, Vec<Refusal>> {
        let list = self.into_list();
        if list.is_empty() {
            Ok(value)
        } else {
            Err(list)
        }
    }

    pub(crate) fn into_list(mut self) -> Vec<Refusal> {
        if self.more > 0 {
            let words = format!("and {} more rows or columns like these", self.more);
            self.list.push(Refusal {
                table: self.table,
                row: String::new(),
                column: "",
                words,
            });
        }
        self.list
    }
}

/// Notices of one table: each subject once, with the first row it was seen in.
#[derive(Debug)]
pub(crate) struct Notices {
    table: &'static str,
    list: Vec<(Refusal, usize)>,
}

impl Notices {
    pub(crate) const fn of(table: &'static str) -> Self {
        Self {
            table,
            list: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, row: impl FnOnce() -> String, column: &'static str, words: &str) {
        match self
            .list
            .iter_mut()
            .find(|(known, _)| known.column == column)
        {
            Some((_, rows)) => *rows += 1,
            None => {
                self.list.push((
                    Refusal {
                        table: self.table,
                        row: row(),
                        column,
                        words: words.into(),
                    },
                    1,
                ));
            }
        }
    }

    pub(crate) fn into_list(self) -> Vec<Refusal> {
        let counted = |(mut notice, rows): (Refusal, usize)| {
            if rows > 1 {
                notice.row = format!("{} and {} more", notice.row, rows - 1);
            }
            notice
        };
        self.list.into_iter().map(counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_sentence_and_a_flood_of_them_is_cut() {
        let mut refusals = Refusals::of("mysql_servers");
        let port: u16 = refusals.number(
            || "hostgroup 1, a:70000".into(),
            "port",
            70_000,
            (0, 65_535),
        );
        assert_eq!(port, 0);
        for _ in 0..1000 {
            refusals.add(String::new, "x", "y");
        }
        let list = refusals.or(()).unwrap_err();
        let sentence =
            "mysql_servers (hostgroup 1, a:70000): port must be from 0 to 65535; '70000' is not";
        assert_eq!(list[0].to_string(), sentence);
        assert_eq!(list.len(), SPELLED_OUT_MAX + 1);
        assert_eq!(
            list[SPELLED_OUT_MAX].to_string(),
            "mysql_servers: and 801 more rows or columns like these"
        );
    }
}
