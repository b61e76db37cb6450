//! The configuration file: `proxysql.cnf` in libconfig's grammar, or `millrace.toml` with the same
//! rows.
//!
//! Both become the same tree of settings, with line numbers; `load` puts it into the tables of
//! memory.

mod libconfig;
mod load;
mod save;
mod tree;

pub use load::{KNOWN, Settings};
pub use save::text as saved;
pub use tree::{Setting, Value};

pub(crate) use load::into_memory;

use config::Refusal;
use std::path::Path;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// Its name, for messages.
    pub name: String,
    /// What it says.
    pub settings: Vec<Setting>,
}

impl File {
    /// Reads a file; what ends in `.toml` is TOML, everything else libconfig.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| refusal(format!("cannot read {name}: {error}")))?;
        Self::parse(&name, &text)
    }

    /// The same, of a text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Refusal> {
        let is_toml = Path::new(name).extension().is_some_and(|end| end == "toml");
        let settings = if is_toml {
            tree::from_toml(text)
        } else {
            libconfig::parse(text)
        };
        let settings =
            settings.map_err(|(line, words)| refusal(format!("{name} line {line}: {words}")))?;
        Ok(Self {
            name: name.to_owned(),
            settings,
        })
    }

    /// What it says of the process itself.
    pub fn process(&self) -> Result<Settings, Vec<Refusal>> {
        Settings::of(self)
    }
}

fn refusal(words: String) -> Refusal {
    Refusal {
        table: "",
        row: String::new(),
        column: "",
        words,
    }
}
