//! ProxySQLs among the other proxies: the same decisions, in ProxySQL's words.
//!
//! | to see | read |
//! |---|---|
//! | what ProxySQLs ask each other | `facts.rs` |
//! | how they hash it | `hash.rs` |
//! | a module as they have it | `form.rs` |
//! | asking them | `follow.rs` |
//! | answering them | `answer.rs` |

mod answer;
mod facts;
mod follow;
mod form;
mod hash;

use super::decide::Sum;
use super::{At, Cluster, Own, SUBJECTS};
use crate::said::Said;
use crate::shared::Shared;
use config::{Help as _, Refusal, Variables};
use facts::Dialect;
pub(super) use form::{Form, Speech};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

pub(super) use hash::text;

/// Sessions of ProxySQLs that are remembered.
const SESSIONS_MAX: usize = 256;

/// A form, and what it is the form of.
#[derive(Clone)]
struct Kept {
    /// See [`Own::serial`].
    serial: u64,
    form: Rc<Form>,
    /// Whether it came from a ProxySQL, and was not made here.
    came: bool,
}

/// Forms of a module.
#[derive(Default)]
struct Forms {
    now: Option<Kept>,
    /// Checksum of the form before.
    replaced: Option<u64>,
}

/// Part of this proxy in a cluster of ProxySQLs.
#[derive(Default)]
pub(super) struct Proxysql {
    speech: RefCell<Option<Speech>>,
    forms: RefCell<[Forms; SUBJECTS.len()]>,
    /// Sessions in which a ProxySQL has asked for the version.
    sessions: RefCell<VecDeque<u32>>,
}

impl Proxysql {
    /// Knowledge of the ProxySQLs here.
    pub(super) fn speech(&self) -> Option<Speech> {
        self.speech.borrow().clone()
    }

    fn learn(&self, speech: Speech) {
        *self.speech.borrow_mut() = Some(speech);
        // What was made with other names of variables is made anew.
        for forms in self.forms.borrow_mut().iter_mut() {
            forms.now = forms.now.take().filter(|kept| kept.came);
        }
    }

    /// A module is in force from now on, in the form in which it came, if it came from a ProxySQL.
    pub(super) fn loaded(&self, at: At, serial: u64, form: Option<Rc<Form>>) {
        let mut all = self.forms.borrow_mut();
        let Some(forms) = all.get_mut(at) else {
            return;
        };
        forms.replaced = forms.now.take().map(|kept| kept.form.checksum);
        forms.now = form.map(|form| Kept {
            serial,
            form,
            came: true,
        });
    }

    fn form(&self, at: At, serial: u64) -> Option<Rc<Form>> {
        let all = self.forms.borrow();
        let kept = all.get(at)?.now.as_ref()?;
        (kept.serial == serial).then(|| kept.form.clone())
    }

    fn keep(&self, at: At, serial: u64, form: Form) {
        if let Some(forms) = self.forms.borrow_mut().get_mut(at) {
            let (form, came) = (Rc::new(form), false);
            forms.now = Some(Kept { serial, form, came });
        }
    }

    /// Checksum that the form of this module has replaced, if that was known.
    pub(super) fn replaced(&self, at: At) -> Option<u64> {
        self.forms.borrow().get(at)?.replaced
    }

    fn is_one(&self, session: u32) -> bool {
        self.sessions.borrow().contains(&session)
    }

    fn meets(&self, session: u32) {
        let mut sessions = self.sessions.borrow_mut();
        if !sessions.contains(&session) {
            sessions.push_back(session);
        }
        if sessions.len() > SESSIONS_MAX {
            sessions.pop_front();
        }
    }
}

/// Refuses a version of ProxySQL that nobody here can speak as.
pub(crate) fn check_version(variables: &Variables) -> Result<(), Refusal> {
    let version = &*variables.admin_cluster_proxysql_version;
    if version.is_empty() || Dialect::of(version).is_some() {
        return Ok(());
    }
    Err(Refusal {
        table: "global_variables",
        row: String::new(),
        column: "admin-cluster_proxysql_version",
        words: format!(
            "is '{version}': it must be what SELECT @@version says on a ProxySQL from 2.5 to 3.0, or empty"
        ),
    })
}

impl Cluster {
    fn serial(&self, at: At) -> Option<u64> {
        let own = |own: &Own| own.serial;
        self.own.borrow().get(at).map(own)
    }

    /// The form of a module that is in force, if it was made.
    pub(super) fn form(&self, at: At) -> Option<Rc<Form>> {
        self.form_of(at, self.serial(at)?)
    }

    /// The form of a module under this serial, if it was made.
    pub(super) fn form_of(&self, at: At, serial: u64) -> Option<Rc<Form>> {
        self.proxysql.form(at, serial)
    }

    /// Version, epoch and checksum that ProxySQLs are told of a module: nothing where they do not
    /// share it, or its form was not made yet ([`Shared::settle_forms`]).
    pub(super) fn sum_for_proxysql(&self, at: At, variables: &Variables) -> Sum {
        let sum = self.sum(at, variables);
        match self.form(at).filter(|_| sum.version > 0) {
            Some(form) => Sum {
                checksum: form.checksum,
                ..sum
            },
            None => Sum::default(),
        }
    }
}

impl Shared {
    /// Makes the forms that are missing, of what is in force.
    async fn settle_forms(&self, speech: &Speech) -> Result<(), Said> {
        self.settle().await?;
        for at in 0..SUBJECTS.len() {
            self.settle_form(at, speech).await?;
        }
        Ok(())
    }

    async fn settle_form(&self, at: At, speech: &Speech) -> Result<(), Said> {
        let Some(module) = SUBJECTS.get(at).map(|subject| subject.module) else {
            return Ok(());
        };
        let is_untold = module.prefix().is_some() && speech.variables.is_empty();
        if speech.dialect.asked(module).is_empty() || is_untold || self.cluster.form(at).is_some() {
            return Ok(());
        }
        let (serial, snapshot) = (self.cluster.serial(at), self.snapshot.borrow().clone());
        let (helpers, dialect) = (self.aside.helpers(), speech.dialect);
        let variables = (*speech.variables).clone();
        let work = move || {
            let results = form::results(module, &snapshot, dialect, &variables, &|| {
                helpers.pause();
            });
            Form::of(module, results)
        };
        let form = self.aside.done(work).await;
        let form = form.ok_or("a defect ended it; the log has it")?;
        // Something else may be in force by now, or the names of variables be others.
        let is_so_still = self.cluster.serial(at) == serial
            && self
                .cluster
                .proxysql
                .speech()
                .is_none_or(|now| now.version == speech.version);
        if let (Some(serial), true) = (serial, is_so_still && self.cluster.form(at).is_none()) {
            self.cluster.proxysql.keep(at, serial, form);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
