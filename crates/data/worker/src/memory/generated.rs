//! INSERTs whose id is `LAST_INSERT_ID()` for certain, so that nobody has to be asked for it.
//!
//! A server's OK has the first id that it made, or, if it made none, the one that the client chose;
//! `LAST_INSERT_ID()` is the former only. An INSERT that does not name the AUTO_INCREMENT column of
//! its table chooses none. Which column that is the server is asked once, with the first INSERT of
//! its kind, and again after a while, or after a definition has changed.

use crate::session::Session;
use crate::statement::{Job, What};
use crate::trouble::Failed;
use backend::{Backend, Hold};
use hashbrown::HashMap;
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// Other proxies and direct connections may change a table, too.
const LASTS: Duration = Duration::from_secs(300);
/// More kinds of INSERTs are not remembered: of each a hundred bytes or so.
const KINDS_MAX: usize = 4096;
/// Bytes of a name that servers are asked about.
const NAME_LEN_MAX: usize = 64;

/// A kind of INSERT: the hash of its digest, its hostgroup and the schema that it means.
pub(crate) type Kind = (u64, u32, Rc<str>);

/// Knowledge of INSERTs on a core under one configuration.
#[derive(Debug, Default)]
pub(crate) struct Generated(HashMap<Kind, (bool, Instant), foldhash::fast::RandomState>);

impl Generated {
    /// A definition may have changed.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    fn get(&self, kind: &Kind, now: Instant) -> Option<bool> {
        let (certain, until) = self.0.get(kind)?;
        (now < *until).then_some(*certain)
    }

    fn set(&mut self, kind: Kind, certain: bool, now: Instant) {
        if self.0.len() >= KINDS_MAX {
            self.0.clear();
        }
        self.0.insert(kind, (certain, now + LASTS));
    }
}

/// Question to a server about the table of an INSERT.
#[derive(Debug)]
pub(crate) struct Asks {
    kind: Kind,
    schema: String,
    table: String,
    columns: Vec<String>,
    /// Id that the answer to the INSERT said.
    id: u64,
}

impl Session {
    /// An INSERT was answered with this id: whether that is `LAST_INSERT_ID()` for certain. If
    /// nobody knows, it is noted what to ask for.
    pub(crate) fn is_generated(&self, job: &Job<'_>, backend: &Backend, id: u64) -> bool {
        let epoch = job.epoch;
        if job.class.ddl {
            epoch.generated.borrow_mut().forget();
        }
        let plain = match job.what {
            What::Query(_) => job.is_as_written(),
            What::Execute(execution) => !execution.is_bulk(),
            _ => false,
        };
        let Some(digest) = job.digest.filter(|_| plain && id != 0 && job.class.inserts) else {
            return false;
        };
        // A temporary table hides one that lasts.
        if job.class.multi
            || !job.class.leaves.is_empty()
            || backend.holds.has(Hold::TemporaryTable)
            || job.text.len() >= epoch.digest.max_query_length
        {
            return false;
        }
        let schema = job.what.prepared_in().unwrap_or(&self.state.schema);
        let kind = (digest, job.plan.hostgroup(), schema.clone());
        let now = self.core.rt.now();
        if let Some(certain) = epoch.generated.borrow().get(&kind, now) {
            return certain;
        }
        match asks(job, self.lexing_of(job.what).escapes(), kind.clone(), id) {
            Some(asks) => {
                let mut known = self.remembered.insert_id.borrow_mut();
                known.get_or_insert_default().asks = Some(Box::new(asks));
            }
            None => epoch.generated.borrow_mut().set(kind, false, now),
        }
        false
    }

    /// Asks a connection for `LAST_INSERT_ID()`; with it, where that is to be known, for the
    /// AUTO_INCREMENT column of the table. `None` if the server does not say.
    pub(crate) async fn ask_id(
        &mut self,
        backend: &mut Backend,
        asks: Option<Box<Asks>>,
        limit_ms: u64,
    ) -> Result<Option<u64>, Failed> {
        // A question about tables would be a part of the transaction, and may begin one.
        let free = !backend.holds.has(Hold::Transaction) && !backend.holds.is_manual();
        let Some(asks) = asks.filter(|_| free) else {
            let asked = backend.ask_insert_id();
            return self
                .watched(limit_ms, asked, self.entry.told_to_leave())
                .await;
        };
        let asked = backend.ask_generated(&asks.schema, &asks.table);
        let told = self
            .watched(limit_ms, asked, self.entry.told_to_leave())
            .await?;
        let Some((last, column)) = told else {
            return Ok(None);
        };
        let names = |column: &String| {
            let is_it = |name: &String| name.eq_ignore_ascii_case(column);
            asks.columns.iter().any(is_it)
        };
        let certain = last == asks.id && column.is_some_and(|column| !names(&column));
        let (epoch, now) = (self.core.epoch(), self.core.rt.now());
        epoch.generated.borrow_mut().set(asks.kind, certain, now);
        Ok(Some(last))
    }
}

/// Returns what to ask about an INSERT; `None` if it names no columns, or not in ASCII.
fn asks(job: &Job<'_>, escapes: bool, kind: Kind, id: u64) -> Option<Asks> {
    let read = sql::insert(job.sent(), escapes)?;
    let text = |name: &[u8]| {
        let plain = name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
        let fits = plain && !name.is_empty() && name.len() <= NAME_LEN_MAX;
        fits.then(|| String::from_utf8_lossy(name).into_owned())
    };
    let schema = match &read.schema {
        Some(schema) => text(schema)?,
        None => text(kind.2.as_bytes())?,
    };
    Some(Asks {
        kind,
        schema,
        table: text(&read.table)?,
        columns: read
            .columns
            .iter()
            .map(|name| text(name))
            .collect::<Option<_>>()?,
        id,
    })
}
