//! Objects of one connection that statements make and unmake by name: temporary tables, statements
//! prepared in SQL, handlers.

use crate::words::{Kind, Token, Words, unquote};

/// A name, with the schema before it if one is written.
pub type Name = (Option<String>, String);

/// Effect of a statement on objects of its connection, if it succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// CREATE TEMPORARY TABLE.
    Table(Name),
    /// DROP TABLE, DROP TEMPORARY TABLE: these are gone, whatever they were.
    NoTables(Vec<Name>),
    /// PREPARE.
    Statement(String),
    /// DEALLOCATE PREPARE, DROP PREPARE.
    NoStatement(String),
    /// HANDLER … OPEN, by its alias.
    Handler(String),
    /// HANDLER … CLOSE.
    NoHandler(String),
    /// The statement says nothing of such objects.
    Nothing,
    /// The statement may do anything to such objects.
    Unknown,
}

/// Reads one statement.
#[must_use]
pub fn own(sql: &[u8]) -> Own {
    let mut words = Words::new(sql);
    let found = read(&mut words);
    let ended = words.all(|token| token.is_sign(b';'));
    match found {
        None => Own::Unknown,
        // Only of these everything to the end is a list of names.
        Some(Own::NoTables(_) | Own::NoStatement(_) | Own::NoHandler(_)) if !ended => Own::Unknown,
        Some(found) => found,
    }
}

fn read(words: &mut Words<'_>) -> Option<Own> {
    let verb = words.next()?;
    if verb.is("CREATE") {
        if take(words, "OR") && !take(words, "REPLACE") {
            return None;
        }
        if !take(words, "TEMPORARY") {
            return Some(Own::Nothing);
        }
        if !take(words, "TABLE") {
            return None;
        }
        if take(words, "IF") && !(take(words, "NOT") && take(words, "EXISTS")) {
            return None;
        }
        return name(words).map(Own::Table);
    }
    if verb.is("DROP") {
        if take(words, "PREPARE") {
            return simple(words).map(Own::NoStatement);
        }
        let temporary = take(words, "TEMPORARY");
        if !take(words, "TABLE") && !take(words, "TABLES") {
            return if temporary { None } else { Some(Own::Nothing) };
        }
        if take(words, "IF") && !take(words, "EXISTS") {
            return None;
        }
        let mut names = vec![name(words)?];
        while words.is_before(b',') {
            words.next();
            names.push(name(words)?);
        }
        let _either = take(words, "RESTRICT") || take(words, "CASCADE");
        return Some(Own::NoTables(names));
    }
    if verb.is("PREPARE") {
        return simple(words).map(Own::Statement);
    }
    if verb.is("DEALLOCATE") {
        return if take(words, "PREPARE") {
            simple(words).map(Own::NoStatement)
        } else {
            None
        };
    }
    if verb.is("HANDLER") {
        let (_, table) = name(words)?;
        if take(words, "OPEN") {
            let _optional = take(words, "AS");
            return Some(Own::Handler(simple(words).unwrap_or(table)));
        }
        return Some(if take(words, "CLOSE") {
            Own::NoHandler(table)
        } else {
            Own::Nothing
        });
    }
    if verb.is_any(&["ALTER", "RENAME"]) {
        return None;
    }
    Some(Own::Nothing)
}

fn take(words: &mut Words<'_>, keyword: &str) -> bool {
    let here = words.peek().is_some_and(|token| token.is(keyword));
    if here {
        words.next();
    }
    here
}

fn text(token: Token<'_>) -> Option<String> {
    let named = matches!(token.kind, Kind::Word | Kind::Name) && token.is_whole();
    if named {
        String::from_utf8(unquote(token.text).into_owned()).ok()
    } else {
        None
    }
}

/// A name without a dot; these know no upper case.
fn simple(words: &mut Words<'_>) -> Option<String> {
    text(words.next()?).map(|name| name.to_lowercase())
}

fn name(words: &mut Words<'_>) -> Option<Name> {
    let first = text(words.next()?)?;
    if !words.is_before(b'.') {
        return Some((None, first));
    }
    words.next();
    Some((Some(first), text(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_and_unmade_has_a_name() {
        let table = |schema: Option<&str>, name: &str| (schema.map(str::to_owned), name.to_owned());
        for (sql, wanted) in [
            (
                "CREATE TEMPORARY TABLE t (a INT)",
                Own::Table(table(None, "t")),
            ),
            (
                "create or replace temporary table if not exists `a b`.`c` select 1",
                Own::Table(table(Some("a b"), "c")),
            ),
            ("CREATE TABLE t (a INT)", Own::Nothing),
            ("CREATE TEMPORARY SEQUENCE s", Own::Unknown),
            (
                "DROP TEMPORARY TABLE IF EXISTS t, s.u;",
                Own::NoTables(vec![table(None, "t"), table(Some("s"), "u")]),
            ),
            (
                "DROP TABLE t RESTRICT",
                Own::NoTables(vec![table(None, "t")]),
            ),
            ("DROP TABLE t WAIT 5", Own::Unknown),
            ("DROP VIEW v", Own::Nothing),
            ("ALTER TABLE t RENAME u", Own::Unknown),
            ("PREPARE S FROM 'SELECT 1'", Own::Statement("s".to_owned())),
            ("DEALLOCATE PREPARE `S`", Own::NoStatement("s".to_owned())),
            ("DROP PREPARE s", Own::NoStatement("s".to_owned())),
            ("HANDLER s.t OPEN AS H", Own::Handler("h".to_owned())),
            ("HANDLER t OPEN", Own::Handler("t".to_owned())),
            ("HANDLER h READ FIRST", Own::Nothing),
            ("HANDLER h CLOSE", Own::NoHandler("h".to_owned())),
            ("DROP TABLE t; SELECT 1", Own::Unknown),
            ("SELECT 1", Own::Nothing),
        ] {
            assert_eq!(own(sql.as_bytes()), wanted, "{sql}");
        }
    }
}
