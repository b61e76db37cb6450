//! `PROXYSQL …`: what is done to the proxy as a whole.

use super::{Command, is};

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words are in `VERBS`")]
pub enum Verb {
    Start,
    Pause,
    Resume,
    Shutdown,
    Kill,
    ReadOnly,
    ReadWrite,
    FlushLogs,
    FlushConfigDb,
    FlushQueryCache,
    FlushClientHosts,
    ReloadTls,
}

const VERBS: &[(&str, Verb)] = &[
    ("PROXYSQL START", Verb::Start),
    ("PROXYSQL PAUSE", Verb::Pause),
    ("PROXYSQL RESUME", Verb::Resume),
    ("PROXYSQL SHUTDOWN SLOW", Verb::Shutdown),
    ("PROXYSQL SHUTDOWN", Verb::Shutdown),
    ("PROXYSQL KILL", Verb::Kill),
    ("PROXYSQL READONLY", Verb::ReadOnly),
    ("PROXYSQL READWRITE", Verb::ReadWrite),
    ("PROXYSQL FLUSH LOGS", Verb::FlushLogs),
    ("PROXYSQL FLUSH CONFIGDB", Verb::FlushConfigDb),
    ("PROXYSQL FLUSH QUERY CACHE", Verb::FlushQueryCache),
    ("PROXYSQL FLUSH MYSQL CLIENT HOSTS", Verb::FlushClientHosts),
    ("PROXYSQL RELOAD TLS", Verb::ReloadTls),
];

const NOT_AVAILABLE: &[(&str, &str)] = &[
    ("PROXYSQL STOP", "PROXYSQL STOP is not available in this version; PROXYSQL PAUSE stops new clients"),
    ("PROXYSQL RESTART", "PROXYSQL RESTART is not available in this version; restart the process"),
    ("PROXYSQL COREDUMP", "PROXYSQL COREDUMP is not available in this version"),
    ("PROXYSQL COMPRESSEDCOREDUMP", "PROXYSQL COMPRESSEDCOREDUMP is not available in this version"),
    ("PROXYSQL MEMPROFILE START", "PROXYSQL MEMPROFILE is not available in this version"),
    ("PROXYSQL MEMPROFILE STOP", "PROXYSQL MEMPROFILE is not available in this version"),
    ("PROXYSQL GCOV DUMP", "PROXYSQL GCOV is not available in this version"),
    ("PROXYSQL GCOV RESET", "PROXYSQL GCOV is not available in this version"),
];

pub(super) fn parse(words: &[&str]) -> Option<Command> {
    let verb = VERBS.iter().find(|(text, _)| is(words, &[text])).map(|(_, verb)| Command::Proxysql(*verb));
    let not_available = || NOT_AVAILABLE.iter().find(|(text, _)| is(words, &[text])).map(|(_, why)| Command::NotAvailable(why));
    verb.or_else(not_available)
}
