//! What can be said on the command line.

use clap::{Parser, Subcommand};
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
    /// Configuration file: proxysql.cnf as it is, or millrace.toml [default: /etc/millrace.toml or
    /// /etc/proxysql.cnf, whichever exists]
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
    /// How to talk to the kernel: auto, uring or epoll
    #[arg(long, value_name = "DRIVER", default_value = "auto")]
    pub(crate) io_driver: rt::Driver,
    /// Start the embedded SQLite server as well (port 6030): a backend that needs no installation
    #[arg(long)]
    pub(crate) sqlite3_server: bool,
    /// Print the version and end
    #[arg(short = 'V', long)]
    pub(crate) version: bool,
    #[command(subcommand)]
    pub(crate) instead: Option<Instead>,
}

/// What can be done instead of serving.
#[derive(Subcommand, Debug, Clone)]
pub(crate) enum Instead {
    /// Show files of the events log, of either format, as lines of JSON
    Events {
        /// `-` for standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}
