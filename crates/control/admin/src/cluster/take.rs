//! Giving a module to another proxy, and taking one over: whole, with the checksum that was
//! promised, or not at all.

use super::decide::{Sum, Verdict};
use super::fleet::Reach;
use super::knowledge::{Arrived, up};
use super::peer::Peer;
use super::pieces::{built, head, pieces, taken_apart};
use super::proxysql::Form;
use super::subjects::{At, SUBJECTS, Subject};
use super::sums;
use crate::engine::SqlError;
use crate::grid::Grid;
use crate::layers;
use crate::parts::{Pieces, is_shared};
use crate::said::{Said, because};
use crate::shared::Shared;
use crate::tables::Module;
use crate::{access, force};
use config::{Help as _, Refusal, Snapshot};
use line::{Failed, Line, Room};
use rt::Instant;
use std::rc::Rc;

/// A module is coming from there.
pub(super) struct Pulling<'a>(&'a Peer);

impl<'a> Pulling<'a> {
    pub(super) fn begin(peer: &'a Peer, at: At, now: Instant) -> Self {
        peer.known.borrow_mut().pulling = Some((at, now));
        Self(peer)
    }
}

impl Drop for Pulling<'_> {
    fn drop(&mut self) {
        self.0.known.borrow_mut().pulling = None;
    }
}

impl Shared {
    /// `PROXYSQL CLUSTER_PULL name`: what is in force of a module, all at one moment.
    pub(crate) async fn give(&self, name: &str) -> Result<Grid, Said> {
        let at = SUBJECTS
            .iter()
            .position(|subject| subject.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| format!("'{name}' is nothing that proxies share"))?;
        self.settle_one(at).await?;
        let (module, snapshot) = (SUBJECTS[at].module, self.snapshot.borrow().clone());
        let sum = self.cluster.sum(at, &snapshot.variables);
        if sum.version == 0 {
            return Err(Said::Sql(format!(
                "{} is not shared: its admin-checksum variable is false",
                SUBJECTS[at].name
            )));
        }
        let helpers = self.aside.helpers();
        let pieces = self
            .aside
            .done(move || pieces(module, &snapshot, &|| helpers.pause()))
            .await;
        let mut grid = Grid::new(["table", "rows"]);
        grid.push(Some(b""));
        grid.push(Some(&head(sum)));
        for (table, text) in pieces.ok_or("a defect ended it; the log has it")? {
            grid.push(Some(table.as_bytes()));
            grid.push(Some(&text));
        }
        Ok(grid)
    }

    /// Takes a module over from another proxy. Refused, it is as it was before.
    /// `had`: the other's checksum before.
    pub(crate) async fn pull(
        &self,
        peer: &Peer,
        line: &mut Line,
        at: At,
        had: Option<u64>,
    ) -> Result<(), Failed> {
        let Some(subject) = SUBJECTS.get(at) else {
            return Ok(());
        };
        let _until_then = Pulling::begin(peer, at, self.rt.now());
        // What it takes is given back when it is in force: several may come at once, and wait for
        // each other in the end only.
        let mut room = Room::among(&self.cluster.coming);
        let rows = line
            .ask_in(
                &format!("PROXYSQL CLUSTER_PULL {}", subject.name),
                &mut room,
            )
            .await?;
        let (sum, pieces) =
            taken_apart(rows).ok_or_else(|| said("what it gives is no module".into()))?;
        match self.take_over(subject, at, (sum, had), pieces, peer).await {
            Ok(()) => Ok(()),
            Err(Said::Sql(why) | Said::Coded(_, _, why)) => Err(said(why)),
        }
    }

    pub(super) async fn take_over(
        &self,
        subject: &Subject,
        at: At,
        (theirs, had): (Sum, Option<u64>),
        pieces: Pieces,
        peer: &Peer,
    ) -> Result<(), Said> {
        let from = peer.name();
        let _alone = self.alone().await;
        self.settle_one(at).await?;
        let now = self.snapshot.borrow().clone();
        if peer.is_gone() || now.variables.admin_cluster_username.is_empty() {
            // An operator has said so while it came.
            return Ok(());
        }
        if self
            .cluster
            .verdict(at, (theirs, had), u64::MAX, &now.variables)
            != Verdict::Pull
        {
            // Somebody was faster: an operator here, or another proxy.
            return Ok(());
        }
        self.take_in(subject, at, theirs, pieces, &from).await
    }

    /// Takes in what has to have the checksum that was promised; see [`Self::take_in_as`].
    pub(super) async fn take_in(
        &self,
        subject: &Subject,
        at: At,
        theirs: Sum,
        pieces: Pieces,
        from: &str,
    ) -> Result<(), Said> {
        self.take_in_as(subject, at, theirs, pieces, from, None)
            .await
    }

    /// Builds, checks, writes into memory, puts into force and saves what came from elsewhere, as a
    /// LOAD would; nobody else changes what is in force meanwhile. What came in a ProxySQL's form
    /// was compared with its checksum before.
    pub(super) async fn take_in_as(
        &self,
        subject: &Subject,
        at: At,
        mut theirs: Sum,
        pieces: Pieces,
        from: &str,
        form: Option<Rc<Form>>,
    ) -> Result<(), Said> {
        let (module, now) = (subject.module, self.snapshot.borrow().clone());
        let helpers = self.aside.helpers();
        let work = move || -> Result<_, Vec<Refusal>> {
            let (next, notices) = built(module, &pieces, &now, &helpers)?;
            let checksum = sums::checksum(module, &next, &|| helpers.pause());
            Ok((next, notices, checksum))
        };
        let (next, notices, checksum) = self
            .aside
            .done(work)
            .await
            .ok_or("a defect ended it; the log has it")?
            .map_err(|refused| because(module.words(), &refused))?;
        if form.is_some() {
            theirs.checksum = checksum;
        }
        if checksum != theirs.checksum {
            let (came, said) = (sums::text(checksum), sums::text(theirs.checksum));
            return Err(Said::Sql(format!(
                "what came has the checksum {came} and not {said}"
            )));
        }
        if module == Module::AdminVariables {
            access::check_now(&next.variables)
                .map_err(|refused| because(module.words(), &refused))?;
        }
        let events = self.events_after(module, &next).await?;
        let waiting = next
            .variables
            .waiting_for_a_start(&self.snapshot.borrow().variables);
        for notice in notices
            .iter()
            .map(ToString::to_string)
            .chain(events.notice)
            .chain(waiting)
        {
            (self.hooks.log)(&format!("cluster: {}: {notice}", subject.name));
        }
        let share = match form.is_some() {
            // What a ProxySQL has loaded is for the whole fleet, if there is one.
            true => self.share_load(module, &next, Reach::All).await?,
            false => None,
        };
        self.keep(subject, &next)?;
        self.cluster.was_taken(at, self.rt.now(), from);
        let generation = next.generation;
        let arrived = Arrived { sum: theirs, form };
        let entered = force::enter(self, module, next, Some(arrived), events.ends).await;
        if share.is_some() {
            self.is_shared_now(share.as_ref());
        }
        if self.snapshot.borrow().generation != generation {
            // It was not even begun to tell the cores.
            return entered;
        }
        up(&self.cluster.tally.taken);
        let Sum { version, epoch, .. } = theirs;
        let words = format!(
            "cluster: {} was taken over from {from}, version {version} of epoch {epoch}",
            subject.name
        );
        (self.hooks.log)(&words);
        if (subject.saves)(&self.snapshot.borrow().variables)
            && let Err(SqlError(why)) = self.save_in_force(module)
        {
            (self.hooks.log)(&format!(
                "cluster: {} is in force and not saved: {why}",
                subject.name
            ));
        }
        if let Err(Said::Sql(late) | Said::Coded(_, _, late)) = entered {
            (self.hooks.log)(&format!("cluster: {}: {late}", subject.name));
        }
        Ok(())
    }

    /// To disk as it is in force, and nothing that an operator has only tried in memory.
    fn save_in_force(&self, module: Module) -> Result<(), SqlError> {
        let mark = self.cluster.mark(module);
        let mark = mark
            .as_ref()
            .map(|(name, version, epoch, checksum)| (*name, *version, *epoch, checksum.as_str()));
        layers::in_force_to_disk(
            &self.engine.borrow(),
            module,
            &self.snapshot.borrow(),
            is_shared,
            mark,
        )
    }

    /// In memory it is as it will be in force: whole, or as before.
    fn keep(&self, subject: &Subject, next: &Snapshot) -> Result<(), Said> {
        let kept = self
            .engine
            .borrow()
            .transaction(|conn| layers::keep(conn, subject.module, next, is_shared));
        Ok(kept?)
    }
}

/// Says that what another proxy gives cannot be taken.
fn said(words: String) -> Failed {
    Failed::Said { code: 0, words }
}
