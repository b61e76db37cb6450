//! Changes of several partitions: all make them, or none. Each hostgroup has a branch of one XA
//! transaction. When all are prepared the outcome is written down, and only then does one commit.
//!
//! docs/decisions/0038-all-partitions-or-none.md

use crate::command::job::{Job, Told, What};
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Asking, Legs, Stopped, not_supported};
use crate::partitions::legs::WAITING_MAX;
use crate::partitions::made::{Made, answer};
use crate::partitions::rekeying::Carrier;
use crate::partitions::returned::Returned;
use crate::partitions::said::{ANSWER_LEN_MAX, Answer, Saying, refusal, say, say_with};
use crate::session::Session;
use crate::session::global::GlobalTransaction;
use backend::{Backend, BackendFailed, Hold, State};
use bridge::{Counter, Failure, Retry};
use plan::{Gather, Part};
use rt::Rt;
use shards::xa::{Branch, Decisions, Outcome, transaction};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;
use wire::response;
use wire::response::Response;

/// So long a server has for each step from the first PREPARE on.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// Pause before the outcome is asked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// There is an outcome already: a duplicate key.
const IS_DECIDED: u16 = 1062;
/// The server knows no such branch: somebody else has ended it.
const IS_ENDED: u16 = 1397;
/// A statement of several partitions is taken back to here, if one of them refuses it.
const SAVEPOINT: &[u8] = b"SAVEPOINT `millrace statement`";
/// Takes it back.
const TO_SAVEPOINT: &[u8] = b"ROLLBACK TO SAVEPOINT `millrace statement`";

/// A branch, and the connection that has it.
type Leg = (Branch, Box<Backend>);

/// Connections that a session keeps, by hostgroup.
pub(crate) type Kept = Vec<(u32, Box<Backend>)>;

/// End of a COMMIT.
pub(crate) enum Committed {
    /// All branches are committed, or will be.
    Done,
    /// All are rolled back, or will be.
    Not(Complaint),
    /// The only one that may have written has not answered.
    InDoubt(BackendFailed),
}

/// Owner of the transaction that a change is made in.
#[derive(Default)]
enum Frame {
    /// The change itself: a transaction on its one hostgroup.
    One,
    /// The change itself: branches of an XA transaction.
    #[default]
    Branches,
    /// The session, which has more statements in it.
    Session,
}

/// One hostgroup's part in a change.
struct Share {
    branch: Branch,
    backend: Box<Backend>,
    /// Whether the backend has not answered yet what it was asked.
    is_busy: bool,
    /// Whether the statement can be taken back there.
    is_marked: bool,
}

/// Knowledge of a change's outcome.
enum Known {
    Is(Outcome),
    /// Nothing was written, and this is why.
    Failed(String),
    /// A server that knows does not answer.
    Unknown,
}

/// A change that waits for more of what it consists of.
#[derive(Default)]
pub(crate) struct Begun {
    shares: Vec<Share>,
    scribe: Option<(Decisions, Box<Backend>)>,
    frame: Frame,
}

/// A change that is being made.
pub(crate) struct Change<'s, 'j> {
    session: &'s Session,
    job: &'s Job<'j>,
    asking: &'s Asking<'j>,
    /// In the order of their hostgroups, in which all changes go: two never wait for each other.
    shares: Vec<Share>,
    /// The table of outcomes, and a connection to its server; none for a change at one hostgroup.
    scribe: Option<(Decisions, Box<Backend>)>,
    frame: Frame,
    /// Connections of the session whose branches have ended; none for those that are nobody's.
    kept: Option<Kept>,
}

/// Makes a change at all of its partitions, or at none.
pub(crate) async fn change(
    session: &mut Session,
    job: &Job<'_>,
    gather: &Gather,
) -> Result<Told, Ended> {
    if let ControlFlow::Break(told) = session.wait_as_asked(job).await? {
        return Ok(told);
    }
    session.core.tally.up(Counter::PartitionChanges);
    if let Some(transaction) = session.global.clone() {
        return Box::pin(change_in(session, job, gather, transaction)).await;
    }
    let mut tries = session.tries(job);
    let asking = session.asking(job, true);
    loop {
        let mut change = Change::of(session, job, &asking);
        let made = match Box::pin(change.make(gather)).await {
            Ok(sum) => Ok(sum),
            Err(stopped) => {
                Box::pin(change.undo(false)).await;
                Err((stopped, true))
            }
        };
        let ended = match made {
            Ok(sum) => Box::pin(change.end())
                .await
                .map(|()| sum)
                .map_err(|stopped| (stopped, false)),
            Err(stopped) => Err(stopped),
        };
        let complaint = match ended {
            Ok(sum) => {
                for part in &gather.parts {
                    session.has_written_at(part.hostgroup);
                }
                return tell(session, job, gather, sum).await;
            }
            Err((Stopped::Gone, _)) => return Err(Ended::Gone),
            Err((Stopped::Told, _)) if session.entry.killed.get() => {
                return Err(Ended::Told(Complaint::interrupted()));
            }
            Err((Stopped::Told, _)) => Complaint::interrupted(),
            // Nothing has stayed of it.
            Err((Stopped::Failed(failed), true)) if failed.retry() != Retry::Never && tries > 0 => {
                tries -= 1;
                session.core.tally.up(Counter::StatementsRetried);
                continue;
            }
            Err((Stopped::Failed(failed), _)) => Complaint::of(&failed),
            Err((Stopped::Said(complaint), _)) => complaint,
        };
        session.may_write_yet();
        session.refuse(&complaint).await?;
        return Ok(Told {
            row_count: -1,
            ..Told::default()
        });
    }
}

/// Makes a change over the branches of the session's transaction. What one partition refuses is taken
/// back at all.
async fn change_in(
    session: &mut Session,
    job: &Job<'_>,
    gather: &Gather,
    transaction: Rc<GlobalTransaction>,
) -> Result<Told, Ended> {
    let asking = session.asking_branches(job, transaction, true).await?;
    let made = {
        let mut change = Change {
            frame: Frame::Session,
            ..Change::of(session, job, &asking)
        };
        let made = Box::pin(change.make(gather)).await;
        if let Some(legs) = &asking.legs {
            Box::pin(change.give_back(legs, made.is_err())).await;
        }
        made
    };
    session.take_back(&asking)?;
    let complaint = match made {
        Ok(sum) => return tell(session, job, gather, sum).await,
        Err(Stopped::Gone) => return Err(Ended::Gone),
        Err(Stopped::Told) if session.entry.killed.get() => {
            return Err(Ended::Told(Complaint::interrupted()));
        }
        Err(Stopped::Told) => Complaint::interrupted(),
        Err(Stopped::Failed(failed)) => session.tells_of_lost_branch(&failed),
        Err(Stopped::Said(complaint)) => complaint,
    };
    session.refuse(&complaint).await?;
    Ok(Told {
        row_count: -1,
        ..Told::default()
    })
}

/// Commits the branches of a session's transaction: the first ones in one phase each, the others in two.
/// Connections that stay, and what became of it.
pub(crate) async fn commit(
    session: &Session,
    job: &Job<'_>,
    (one, two): (Vec<Leg>, Vec<Leg>),
) -> (Kept, Committed) {
    let asking = session.asking(job, false);
    let share = |(branch, backend)| Share {
        branch,
        backend,
        is_busy: false,
        is_marked: false,
    };
    let is_spread = !two.is_empty();
    let mut change = Change {
        session,
        job,
        asking: &asking,
        shares: two.into_iter().map(share).collect(),
        scribe: None,
        frame: Frame::Branches,
        kept: Some(Vec::new()),
    };
    let one = one.into_iter().map(share).collect();
    let committed = Box::pin(change.commit_all(one, is_spread)).await;
    (change.kept.take().unwrap_or_default(), committed)
}

/// Rolls a branch of a session's transaction back. Its connection, if that stays.
pub(crate) async fn roll_back(
    session: &Session,
    branch: Branch,
    mut backend: Box<Backend>,
) -> Option<(u32, Box<Backend>)> {
    let hostgroup = branch.hostgroup;
    let undone = within(&session.core.rt, undo_branch(&mut backend, &branch)).await;
    match undone {
        Ok(said) if refusal(&said).is_none() => {
            has_ended(&mut backend, &said.response);
            Some((hostgroup, backend))
        }
        _ => {
            session.core.pools.abandon(backend);
            None
        }
    }
}

/// Notes on a session's connection that its branch has ended.
fn has_ended(backend: &mut Backend, ended: &Response) {
    alone::learn(backend, &sql::class(b"COMMIT"), ended);
    backend.holds.remove(Hold::Branch);
    // What servers remember of statements is not the client's last one.
    backend.has_failed_unseen();
}

/// Rolls a branch back, however far it has come.
async fn undo_branch(backend: &mut Backend, branch: &Branch) -> Result<Answer, BackendFailed> {
    // What is ended or prepared says no.
    let end = format!("XA END {branch}");
    say(backend, end.as_bytes(), None).await?;
    let roll_back = Outcome::Abort.of_branch(branch);
    let said = say(backend, roll_back.as_bytes(), None).await?;
    match refusal(&said) {
        None => Ok(said),
        Some(_) => say(backend, b"ROLLBACK", None).await,
    }
}

/// Tells the client of a change that was made.
async fn tell(
    session: &mut Session,
    job: &Job<'_>,
    gather: &Gather,
    mut sum: Made,
) -> Result<Told, Ended> {
    let is_there = sum.affected > 0 || sum.returned.as_ref().is_some_and(Returned::has_rows);
    if let Some(given) = gather.numbered.filter(|_| is_there) {
        sum.insert_id = given.first;
        session.numbered_from(given.first);
    }
    match sum.returned.take() {
        Some(returned) => returned.tell(session, job, sum.warnings).await,
        None => answer(session, &sum).await,
    }
}

impl<'s, 'j> Change<'s, 'j> {
    /// A change that nobody has begun yet.
    pub(crate) const fn of(session: &'s Session, job: &'s Job<'j>, asking: &'s Asking<'j>) -> Self {
        Self {
            session,
            job,
            asking,
            shares: Vec::new(),
            scribe: None,
            frame: Frame::Branches,
            kept: None,
        }
    }

    /// A change that was paused.
    pub(crate) fn again(
        session: &'s Session,
        job: &'s Job<'j>,
        asking: &'s Asking<'j>,
        begun: Begun,
    ) -> Self {
        Self {
            shares: begun.shares,
            scribe: begun.scribe,
            frame: begun.frame,
            ..Self::of(session, job, asking)
        }
    }

    /// Leaves it as it is, to be gone on with or undone.
    pub(crate) fn pause(self) -> Begun {
        Begun {
            shares: self.shares,
            scribe: self.scribe,
            frame: self.frame,
        }
    }

    /// Whether a transaction has begun.
    pub(crate) const fn is_open(&self) -> bool {
        !self.shares.is_empty()
    }

    /// Begins a transaction with these hostgroups.
    pub(crate) async fn open(&mut self, hostgroups: BTreeSet<u32>) -> Result<(), Stopped> {
        let rt = &self.session.core.rt;
        let name = transaction(rt.wall_us(), [rt.random(), rt.random()]);
        if hostgroups.len() == 1 && matches!(self.frame, Frame::Branches) {
            self.frame = Frame::One;
        }
        for hostgroup in hostgroups {
            let state = &self.asking.state;
            let mut backend = self.connection(hostgroup, state).await?;
            if self.shares.is_empty() {
                self.session.entry.works_on(hostgroup, &backend);
            }
            alone::takes(&mut backend);
            self.shares.push(Share {
                branch: Branch {
                    transaction: name.clone(),
                    hostgroup,
                },
                backend,
                is_busy: false,
                is_marked: false,
            });
        }
        if matches!(self.frame, Frame::Branches) {
            self.scribe = Some(self.scribe().await?);
        }
        for at in 0..self.shares.len() {
            self.begin(at).await?;
        }
        Ok(())
    }

    /// Has every partition make its part, in a transaction that is open at the end.
    async fn make(&mut self, gather: &Gather) -> Result<Made, Stopped> {
        let hostgroups = gather.parts.iter().map(|part| part.hostgroup);
        self.open(hostgroups.collect()).await?;
        let (mut sum, mut carried) = (Made::default(), 0);
        for at in 0..self.shares.len() {
            let hostgroup = self.shares[at].branch.hostgroup;
            let own = gather
                .parts
                .iter()
                .filter(|part| part.hostgroup == hostgroup);
            for part in own {
                let made = self.part(at, part, (None, gather.returns)).await?;
                if is_of_carried(gather, part) {
                    carried += made.matched();
                }
                // Copies of one table have the same rows.
                if !gather.copies || at == 0 {
                    sum.add(made);
                }
                if let Some(returned) = &sum.returned {
                    returned.may_be_told(self.session, self.job)?;
                }
            }
        }
        if let Some(rekeyed) = &gather.rekeyed {
            let carrier = Carrier::of(rekeyed, &self.job.epoch.snapshot.variables, self.asking);
            self.carry(carrier, carried).await?;
        }
        Ok(sum)
    }

    /// Moves rows that have another key now: so many have got one where they were.
    async fn carry(&mut self, mut carrier: Carrier<'_>, wanted: u64) -> Result<(), Stopped> {
        let rekeyed = carrier.rekeyed;
        let at = |shares: &[Share], hostgroup: u32| {
            let is_there = |share: &Share| share.branch.hostgroup == hostgroup;
            shares.iter().position(is_there).unwrap_or_default()
        };
        let to = at(&self.shares, rekeyed.to.hostgroup);
        for place in &rekeyed.from {
            let from = at(&self.shares, place.hostgroup);
            let taken = self
                .with(from, async |backend| carrier.take(backend, place).await)
                .await?;
            if taken.rows.is_empty() {
                continue;
            }
            self.with(to, async |backend| carrier.put(backend, &taken).await)
                .await?;
            self.with(from, async |backend| {
                carrier.leave(backend, place, &taken).await
            })
            .await?;
        }
        carrier.has_carried(wanted)
    }

    /// Has a connection do something, and knows whether an answer is awaited there if that is broken off.
    async fn with<T>(
        &mut self,
        at: usize,
        done: impl AsyncFnOnce(&mut Backend) -> Result<T, Stopped>,
    ) -> Result<T, Stopped> {
        let share = &mut self.shares[at];
        share.is_busy = true;
        let done = Box::pin(done(&mut share.backend));
        let done = self.session.unless_stopped(self.asking, done).await?;
        share.is_busy = !matches!(done, Ok(_) | Err(Stopped::Said(_)));
        done.map_err(|stopped| match stopped {
            Stopped::Said(words) => Stopped::Said(self.session.named(&share.backend, words)),
            stopped => stopped,
        })
    }

    async fn connection(&self, hostgroup: u32, state: &State) -> Result<Box<Backend>, Stopped> {
        let asking = (self.asking, state);
        self.session
            .connection_for(self.job, asking, hostgroup)
            .await
    }

    /// A connection to the table of outcomes, which is nobody's schema.
    async fn scribe(&self) -> Result<(Decisions, Box<Backend>), Stopped> {
        let variables = &self.job.epoch.snapshot.variables;
        let decisions = variables.decisions().ok_or_else(|| {
            let words = "HSCALE-1000: no table is named in which the outcome would be written; set mysql-sharding_decisions to schema.table";
            Stopped::Said(not_supported(words))
        })?;
        let state = State::new("", self.session.collation);
        let mut backend = self.connection(decisions.hostgroup, &state).await?;
        alone::takes(&mut backend);
        let class = sql::class(b"INSERT INTO t VALUES (1)");
        alone::come_to(&mut backend, &state, &class).await?;
        alone::before(&mut backend, &class);
        Ok((decisions, backend))
    }

    async fn begin(&mut self, at: usize) -> Result<(), Stopped> {
        let share = &mut self.shares[at];
        let (asking, branch) = (self.asking, &share.branch);
        let begin = match self.frame {
            Frame::One => b"START TRANSACTION".to_vec(),
            Frame::Branches => format!("XA START {branch}").into_bytes(),
            Frame::Session => SAVEPOINT.to_vec(),
        };
        share.is_busy = true;
        let begun = async {
            alone::come_to(&mut share.backend, &asking.state, &asking.class).await?;
            if let Some(legs) = &asking.legs {
                legs.begin(&mut share.backend).await?;
                let mut branches = legs.transaction.branches.borrow_mut();
                branches.writes(branch.hostgroup);
            }
            if asking.moment_us.is_some() {
                share.backend.set_moment(asking.moment_us).await?;
            }
            alone::before(&mut share.backend, &asking.class);
            say(&mut share.backend, &begin, None).await
        };
        let begun = self.session.unless_stopped(asking, Box::pin(begun)).await?;
        let begun = begun?;
        share.is_busy = false;
        share.is_marked = refusal(&begun).is_none();
        refusal(&begun).map_or(Ok(()), |(_, complaint)| Err(Stopped::Said(complaint)))
    }

    /// Has one partition load these rows of a file.
    pub(crate) async fn load(&mut self, part: &Part, rows: &[u8]) -> Result<Made, Stopped> {
        let is_there = |share: &Share| share.branch.hostgroup == part.hostgroup;
        let at = self.shares.iter().position(is_there).unwrap_or_default();
        self.part(at, part, (Some(rows), false)).await
    }

    /// Has one partition make its part; `file`: what its server gets when it asks for one; `returns`:
    /// the answer has rows.
    async fn part(
        &mut self,
        at: usize,
        part: &Part,
        (file, returns): (Option<&[u8]>, bool),
    ) -> Result<Made, Stopped> {
        let (asking, share) = (self.asking, &mut self.shares[at]);
        let attributes = match self.job.what {
            What::Query(attributes) => Some(attributes),
            What::Execute(execution) => Some(&execution.attributes),
            _ => None,
        };
        let inserts = matches!(
            asking.class.command,
            sql::CommandCounter::Insert | sql::CommandCounter::Replace | sql::CommandCounter::Load
        );
        share.is_busy = true;
        let leg = self.session.leg(&share.backend);
        let made = async {
            if inserts {
                share.backend.tell_insert_id(0).await?;
            }
            let saying = Saying {
                text: &part.text,
                attributes,
                file,
                keeps: if returns { WAITING_MAX } else { ANSWER_LEN_MAX },
            };
            let made = say_with(&mut share.backend, saying).await?;
            leg.ends(refusal(&made).map(|(code, _)| code));
            let generated = match made.response.insert_id() {
                // Behind rows there is none.
                0 if made.response.columns() == 0 => None,
                _ if inserts => share.backend.ask_insert_id().await?,
                _ => None,
            };
            Ok::<_, BackendFailed>((made, generated.unwrap_or(0)))
        };
        let made = self.session.unless_stopped(asking, Box::pin(made)).await?;
        let (made, generated) = made.inspect_err(|_| leg.ends(Some(0)))?;
        share.is_busy = false;
        alone::learn(&mut share.backend, &asking.class, &made.response);
        if let Some((code, complaint)) = refusal(&made) {
            if let response::Outcome::Err { message, .. } = made.response.outcome() {
                self.session.count_error(&share.backend, code, message);
            }
            let complaint = self.session.named(&share.backend, complaint);
            return Err(Stopped::Said(complaint));
        }
        let words = match made.response.columns() > 0 && !returns {
            true => {
                Some("it answers with rows, and several partitions make it; change one at a time")
            }
            false if generated > 0 => Some(
                "the table numbers its rows by itself (AUTO_INCREMENT), and each partition would give the same numbers; give the column its value",
            ),
            false => None,
        };
        if let Some(words) = words {
            let words = format!("HSCALE-1000: {words}");
            return Err(Stopped::Said(not_supported(words)));
        }
        let caps = share.backend.hello.caps;
        if returns {
            return Ok(Made {
                returned: Some(Returned::of(part, &made, caps)?),
                warnings: made.response.warnings(),
                ..Made::default()
            });
        }
        let mut made = Made::of(&made, caps);
        if inserts && made.words.is_empty() {
            made.words = made.of_one_row(&part.text);
        }
        Ok(made)
    }

    /// Ends the transaction: committed at all partitions, or at none.
    pub(crate) async fn end(&mut self) -> Result<(), Stopped> {
        if self.scribe.is_none() {
            return self.commit_alone().await;
        }
        if let Err(stopped) = self.prepare().await {
            self.undo(true).await;
            return Err(stopped);
        }
        match self.decide().await {
            Known::Is(Outcome::Commit) => {
                self.commit().await;
                Ok(())
            }
            Known::Is(Outcome::Abort) => {
                self.undo(true).await;
                let words = "HSCALE-1000: the change took too long, and was rolled back; try again";
                Err(Stopped::Said(Complaint::with(1205, "HY000", words)))
            }
            Known::Failed(words) => {
                self.undo(true).await;
                let words = format!(
                    "HSCALE-1000: the change was rolled back, as its outcome cannot be written: {words}"
                );
                Err(Stopped::Said(Complaint::with(1180, "HY000", words)))
            }
            Known::Unknown => {
                let name = self.name();
                let words = format!(
                    "HSCALE-1000: the outcome of {name} is not known: the server of mysql-sharding_decisions does not answer; all partitions will have the change, or none"
                );
                self.session.core.note(&words);
                for share in self.shares.drain(..) {
                    self.session.core.pools.abandon(share.backend);
                }
                Err(Stopped::Said(Complaint::with(1180, "HY000", words)))
            }
        }
    }

    fn name(&self) -> String {
        let first = self.shares.first();
        first.map_or_else(String::new, |share| share.branch.transaction.clone())
    }

    /// Commits what has one hostgroup.
    async fn commit_alone(&mut self) -> Result<(), Stopped> {
        let Some(mut share) = self.shares.pop() else {
            return Ok(());
        };
        let said = self.within(say(&mut share.backend, b"COMMIT", None)).await;
        match said {
            Ok(said) => match refusal(&said) {
                None => {
                    self.part_from(share, &said.response).await;
                    Ok(())
                }
                Some((_, complaint)) => {
                    self.session.core.pools.abandon(share.backend);
                    Err(Stopped::Said(complaint))
                }
            },
            Err(failed) => {
                self.session.core.pools.abandon(share.backend);
                Err(Stopped::Failed(failed))
            }
        }
    }

    async fn within<T>(
        &self,
        said: impl Future<Output = Result<T, BackendFailed>>,
    ) -> Result<T, BackendFailed> {
        within(&self.session.core.rt, said).await
    }

    /// Has every branch survive whatever happens to its server or to us.
    async fn prepare(&mut self) -> Result<(), Stopped> {
        for at in 0..self.shares.len() {
            for verb in ["END", "PREPARE"] {
                let share = &mut self.shares[at];
                let text = format!("XA {verb} {}", share.branch);
                share.is_busy = true;
                let rt = &self.session.core.rt;
                let said = within(rt, say(&mut share.backend, text.as_bytes(), None)).await?;
                share.is_busy = false;
                if let Some((_, complaint)) = refusal(&said) {
                    return Err(Stopped::Said(complaint));
                }
            }
        }
        Ok(())
    }

    /// Writes the outcome down. Where nobody knows whether that was done, an abort is written
    /// instead: the first that is there counts.
    async fn decide(&mut self) -> Known {
        let name = self.name();
        let Some((decisions, mut backend)) = self.scribe.take() else {
            return Known::Failed("there is no table for it".into());
        };
        let record = decisions.record(&name, Outcome::Commit);
        let said = self
            .within(say(&mut backend, record.as_bytes(), None))
            .await;
        let known = match said {
            Ok(said) => match refusal(&said) {
                None => Known::Is(Outcome::Commit),
                Some((IS_DECIDED, _)) => Known::Is(Outcome::Abort),
                Some((_, complaint)) => Known::Failed(complaint.words),
            },
            Err(_nobody_knows) => {
                self.session.core.pools.abandon(backend);
                return self.look_up(&decisions, &name).await;
            }
        };
        self.scribe = Some((decisions, backend));
        known
    }

    /// Finds the outcome, or makes it an abort.
    async fn look_up(&self, decisions: &Decisions, name: &str) -> Known {
        let rt = &self.session.core.rt;
        let until = rt.now() + SETTLES_WITHIN;
        while rt.now() < until {
            let found = Box::pin(self.look_up_once(decisions, name));
            let found = rt.timeout(until - rt.now(), found).await;
            if let Ok(Ok(Some(outcome))) = found {
                return Known::Is(outcome);
            }
            rt.sleep(AGAIN).await;
        }
        Known::Unknown
    }

    async fn look_up_once(
        &self,
        decisions: &Decisions,
        name: &str,
    ) -> Result<Option<Outcome>, Stopped> {
        let (_, mut backend) = self.scribe().await?;
        let record = decisions.record(name, Outcome::Abort);
        let said = say(&mut backend, record.as_bytes(), None).await?;
        let found = match refusal(&said) {
            None => Some(Outcome::Abort),
            Some((IS_DECIDED, _)) => {
                let question = decisions.question(name);
                let said = say(&mut backend, question.as_bytes(), None).await?;
                let rows = wire::rows::read(&said.bytes, backend.hello.caps);
                let rows = rows.map_or_else(|_| Vec::new(), |read| read.rows);
                let word = rows.first().and_then(|row| row.first()?.as_deref());
                word.and_then(Outcome::of)
            }
            Some(_) => None,
        };
        self.session.core.pools.give_up(backend);
        Ok(found)
    }

    /// Commits all branches. One whose server does not answer is committed by whoever looks for what
    /// is in doubt.
    async fn commit(&mut self) {
        let (name, mut is_left) = (self.name(), false);
        for mut share in std::mem::take(&mut self.shares) {
            let text = Outcome::Commit.of_branch(&share.branch);
            let said = self
                .within(say(&mut share.backend, text.as_bytes(), None))
                .await;
            match said {
                Ok(said) if refusal(&said).is_none_or(|(code, _)| code == IS_ENDED) => {
                    self.part_from(share, &said.response).await;
                }
                _ => {
                    is_left = true;
                    let branch = &share.branch;
                    self.session.core.note(&format!(
                        "{} is decided, and hostgroup {} has not said that it has committed; that is done when it answers",
                        branch.transaction, branch.hostgroup
                    ));
                    self.session.core.pools.abandon(share.backend);
                }
            }
        }
        if !is_left {
            self.forget(name);
        }
    }

    /// Forgets the outcome that all have carried out. Nobody waits for that.
    fn forget(&mut self, name: String) {
        let Some((decisions, mut backend)) = self.scribe.take() else {
            return;
        };
        let core = self.session.core.clone();
        let task = core.clone();
        core.rt.spawn(async move {
            let text = decisions.forget(&name);
            let said = Box::pin(say(&mut backend, text.as_bytes(), None));
            match task.rt.timeout(SETTLES_WITHIN, said).await {
                Ok(Ok(_)) => alone::gives_back(&task, backend),
                _ => task.pools.abandon(backend),
            }
        });
    }

    /// Commits the branches of a session's transaction, those that are named first in one phase each.
    async fn commit_all(&mut self, one: Vec<Share>, is_spread: bool) -> Committed {
        if is_spread {
            match self.scribe().await {
                Ok(scribe) => self.scribe = Some(scribe),
                Err(stopped) => return self.roll_back_all(one, stopped).await,
            }
        }
        let mut left = one.into_iter();
        while let Some(share) = left.next() {
            let is_last = !is_spread && left.len() == 0;
            match self.in_one_phase(share).await {
                Ok(()) => {}
                Err(Stopped::Failed(failed)) if is_last => return Committed::InDoubt(failed),
                Err(stopped) => return self.roll_back_all(left.collect(), stopped).await,
            }
        }
        if is_spread && let Err(stopped) = self.end().await {
            return Committed::Not(complaint_of(stopped));
        }
        Committed::Done
    }

    async fn roll_back_all(&mut self, others: Vec<Share>, why: Stopped) -> Committed {
        self.shares.extend(others);
        self.undo(true).await;
        Committed::Not(complaint_of(why))
    }

    /// Commits a branch in one phase.
    async fn in_one_phase(&mut self, mut share: Share) -> Result<(), Stopped> {
        let end = format!("XA END {}", share.branch);
        let commit = format!("XA COMMIT {} ONE PHASE", share.branch);
        for text in [end, commit] {
            let said = self.within(say(&mut share.backend, text.as_bytes(), None));
            let said = match said.await {
                Ok(said) => said,
                Err(failed) => {
                    self.session.core.pools.abandon(share.backend);
                    return Err(failed.into());
                }
            };
            match refusal(&said) {
                Some((_, complaint)) => {
                    self.shares.push(share);
                    return Err(Stopped::Said(complaint));
                }
                None if text.ends_with("ONE PHASE") => {
                    self.part_from(share, &said.response).await;
                    return Ok(());
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Gives the session its connections back, with the statement done on all of them, or on none.
    async fn give_back(&mut self, legs: &Legs, is_undone: bool) {
        for mut share in std::mem::take(&mut self.shares) {
            if share.is_busy {
                self.session.end_on_server(&share.backend);
                legs.lose(self.session, share.backend);
                continue;
            }
            if is_undone && share.is_marked && !legs.transaction.is_victim() {
                let undone = self
                    .within(say(&mut share.backend, TO_SAVEPOINT, None))
                    .await;
                if !undone.is_ok_and(|said| refusal(&said).is_none()) {
                    legs.lose(self.session, share.backend);
                    continue;
                }
            }
            share.backend.holds.remove(Hold::Diagnostics);
            let told = self
                .session
                .tells_time_again(&mut share.backend, self.asking);
            match told.await {
                true => legs.put(share.backend),
                false => legs.lose(self.session, share.backend),
            }
        }
    }

    /// Rolls all back, as far as servers answer. A branch that stays prepared is rolled back by
    /// whoever looks for what is in doubt: no outcome is written.
    pub(crate) async fn undo(&mut self, may_be_prepared: bool) {
        if let Some((_, backend)) = self.scribe.take() {
            alone::gives_back(&self.session.core, backend);
        }
        let is_alone = matches!(self.frame, Frame::One) && !may_be_prepared;
        for mut share in std::mem::take(&mut self.shares) {
            if share.is_busy {
                self.session.end_on_server(&share.backend);
                self.session.core.pools.abandon(share.backend);
                continue;
            }
            let undone = self.within(async {
                match is_alone {
                    true => say(&mut share.backend, b"ROLLBACK", None).await,
                    false => undo_branch(&mut share.backend, &share.branch).await,
                }
            });
            match undone.await {
                Ok(said) if refusal(&said).is_none() => self.part_from(share, &said.response).await,
                _ => self.session.core.pools.abandon(share.backend),
            }
        }
    }

    /// Gives a connection back whose transaction has ended.
    async fn part_from(&mut self, mut share: Share, ended: &Response) {
        let core = &self.session.core;
        if let Some(kept) = &mut self.kept {
            has_ended(&mut share.backend, ended);
            kept.push((share.branch.hostgroup, share.backend));
            return;
        }
        alone::learn(&mut share.backend, &sql::class(b"COMMIT"), ended);
        let is_set = match self.asking.moment_us {
            Some(_) => self.within(share.backend.set_moment(None)).await.is_ok(),
            None => true,
        };
        match is_set {
            true => alone::gives_back(core, share.backend),
            false => core.pools.abandon(share.backend),
        }
    }
}

/// Whether a part's rows move to another one.
fn is_of_carried(gather: &Gather, part: &Part) -> bool {
    gather.rekeyed.as_ref().is_some_and(|rekeyed| {
        let to = gather.parts.get(rekeyed.to_leg);
        to.is_some_and(|to| !std::ptr::eq(to, part))
    })
}

/// The complaint of a COMMIT that was none.
fn complaint_of(stopped: Stopped) -> Complaint {
    match stopped {
        Stopped::Gone | Stopped::Told => Complaint::interrupted(),
        Stopped::Failed(failed) => {
            let words = format!(
                "HSCALE-1000: {}: the transaction was rolled back on all hostgroups",
                Complaint::of(&failed).words
            );
            Complaint::with(1402, "XA100", words)
        }
        Stopped::Said(complaint) => complaint,
    }
}

/// Waits for a server, as long as it may take to settle.
async fn within<T>(
    rt: &Rt,
    said: impl Future<Output = Result<T, BackendFailed>>,
) -> Result<T, BackendFailed> {
    let limit_ms = SETTLES_WITHIN.as_millis() as u64;
    let said = rt.timeout(SETTLES_WITHIN, Box::pin(said)).await;
    said.unwrap_or(Err(BackendFailed::TooSlow { limit_ms }))
}
