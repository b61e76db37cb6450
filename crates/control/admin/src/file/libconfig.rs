//! libconfig's grammar: settings are `name = value` or `name : value`, ended by `;`, `,` or
//! nothing; groups stand in braces, lists in parentheses, arrays in brackets.
//!
//! <https://hyperrealm.github.io/libconfig/libconfig_manual.html#Configuration-Files> `@include` is
//! not known here: a configuration that is spread over files is refused, not half read.

use super::tree::{Setting, Value, Wrong};

/// Groups and lists in one another.
const DEPTH_MAX: usize = 32;

/// Reads a text.
pub(super) fn parse(text: &str) -> Result<Vec<Setting>, Wrong> {
    let mut parser = Parser {
        rest: text,
        line: 1,
    };
    let settings = parser.settings(0)?;
    match parser.rest.chars().next() {
        None => Ok(settings),
        Some(c) => Err((parser.line, format!("'{c}' without its beginning"))),
    }
}

struct Parser<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Parser<'t> {
    fn wrong<T>(&self, words: impl Into<String>) -> Result<T, Wrong> {
        Err((self.line, words.into()))
    }

    fn advance(&mut self, bytes: usize) -> &'t str {
        let (gone, rest) = self.rest.split_at(bytes);
        self.line += gone.bytes().filter(|byte| *byte == b'\n').count();
        self.rest = rest;
        gone
    }

    /// Skips blanks and comments, and says what comes then.
    fn peek(&mut self) -> Result<Option<char>, Wrong> {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.advance(blanks);
            if self.rest.starts_with('#') || self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.advance(end);
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.find("*/") else {
                    return self.wrong("a comment that does not end");
                };
                self.advance(end + 2);
            } else {
                return Ok(self.rest.chars().next());
            }
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
            if c == '@' {
                return self.wrong("@include is not supported; write the settings into one file");
            }
            if !(c.is_ascii_alphabetic() || c == '*') {
                break;
            }
            let len = self
                .rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*')))
                .unwrap_or(self.rest.len());
            let line = self.line;
            let name = self.advance(len).to_owned();
            if !self.eat(&['=', ':'])? {
                return self.wrong(format!("'=' or ':' is missing behind '{name}'"));
            }
            let value = self.value(depth)?;
            self.eat(&[';', ','])?;
            if let Some(first) = settings.iter().find(|setting| setting.name == name) {
                return self.wrong(format!(
                    "'{name}' is set twice, first in line {}",
                    first.line
                ));
            }
            settings.push(Setting { name, line, value });
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
            self.advance(1);
            loop {
                let Some(c) = self.rest.chars().next() else {
                    return self.wrong("a text that does not end");
                };
                self.advance(c.len_utf8());
                match c {
                    '"' => break,
                    '\\' => text.push(self.escaped()?),
                    c => text.push(c),
                }
            }
        }
        Ok(Value::Scalar(text))
    }

    fn escaped(&mut self) -> Result<char, Wrong> {
        let Some(c) = self.rest.chars().next() else {
            return self.wrong("a text that does not end");
        };
        self.advance(c.len_utf8());
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'f' => '\x0C',
            'a' => '\x07',
            'b' => '\x08',
            'v' => '\x0B',
            'x' => {
                let code = self
                    .rest
                    .get(..2)
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let Some(code) = code else {
                    return self.wrong("\\x without two hexadecimal digits");
                };
                self.advance(2);
                char::from(code)
            }
            '\\' | '"' => c,
            other => {
                return self.wrong(format!(
                    "'\\{other}' is not known; write '\\\\{other}' for a backslash"
                ));
            }
        })
    }

    fn scalar(&mut self) -> Result<Value, Wrong> {
        let end = self.rest.find(|c: char| {
            c.is_whitespace() || matches!(c, ';' | ',' | '}' | ')' | ']' | '#' | '{' | '(' | '"')
        });
        let end = end.unwrap_or(self.rest.len());
        let word = &self.rest[..end];
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
            setting.line,
            shown(&setting.value)
        )
    }

    fn parsed(text: &str) -> String {
        parse(text).map_or_else(
            |(line, words)| format!("line {line}: {words}"),
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
            "a", "=", ":", "\"", "\\", "x", "{", "}", "(", ")", "[", "]", ",", ";", "#", "//",
            "/*", "*/", "\n", "ä", "1", "0x", "-", "l", "true", "@include", "\0",
        ];
        for seed in 0..200_000 {
            drop(parse(&nonsense(seed, PIECES)));
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        assert_eq!(
            parsed("a=1\nb 2"),
            "line 2: '=' or ':' is missing behind 'b'"
        );
        assert_eq!(
            parsed("a=\nhello"),
            "line 2: 'hello' is neither a number nor true or false; texts stand in double quotes"
        );
        assert_eq!(parsed("a=\"x\n\n"), "line 3: a text that does not end");
        assert_eq!(
            parsed("a=(1\n"),
            "line 2: a value is missing at the end of the file"
        );
        assert_eq!(parsed("a={b=1\n)"), "line 2: '}' is missing here");
        assert_eq!(parsed("a=1\n}"), "line 2: '}' without its beginning");
        assert_eq!(
            parsed("a=1;\na=2"),
            "line 2: 'a' is set twice, first in line 1"
        );
        assert_eq!(
            parsed("@include \"x\""),
            "line 1: @include is not supported; write the settings into one file"
        );
        assert!(parsed(&"a={".repeat(1000)).contains("too many groups"));
        assert!(parsed("a=\"\\d\"").contains("'\\d' is not known"));
    }
}
