//! How the admin side begins: from the databases and the configuration file to the first snapshot.

use crate::engine::another_version::Unknown;
use crate::engine::{DISK_FILE, Engine, HISTORY_FILE, SqlError, View};
use crate::file::{self, File};
use crate::private::{keep_private, others_may};
use crate::rows::sql_refusal;
use crate::tables::Module;
use crate::{build, commands, kept, layers};
use bridge::{ToAdmin, Wanted};
use config::{Refusal, Rules, Snapshot};
use net::tls::Acceptor;
use rt::mailbox::{self, Receiver};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Statements that wait for partitions and are not heard yet, at most.
const WANTED_LEN: usize = 16_384;
/// Letters of other threads that wait at most.
const LETTERS_LEN: usize = 256;

/// Use of the configuration file at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Reads the configuration file if nothing was ever saved.
    #[default]
    Usual,
    /// Replaces what was saved by the configuration file (`--initial`); what was saved is kept
    /// under another name.
    Initial,
    /// Lays the configuration file over what was saved (`--reload`).
    Reload,
}

/// Whether a process begins with what was in force in the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    /// With what was saved.
    #[default]
    No,
    /// That one has crashed.
    AfterACrash,
    /// That one has left all to us.
    FromAnother,
}

/// Where everything is.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directory of the databases; in memory alone without one.
    pub datadir: Option<PathBuf>,
    /// The configuration file, if there is one.
    pub config: Option<PathBuf>,
    /// Use of the configuration file.
    pub start: Start,
    /// Clients are let in after `PROXYSQL START` only (`--no-start`).
    pub closed: bool,
    /// Keeps what is in force for the case of a crash.
    pub keep: bool,
    /// Whether it begins with what was kept instead of what was saved.
    pub recall: Recall,
    /// By what other proxies know this one; a new one at each start if there is none (`--uuid`).
    pub uuid: Option<String>,
    /// Things that scripts are given.
    pub scripts: config::Given,
    /// Whether the port to ClickHouse is served (`--clickhouse-server`).
    pub clickhouse: bool,
    /// Settings of the command line besides the configuration file.
    pub laid: Option<Laid>,
}

/// Settings of a command line, on both sides of those of a configuration file.
#[derive(Debug, Clone, Default)]
pub struct Laid {
    /// Settings that hold unless the file says otherwise.
    pub under: File,
    /// Settings that hold whatever the file says.
    pub over: File,
}

impl Laid {
    /// All three as one.
    fn around(&self, file: Option<File>) -> File {
        let between = file.unwrap_or_default().settings;
        let all = [
            self.under.settings.clone(),
            between,
            self.over.settings.clone(),
        ];
        File {
            settings: all.concat(),
        }
    }
}

/// Warnings and errors of a configuration file.
#[derive(Debug, Default)]
pub struct Findings {
    /// Parts that a start would leave out, change or not act on.
    pub warnings: Vec<Refusal>,
    /// Why there would be no start.
    pub errors: Vec<Refusal>,
}

/// Does with a configuration file all that a first start does before it opens a port: in memory
/// alone, nothing on disk is made or looked at.
#[must_use]
pub fn check(path: &Path) -> Findings {
    let mut findings = Findings::default();
    let file = match File::read(path) {
        Ok(file) => file,
        Err(refusal) => {
            findings.errors.push(refusal);
            return findings;
        }
    };
    match file.process() {
        Ok(settings) => findings.warnings = settings.warnings,
        Err(refused) => findings.errors = refused,
    }
    match Admin::over(&Options::default()) {
        Ok((mut admin, _)) => {
            findings.errors.extend(admin.begin(Some(&file), true));
            findings.warnings.append(&mut admin.notices);
        }
        Err(error) => findings.errors.push(sql_refusal("", error)),
    }
    findings
}

/// The admin side, before it serves. Goes to the thread that will.
pub struct Admin {
    pub(crate) engine: Engine,
    pub(crate) stats: Engine,
    pub(crate) snapshot: Snapshot,
    pub(crate) config: Option<PathBuf>,
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) letters: Option<Receiver<ToAdmin>>,
    pub(crate) wanted: Option<Receiver<Wanted>>,
    pub(crate) copies: Vec<Arc<Rules>>,
    pub(crate) undelivered: Arc<AtomicUsize>,
    pub(crate) closed: bool,
    pub(crate) uuid: Option<String>,
    /// Folder in which what is in force is kept.
    pub(crate) keeps_in: Option<PathBuf>,
    notices: Vec<Refusal>,
    refused: Vec<Refusal>,
}

impl Admin {
    /// Opens the databases and builds the first snapshot. An error means that nothing can be begun
    /// with this: a database that cannot be opened, a file that cannot be read or honoured, an open
    /// port with a known password.
    ///
    /// What was saved earlier and cannot be honoured is no error: the proxy begins without that
    /// module, or without that value of a variable, so that the operator can come in and repair it,
    /// with the credentials that were saved. See [`Admin::refused`].
    pub fn open(options: &Options) -> Result<Self, Vec<Refusal>> {
        let one = |error| vec![sql_refusal("", error)];
        if options
            .uuid
            .as_deref()
            .is_some_and(|uuid| !commands::is_uuid(uuid))
        {
            let words = "--uuid must be a UUID, such as 8a3f1c9e-5d2b-4f6a-9c0d-7e1b2a3c4d5e";
            return Err(vec![plain(words.into())]);
        }
        if options.start == Start::Initial {
            // What cannot be honoured changes nothing.
            if options.datadir.is_some() {
                Self::open(&Options {
                    datadir: None,
                    ..options.clone()
                })?;
            }
            set_aside(options).map_err(|error| {
                vec![plain(format!(
                    "cannot set the old {DISK_FILE} aside: {error}"
                ))]
            })?;
        }
        let (mut admin, is_first) = Self::over(options).map_err(one)?;
        let reads = is_first || options.start != Start::Usual;
        admin.recall(options)?;
        let file = match options.config.as_deref().filter(|_| reads) {
            Some(path) => Some(File::read(path).map_err(|refusal| vec![refusal])?),
            None => None,
        };
        let file = match options.laid.as_ref().filter(|_| reads) {
            Some(laid) => Some(laid.around(file)),
            None => file,
        };
        admin.notices.extend(readable_by_others(options));
        let against = admin.begin(file.as_ref(), reads);
        if !against.is_empty() {
            return Err(against);
        }
        if reads {
            layers::all_to_disk(&admin.engine).map_err(one)?;
        }
        Ok(admin)
    }

    /// Brings what was in force in the process before into memory. Whoever takes over begins with that or
    /// not at all.
    fn recall(&mut self, options: &Options) -> Result<(), Vec<Refusal>> {
        let when = match options.recall {
            Recall::No => return Ok(()),
            Recall::AfterACrash => "after a crash",
            Recall::FromAnother => "taken over from another process",
        };
        let Some(datadir) = options.datadir.as_deref() else {
            return Ok(());
        };
        let is_heir = options.recall == Recall::FromAnother;
        let words = match kept::recall(&self.engine, datadir) {
            Ok(false) if is_heir => {
                let words = "the other process has not kept what is in force there";
                return Err(vec![plain(words.to_owned())]);
            }
            Err(error) if is_heir => {
                let words =
                    format!("what is in force in the other process cannot be used: {error}");
                return Err(vec![plain(words)]);
            }
            Ok(true) => format!("{when}, all is as it was in force, saved or not"),
            Ok(false) => format!("{when}, all is as it was saved: nothing else was kept"),
            Err(error) => format!("{when}, all is as it was saved: {}", error.0),
        };
        self.notices.push(plain(words));
        Ok(())
    }

    /// The databases, with what was saved in memory, and whether nothing ever was.
    fn over(options: &Options) -> Result<(Self, bool), SqlError> {
        let engine = Engine::open(options.datadir.as_deref(), View::Admin)?;
        let stats = Engine::open(options.datadir.as_deref(), View::Stats)?;
        let count = "SELECT count(*) FROM disk.global_variables";
        let saved: i64 = engine.conn().query_row(count, [], |row| row.get(0))?;
        layers::add_defaults(engine.conn())?;
        if saved > 0 {
            layers::all_from_disk(&engine)?;
        }
        let aside = |unknown: &Unknown| {
            plain(format!(
                "{DISK_FILE} is of a newer version: this one does not know {unknown}, and keeps the table beside as it was"
            ))
        };
        let notices = engine.unknown().iter().map(aside).collect();
        let admin = Self {
            engine,
            stats,
            snapshot: Snapshot {
                scripts: Arc::new(config::Scripts::none_with(options.scripts.clone())),
                clickhouse: Arc::new(config::ClickhouseUsers::default().served(options.clickhouse)),
                ..Snapshot::default()
            },
            config: options.config.clone(),
            acceptor: None,
            letters: None,
            wanted: None,
            copies: Vec::new(),
            undelivered: Arc::default(),
            closed: options.closed,
            uuid: options.uuid.clone(),
            keeps_in: options.datadir.clone().filter(|_| options.keep),
            notices,
            refused: Vec::new(),
        };
        Ok((admin, saved == 0))
    }

    /// Makes the first snapshot, of memory with `file` over it; every reason against a start with
    /// it. If all `must` be in force, a row or a module that cannot be is such a reason.
    fn begin(&mut self, file: Option<&File>, must: bool) -> Vec<Refusal> {
        let mut against = Vec::new();
        if let Some(file) = file {
            let told = file::as_far_as_possible(&self.engine, file);
            self.notices.extend(told.warnings);
            against = told.refused;
        }
        let has_access = self.build_all(must);
        // Without what was saved of the admin port the defaults would let in everybody who knows
        // them.
        if must || !has_access {
            against.append(&mut self.refused);
        }
        against
    }

    /// The variables first: the others are built under them. Whether those of the admin port are in
    /// force, as far as they can be unless all `must` be.
    fn build_all(&mut self, must: bool) -> bool {
        let mut has_access = true;
        let variables = Module::ALL
            .iter()
            .filter(|module| module.prefix().is_some());
        for module in variables.chain(
            Module::ALL
                .iter()
                .filter(|module| module.prefix().is_none()),
        ) {
            let (built, refused) = build::at_start(&self.engine, &self.snapshot, *module, must);
            self.refused.extend(refused);
            if let Some((next, notices)) = built {
                self.snapshot = next;
                self.notices.extend(notices);
            } else if *module == Module::AdminVariables {
                has_access = false;
            }
        }
        self.snapshot.generation = 1;
        has_access
    }

    /// Offers TLS to operators, with this certificate.
    pub fn set_tls(&mut self, acceptor: Acceptor) {
        self.acceptor = Some(acceptor);
    }

    /// Lets other threads of the process write letters, which are answered while this serves; whether
    /// there was room for one.
    pub fn hear(&mut self) -> Box<dyn Fn(ToAdmin) -> bool + Send> {
        let (letters, unread) = mailbox::channel(LETTERS_LEN);
        self.letters = Some(unread);
        Box::new(move |letter| letters.try_send(letter).is_ok())
    }

    /// Lets cores say what their statements wait for, while this serves; whether there was room for it.
    pub fn does(&mut self) -> Arc<dyn Fn(Wanted) -> bool + Send + Sync> {
        let (wants, wanted) = mailbox::channel(WANTED_LEN);
        self.wanted = Some(wanted);
        Arc::new(move |one| wants.try_send(one).is_ok())
    }

    /// Returns what the proxy begins with.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Returns what the proxy begins with for each of so many cores: see [`Snapshot::for_core`].
    pub fn for_cores(&mut self, cores: usize) -> Vec<Arc<Snapshot>> {
        let all: Vec<_> = (0..cores)
            .map(|_| Arc::new(self.snapshot.for_core()))
            .collect();
        self.copies = all.iter().map(|snapshot| snapshot.rules.clone()).collect();
        all
    }

    /// Says, from any thread, how many rows of statistics were taken from the cores and wait for a
    /// reader, or for a disk that can be written.
    pub fn undelivered(&self) -> impl Fn() -> usize + Send + 'static {
        let rows = self.undelivered.clone();
        move || rows.load(Ordering::Relaxed)
    }

    /// Returns what was accepted and has less effect than it says.
    #[must_use]
    pub fn notices(&self) -> &[Refusal] {
        &self.notices
    }

    /// Why modules that were saved are not in force.
    #[must_use]
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }
}

fn plain(words: String) -> Refusal {
    Refusal {
        table: "",
        row: String::new(),
        column: "",
        words,
    }
}

/// Databases that could not be kept from others: they belong to somebody else.
fn readable_by_others(options: &Options) -> impl Iterator<Item = Refusal> + '_ {
    let all = [DISK_FILE, HISTORY_FILE]
        .into_iter()
        .filter_map(|name| Some(options.datadir.as_ref()?.join(name)));
    all.filter(|path| others_may(path)).map(|path| {
        let shown = path.display();
        plain(format!(
            "{shown} has passwords and texts of statements in it, and others than its owner may open it: chmod 600 {shown}"
        ))
    })
}

/// Renames the database of before; never over another one.
fn set_aside(options: &Options) -> std::io::Result<()> {
    let Some(datadir) = &options.datadir else {
        return Ok(());
    };
    let old = datadir.join(DISK_FILE);
    if !old.exists() {
        return Ok(());
    }
    keep_private(&old);
    let mut number = 1;
    loop {
        let new = datadir.join(format!("{DISK_FILE}.bak.{number}"));
        if !new.exists() {
            std::fs::rename(&old, &new)?;
            // A journal of a write that was cut off belongs to its database.
            let journal = |path: &Path| PathBuf::from(format!("{}-journal", path.display()));
            return match std::fs::rename(journal(&old), journal(&new)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        number += 1;
    }
}
