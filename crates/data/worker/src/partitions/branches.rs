//! Transactions that have a branch on each hostgroup that they need. BEGIN is answered here; a branch
//! begins with the first statement on its hostgroup; COMMIT and ROLLBACK end all of them.
//!
//! docs/features/partition-transactions.md

use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Failed, Trouble};
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::partitions::asking::not_supported;
use crate::partitions::changing;
use crate::partitions::changing::Committed;
use crate::reach::branch::{ROLLED_BACK, ROLLED_BACK_STATE, carries_more, needed, uses_tables};
use crate::session::Session;
use crate::session::global::{GlobalTransaction, Standing};
use backend::{Backend, BackendFailed, Hold};
use bridge::Counter;
use shards::global::{Access, Global, Mark, mark};
use shards::xa::transaction;
use sql::{Class, CommandCounter};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

/// A savepoint that is not set.
const NO_SAVEPOINT: u16 = 1305;

/// Meaning of a statement for the transaction around it.
enum Bound {
    /// Another one begins; `None` for one that is on one hostgroup.
    Begin(Option<Access>),
    Commit,
    RollBack,
    Savepoint(Mark, Box<[u8]>),
    /// A server would commit first.
    Commits,
    /// Nothing.
    Inside,
}

impl Session {
    /// Whether the session's transaction has, or may have, branches.
    pub(crate) fn has_branches(&self, epoch: &Epoch) -> bool {
        self.global.is_some() || !self.state.autocommit && self.may_have_branches(epoch)
    }

    /// Whether a transaction that begins now may have branches: nothing that the session keeps would be
    /// ended by it, or says how it shall be.
    fn may_have_branches(&self, epoch: &Epoch) -> bool {
        let is_in_the_way = |hold| {
            matches!(
                hold,
                Hold::Transaction
                    | Hold::AutocommitOff
                    | Hold::NextTransaction
                    | Hold::Xa
                    | Hold::TableLock
            )
        };
        plan::has_branches(&epoch.snapshot, &self.user)
            && !self.is_relayed()
            && self.state.variable("completion_type").is_none()
            && !self.held.holds().any(is_in_the_way)
    }

    /// Where a statement without sharded tables goes in the session's transaction, if that has branches.
    pub(crate) fn home_of(&self, class: &Class<'_>, text: &[u8]) -> Option<u32> {
        let transaction = self.global.as_ref()?;
        let branches = transaction.branches.borrow();
        let home = transaction.home;
        if uses_tables(class, text) || branches.has_begun(home) {
            return Some(home);
        }
        Some(branches.hostgroups().first().copied().unwrap_or(home))
    }

    /// Whether a statement goes to a branch that has begun.
    pub(crate) fn goes_to_a_branch(&self, plan: &plan::Plan) -> bool {
        let Some(transaction) = &self.global else {
            return self.held.transaction() == Some(plan.hostgroup());
        };
        let branches = transaction.branches.borrow();
        match &plan.gather {
            None => branches.has_begun(plan.hostgroup()),
            Some(gather) => {
                let mut parts = gather.parts.iter();
                parts.any(|part| branches.has_begun(part.hostgroup))
            }
        }
    }

    /// A stage: what begins or ends a transaction with branches, and what is in the way of others.
    pub(crate) async fn bounds(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let is_asked = matches!(
            job.what,
            What::Query(_) | What::Execute(_) | What::Dynamic(_)
        );
        if !is_asked || self.global.is_none() && !self.opens(job) {
            return Ok(ControlFlow::Continue(()));
        }
        let bound = self.bound(job);
        let Some(transaction) = self.global.clone() else {
            let home = self.user.default_hostgroup;
            match bound {
                Bound::Begin(Some(access)) if self.begins_global(job, access) => {
                    return self.says_ok(job).await;
                }
                Bound::Savepoint(Mark::Set, _) => {}
                Bound::Inside if !needed(job, home).is_empty() => {}
                _ => return Ok(ControlFlow::Continue(())),
            }
            let transaction = self.transaction(home, Access::Usual, false);
            self.global = Some(transaction.clone());
            return self.in_global(job, &transaction, bound).await;
        };
        if transaction.standing.get() == Standing::Lost {
            return self.bound_of_lost(job, bound).await;
        }
        self.in_global(job, &transaction, bound).await
    }

    /// Whether a statement may begin a transaction with branches.
    fn opens(&self, job: &Job<'_>) -> bool {
        let begins = job.class.begins_transaction && !job.class.ends_transaction;
        (begins || !self.state.autocommit) && !job.class.multi && self.may_have_branches(job.epoch)
    }

    /// Tells what a statement is to the transaction.
    fn bound(&self, job: &Job<'_>) -> Bound {
        use CommandCounter as C;
        let class = job.class;
        let words = || self.lexing_of(job.what).words(job.sent());
        if class.multi {
            return Bound::Inside;
        }
        if matches!(class.command, C::Commit | C::Rollback) && class.leaves.is_empty() {
            return match class.command {
                C::Commit => Bound::Commit,
                _ => Bound::RollBack,
            };
        }
        if class.begins_transaction {
            return Bound::Begin(Access::of_begin(words()));
        }
        let is_mark = matches!(
            class.command,
            C::Savepoint | C::RollbackSavepoint | C::ReleaseSavepoint
        );
        if is_mark && let Some((mark, name)) = mark(words()) {
            return Bound::Savepoint(mark, name);
        }
        let commits = class.ddl
            || class.command == C::LockTable
            || class.sets && !self.state.autocommit && self.turns_autocommit_on(job.sent());
        match commits {
            true => Bound::Commits,
            false => Bound::Inside,
        }
    }

    fn transaction(&self, home: u32, access: Access, explicit: bool) -> Rc<GlobalTransaction> {
        let rt = &self.core.rt;
        let name = transaction(rt.wall_us(), [rt.random(), rt.random()]);
        Rc::new(GlobalTransaction {
            branches: RefCell::new(Global::new(name, access)),
            home,
            is_explicit: explicit,
            standing: Cell::new(Standing::Open),
        })
    }

    /// BEGIN: nothing is said to any server. False where nobody would end a branch at its home.
    fn begins_global(&mut self, job: &Job<'_>, access: Access) -> bool {
        let own = self.user.default_hostgroup;
        // Readers take no branches.
        let home = match job.plan.why.is_read() {
            true => own,
            false => job.plan.hostgroup(),
        };
        let snapshot = &job.epoch.snapshot;
        if home != own && !snapshot.hostgroups_of_branches().contains(&home) {
            return false;
        }
        self.global = Some(self.transaction(home, access, true));
        true
    }

    async fn says_ok(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        self.turn.failed = false;
        self.say("").await?;
        self.keep(job);
        Ok(ControlFlow::Break(Told::default()))
    }

    async fn says_no(
        &mut self,
        job: &Job<'_>,
        complaint: &Complaint,
    ) -> Result<ControlFlow<Told>, Ended> {
        self.refuse(complaint).await?;
        self.keep(job);
        Ok(ControlFlow::Break(Told {
            row_count: -1,
            ..Told::default()
        }))
    }

    async fn in_global(
        &mut self,
        job: &Job<'_>,
        transaction: &Rc<GlobalTransaction>,
        bound: Bound,
    ) -> Result<ControlFlow<Told>, Ended> {
        let ends = match bound {
            Bound::Inside => {
                return match self.would_need_outcome(job, transaction) {
                    Some(complaint) => self.says_no(job, &complaint).await,
                    None => Ok(ControlFlow::Continue(())),
                };
            }
            Bound::Savepoint(mark, name) => {
                let marked = Box::pin(self.marks(job, transaction, (mark, &name))).await?;
                return match marked {
                    Some(complaint) => self.says_no(job, &complaint).await,
                    None => self.says_ok(job).await,
                };
            }
            Bound::RollBack => {
                Box::pin(self.roll_back_branches()).await?;
                self.global = None;
                None
            }
            Bound::Begin(_) | Bound::Commit | Bound::Commits => {
                Box::pin(self.commit_branches(job)).await?
            }
        };
        if let Some(complaint) = ends {
            return self.says_no(job, &complaint).await;
        }
        self.ended(job, transaction, bound).await
    }

    /// Goes on behind a transaction that has ended well.
    async fn ended(
        &mut self,
        job: &Job<'_>,
        transaction: &Rc<GlobalTransaction>,
        bound: Bound,
    ) -> Result<ControlFlow<Told>, Ended> {
        match bound {
            Bound::Begin(Some(access))
                if self.may_have_branches(job.epoch) && self.begins_global(job, access) => {}
            Bound::Commit | Bound::RollBack => {
                if job.class.begins_transaction {
                    // AND CHAIN: the next one is alike.
                    let access = transaction.branches.borrow().access;
                    self.global = Some(self.transaction(transaction.home, access, true));
                }
                if job.class.releases {
                    self.entry.released.set(true);
                }
            }
            // What has committed it is done now.
            _ => {
                self.keep(job);
                return Ok(ControlFlow::Continue(()));
            }
        }
        self.says_ok(job).await
    }

    /// A branch is lost: nothing is done any more.
    async fn bound_of_lost(
        &mut self,
        job: &Job<'_>,
        bound: Bound,
    ) -> Result<ControlFlow<Told>, Ended> {
        let words = "HSCALE-1000: the transaction was rolled back on all hostgroups, as a server of it was lost; end it with ROLLBACK, and begin it again";
        let complaint = Complaint::with(ROLLED_BACK, ROLLED_BACK_STATE, words);
        match bound {
            Bound::RollBack | Bound::Begin(_) => {
                let Some(transaction) = self.global.take() else {
                    return Ok(ControlFlow::Continue(()));
                };
                self.ended(job, &transaction, bound).await
            }
            Bound::Commit => {
                self.global = None;
                if job.class.releases {
                    self.entry.released.set(true);
                }
                self.says_no(job, &complaint).await
            }
            _ => self.says_no(job, &complaint).await,
        }
    }

    /// Refuses a branch on a second hostgroup while nobody could write down what becomes of the two.
    pub(crate) fn would_need_outcome(
        &self,
        job: &Job<'_>,
        transaction: &GlobalTransaction,
    ) -> Option<Complaint> {
        if job.epoch.snapshot.variables.decisions().is_some() {
            return None;
        }
        let mut all = transaction.branches.borrow().hostgroups();
        all.extend(needed(job, transaction.home));
        let first = *all.first()?;
        let other = all.into_iter().find(|hostgroup| *hostgroup != first)?;
        let words = format!(
            "HSCALE-1000: its transaction would have branches on the hostgroups {first} and {other}, and no table is named in which the outcome would be written; set mysql-sharding_decisions to schema.table"
        );
        Some(not_supported(words))
    }

    /// A statement about a savepoint is done by all branches; the error of the first that refuses.
    async fn marks(
        &mut self,
        job: &Job<'_>,
        transaction: &Rc<GlobalTransaction>,
        (mark, name): (Mark, &[u8]),
    ) -> Result<Option<Complaint>, Ended> {
        let is_known = transaction.branches.borrow().has_mark(name);
        if mark != Mark::Set && !is_known {
            let name = String::from_utf8_lossy(name);
            let words = format!("SAVEPOINT {name} does not exist");
            return Ok(Some(Complaint::with(NO_SAVEPOINT, "42000", words)));
        }
        let (text, limit_ms) = (job.sent().to_vec(), self.limit_ms(job));
        let hostgroups = transaction.branches.borrow().hostgroups();
        for hostgroup in hostgroups {
            let Some(mut backend) = self.held.take(hostgroup) else {
                continue;
            };
            let told = Box::pin(backend.tell(&text));
            let told = self.prepared_for(limit_ms, told, false).await;
            let is_well = told.is_ok();
            if is_well {
                self.held.put(hostgroup, backend);
                continue;
            }
            // Branches that differ are of no use.
            let carries = carries_more(backend.holds);
            transaction.is_lost();
            self.core.pools.abandon(backend);
            match told {
                Err(Failed::Backend(failed)) if !carries => {
                    let complaint = self.tells_of_lost_branch(&failed);
                    self.settle_branches().await?;
                    return Ok(Some(complaint));
                }
                Err(why) => return Err(Trouble::from(why).ends()),
                Ok(()) => {}
            }
        }
        let mut branches = transaction.branches.borrow_mut();
        branches.marks(mark, name, &text);
        Ok(None)
    }

    /// A statement is over: what it has left of the transaction.
    pub(crate) async fn settle_branches(&mut self) -> Result<(), Ended> {
        let Some(transaction) = self.global.clone() else {
            return Ok(());
        };
        match transaction.standing.get() {
            Standing::Open => {}
            Standing::Victim => {
                Box::pin(self.roll_back_branches()).await?;
                self.global = None;
            }
            Standing::Lost => Box::pin(self.roll_back_branches()).await?,
        }
        Ok(())
    }

    /// Connections with a branch on these hostgroups.
    fn take_branches(&mut self, hostgroups: &[u32]) -> Vec<(u32, Box<Backend>)> {
        let taken = hostgroups
            .iter()
            .filter(|hostgroup| self.held.has(**hostgroup, Hold::Branch))
            .copied()
            .collect::<Vec<_>>();
        taken
            .into_iter()
            .filter_map(|hostgroup| Some((hostgroup, self.held.take(hostgroup)?)))
            .collect()
    }

    /// Rolls all branches back. The transaction itself stays.
    async fn roll_back_branches(&mut self) -> Result<(), Ended> {
        let Some(transaction) = self.global.clone() else {
            return Ok(());
        };
        let hostgroups = transaction.branches.borrow().hostgroups();
        let legs = self.take_branches(&hostgroups);
        let carries = legs.iter().any(|(_, backend)| carries_more(backend.holds));
        let count = legs.len();
        let mut kept = Vec::new();
        for (hostgroup, backend) in legs {
            let branch = transaction.branches.borrow().branch(hostgroup);
            kept.extend(changing::roll_back(self, branch, backend).await);
        }
        let is_whole = kept.len() == count;
        self.keeps_connections(&transaction, kept, false);
        match is_whole || !carries {
            true => Ok(()),
            false => Err(Ended::Told(Complaint::of(&BackendFailed::CutOff))),
        }
    }

    /// Commits the transaction, which is over then. Why it was rolled back, if it was.
    async fn commit_branches(&mut self, job: &Job<'_>) -> Result<Option<Complaint>, Ended> {
        let Some(transaction) = self.global.clone() else {
            return Ok(None);
        };
        let phases = transaction.branches.borrow().phases();
        let named = |legs: Vec<(u32, Box<Backend>)>| {
            let branches = transaction.branches.borrow();
            let with_name = legs
                .into_iter()
                .map(|(hostgroup, backend)| (branches.branch(hostgroup), backend));
            with_name.collect::<Vec<_>>()
        };
        let count = phases.one.len() + phases.two.len();
        let legs = [
            self.take_branches(&phases.one),
            self.take_branches(&phases.two),
        ];
        let taken = legs.iter().flatten();
        let carries = taken
            .clone()
            .any(|(_, backend)| carries_more(backend.holds));
        let is_there = taken.count() == count;
        let [one, two] = legs.map(named);
        let is_spread = !two.is_empty();
        let (kept, committed) = match is_there {
            true => changing::commit(self, job, (one, two)).await,
            false => {
                // One went with what the session has given back meanwhile.
                let mut kept = Vec::new();
                for (branch, backend) in one.into_iter().chain(two) {
                    kept.extend(changing::roll_back(self, branch, backend).await);
                }
                let words = "HSCALE-1000: the transaction was rolled back, as a branch of it is gone; begin it again";
                let complaint = Complaint::with(ROLLED_BACK, ROLLED_BACK_STATE, words);
                (kept, Committed::Not(complaint))
            }
        };
        let is_whole = kept.len() == count;
        self.global = None;
        let is_done = matches!(committed, Committed::Done);
        self.keeps_connections(&transaction, kept, is_done);
        if is_done && is_spread {
            self.core.tally.up(Counter::PartitionTransactions);
        }
        match committed {
            Committed::InDoubt(failed) => {
                self.core.tally.up(Counter::ChangesInDoubt);
                Err(Ended::Told(Complaint::of(&failed)))
            }
            _ if !is_whole && carries => Err(Ended::Told(Complaint::of(&BackendFailed::CutOff))),
            Committed::Done => Ok(None),
            Committed::Not(complaint) => Ok(Some(complaint)),
        }
    }

    /// Keeps connections whose branches have ended for what else the session has there, and gives the
    /// others back.
    fn keeps_connections(
        &mut self,
        transaction: &GlobalTransaction,
        kept: Vec<(u32, Box<Backend>)>,
        is_committed: bool,
    ) {
        for hostgroup in transaction.branches.borrow().hostgroups() {
            self.has_ended_at(hostgroup, is_committed);
        }
        for (hostgroup, backend) in kept {
            self.held
                .keep_or_release(hostgroup, backend, &self.core.pools);
        }
    }

    /// Rolls back for a session that begins anew. Whatever is left goes with its connection.
    pub(crate) async fn forget_branches(&mut self) {
        let _its_connections_are_closed = Box::pin(self.roll_back_branches()).await;
        self.global = None;
    }

    /// Whether BEGIN of this session is answered here.
    pub(crate) fn begins_here(&self, class: &Class<'_>) -> bool {
        class.begins_transaction && self.user.transactions() == config::Transactions::Xa
    }
}
