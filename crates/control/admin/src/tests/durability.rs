//! kill -9 at any moment: the disk holds what was saved last, or what was being saved, as a whole.

use crate::engine::{Engine, View};
use crate::layers;
use crate::tables::Module;
use crate::testing::Directory;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The child saves ten servers again and again; in each round all ten have the round's number as
/// weight.
const SERVERS: u64 = 10;

fn directory_of(parent: u32) -> PathBuf {
    std::env::temp_dir().join(format!("millrace-admin-killed-{parent}"))
}

#[test]
#[ignore = "run by the test below, which kills it"]
fn child_saves_until_it_is_killed() {
    use std::io::Write as _;
    let directory = directory_of(std::os::unix::process::parent_id());
    let engine = Engine::open(Some(&directory), View::Admin).unwrap();
    layers::all_from_disk(&engine).unwrap();
    let saved: Option<i64> = engine
        .conn()
        .query_row("SELECT max(weight) FROM main.mysql_servers", [], |row| {
            row.get(0)
        })
        .unwrap();
    for round in saved.unwrap_or(0) + 1..10_000_000 {
        engine.run("DELETE FROM mysql_servers", &[]).unwrap();
        for server in 0..SERVERS {
            let sql = format!(
                "INSERT INTO mysql_servers (hostgroup_id, hostname, weight) VALUES ({server}, 'h{server}', {round})"
            );
            engine.run(&sql, &[]).unwrap();
        }
        layers::to_disk(&engine, Module::Servers, None).unwrap();
        writeln!(std::io::stdout(), "\nsaved {round}").unwrap();
        std::io::stdout().flush().unwrap();
    }
}

#[test]
fn what_was_saved_survives_a_kill_at_any_moment() {
    let path = directory_of(std::process::id());
    std::fs::create_dir_all(&path).unwrap();
    let directory = Directory(path);
    let mut last = 0;
    for life in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "tests::durability::child_saves_until_it_is_killed",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let told_number = |line: String| {
            line.strip_prefix("saved ")
                .and_then(|round| round.parse::<i64>().ok())
        };
        // Let it save at least once, then a moment that is another each time.
        while let Some(Ok(line)) = told.next() {
            if let Some(round) = told_number(line) {
                last = round;
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(5 + life * 7));
        child.kill().unwrap();
        child.wait().unwrap();
        last = told
            .map_while(Result::ok)
            .filter_map(told_number)
            .last()
            .unwrap_or(last);

        let engine = Engine::open(Some(&directory.0), View::Admin).unwrap();
        let one = |sql: &str| {
            engine
                .conn()
                .query_row(sql, [], |row| row.get::<_, String>(0))
                .unwrap()
        };
        assert_eq!(one("PRAGMA disk.integrity_check"), "ok");
        let found = one(
            "SELECT count(*) || ' ' || count(DISTINCT weight) || ' ' || min(weight) FROM disk.mysql_servers",
        );
        let saved: i64 = found
            .strip_prefix("10 1 ")
            .unwrap_or_else(|| panic!("half a save: {found}"))
            .parse()
            .unwrap();
        assert!(
            saved >= last,
            "round {last} was confirmed, round {saved} is there"
        );
    }
}
