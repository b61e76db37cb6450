//! Part of this proxy in a cluster of ProxySQLs: forms of its modules, and who has asked for them.

use super::form::{Form, Speech};
use crate::cluster::subjects::{At, SUBJECTS};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Sessions of ProxySQLs that are remembered.
const SESSIONS_MAX: usize = 256;

/// A form, and what it is the form of.
#[derive(Clone)]
struct Kept {
    /// Counts what was in force of the module.
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
pub(in crate::cluster) struct Proxysql {
    speech: RefCell<Option<Speech>>,
    forms: RefCell<[Forms; SUBJECTS.len()]>,
    /// Sessions in which a ProxySQL has asked for the version.
    sessions: RefCell<VecDeque<u32>>,
}

impl Proxysql {
    /// Knowledge of the ProxySQLs here.
    pub(in crate::cluster) fn speech(&self) -> Option<Speech> {
        self.speech.borrow().clone()
    }

    pub(super) fn learn(&self, speech: Speech) {
        *self.speech.borrow_mut() = Some(speech);
        // What was made with other names of variables is made anew.
        for forms in self.forms.borrow_mut().iter_mut() {
            forms.now = forms.now.take().filter(|kept| kept.came);
        }
    }

    /// A module is in force from now on, in the form in which it came, if it came from a ProxySQL.
    pub(in crate::cluster) fn loaded(&self, at: At, serial: u64, form: Option<Rc<Form>>) {
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

    pub(in crate::cluster) fn form(&self, at: At, serial: u64) -> Option<Rc<Form>> {
        let all = self.forms.borrow();
        let kept = all.get(at)?.now.as_ref()?;
        (kept.serial == serial).then(|| kept.form.clone())
    }

    pub(super) fn keep(&self, at: At, serial: u64, form: Form) {
        if let Some(forms) = self.forms.borrow_mut().get_mut(at) {
            let (form, came) = (Rc::new(form), false);
            forms.now = Some(Kept { serial, form, came });
        }
    }

    /// Checksum that the form of this module has replaced, if that was known.
    pub(in crate::cluster) fn replaced(&self, at: At) -> Option<u64> {
        self.forms.borrow().get(at)?.replaced
    }

    pub(super) fn is_one(&self, session: u32) -> bool {
        self.sessions.borrow().contains(&session)
    }

    pub(super) fn meets(&self, session: u32) {
        let mut sessions = self.sessions.borrow_mut();
        if !sessions.contains(&session) {
            sessions.push_back(session);
        }
        if sessions.len() > SESSIONS_MAX {
            sessions.pop_front();
        }
    }
}
