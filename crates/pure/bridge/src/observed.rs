//! A column of a table that is read is one line: its field, its name and type in SQL, and what
//! becomes of it when the rows of two cores are one.
//!
//! | of several | the row has |
//! |---|---|
//! | `key` | what they have in common; without any key no two rows are one |
//! | `own` | its own, of a row that is never joined |
//! | `sum`, `min`, `max` | that of all |
//! | `some` | the first that there is |
//! | `first` | the first core's |
//! | `latest(field)` | the other's, unless its `field` is smaller; `field` is `max` |
//!
//! Behind that stands the metric that shows it, if one does: kind, name with labels, sentence.

use crate::ServerState;
use crate::metric::Metric;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// A row of a table that is filled when it is read.
pub trait Observed: Sized {
    /// The columns, as they follow `CREATE TABLE name `.
    const COLUMNS: &'static str;

    /// How many there are.
    const WIDTH: usize;

    /// Whether rows of several cores may be one.
    const JOINS: bool;

    /// Values that rows have in common that are one.
    type Key: Ord;

    /// Returns the key of this row.
    fn key(&self) -> Self::Key;

    /// Takes in the row of another core with the same key.
    fn join(&mut self, other: Self);

    /// Metric of each column that has one, in order.
    const METRICS: &'static [Option<Metric>];

    /// Adds the values of its columns, in order.
    fn cells<'r>(&'r self, cells: &mut Vec<Cell<'r>>);
}

/// A value as tables show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'r> {
    /// There is none.
    Null,
    /// A number.
    Number(i64),
    /// A text.
    Text(&'r str),
    /// A text that was made for this.
    Made(String),
}

impl Cell<'_> {
    /// A digest.
    pub(crate) fn hex(number: u64) -> Self {
        Self::Made(format!("0x{number:016X}"))
    }

    /// How the values of a result are written.
    pub(crate) const fn protocol(is_binary: bool) -> Self {
        Self::Text(if is_binary { "binary" } else { "text" })
    }
}

/// A value that can be shown.
pub(crate) trait Shown {
    fn cell(&self) -> Cell<'_>;
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Shown for $number {
            fn cell(&self) -> Cell<'_> {
                // SQLite's integers have a sign.
                Cell::Number(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        })*
    };
}

numbers! { bool i64 u16 u32 u64 }

macro_rules! texts {
    ($($text:ty)*) => {
        $(impl Shown for $text {
            fn cell(&self) -> Cell<'_> {
                Cell::Text(self)
            }
        })*
    };
}

texts! { &'static str Arc<str> String }

impl Shown for ServerState {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.name())
    }
}

impl Shown for IpAddr {
    fn cell(&self) -> Cell<'_> {
        Cell::Made(self.to_string())
    }
}

impl<T: Shown> Shown for Option<T> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, Shown::cell)
    }
}

/// Joins those of one core's rows that have one key.
#[must_use]
pub fn joined<T: Observed>(rows: Vec<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(rows.len());
    merge(&mut all, rows);
    all
}

/// Joins the rows of another core to these.
pub(crate) fn merge<T: Observed>(into: &mut Vec<T>, other: Vec<T>) {
    if !T::JOINS {
        into.extend(other);
        return;
    }
    let known = into.iter().enumerate().map(|(at, row)| (row.key(), at));
    let mut known: BTreeMap<_, usize> = known.collect();
    for row in other {
        let at = *known.entry(row.key()).or_insert(into.len());
        match into.get_mut(at) {
            Some(known) => known.join(row),
            None => into.push(row),
        }
    }
}

/// Declares the row of a table.
macro_rules! observed {
    (
        $(#[$about:meta])*
        $vis:vis struct $row:ident, ends $ends:literal:
        $($(#[$doc:meta])* $field:ident: $type:ty $(as $form:ident)?, $sql:literal, $kind:ident $(($at:ident))?
            $(, $metric_kind:ident $metric:literal $help:literal)?;)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis struct $row {
            $($(#[$doc])* $vis $field: $type,)*
        }

        impl $crate::observed::Observed for $row {
            const COLUMNS: &'static str =
                $crate::observed::observed!(@columns $ends, $($sql),*);
            const WIDTH: usize = [$($sql),*].len();
            const JOINS: bool = false $(|| $crate::observed::observed!(@is_key $kind))*;
            const METRICS: &'static [Option<$crate::metric::Metric>] =
                &[$($crate::observed::observed!(@metric $($metric_kind $metric $help)?)),*];
            type Key = $crate::observed::observed!(@key_type () $($kind $type,)*);

            fn key(&self) -> Self::Key {
                $crate::observed::observed!(@key self () $($kind $field,)*)
            }

            fn join(&mut self, other: Self) {
                $($crate::observed::observed!(@join $kind $(($at))? self other $field);)*
            }

            fn cells<'r>(&'r self, cells: &mut Vec<$crate::Cell<'r>>) {
                $(cells.push($crate::observed::observed!(@cell self.$field $(, $form)?));)*
            }
        }
    };

    (@columns $ends:literal, $first:literal $(, $more:literal)*) => {
        concat!("(\n    ", $first, $(",\n    ", $more,)* $ends)
    };

    (@metric) => { None };
    (@metric $kind:ident $name:literal $help:literal) => {
        Some($crate::metric::Metric { kind: $crate::metric::Kind::$kind, name: $name, help: $help })
    };

    (@is_key key) => { true };
    (@is_key $kind:ident) => { false };

    (@key_type ($($done:ty,)*)) => { ($($done,)*) };
    (@key_type ($($done:ty,)*) key $type:ty, $($more:tt)*) => {
        $crate::observed::observed!(@key_type ($($done,)* $type,) $($more)*)
    };
    (@key_type ($($done:ty,)*) $kind:ident $type:ty, $($more:tt)*) => {
        $crate::observed::observed!(@key_type ($($done,)*) $($more)*)
    };

    (@key $row:ident ($($done:expr,)*)) => { ($($done,)*) };
    (@key $row:ident ($($done:expr,)*) key $field:ident, $($more:tt)*) => {
        $crate::observed::observed!(@key $row ($($done,)* $row.$field.clone(),) $($more)*)
    };
    (@key $row:ident ($($done:expr,)*) $kind:ident $field:ident, $($more:tt)*) => {
        $crate::observed::observed!(@key $row ($($done,)*) $($more)*)
    };

    (@join sum $row:ident $other:ident $field:ident) => { $row.$field += $other.$field };
    (@join min $row:ident $other:ident $field:ident) => {
        $row.$field = $row.$field.min($other.$field)
    };
    (@join max $row:ident $other:ident $field:ident) => {
        $row.$field = $row.$field.max($other.$field)
    };
    (@join some $row:ident $other:ident $field:ident) => {
        $row.$field = $row.$field.take().or($other.$field)
    };
    (@join latest ($at:ident) $row:ident $other:ident $field:ident) => {
        if $other.$at >= $row.$at {
            $row.$field = $other.$field;
        }
    };
    (@join $kept:ident $row:ident $other:ident $field:ident) => { _ = &$other.$field };

    (@cell $value:expr) => { $crate::observed::Shown::cell(&$value) };
    (@cell $value:expr, $form:ident) => { $crate::Cell::$form($value) };
}

pub(crate) use observed;

#[cfg(test)]
mod tests {
    use super::*;

    observed! {
        /// A row of no table.
        struct Row, ends ")":
        /// Which.
        name: Arc<str>, "name VARCHAR", key;
        /// Hash.
        digest: u64 as hex, "digest VARCHAR", first;
        /// Times.
        count: u64, "count INT", sum;
        /// At most.
        limit: Option<u32>, "most INT", some;
        /// When last.
        last: u64, "last INT", max;
        /// Words of the last time.
        words: String, "words VARCHAR", latest(last);
    }

    fn row(name: &str, count: u64, last: u64) -> Row {
        Row {
            name: name.into(),
            digest: 10,
            count,
            limit: (count > 1).then_some(9),
            last,
            words: format!("at {last}"),
        }
    }

    #[test]
    fn rows_of_one_key_are_one_and_others_stay_in_order() {
        let mut all = vec![row("b", 1, 7), row("a", 1, 5)];
        merge(
            &mut all,
            vec![row("c", 1, 1), row("b", 2, 6), row("a", 3, 8)],
        );
        let told: Vec<_> = all
            .iter()
            .map(|row| (&*row.name, row.count, row.limit, row.last, &*row.words))
            .collect();
        let c = ("c", 1, None, 1, "at 1");
        assert_eq!(
            told,
            [
                ("b", 3, Some(9), 7, "at 7"),
                ("a", 4, Some(9), 8, "at 8"),
                c
            ]
        );
    }

    #[test]
    fn a_row_says_its_columns_and_their_values() {
        let sql = "(\n    name VARCHAR,\n    digest VARCHAR,\n    count INT,\n    most INT,\n    last INT,\n    words VARCHAR)";
        assert_eq!((Row::COLUMNS, Row::WIDTH), (sql, 6));
        let (mut cells, row) = (Vec::new(), row("a", 1, 5));
        row.cells(&mut cells);
        let wanted = [
            Cell::Text("a"),
            Cell::Made("0x000000000000000A".into()),
            Cell::Number(1),
            Cell::Null,
            Cell::Number(5),
            Cell::Text("at 5"),
        ];
        assert_eq!(cells, wanted);
    }
}
