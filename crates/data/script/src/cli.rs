//! `millrace script`: scripts are looked through and tested without a server. Files are read by who
//! calls.

use crate::bench::{self, Outcome};
use crate::vm::{Limits, Vm};
use config::{Given, Script, ScriptRow, Scripts};
use lua::lint::{self, Finding, Known};
use lua::syntax;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes that a script may use here.
const LIMITS: Limits = Limits {
    memory_max: 256 << 20,
};

/// Begins a comment that names globals which somebody else defines.
const GLOBALS: &str = "-- globals:";

/// The world around it.
pub struct World<'a> {
    /// Reads a file, or says why it cannot.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// Says a line.
    pub say: &'a mut dyn FnMut(&str),
}

/// Why a file cannot be read, in words that follow its name.
pub fn unread(error: std::io::Error) -> String {
    format!("cannot be read: {error}")
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

/// Compiles scripts and the files that they require, and looks them through.
///
/// # Errors
/// A line for everything that is wrong.
pub fn check(paths: &[String], world: &mut World<'_>) -> Result<(), Vec<String>> {
    let vm = Vm::new(LIMITS).map_err(|failed| vec![failed.0])?;
    let mut known = vm.known().map_err(|failed| vec![failed.0])?;
    // Files of LuaJIT's own world that a script may be run in, too.
    known.globals.insert("arg".into());
    let mut of_tests = known.clone();
    of_tests.globals.insert("equal".into());
    let mut wrong = Vec::new();
    for path in paths {
        let before = wrong.len();
        let known = match path.ends_with("_test.lua") {
            true => &of_tests,
            false => &known,
        };
        match script(path, world) {
            Ok(script) => look(&vm, &script, known, world, &mut wrong),
            Err(words) => wrong.push(words),
        }
        if wrong.len() == before {
            (world.say)(&format!("{path}: well"));
        }
    }
    none(wrong)
}

/// The script of a file, with what it requires.
fn script(path: &str, world: &World<'_>) -> Result<Arc<Script>, String> {
    (world.read)(path).map_err(|words| format!("{path}: {words}"))?;
    let row = ScriptRow {
        script_name: path.to_owned(),
        path: path.to_owned(),
        ..ScriptRow::default()
    };
    let built = Scripts::build([row], Given::default(), world.read);
    let built = built.map_err(|refusals| match refusals.first() {
        Some(refusal) => refusal.to_string(),
        None => format!("{path}: cannot be read"),
    })?;
    let script = built.active().first().cloned();
    script.ok_or_else(|| format!("{path}: cannot be read"))
}

fn look(vm: &Vm, script: &Script, known: &Known, world: &mut World<'_>, wrong: &mut Vec<String>) {
    let texts = script
        .modules
        .iter()
        .map(|module| (&*module.chunk, &*module.text));
    let texts: Vec<_> = [(&*script.chunk, &*script.text)]
        .into_iter()
        .chain(texts)
        .collect();
    let (mut known, mut blocks) = (known.clone(), Vec::new());
    for (chunk, text) in texts {
        if let Err(failed) = vm.check(chunk, text) {
            wrong.push(failed.0.trim_start_matches("(load) ").to_owned());
            continue;
        }
        match syntax::read(text) {
            Ok(block) => {
                known.globals.extend(lint::defined(&block));
                known.globals.extend(declared(text));
                blocks.push((chunk, block));
            }
            Err(unread) => {
                let (line, words) = (unread.line, unread.words);
                let words = format!("{chunk}:{line}: it cannot be looked through: {words}");
                (world.say)(&words);
            }
        }
    }
    for (chunk, block) in blocks {
        for Finding { line, words } in lint::lint(&block, &known) {
            wrong.push(format!("{chunk}:{line}: {words}"));
        }
    }
    for hook in crate::hooks_of_the_greeting(&script.text) {
        let words =
            "is called only where logins are relayed, and for a script that serves all users";
        (world.say)(&format!("{}: {hook}() {words}", script.chunk));
    }
}

/// Globals that a text says others define.
fn declared(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(GLOBALS));
    let names = lines.flat_map(|names| names.split([' ', ',']));
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Runs the tests of scripts: of `a.lua` those in `a_test.lua`. `coverage`: lines that no test has run
/// are said, too.
///
/// # Errors
/// A line for each test that failed, and each file that cannot be run.
pub fn test(paths: &[String], coverage: bool, world: &mut World<'_>) -> Result<(), Vec<String>> {
    let mut wrong = Vec::new();
    for path in paths {
        if let Err(words) = test_one(path, coverage, world, &mut wrong) {
            wrong.push(words);
        }
    }
    none(wrong)
}

fn test_one(
    path: &str,
    coverage: bool,
    world: &mut World<'_>,
    wrong: &mut Vec<String>,
) -> Result<(), String> {
    let script = script(path, world)?;
    let beside = format!("{}_test.lua", path.strip_suffix(".lua").unwrap_or(path));
    let text = (world.read)(&beside).map_err(|words| format!("{beside}: {words}"))?;
    let ran = bench::run(&script, (&beside, &text), coverage, LIMITS)?;
    let (mut passed, mut failed) = (0, 0);
    for Outcome { name, said, error } in &ran.outcomes {
        said.iter()
            .for_each(|line| (world.say)(&format!("    {line}")));
        match error {
            None => {
                passed += 1;
                (world.say)(&format!("{path}: {name}: well"));
            }
            Some(words) => {
                failed += 1;
                wrong.push(format!("{path}: {name}: {words}"));
            }
        }
    }
    if passed + failed == 0 {
        return Err(format!(
            "{beside}: has no function whose name begins with test_"
        ));
    }
    (world.say)(&format!("{path}: {passed} passed, {failed} failed"));
    for (chunk, lines) in &ran.never {
        match lines.is_empty() {
            true => (world.say)(&format!("{chunk}: every line was run")),
            false => (world.say)(&format!("{chunk}: lines never run: {}", ranges(lines))),
        }
    }
    Ok(())
}

/// Such as `3, 7-9`.
fn ranges(lines: &[u32]) -> String {
    let mut shown: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match shown.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => shown.push((*line, *line)),
        }
    }
    let shown = shown.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn none(wrong: Vec<String>) -> Result<(), Vec<String>> {
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong),
    }
}
