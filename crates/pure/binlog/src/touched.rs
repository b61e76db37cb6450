//! Tables that transactions have changed.

use crate::event::Text;
use sql::{CommandCounter, Leaves};
use std::collections::BTreeSet;

/// Names of one transaction, or of several together; who touches more touches everything.
const NAMES_MAX: usize = 64;

/// A longer name is none of a table: servers allow 64 characters.
const NAME_LEN_MAX: usize = 256;

/// Schema and name.
type Name = (Box<[u8]>, Box<[u8]>);

/// Tables that were changed, and perhaps some that were not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touched {
    names: BTreeSet<Name>, // <= NAMES_MAX, none if all
    all: bool,
}

impl Touched {
    /// Whatever there is.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            names: BTreeSet::new(),
            all: true,
        }
    }

    /// Whether it may be any table.
    #[must_use]
    pub const fn is_everything(&self) -> bool {
        self.all
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        !self.all && self.names.is_empty()
    }

    /// Schema and name of each.
    pub fn names(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.names.iter().map(|(schema, name)| (&**schema, &**name))
    }

    /// This one too.
    pub fn add(&mut self, schema: &[u8], name: &[u8]) {
        if self.all || schema.len().max(name.len()) > NAME_LEN_MAX {
            return;
        }
        self.names.insert((schema.into(), name.into()));
        if self.names.len() > NAMES_MAX {
            *self = Self::everything();
        }
    }

    /// All of another.
    pub fn union(&mut self, other: &Self) {
        if other.all {
            *self = Self::everything();
        }
        for (schema, name) in other.names() {
            self.add(schema, name);
        }
    }

    /// All that a statement names: its tables are among them. Everything, where no text tells.
    pub(crate) fn add_text(&mut self, text: &Text<'_>) {
        let Text {
            schema,
            lexing,
            sql,
        } = text;
        let class = lexing.class(sql);
        let hides = Leaves::UNKNOWN_STATE
            .with(Leaves::DATABASE)
            .with(Leaves::XA)
            .with(Leaves::SQL_EXECUTE);
        let hidden = [CommandCounter::Call, CommandCounter::Execute].contains(&class.command)
            || !sql.is_ascii()
            || !lexing.is_sure_of(sql)
            || class.leaves.intersects(hides);
        if hidden {
            *self = Self::everything();
            return;
        }
        sql::names(sql, *lexing, |qualifier, name| {
            self.add(qualifier.unwrap_or(schema), name);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::Lexing;

    fn of(sql: &str) -> Touched {
        let mut touched = Touched::default();
        touched.add_text(&Text {
            schema: b"here",
            lexing: Lexing::Escapes,
            sql: sql.as_bytes(),
        });
        touched
    }

    #[test]
    fn a_statement_touches_what_it_names() {
        let touched = of("INSERT INTO t SELECT * FROM `s`.`u`");
        let names: Vec<_> = touched.names().collect();
        for name in [(&b"here"[..], &b"t"[..]), (b"s", b"u")] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!touched.is_everything());
    }

    #[test]
    fn what_no_text_tells_is_everything() {
        for sql in [
            "DROP DATABASE s",
            "XA COMMIT X'78',X'',1",
            "UPDATE t SET a = 'é'",
            "UPDATE t SET a = \"\\\"\"",
        ] {
            assert!(of(sql).is_everything(), "{sql}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut touched = Touched::default();
        for n in 0..1000 {
            touched.add(b"s", format!("t{n}").as_bytes());
        }
        assert!(touched.is_everything() && touched.names().count() == 0);
        let mut other = Touched::default();
        other.add(b"s", &[b'x'; 1000]);
        assert!(other.is_nothing());
        other.add(b"s", b"t");
        other.union(&touched);
        assert_eq!(other, Touched::everything());
    }
}
