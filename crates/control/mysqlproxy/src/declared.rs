//! Every option of MySQL Proxy 0.8, once: what it takes, and what becomes of it here.

/// An option.
pub(crate) struct Declared {
    /// Its name behind `--`, and in a file.
    pub(crate) name: &'static str,
    /// Its letter for `millrace proxy`; `millrace` alone has others.
    pub(crate) letter: Option<char>,
    pub(crate) takes: Takes,
    pub(crate) about: &'static str,
    pub(crate) becomes: Becomes,
}

/// Values that stand behind an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing: it is said or not.
    Nothing,
    /// One value of this kind.
    One(&'static str),
    /// Values of this kind, with commas between them, as often as one likes.
    Many(&'static str),
}

/// Effect of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// Option that `millrace` alone takes as well.
    Everywhere,
    /// Option that has its effect.
    Meant,
    /// Option that is taken, and of which the log says why it has no effect.
    Nothing(&'static str),
    /// The start is refused: without it the proxy would be another than the one that is wanted.
    Refused(&'static str),
}

const fn option(
    name: &'static str,
    letter: Option<char>,
    takes: Takes,
    about: &'static str,
    becomes: Becomes,
) -> Declared {
    Declared {
        name,
        letter,
        takes,
        about,
        becomes,
    }
}

use Becomes::{Everywhere, Meant, Refused};
use Takes::{Many, Nothing, One};

const AT: &str = "HOST:PORT";
const FILE: &str = "FILE";
const DIR: &str = "DIR";
const SECONDS: &str = "SECONDS";
const WITHOUT: Becomes = Becomes::Nothing("it has no effect here");

/// In the order in which help shows them.
pub(crate) const OPTIONS: &[Declared] = &[
    option(
        "proxy-lua-script",
        Some('s'),
        One(FILE),
        "Script between clients and servers",
        Everywhere,
    ),
    option(
        "proxy-backend-addresses",
        Some('b'),
        Many(AT),
        "Servers that read and write [default: 127.0.0.1:3306]",
        Everywhere,
    ),
    option(
        "proxy-read-only-backend-addresses",
        Some('r'),
        Many(AT),
        "Servers that only read",
        Everywhere,
    ),
    option(
        "proxy-address",
        Some('P'),
        One(AT),
        "Where clients connect [default: :4040]",
        Everywhere,
    ),
    option(
        "defaults-file",
        None,
        One(FILE),
        "More options: section [mysql-proxy] of this file",
        Meant,
    ),
    option(
        "admin-address",
        None,
        One(AT),
        "Where operators connect [default: 127.0.0.1:6032; :4041 with --admin-lua-script]",
        Meant,
    ),
    option(
        "admin-username",
        None,
        One("NAME"),
        "Name of an operator [default: admin]",
        Meant,
    ),
    option(
        "admin-password",
        None,
        One("PASSWORD"),
        "Password of an operator [default: admin]",
        Meant,
    ),
    option(
        "admin-lua-script",
        None,
        One(FILE),
        "Script that answers operators at --admin-address",
        Meant,
    ),
    option(
        "proxy-connect-timeout",
        None,
        One(SECONDS),
        "How long a server may take to let somebody in [default: 2]",
        Meant,
    ),
    option(
        "proxy-read-timeout",
        None,
        One(SECONDS),
        "How long a client may be silent [default: 28800]",
        Meant,
    ),
    option(
        "proxy-write-timeout",
        None,
        One(SECONDS),
        "Has no effect",
        WITHOUT,
    ),
    option(
        "proxy-skip-profiling",
        None,
        Nothing,
        "Has no effect",
        WITHOUT,
    ),
    option(
        "proxy-fix-bug-25371",
        None,
        Nothing,
        "Has no effect",
        Becomes::Nothing("it has no effect here: no server that is served has that defect"),
    ),
    option(
        "proxy-pool-no-change-user",
        None,
        Nothing,
        "Has no effect",
        Becomes::Nothing(
            "it has no effect here: a connection is as after a login whenever another session gets it",
        ),
    ),
    option(
        "no-proxy",
        None,
        Nothing,
        "Refused",
        Refused("Millrace is nothing without its proxy"),
    ),
    option(
        "lua-path",
        None,
        One("PATTERNS"),
        "Has no effect",
        Becomes::Nothing("it has no effect here: a script's own files are found in its folder"),
    ),
    option(
        "lua-cpath",
        None,
        One("PATTERNS"),
        "Has no effect",
        Becomes::Nothing("it has no effect here: scripts load no C modules"),
    ),
    option(
        "plugins",
        None,
        Many("NAME"),
        "proxy and admin, which are always there",
        Meant,
    ),
    option(
        "plugin-dir",
        None,
        One(DIR),
        "Has no effect",
        Becomes::Nothing("it has no effect here: nothing is loaded from there"),
    ),
    option("daemon", None, Nothing, "Run in the background", Meant),
    option(
        "keepalive",
        None,
        Nothing,
        "Begin again after a crash (in the background)",
        Meant,
    ),
    option(
        "user",
        None,
        One("NAME"),
        "Refused",
        Refused("Millrace does not change its user: start it as that one"),
    ),
    option(
        "basedir",
        None,
        One(DIR),
        "Where relative paths begin",
        Meant,
    ),
    option(
        "pid-file",
        None,
        One(FILE),
        "Where the process id is written",
        Meant,
    ),
    option(
        "log-file",
        None,
        One(FILE),
        "Where the log goes [default: standard error]",
        Meant,
    ),
    option(
        "log-level",
        None,
        One("LEVEL"),
        "Has no effect",
        Becomes::Nothing("it has no effect here: the log has one level"),
    ),
    option(
        "log-use-syslog",
        None,
        Nothing,
        "Has no effect",
        Becomes::Nothing("it has no effect here: the log goes to standard error or to a file"),
    ),
    option(
        "log-backtrace-on-crash",
        None,
        Nothing,
        "Has no effect",
        Becomes::Nothing("it has no effect here: a crash is always reported"),
    ),
    option(
        "max-open-files",
        None,
        One("NUMBER"),
        "Has no effect",
        Becomes::Nothing("it has no effect here: the limit is raised as far as the system lets it"),
    ),
    option(
        "event-threads",
        None,
        One("NUMBER"),
        "Threads that serve clients",
        Meant,
    ),
    option("verbose-shutdown", None, Nothing, "Has no effect", WITHOUT),
    option(
        "config",
        None,
        One(FILE),
        "Configuration file that is read before, as -c of millrace",
        Meant,
    ),
    option(
        "datadir",
        None,
        One(DIR),
        "Directory of certificate, log and process id, as -D of millrace",
        Meant,
    ),
    option("io-driver", None, One("DRIVER"), "As for millrace", Meant),
    option(
        "foreground",
        Some('f'),
        Nothing,
        "Stay in the foreground, whatever --daemon says",
        Meant,
    ),
];

/// The option of this name.
pub(crate) fn named(name: &str) -> Option<&'static Declared> {
    OPTIONS.iter().find(|option| option.name == name)
}
