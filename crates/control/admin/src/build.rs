//! From the rows in memory to the next snapshot: all reasons against it at once, or the whole.

use crate::engine::SqlError;
use crate::parts::{self, Outcome, Pairs, checked_variables, saved_variables};
use crate::rows::{self, sql_refusal};
use crate::tables::{self, Kind, Module, Runtime};
use crate::{access, engine::Engine};
use config::{Alone, Help, Refusal, Snapshot, UserRow, Variable, Variables};
use rusqlite::Connection;
use std::sync::Arc;

/// Rows that were read, and what is to be made of them: on this thread or on another.
pub(crate) struct Read(Box<Making>);

/// A snapshot, and what there is to say about it; or every reason against it.
pub(crate) type Built = Result<(Snapshot, Vec<Refusal>), Vec<Refusal>>;
type Making = dyn FnOnce(&dyn Help) -> Built + Send;

impl Read {
    /// A snapshot that differs in one module from that for which was read.
    pub(crate) fn build(self, help: &dyn Help) -> Built {
        (self.0)(help)
    }
}

/// A snapshot that differs from `now` in one module, and what there is to say about it.
pub(crate) fn module(engine: &Engine, now: &Snapshot, module: Module) -> Built {
    read(engine, now, module)?.build(&Alone)
}

/// Values that count at the start where what was saved cannot be understood: nobody is let past a
/// firewall that may have been on.
pub(crate) const IF_UNREADABLE: &[(&str, &str)] = &[
    ("mysql-firewall_whitelist_enabled", "true"),
    ("mysql-automatic_detect_sqli", "true"),
];
/// Of these no default counts: everybody knows it.
const CREDENTIALS: [&str; 2] = ["admin-admin_credentials", "admin-stats_credentials"];

/// For the start: what memory has of a module, if it can be in force, and what cannot be. Of
/// variables, each counts for itself. Unless all of it `must` be, the admin port is put into force
/// as far as it is safe: whoever was saved as an administrator is one, and nobody else.
pub(crate) fn at_start(
    engine: &Engine,
    now: &Snapshot,
    module: Module,
    must: bool,
) -> (Option<(Snapshot, Vec<Refusal>)>, Vec<Refusal>) {
    let mut refused = Vec::new();
    let built = match module.prefix() {
        None => with_idle_rows(engine, now, module).or_else(|refused| {
            if must || module != Module::Rules {
                Err(refused)
            } else {
                unchecked(engine, now, refused)
            }
        }),
        Some(prefix) => saved_variables(engine.conn(), prefix)
            .map_err(|error| vec![sql_refusal("global_variables", error)])
            .and_then(|pairs| {
                let (usable, unusable) = if must {
                    usable(pairs)
                } else {
                    safe(pairs, prefix)
                };
                refused = unusable;
                let next = Snapshot {
                    generation: now.generation + 1,
                    ..now.clone()
                };
                let family = if must { prefix } else { "" };
                making(next, move |next, help| {
                    checked_variables(usable, family, next, help)
                })
                .build(&Alone)
            }),
    };
    match built {
        Ok((next, mut notices)) => {
            if module == Module::AdminVariables && !must {
                notices.extend(access::only_here(&next.variables));
            }
            (Some((next, notices)), refused)
        }
        Err(more) => (None, [refused, more].concat()),
    }
}

/// A module of which some tables may have rows that nothing acts on yet: a start keeps them and
/// says so.
fn with_idle_rows(engine: &Engine, now: &Snapshot, module: Module) -> Built {
    let (next, mut notices) = rows_of(engine, now, module)?.build(&Alone)?;
    let idle = not_yet(engine.conn(), module, |count, does| {
        let (rows, stay, them) = match count {
            1 => ("1 row".to_owned(), "stays saved and does", "it"),
            _ => (format!("{count} rows"), "stay saved and do", "them"),
        };
        format!(
            "has {rows}, which {stay} nothing: this version {does} yet; LOAD {} TO RUNTIME refuses \
             {them}",
            module.words()
        )
    });
    notices.extend(idle);
    Ok((next, notices))
}

/// The rules that were saved, without [`Variables::mysql_query_rewrite_check`]: what an older
/// version took is no reason to serve without any rule. What is wrong with them is said.
fn unchecked(engine: &Engine, now: &Snapshot, refused: Vec<Refusal>) -> Built {
    let mut variables = Variables::clone(&now.variables);
    variables.mysql_query_rewrite_check = false;
    let lenient = Snapshot {
        variables: Arc::new(variables),
        ..now.clone()
    };
    let Ok((next, mut notices)) = module(engine, &lenient, Module::Rules) else {
        return Err(refused);
    };
    notices.extend(refused.into_iter().map(|refusal| Refusal {
        words: format!("{} (a LOAD would be refused)", refusal.words),
        ..refusal
    }));
    Ok((
        Snapshot {
            variables: now.variables.clone(),
            ..next
        },
        notices,
    ))
}

/// The variables that can have the values that they are given, and why others cannot.
fn usable(pairs: Vec<(String, Vec<u8>)>) -> (Pairs, Vec<Refusal>) {
    let (mut usable, mut refused) = (Vec::new(), Vec::new());
    for (name, bytes) in pairs {
        let (why, value) = match String::from_utf8(bytes) {
            Ok(value) => (Variables::build([(&name, &value)]).err(), value),
            Err(error) => (
                Some(not_utf8(&name)),
                String::from_utf8_lossy(error.as_bytes()).into_owned(),
            ),
        };
        let Some(why) = why else {
            usable.push((name, value));
            continue;
        };
        let credentials = CREDENTIALS.contains(&name.as_str()).then_some(value);
        let instead = IF_UNREADABLE
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value);
        refused.extend(why.into_iter().map(|refusal| match instead {
            Some(value) => Refusal {
                words: format!("{}; until then it is {value}", refusal.words),
                ..refusal
            },
            None => refusal,
        }));
        usable.extend(
            instead
                .map(str::to_owned)
                .or(credentials)
                .map(|value| (name, value)),
        );
    }
    (usable, refused)
}

fn not_utf8(name: &str) -> Vec<Refusal> {
    let column = Variable::named(name).map_or("", |known| known.name);
    vec![Refusal {
        table: "global_variables",
        row: name.into(),
        column,
        words: "must be a text in UTF-8".into(),
    }]
}

/// Returns what [`usable`] does, and of the admin port's variables what there is to say about who can
/// come in.
fn safe(pairs: Vec<(String, Vec<u8>)>, prefix: &str) -> (Pairs, Vec<Refusal>) {
    let (usable, mut refused) = usable(pairs);
    if prefix == "admin-"
        && let Ok((wanted, _)) = Variables::build(usable.iter().map(|(name, value)| (name, value)))
    {
        refused.extend(access::at_start(&wanted));
    }
    (usable, refused)
}

/// Why variables in memory would not be in force after a start.
pub(crate) fn unusable_variables(
    conn: &Connection,
    prefix: &str,
) -> Result<Vec<Refusal>, SqlError> {
    Ok(safe(saved_variables(conn, prefix)?, prefix).1)
}

/// Reads what a snapshot is made of that differs from `now` in one module.
pub(crate) fn read(engine: &Engine, now: &Snapshot, module: Module) -> Result<Read, Vec<Refusal>> {
    let refused = not_yet(engine.conn(), module, |count, does| match count {
        1 => format!("has 1 row, but this version {does} yet; without it, the rest can be loaded"),
        _ => format!(
            "has {count} rows, but this version {does} yet; without them, the rest can be loaded"
        ),
    });
    match rows_of(engine, now, module) {
        Ok(read) if refused.is_empty() => Ok(read),
        // What the rows themselves have against it is said as well.
        Ok(read) => Err(refused
            .into_iter()
            .chain(read.build(&Alone).err().unwrap_or_default())
            .collect()),
        Err(more) => Err(refused.into_iter().chain(more).collect()),
    }
}

/// Reads the rows of a module that the proxy works by.
fn rows_of(engine: &Engine, now: &Snapshot, module: Module) -> Result<Read, Vec<Refusal>> {
    let conn = engine.conn();
    let next = Snapshot {
        generation: now.generation + 1,
        ..now.clone()
    };
    let change = parts::of(module).map(|part| part.read(conn)).transpose()?;
    Ok(making(next, move |next, help| match change {
        Some(change) => change(next, help),
        None => Ok(Vec::new()),
    }))
}

fn making(
    mut next: Snapshot,
    change: impl FnOnce(&mut Snapshot, &dyn Help) -> Outcome + Send + 'static,
) -> Read {
    Read(Box::new(move |help| {
        let notices = change(&mut next, help)?;
        Ok((next, notices))
    }))
}

/// A snapshot in which one user is as memory has it, and what there is to say about that user.
pub(crate) fn one_user(engine: &Engine, now: &Snapshot, name: &str) -> Built {
    let only = format!("WHERE username = {}", crate::commands::literal(name));
    let mine = rows::read::<UserRow>(engine.conn(), &only)?;
    if mine.is_empty() {
        return Err(vec![Refusal {
            table: "mysql_users",
            row: String::new(),
            column: "username",
            words: format!("'{name}' is not there"),
        }]);
    }
    let mut next = Snapshot {
        generation: now.generation + 1,
        ..now.clone()
    };
    let others = now
        .users
        .rows()
        .into_iter()
        .filter(|row| row.username != name);
    let before = parts::unseen(now);
    let mut notices = parts::build_users(&mut next, others.chain(mine).collect(), &Alone)?;
    // What is so for others has been said when they were loaded.
    notices.retain(|notice| !before.contains(notice) || notice.row == parts::of_user(name));
    Ok((next, notices))
}

/// Words about tables with rows that nothing here works by: `words` of how many there
/// are, and of what this version does not do.
fn not_yet(conn: &Connection, module: Module, words: impl Fn(i64, &str) -> String) -> Vec<Refusal> {
    let mut told = Vec::new();
    for table in tables::of(module) {
        let Kind::Declared {
            runtime: Runtime::NotYet { unless, does },
            ..
        } = table.kind
        else {
            continue;
        };
        let harmless = if unless.is_empty() { "0" } else { unless };
        let count = format!(
            "SELECT count(*) FROM main.{} WHERE NOT ({harmless})",
            table.name
        );
        let words = match conn.query_row(&count, [], |row| row.get(0)) {
            Ok(0) => continue,
            Ok(count) => words(count, does),
            Err(error) => SqlError::from(error).0,
        };
        told.push(Refusal {
            table: table.name,
            row: String::new(),
            column: "",
            words,
        });
    }
    told
}
