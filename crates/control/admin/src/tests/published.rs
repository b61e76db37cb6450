//! Configuration files in the style of those that people publish: each starts, with the warnings
//! that stand beside it, and what is saved of it is the same when it is read again.
//!
//! The files are in `tests/published`. After a change of words, the lines of
//! `millrace --check -c FILE` go there.

use crate::engine::{Engine, View};
use crate::file::{self, File};
use crate::layers;
use crate::open::{Admin, Options, check};
use crate::tables::Module;
use crate::testing::Directory;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published")
}

fn all() -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "cnf"))
        .collect();
    files.sort_unstable();
    assert!(files.len() >= 10, "{files:?}");
    files
}

#[test]
fn every_file_starts_and_says_what_it_is_expected_to_say() {
    let prefix = format!("{}/", folder().display());
    for path in all() {
        let found = check(&path);
        assert!(found.errors.is_empty(), "{path:?}: {:?}", found.errors);
        let told: String = found
            .warnings
            .iter()
            .map(|warning| format!("{warning}\n").replace(&prefix, ""))
            .collect();
        let file = path.with_extension("warnings");
        if std::env::var_os("UPDATE_EXPECT").is_some() && !told.is_empty() {
            fs::write(&file, &told).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(told, expected, "{path:?}");
    }
}

#[test]
fn what_is_saved_of_a_file_is_the_same_when_it_is_read_again() {
    for path in all() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let directory = Directory::new(name);
        let options = Options {
            datadir: Some(directory.0.clone()),
            config: Some(path.clone()),
            ..Options::default()
        };
        let first = Admin::open(&options).unwrap();
        assert!(first.refused().is_empty(), "{name}");
        let saved = file::saved(first.engine.conn()).unwrap();
        let again = Engine::open(None, View::Admin).unwrap();
        let file = File::parse("saved.cnf", saved.as_str()).unwrap();
        let mut warnings = file::into_memory(&again, &file, Module::ALL)
            .unwrap()
            .warnings;
        // A backspace in an expression is kept as it is.
        warnings.retain(|warning| !warning.words.contains("backspace"));
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
        layers::add_defaults(again.conn()).unwrap();
        assert_eq!(file::saved(again.conn()).unwrap(), saved, "{name}");
        // The next start finds it in the database, and nothing to add to it.
        drop(first);
        let second = Admin::open(&options).unwrap();
        assert!(
            second.refused().is_empty(),
            "{name}: {:?}",
            second.refused()
        );
        assert_eq!(file::saved(second.engine.conn()).unwrap(), saved, "{name}");
    }
}

#[test]
fn a_check_writes_nothing_and_tells_what_a_load_would_refuse() {
    let directory = Directory::new("check");
    let path = directory.0.join("proxysql.cnf");
    let text = "datadir=\"data\"\nmysql_variables={ thread=2 }\n\
                mysql_servers=({ hostgroup=1 },\n { address=\"a\" })\n\
                mysql_query_rules=({ rule_id=1 active=1 match_pattern=\"(\" })\n\
                admin_variables={ mysql_ifaces=\"0.0.0.0:6032\" }";
    fs::write(&path, text).unwrap();
    let found = check(&path);
    let told = |all: &[config::Refusal]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let at = path.display();
    assert_eq!(
        told(&found.warnings)[0],
        format!(
            "{at} line 2: 'thread' is no variable of mysql_variables and is left out; did you mean 'threads'?"
        )
    );
    let errors = told(&found.errors);
    let left_out = format!("{at} line 3: mysql_servers: hostname is missing; this row is left out");
    assert_eq!(told(&found.warnings)[1], left_out);
    let warnings = told(&found.warnings);
    assert!(
        warnings
            .iter()
            .any(|words| words.contains("everybody knows")),
        "{warnings:?}"
    );
    assert!(errors.iter().any(|words| words.contains("rule_id 1")));
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
    let missing = check(&directory.0.join("none.cnf"));
    assert!(missing.errors[0].words.starts_with("cannot read"));
}
