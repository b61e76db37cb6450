//! A connection for a statement: which one it wants, and how it waits for it.

use crate::command::job::{Job, Told, What};
use crate::command::reads::sees;
use crate::command::trouble::{Ended, Failed, Trouble};
use crate::known::answer::Complaint;
use crate::session::Session;
use backend::{Backend, BackendFailed, Want};
use rt::Either;
use std::ops::ControlFlow;
use std::time::Duration;

impl Session {
    /// Waits as long as a rule's `delay` or `mysql-default_query_delay` asks for.
    pub(crate) async fn wait_as_asked(
        &mut self,
        job: &Job<'_>,
    ) -> Result<ControlFlow<Told>, Ended> {
        let usual = job.epoch.snapshot.variables.mysql_default_query_delay;
        let delay = job.plan.delay_ms.map_or(usual, u64::from);
        if delay == 0 || job.stays {
            return Ok(ControlFlow::Continue(()));
        }
        let rt = self.core.rt.clone();
        let pause = rt.sleep(Duration::from_millis(delay));
        self.pause_while_wanted(pause).await
    }

    /// Waits for this before the statement goes on. Who leaves or is told to end does not wait.
    pub(crate) async fn pause_while_wanted(
        &mut self,
        pause: impl Future<Output = ()>,
    ) -> Result<ControlFlow<Told>, Ended> {
        let gone = rt::select(self.client.socket().closed(), self.entry.told_to_end());
        match rt::select(pause, gone).await {
            Either::Left(()) => return Ok(ControlFlow::Continue(())),
            Either::Right(Either::Left(())) => return Err(Ended::Gone),
            Either::Right(Either::Right(())) if self.entry.killed.get() => {
                return Err(Ended::Told(Complaint::interrupted()));
            }
            Either::Right(Either::Right(())) => {}
        }
        self.refuse(&Complaint::interrupted()).await?;
        Ok(ControlFlow::Break(Told::default()))
    }

    /// The connection that a statement needs.
    pub(crate) fn want<'s>(&'s self, job: &Job<'s>) -> Want<'s> {
        let (priority, cost_ns) = match job.epoch.admission {
            true => self.standing(job),
            false => (config::PRIORITY_USUAL, None),
        };
        Want {
            priority,
            cost_ns,
            // Others may wait for what the session has elsewhere.
            waits: self.held.is_empty(),
            at: self.named_server(job.plan.hostgroup()),
            hostgroup: job.plan.hostgroup(),
            user: &self.user.username,
            secret: &self.secret,
            caps: self.caps,
            collation: self.collation,
            session: self.entry.id,
            attributes: &self.attributes,
            client: self.entry.address,
            state: &self.state,
            user_variables: sees(job),
            remembered: self.remembered(job),
            tracking: self.tracking(job),
            snapshot: &job.epoch.snapshot,
            new_connection: job.plan.new_connection,
            must_see: self.must_see(job.plan),
            like: None,
            executes: match job.what {
                What::Execute(execution) => Some(execution.for_choice()),
                _ => None,
            },
        }
    }

    /// Priority and cost of a statement among those who wait.
    #[cold]
    fn standing(&self, job: &Job<'_>) -> (u8, Option<u64>) {
        let rules = &job.epoch.snapshot.rules;
        let (priority, _) = plan::priority(Some(&self.user), rules, job.plan.why.hits());
        let cost = |digest| self.core.costs.of(digest, job.plan.hostgroup());
        (priority, job.digest.and_then(cost))
    }

    /// A connection that is not there at once.
    pub(crate) async fn wait_for_one(&mut self, job: &Job<'_>) -> Result<Box<Backend>, Trouble> {
        if !self.held.is_empty() {
            let spared = Box::pin(self.give_back_what_is_spare(job)).await;
            spared?;
        }
        loop {
            let want = self.want(job);
            // Who leaves or is told to end leaves the line, too, and so does who loses a connection
            // that is kept.
            let gone = rt::select(self.client.socket().closed(), self.told_while_waiting());
            match rt::select(Box::pin(self.acquire(job, &want)), gone).await {
                Either::Left(backend) => {
                    return backend.map_err(Trouble::from);
                }
                Either::Right(Either::Left(())) => return Err(Failed::Client.into()),
                Either::Right(Either::Right(())) => {}
            }
            if self.entry.killed.get() || self.entry.interrupted.get() {
                return Err(Failed::Killed.into());
            }
            self.leave_cut_off_for(job)?;
        }
    }

    /// A connection; or that nobody serves, if the statement may go elsewhere then.
    async fn acquire(&self, job: &Job<'_>, want: &Want<'_>) -> Result<Box<Backend>, BackendFailed> {
        let (pools, hostgroup) = (&self.core.pools, want.hostgroup);
        if !job.may_go_elsewhere() {
            return pools.acquire(want).await;
        }
        let nobody = pools.until_nobody_serves(hostgroup, want.must_see);
        match rt::select(pools.acquire(want), nobody).await {
            Either::Left(backend) => backend,
            Either::Right(()) => Err(BackendFailed::NobodyServes { hostgroup }),
        }
    }

    /// Closes what is cut off. Nobody else knows warnings that went with it.
    pub(crate) fn leave_cut_off_for(&mut self, job: &Job<'_>) -> Result<(), Trouble> {
        if self.leave_cut_off() {
            return Err(Trouble::from(BackendFailed::CutOff).losing(true));
        }
        if self.asks_for_lost_warnings(job) {
            return Err(BackendFailed::CutOff.into());
        }
        Ok(())
    }

    /// Resolves when the session, or its statement, is to end, or a connection that it keeps is cut
    /// off.
    async fn told_while_waiting(&self) {
        let entry = &self.entry;
        while !entry.killed.get() && !entry.interrupted.get() && !self.held.has_cut_off() {
            entry.bell.heard().await;
        }
    }
}
