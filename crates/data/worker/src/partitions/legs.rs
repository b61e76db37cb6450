//! Connections of a session's transaction, for a statement that needs several of its branches at once.
//! They are the session's own: what is asked there sees what the transaction has written.

use crate::command::job::Job;
use crate::command::trouble::{Ended, Trouble};
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::memory::drain::Whom;
use crate::memory::insert_id;
use crate::partitions::asking::{Answering, Asking, Legs, Stopped, broke, not_supported};
use crate::session::Session;
use crate::session::global::GlobalTransaction;
use backend::{Backend, BackendFailed, Hold, Idle};
use sql::Against;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Bytes of rows of partitions that wait here, while another one is read over the same connection.
pub(crate) const WAITING_MAX: usize = 64 << 20;
/// So long a server has to say what nobody needs of an answer. Else its branch is given up.
const LEFT_WITHIN: Duration = Duration::from_secs(10);

impl Session {
    /// How parts are asked over the branches of the session's transaction. The connections that it
    /// has go along until [`Session::take_back`].
    pub(crate) async fn asking_branches<'a>(
        &mut self,
        job: &Job<'a>,
        transaction: Rc<GlobalTransaction>,
        same_moment: bool,
    ) -> Result<Asking<'a>, Ended> {
        // What servers remember of statements before is asked for first.
        let asked = Box::pin(self.ask_all_held(job)).await;
        asked.map_err(Trouble::ends)?;
        let mut asking = self.asking(job, same_moment);
        asking.state.autocommit = self.state.autocommit;
        let idle = self.held.take_all_that(|_| true);
        asking.legs = Some(Rc::new(Legs {
            idle: RefCell::new(idle),
            has_lost_more: Cell::new(false),
            transaction,
        }));
        Ok(asking)
    }

    async fn ask_all_held(&mut self, job: &Job<'_>) -> Result<(), Trouble> {
        let limit_ms = self.limit_ms(job);
        let whom = Whom::Command {
            limit_ms,
            answered: false,
        };
        self.read_back_elsewhere(None, whom).await?;
        let has_id = |_: &Self, _: u32, backend: &Backend| backend.holds.has(Hold::InsertId);
        self.drain(has_id, &[&insert_id::MEMORY], Whom::Need { limit_ms })
            .await
    }

    /// Keeps the connections that were lent to a statement. A session that has lost more than a branch
    /// ends.
    pub(crate) fn take_back(&mut self, asking: &Asking<'_>) -> Result<(), Ended> {
        let Some(legs) = &asking.legs else {
            return Ok(());
        };
        for (hostgroup, backend) in legs.idle.take() {
            self.held
                .keep_or_release(hostgroup, backend, &self.core.pools);
        }
        match legs.has_lost_more.get() {
            true => Err(Ended::Told(Complaint::of(&BackendFailed::CutOff))),
            false => Ok(()),
        }
    }

    /// Asks partitions over the branches: those of one hostgroup one after another, as they have one
    /// connection; the last of each hostgroup is read while it arrives. What locks rows asks one hostgroup
    /// after another as well: two transactions that go in this order never wait for each other in a circle.
    pub(crate) async fn ask_branches(
        &self,
        job: &Job<'_>,
        (asking, legs): (&Asking<'_>, &Legs),
        asked: &[(u32, &[u8])],
        parts: &mut Vec<Answering>,
    ) -> Result<(), Stopped> {
        let mut by_hostgroup = BTreeMap::<u32, Vec<usize>>::new();
        for (at, (hostgroup, _)) in asked.iter().enumerate() {
            by_hostgroup.entry(*hostgroup).or_default().push(at);
        }
        let mut answers: Vec<Option<Answering>> = Vec::new();
        answers.resize_with(asked.len(), || None);
        let mut all = Ok(());
        let (mut waiting, locks) = (0, asking.class.against == Some(Against::Lock));
        let last_hostgroup = by_hostgroup.keys().next_back().copied();
        'all: for (hostgroup, own) in by_hostgroup {
            let streams = !locks || Some(hostgroup) == last_hostgroup;
            let wanted = (asking, &asking.state);
            let mut next = match self.connection_for(job, wanted, hostgroup).await {
                Ok(backend) => Some(backend),
                Err(stopped) => {
                    all = Err(stopped);
                    break;
                }
            };
            if answers.iter().all(Option::is_none)
                && let Some(backend) = &next
            {
                self.entry.works_on(hostgroup, backend);
            }
            let last = own.last().copied();
            for at in own {
                let Some(mut backend) = next.take() else {
                    break;
                };
                alone::takes(&mut backend);
                let mut part = match self.ask_on(job, asking, asked[at].1, backend).await {
                    Ok(part) => part,
                    Err(stopped) => {
                        all = Err(stopped);
                        break 'all;
                    }
                };
                let read = match Some(at) == last && streams {
                    true => Ok(()),
                    false => self.read_whole(&mut part, asking, &mut waiting).await,
                };
                if Some(at) != last && read.is_ok() {
                    next = part.backend.take();
                    if let Some(backend) = &mut next {
                        alone::learn(backend, &asking.class, &part.response);
                    }
                }
                answers[at] = Some(part);
                if let Err(stopped) = read {
                    all = Err(stopped);
                    break 'all;
                }
            }
            if let Some(backend) = next {
                legs.put(backend);
            }
        }
        parts.extend(answers.into_iter().flatten());
        all
    }

    /// Reads all of an answer. The rows wait here.
    async fn read_whole(
        &self,
        part: &mut Answering,
        asking: &Asking<'_>,
        waiting: &mut usize,
    ) -> Result<(), Stopped> {
        while let (false, Some(backend)) = (part.ended, &mut part.backend) {
            let chunk = self.unless_stopped(asking, backend.recv()).await?;
            *waiting += part.take(chunk)?;
            if *waiting > WAITING_MAX {
                let words = format!(
                    "HSCALE-1000: more than {} MiB of rows of partitions on one hostgroup would wait here until the last of them is read in the transaction; say more in WHERE",
                    WAITING_MAX >> 20
                );
                return Err(Stopped::Said(not_supported(words)));
            }
        }
        part.rows.describe().map_err(broke)?;
        self.look_for_error(part)
    }

    /// Parts with the connection of an answer: it is the session's again if all was heard.
    pub(crate) async fn part_from_leg(
        &self,
        mut part: Answering,
        (asking, legs): (&Asking<'_>, &Legs),
        is_gone: bool,
    ) {
        let is_hurried = self.entry.killed.get()
            || self.entry.interrupted.get()
            || asking.is_late(self.core.rt.now());
        if !part.ended && !is_gone && !is_hurried {
            let left = Box::pin(part.rest(WAITING_MAX));
            let _late_or_too_much = self.core.rt.timeout(LEFT_WITHIN, left).await;
        }
        let ended = part.ended;
        let Some(mut backend) = part.backend.take() else {
            return;
        };
        if !ended {
            self.end_on_server(&backend);
            return legs.lose(self, backend);
        }
        alone::learn(&mut backend, &asking.class, &part.response);
        // Its client is told of no warnings of partitions.
        backend.holds.remove(Hold::Diagnostics);
        match self.tells_time_again(&mut backend, asking).await {
            true if backend.idle == Idle::Proven => legs.put(backend),
            _ => legs.lose(self, backend),
        }
    }

    /// Has a server tell its own time again, if it was told another.
    pub(crate) async fn tells_time_again(
        &self,
        backend: &mut Backend,
        asking: &Asking<'_>,
    ) -> bool {
        if asking.moment_us.is_none() {
            return true;
        }
        let set = Box::pin(backend.set_moment(None));
        let set = self.core.rt.timeout(LEFT_WITHIN, set).await;
        matches!(set, Ok(Ok(())))
    }
}
