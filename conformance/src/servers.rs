//! Real servers in temporary folders: a template of each version is made once and copied for each
//! start.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fmt, io};

use crate::cache;
use crate::process::{Process, TempFolder, free_port, output};
use crate::watch::HANGS;

/// Whose server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// MariaDB, from the machine's own packages.
    MariaDb,
    /// MySQL, from `scripts/get-mysql.sh`.
    MySql,
}

impl fmt::Display for Vendor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
        })
    }
}

impl Vendor {
    /// The programs, or a sentence about why they cannot be had.
    pub fn programs(self) -> Result<Programs, String> {
        let (server, client, help) = match self {
            Self::MariaDb => (
                in_path("mariadbd"),
                in_path("mariadb"),
                "apt-get install mariadb-server-core mariadb-client-core",
            ),
            Self::MySql => {
                let bin = cache::folder().join("mysql/bin");
                (
                    Some(bin.join("mysqld")),
                    Some(bin.join("mysql")),
                    "scripts/get-mysql.sh",
                )
            }
        };
        match (server, client) {
            (Some(server), Some(client)) if server.exists() && client.exists() => {
                Ok(Programs { server, client })
            }
            _ => Err(format!("{self} is not here ({help} brings it)")),
        }
    }
}

/// The vendors that are here: MariaDB always is, or nothing of a programme runs.
pub fn vendors() -> Vec<Vendor> {
    [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
        .collect()
}

/// With what a server is started.
pub struct Start {
    /// Whose.
    pub vendor: Vendor,
    /// Its programs.
    pub programs: Programs,
    /// A data folder that it gets a copy of.
    pub data: PathBuf,
    /// Its port; any that is free if there is none.
    pub port: Option<u16>,
    /// More options on its command line.
    pub options: Vec<String>,
}

impl Start {
    /// With the fixture loaded; the error says why there is no such server.
    pub fn of(vendor: Vendor) -> Result<Self, String> {
        let programs = vendor.programs()?;
        let data = template(vendor, &programs)
            .map_err(|error| format!("{vendor}: no template: {error}"))?;
        Ok(Self {
            vendor,
            programs,
            data,
            port: None,
            options: Vec::new(),
        })
    }
}

/// Where a vendor's programs are.
#[derive(Clone)]
pub struct Programs {
    /// The server.
    pub server: PathBuf,
    /// Its command line client.
    pub client: PathBuf,
}

/// A program of the machine.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")])
        .map(|folder| folder.join(name))
        .find(|file| file.exists())
}

/// A running server. Dropping it kills it and removes its data.
pub struct Server {
    /// Whose.
    pub vendor: Vendor,
    /// Its port on 127.0.0.1.
    pub port: u16,
    process: Process,
    folder: TempFolder,
    programs: Programs,
    options: Vec<String>,
}

impl Server {
    /// Starts one with the fixture loaded; the error says why there is none.
    pub fn start(vendor: Vendor) -> Result<Self, String> {
        Self::start_with(vendor, &[])
    }

    /// Starts a server with the fixture loaded and more options on its command line; the error says
    /// why there is none.
    pub fn start_with(vendor: Vendor, options: &[&str]) -> Result<Self, String> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        Self::start_as(&Start {
            options,
            ..Start::of(vendor)?
        })
    }

    /// One with data of its own, or on a port of its own.
    pub fn start_as(start: &Start) -> Result<Self, String> {
        let Start {
            vendor,
            programs,
            options,
            ..
        } = start;
        let folder = TempFolder::new(&vendor.to_string()).map_err(|error| error.to_string())?;
        let data = folder.path().join("data");
        copy(&start.data, &data).map_err(|error| format!("{vendor}: {error}"))?;
        // Each server has a number of its own there.
        let _none_yet = fs::remove_file(data.join("auto.cnf"));
        let mut last = String::new();
        for _ in 0..3 {
            // Somebody may take the port between the look and the start.
            match launch(*vendor, programs, folder.path(), options, start.port) {
                Ok((process, port)) => {
                    return Ok(Self {
                        vendor: *vendor,
                        port,
                        process,
                        folder,
                        programs: programs.clone(),
                        options: options.clone(),
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(format!(
            "{vendor}: {last}\n{}",
            tail(&folder.path().join("log"))
        ))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends a signal by its name (`STOP` and `CONT` make it hang for a while).
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
        // It is stopped when the kernel says so, not when it was asked to.
        let state = || fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        let until = Instant::now() + HANGS;
        while name == "STOP" && !state().contains(") T ") && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends as a DBA ends it.
    pub fn shut_down(&mut self) -> Result<(), String> {
        self.root("SHUTDOWN")?;
        let ended = self.process.wait(HANGS);
        ended
            .map(drop)
            .ok_or_else(|| "it does not shut down".into())
    }

    /// Starts it again on the port that it had.
    pub fn restart(&mut self) -> Result<(), String> {
        self.restart_with(&[])
    }

    /// Runs it to its end with one more option, and gives what it says. It must not run now.
    pub fn run_with(&self, option: &str) -> Result<String, String> {
        let mut command = Command::new(&self.programs.server);
        command.args(self.arguments(&[option.to_owned()]));
        output(&mut command, HANGS).map(|(_, words)| words)
    }

    /// Starts it again on the port that it had, this time with more options.
    pub fn restart_with(&mut self, more: &[String]) -> Result<(), String> {
        self.kill();
        let arguments = self.arguments(more);
        self.process = Process::start(
            &self.programs.server,
            &arguments,
            &self.folder.path().join("log"),
        )
        .map_err(|error| error.to_string())?;
        self.process.wait_for_greeting(self.port, HANGS)
    }

    fn arguments(&self, more: &[String]) -> Vec<String> {
        let options = [&self.options[..], more].concat();
        arguments(self.vendor, self.folder.path(), self.port, &options)
    }

    /// Starts without these options from the next time on.
    pub fn without(&mut self, options: &[String]) {
        self.options.retain(|option| !options.contains(option));
    }

    /// Its data, for a server that is started with a copy of it.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        tail(&self.folder.path().join("log"))
    }

    /// Runs SQL as root over the server's own socket and gives what the vendor's client prints.
    pub fn root(&self, sql: &str) -> Result<String, String> {
        run_sql(&self.programs.client, &self.folder.path().join("s"), sql)
    }

    /// Number of transactions for which this holds, as `information_schema.INNODB_TRX` says it
    /// (`TRUE` for all). InnoDB tells the same again to whoever asks within 100 ms of another
    /// question, so it waits before it asks: polled faster than that, it would never be news.
    pub fn transactions(&self, condition: &str) -> Result<String, String> {
        thread::sleep(Duration::from_millis(150));
        let said = self.root(&format!(
            "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE {condition}"
        ))?;
        Ok(said.lines().last().unwrap_or_default().trim().to_owned())
    }

    /// A file of the server's TLS set: `ca.pem`, `server-cert.pem`, `client-cert.pem`,
    /// `client-key.pem`.
    pub fn tls_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }
}

fn launch(
    vendor: Vendor,
    programs: &Programs,
    folder: &Path,
    options: &[String],
    port: Option<u16>,
) -> Result<(Process, u16), String> {
    let port = port.map_or_else(free_port, Ok);
    let port = port.map_err(|error| error.to_string())?;
    let arguments = arguments(vendor, folder, port, options);
    let mut process = Process::start(&programs.server, &arguments, &folder.join("log"))
        .map_err(|error| error.to_string())?;
    process.wait_for_greeting(port, HANGS)?;
    Ok((process, port))
}

/// Small, and careless about power cuts: its data is thrown away.
fn arguments(vendor: Vendor, folder: &Path, port: u16, options: &[String]) -> Vec<String> {
    let data = folder.join("data");
    let mut all: Vec<String> = vec!["--no-defaults".into()];
    all.push(format!("--datadir={}", data.display()));
    all.push(format!("--socket={}", folder.join("s").display()));
    all.push(format!("--pid-file={}", folder.join("pid").display()));
    // A server that starts removes all `#sql…` of its folder for temporary files: in one that
    // servers share, the tables that another is about to open.
    all.push(format!("--tmpdir={}", folder.display()));
    all.push(format!("--port={port}"));
    for (option, file) in [
        ("ssl-ca", "ca.pem"),
        ("ssl-cert", "server-cert.pem"),
        ("ssl-key", "server-key.pem"),
    ] {
        all.push(format!("--{option}={}", data.join(file).display()));
    }
    // SERVER_QUERY_WAS_SLOW in an answer tells how busy this machine is: no statement is slow.
    let common = "--bind-address=127.0.0.1 --skip-name-resolve --skip-log-bin --max-connections=6000 --max-allowed-packet=64M \
                  --innodb-buffer-pool-size=64M --innodb-doublewrite=0 --innodb-flush-log-at-trx-commit=0 \
                  --innodb-flush-method=nosync --character-set-server=utf8mb4 --local-infile=1 --long-query-time=31536000";
    all.extend(common.split_whitespace().map(str::to_owned));
    let own = match vendor {
        // Its table space grows by what it needs, and not by 64 MB: each test copies it.
        Vendor::MariaDb => {
            "--innodb-log-file-size=8M --innodb-fast-shutdown=2 --innodb-autoextend-increment=1"
        }
        Vendor::MySql => {
            "--mysqlx=OFF --secure-file-priv=NULL --innodb-redo-log-capacity=8M --performance-schema=OFF --collation-server=utf8mb4_unicode_ci"
        }
    };
    all.extend(own.split_whitespace().map(str::to_owned));
    if current_user() == "root" {
        all.push("--user=root".into());
    }
    all.extend(options.iter().cloned());
    all
}

fn current_user() -> String {
    let asked = Command::new("id")
        .arg("-un")
        .output()
        .map(|out| out.stdout)
        .unwrap_or_default();
    String::from_utf8_lossy(&asked).trim().to_owned()
}

/// The SQL that every server starts with.
fn fixture() -> Result<String, String> {
    let path = cache::root().join("conformance/scenarios/fixture.sql");
    let mut sql =
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    sql.push_str("CREATE TABLE wide (");
    for column in 1..=1000 {
        let comma = if column == 1 { "" } else { ", " };
        let _ = write!(sql, "{comma}column_{column} TINYINT");
    }
    sql.push_str(");\nINSERT INTO wide (column_1, column_1000) VALUES (1, 100), (2, NULL);\n");
    Ok(sql)
}

/// A data folder with the fixture in it, made once for a version of the server and of the fixture.
fn template(vendor: Vendor, programs: &Programs) -> Result<PathBuf, String> {
    let version = Command::new(&programs.server)
        .arg("--version")
        .output()
        .map_err(|error| error.to_string())?
        .stdout;
    let fixture = fixture()?;
    let mut hash = DefaultHasher::new();
    (
        &version,
        &fixture,
        include_str!("servers.rs"),
        current_user(),
    )
        .hash(&mut hash);
    let servers = cache::folder().join("servers");
    fs::create_dir_all(&servers).map_err(|error| error.to_string())?;
    let folder = servers.join(format!("{vendor}-{:016x}", hash.finish()));
    let lock = File::create(folder.with_extension("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if folder.join("data").exists() {
        return Ok(folder.join("data"));
    }
    let work = folder.with_extension("new");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    make_template(vendor, programs, &work, &fixture)
        .map_err(|error| format!("{error}\n{}", tail(&work.join("log"))))?;
    fs::rename(&work, &folder).map_err(|error| error.to_string())?;
    Ok(folder.join("data"))
}

fn make_template(
    vendor: Vendor,
    programs: &Programs,
    work: &Path,
    fixture: &str,
) -> Result<(), String> {
    let data = work.join("data");
    let mut install = match vendor {
        Vendor::MariaDb => {
            let mut install = Command::new(
                in_path("mariadb-install-db").ok_or("mariadb-install-db is not here")?,
            );
            install.args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]);
            install.arg(format!("--tmpdir={}", work.display()));
            install
        }
        Vendor::MySql => {
            let mut install = Command::new(&programs.server);
            install.args([
                "--no-defaults",
                "--initialize-insecure",
                "--innodb-redo-log-capacity=8M",
                "--innodb-doublewrite=0",
            ]);
            install
        }
    };
    install.arg(format!("--datadir={}", data.display()));
    if current_user() == "root" {
        install.arg("--user=root");
    }
    expect(output(&mut install, HANGS))?;
    tls_files(&data)?;
    let (mut process, _) = launch(vendor, programs, work, &[], None)?;
    run_sql(&programs.client, &work.join("s"), fixture)?;
    if vendor == Vendor::MySql {
        run_sql(
            &programs.client,
            &work.join("s"),
            "INSTALL COMPONENT 'file://component_query_attributes'",
        )?;
    }
    run_sql(&programs.client, &work.join("s"), "SHUTDOWN")?;
    match process.wait(HANGS) {
        Some(_) => Ok(()),
        None => Err("it did not shut down".into()),
    }
}

/// An authority, a server's certificate for 127.0.0.1 and a client's, under MySQL's usual names.
pub(crate) fn tls_files(data: &Path) -> Result<(), String> {
    let script = r#"set -e
        cd "$1"
        rm -f ca*.pem server-*.pem client-*.pem
        openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=conformance-ca -keyout ca-key.pem -out ca.pem
        for who in server client; do
            openssl req -newkey rsa:2048 -nodes -subj /CN=conformance-$who -keyout $who-key.pem -out $who.csr
            printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' >ext
            openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 3650 -extfile ext -out $who-cert.pem
        done
        chmod 600 *-key.pem; rm -f ext *.csr"#;
    expect(output(
        Command::new("sh").args(["-c", script, "tls"]).arg(data),
        HANGS,
    ))
}

fn run_sql(client: &Path, socket: &Path, sql: &str) -> Result<String, String> {
    let file =
        socket.with_file_name(format!("sql-{:?}", thread::current().id()).replace(['(', ')'], ""));
    fs::write(&file, sql).map_err(|error| error.to_string())?;
    let mut command = Command::new(client);
    command
        .args([
            "--no-defaults",
            "--user=root",
            "--protocol=socket",
            "--batch",
        ])
        .arg(format!("--socket={}", socket.display()));
    if client.ends_with("mysql") {
        // `source` and `delimiter` are commands of the client; MySQL's needs to be allowed them
        // since 9.
        command.arg("--commands");
    }
    command
        .arg("--default-character-set=utf8mb4")
        .arg("-e")
        .arg(format!("source {}", file.display()));
    let (fine, words) = output(&mut command, HANGS)?;
    let _ = fs::remove_file(&file);
    if fine { Ok(words) } else { Err(words) }
}

fn expect(ran: Result<(bool, String), String>) -> Result<(), String> {
    match ran? {
        (true, _) => Ok(()),
        (false, words) => Err(words),
    }
}

pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let status = Command::new("cp")
        .args(["-a", "--reflink=auto", "--sparse=always"])
        .arg(from)
        .arg(to)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!("cp ended with {status}")))
    }
}

/// The end of a log, for the words of a failure.
pub fn tail(log: &Path) -> String {
    let text = fs::read(log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(25)..].join("\n")
}
