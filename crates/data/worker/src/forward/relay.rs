//! A response on its way from the server to the client, as it arrives.

use crate::command::ahead::Sent;
use crate::command::cut::Cut;
use crate::command::follower::{Flags, Follower, MakeFollower};
use crate::command::preparing::Shown;
use crate::command::trouble::{Failed, Trouble};
use crate::command::withheld::Withhold;
use crate::forward::infile::upload;
use crate::known::answer::{Complaint, error};
use crate::seen::compare::Side;
use crate::seen::traces::Mark;
use crate::session::Session;
use crate::talk::kill::OBEYS;
use crate::talk::stop::{Event, Stop};
use backend::{Backend, BackendFailed, Idle};
use bridge::Counter;
use net::NetError;
use rt::{Chunk, Either, Instant};
use std::cell::Cell;
use std::time::Duration;
use wire::outline::Outline;
use wire::response::{Expect, Outcome, Response, Summed};
use wire::{errors, packet};

/// Response to be relayed, and how that is done.
pub(crate) struct Ask {
    pub(crate) expect: Expect,
    /// Number of the command's last packet.
    pub(crate) sent: u8,
    /// Answer to a COM_STMT_PREPARE, as the client is to see it.
    pub(crate) shown: Option<Shown>,
    /// Milliseconds that it may take; waiting for the client counts too.
    pub(crate) limit_ms: u64,
    /// Errors that the client is not to read yet.
    pub(crate) withhold: Withhold,
    /// A result with more rows ends with an error after so many.
    pub(crate) rows_max: Option<u64>,
    /// So many of these the client has had already: it fetches them piece by piece.
    pub(crate) rows_before: u64, // <= rows_max
    /// Bytes that the client may be sent in a second; 0 for no limit.
    pub(crate) per_second: u64,
    /// The result will be compared with another.
    pub(crate) compare: bool,
    /// The result is summed up for the course of its transaction.
    pub(crate) sum: bool,
    /// Whether the statement is a CALL.
    pub(crate) call: bool,
    /// Outline of the columns of what is executed, as the client remembers it.
    pub(crate) outline: Option<Outline>,
    /// Columns of what is executed, as the client knows them; none if their number is not watched.
    pub(crate) columns: Option<u16>,
    /// Number of the first row that was numbered here; the client is told it as the insert id.
    pub(crate) first_number: Option<u64>,
    /// Whether a partition is asked: its errors name the table as the client knows it.
    pub(crate) of_partition: bool,
    /// When it was asked, if that is over already,
    pub(crate) since: Option<Instant>,
    /// and what came since.
    pub(crate) came: Cell<Option<Chunk>>,
}

impl Ask {
    /// As it comes, and as long as it takes.
    pub(crate) const fn for_all_of(expect: Expect) -> Self {
        Self {
            expect,
            sent: 0,
            shown: None,
            limit_ms: u64::MAX,
            withhold: Withhold::NOTHING,
            rows_max: None,
            rows_before: 0,
            per_second: 0,
            compare: false,
            sum: false,
            call: false,
            outline: None,
            columns: None,
            first_number: None,
            of_partition: false,
            since: None,
            came: Cell::new(None),
        }
    }

    /// Answer to a usual statement, which may take so many milliseconds.
    pub(crate) fn to(sent: &Sent, limit_ms: u64) -> Self {
        Self {
            sent: packet::last_seq_of_framed(sent.len),
            limit_ms,
            withhold: Withhold {
                stale: sent.executed,
                demoted: sent.demoted,
                ..Withhold::NOTHING
            },
            outline: sent.outline,
            columns: sent.columns,
            ..Self::for_all_of(sent.expect)
        }
    }

    /// Makes the follower of the response with `make`.
    fn follower(&self, session: &Session, backend: &Backend, make: MakeFollower) -> Follower {
        make(
            self.expect,
            (backend.hello.caps, session.caps),
            backend.wish(),
            session.turn,
            self.sent,
            Flags {
                before: flags_on(session, backend) | session.reading.flags(),
                elsewhere: session.transaction_flags(),
            },
        )
    }

    /// The follower that a response begins with.
    pub(crate) fn begin(&self, session: &Session, backend: &Backend) -> Follower {
        match self.first_number {
            None => self.follower(session, backend, Follower::new),
            Some(first) => self
                .follower(session, backend, Follower::anew)
                .numbering(first),
        }
    }

    /// The follower of an answer to a usual statement, of which this has come.
    pub(crate) fn begin_at(&self, session: &Session, backend: &Backend, begins: &[u8]) -> Follower {
        let mut follower = self.begin(session, backend);
        if let Follower::Other(recode) = &mut follower {
            recode.spare(self.outline, true);
        }
        let mut columns = self.columns;
        self.compare_columns(&mut columns, &mut follower, begins, (session, backend));
        follower
    }

    /// Looks at the first bytes of the response, if the number of columns is still to be compared.
    fn compare_columns(
        &self,
        columns: &mut Option<u16>,
        follower: &mut Follower,
        begins: &[u8],
        (session, backend): (&Session, &Backend),
    ) {
        if let Some(known) = columns.take() {
            let anew = || self.follower(session, backend, Follower::anew);
            follower.knowing(known, begins, anew);
        }
    }
}

/// Flags of an EOF that the server does not send.
pub(crate) fn flags_on(session: &Session, backend: &Backend) -> u16 {
    backend.holds.flags() | session.transaction_flags()
}

/// Hands over what is known of a result that was cut, to be compared.
fn compare_cut(session: &Session, summed: &Summed, begun: Instant, rows_max: u64) {
    let side = Side {
        error: None,
        affected: 0,
        sum: summed.sum(),
        time_us: micros(session.core.rt.now() - begun),
        more_than: Some(rows_max),
    };
    session.core.verdicts.relayed(session.entry.id, side);
}

/// Hands over what is known of a whole result, to be compared.
fn compare_whole(session: &Session, summed: &Summed, begun: Instant) {
    let response = summed.response();
    let error = match response.outcome() {
        Outcome::Err { code, .. } => Some(code),
        _ => None,
    };
    let side = Side {
        error,
        affected: response.affected_rows(),
        sum: summed.sum(),
        time_us: micros(session.core.rt.now() - begun),
        more_than: None,
    };
    session.core.verdicts.relayed(session.entry.id, side);
}

/// Relays one response.
pub(crate) async fn relay(
    session: &mut Session,
    backend: &mut Backend,
    ask: &Ask,
) -> Result<Follower, Trouble> {
    let Ask {
        expect,
        ref shown,
        limit_ms,
        withhold,
        rows_max,
        rows_before,
        per_second,
        compare,
        sum,
        call,
        outline,
        mut columns,
        ..
    } = *ask;
    let mut follower = ask.begin(session, backend);
    // With a second row nothing is kept back any more; it may not be the one at which it is cut.
    if let Follower::Other(recode) = &mut follower
        && rows_max.is_none_or(|most| most > 1)
    {
        match call {
            true => recode.of_a_call(),
            // What is kept for others has to be whole.
            false => recode.spare(outline, session.cached.filling.is_none()),
        }
    }
    if let Some(filling) = &mut session.cached.filling {
        filling.gathered.restart();
    }
    let begun = ask.since.unwrap_or_else(|| session.core.rt.now());
    let mut asked = backend.place().is_timed().then_some(begun);
    session.mark(Mark::Asked);
    let mut stop = Stop::after(Duration::from_millis(limit_ms), begun);
    let mut summed = (compare || sum).then(|| Box::new(Summed::expect(expect, backend.hello.caps)));
    let mut cut = rows_max.map(|most| Cut::after(most.saturating_sub(rows_before)));
    let mut is_cut = false;
    let mut answered = false;
    // Number of the client's last packet, if it was told otherwise than the server says.
    let mut last_seq = None;
    // A prepare's answer is small, and its first bytes are ours to change.
    let mut gathered: Option<Vec<u8>> = shown.as_ref().map(|_| Vec::new());
    loop {
        let event = match ask.came.take() {
            Some(chunk) => Ok(chunk),
            None => match session
                .alarm
                .until(stop.ends(), rt::select(backend.recv(), stop.next(session)))
                .await
            {
                Ok(Either::Left(Ok(chunk))) => Ok(chunk),
                Ok(Either::Left(Err(failure))) => return Err(Trouble::halfway(failure, answered)),
                Ok(Either::Right(event)) => Err(event),
                Err(_late) => Err(Event::Late),
            },
        };
        let chunk = match event {
            Ok(chunk) => chunk,
            Err(event) => match stop.happened(event, session, backend) {
                Some(failed) => return Err(Trouble::halfway(failed, answered)),
                None => continue,
            },
        };
        session.mark(Mark::Answered);
        if let Some(asked) = asked.take() {
            let now = session.core.rt.now();
            backend.place().has_answered(now - asked, &chunk, now);
        }
        if per_second > 0 {
            // Before it is looked at: an answer that has ended waits for nobody, and is learnt.
            let owed = session.entry.pace.owed(session.core.rt.now());
            Box::pin(stop.pause(session, backend, owed))
                .await
                .map_err(|failed| Trouble::halfway(failed, answered))?;
        }
        ask.compare_columns(&mut columns, &mut follower, &chunk, (session, backend));
        let came = chunk.len();
        let broke = |malformed: wire::Malformed| {
            let broke = BackendFailed::BrokeAfter(NetError::Malformed(malformed));
            Trouble::halfway(broke, answered)
        };
        if let Some(summed) = &mut summed {
            summed.follow(&chunk).map_err(broke)?;
        }
        let (out, end) = match &mut cut {
            None => follower.follow(chunk).map_err(broke)?,
            // What is left is only followed: the session's state is on this connection.
            Some(_) if is_cut => follower
                .follow(chunk)
                .map(|(_, end)| (Chunk::default(), end))
                .map_err(broke)?,
            Some(cut) => {
                let passed = cut.follow(&mut follower, &chunk).map_err(broke)?;
                match passed.cut {
                    None => (passed.out, passed.end),
                    Some(seq) => {
                        is_cut = true;
                        // What is missing here must not be missing for others.
                        session.cached.filling = None;
                        session.core.tally.up(Counter::RowsLimited);
                        session.core.tally.up(Counter::GeneratedErrorPackets);
                        if let Some(summed) = summed.take().filter(|_| compare) {
                            compare_cut(session, &summed, begun, cut.rows_max());
                        }
                        let complaint = too_many(rows_before + cut.rows_max());
                        let mut told = passed.out.into_vec();
                        complaint.append(&mut told, seq);
                        (Chunk::from(told), passed.end)
                    }
                }
            }
        };
        if let Some(used) = end {
            backend.ended(used, came);
            if !answered && let Some(failed) = withhold.from(follower.response()) {
                if let Some(outcome) = stop.interrupting() {
                    // What runs here next is not what was to be ended.
                    settle_interruption(session, backend, outcome).await?;
                }
                return Err(failed.into());
            }
        }
        let out = match stop.late_ms() {
            // The client reads why, if it has read nothing yet. What came before the error goes
            // with it: rows may have waited in the server's buffer.
            Some(limit_ms)
                if end.is_some() && !answered && was_interrupted(follower.response()) =>
            {
                let seq = session.turn.sent.wrapping_add(1);
                last_seq = Some(seq);
                gathered.iter_mut().for_each(Vec::clear);
                late(limit_ms, seq)
            }
            _ if end.is_some() && !answered && ask.of_partition => {
                match session.refused_by_name(backend, follower.response()) {
                    Some(named) => Chunk::from(error(follower.last_seq(), &named)),
                    None => out,
                }
            }
            _ => out,
        };
        match &mut gathered {
            Some(all) => all.extend_from_slice(&out),
            None if out.is_empty() && is_cut => {}
            None => {
                // A part of a packet may be kept back.
                answered |= !out.is_empty();
                if let Some(filling) = &mut session.cached.filling {
                    filling.gathered.add(&out);
                }
                session
                    .core
                    .tally
                    .add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
                session
                    .entry
                    .pace
                    .spend(session.core.rt.now(), out.len(), per_second);
                session.pass(out).map_err(|_| Failed::Client)?;
                if session.client.socket().is_full() {
                    Box::pin(stop.room(session, backend))
                        .await
                        .map_err(|failed| Trouble::halfway(failed, true))?;
                }
            }
        }
        if end.is_some() {
            if let Outcome::LocalInfile(_) = follower.response().outcome() {
                if is_cut {
                    // Nobody asks the client for a file any more, and the server waits for one.
                    let broke = BackendFailed::BrokeAfter(NetError::Closed);
                    return Err(Trouble::halfway(broke, true));
                }
                session.pass_collected().map_err(|_| Failed::Client)?;
                let left = stop.left(session.core.rt.now());
                let before = stop.interrupting().cloned();
                let numbers = (follower.expected(), follower.last_seq().wrapping_add(1));
                let uploaded = Box::pin(upload(session, backend, numbers, left, before)).await;
                if let Some(outcome) = uploaded.map_err(|failed| Trouble::halfway(failed, true))?
                    && stop.interrupting().is_none()
                {
                    stop.interrupts(outcome, session.core.rt.now());
                }
                follower.resume();
                continue;
            }
            break;
        }
        if is_cut && backend.holds.is_empty() {
            session.core.tally.up(Counter::KilledBackendConnections);
            session.turn.failed = true;
            return Err(Trouble::halfway(Failed::Cut, true));
        }
    }
    if let Some(summed) = summed {
        if compare {
            compare_whole(session, &summed, begun);
        }
        if sum {
            session.course_has_sum(&summed);
        }
    }
    if let Some(outcome) = stop.interrupting() {
        settle_interruption(session, backend, outcome).await?;
        if outcome.get() == Some(true) {
            // The server has heard it, and ended what it ended: of several statements the next one
            // runs, as there.
            session.entry.interrupted.set(false);
        }
    }
    session.turn.sent = last_seq.unwrap_or_else(|| follower.last_seq());
    if last_seq.is_some() {
        follower.told_nothing(outline);
    }
    session.turn.failed = is_cut || matches!(follower.response().outcome(), Outcome::Err { .. });
    if let (Some(mut all), Some(shown)) = (gathered, shown) {
        if follower.response().prepared().is_some() {
            let broke = |malformed| BackendFailed::BrokeAfter(NetError::Malformed(malformed));
            shown
                .write(&mut all, session.caps, flags_on(session, backend))
                .map_err(broke)?;
            shown.remember(&all, session.caps);
        }
        session
            .core
            .tally
            .add(Counter::QueriesFrontendsBytesSent, all.len() as u64);
        session.pass(all).map_err(|_| Failed::Client)?;
    }
    if let Some(filling) = &mut session.cached.filling {
        filling.ended(follower.response());
    }
    Ok(follower)
}

/// A KILL that comes late would hit whoever has the connection next: only one that keeps it for
/// this session may be used again, and only when the KILL is known to be over.
async fn settle_interruption(
    session: &Session,
    backend: &mut Backend,
    outcome: &Cell<Option<bool>>,
) -> Result<(), Trouble> {
    let entry = session.entry.clone();
    let over = async {
        while outcome.get().is_none() {
            entry.bell.heard().await;
        }
    };
    let _over_or_not = session.core.rt.timeout(OBEYS, over).await;
    match outcome.get() {
        // What keeps it may begin with this statement, or end.
        Some(_) => backend.interrupted = true,
        None if backend.holds.is_empty() => backend.idle = Idle::Doubtful,
        None => return Err(Trouble::halfway(Failed::Killed, true)),
    }
    Ok(())
}

/// When the answer has been learnt: a connection that nothing keeps for this session is nobody's
/// any more, if a KILL may hit what runs there next.
pub(crate) fn doubt_interrupted(backend: &mut Backend) {
    if backend.interrupted && backend.holds.is_empty() {
        backend.idle = Idle::Doubtful;
    }
}

fn was_interrupted(response: &Response) -> bool {
    let interrupted = errors::QUERY_INTERRUPTED.number;
    matches!(response.outcome(), Outcome::Err { code, .. } if code == interrupted)
}

/// The error for a statement that was over its time, as packet of this number.
fn late(limit_ms: u64, seq: u8) -> Chunk {
    let mut told = Vec::new();
    Complaint::of(&BackendFailed::TooSlow { limit_ms }).append(&mut told, seq);
    Chunk::from(told)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The number that servers have for a SELECT that would examine too many rows.
pub(crate) fn too_many(rows_max: u64) -> Complaint {
    Complaint::with(
        1104,
        "42000",
        format!(
            "The result has more than {rows_max} rows, which a rule of the proxy does not allow"
        ),
    )
}
