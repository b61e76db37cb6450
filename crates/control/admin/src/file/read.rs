//! A configuration file, read by the grammar that its name says.

use super::libconfig;
use super::process::Settings;
use super::tree::{self, Setting, refusal};
use config::Refusal;
use std::path::Path;
use std::sync::Arc;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// Settings in the file.
    pub settings: Vec<Setting>,
}

impl File {
    /// Reads a file; what ends in `.toml` is TOML, everything else libconfig.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| refusal(format!("cannot read {name}: {error}")))?;
        Self::parse(&name, text)
    }

    /// Reads a text as the file of this name.
    pub fn parse(name: &str, text: impl Into<String>) -> Result<Self, Refusal> {
        let is_toml = Path::new(name).extension().is_some_and(|end| end == "toml");
        let file: Arc<str> = name.into();
        let settings = if is_toml {
            tree::from_toml(&file, &text.into())
        } else {
            let read = |path: &Path| std::fs::read_to_string(path);
            libconfig::parse(&file, text.into(), &read)
        };
        let settings = settings.map_err(|(at, words)| refusal(format!("{at}: {words}")))?;
        Ok(Self { settings })
    }

    /// Returns what the file says of the process itself.
    pub fn process(&self) -> Result<Settings, Vec<Refusal>> {
        Settings::of(&self.settings)
    }
}
