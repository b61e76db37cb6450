//! The stage of the cache: an answer that is kept, or one that another session fetches just now; and an
//! answer of a server that is kept.

use crate::command::job::{Job, Told, What};
use crate::command::preparing::without_comment;
use crate::command::trouble::Ended;
use crate::command::writes::{may_write_tables, note_names, schema_meant};
use crate::session::Session;
use crate::session::cached::{Filling, Writes};
use crate::statement::fetching::Waited;
use crate::talk::attributes::for_key;
use backend::{Hold, Names};
use bridge::Counter;
use cache::{Asked, Binary, Charset, Entry, Found, Gathered, Question, TableNames};
use std::ops::ControlFlow;
use std::time::Duration;

/// Longer statements, their parameters included, are not looked up.
const KEY_LEN_MAX: usize = 64 << 10;

impl Session {
    /// Answers from the cache, or lets the statement through and remembers to keep its answer:
    /// [`Self::keep`].
    pub(crate) async fn cached(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let writes = matches!(
            job.what,
            What::Query(_) | What::Execute(_) | What::Dynamic(_)
        ) && may_write_tables(job.class, job.sent());
        match (
            &self.cached.writes,
            job.epoch.snapshot.rules.watches_writes(),
        ) {
            (Writes::Nothing, false) if writes => self.cached.writes = Writes::Unwatched,
            // It is in a transaction that began before.
            (Writes::Unwatched, true) => self.writing().everything(),
            // One that is watched is so to its end.
            (_, watches)
                if writes && (watches || matches!(self.cached.writes, Writes::These(_))) =>
            {
                self.note_writes(job)
            }
            _ => {}
        }
        match job.plan.cache_ttl_ms {
            Some(ttl_ms) if self.may_use_cache(job) => self.look_up(job, ttl_ms).await,
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    /// Its answer may be another one's: it only reads, nothing that is this session's alone, and
    /// the session has nothing open.
    fn may_use_cache(&self, job: &Job<'_>) -> bool {
        let class = job.class;
        let whole = match job.what {
            What::Query(_) => true,
            // The key has what is set now.
            What::Execute(execution) => {
                !execution.is_bulk()
                    && !execution.opens_cursor()
                    && execution.prepared().means_as_now(&self.state)
            }
            What::Raw(..) | What::Prepare(..) | What::Dynamic(_) | What::Refused(_) => false,
        };
        whole
            && class.plain_read
            && class.reads.is_empty()
            && class.leaves.is_empty()
            && self.state.autocommit
            // A view's function may read them.
            && self.state.user_variables().next().is_none()
            && self.state.names != Names::Unknown
            && !job.plan.new_connection
            && job.plan.gather.is_none()
            // One of several is numbered by where it stands.
            && self.turn.is_first_and_last()
            && self.held.holds().all(|hold| matches!(hold, Hold::InsertId | Hold::NotAllowed | Hold::Delay))
            && self.core.cache.capacity() > 0
    }

    async fn look_up(&mut self, job: &Job<'_>, ttl_ms: u64) -> Result<ControlFlow<Told>, Ended> {
        let mut key = self.core.scratch.take();
        self.write_key(job, &mut key);
        if key.len() > KEY_LEN_MAX {
            self.core.scratch.give(key);
            return Ok(ControlFlow::Continue(()));
        }
        let v = &job.epoch.snapshot.variables;
        let asked = Asked {
            now_ns: self.core.rt.now().as_ns(),
            ttl_ns: ttl_ms.saturating_mul(1_000_000),
            soft_pct: v.mysql_query_cache_soft_ttl_pct,
            watched: job.plan.cache_invalidate == Some(true),
        };
        self.core.tally.up(Counter::QueryCacheCountGet);
        let renewal = match self.found(&key, &asked) {
            Found::This(entry) => {
                self.core.scratch.give(key);
                if is_too_long(&entry, job) || !entry.fits(self.caps) {
                    return Ok(ControlFlow::Continue(()));
                }
                return self.serve(job, &entry).await.map(ControlFlow::Break);
            }
            Found::Renew(renewal) => Some(renewal),
            Found::Nothing => None,
        };
        let text = job.sent();
        let lexing = self.lexing_of(job.what);
        // What it reads and calls is known only where its strings are.
        if sql::is_volatile(text, lexing) || !lexing.is_sure_of(text) {
            self.core.scratch.give(key);
            return Ok(ControlFlow::Continue(()));
        }
        let patience = Duration::from_millis(u64::from(job.plan.cache_timeout_ms.unwrap_or(0)));
        let mut flying = None;
        if renewal.is_none() && !patience.is_zero() {
            match self.take_off(&key, patience).await? {
                Waited::Fetch(mine) => flying = Some(mine),
                Waited::Told(told) => return Ok(ControlFlow::Break(told)),
                Waited::Look(others_wait) => {
                    let now_ns = self.core.rt.now().as_ns();
                    if let Found::This(entry) = self.core.cache.get(
                        &key,
                        &Asked {
                            now_ns,
                            soft_pct: 0,
                            ..asked
                        },
                    ) && !is_too_long(&entry, job)
                        && entry.fits(self.caps)
                    {
                        drop(others_wait);
                        self.core.scratch.give(key);
                        return self.serve(job, &entry).await.map(ControlFlow::Break);
                    }
                    // It failed, or its answer is not one to keep: everybody asks for himself now,
                    // and who comes later may wait.
                    drop(others_wait);
                    flying = Some(self.core.fly_alone(&key));
                }
            }
        }
        let mut tables = Vec::new();
        let here = schema_meant(job, &self.state.schema).as_bytes();
        let known = sql::tables_read(text, lexing, |schema, name| {
            tables.push((schema.unwrap_or(here).to_vec(), name.to_vec()));
        });
        if asked.watched
            && (!known
                || tables
                    .iter()
                    .any(|(schema, _)| sql::is_system_schema(schema)))
        {
            // Nobody could tell when it ends. A dictionary changes with statements that name
            // something else.
            self.core.scratch.give(key);
            return Ok(ControlFlow::Continue(()));
        }
        let pairs = tables
            .iter()
            .map(|(schema, name)| (schema.as_slice(), name.as_slice()));
        let versions = asked
            .watched
            .then(|| self.core.cache.tables().versions(pairs));
        let max = usize::try_from(v.mysql_threshold_resultset_size).unwrap_or(usize::MAX);
        self.cached.filling = Some(Box::new(Filling {
            gathered: Gathered::up_to(
                max.min(self.core.cache.result_len_max()),
                self.core.cache.clone(),
            ),
            asked_at_ns: self.core.rt.now().as_ns(),
            flushes: self.core.cache.flushes(),
            tables: TableNames::of(&tables),
            versions,
            _renewal: renewal,
            _flying: flying,
            key,
        }));
        Ok(ControlFlow::Continue(()))
    }

    /// Looks for what is kept under a key. A result that lacks only the types of columns is fetched
    /// once more.
    fn found(&self, key: &[u8], asked: &Asked) -> Found {
        match self.core.cache.get(key, asked) {
            Found::This(entry) if entry.lacks_types(self.caps) => Found::Nothing,
            found => found,
        }
    }

    async fn serve(&mut self, job: &Job<'_>, entry: &Entry) -> Result<Told, Ended> {
        let mut out = Vec::with_capacity(entry.len() + 32);
        if let What::Execute(execution) = job.what {
            let mut outline = execution.outline.get();
            let flags = self.flags() | execution.columns_flags(entry.columns());
            entry.write(&mut out, self.caps, flags, Some(&mut outline));
            execution.outline.set(outline);
        } else {
            entry.write(&mut out, self.caps, self.flags(), None);
        }
        let tally = &self.core.tally;
        tally.up(Counter::QueryCacheCountGetOk);
        tally.add(Counter::QueryCacheBytesOut, out.len() as u64);
        tally.add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await?;
        Ok(Told {
            rows_sent: entry.rows(),
            row_count: -1,
            from_cache: true,
            ..Told::default()
        })
    }

    /// A usual statement begins, where no rule asks for what is written. One may when it has ended.
    pub(crate) fn note_unwatched(&mut self, job: &Job<'_>) {
        if !job.class.plain_read
            && matches!(self.cached.writes, Writes::Nothing)
            && may_write_tables(job.class, job.sent())
        {
            self.cached.writes = Writes::Unwatched;
        }
    }

    fn write_key(&self, job: &Job<'_>, out: &mut Vec<u8>) {
        let execution = match job.what {
            What::Execute(execution) => Some(execution),
            _ => None,
        };
        let binary = execution.map(|execution| Binary {
            schema: &execution.prepared().schema,
            params: execution.params(),
        });
        let charset = match &self.state.names {
            Names::Collation(id) => Charset::Collation(*id),
            Names::Written(words) => Charset::Written(words),
            Names::Unknown => return,
        };
        let text = sql::without_inner(without_comment(sql::without_tail(
            job.sent(),
            self.lexing_of(job.what),
        )));
        let question = Question {
            user: &self.user_name,
            schema: &self.state.schema,
            hostgroup: job.plan.hostgroup(),
            caps: self.caps,
            charset,
            text: &text,
            binary,
            attributes: match job.what {
                What::Query(attributes) => for_key(attributes),
                What::Execute(execution) => for_key(&execution.attributes),
                What::Raw(..) | What::Prepare(..) | What::Dynamic(_) | What::Refused(_) => &[],
            },
            client: self
                .entry
                .address
                .filter(|_| tells_address(job))
                .map(|at| at.ip()),
        };
        let long = execution.into_iter().flat_map(|execution| execution.long());
        question.write(self.state.variables(), long, out);
    }

    /// Which tables the statement writes: their results are of no use from now on.
    fn note_writes(&mut self, job: &Job<'_>) {
        #[cfg(debug_assertions)]
        if backend::planted::FORGET_TABLES.get() {
            return;
        }
        let lexing = self.lexing_of(job.what);
        let schema = schema_meant(job, &self.state.schema).to_owned();
        // Entries have the names that servers were asked with.
        let parts = job.plan.gather.iter().flat_map(|gather| &gather.parts);
        for part in parts {
            note_names(self.writing(), job.class, &part.text, lexing, &schema);
        }
        note_names(self.writing(), job.class, job.sent(), lexing, &schema);
    }
}

/// Whether the servers that it goes to are told where the client is.
fn tells_address(job: &Job<'_>) -> bool {
    job.epoch
        .snapshot
        .servers
        .hostgroup(job.plan.hostgroup())
        .is_some_and(|group| group.attributes.proxy_protocol > 0)
}

/// Whether the entry was kept for a statement whose rule allowed more rows: the server's answer is
/// cut where it must be.
fn is_too_long(entry: &Entry, job: &Job<'_>) -> bool {
    job.plan.rows_max().is_some_and(|max| entry.rows() > max)
}
