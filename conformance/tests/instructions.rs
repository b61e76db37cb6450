//! A gate on the cost of a query: instructions of user code of the proxy for each kind of statement,
//! counted by callgrind, are those of `instructions.txt`, give or take [`MARGIN_PCT`].
//!
//! The proxy is the test build, which decides and follows each statement twice to compare: the
//! counts are many times those of a release (`make cost`), and grow when those grow. With
//! `UPDATE_EXPECT=1` the file is written anew.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::process::{TempFolder, output};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, in_path};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

type Outcome = Result<(), String>;

/// Percentage by which a count may differ.
const MARGIN_PCT: u64 = 3;

/// Statements of each kind that are counted.
const COUNTED: u64 = 400;

/// Statements before that: what is remembered of them is remembered then.
const BEFORE: u64 = 150;

const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instructions.txt");

fn main() {
    let missing = in_path("callgrind_control")
        .is_none()
        .then_some("there is no valgrind: scripts/setup.sh test");
    trials::run_once_unless(missing, &[("a_statement_costs_what_it_did", counted)])
}

/// The statements of a kind: the nth of them, and how many each call is.
type Kind = (&'static str, fn(&mut Raw, u64) -> std::io::Result<()>, u64);

const KINDS: [Kind; 4] = [
    ("point select", |client, nth| select(client, nth), 1),
    ("update", update, 1),
    ("transaction of three selects", transaction, 5),
    ("SET and select of who connects anew", set_and_select, 2),
];

fn select(client: &mut Raw, nth: u64) -> std::io::Result<()> {
    client
        .ask(&format!("SELECT c FROM conf.t WHERE a = {}", nth % 100))
        .map(drop)
}

fn update(client: &mut Raw, nth: u64) -> std::io::Result<()> {
    client
        .ask(&format!(
            "UPDATE conf.t SET c = 'x{nth}' WHERE a = {}",
            nth % 100
        ))
        .map(drop)
}

fn transaction(client: &mut Raw, nth: u64) -> std::io::Result<()> {
    client.ask("BEGIN")?;
    (0..3).try_for_each(|more| select(client, nth + more))?;
    client.ask("COMMIT").map(drop)
}

fn set_and_select(client: &mut Raw, nth: u64) -> std::io::Result<()> {
    client.ask("SET NAMES utf8mb4, @@SESSION.wait_timeout = 2147483")?;
    select(client, nth)
}

fn counted(_: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let rows: Vec<_> = (0..100).map(|a| format!("({a}, 'value of {a}')")).collect();
    server.root(&format!(
        "CREATE TABLE conf.t (a INT PRIMARY KEY, c VARCHAR(120)); INSERT INTO conf.t VALUES {}",
        rows.join(", ")
    ))?;
    let folder = TempFolder::new("instructions").map_err(|error| error.to_string())?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    // Those of ProxySQL's own first example.
    wish.rules = "{ rule_id = 1, active = 1, match_pattern = \"^SELECT.*FOR UPDATE$\", destination_hostgroup = 0, apply = 1 }, \
                  { rule_id = 2, active = 1, match_pattern = \"^SELECT.*\", destination_hostgroup = 0, apply = 1 }"
        .to_owned();
    wish.starter = Some(starter(folder.path())?);
    let proxy = Proxy::start(Driver::Epoll, &wish)?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    let mut now = Vec::new();
    for (name, ask, each) in KINDS {
        let mut say =
            |from: u64, calls: u64| (from..from + calls).try_for_each(|nth| ask(&mut client, nth));
        let failed = |error: std::io::Error| format!("{name}: {error}");
        say(0, BEFORE).map_err(failed)?;
        control(&proxy, "-z")?;
        say(BEFORE, COUNTED / each).map_err(failed)?;
        let total = dumped(&proxy, folder.path())?;
        now.push((name, total / COUNTED));
    }
    compare(&now)
}

/// A programme that starts another under callgrind.
fn starter(folder: &Path) -> Result<std::path::PathBuf, String> {
    let path = folder.join("starter");
    let out = folder.join("dump").display().to_string();
    let text = format!(
        "#!/bin/sh\nexec valgrind --tool=callgrind --separate-threads=yes --callgrind-out-file={out}.%p \"$@\"\n"
    );
    fs::write(&path, text).map_err(|error| error.to_string())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    Ok(path)
}

fn control(proxy: &Proxy, what: &str) -> Outcome {
    let mut command = Command::new("callgrind_control");
    command.args([what, &proxy.id().to_string()]);
    let (done, said) = output(&mut command, HANGS)?;
    expect(done, || format!("callgrind_control {what}: {said}"))
}

/// Instructions of the core since the counters were zeroed. Other threads work by the clock, which
/// is another on each machine.
fn dumped(proxy: &Proxy, folder: &Path) -> Result<u64, String> {
    let threads = fs::read_dir(format!("/proc/{}/task", proxy.id()))
        .map_err(|error| error.to_string())?
        .count();
    // One file is the core's: no other thread has so much to do.
    let total = || -> Result<Option<u64>, String> {
        let mut totals = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if !name.starts_with("dump.") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let found: Option<u64> = text.lines().find_map(|line| {
                line.strip_prefix("totals: ")
                    .or_else(|| line.strip_prefix("summary: "))?
                    .trim()
                    .parse()
                    .ok()
            });
            totals.extend(found);
        }
        let all = totals.len() >= threads;
        Ok(totals.into_iter().max().filter(|_| all))
    };
    for old in fs::read_dir(folder)
        .map_err(|error| error.to_string())?
        .flatten()
    {
        if old.file_name().to_string_lossy().starts_with("dump.") {
            fs::remove_file(old.path()).map_err(|error| error.to_string())?;
        }
    }
    control(proxy, "-d")?;
    let mut found = None;
    soon("true", || {
        found = found.or(total()?);
        Ok(found.is_some().to_string())
    })?;
    found.ok_or_else(|| "callgrind has written nothing".to_owned())
}

/// Looks whether the counts are those of the file; those of another compiler are not compared.
fn compare(now: &[(&str, u64)]) -> Outcome {
    let (_, compiler) = output(Command::new("rustc").arg("--version"), HANGS)?;
    let compiler = compiler.trim();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let mut text = format!("{compiler}\n");
        for (name, count) in now {
            text += &format!("{name}: {count}\n");
        }
        return fs::write(EXPECTED, text).map_err(|error| error.to_string());
    }
    let text = fs::read_to_string(EXPECTED).map_err(|error| error.to_string())?;
    let mut lines = text.lines();
    if lines.next() != Some(compiler) {
        eprintln!("SKIPPED: counts of instructions are of another compiler than {compiler}");
        return Ok(());
    }
    let wanted: Vec<_> = lines.filter_map(|line| line.rsplit_once(": ")).collect();
    same(&wanted.len().to_string(), &now.len().to_string())?;
    let mut wrong = Vec::new();
    for ((name, count), (known, wanted)) in now.iter().zip(wanted) {
        same(name, known)?;
        let wanted: u64 = wanted
            .parse()
            .map_err(|_| format!("{EXPECTED}: {wanted}"))?;
        if count.abs_diff(wanted) * 100 > wanted * MARGIN_PCT {
            wrong.push(format!("{name}: {count} instructions instead of {wanted}"));
        }
    }
    expect(wrong.is_empty(), || {
        format!(
            "{}\nIf that is meant: UPDATE_EXPECT=1 cargo test -p conformance --test instructions",
            wrong.join("\n")
        )
    })
}
