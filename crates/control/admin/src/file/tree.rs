//! What a configuration file says, whatever its grammar.

use config::Refusal;
use std::fmt;
use std::sync::Arc;

/// A line of a file, as messages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the file: of several, the one that was included here.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
}

impl Place {
    /// This place as a reader of `other` finds it: without the name of a file that both share.
    pub(super) fn seen_from(&self, other: &Self) -> String {
        if self.file == other.file {
            format!("line {}", self.line)
        } else {
            self.to_string()
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file, self.line)
    }
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub at: Place,
    /// Value of the setting.
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number, as text, or a text.
    Scalar(String),
    /// true or false, without quotes.
    Truth(bool),
    /// Settings between braces.
    Group(Vec<Setting>),
    /// Values between parentheses or brackets.
    List(Vec<Self>),
}

impl Value {
    /// One value as a text; a truth is spelled so, `truths` being false and true.
    pub(super) fn one<'v>(&'v self, truths: [&'v str; 2]) -> Option<&'v str> {
        match self {
            Self::Scalar(text) => Some(text),
            Self::Truth(truth) => Some(truths[usize::from(*truth)]),
            Self::Group(_) | Self::List(_) => None,
        }
    }
}

/// false and true in variables,
pub(super) const WORDS: [&str; 2] = ["false", "true"];
/// and in the columns of tables. In quotes they are texts, save in a column of numbers.
pub(super) const NUMBERS: [&str; 2] = ["0", "1"];

/// A sentence about a setting, with its place.
pub(super) fn about(setting: &Setting, words: &str) -> Refusal {
    refusal(format!("{}: '{}' {words}", setting.at, setting.name))
}

/// Words of a refusal that concerns no row of a table.
pub(super) fn refusal(words: String) -> Refusal {
    Refusal {
        table: "",
        row: String::new(),
        column: "",
        words,
    }
}

/// Why a text is no file of settings, and where.
pub(super) type Wrong = (Place, String);

/// Reads TOML.
pub(super) fn from_toml(file: &Arc<str>, text: &str) -> Result<Vec<Setting>, Wrong> {
    let line_of = |at: usize| Place {
        file: file.clone(),
        line: 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count(),
    };
    let document = toml::de::DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        (line_of(start), error.message().to_owned())
    })?;
    Ok(table(document.get_ref(), &line_of))
}

fn table(table: &toml::de::DeTable<'_>, line_of: &impl Fn(usize) -> Place) -> Vec<Setting> {
    let mut settings: Vec<_> = table
        .iter()
        .map(|(name, inner)| {
            let setting = Setting {
                name: name.get_ref().clone().into_owned(),
                at: line_of(name.span().start),
                value: value(inner.get_ref(), line_of),
            };
            (name.span().start, setting)
        })
        .collect();
    settings.sort_by_key(|(at, _)| *at);
    settings.into_iter().map(|(_, setting)| setting).collect()
}

fn value(value: &toml::de::DeValue<'_>, line_of: &impl Fn(usize) -> Place) -> Value {
    use toml::de::DeValue;
    match value {
        DeValue::String(text) => Value::Scalar(text.clone().into_owned()),
        DeValue::Integer(number) => {
            Value::Scalar(match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => number.to_string(),
                Err(_) => number.as_str().to_owned(),
            })
        }
        DeValue::Float(number) => Value::Scalar(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(time) => Value::Scalar(time.to_string()),
        DeValue::Array(array) => Value::List(
            array
                .iter()
                .map(|inner| self::value(inner.get_ref(), line_of))
                .collect(),
        ),
        DeValue::Table(inner) => Value::Group(table(inner, line_of)),
    }
}
