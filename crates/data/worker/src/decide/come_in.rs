//! Before a statement is decided for good: columns, numbers, partitions and look-ups are asked for, and gates
//! are waited at.

use crate::command::job::{Text, What};
use crate::command::trouble::Ended;
use crate::decide::facts::Settled;
use crate::decide::made::Made;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use shards::Making;
use sql::Class;
use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// A statement that has come in: its command, what it has waited for, and the configuration that it
/// runs under if another has come meanwhile.
type CameIn<'t> = (What<'t>, Settled, Option<Rc<Epoch>>);

/// Whether rows of a statement may have to be numbered.
fn wants_numbers(epoch: &Epoch, class: &Class<'_>) -> bool {
    epoch.snapshot.shards.has_sequences() && class.inserts
}

/// Whether a statement may have to wait for numbers, or for a partition.
fn asks_first(epoch: &Epoch, class: &Class<'_>) -> bool {
    let map = &epoch.snapshot.shards;
    map.asks_first() && (map.has_automatic() || map.has_lookups() || class.inserts)
}

impl Session {
    /// Whether a statement may have to wait for something before it is decided.
    pub(crate) fn comes_in_first(&self, epoch: &Epoch, read: Text<'_>, what: What<'_>) -> bool {
        !self.core.gates.are_open()
            || asks_first(epoch, read.class)
            || self.wants_columns(epoch, read, what)
    }

    /// Takes the numbers that a statement's rows want, has its partitions made, asks and tells look-ups,
    /// and waits while a gate on its way is closed. `unsettled` gets the answer if there are no numbers, or no partition.
    pub(crate) async fn come_in<'t>(
        &mut self,
        (epoch, read): (&Epoch, Text<'_>),
        mut what: What<'t>,
        unsettled: &'t OnceCell<Complaint>,
    ) -> Result<ControlFlow<(), CameIn<'t>>, Ended> {
        let (mut settled, mut fresh) = (Settled::default(), None);
        if self.wants_columns(epoch, read, what)
            && let Some(complaint) = self.columns_for(epoch, read, what).await?
        {
            what = What::Refused(unsettled.get_or_init(|| complaint));
        }
        if wants_numbers(epoch, read.class) {
            match self.numbers_for(epoch, read, what).await? {
                Ok(taken) => settled.numbers = taken,
                Err(complaint) => what = What::Refused(unsettled.get_or_init(|| complaint)),
            }
        }
        if epoch.snapshot.shards.has_automatic() && !matches!(what, What::Refused(_)) {
            match self.partitions_for(epoch, read, (what, settled)).await? {
                Made::IsThere => {}
                Made::Now(now) => (settled.making, fresh) = (Making::Asked, now),
                Made::Told => return Ok(ControlFlow::Break(())),
                Made::Not(complaint) => what = What::Refused(unsettled.get_or_init(|| complaint)),
            }
        }
        loop {
            let now = fresh.as_deref().unwrap_or(epoch);
            if now.snapshot.shards.has_lookups()
                && !matches!(what, What::Refused(_))
                && let Some(complaint) = self.ask_lookups(now, read, (what, settled)).await?
            {
                what = What::Refused(unsettled.get_or_init(|| complaint));
            }
            if self.core.gates.are_open() {
                return Ok(ControlFlow::Continue((what, settled, fresh)));
            }
            match self.wait_at_gates(now, read, (what, settled)).await? {
                ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
                ControlFlow::Continue(None) => {
                    return Ok(ControlFlow::Continue((what, settled, fresh)));
                }
                // Another map may have other look-ups.
                ControlFlow::Continue(later) => fresh = later,
            }
        }
    }

    /// Has a statement wait while a gate on its way is closed; the configuration that it runs under
    /// then. A transaction that is open there does not wait: the gate's partition waits for it.
    async fn wait_at_gates(
        &mut self,
        epoch: &Epoch,
        read: Text<'_>,
        (what, settled): (What<'_>, Settled),
    ) -> Result<ControlFlow<(), Option<Rc<Epoch>>>, Ended> {
        let mut fresh: Option<Rc<Epoch>> = None;
        loop {
            let now = fresh.as_deref().unwrap_or(epoch);
            let plan = self.decide_with(now, read, what, settled);
            let is_in_transaction = self.goes_to_a_branch(&plan);
            let gates = self.core.gates.clone();
            let until = gates.in_the_way(&plan);
            let Some(until) = until.filter(|_| plan.answer.is_none() && !is_in_transaction) else {
                return Ok(ControlFlow::Continue(fresh));
            };
            let rt = self.core.rt.clone();
            if self
                .pause_while_wanted(gates.wait(&rt, until))
                .await?
                .is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            gates.open_those_over(rt.now());
            fresh = Some(self.core.epoch());
        }
    }
}
