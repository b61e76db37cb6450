//! Compression at every level: long results and long statements arrive whole, from a real server
//! and at a real client.
#![forbid(unsafe_code)]

use std::process::Command;

use conformance::beside::set;
use conformance::clients::{Client, app};
use conformance::process::output;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect};
use conformance::watch::HANGS;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[(
        "long_results_arrive_whole_at_every_level_of_compression",
        levels,
    )])
}

/// A row beyond 16 MiB, which a frame cannot hold.
const LONG: &str = "SELECT /* create_new_connection=1 */ REPEAT('much ', 3400000);";
/// Many rows, and what packs them.
const MANY: &str = "SELECT /* create_new_connection=1 */ id, REPEAT(SHA2(id, 256), 4) FROM conf.numbers ORDER BY id; \
                    SHOW /* create_new_connection=1 */ STATUS LIKE 'Compression%'";

/// Returns what MySQL's own client prints.
fn printed(port: u16, more: &[String], sql: &str) -> Result<String, String> {
    let mut command = Command::new(Vendor::MySql.programs()?.client);
    command.args([
        "--no-defaults",
        "--protocol=tcp",
        "--host=127.0.0.1",
        "--user=app",
        "--password=secret",
        "--batch",
    ]);
    command.args([
        "--database=conf",
        "--skip-column-names",
        "--quick",
        "--comments",
        "--max-allowed-packet=64M",
        &format!("--port={port}"),
    ]);
    match output(command.args(more).args(["-e", sql]), HANGS)? {
        (true, words) => Ok(words),
        (false, words) => Err(words
            .lines()
            .last()
            .unwrap_or_default()
            .chars()
            .take(500)
            .collect()),
    }
}

/// All but the lines of SHOW STATUS, and these.
fn parts(printed: &str) -> (Vec<&str>, Vec<&str>) {
    printed
        .lines()
        .filter(|line| !line.starts_with("mysql: [Warning]"))
        .partition(|line| !line.starts_with("Compression"))
}

fn levels(driver: Driver) -> Outcome {
    if let Err(why) = Vendor::MySql.programs() {
        eprintln!("SKIPPED: levels of compression before MySQL: {why}");
        return Ok(());
    }
    let server = Server::start(Vendor::MySql)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    let mut wish = Wish::in_front_of(&server);
    wish.servers = wish
        .servers
        .replace("hostgroup = 0", "hostgroup = 0, compression = 1");
    wish.variables
        .push_str("    protocol_compression_zstd_level_max = 22\n");
    let proxy = Proxy::start(driver, &wish)?;
    let direct = [MANY, LONG].map(|sql| printed(server.port, &[], sql));
    let [many, long] = [direct[0].clone()?, direct[1].clone()?];
    expect(long.len() > 17_000_000, || {
        "the long row is not long".to_owned()
    })?;
    let levels = (0..=9)
        .map(|level| ("zlib", level))
        .chain([1, 3, 9, 19, 22].map(|level| ("zstd", level)));
    // What packs is the same on both.
    for (algorithm, level) in levels.filter(|(_, level)| driver == Driver::Uring || *level == 19) {
        let case = format!("{algorithm} at level {level}");
        let variable = if algorithm == "zlib" {
            "protocol_compression_level"
        } else {
            "server_compression_zstd_level"
        };
        set(
            &proxy,
            &format!(
                "SET mysql-{variable}={level}; SET mysql-server_compression_algorithm='{algorithm}'"
            ),
        )?;
        let mut asks = vec![format!("--compression-algorithms={algorithm}")];
        asks.extend((algorithm == "zstd").then(|| format!("--zstd-compression-level={level}")));
        let through =
            printed(proxy.port, &asks, MANY).map_err(|words| format!("{case}: {words}"))?;
        let (rows, status) = parts(&through);
        expect(status.iter().any(|line| line.ends_with(algorithm)), || {
            format!("{case}: the server says {status:?}")
        })?;
        expect(rows == parts(&many).0, || {
            format!("{case}: {} rows, or others", rows.len())
        })?;
        if algorithm == "zlib" && ![0, 9].contains(&level) {
            continue;
        }
        let through =
            printed(proxy.port, &asks, LONG).map_err(|words| format!("{case}: {words}"))?;
        expect(parts(&through).0 == parts(&long).0, || {
            format!("{case}: {} bytes, or others", through.len())
        })?;
        // The other way.
        let text = "lang ".repeat(3_400_000);
        let said = Raw::log_in(proxy.port, 0)?.query(&format!(
            "/* create_new_connection=1 */ SELECT '{text}' = REPEAT('lang ', 3400000)"
        ))?;
        expect(said.contains("\\x011\n"), || {
            format!("{case}: a long statement is another one")
        })?;
    }
    Ok(())
}
