//! The schema that a client names when it comes. A server does not let in who names one that there
//! is not, and neither do we where a server says so at once.
//!
//! Each core remembers what is there, so that only the first who names a schema is waited for.

use crate::core::Core;
use crate::core::roster::Entry;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::known::schemas::{NAME_LEN_MAX, Schemas, is_about_schema, key};
use crate::session::through;
use crate::session::through::Said;
use backend::{BackendFailed, Idle, State};
use config::{Snapshot, User};
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// So long a client waits for a server that is to say whether there is its schema.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Hostgroups that are asked, besides the user's own, before somebody is sent away.
const OTHERS_MAX: usize = 8;

/// Whose turn it is to ask for a schema; who else names it waits for the answer.
struct Turn<'a>(&'a Schemas, Box<str>);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.asked.borrow_mut().remove(&self.1);
        self.0.answered.notify_all();
    }
}

impl Core {
    /// Whether a client may come in with the schema that it names: one that there is, or of which
    /// nobody can say at once whether there is.
    ///
    /// # Errors
    /// What the client is to be told.
    pub(crate) async fn has_schema(
        &self,
        epoch: &Epoch,
        entry: &Entry,
        said: &Said<'_>,
        named: Option<&str>,
    ) -> Result<(), Complaint> {
        let Some(named) = named.filter(|named| named.len() <= NAME_LEN_MAX) else {
            return Ok(());
        };
        let own = said.user.default_hostgroup;
        let key = key(own, &said.user.username, named);
        if epoch.schemas.is_known(&key) || is_sent_elsewhere(&epoch.snapshot, said.user, named) {
            return Ok(());
        }
        let until = self.rt.now() + AT_ONCE;
        let Some(_turn) = self.turn_to_ask(epoch, own, &key, until).await else {
            return Ok(());
        };
        let forgotten = epoch.schemas.forgotten.get();
        let mut asking = Asking {
            core: self,
            epoch,
            entry,
            said,
            until,
        };
        let Some(Err(refused)) = asking.ask(own, named).await else {
            // Whatever else a server has against it, or its user, is told when he asks for something.
            if !epoch.schemas.is_left_alone(own, self.rt.now()) {
                epoch.schemas.learn(&key, forgotten);
            }
            return Ok(());
        };
        // Statements may go where it is all the same.
        let others = others(&epoch.snapshot, said.user);
        let mut is_nowhere = others.len() <= OTHERS_MAX;
        for other in others.into_iter().take(OTHERS_MAX) {
            asking.until = self.rt.now() + AT_ONCE;
            is_nowhere = is_nowhere
                && self.pools.takes(other, 0)
                && matches!(asking.ask(other, named).await, Some(Err(_)));
        }
        if is_nowhere {
            return Err(refused);
        }
        epoch.schemas.learn(&key, forgotten);
        Ok(())
    }

    /// `None`: there is no need, or nobody would answer.
    async fn turn_to_ask<'e>(
        &self,
        epoch: &'e Epoch,
        hostgroup: u32,
        key: &str,
        until: Instant,
    ) -> Option<Turn<'e>> {
        let schemas = &epoch.schemas;
        loop {
            let now = self.rt.now();
            if schemas.is_known(key)
                || schemas.is_left_alone(hostgroup, now)
                || !self.pools.takes(hostgroup, 0)
                || now >= until
            {
                return None;
            }
            if schemas.asked.borrow_mut().insert(key.into()) {
                return Some(Turn(schemas, key.into()));
            }
            let _late = self.rt.timeout(until - now, schemas.answered.wait()).await;
        }
    }
}

struct Asking<'a> {
    core: &'a Core,
    epoch: &'a Epoch,
    entry: &'a Entry,
    said: &'a Said<'a>,
    until: Instant,
}

impl Asking<'_> {
    /// Whether a schema is there, or why not; `None` if no server says so.
    async fn ask(&self, hostgroup: u32, named: &str) -> Option<Result<(), Complaint>> {
        let rt = &self.core.rt;
        let left = self.until - rt.now();
        match rt
            .timeout(left, Box::pin(self.enter(hostgroup, named)))
            .await
        {
            Ok(Ok(())) => Some(Ok(())),
            Ok(Err(failed @ BackendFailed::Sync { code, .. })) if is_about_schema(code) => {
                Some(Err(Complaint::of(&failed)))
            }
            // It has something against the user.
            Ok(Err(BackendFailed::Sync { .. } | BackendFailed::Refused { .. })) => None,
            Ok(Err(_)) | Err(_) => {
                let mut left_alone = self.epoch.schemas.left_alone.borrow_mut();
                left_alone.insert(hostgroup, rt.now());
                None
            }
        }
    }

    async fn enter(&self, hostgroup: u32, named: &str) -> Result<(), BackendFailed> {
        let state = State::new("", self.said.collation);
        let mut want = through::want(self.epoch, self.entry, self.said, &state);
        (want.hostgroup, want.like) = (hostgroup, None);
        let mut backend = self.core.pools.acquire(&want).await?;
        let entered = backend.enter(&Rc::from(named)).await;
        if !matches!(entered, Ok(()) | Err(BackendFailed::Sync { .. })) {
            backend.idle = Idle::Doubtful;
        }
        self.core.pools.release(backend);
        entered
    }
}

/// Whether the rules send the statements of this schema away from the user's own hostgroup.
fn is_sent_elsewhere(snapshot: &Snapshot, user: &User, schema: &str) -> bool {
    let own = user.default_hostgroup;
    let chain = snapshot.rules.chain();
    let flags = chain.iter().flat_map(|rule| {
        let drawn = rule.flag_outs.iter().flat_map(|flags| flags.iter());
        rule.flag_out
            .into_iter()
            .chain(drawn.map(|(flag, _)| *flag))
    });
    let fast = snapshot.rules.fast();
    let leads_away = |flag| {
        fast.hostgroup(&user.username, schema, flag)
            .is_some_and(|to| to != own)
    };
    chain.iter().any(|rule| {
        rule.schemaname.as_deref() == Some(schema)
            && rule.destination_hostgroup.is_some_and(|to| to != own)
    }) || !fast.is_empty() && (leads_away(0) || flags.into_iter().any(leads_away))
}

/// The hostgroups besides his own to which rules and the split may send a user's statements.
fn others(snapshot: &Snapshot, user: &User) -> Vec<u32> {
    let mut others = Vec::new();
    let rules = snapshot.rules.chain().iter().filter(|rule| {
        rule.username
            .as_deref()
            .is_none_or(|name| *name == *user.username)
    });
    let reads = plan::split_of(snapshot, user).map(|split| split.read_hostgroup);
    let sent = rules.filter_map(|rule| rule.destination_hostgroup);
    for other in sent.chain(reads) {
        if other != user.default_hostgroup && !others.contains(&other) {
            others.push(other);
        }
    }
    others
}
