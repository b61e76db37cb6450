//! libconfig's grammar: settings are `name = value` or `name : value`, ended by `;`, `,` or
//! nothing; groups stand in braces, lists in parentheses, arrays in brackets. `@include "file"` puts
//! another file in its place, wherever blanks may stand.
//!
//! <https://hyperrealm.github.io/libconfig/libconfig_manual.html#Configuration-Files>

use super::tree::{Place, Setting, Value, Wrong};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Groups and lists in one another.
const DEPTH_MAX: usize = 32;
const INCLUDE: &str = "@include";
/// Included files in one another, as in libconfig. A file that includes itself ends here.
const INCLUDES_MAX: usize = 10;

/// Reads a text. `read` gives the text of a file that is included.
pub(super) fn parse(
    file: &Arc<str>,
    text: String,
    read: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<Vec<Setting>, Wrong> {
    let mut parser = Parser {
        source: Source::new(file.clone(), text),
        outer: Vec::new(),
        read,
    };
    let settings = parser.settings(0)?;
    match parser.peek()? {
        None => Ok(settings),
        Some(c) => parser.wrong(format!("'{c}' without its beginning")),
    }
}

/// A file that is being read.
struct Source {
    text: String,
    // 0 <= parsed <= text.len(), between two characters
    parsed: usize,
    at: Place,
}

impl Source {
    const fn new(file: Arc<str>, text: String) -> Self {
        Self {
            text,
            parsed: 0,
            at: Place { file, line: 1 },
        }
    }
}

struct Parser<'r> {
    source: Source,
    /// Files that have included this one, the outermost first.
    outer: Vec<Source>,
    read: &'r dyn Fn(&Path) -> io::Result<String>,
}

impl Parser<'_> {
    fn wrong<T>(&self, words: impl Into<String>) -> Result<T, Wrong> {
        Err((self.source.at.clone(), words.into()))
    }

    fn rest(&self) -> &str {
        &self.source.text[self.source.parsed..]
    }

    fn next_char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, bytes: usize) -> &str {
        let source = &mut self.source;
        let gone = source.parsed..source.parsed + bytes;
        let gone = &source.text[gone];
        source.at.line += gone.bytes().filter(|byte| *byte == b'\n').count();
        source.parsed += bytes;
        gone
    }

    /// Skips blanks and comments, goes into files that are included and out of them at their end,
    /// and says what comes then.
    fn peek(&mut self) -> Result<Option<char>, Wrong> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.advance(blanks);
            let rest = self.rest();
            if rest.starts_with('#') || rest.starts_with("//") {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.advance(end);
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else {
                    return self.wrong("a comment that does not end");
                };
                self.advance(end + 2);
            } else if rest.starts_with(INCLUDE) {
                self.include()?;
            } else if !rest.is_empty() {
                return Ok(self.next_char());
            } else if let Some(outer) = self.outer.pop() {
                self.source = outer;
            } else {
                return Ok(None);
            }
        }
    }

    /// Goes on in the file that is named. A relative name begins where the including file is.
    fn include(&mut self) -> Result<(), Wrong> {
        self.advance(INCLUDE.len());
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        self.advance(blanks);
        if self.next_char() != Some('"') {
            return self.wrong("@include wants the name of a file in double quotes");
        }
        let at = self.source.at.clone();
        let name = self.quoted()?;
        let folder = Path::new(&*at.file)
            .parent()
            .unwrap_or_else(|| Path::new(""));
        let path = folder.join(&name);
        let shown = path.display().to_string();
        if self.outer.len() == INCLUDES_MAX {
            let words = format!(
                "@include \"{name}\": {shown} would be more than {INCLUDES_MAX} files deep; \
                 does a file include itself?"
            );
            return Err((at, words));
        }
        match (self.read)(&path) {
            Ok(text) => {
                let source = Source::new(shown.into(), text);
                self.outer.push(std::mem::replace(&mut self.source, source));
                Ok(())
            }
            Err(error) => Err((
                at,
                format!("@include \"{name}\": cannot read {shown}: {error}"),
            )),
        }
    }

    fn eat(&mut self, wanted: &[char]) -> Result<bool, Wrong> {
        let found = self.peek()?.is_some_and(|c| wanted.contains(&c));
        if found {
            self.advance(1);
        }
        Ok(found)
    }

    fn settings(&mut self, depth: usize) -> Result<Vec<Setting>, Wrong> {
        let mut settings: Vec<Setting> = Vec::new();
        while let Some(c) = self.peek()? {
            if !(c.is_ascii_alphabetic() || c == '*') {
                break;
            }
            let rest = self.rest();
            let len = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*')))
                .unwrap_or(rest.len());
            let at = self.source.at.clone();
            let name = self.advance(len).to_owned();
            if !self.eat(&['=', ':'])? {
                return self.wrong(format!("'=' or ':' is missing behind '{name}'"));
            }
            let value = self.value(depth)?;
            self.eat(&[';', ','])?;
            if let Some(first) = settings.iter().find(|setting| setting.name == name) {
                let first = first.at.seen_from(&at);
                return Err((at, format!("'{name}' is set twice, first in {first}")));
            }
            settings.push(Setting { name, at, value });
        }
        Ok(settings)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Wrong> {
        if depth >= DEPTH_MAX {
            return self.wrong("too many groups in one another");
        }
        match self.peek()? {
            Some('{') => {
                self.advance(1);
                let settings = self.settings(depth + 1)?;
                if self.eat(&['}'])? {
                    Ok(Value::Group(settings))
                } else {
                    self.wrong("'}' is missing here")
                }
            }
            Some(open @ ('(' | '[')) => {
                self.advance(1);
                let close = if open == '(' { ')' } else { ']' };
                self.list(close, depth + 1)
            }
            Some('"') => self.text(),
            Some(_) => self.scalar(),
            None => self.wrong("a value is missing at the end of the file"),
        }
    }

    fn list(&mut self, close: char, depth: usize) -> Result<Value, Wrong> {
        let mut values = Vec::new();
        loop {
            if self.eat(&[close])? {
                return Ok(Value::List(values));
            }
            values.push(self.value(depth)?);
            // A comma behind the last is common in files of ProxySQL's users, and so is none at
            // all.
            self.eat(&[','])?;
        }
    }

    /// Texts one after the other are one text.
    fn text(&mut self) -> Result<Value, Wrong> {
        let mut text = String::new();
        while self.peek()? == Some('"') {
            text += &self.quoted()?;
        }
        Ok(Value::Scalar(text))
    }

    /// A text from its first to its last quote.
    fn quoted(&mut self) -> Result<String, Wrong> {
        self.advance(1);
        let mut text = String::new();
        loop {
            let Some(c) = self.next_char() else {
                return self.wrong("a text that does not end");
            };
            self.advance(c.len_utf8());
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escaped()),
                c => text.push(c),
            }
        }
    }

    /// The character behind a backslash. A backslash that begins no escape is itself, and what
    /// follows stays where it is: `"\d"` is a backslash and a d.
    fn escaped(&mut self) -> char {
        let (c, len) = match self.next_char() {
            Some('n') => ('\n', 1),
            Some('t') => ('\t', 1),
            Some('r') => ('\r', 1),
            Some('f') => ('\x0C', 1),
            Some('a') => ('\x07', 1),
            Some('b') => ('\x08', 1),
            Some('v') => ('\x0B', 1),
            Some(c @ ('\\' | '"')) => (c, 1),
            Some('x' | 'X') => {
                let digits = self.rest().get(1..3);
                let digits = digits.filter(|two| two.bytes().all(|c| c.is_ascii_hexdigit()));
                match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
                    Some(code) => (char::from(code), 3),
                    None => ('\\', 0),
                }
            }
            _ => ('\\', 0),
        };
        self.advance(len);
        c
    }

    fn scalar(&mut self) -> Result<Value, Wrong> {
        let rest = self.rest();
        let end = rest.find(|c: char| {
            c.is_whitespace() || matches!(c, ';' | ',' | '}' | ')' | ']' | '#' | '{' | '(' | '"')
        });
        let end = end.unwrap_or(rest.len());
        let word = &rest[..end];
        let lower = word.to_ascii_lowercase();
        let number = || {
            integer(&lower)
                .map(|number| number.to_string())
                .or_else(|| lower.parse::<f64>().ok().map(|_| lower.clone()))
        };
        let value = match lower.as_str() {
            "true" => Value::Truth(true),
            "false" => Value::Truth(false),
            _ => match number() {
                Some(number) => Value::Scalar(number),
                None => {
                    return self.wrong(format!("'{word}' is neither a number nor true or false; texts stand in double quotes"));
                }
            },
        };
        self.advance(end);
        Ok(value)
    }
}

fn integer(word: &str) -> Option<i64> {
    let word = word
        .strip_suffix("ll")
        .or_else(|| word.strip_suffix('l'))
        .unwrap_or(word);
    match word.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Value) -> String {
        match value {
            Value::Scalar(text) => text.clone(),
            Value::Truth(truth) => truth.to_string(),
            Value::Group(settings) => format!(
                "{{{}}}",
                settings.iter().map(one).collect::<Vec<_>>().join(" ")
            ),
            Value::List(values) => format!(
                "({})",
                values.iter().map(shown).collect::<Vec<_>>().join(" ")
            ),
        }
    }

    fn one(setting: &Setting) -> String {
        format!(
            "{}@{}={}",
            setting.name,
            setting.at.line,
            shown(&setting.value)
        )
    }

    fn parsed(text: &str) -> String {
        parsed_with(text, &[])
    }

    /// As `parsed`, where these files can be included.
    fn parsed_with(text: &str, files: &[(&str, &str)]) -> String {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        };
        parse(&"etc/p.cnf".into(), text.to_owned(), &read).map_or_else(
            |(at, words)| format!("{at}: {words}"),
            |all| all.iter().map(one).collect::<Vec<_>>().join(" "),
        )
    }

    #[test]
    fn the_grammar_is_read_with_its_comments_and_its_freedoms() {
        let text = r#"
            datadir="/var/lib/proxysql" # where
            /* a
               comment */ mysql_servers:
            (
                { address="127.0.0.1" , port=0xCEA; weight = 1L },
                { hostgroup = 1 // one
                  comment : "a \"b\"" " c\x41" }
            )
            flags = [ true, FALSE ];
            f=1.5
        "#;
        assert_eq!(
            parsed(text),
            "datadir@2=/var/lib/proxysql mysql_servers@4=({address@6=127.0.0.1 port@6=3306 weight@6=1} {hostgroup@7=1 comment@8=a \"b\" cA}) \
             flags@10=(true false) f@11=1.5"
        );
    }

    /// Texts of all kinds of pieces, put together without sense.
    fn nonsense(mut seed: u64, pieces: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..seed % 12 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text += pieces[(seed >> 33) as usize % pieces.len()];
        }
        text
    }

    #[test]
    fn no_text_is_too_strange() {
        const PIECES: &[&str] = &[
            "a",
            "=",
            ":",
            "\"",
            "\\",
            "x",
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ",",
            ";",
            "#",
            "//",
            "/*",
            "*/",
            "\n",
            "ä",
            "1",
            "0x",
            "-",
            "l",
            "true",
            "@include",
            "@include \"x\"",
            "\0",
        ];
        for seed in 0..200_000 {
            parsed_with(&nonsense(seed, PIECES), &[("etc/x", "@include \"x\"")]);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(
            parsed("a=1\nb 2"),
            "etc/p.cnf line 2: '=' or ':' is missing behind 'b'"
        );
        assert_eq!(
            parsed("a=\nhello"),
            "etc/p.cnf line 2: 'hello' is neither a number nor true or false; texts stand in double quotes"
        );
        assert_eq!(
            parsed("a=\"x\n\n"),
            "etc/p.cnf line 3: a text that does not end"
        );
        assert_eq!(
            parsed("a=(1\n"),
            "etc/p.cnf line 2: a value is missing at the end of the file"
        );
        assert_eq!(parsed("a={b=1\n)"), "etc/p.cnf line 2: '}' is missing here");
        assert_eq!(
            parsed("a=1\n}"),
            "etc/p.cnf line 2: '}' without its beginning"
        );
        assert_eq!(
            parsed("a=1;\na=2"),
            "etc/p.cnf line 2: 'a' is set twice, first in line 1"
        );
        assert!(parsed(&"a={".repeat(1000)).contains("too many groups"));
    }

    #[test]
    fn a_backslash_that_begins_no_escape_is_kept() {
        let text = r#"a="^SELECT \d+ /\* \w+" b="\\d \"\x41\X5a\xZZ\x" c="\n\t\é""#;
        let kept = "a@1=^SELECT \\d+ /\\* \\w+ b@1=\\d \"AZ\\xZZ\\x c@1=\n\t\\é";
        assert_eq!(parsed(text), kept);
        assert_eq!(
            parsed("a=\"x\\"),
            "etc/p.cnf line 1: a text that does not end"
        );
    }

    #[test]
    fn files_are_included_where_they_are_named_and_messages_name_the_right_one() {
        let files = [
            (
                "etc/d/users.cnf",
                "# mine\nu = (\n{a=1}\n@include \"more.cnf\"\n)",
            ),
            ("etc/d/more.cnf", "{b=2}"),
            ("/abs.cnf", "z = ?"),
            ("etc/twice.cnf", "\na=2"),
        ];
        assert_eq!(
            parsed_with("a=1\n@include \"d/users.cnf\"\nc=3", &files),
            "a@1=1 u@2=({a@3=1} {b@1=2}) c@3=3"
        );
        assert!(
            parsed_with("@include \"/abs.cnf\"", &files)
                .starts_with("/abs.cnf line 1: '?' is neither")
        );
        assert_eq!(
            parsed_with("a=1;\n@include \"twice.cnf\"", &files),
            "etc/twice.cnf line 2: 'a' is set twice, first in etc/p.cnf line 1"
        );
        assert_eq!(
            parsed_with("a=1;\n  @include \"none.cnf\"", &files),
            "etc/p.cnf line 2: @include \"none.cnf\": cannot read etc/none.cnf: entity not found"
        );
        assert!(parsed("@include none.cnf").contains("in double quotes"));
        // What comes behind an include is counted in the file that has it.
        let behind = parsed_with(
            "@include \"d/more.cnf\" x",
            &[("etc/d/more.cnf", "y=1\n\n")],
        );
        assert_eq!(behind, "etc/p.cnf line 1: '=' or ':' is missing behind 'x'");
    }

    #[test]
    fn ten_files_may_include_one_another_and_a_loop_ends_there() {
        let names: Vec<_> = (1..=11).map(|n| format!("etc/{n}")).collect();
        let texts: Vec<_> = (1..=11)
            .map(|n| format!("@include \"{}\"", n + 1))
            .collect();
        let mut files: Vec<(&str, &str)> = names
            .iter()
            .zip(&texts)
            .map(|(n, t)| (&**n, &**t))
            .collect();
        files[9].1 = "a=1";
        assert_eq!(parsed_with("@include \"1\"", &files), "a@1=1");
        files[9].1 = "@include \"11\"";
        assert_eq!(
            parsed_with("@include \"1\"", &files),
            "etc/10 line 1: @include \"11\": etc/11 would be more than 10 files deep; does a file \
             include itself?"
        );
        let itself = parsed_with("@include \"me\"", &[("etc/me", "\n@include \"me\"")]);
        assert!(itself.starts_with("etc/me line 2: @include"), "{itself}");
    }
}
