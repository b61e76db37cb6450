//! The project's text files in memory, so that a rule is a function and its test needs no disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders that hold what was built or fetched, not what was written.
const NOT_OURS: &[&str] = &[
    "target",
    ".millrace-target",
    ".git",
    "node_modules",
    "__pycache__",
    ".cache",
    "bench/out",
    "corpus",
    "golden",
];

/// The folder above this crate's, as cargo says it when it runs us: a built programme may serve
/// several checkouts.
pub fn project_root() -> PathBuf {
    let here =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&here)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Files by their path from the project's root, with `/` between folders.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// The project that this crate stands in.
    pub fn of_this_project() -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(&project_root(), "")?;
        Ok(tree)
    }

    /// A tree of a test: pairs of path and text.
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self {
            files: files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
                .collect(),
        }
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let path = if prefix.is_empty() {
                name.clone()
            } else {
                format!("{prefix}/{name}")
            };
            if NOT_OURS.contains(&name.as_str()) || NOT_OURS.contains(&path.as_str()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.read_folder(&entry.path(), &path)?;
            } else if kind.is_file() {
                // What is not UTF-8 is data of a test; and a file may vanish while an editor saves
                // it.
                if let Ok(text) = fs::read_to_string(entry.path()) {
                    self.files.insert(path, text);
                }
            }
        }
        Ok(())
    }

    /// All files, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose name ends so (`.rs`, `Cargo.toml`).
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.ends_with(end))
    }

    /// One file's text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Is there such a file, or a folder with something in it?
    pub fn holds(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// How many files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
