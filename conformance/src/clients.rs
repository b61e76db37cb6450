//! The client programmes: how each is run, and how a scenario becomes input of the command line
//! clients.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs, io};

use crate::cache;
use crate::process::output;
use crate::servers::Vendor;
use crate::standing::Standing;
use crate::watch::{A_DAY, HANGS, building};

/// Reactor warns of every error of a server, in some runs of one more than in others.
const QUIET: &[&str] = &[
    "-Dreactor.logging.fallback=JDK",
    "-Djava.util.logging.config.file=/dev/null",
];

/// A client library or programme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The `mariadb` command line.
    MariaDbCli,
    /// The `mysql` command line.
    MySqlCli,
    /// PyMySQL.
    PyMySql,
    /// mysql-connector-python in Python.
    ConnectorPython,
    /// mysql-connector-python with its C extension (libmysqlclient).
    ConnectorPythonC,
    /// go-sql-driver/mysql.
    Go,
    /// mysql2 for Node.
    Node,
    /// Connector/J.
    Java,
    /// mysql_async.
    Rust,
    /// MariaDB's connector for Node.
    MariaDbNode,
    /// MariaDB Connector/J.
    MariaDbJava,
    /// PHP's mysqli.
    PhpMysqli,
    /// PHP's PDO, which writes parameters into texts.
    PhpPdo,
    /// PHP's PDO, which has the server prepare every statement.
    PhpPdoPrepared,
    /// MariaDB's library for C.
    C,
    /// mysql2 for Ruby.
    Ruby,
    /// DBD::mysql, which writes parameters into texts.
    DbdMySql,
    /// DBD::MariaDB, which has the server prepare statements.
    DbdMariaDb,
    /// MariaDB's driver for ODBC.
    Odbc,
    /// io.asyncer:r2dbc-mysql, which has the server prepare what has parameters.
    R2dbcMySql,
    /// org.mariadb:r2dbc-mariadb, which sends what comes next before it has an answer.
    R2dbcMariaDb,
}

/// All of them.
pub const ALL: &[Client] = &[
    Client::MariaDbCli,
    Client::MySqlCli,
    Client::PyMySql,
    Client::ConnectorPython,
    Client::ConnectorPythonC,
    Client::Go,
    Client::Node,
    Client::Java,
    Client::Rust,
    Client::MariaDbNode,
    Client::MariaDbJava,
    Client::PhpMysqli,
    Client::PhpPdo,
    Client::PhpPdoPrepared,
    Client::C,
    Client::Ruby,
    Client::DbdMySql,
    Client::DbdMariaDb,
    Client::Odbc,
    Client::R2dbcMySql,
    Client::R2dbcMariaDb,
];

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::MariaDbCli => "mariadb_cli",
            Self::MySqlCli => "mysql_cli",
            Self::PyMySql => "pymysql",
            Self::ConnectorPython => "connector_python",
            Self::ConnectorPythonC => "connector_python_c",
            Self::Go => "go_sql_driver",
            Self::Node => "node_mysql2",
            Self::Java => "connector_j",
            Self::Rust => "mysql_async",
            Self::MariaDbNode => "node_mariadb",
            Self::MariaDbJava => "mariadb_connector_j",
            Self::PhpMysqli => "php_mysqli",
            Self::PhpPdo => "php_pdo",
            Self::PhpPdoPrepared => "php_pdo_prepared",
            Self::C => "libmariadb",
            Self::Ruby => "ruby_mysql2",
            Self::DbdMySql => "dbd_mysql",
            Self::DbdMariaDb => "dbd_mariadb",
            Self::Odbc => "odbc",
            Self::R2dbcMySql => "r2dbc_mysql",
            Self::R2dbcMariaDb => "r2dbc_mariadb",
        })
    }
}

/// Where a client logs in.
#[derive(Clone, Copy, Debug)]
pub struct Login<'a> {
    /// Port on 127.0.0.1.
    pub port: u16,
    /// User.
    pub user: &'a str,
    /// Password.
    pub password: &'a str,
}

/// The login that scenarios use.
pub const fn app(port: u16) -> Login<'static> {
    Login {
        port,
        user: "app",
        password: "secret",
    }
}

/// The files that scenarios load. `no-such-file.txt` is not among them.
///
/// # Errors
/// They cannot be written.
pub fn files(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("three.txt"), "1,one\n2,zwei ü 😀\n3,\\N\n")?;
    fs::write(
        folder.join("ragged.txt"),
        "11\n12,twelve,too much\nno number,13\n14,the last without an end",
    )?;
    fs::write(folder.join("empty.txt"), "")?;
    let large: String = (1..=40)
        .map(|id| format!("{},{}\n", 100 + id, "large ".repeat(16_000 + id)))
        .collect();
    fs::write(folder.join("large.txt"), large)
}

/// The scenarios, in the order of their names.
pub fn scenarios() -> Vec<PathBuf> {
    let folder = cache::root().join("conformance/scenarios");
    let mut all: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "scenario"))
        .collect();
    all.sort();
    all
}

/// A client whose programme stays for the next scenario: a runtime takes longer to start than most
/// scenarios take.
pub struct Runner {
    client: Client,
    process: Option<Standing>,
    /// Where it finds the files that scenarios load.
    folder: PathBuf,
}

impl Runner {
    /// Nothing is started yet.
    pub fn new(client: Client, folder: &Path) -> Self {
        Self {
            client,
            process: None,
            folder: folder.to_owned(),
        }
    }

    /// Whose it is.
    pub const fn client(&self) -> Client {
        self.client
    }

    /// Runs the scenario, on connections of its own, and gives what the client saw.
    ///
    /// # Errors
    /// The programme is not here, ended or had to be killed; the next run starts another.
    pub fn run(&mut self, login: Login<'_>, scenario: &Path) -> Result<String, String> {
        if matches!(self.client, Client::MariaDbCli | Client::MySqlCli) {
            return self.client.run_command_line(login, scenario, &self.folder);
        }
        let mut process = match self.process.take() {
            Some(process) => process,
            None => {
                let mut command = self.client.command()?;
                command.current_dir(&self.folder);
                Standing::start(command)?
            }
        };
        let Login {
            port,
            user,
            password,
        } = login;
        let words = process.ask(
            &format!("127.0.0.1 {port} {user} {password} {}", scenario.display()),
            HANGS,
        )?;
        self.process = Some(process);
        Ok(words)
    }
}

impl Client {
    /// Why it cannot run here, if it cannot.
    pub fn missing(self) -> Option<String> {
        match self {
            Self::MariaDbCli => Vendor::MariaDb.programs().err(),
            Self::MySqlCli => Vendor::MySql.programs().err(),
            Self::Rust => None,
            Self::PyMySql | Self::ConnectorPython | Self::ConnectorPythonC => built("python").err(),
            Self::Go => built("go").err(),
            Self::Node | Self::MariaDbNode => built("node").err(),
            Self::Java | Self::MariaDbJava => built("java").err(),
            Self::PhpMysqli | Self::PhpPdo | Self::PhpPdoPrepared => built("php").err(),
            Self::C => built("c").err(),
            Self::Ruby => built("ruby").err(),
            Self::DbdMySql | Self::DbdMariaDb => built("perl").err(),
            Self::Odbc => built("odbc").err(),
            Self::R2dbcMySql | Self::R2dbcMariaDb => built("r2dbc").err(),
        }
    }

    /// Runs the scenario and gives what the client saw.
    pub fn run(self, login: Login<'_>, scenario: &Path) -> Result<String, String> {
        Runner::new(self, Path::new(".")).run(login, scenario)
    }

    /// How it is started.
    fn command(self) -> Result<Command, String> {
        Ok(match self {
            Self::MariaDbCli | Self::MySqlCli => {
                return Err("a command line has no scenario".into());
            }
            Self::PyMySql => python("pymysql")?,
            Self::ConnectorPython => python("connector")?,
            Self::ConnectorPythonC => python("connector-c")?,
            Self::Go => Command::new(built("go")?.join("client")),
            Self::Node | Self::MariaDbNode => {
                let mut command = Command::new("node");
                command
                    .arg(built("node")?.join("client.js"))
                    .arg(if self == Self::Node {
                        "mysql2"
                    } else {
                        "mariadb"
                    });
                command
            }
            Self::Java | Self::MariaDbJava => {
                // MariaDB's connector warns of refused logins on its standard error, in some runs
                // of one more than in others, whatever server it is; the errors themselves are
                // compared.
                java(
                    "java",
                    &["-Dmariadb.logging.disable=true"],
                    if self == Self::Java {
                        "mysql"
                    } else {
                        "mariadb"
                    },
                )?
            }
            Self::Rust => Command::new(rust_client()?),
            Self::PhpMysqli => php("mysqli")?,
            Self::PhpPdo => php("pdo")?,
            Self::PhpPdoPrepared => php("pdo-prepared")?,
            Self::C => Command::new(built("c")?.join("client")),
            Self::Ruby => script("ruby", "client.rb", &[])?,
            Self::DbdMySql => script("perl", "client.pl", &["mysql"])?,
            Self::DbdMariaDb => script("perl", "client.pl", &["mariadb"])?,
            Self::Odbc => Command::new(built("odbc")?.join("client")),
            Self::R2dbcMySql => java("r2dbc", QUIET, "mysql")?,
            Self::R2dbcMariaDb => java("r2dbc", QUIET, "mariadb")?,
        })
    }

    /// A command line client runs once per `connect` of the scenario, with a script of the steps
    /// that it can say.
    fn run_command_line(
        self,
        login: Login<'_>,
        scenario: &Path,
        folder: &Path,
    ) -> Result<String, String> {
        let vendor = if self == Self::MariaDbCli {
            Vendor::MariaDb
        } else {
            Vendor::MySql
        };
        let text = fs::read_to_string(scenario).map_err(|error| error.to_string())?;
        let mut lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        if !lines
            .first()
            .is_some_and(|line| line.starts_with("connect"))
        {
            lines.insert(0, "connect database=conf tls=off");
        }
        // As a table a row of 20 MB comes with four lines as long.
        let name = scenario.file_stem().unwrap_or_default().to_string_lossy();
        let as_table = name != "large" && !name.starts_with("compressed");
        let mut transcript = String::new();
        for (index, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with("connect"))
        {
            let steps = lines[index + 1..]
                .iter()
                .take_while(|line| !line.starts_with("connect"));
            let script: String = steps.filter_map(|step| as_script(step)).collect();
            transcript.push_str(&format!("> {line}\n"));
            let said = self.run_script(vendor, login, line, (&script, as_table), folder)?;
            transcript.push_str(&said);
        }
        Ok(transcript)
    }

    fn run_script(
        self,
        vendor: Vendor,
        login: Login<'_>,
        connect: &str,
        (script, as_table): (&str, bool),
        folder: &Path,
    ) -> Result<String, String> {
        let option = |key: &str| {
            connect
                .split(' ')
                .find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
        };
        let mut command = Command::new(vendor.programs()?.client);
        command.args([
            "--no-defaults",
            "--protocol=tcp",
            "--host=127.0.0.1",
            "--default-character-set=utf8mb4",
        ]);
        command.args([
            "--force",
            "-vv",
            "--column-type-info",
            "--show-warnings",
            "--max-allowed-packet=256M",
            "--comments",
        ]);
        if as_table {
            command.arg("--table");
        }
        command.arg(if option("infile") == Some("off") {
            "--local-infile=0"
        } else {
            "--local-infile=1"
        });
        command.arg(format!("--port={}", login.port));
        command.arg(format!("--user={}", option("user").unwrap_or(login.user)));
        command.arg(format!(
            "--password={}",
            option("password").unwrap_or(login.password)
        ));
        let tls = option("tls") == Some("on");
        command.arg(match (vendor, tls) {
            (Vendor::MariaDb, true) => "--ssl",
            (Vendor::MariaDb, false) => "--skip-ssl",
            (Vendor::MySql, true) => "--ssl-mode=REQUIRED",
            (Vendor::MySql, false) => "--ssl-mode=DISABLED",
        });
        match (vendor, option("compress")) {
            (Vendor::MariaDb, Some(_)) => {
                command.arg("--compress");
            }
            (Vendor::MySql, Some(algorithm)) => {
                command.arg(format!("--compression-algorithms={algorithm},uncompressed"));
            }
            (_, None) => {}
        }
        if vendor == Vendor::MySql {
            command.args(["--get-server-public-key", "--commands"]);
        }
        command.arg("-e").arg(script).current_dir(folder);
        if let Some(database) = option("database").filter(|name| !name.is_empty()) {
            command.arg(database);
        }
        let (_, words) = output(&mut command, HANGS)?;
        Ok(shorten(&words))
    }
}

/// A step as lines of a script, for the steps that a command line can say.
fn as_script(step: &str) -> Option<String> {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    // A delimiter of its own lets several statements, and a comment at the end, pass as one.
    let statement = |sql: &str| Some(format!("delimiter $$\n{sql}\n$$\n"));
    match verb {
        "query" | "script" => statement(rest),
        "attributed" => {
            let (attribute, sql) = rest.split_once(" :: ")?;
            let (name, value) = attribute.split_once('=')?;
            Some(format!(
                "query_attributes {name} {value}\n{}",
                statement(sql)?
            ))
        }
        "use" => Some(format!("use {rest}\n")),
        "begin" | "commit" | "rollback" => statement(verb),
        "autocommit" => statement(&format!("SET autocommit = {}", u8::from(rest == "on"))),
        "ping" => statement("DO 1"),
        _ => None,
    }
}

/// A long line by its start, length and hash: a row of 20 MB shall not make a transcript of 20 MB. The hash is C's: ours are not
/// optimized here.
fn shorten(words: &str) -> String {
    let mut short = String::new();
    for line in words.lines() {
        if line.len() > 400 {
            let hash = openssl::sha::sha224(line.as_bytes()).map(|byte| format!("{byte:02x}"));
            let start: String = line.chars().take(60).collect();
            short.push_str(&format!(
                "{start}… length={} hash={}\n",
                line.len(),
                hash.concat()
            ));
        } else {
            short.push_str(line);
            short.push('\n');
        }
    }
    short
}

/// Where Node's libraries are.
///
/// # Errors
/// They cannot be had.
pub fn node() -> Result<PathBuf, String> {
    built("node")
}

/// The folder of a built client; built on the first call by the script that also setup uses.
fn built(name: &'static str) -> Result<PathBuf, String> {
    const NAMES: [&str; 10] = [
        "python", "go", "node", "java", "php", "c", "ruby", "perl", "odbc", "r2dbc",
    ];
    static BUILT: [OnceLock<Result<PathBuf, String>>; NAMES.len()] =
        [const { OnceLock::new() }; NAMES.len()];
    let Some((cell, _)) = BUILT.iter().zip(NAMES).find(|(_, known)| *known == name) else {
        return Err(format!("no client {name}"));
    };
    cell.get_or_init(|| {
        let mut command = Command::new(cache::root().join("scripts/clients.sh"));
        let (fine, words) = building(|| output(command.arg(name), A_DAY))?;
        if fine {
            Ok(PathBuf::from(words.lines().last().unwrap_or_default()))
        } else {
            Err(words.trim().to_owned())
        }
    })
    .clone()
}

fn python(kind: &str) -> Result<Command, String> {
    let mut command = Command::new(built("python")?.join("venv/bin/python"));
    command
        .arg("-B")
        .arg(cache::root().join("conformance/clients/python/client.py"))
        .arg(kind);
    Ok(command)
}

fn java(name: &'static str, properties: &[&str], kind: &str) -> Result<Command, String> {
    let folder = built(name)?;
    let mut command = Command::new("java");
    command
        .args([
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xshare:auto",
            "-Xmx1g",
        ])
        .args(properties);
    command
        .arg("-cp")
        .arg(format!(
            "{}:{}/*",
            folder.join("classes").display(),
            folder.join("lib").display()
        ))
        .args(["Client", kind]);
    Ok(command)
}

fn php(kind: &str) -> Result<Command, String> {
    let mut command = Command::new("php");
    // Its own complaints are no rows; a result of 100 MB is one; and what files are read is for the
    // scenarios to say.
    command
        .args([
            "-d",
            "display_errors=stderr",
            "-d",
            "memory_limit=-1",
            "-d",
            "mysqli.allow_local_infile=1",
        ])
        .arg(built("php")?.join("client.php"))
        .arg(kind);
    Ok(command)
}

/// A programme that is its own source, by its language.
fn script(language: &'static str, file: &str, arguments: &[&str]) -> Result<Command, String> {
    let mut command = Command::new(language);
    command.arg(built(language)?.join(file)).args(arguments);
    Ok(command)
}

/// Beside this test: cargo puts the workspace's programs one folder above its tests.
fn rust_client() -> Result<PathBuf, String> {
    let here = env::current_exe().map_err(|error| error.to_string())?;
    here.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("client-mysql-async"))
        .find(|path| path.exists())
        .ok_or_else(|| "client-mysql-async is not built".to_owned())
}
