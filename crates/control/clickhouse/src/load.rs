//! LOAD DATA LOCAL: the file of a client as one INSERT.
//!
//! <https://dev.mysql.com/doc/refman/8.4/en/load-data.html>, as far as a format of ClickHouse reads
//! the same.

/// Request of a LOAD DATA LOCAL.
#[derive(Debug, PartialEq)]
pub(crate) struct Load {
    /// The file, as the client calls it.
    pub(crate) file: String,
    /// `INSERT INTO … FORMAT …`.
    pub(crate) insert: String,
    /// Character that parts columns, where that is a setting of the format.
    pub(crate) delimiter: Option<char>,
    /// Lines at the beginning that are no rows.
    pub(crate) skipped: u64,
}

/// A word, a sign, or a text in quotes.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
}

/// The statement, if it is one; an error says what of it no format has.
pub(crate) fn parse(text: &str) -> Option<Result<Load, &'static str>> {
    let tokens = tokens(text);
    let mut words = Words(&tokens);
    (words.takes("LOAD") && words.takes("DATA")).then_some(())?;
    let _either = words.takes("LOW_PRIORITY") || words.takes("CONCURRENT");
    (words.takes("LOCAL") && words.takes("INFILE")).then_some(())?;
    Some(
        rest(&mut words)
            .ok_or("this LOAD DATA is not understood")
            .flatten(),
    )
}

fn rest(words: &mut Words<'_>) -> Option<Result<Load, &'static str>> {
    let file = words.text()?;
    let _either = words.takes("REPLACE") || words.takes("IGNORE");
    (words.takes("INTO") && words.takes("TABLE")).then_some(())?;
    let table = words.name()?;
    if words.takes("CHARACTER") {
        words.takes("SET").then_some(())?;
        words.name()?;
    }
    let (mut between, mut quote) = ("\t".to_owned(), String::new());
    if words.takes("FIELDS") || words.takes("COLUMNS") {
        if words.takes("TERMINATED") {
            between = words.by()?;
        }
        let is_optional = words.takes("OPTIONALLY");
        if words.takes("ENCLOSED") || is_optional {
            quote = words.by()?;
        }
        if words.takes("ESCAPED") && !matches!(words.by()?.as_str(), "" | "\\") {
            return Some(Err("only a backslash escapes in a file for ClickHouse"));
        }
    }
    if words.takes("LINES") {
        words.takes("TERMINATED").then_some(())?;
        if !matches!(words.by()?.as_str(), "\n" | "\r\n") {
            return Some(Err("lines of a file for ClickHouse end with a line feed"));
        }
    }
    let mut skipped = 0;
    if words.takes("IGNORE") {
        skipped = words.name()?.parse().ok()?;
        (words.takes("LINES") || words.takes("ROWS")).then_some(())?;
    }
    let columns = words.all()?;
    let (format, delimiter) = match (between.as_str(), quote.as_str()) {
        ("\t", "") => ("TabSeparated", None),
        (between, "" | "\"") if between.chars().count() == 1 => ("CSV", between.chars().next()),
        _ => {
            return Some(Err(
                "no format of ClickHouse has columns parted or enclosed like that",
            ));
        }
    };
    Some(Ok(Load {
        file,
        insert: format!("INSERT INTO {table} {columns} FORMAT {format}"),
        delimiter,
        skipped,
    }))
}

/// Tokens that are still to be read.
struct Words<'t>(&'t [Token]);

impl Words<'_> {
    /// Whether this word is next.
    fn takes(&mut self, word: &str) -> bool {
        match self.0 {
            [Token::Word(next), rest @ ..] if next.eq_ignore_ascii_case(word) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    fn text(&mut self) -> Option<String> {
        let [Token::Text(text), rest @ ..] = self.0 else {
            return None;
        };
        self.0 = rest;
        Some(text.clone())
    }

    fn by(&mut self) -> Option<String> {
        self.takes("BY").then(|| self.text()).flatten()
    }

    /// A name, with whatever parts are joined to it by a point.
    fn name(&mut self) -> Option<String> {
        let [Token::Word(name), rest @ ..] = self.0 else {
            return None;
        };
        self.0 = rest;
        Some(name.clone())
    }

    /// The columns in their brackets; nothing else may follow.
    fn all(&mut self) -> Option<String> {
        let [Token::Word(columns)] = self.0 else {
            return self.0.is_empty().then(String::new);
        };
        columns.starts_with('(').then(|| columns.clone())
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let (mut found, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '\'' | '"' => {
                let (text, len) = quoted(rest, first);
                found.push(Token::Text(text));
                len
            }
            '(' => {
                let len = rest.find(')').map_or(rest.len(), |at| at + 1);
                found.push(Token::Word(rest[..len].to_owned()));
                len
            }
            _ => {
                let end = |c: char| c.is_whitespace() || matches!(c, '(' | '\'' | '"');
                let len = rest.find(end).unwrap_or(rest.len());
                found.push(Token::Word(rest[..len].to_owned()));
                len
            }
        };
        rest = rest[len..].trim_start();
    }
    found
}

/// A text in quotes, and how many bytes it takes with them.
fn quoted(text: &str, quote: char) -> (String, usize) {
    let (mut out, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => {
                out.push(match c {
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    '0' => '\0',
                    c => c,
                });
                escaped = false;
            }
            '\\' => escaped = true,
            c if c == quote => return (out, at + 1),
            c => out.push(c),
        }
    }
    (out, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_inserts_where_a_format_reads_the_same() {
        let load = |text: &str| parse(text).unwrap().unwrap();
        let plain = load("LOAD DATA LOCAL INFILE '/tmp/a b' INTO TABLE `s`.`t`");
        assert_eq!(plain.insert, "INSERT INTO `s`.`t`  FORMAT TabSeparated");
        assert_eq!((plain.file.as_str(), plain.skipped), ("/tmp/a b", 0));
        let csv = load(
            "load data local infile 'x' into table t character set utf8mb4 fields terminated by ',' \
             optionally enclosed by '\"' lines terminated by '\\n' ignore 1 lines (a, b)",
        );
        assert_eq!(csv.insert, "INSERT INTO t (a, b) FORMAT CSV");
        assert_eq!((csv.delimiter, csv.skipped), (Some(','), 1));
        for other in [
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY '||'",
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t LINES TERMINATED BY ';'",
            "LOAD DATA LOCAL INFILE 'x' INTO TABLE t SET a = 1",
            "LOAD DATA LOCAL INFILE",
        ] {
            assert!(parse(other).unwrap().is_err(), "{other}");
        }
        assert_eq!(parse("LOAD DATA INFILE 'x' INTO TABLE t"), None);
        assert_eq!(parse("SELECT 1"), None);
    }
}
