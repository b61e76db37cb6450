//! Rows of several partitions, put together as they arrive. All partitions are asked at once, each on a
//! connection that is nobody's; what is not needed yet waits at the servers.

use crate::command::job::{Job, Told, What};
use crate::command::settings::sees_user_variables;
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::forward::relay::too_many;
use crate::known::answer::Complaint;
use crate::partitions::finishing;
use crate::partitions::legs::Legs;
use crate::session::Session;
use backend::{Backend, BackendFailed, State, Want};
use bridge::{Counter, Failure, Retry};
use gather::{Column, Merge, Recipe, Step};
use net::NetError;
use plan::Gather;
use rt::{CHUNK_LEN, Chunk, Either, Instant};
use sql::Class;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use wire::attributes::Attributes;
use wire::outline::Count;
use wire::response::{Expect, Follow, Outcome, Response};
use wire::row_stream::RowStream;
use wire::rows::Shape;
use wire::{errors, packet};

/// So often it is looked whether a server was taken away meanwhile.
const LOOKS: Duration = Duration::from_secs(1);
/// Bytes behind the last row that is needed that are read rather than having the connection closed.
const LEFT_MAX: usize = 256 << 10;
/// So long servers have to say them.
const LEFT_WITHIN: Duration = Duration::from_millis(200);

/// A partition's answer on its way.
pub(crate) struct Answering {
    /// None once another part of the statement is asked on it.
    pub(crate) backend: Option<Box<Backend>>,
    pub(crate) response: Response,
    pub(crate) rows: RowStream,
    pub(crate) ended: bool,
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

impl From<BackendFailed> for Stopped {
    fn from(failed: BackendFailed) -> Self {
        Self::Failed(failed)
    }
}

/// Result that the client gets.
struct Shown {
    /// Not sent yet.
    bytes: Vec<u8>,
    /// Number of the last packet.
    seq: u8,
    rows: u64,
    /// Something was sent.
    has_begun: bool,
}

/// How rows are written.
struct Form {
    /// SERVER_STATUS_*.
    flags: u16,
    /// Columns of a result of the binary protocol; none for one of texts.
    binary: Option<Vec<Shape>>,
}

/// How the parts of a statement are asked.
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

/// Whether a statement that reads several partitions is one that can be put together: it means the
/// same on any connection.
pub(crate) fn gathers(job: &Job<'_>) -> bool {
    let is_row = match job.what {
        What::Query(_) => true,
        What::Execute(execution) => !execution.is_bulk(),
        _ => false,
    };
    let is_file = |gather: &Gather| gather.loaded.is_some() && matches!(job.what, What::Query(_));
    let gather = job.plan.gather.as_deref();
    gather.is_none_or(|gather| is_file(gather) || is_row && alone::is_free(job.class))
}

impl Answering {
    pub(crate) fn take(&mut self, chunk: &Chunk) -> Result<(), BackendFailed> {
        let followed = self.response.follow(chunk);
        match followed.map_err(broke)? {
            Follow::More => self.rows.push(chunk),
            Follow::Ended { used } => {
                self.rows.push(chunk.get(..used).unwrap_or_default());
                if let Some(backend) = &mut self.backend {
                    backend.ended(used, chunk.len());
                }
                self.ended = true;
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
        let of =
            |shape: &Shape| Column::of(shape.kind.0, shape.flags, shape.charset, shape.decimals);
        self.rows.shapes().iter().map(of).collect()
    }
}

impl Session {
    /// Reads several partitions, and gives the client one result.
    pub(crate) async fn gather(
        &mut self,
        job: &Job<'_>,
        (gather, recipe): (&Gather, &Recipe),
    ) -> Result<Told, Ended> {
        if let ControlFlow::Break(told) = self.wait_as_asked(job).await? {
            return Ok(told);
        }
        self.core.tally.up(Counter::StatementsGathered);
        let Some(transaction) = self.global.clone() else {
            let asking = self.asking(job, recipe.same_moment);
            return self.gather_by(job, (gather, recipe), &asking).await;
        };
        let asking = self.asking_branches(job, transaction, recipe.same_moment);
        let asking = Box::pin(asking).await?;
        let told = self.gather_by(job, (gather, recipe), &asking).await;
        let back = self.take_back(&asking);
        told.and_then(|told| back.map(|()| told))
    }

    async fn gather_by(
        &mut self,
        job: &Job<'_>,
        (gather, recipe): (&Gather, &Recipe),
        asking: &Asking<'_>,
    ) -> Result<Told, Ended> {
        let mut tries = self.tries(job);
        loop {
            let mut shown = Shown {
                bytes: Vec::new(),
                seq: self.turn.sent,
                rows: 0,
                has_begun: false,
            };
            let mut parts = Vec::with_capacity(gather.parts.len());
            let put_together = self
                .put_together(job, (gather, recipe, asking), &mut parts, &mut shown)
                .await;
            let is_whole = put_together.is_ok();
            let is_gone = matches!(put_together, Err(Stopped::Gone));
            self.part_from(parts, asking, is_whole, is_gone).await;
            let complaint = match put_together {
                Ok(()) => {
                    self.recall_read(job, shown.rows, false);
                    return Ok(Told {
                        rows_sent: shown.rows,
                        row_count: -1,
                        ..Told::default()
                    });
                }
                Err(Stopped::Gone) => return Err(Ended::Gone),
                Err(Stopped::Told) if self.entry.killed.get() && shown.has_begun => {
                    return Err(Ended::Broken);
                }
                Err(Stopped::Told) if self.entry.killed.get() => {
                    return Err(Ended::Told(Complaint::interrupted()));
                }
                Err(Stopped::Told) => Complaint::interrupted(),
                Err(Stopped::Failed(failed)) => {
                    let is_over =
                        shown.has_begun || asking.legs.is_some() || failed.retry() == Retry::Never;
                    if !is_over && tries > 0 {
                        tries -= 1;
                        self.core.tally.up(Counter::StatementsRetried);
                        continue;
                    }
                    self.tells_of_lost_branch(&failed)
                }
                Err(Stopped::Said(complaint)) if gather.finishing.is_some() => {
                    finishing::explained(complaint)
                }
                Err(Stopped::Said(complaint)) => complaint,
            };
            if shown.has_begun {
                // An error may come instead of the next row.
                self.show(&mut shown).await?;
            }
            self.refuse(&complaint).await?;
            return Ok(Told {
                rows_sent: shown.rows,
                row_count: -1,
                ..Told::default()
            });
        }
    }

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

    async fn put_together(
        &mut self,
        job: &Job<'_>,
        (gather, recipe, asking): (&Gather, &Recipe, &Asking<'_>),
        parts: &mut Vec<Answering>,
        shown: &mut Shown,
    ) -> Result<(), Stopped> {
        self.may_put_together(job)?;
        match &gather.finishing {
            Some(finishing) => {
                let finished = finishing::finish(self, job, (gather, finishing), asking);
                parts.push(Box::pin(finished).await?);
            }
            None => {
                let asked = gather.parts.iter();
                let asked: Vec<_> = asked.map(|part| (part.hostgroup, &*part.text)).collect();
                self.ask_all(job, asking, &asked, parts).await?;
            }
        }
        self.until_described(parts, asking).await?;
        let columns = parts.first().map(Answering::columns).unwrap_or_default();
        self.are_alike(parts)?;
        let said = |words: String| Stopped::Said(not_supported(format!("HSCALE-1000: {words}")));
        let visible = columns.len().saturating_sub(recipe.hidden);
        let mut merge = Merge::new(recipe, columns, parts.len()).map_err(said)?;
        let form = self.begin(job, &parts[0], visible, shown);
        let in_order = merge.is_in_order();
        loop {
            match merge.step() {
                Step::Needs(at) => {
                    let at = self.next_row_of(parts, at, in_order, asking).await?;
                    let row = parts[at].rows.next_row().map_err(broke)?;
                    merge.give(at, row).map_err(said)?;
                }
                Step::Row(row) => {
                    if job.plan.rows_max().is_some_and(|most| shown.rows >= most) {
                        self.core.tally.up(Counter::RowsLimited);
                        return Err(Stopped::Said(too_many(shown.rows)));
                    }
                    let mut writer = self.writer(&mut shown.bytes, shown.seq, form.flags);
                    let cells = row.iter().map(Option::as_deref);
                    match &form.binary {
                        Some(shapes) => writer.binary_row_of_text(shapes, cells).map_err(broke)?,
                        None => writer.text_row(cells),
                    }
                    shown.seq = writer.last_seq();
                    shown.rows += 1;
                    if shown.bytes.len() >= CHUNK_LEN {
                        self.show(shown).await.map_err(|_| Stopped::Gone)?;
                    }
                }
                Step::Done => break,
                Step::Failed(words) => return Err(said(words)),
            }
        }
        let mut writer = self.writer(&mut shown.bytes, shown.seq, form.flags);
        writer.end(0);
        shown.seq = writer.last_seq();
        self.show(shown).await.map_err(|_| Stopped::Gone)?;
        self.turn.failed = false;
        Ok(())
    }

    /// Refuses partitions whose columns are of different kinds.
    pub(crate) fn are_alike(&self, parts: &[Answering]) -> Result<(), Stopped> {
        let columns = parts.first().map(Answering::columns).unwrap_or_default();
        if parts.iter().all(|part| is_alike(&columns, &part.columns())) {
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

    /// Writes the head of the result: its columns, as a partition has described them.
    fn begin(&self, job: &Job<'_>, part: &Answering, visible: usize, shown: &mut Shown) -> Form {
        let mut flags = self.flags() | self.turn.flags();
        let mut binary = None;
        if let What::Execute(execution) = job.what {
            let columns = u32::try_from(visible).unwrap_or_default();
            flags |= execution.columns_flags(Count::Columns(columns));
            // Definitions are sent whole, and may differ from those that were remembered.
            execution.outline.set(None);
            let shapes = part.rows.shapes().iter().take(visible);
            binary = Some(shapes.copied().collect());
        }
        let definitions = part.rows.definitions().iter().take(visible);
        let definitions: Vec<&[u8]> = definitions.map(Vec::as_slice).collect();
        let mut writer = self.writer(&mut shown.bytes, shown.seq, flags);
        writer.columns_as_said(definitions.into_iter());
        shown.seq = writer.last_seq();
        Form { flags, binary }
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

    /// Sends what is there.
    async fn show(&mut self, shown: &mut Shown) -> Result<(), Ended> {
        shown.has_begun = true;
        self.turn.sent = shown.seq;
        let bytes = std::mem::take(&mut shown.bytes);
        let sent = Counter::QueriesFrontendsBytesSent;
        self.core.tally.add(sent, bytes.len() as u64);
        self.hand_over(bytes).await
    }

    /// A connection for each hostgroup and text that is asked there, and then its question.
    pub(crate) async fn ask_all(
        &self,
        job: &Job<'_>,
        asking: &Asking<'_>,
        asked: &[(u32, &[u8])],
        parts: &mut Vec<Answering>,
    ) -> Result<(), Stopped> {
        if let Some(legs) = &asking.legs {
            let asking = (asking, &**legs);
            return Box::pin(self.ask_branches(job, asking, asked, parts)).await;
        }
        // All take connections in the same order, so that two do not wait for each other.
        let mut order: Vec<(usize, u32)> = asked
            .iter()
            .map(|(hostgroup, _)| *hostgroup)
            .enumerate()
            .collect();
        order.sort_by_key(|(_, hostgroup)| *hostgroup);
        let mut connected = Vec::with_capacity(order.len());
        for (at, hostgroup) in order {
            let backend = match self
                .connection_for(job, (asking, &asking.state), hostgroup)
                .await
            {
                Ok(backend) => backend,
                Err(stopped) => {
                    self.give_back_unused(connected);
                    return Err(stopped);
                }
            };
            if connected.is_empty() {
                self.entry.works_on(hostgroup, &backend);
            }
            connected.push((at, backend));
        }
        connected.sort_by_key(|(at, _)| *at);
        let mut connected = connected.into_iter();
        for (_, text) in asked {
            let Some((_, mut backend)) = connected.next() else {
                break;
            };
            alone::takes(&mut backend);
            match self.ask_on(job, asking, text, backend).await {
                Ok(part) => parts.push(part),
                Err(stopped) => {
                    self.give_back_unused(connected);
                    return Err(stopped);
                }
            }
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
                });
            }
            Ok(Err(failed)) => failed.into(),
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

    /// Gives back connections on which nothing was asked.
    fn give_back_unused(&self, connected: impl IntoIterator<Item = (usize, Box<Backend>)>) {
        for (_, backend) in connected {
            self.core.pools.release(backend);
        }
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
        parts[at].take(&chunk?)?;
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

    /// Parts with the connections. What nobody reads any more ends at its server.
    pub(crate) async fn part_from(
        &self,
        parts: Vec<Answering>,
        asking: &Asking<'_>,
        is_whole: bool,
        is_gone: bool,
    ) {
        let v = &self.core.epoch().snapshot.variables;
        let ends = !is_gone || v.mysql_kill_backend_connection_when_disconnect;
        for mut part in parts {
            if let Some(legs) = &asking.legs {
                let asking = (asking, &**legs);
                Box::pin(self.part_from_leg(part, asking, is_gone)).await;
                continue;
            }
            if is_whole && !part.ended {
                // Behind the last row that was needed little is left.
                let left = Box::pin(part.rest(LEFT_MAX));
                let _late_or_too_much = self.core.rt.timeout(LEFT_WITHIN, left).await;
            }
            let Some(mut backend) = part.backend else {
                continue;
            };
            if !part.ended {
                if ends {
                    self.end_on_server(&backend);
                }
                self.core.pools.abandon(backend);
                continue;
            }
            alone::learn(&mut backend, &asking.class, &part.response);
            let set = match asking.moment_us {
                Some(_) => {
                    let set = Box::pin(backend.set_moment(None));
                    matches!(self.core.rt.timeout(LOOKS, set).await, Ok(Ok(())))
                }
                None => true,
            };
            match set {
                true => alone::gives_back(&self.core, backend),
                false => self.core.pools.abandon(backend),
            }
        }
    }
}

impl Answering {
    /// Reads what is left, if it is little.
    pub(crate) async fn rest(&mut self, most: usize) -> Result<(), BackendFailed> {
        let mut read = 0;
        while let (false, true, Some(backend)) = (self.ended, read < most, &mut self.backend) {
            let chunk = backend.recv().await?;
            read += chunk.len();
            self.take(&chunk)?;
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
        let mut state = self.state.clone();
        state.set("character_set_results", "NULL");
        state.unset("sql_select_limit");
        Self {
            class: self.class.clone(),
            state,
            moment_us: self.moment_us,
            until: self.until,
            limit_ms: self.limit_ms,
            legs: self.legs.clone(),
        }
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

/// Whether columns are of the same kinds.
fn is_alike(one: &[Column], other: &[Column]) -> bool {
    let kinds = |columns: &[Column]| columns.iter().map(|column| column.kind).collect::<Vec<_>>();
    kinds(one) == kinds(other)
}

pub(crate) fn broke(malformed: wire::Malformed) -> BackendFailed {
    BackendFailed::BrokeAfter(NetError::Malformed(malformed))
}

pub(crate) fn not_supported(words: impl Into<String>) -> Complaint {
    Complaint::new(errors::NOT_SUPPORTED_YET, words)
}
