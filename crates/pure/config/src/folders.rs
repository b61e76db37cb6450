//! Folders beneath which a script may have files, and where a file of a name stands.

use std::path::{Component, Path};

/// Folders of a script's row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folders(Vec<Box<str>>);

/// Place of a script's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below `script-logs` in the data directory, by this relative name.
    Own(String),
    /// At this path, which the row allows.
    At(String),
}

impl Folders {
    /// From absolute paths with commas between them.
    ///
    /// # Errors
    /// Words about one that is none.
    pub fn parse(list: &str) -> Result<Self, String> {
        let entries = list.split(',').map(str::trim);
        let folders = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let is_plain = |part| !matches!(part, Component::ParentDir);
            let path = Path::new(entry);
            match path.is_absolute() && path.components().all(is_plain) {
                true => Ok(entry.into()),
                false => Err(format!(
                    "'{entry}' is no folder; one is /var/log/scripts, from the root on and without '..'"
                )),
            }
        });
        folders.collect::<Result<_, String>>().map(Self)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns where a file of this name stands. A script's root is `script-logs`, unless a folder
    /// of its row has the file; a relative name is below the first folder, if there is one.
    ///
    /// # Errors
    /// Words for the script's author: the name is none.
    pub fn place(&self, name: &str) -> Result<Place, String> {
        let path = Path::new(name);
        let plain = |part: Component<'_>| match part {
            Component::Normal(part) => Some(Some(part.to_string_lossy().into_owned())),
            Component::RootDir | Component::CurDir => Some(None),
            _ => None,
        };
        let Some(parts) = path.components().map(plain).collect::<Option<Vec<_>>>() else {
            return Err(format!(
                "'{name}' has '..' in it, and a script's files have none"
            ));
        };
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() || name.contains('\0') || name.ends_with('/') {
            return Err(format!("'{name}' is no name of a file"));
        }
        let relative = parts.join("/");
        Ok(match (path.is_absolute(), self.0.first()) {
            (true, _) if self.0.iter().any(|folder| path.starts_with(&**folder)) => {
                Place::At(format!("/{relative}"))
            }
            (false, Some(folder)) => {
                Place::At(format!("{}/{relative}", folder.trim_end_matches('/')))
            }
            _ => Place::Own(relative),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_in_a_folder_of_the_row_or_below_the_scripts_own() {
        let (none, two) = (
            Folders::default(),
            Folders::parse("/var/log/scripts, /srv/x/,").unwrap(),
        );
        let own = |name: &str| Ok(Place::Own(name.into()));
        let at = |name: &str| Ok(Place::At(name.into()));
        assert_eq!(none.place("a.log"), own("a.log"));
        assert_eq!(none.place("./deep//a.log"), own("deep/a.log"));
        assert_eq!(none.place("/var/log/a.log"), own("var/log/a.log"));
        assert_eq!(two.place("a.log"), at("/var/log/scripts/a.log"));
        assert_eq!(
            two.place("/var/log/scripts/a.log"),
            at("/var/log/scripts/a.log")
        );
        assert_eq!(two.place("/srv/x/./deep/a"), at("/srv/x/deep/a"));
        assert_eq!(two.place("/var/log/scripts2/a"), own("var/log/scripts2/a"));
        assert_eq!(Folders::parse("/").unwrap().place("/etc/a"), at("/etc/a"));
        assert_eq!(Folders::parse("/").unwrap().place("a"), at("/a"));
        for name in [
            "",
            "/",
            ".",
            "..",
            "../a",
            "/var/log/scripts/../../a",
            "a\0b",
            "a/",
        ] {
            assert!(two.place(name).is_err(), "{name:?}");
        }
        for list in ["logs", "/a/../b", "/a, b"] {
            assert!(Folders::parse(list).is_err(), "{list}");
        }
    }
}
