//! Millrace as a process of a test: its own data folder, its own ports, configured as an operator
//! would.

use std::fs::Permissions;
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fmt, fs, thread};

use crate::cache;
use crate::process::{Process, TempFolder, free_port, output};
use crate::servers::{Server, Vendor, tail};
use crate::trials::soon;
use crate::watch::{A_DAY, HANGS, building};

/// User of [`crate::by_hand`] as a group of `mysql_users`.
pub const OPEN_USER: &str = "{ username = \"open\", password = \"\", default_hostgroup = 0 }";

/// How the proxy talks to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

/// Both.
pub const DRIVERS: &[Driver] = &[Driver::Uring, Driver::Epoll];

impl fmt::Display for Driver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Uring => "uring",
            Self::Epoll => "epoll",
        })
    }
}

/// Settings that a proxy is started with, besides ports and folders.
#[derive(Clone, Default)]
pub struct Wish {
    /// Lines of `mysql_variables`.
    pub variables: String,
    /// Groups of `mysql_servers`, as `proxysql.cnf` has them.
    pub servers: String,
    /// Groups of `mysql_users`.
    pub users: String,
    /// Groups of `mysql_query_rules`.
    pub rules: String,
    /// More flags.
    pub flags: Vec<String>,
    /// Script that starts it, with its path and its flags.
    pub starter: Option<PathBuf>,
}

impl Wish {
    /// One server in hostgroup 0, and the users of the fixture.
    pub fn in_front_of(server: &Server) -> Self {
        Self {
            servers: format!(
                "{{ address = \"127.0.0.1\", port = {}, hostgroup = 0, max_connections = 2000 }}",
                server.port
            ),
            users: "{ username = \"app\", password = \"secret\", default_hostgroup = 0 },\n\
                    { username = \"other\", password = \"geheim\", default_hostgroup = 0 },\n\
                    { username = \"secured\", password = \"verschlossen\", default_hostgroup = 0 }"
                .to_owned(),
            // Drivers choose their statements and their words by the greeting: as a DBA does, we
            // claim the server's.
            variables: format!(
                "    default_authentication_plugin = \"{}\"\n{}",
                if server.vendor == Vendor::MySql {
                    "caching_sha2_password"
                } else {
                    "mysql_native_password"
                },
                version(server.port).map_or_else(String::new, |version| format!(
                    "    server_version = \"{version}\"\n"
                ))
            ),
            ..Self::default()
        }
    }

    /// Adds a server to a hostgroup.
    pub fn add(&mut self, hostgroup: u32, server: &Server) {
        self.servers.push_str(&format!(
            ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup} }}",
            server.port
        ));
    }

    /// Adds the user without a password of [`crate::by_hand::Raw`], whom servers have after
    /// [`crate::by_hand::CREATE_USER`].
    pub fn add_open_user(&mut self) {
        self.users = format!("{},\n{}", self.users, OPEN_USER);
    }
}

/// The version in a server's greeting: a header of four bytes, the protocol's number, then the
/// words up to a zero.
fn version(port: u16) -> Option<String> {
    let mut greeting = [0; 256];
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(HANGS)).ok()?;
    let read = stream.read(&mut greeting).ok()?;
    let words = greeting.get(5..read)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(words).into_owned())
}

/// A running proxy. Dropping it kills it and removes its data.
pub struct Proxy {
    /// Where clients connect, on 127.0.0.1.
    pub port: u16,
    /// Where operators connect, on 127.0.0.1.
    pub admin_port: u16,
    driver: Driver,
    process: Process,
    folder: TempFolder,
    flags: Vec<String>,
    starter: Option<PathBuf>,
}

impl Proxy {
    /// Starts one; the error has the end of its log.
    pub fn start(driver: Driver, wish: &Wish) -> Result<Self, String> {
        let folder =
            TempFolder::new(&format!("proxy-{driver}")).map_err(|error| error.to_string())?;
        let mut last = String::new();
        lend_certificate(folder.path()).map_err(|error| error.to_string())?;
        for _ in 0..3 {
            // Somebody may take a port between the look and the start.
            let port = free_port().map_err(|error| error.to_string())?;
            let admin_port = free_port().map_err(|error| error.to_string())?;
            fs::write(
                folder.path().join("proxysql.cnf"),
                configuration(folder.path(), port, admin_port, wish),
            )
            .map_err(|error| error.to_string())?;
            let starter = wish.starter.as_deref();
            match launch(
                driver,
                folder.path(),
                (starter, &wish.flags),
                port,
                admin_port,
            ) {
                Ok(process) => {
                    keep_certificate(folder.path()).map_err(|error| error.to_string())?;
                    return Ok(Self {
                        port,
                        admin_port,
                        driver,
                        process,
                        folder,
                        flags: wish.flags.clone(),
                        starter: wish.starter.clone(),
                    });
                }
                Err(error) => last = error,
            }
            // What was saved counts more than the file, and has the ports that somebody took.
            let _none_if_it_came_not_so_far = fs::remove_file(folder.path().join("proxysql.db"));
        }
        Err(format!("{last}\n{}", tail(&folder.path().join("log"))))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Does it still run?
    pub fn runs(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends a signal by its name (`STOP` and `CONT` make it hang for a while).
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Asks it to stop and waits for its end.
    pub fn terminate(&mut self, at_most: Duration) -> bool {
        self.process.signal("TERM");
        self.process.wait(at_most).is_some()
    }

    /// Starts it again on its ports, with the data that it left.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill();
        self.process = launch(
            self.driver,
            self.folder.path(),
            (self.starter.as_deref(), &self.flags),
            self.port,
            self.admin_port,
        )
        .map_err(|error| format!("{error}\n{}", self.log()))?;
        Ok(())
    }

    /// Has a new process take over with these flags besides, and waits until it serves. The old
    /// process, which ends when its sessions are gone; or why it still serves alone.
    pub fn upgrade(&mut self, flags: &[&str]) -> Result<Process, String> {
        let log = self.folder.path().join("log");
        let from = fs::read_to_string(&log).map_or(0, |text| text.len());
        let mut arguments: Vec<String> = ["-f", "--take-over", "-c"].map(str::to_owned).into();
        arguments.push(
            self.folder
                .path()
                .join("proxysql.cnf")
                .display()
                .to_string(),
        );
        arguments.extend(["-D".into(), self.folder.path().display().to_string()]);
        arguments.extend(self.flags.iter().cloned());
        arguments.extend(flags.iter().map(ToString::to_string));
        let mut next =
            Process::start(&program()?, &arguments, &log).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        while begun.elapsed() < HANGS {
            let served_by = fs::read_to_string(self.folder.path().join("millrace.pid"));
            if served_by.is_ok_and(|id| id.trim() == next.id().to_string()) {
                return Ok(std::mem::replace(&mut self.process, next));
            }
            if next.ended().is_some() {
                let text = fs::read_to_string(&log).unwrap_or_default();
                return Err(text.get(from..).unwrap_or_default().to_owned());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("it does not take over".to_owned())
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        tail(&self.folder.path().join("log"))
    }

    /// Whether its log has these words, or has them soon: a thread of its own writes it.
    pub fn says(&self, words: &str) -> bool {
        let has = || Ok(self.log().contains(words).to_string());
        soon("true", has).is_ok()
    }

    /// Its data folder.
    pub fn data(&self) -> &Path {
        self.folder.path()
    }

    /// Pastes SQL into the `mariadb` command line on the admin port, as operators do; gives what it
    /// prints.
    pub fn admin(&self, sql: &str) -> Result<String, String> {
        command_line(self.admin_port, "admin", "admin", &[], sql)
    }

    /// Runs SQL through the proxy with the command line client.
    pub fn query(&self, sql: &str) -> Result<String, String> {
        command_line(self.port, "app", "secret", &[], sql)
    }
}

/// Files of the certificate that a proxy makes for itself where it finds none.
const CERTIFICATE: [&str; 3] = ["proxysql-ca.pem", "proxysql-cert.pem", "proxysql-key.pem"];

/// Certificate that the first proxy of this process has made. To make one takes a third of a second
/// of the processor, which is most of a start.
static MADE: OnceLock<[Vec<u8>; 3]> = OnceLock::new();

/// Keeps the certificate of a proxy that has started, if it is the first.
fn keep_certificate(folder: &Path) -> io::Result<()> {
    if MADE.get().is_none() && folder.join(CERTIFICATE[0]).exists() {
        let read = |name: &str| fs::read(folder.join(name));
        let files = [
            read(CERTIFICATE[0])?,
            read(CERTIFICATE[1])?,
            read(CERTIFICATE[2])?,
        ];
        MADE.get_or_init(|| files);
    }
    Ok(())
}

/// Puts the certificate of an earlier proxy, if there was one, where the next will look for its
/// own.
fn lend_certificate(folder: &Path) -> io::Result<()> {
    for (name, bytes) in CERTIFICATE.iter().zip(MADE.get().into_iter().flatten()) {
        let path = folder.join(name);
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Returns what the `mariadb` client prints in batch mode (tabs, no names), or its error.
pub fn command_line(
    port: u16,
    user: &str,
    password: &str,
    more: &[&str],
    sql: &str,
) -> Result<String, String> {
    let mut command = Command::new(Vendor::MariaDb.programs()?.client);
    command.args([
        "--no-defaults",
        "--protocol=tcp",
        "--host=127.0.0.1",
        "--skip-ssl",
        "--batch",
        "--skip-column-names",
    ]);
    command.arg("--default-character-set=utf8mb4");
    command.args([
        format!("--port={port}"),
        format!("--user={user}"),
        format!("--password={password}"),
    ]);
    command.args(more).arg("-e").arg(sql);
    let (fine, words) = output(&mut command, HANGS)?;
    if fine { Ok(words) } else { Err(words) }
}

fn launch(
    driver: Driver,
    folder: &Path,
    (starter, flags): (Option<&Path>, &[String]),
    port: u16,
    admin_port: u16,
) -> Result<Process, String> {
    let mut arguments: Vec<String> = vec!["-f".into()];
    arguments.extend([
        "-c".into(),
        folder.join("proxysql.cnf").display().to_string(),
    ]);
    arguments.extend(["-D".into(), folder.display().to_string()]);
    arguments.extend(["--io-driver".into(), driver.to_string()]);
    arguments.extend(flags.iter().cloned());
    let mut program = program()?;
    if let Some(starter) = starter {
        arguments.insert(0, program.display().to_string());
        program = starter.to_owned();
    }
    let mut process = Process::start(&program, &arguments, &folder.join("log"))
        .map_err(|error| error.to_string())?;
    process.wait_for_greeting(admin_port, HANGS)?;
    process.wait_for_greeting(port, HANGS)?;
    Ok(process)
}

fn configuration(folder: &Path, port: u16, admin_port: u16, wish: &Wish) -> String {
    let Wish {
        variables,
        servers,
        users,
        rules,
        ..
    } = wish;
    // Most tests are about what happens when a client has been silent for long enough.
    let mut variables = variables.clone();
    for (name, value) in [
        ("handle_warnings_delay_ms", "5"),
        ("auto_increment_delay_multiplex_timeout_ms", "5"),
        ("monitor_enabled", "false"),
    ] {
        if !variables.contains(name) {
            variables.push_str(&format!("\n{name} = {value}"));
        }
    }
    let scripts = env::var("MILLRACE_TEST_SCRIPT").map_or_else(
        |_| String::new(),
        |path| format!("mysql_scripts = (\n{{ script_name = \"test\", path = \"{path}\", on_error = \"error\" }}\n)\n"),
    );
    format!(
        "datadir = \"{}\"\n\
         admin_variables =\n{{\n    admin_credentials = \"admin:admin\"\n    mysql_ifaces = \"127.0.0.1:{admin_port}\"\n}}\n\
         mysql_variables =\n{{\n    threads = 2\n    interfaces = \"127.0.0.1:{port};{}/client.sock\"\n    max_connections = 12000\n\
         max_allowed_packet = 67108864\n{variables}\n}}\n\
         mysql_servers = (\n{servers}\n)\n\
         mysql_users = (\n{users}\n)\n\
         mysql_query_rules = (\n{rules}\n)\n{scripts}",
        folder.display(),
        folder.display(),
    )
}

/// The proxy: `$MILLRACE_BIN`, or the one of this build, which is brought up to date first.
pub fn program() -> Result<PathBuf, String> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM
        .get_or_init(|| {
            if let Some(given) = env::var_os("MILLRACE_BIN").filter(|given| !given.is_empty()) {
                return Ok(given.into());
            }
            let here = env::current_exe().map_err(|error| error.to_string())?;
            // target/debug/deps/this-test, or target/debug/this-program → target/debug; a release
            // test builds a release proxy.
            let mut folders = here.ancestors().skip(1);
            let profile = folders.find(|folder| !folder.ends_with("deps"));
            let profile = profile.ok_or("this test has no place")?;
            let mut build = Command::new(env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
            build
                .args(["build", "--quiet", "--package", "millrace"])
                .current_dir(cache::root());
            build
                .arg("--target-dir")
                .arg(profile.parent().ok_or("the build has no place")?);
            if profile.ends_with("release") {
                build.arg("--release");
            }
            match building(|| output(&mut build, A_DAY))? {
                (true, _) => Ok(profile.join("millrace")),
                (false, words) => Err(format!("millrace does not build:\n{words}")),
            }
        })
        .clone()
}
