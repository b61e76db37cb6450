//! What can be said on the command line.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A SQL-aware proxy for MySQL: routes, rewrites, refuses and measures every statement, live, over
/// SQL.
#[derive(Parser, Debug, Clone)]
#[command(
    name = "millrace",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    after_help = "\
The configuration file is read at the first start, and again with --initial or --reload; in between, what was \
saved on the admin port counts (SAVE … TO DISK).\n\
Clients connect to port 6033, operators to port 6032:  mysql -u admin -padmin -h 127.0.0.1 -P 6032"
)]
pub(crate) struct Flags {
    /// Configuration file: proxysql.cnf as it is, or millrace.toml [default: the first of
    /// /etc/millrace/millrace.cnf, /etc/millrace.toml and /etc/proxysql.cnf that exists]
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Directory of the databases, certificates, log and process id [default: `datadir` of the
    /// configuration file, else /var/lib/millrace]
    #[arg(
        short = 'D',
        short_alias = 'd',
        long,
        visible_alias = "directory",
        value_name = "DIR"
    )]
    pub(crate) datadir: Option<PathBuf>,
    /// Read the configuration file, print every warning and error, and end: with 0 if a first start
    /// could use it, else with 1. Opens no port and writes no file
    #[arg(long)]
    pub(crate) check: bool,
    /// Stay in the foreground and write the log to standard error
    #[arg(short = 'f', long)]
    pub(crate) foreground: bool,
    /// Forget what was saved (it is kept under another name) and begin with the configuration file
    #[arg(long, conflicts_with = "reload")]
    pub(crate) initial: bool,
    /// Lay the configuration file over what was saved
    #[arg(long)]
    pub(crate) reload: bool,
    /// How to talk to the kernel: auto, uring or epoll; on FreeBSD auto or kqueue
    #[arg(long, value_name = "DRIVER", default_value = "auto")]
    pub(crate) io_driver: rt::Driver,
    /// Start the embedded SQLite server as well (port 6030): a backend that needs no installation
    #[arg(long)]
    pub(crate) sqlite3_server: bool,
    /// Start the port for ClickHouse as well (6090): clients of MySQL ask the ClickHouse of
    /// clickhouse-hostname
    #[arg(long)]
    pub(crate) clickhouse_server: bool,
    /// Begin without clients, until PROXYSQL START on the admin port
    #[arg(short = 'n', long)]
    pub(crate) no_start: bool,
    /// Check no servers, whatever mysql-monitor_enabled says
    #[arg(short = 'M', long)]
    pub(crate) no_monitor: bool,
    /// Serve clients also where another process listens: the kernel shares them out
    #[arg(short = 'r', long)]
    pub(crate) reuseport: bool,
    /// Take over from the Millrace that serves with this data directory: no client is refused, and
    /// sessions go on here
    #[arg(long, conflicts_with_all = ["initial", "reload", "no_start"])]
    pub(crate) take_over: bool,
    /// Do not begin again after a crash (in the background)
    #[arg(short = 'e', long)]
    pub(crate) exit_on_error: bool,
    /// By what other proxies know this one [default: another one at each start]
    #[arg(short = 'U', long, value_name = "UUID")]
    pub(crate) uuid: Option<String>,
    /// A Unix socket for operators, besides admin-mysql_ifaces
    #[arg(short = 'S', long, value_name = "PATH")]
    pub(crate) admin_socket: Option<PathBuf>,
    /// Has no effect: a client that is silent costs no thread
    #[arg(long)]
    pub(crate) idle_threads: bool,
    /// Has no effect: nobody is asked for a newer version
    #[arg(long)]
    pub(crate) no_version_check: bool,
    /// Print the version and end
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
    #[command(flatten)]
    pub(crate) of_mysql_proxy: mysqlproxy::Wish,
    #[command(subcommand)]
    pub(crate) instead: Option<Instead>,
}

/// Commands that do something else than serve.
#[derive(Subcommand, Debug, Clone)]
pub(crate) enum Instead {
    /// Show files of the events log, of either format, as lines of JSON
    Events {
        /// `-` for standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Serve as MySQL Proxy does by its options, its letters and its --defaults-file: all is in memory,
    /// for this process
    Proxy(mysqlproxy::Own),
    /// Look at scripts in Lua, without a server
    Script {
        #[command(subcommand)]
        what: OfScript,
    },
    /// Ask the Millrace of this machine whether it may be sent clients, and end with 0 if so, else with
    /// 1
    Health {
        /// Value of admin-health_port there
        #[arg(long, value_name = "PORT", default_value_t = 6031)]
        port: u16,
        /// Ask only whether its cores answer
        #[arg(long)]
        live: bool,
    },
    /// Show in a terminal what a running Millrace does: queries, servers, sessions, errors
    Top(top::Wish),
    /// Follow the binary log of a server, and tell proxies what becomes visible there: a reader as
    /// gtid_port has it
    BinlogReader(reader::Wish),
    /// Print a page of the manual, or completions for a shell, made of these flags
    #[command(hide = true)]
    Manual {
        #[arg(value_name = "KIND")]
        kind: Kind,
    },
}

/// Files that are made of the flags for a package.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub(crate) enum Kind {
    Man,
    Bash,
    Zsh,
    Fish,
}

/// Commands for scripts.
#[derive(Subcommand, Debug, Clone)]
pub(crate) enum OfScript {
    /// Compile them, and say what looks wrong: undefined names, misspelt fields, statements that
    /// nothing reaches
    Check {
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,
    },
    /// Run their tests: of a.lua those in a_test.lua
    Test {
        #[arg(value_name = "FILE", required = true)]
        files: Vec<String>,
        /// Say which lines no test has run
        #[arg(long)]
        coverage: bool,
    },
}

impl Flags {
    /// Flags that say no more than these options of MySQL Proxy.
    pub(crate) fn of_mysql_proxy(own: &mysqlproxy::Own) -> Result<Self, Vec<String>> {
        Ok(Self {
            of_mysql_proxy: own.with_file().map_err(|words| vec![words])?,
            ..Self::parse_from(["millrace"])
        })
    }

    /// The configuration that the options of MySQL Proxy make, if there are any. With them it stays in
    /// the foreground, unless they say otherwise.
    pub(crate) fn given(mut self) -> Result<(Self, Option<mysqlproxy::Given>), Vec<String>> {
        let given = mysqlproxy::Given::of(&self.of_mysql_proxy)?;
        if let Some(given) = &given {
            self.config = self.config.or_else(|| given.config.clone());
            self.datadir = self.datadir.or_else(|| given.datadir.clone());
            self.foreground |= !given.is_behind;
            self.exit_on_error |= !given.begins_again;
            if let Some(driver) = &given.driver {
                self.io_driver = driver
                    .parse()
                    .map_err(|error: rt::NotADriver| vec![error.to_string()])?;
            }
        }
        Ok((self, given))
    }

    /// Lines about flags that are taken and do nothing.
    pub(crate) fn without_effect(&self) -> impl Iterator<Item = &'static str> {
        let idle = "--idle-threads has no effect: a client that is silent costs no thread";
        let version = "--no-version-check has no effect: nobody is asked for a newer version";
        [(self.idle_threads, idle), (self.no_version_check, version)]
            .into_iter()
            .filter_map(|(is_set, words)| is_set.then_some(words))
    }
}
