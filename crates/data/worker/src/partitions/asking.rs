//! Partitions that are asked: their answers, the connections of one statement, and why it stops.

use crate::command::job::{Job, What};
use crate::command::settings::sees_user_variables;
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::partitions::said::error_of;
use crate::reach::branch::carries_more;
use crate::seen::traces::Leg;
use crate::session::Session;
use crate::session::global::GlobalTransaction;
use backend::{Backend, BackendFailed, Hold, State, Want};
use gather::Column;
use net::NetError;
use rt::{Chunk, Either, Instant};
use sql::Class;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use wire::attributes::Attributes;
use wire::response::{Expect, Follow, Outcome, Response};
use wire::row_stream::RowStream;
use wire::rows::Shape;
use wire::{errors, packet};

/// So often it is looked whether a server was taken away meanwhile.
pub(crate) const LOOKS: Duration = Duration::from_secs(1);
/// Bytes behind the last row that is needed that are read rather than having the connection closed.
pub(crate) const LEFT_MAX: usize = 256 << 10;
/// So long servers have to say them.
pub(crate) const LEFT_WITHIN: Duration = Duration::from_millis(200);

/// A partition's answer on its way.
pub(crate) struct Answering {
    /// None once another part of the statement is asked on it.
    pub(crate) backend: Option<Box<Backend>>,
    pub(crate) response: Response,
    pub(crate) rows: RowStream,
    pub(crate) ended: bool,
    leg: Leg,
}

/// Why it goes no further.
pub(crate) enum Stopped {
    /// The client has left.
    Gone,
    /// Somebody ended it.
    Told,
    /// A server has failed.
    Failed(BackendFailed),
    /// This is said.
    Said(Complaint),
}

impl Stopped {
    /// Complaint of a client whose statement waited for what was asked; or the end of its session.
    /// `killed`: somebody has ended the session, and not only the statement.
    pub(crate) fn complaint(self, killed: bool) -> Result<Complaint, Ended> {
        match self {
            Self::Gone => Err(Ended::Gone),
            Self::Told if killed => Err(Ended::Told(Complaint::interrupted())),
            Self::Told => Ok(Complaint::interrupted()),
            Self::Failed(failed) => Ok(Complaint::of(&failed)),
            Self::Said(complaint) => Ok(complaint),
        }
    }
}

impl From<BackendFailed> for Stopped {
    fn from(failed: BackendFailed) -> Self {
        Self::Failed(failed)
    }
}

/// How the parts of a statement are asked.
#[derive(Clone)]
pub(crate) struct Asking<'a> {
    pub(crate) class: Class<'a>,
    /// Of the session, but that each statement commits by itself.
    pub(crate) state: State,
    /// Time in microseconds, where partitions must be told the same one.
    pub(crate) moment_us: Option<u64>,
    until: Option<Instant>,
    limit_ms: u64,
    /// The session's own connections, for a statement of its transaction.
    pub(crate) legs: Option<Rc<Legs>>,
}

impl Answering {
    /// Takes what has come, and says how many bytes that were.
    pub(crate) fn take(
        &mut self,
        chunk: Result<Chunk, BackendFailed>,
    ) -> Result<usize, BackendFailed> {
        let taken = chunk.and_then(|chunk| self.follow(&chunk).map(|()| chunk.len()));
        if taken.is_err() {
            self.leg.ends(Some(0));
        }
        taken
    }

    fn follow(&mut self, chunk: &Chunk) -> Result<(), BackendFailed> {
        self.leg.hears();
        let followed = self.response.follow(chunk);
        match followed.map_err(broke)? {
            Follow::More => self.rows.push(chunk),
            Follow::Ended { used } => {
                self.rows.push(chunk.get(..used).unwrap_or_default());
                if let Some(backend) = &mut self.backend {
                    backend.ended(used, chunk.len());
                }
                self.ended = true;
                self.leg
                    .ends(error_of(&self.response).map(|(code, _)| code));
            }
        }
        Ok(())
    }

    /// Returns the error with which the server refuses.
    fn error(&self) -> Option<Complaint> {
        match self.response.outcome() {
            Outcome::Err {
                code,
                state,
                message,
            } if self.ended => {
                let state = String::from_utf8_lossy(&state);
                let words = String::from_utf8_lossy(message);
                Some(Complaint::with(code, &state, words))
            }
            _ => None,
        }
    }

    pub(crate) fn columns(&self) -> Vec<Column> {
        columns_of(self.rows.shapes())
    }
}

impl Session {
    /// So often a statement may be tried again.
    pub(crate) fn tries(&self, job: &Job<'_>) -> u64 {
        let retries = job.epoch.snapshot.variables.mysql_query_retries_on_failure;
        job.plan.retries.map_or(retries, u64::from)
    }

    /// How partitions are asked; `same_moment`: all are told the same time.
    pub(crate) fn asking<'a>(&self, job: &Job<'a>, same_moment: bool) -> Asking<'a> {
        let limit_ms = self.limit_ms(job);
        let now = self.core.rt.now();
        let mut state = self.state.clone();
        state.autocommit = true;
        if let Some(schema) = job.what.prepared_in() {
            state.schema = schema.clone();
        }
        // A session that has said what time it is has said so to all.
        let needs_moment = same_moment && state.variable("timestamp").is_none();
        Asking {
            class: job.class.clone(),
            moment_us: needs_moment.then(|| self.core.rt.wall_us()),
            state,
            until: (limit_ms > 0 && limit_ms < u64::MAX)
                .then(|| now + Duration::from_millis(limit_ms)),
            limit_ms,
            legs: None,
        }
    }

    /// Refuses partitions whose columns are of different kinds.
    pub(crate) fn are_alike(&self, parts: &[Answering]) -> Result<(), Stopped> {
        let columns = parts.first().map(Answering::columns).unwrap_or_default();
        if parts
            .iter()
            .all(|part| are_alike(&columns, &part.columns()))
        {
            return Ok(());
        }
        let words = "HSCALE-1000: the tables of its partitions differ in the types of these columns; make them alike";
        Err(Stopped::Said(not_supported(words)))
    }

    /// Refuses a session or a statement of which the rows could not be shown as they should.
    pub(crate) fn may_put_together(&self, job: &Job<'_>) -> Result<(), Stopped> {
        if self.state.leaves_out_definitions() {
            let words = "HSCALE-1000: rows of several partitions are put together with their columns described; set resultset_metadata to FULL";
            return Err(Stopped::Said(not_supported(words)));
        }
        if let What::Execute(execution) = job.what
            && !execution.known.means_as_now(&self.state)
        {
            let words = "HSCALE-1000: it was prepared with other settings than those of its session now, and needs several partitions; prepare it again";
            return Err(Stopped::Said(not_supported(words)));
        }
        Ok(())
    }

    /// Waits until every partition has described its columns. What fails first is heard first.
    pub(crate) async fn until_described(
        &self,
        parts: &mut [Answering],
        asking: &Asking<'_>,
    ) -> Result<(), Stopped> {
        let is_awaited = |part: &Answering| !part.rows.is_described();
        while parts.iter().any(|part| is_awaited(part) && !part.ended) {
            let at = self
                .hear_part(parts, |_, part| is_awaited(part), asking)
                .await?;
            // A row that is there is read later.
            parts[at].rows.describe().map_err(broke)?;
            self.look_for_error(&parts[at])?;
        }
        Ok(())
    }

    /// Asks on this connection, which is closed if that fails.
    pub(crate) async fn ask_on(
        &self,
        job: &Job<'_>,
        asking: &Asking<'_>,
        text: &[u8],
        mut backend: Box<Backend>,
    ) -> Result<Answering, Stopped> {
        let none = Attributes::default();
        let attributes = match job.what {
            What::Query(attributes) => attributes,
            What::Execute(execution) => &execution.attributes,
            _ => &none,
        };
        let leg = self.leg(&backend);
        let asked = asking.ask(&mut backend, text, attributes);
        let asked = self.unless_stopped(asking, Box::pin(asked)).await;
        let caps = backend.hello.caps;
        let failed = match asked {
            Ok(Ok(sent)) => {
                return Ok(Answering {
                    response: Response::expect(Expect::Query, caps).to_packet(sent),
                    rows: RowStream::new(caps),
                    backend: Some(backend),
                    ended: false,
                    leg,
                });
            }
            Ok(Err(failed)) => {
                leg.ends(Some(0));
                failed.into()
            }
            Err(stopped) => stopped,
        };
        match &asking.legs {
            Some(legs) => {
                self.end_on_server(&backend);
                legs.lose(self, backend);
            }
            None => self.core.pools.abandon(backend),
        }
        Err(failed)
    }

    /// A connection there, for whoever wants it in this state.
    pub(crate) async fn connection_for(
        &self,
        job: &Job<'_>,
        (asking, state): (&Asking<'_>, &State),
        hostgroup: u32,
    ) -> Result<Box<Backend>, Stopped> {
        if let Some(legs) = &asking.legs
            && let Some(backend) = legs.take(hostgroup)
        {
            return Ok(backend);
        }
        let want = Want {
            hostgroup,
            state,
            user_variables: sees_user_variables(&asking.class),
            remembered: None,
            tracking: alone::tracking(&asking.class),
            must_see: None,
            executes: None,
            // Its parts wait for each other.
            waits: false,
            at: None,
            ..self.want(job)
        };
        if let Some(backend) = self.core.pools.at_once(&want) {
            return Ok(backend);
        }
        let acquired = Box::pin(self.core.pools.acquire(&want));
        Ok(self.unless_stopped(asking, acquired).await??)
    }

    /// Waits until a partition has its next row here, or has ended: this one, or any where rows need
    /// not be in order, so that none waits at its server for longer than it must.
    pub(crate) async fn next_row_of(
        &self,
        parts: &mut [Answering],
        needed: usize,
        in_order: bool,
        asking: &Asking<'_>,
    ) -> Result<usize, Stopped> {
        loop {
            let here = |part: &Answering| part.ended || part.rows.has_row();
            let is_open = |part: &Answering| part.rows.has_row() || !part.ended;
            let ready = match in_order {
                true => here(&parts[needed]).then_some(needed),
                // One that has ended has nothing to give but its end.
                false => parts
                    .iter()
                    .position(|part| part.rows.has_row())
                    .or_else(|| (!parts.iter().any(is_open)).then_some(needed)),
            };
            if let Some(at) = ready {
                self.look_for_error(&parts[at])?;
                return Ok(at);
            }
            let is_asked = |at: usize, _: &Answering| !in_order || at == needed;
            let at = self.hear_part(parts, is_asked, asking).await?;
            self.look_for_error(&parts[at])?;
        }
    }

    pub(crate) fn look_for_error(&self, part: &Answering) -> Result<(), Stopped> {
        let Some(complaint) = part.error() else {
            return Ok(());
        };
        if let Outcome::Err { code, message, .. } = part.response.outcome() {
            if let Some(backend) = &part.backend {
                self.count_error(backend, code, message);
            }
            if code == errors::MUST_CHANGE_PASSWORD.number {
                return Err(Stopped::Failed(BackendFailed::Unfit));
            }
        }
        Err(Stopped::Said(complaint))
    }

    /// Reads what comes first of these parts, of those that have not ended. Which one it was.
    async fn hear_part(
        &self,
        parts: &mut [Answering],
        is_asked: impl Fn(usize, &Answering) -> bool,
        asking: &Asking<'_>,
    ) -> Result<usize, Stopped> {
        let (at, chunk) = {
            let mut heard: Vec<_> = parts
                .iter_mut()
                .enumerate()
                .filter(|(at, part)| !part.ended && is_asked(*at, part))
                .filter_map(|(at, part)| Some((at, Box::pin(part.backend.as_mut()?.recv()))))
                .collect();
            let first = poll_fn(|cx| {
                for (at, one) in &mut heard {
                    if let Poll::Ready(chunk) = one.as_mut().poll(cx) {
                        return Poll::Ready((*at, chunk));
                    }
                }
                Poll::Pending
            });
            self.unless_stopped(asking, first).await?
        };
        parts[at].take(chunk)?;
        Ok(at)
    }

    /// Waits for this, unless the client leaves, somebody ends the statement, or its time is over.
    pub(crate) async fn unless_stopped<T>(
        &self,
        asking: &Asking<'_>,
        done: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        let mut done = pin!(done);
        loop {
            let now = self.core.rt.now();
            let left = asking.until.map_or(LOOKS, |until| until - now).min(LOOKS);
            if asking.until.is_some_and(|until| now >= until) {
                let limit_ms = asking.limit_ms;
                return Err(BackendFailed::TooSlow { limit_ms }.into());
            }
            let gone = rt::select(self.client.socket().closed(), self.entry.told(false));
            match self
                .core
                .rt
                .timeout(left, rt::select(done.as_mut(), gone))
                .await
            {
                Ok(Either::Left(done)) => return Ok(done),
                Ok(Either::Right(Either::Left(()))) => return Err(Stopped::Gone),
                Ok(Either::Right(Either::Right(()))) => {
                    let is_cut = self.entry.cut.get() && !self.entry.killed.get();
                    return Err(match is_cut {
                        true => BackendFailed::CutOff.into(),
                        false => Stopped::Told,
                    });
                }
                Err(_look_again) => {}
            }
        }
    }
}

impl Answering {
    /// Reads what is left, if it is little.
    pub(crate) async fn rest(&mut self, most: usize) -> Result<(), BackendFailed> {
        let mut read = 0;
        while let (false, true, Some(backend)) = (self.ended, read < most, &mut self.backend) {
            let chunk = backend.recv().await;
            read += self.take(chunk)?;
        }
        Ok(())
    }
}

impl Asking<'_> {
    /// The time that is left; none where there is no limit.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        self.until.map(|until| until - now)
    }

    /// Failure of what took longer.
    pub(crate) const fn too_slow(&self) -> BackendFailed {
        BackendFailed::TooSlow {
            limit_ms: self.limit_ms,
        }
    }

    /// Whether its time is over.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// How rows are read that are stored elsewhere as they are: in the character set of each column,
    /// and all of them.
    pub(crate) fn as_stored(&self) -> Self {
        let mut stored = self.unlimited();
        stored.state.set("character_set_results", "NULL");
        stored
    }

    /// Asks for all rows, whatever the session has set.
    pub(crate) fn unlimited(&self) -> Self {
        let mut unlimited = self.clone();
        unlimited.state.unset("sql_select_limit");
        unlimited
    }

    /// How it is asked on a connection that is none of the transaction's.
    pub(crate) fn elsewhere(&self) -> Self {
        let mut elsewhere = Self {
            legs: None,
            ..self.clone()
        };
        elsewhere.state.autocommit = true;
        elsewhere
    }

    /// Rows that the session wants of a SELECT without LIMIT, if it has said a number.
    pub(crate) fn limit_of_session(&self) -> Option<u64> {
        self.state.variable("sql_select_limit")?.parse().ok()
    }

    /// Asks a partition. Number of the last packet that was sent.
    async fn ask(
        &self,
        backend: &mut Backend,
        text: &[u8],
        attributes: &Attributes,
    ) -> Result<u8, BackendFailed> {
        alone::come_to(backend, &self.state, &self.class).await?;
        if let Some(legs) = &self.legs {
            legs.begin(backend).await?;
        }
        if self.moment_us.is_some() {
            backend.set_moment(self.moment_us).await?;
        }
        alone::before(backend, &self.class);
        let (mut command, caps) = (Vec::with_capacity(text.len() + 16), backend.hello.caps);
        let mut next = 0;
        packet::append_with(&mut command, &mut next, |out| {
            wire::attributes::write_query(out, text, attributes, caps);
        });
        backend.send(Chunk::from(command)).await?;
        Ok(next.wrapping_sub(1))
    }
}

pub(crate) fn columns_of(shapes: &[Shape]) -> Vec<Column> {
    let of = |shape: &Shape| Column::of(shape.kind.0, shape.flags, shape.charset, shape.decimals);
    shapes.iter().map(of).collect()
}

/// Whether columns are of the same kinds.
pub(crate) fn are_alike(one: &[Column], other: &[Column]) -> bool {
    let kinds = |columns: &[Column]| columns.iter().map(|column| column.kind).collect::<Vec<_>>();
    kinds(one) == kinds(other)
}

pub(crate) fn broke(malformed: wire::Malformed) -> BackendFailed {
    BackendFailed::BrokeAfter(NetError::Malformed(malformed))
}

pub(crate) fn not_supported(words: impl Into<String>) -> Complaint {
    Complaint::new(errors::NOT_SUPPORTED_YET, words)
}

/// Connections of a transaction that nothing is asked on, by hostgroup.
pub(crate) struct Legs {
    pub(crate) idle: RefCell<Vec<(u32, Box<Backend>)>>,
    /// More of the session than a branch went with a connection.
    pub(crate) has_lost_more: Cell<bool>,
    pub(crate) transaction: Rc<GlobalTransaction>,
}

impl Legs {
    /// The connection of a hostgroup, if the session has one.
    pub(crate) fn take(&self, hostgroup: u32) -> Option<Box<Backend>> {
        let mut idle = self.idle.borrow_mut();
        let at = idle.iter().position(|(of, _)| *of == hostgroup)?;
        Some(idle.swap_remove(at).1)
    }

    /// Keeps a connection on which the answer has ended.
    pub(crate) fn put(&self, backend: Box<Backend>) {
        let hostgroup = backend.place().server().hostgroup;
        self.idle.borrow_mut().push((hostgroup, backend));
    }

    /// Parts with a connection on which something is still to come, or has broken off. Its branch, if
    /// it has one, is lost.
    pub(crate) fn lose(&self, session: &Session, backend: Box<Backend>) {
        if backend.holds.has(Hold::Branch) {
            self.transaction.is_lost();
        }
        if carries_more(backend.holds) {
            self.has_lost_more.set(true);
        }
        session.core.pools.abandon(backend);
    }

    /// Has a branch begin on this connection, if it has not.
    pub(crate) async fn begin(&self, backend: &mut Backend) -> Result<(), BackendFailed> {
        let hostgroup = backend.place().server().hostgroup;
        self.transaction.begin(backend, hostgroup).await
    }
}
