//! Another hostgroup or another server for a statement.

use crate::command::job::Job;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Backend, Hold};
use bridge::Counter;
use plan::{MustSee, Plan};
use sql::Class;

impl<'a> Job<'a> {
    /// Whether it has somewhere to go when nobody serves where it waits.
    pub(crate) fn may_go_elsewhere(&self) -> bool {
        let servers = &self.epoch.snapshot.servers;
        let falls_back = || {
            let hostgroup = servers.hostgroup(self.plan.hostgroup());
            hostgroup.is_some_and(|hostgroup| hostgroup.attributes.fallback.is_some())
        };
        let is_led = self.plan.why.is_read() || self.plan.must_see().is_some();
        !self.stays && (is_led || servers.falls_back() && falls_back())
    }
}

impl Session {
    /// Where nobody serves, it goes elsewhere. Most statements have no elsewhere.
    #[inline]
    pub(crate) fn go_where_somebody_serves(
        &mut self,
        epoch: &Epoch,
        class: &Class<'_>,
        plan: &mut Plan,
    ) {
        let servers = &epoch.snapshot.servers;
        if plan.why.is_read() || plan.is_causal() || servers.falls_back() {
            self.hears_of_writes(plan);
            plan.settle(servers, self.user.default_hostgroup, class, &*self);
            if plan.why.by == plan::By::Fallback {
                self.core.tally.up(Counter::StatementsFellBack);
            }
            match plan.must_see() {
                Some(MustSee::Aged(_)) => self.core.tally.up(Counter::QueriesOfAnAge),
                Some(_) if self.must_see(plan).is_some() => {
                    self.core.tally.up(Counter::GtidConsistentQueries);
                }
                _ => {}
            }
        }
    }

    /// The server that a script has named for the statement that runs now, if it goes to this
    /// hostgroup.
    #[inline]
    pub(crate) fn named_server(&self, hostgroup: u32) -> Option<(&str, u16)> {
        let named = self.scripts.as_ref()?.named.as_deref()?;
        (named.hostgroup == hostgroup).then_some((&*named.host, named.port))
    }

    /// A connection that is kept for nothing but its login makes way for one to the server that a
    /// script has named, as in MySQL Proxy.
    pub(crate) fn changes_server(&mut self, job: &Job<'_>) {
        let hostgroup = job.plan.hostgroup();
        let Some((host, port)) = self.named_server(hostgroup) else {
            return;
        };
        let is_other = |of: u32, held: &Backend| {
            let row = held.place().server();
            let is_it = *row.hostname == *host && row.port == port;
            of == hostgroup && !is_it && held.holds.are_only(&[Hold::NotAllowed])
        };
        if !self.held.iter().any(|(of, held)| is_other(of, held)) {
            return;
        }
        let there = self.core.pools.at_once_at(&self.want(job), (host, port));
        let Some(there) = there else { return };
        let (host, port) = (host.to_owned(), port);
        let old = self.held.take_that(|of, held| {
            let row = held.place().server();
            of == hostgroup && !(*row.hostname == *host && row.port == port)
        });
        if let Some((_, old)) = old {
            self.core.pools.give_up(old);
        }
        self.keeps_login(there);
    }
}
