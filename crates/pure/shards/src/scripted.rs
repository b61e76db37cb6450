//! Functions that scripts have: from the text of a key to the text of a bucket.
//!
//! docs/features/bucket-scripts.md

use crate::function::Bucket;
use crate::key::Value;
use std::fmt;
use std::sync::Arc;

/// Runs a script of this chunk and text for a key; its bucket, or why there is none. Without a key it is
/// only looked at.
type Run = fn(&str, &Arc<str>, Option<&[u8]>) -> Result<Vec<u8>, String>;

/// Whoever can run scripts. Each answer follows from the text and the key alone.
#[derive(Clone, Copy, Default)]
pub struct Runner(pub Option<Run>);

impl Runner {
    /// Looks whether a script may say buckets.
    ///
    /// # Errors
    /// A sentence: it does not compile, or has no such function.
    pub fn check(&self, chunk: &str, text: &Arc<str>) -> Result<(), String> {
        self.0
            .map_or(Ok(()), |run| run(chunk, text, None).map(drop))
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runner({})", self.0.is_some())
    }
}

impl PartialEq for Runner {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

impl Eq for Runner {}

/// A script that may say buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketScript {
    /// Its name in `mysql_scripts`.
    pub name: Box<str>,
    /// Its name in messages.
    pub chunk: Box<str>,
    /// Lua.
    pub text: Arc<str>,
    /// Checksum of the text: hexadecimal digits.
    pub sum: Box<str>,
    /// Whoever runs it.
    pub runner: Runner,
}

/// The function `LUA('name', 'checksum')`.
#[derive(Debug, Clone)]
pub struct Scripted {
    /// Name of the script.
    pub name: String,
    /// Checksum of its text; empty where none was said.
    pub sum: String,
    /// The script, if one of this name and checksum is in force.
    code: Option<Arc<BucketScript>>,
}

impl PartialEq for Scripted {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.sum) == (&other.name, &other.sum)
    }
}

impl Eq for Scripted {}

impl Scripted {
    /// Of a name and a checksum; no script is known yet.
    pub(crate) const fn new(name: String, sum: String) -> Self {
        Self {
            name,
            sum,
            code: None,
        }
    }

    /// Takes the script of its name and checksum.
    ///
    /// # Errors
    /// A predicate of the function: it has no checksum.
    pub(crate) fn bind(&mut self, scripts: &[Arc<BucketScript>]) -> Result<(), String> {
        let named = scripts.iter().find(|script| *script.name == *self.name);
        if self.sum.is_empty() {
            return Err(match named {
                Some(script) => format!(
                    "must say which script: LUA('{}', '{}') is the one that is in force",
                    script.name, script.sum
                ),
                None => format!(
                    "must say which script: LUA('{}', checksum); no script of this name with serves = 'buckets' is in force",
                    self.name
                ),
            });
        }
        self.code = named.filter(|script| *script.sum == *self.sum).cloned();
        Ok(())
    }

    /// Why it says no bucket at all, if it does not.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        self.code.is_none().then(|| {
            format!(
                "its partitions are said by the script '{}' with checksum {}, and that is not in force here: load it into mysql_scripts, with serves = 'buckets'",
                self.name, self.sum
            )
        })
    }

    /// The bucket of a key.
    ///
    /// # Errors
    /// A sentence: the script has failed.
    pub(crate) fn bucket(&self, value: &Value) -> Result<Bucket, String> {
        let Some(code) = &self.code else {
            return Err(self.missing().unwrap_or_default());
        };
        let run = code.runner.0.ok_or("no scripts are run here")?;
        run(&code.chunk, &code.text, Some(&value.text())).map(Bucket::Text)
    }
}

impl fmt::Display for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sum.as_str() {
            "" => write!(f, "LUA('{}')", self.name),
            sum => write!(f, "LUA('{}', '{sum}')", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Declared, Facts, Map, Numbering, PartitionRow, Spread, TableRow, spread};
    use sql::tree::DoubleQuotes;

    fn run(_: &str, _: &Arc<str>, key: Option<&[u8]>) -> Result<Vec<u8>, String> {
        match key.unwrap() {
            b"bad" => Err("it fails".into()),
            key => Ok(key[..1].to_vec()),
        }
    }

    fn map(function: &str, sum: &str) -> Result<Map, Vec<crate::Refused>> {
        let script = BucketScript {
            name: "first".into(),
            chunk: "[first]".into(),
            text: "".into(),
            sum: sum.into(),
            runner: Runner(Some(run)),
        };
        let table = TableRow {
            table_name: "users".into(),
            key_column: "k".into(),
            key_type: "VARCHAR".into(),
            function: function.into(),
            default_table: "users_default".into(),
            default_hostgroup: 1,
            ..TableRow::default()
        };
        let partition = PartitionRow {
            table_name: "users".into(),
            partition_name: "a".into(),
            partition_value: "a".into(),
            hostgroup_id: 2,
            ..PartitionRow::default()
        };
        let declared = Declared {
            tables: vec![table],
            partitions: vec![partition],
            ..Declared::default()
        };
        Map::build_with(declared, Vec::new(), vec![Arc::new(script)])
    }

    fn route(map: &Map, sql: &str) -> String {
        let facts = Facts {
            schema: "shop",
            lexing: sql::Lexing::Escapes,
            quotes: DoubleQuotes::Strings,
            comment: None,
            parameters: None,
            prepares: false,
            numbers: Numbering::Whichever,
            columns: None,
            bound: None,
            looked: None,
        };
        match spread(map, sql.as_bytes(), &facts).spread {
            Spread::Refused(words) => format!("refused: {words}"),
            Spread::Point(leg) => leg.partitions.join(" "),
            other => other.to_string(),
        }
    }

    #[test]
    fn a_script_says_partitions_if_it_is_the_one_of_the_map() {
        let same = map("LUA('first', '77')", "77").unwrap();
        let select = |key: &str| format!("SELECT 1 FROM users WHERE k = '{key}'");
        let insert = |key: &str| format!("INSERT INTO users (k) VALUES ('{key}')");
        assert_eq!(route(&same, &select("Anna")), "users.a");
        assert_eq!(route(&same, &insert("bert")), "users (default)");
        assert!(route(&same, &select("bad")).starts_with("all (2)"));
        assert!(route(&same, &insert("bad")).contains("it fails"));
        let other = map("LUA('first', '78')", "77").unwrap();
        for sql in [select("anna"), insert("anna"), "SELECT 1 FROM users".into()] {
            let words = route(&other, &sql);
            assert!(
                words.contains("checksum 78, and that is not in force"),
                "{words}"
            );
        }
        let words = map("LUA('first')", "77").unwrap_err()[0].words.clone();
        assert!(words.contains("LUA('first', '77') is the one"), "{words}");
    }
}
