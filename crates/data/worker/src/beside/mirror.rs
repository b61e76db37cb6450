//! Copies for mirrors: a queue and tasks of their own, so that no client waits for one or learns
//! how it went.

use crate::command::asked::Executed;
use crate::command::job::{Job, What};
use crate::command::reads::limit_ms;
use crate::command::settings::sees_user_variables;
use crate::command::withheld::is_stale;
use crate::command::writes::{may_write_tables, note_names, schema_meant};
use crate::core::mirrors::{Copy, Mirrors, Payload, QUEUE_BYTES_MAX};
use crate::core::{Core, alone};
use crate::known::epoch::Epoch;
use crate::seen::compare::{Pair, Side};
use crate::seen::stats::{Bounds, Failed, Seen};
use crate::session::Session;
use backend::{Backend, BackendFailed, Want};
use bridge::Counter;
use config::Rules;
use net::NetError;
use rt::Chunk;
use sql::{Class, DigestOptions, Shape};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::response::{Expect, Follow, Outcome, Summed};
use wire::{errors, packet};

impl Session {
    /// Compares what the client was told with what a mirror has said, where that is asked for.
    pub(crate) fn compare_with_mirror(&self, job: &Job<'_>, pair: Option<Rc<Pair>>) {
        if job.plan.mirror.is_some()
            && let (Some(side), Some(pair)) = (self.core.verdicts.take(self.entry.id), pair)
        {
            let now_s = self.core.rt.wall_us() / 1_000_000;
            if !pair.client_said(&self.core.verdicts, side, now_s, &job.epoch.digest) {
                self.core.tally.up(Counter::VerdictsDropped);
            }
        }
    }

    /// A copy for the mirror, if the plan says so. With a pair, its result will be compared with
    /// the client's.
    pub(crate) fn copy_to_mirror(&self, job: &Job<'_>) -> Option<Rc<Pair>> {
        let mirror = job.plan.mirror.as_deref()?;
        let payload = match (job.what, &mirror.leg.statement) {
            _ if !alone::is_free(job.class) => None,
            (What::Query(attributes), statement) => Some(Payload::Text(
                statement.of(job.text).into(),
                attributes.clone(),
            )),
            (What::Execute(execution), plan::Text::AsIs) if !execution.is_bulk() => {
                Some(Payload::Execution(execution.keep()))
            }
            (What::Execute(_) | What::Raw(..) | What::Dynamic(_) | What::Refused(_), _) => None,
            // Its executions are copied.
            (What::Prepare(..), _) => return None,
        };
        let Some(payload) = payload else {
            self.core.tally.up(Counter::MirrorLeftOut);
            return None;
        };
        let mut state = self.state.clone();
        // Nobody would commit it.
        state.autocommit = true;
        // Nor does anybody want to be told what it changes.
        state.track_nothing();
        let pair = mirror.compare.then(|| {
            Rc::new(Pair::new(
                mirror.leg.hostgroup,
                job.text,
                self.lexing_of(job.what),
            ))
        });
        let mut copy = Copy {
            hostgroup: mirror.leg.hostgroup,
            payload,
            user: self.user.clone(),
            user_name: self.user_name.clone(),
            secret: self.secret.clone(),
            caps: self.caps,
            collation: self.collation,
            session: self.entry.id,
            attributes: self.attributes.clone(),
            state,
            lexing: self.lexing_of(job.what),
            client_address: self.entry.client.0.as_str().into(),
            timeout_ms: mirror.timeout_ms,
            delay_ms: mirror.delay_ms.unwrap_or_default(),
            pair: pair.clone(),
            writing: None,
        };
        copy.note_writes(
            &self.core,
            &job.epoch.snapshot.rules,
            schema_meant(job, &self.state.schema),
        );
        let v = &job.epoch.snapshot.variables;
        let (max, queue_max) = (
            self.core.share(v.mysql_mirror_max_concurrency),
            self.core.share(v.mysql_mirror_max_queue_length),
        );
        if Mirrors::accept(&self.core, copy, max, queue_max) {
            pair
        } else {
            None
        }
    }
}

impl Mirrors {
    /// Runs it, lets it wait, or drops it.
    fn accept(core: &Rc<Core>, copy: Copy, max: u64, queue_max: u64) -> bool {
        let mirrors = &core.mirrors;
        if mirrors.running.get() < max {
            let running = Running::new(core.clone());
            core.rt.spawn(running.until_none_waits(copy));
            return true;
        }
        let bytes = mirrors.bytes.get() + copy.bytes();
        let mut waiting = mirrors.waiting.borrow_mut();
        if waiting.len() as u64 >= queue_max || bytes > QUEUE_BYTES_MAX {
            core.tally.up(Counter::MirrorDropped);
            return false;
        }
        mirrors.bytes.set(bytes);
        waiting.push_back(copy);
        core.tally.up(Counter::MirrorQueueLength);
        true
    }

    fn next(&self, core: &Core) -> Option<Copy> {
        let copy = self.waiting.borrow_mut().pop_front()?;
        self.bytes
            .set(self.bytes.get().saturating_sub(copy.bytes()));
        core.tally.down(Counter::MirrorQueueLength);
        Some(copy)
    }
}

/// One of `mysql-mirror_max_concurrency`, however it ends.
struct Running(Rc<Core>);

impl Running {
    fn new(core: Rc<Core>) -> Self {
        core.mirrors.running.set(core.mirrors.running.get() + 1);
        core.tally.up(Counter::MirrorConcurrency);
        Self(core)
    }

    async fn until_none_waits(self, first: Copy) {
        let mut next = Some(first);
        while let Some(copy) = next {
            if copy.delay_ms > 0 {
                self.0
                    .rt
                    .sleep(Duration::from_millis(copy.delay_ms.into()))
                    .await;
            }
            copy.run(&self.0).await;
            next = self.0.mirrors.next(&self.0);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.mirrors.running.set(self.0.mirrors.running.get() - 1);
        self.0.tally.down(Counter::MirrorConcurrency);
    }
}

impl Copy {
    fn text(&self) -> &[u8] {
        match &self.payload {
            Payload::Text(text, _) => text,
            Payload::Execution(kept) => &kept.prepared.sql,
        }
    }

    /// All that it keeps in memory, also what it shares with the session, with others or with the
    /// cache of statements: they may forget it before it is sent.
    fn bytes(&self) -> usize {
        let payload = match &self.payload {
            Payload::Text(text, attributes) => text.len() + attributes.bytes().len(),
            Payload::Execution(kept) => kept.bytes() + kept.prepared.bytes(),
        };
        let attributes: usize = self
            .attributes
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        size_of::<Self>()
            + payload
            + attributes
            + self.state.bytes()
            + self.pair.as_ref().map_or(0, |pair| pair.bytes())
    }

    /// The client's statement may have another text, and has ended long before its copy.
    fn note_writes(&mut self, core: &Core, rules: &Rules, schema: &str) {
        if !rules.watches_writes() {
            return;
        }
        let class = self.lexing.class(self.text());
        if may_write_tables(&class, self.text()) {
            let mut writing = core.cache.tables().writing();
            note_names(&mut writing, &class, self.text(), self.lexing, schema);
            self.writing = Some(writing);
        }
    }

    async fn run(mut self, core: &Rc<Core>) {
        let epoch = core.epoch();
        if self.writing.is_none() {
            // A rule may have come to ask for it since.
            let schema: Arc<str> = match &self.payload {
                Payload::Execution(kept) if !kept.prepared.schema.is_empty() => {
                    (&*kept.prepared.schema).into()
                }
                _ => (&*self.state.schema).into(),
            };
            self.note_writes(core, &epoch.snapshot.rules, &schema);
        }
        self.run_under(core, &epoch).await;
        if !epoch.snapshot.rules.watches_writes()
            && may_write_tables(&self.lexing.class(self.text()), self.text())
        {
            core.has_written_unwatched();
        }
    }

    async fn run_under(&self, core: &Rc<Core>, epoch: &Epoch) {
        let class = self.lexing.class(self.text());
        let want = Want {
            hostgroup: self.hostgroup,
            user: &self.user.username,
            secret: &self.secret,
            caps: self.caps,
            collation: self.collation,
            session: self.session,
            attributes: &self.attributes,
            // Copies share their connections: they come from nobody.
            client: None,
            state: &self.state,
            snapshot: &epoch.snapshot,
            // A copy that reads one by name is left out; what a trigger or a routine reads is this
            // session's, and nobody else's.
            user_variables: sees_user_variables(&class),
            remembered: None,
            tracking: alone::tracking(&class),
            new_connection: false,
            must_see: None,
            like: None,
            executes: None,
            // Nobody waits for a copy.
            priority: 0,
            cost_ns: None,
            waits: true,
            at: None,
        };
        let acquired = match core.pools.until_spare(&want).await {
            Ok(spare) => core
                .pools
                .acquire(&want)
                .await
                .map(|backend| (backend, spare)),
            Err(late) => Err(late),
        };
        let Ok((mut backend, _until_it_is_given_back)) = acquired else {
            core.tally.up(Counter::MirrorFailed);
            return;
        };
        alone::takes(&mut backend);
        let limit_ms = limit_ms(self.timeout_ms, &epoch.snapshot.variables);
        let max = epoch.snapshot.variables.mysql_max_stmts_per_connection;
        let began = core.rt.now();
        let answer = core
            .rt
            .timeout(
                Duration::from_millis(limit_ms),
                self.on(&mut backend, &class, max),
            )
            .await;
        let time_us = u64::try_from((core.rt.now() - began).as_micros()).unwrap_or(u64::MAX);
        let Ok(Ok(summed)) = answer else {
            core.tally.up(Counter::MirrorFailed);
            core.pools.release(backend);
            return;
        };
        core.tally.up(Counter::MirrorSent);
        let response = summed.response();
        let mut error = None;
        if let Outcome::Err { code, message, .. } = response.outcome() {
            error = Some(code);
            if code == errors::MUST_CHANGE_PASSWORD.number {
                // It stays so when the user has a new password.
                backend.retire();
            }
            let (server, words) = (backend.place().server(), String::from_utf8_lossy(message));
            let tracks = epoch.snapshot.variables.mysql_query_digests_track_hostname;
            core.count_error(&Failed {
                hostgroup: self.hostgroup,
                host: backend.place().host(),
                port: server.port,
                user: &self.user_name,
                client_address: if tracks { &self.client_address } else { "" },
                schema: &self.state.schema,
                errno: code,
                message: &words,
                now_s: core.rt.wall_us() / 1_000_000,
            });
        }
        if let Some(pair) = &self.pair {
            let side = Side {
                error,
                affected: response.affected_rows(),
                sum: summed.sum(),
                time_us,
                more_than: None,
            };
            if !pair.mirror_said(
                &core.verdicts,
                side,
                core.rt.wall_us() / 1_000_000,
                &epoch.digest,
            ) {
                core.tally.up(Counter::VerdictsDropped);
            }
        }
        self.count(core, epoch, &class, time_us);
        #[cfg(debug_assertions)]
        if backend::planted::KEEP_COPIES.get() {
            backend.holds = backend::Holds::default();
        }
        alone::gives_back(core, backend);
    }

    /// The command there, and its response to the end.
    async fn on(
        &self,
        backend: &mut Backend,
        class: &Class<'_>,
        max: u64,
    ) -> Result<Summed, BackendFailed> {
        alone::come_to(backend, &self.state, class).await?;
        let (mut command, mut executed) = (Vec::new(), None);
        let expect = match &self.payload {
            Payload::Text(text, attributes) => {
                let caps = backend.hello.caps;
                packet::append_with(&mut command, &mut 0, |out| {
                    wire::attributes::write_query(out, text, attributes, caps)
                });
                Expect::Query
            }
            Payload::Execution(kept) => {
                let id = backend
                    .prepare(&kept.prepared, 0, &kept.bindings, max)
                    .await?;
                kept.fits(backend, id)?;
                executed = Some((id, kept.has_long()));
                for command in kept.long_data(id) {
                    backend.send(command).await?;
                }
                packet::append_with(&mut command, &mut 0, |out| {
                    kept.write(out, id, backend.hello.caps)
                });
                Expect::Execute
            }
        };
        alone::before(backend, class);
        backend.send(Chunk::from(command)).await?;
        let mut summed = Summed::expect(expect, backend.hello.caps);
        loop {
            let chunk = backend.recv().await?;
            let followed = summed.follow(&chunk);
            if let Follow::Ended { used } = followed
                .map_err(|malformed| BackendFailed::BrokeAfter(NetError::Malformed(malformed)))?
            {
                backend.ended(used, chunk.len());
                break;
            }
        }
        let response = summed.response();
        let ok = !matches!(response.outcome(), Outcome::Err { .. });
        if let Some((id, has_long)) = executed
            && (has_long && !ok || is_stale(response, Executed::Id(id)))
        {
            backend.forget_prepared(id);
        }
        alone::learn(backend, class, response);
        Ok(summed)
    }

    /// As ProxySQL counts it: in the mirror's hostgroup, without rows.
    fn count(&self, core: &Core, epoch: &Epoch, class: &Class<'_>, time_us: u64) {
        let v = &epoch.snapshot.variables;
        if v.mysql_commands_stats {
            core.commands.count(class.command, time_us);
            core.latencies.count(i64::from(self.hostgroup), time_us);
        }
        if !v.mysql_query_digests {
            return;
        }
        let mut text = core.scratch.take();
        let digest = sql::digest(self.text(), &epoch.digest, &mut text);
        let unnamed = core.default_schema(&v.mysql_default_schema);
        let seen = Seen {
            hostgroup: i64::from(self.hostgroup),
            schema: if self.state.schema.is_empty() {
                &unnamed
            } else {
                &self.state.schema
            },
            user: &self.user_name,
            client_address: if v.mysql_query_digests_track_hostname {
                &self.client_address
            } else {
                ""
            },
            digest,
            text: &text,
            shape: None,
            alike: epoch.digests_alike || text.len() >= epoch.digest.max_digest_length,
            time_us,
            now_s: core.rt.wall_us() / 1_000_000,
            rows_affected: 0,
            rows_sent: 0,
        };
        // Of what it shows the client's row knows more.
        let shape = || Shape {
            digest: sql::digest(self.text(), &DigestOptions::WHOLE, &mut Vec::new()),
            is_shown: true,
        };
        if !core.digests.count(&seen, Bounds::of(v), shape) {
            core.tally.up(Counter::DigestsDropped);
        }
        core.scratch.give(text);
    }
}
