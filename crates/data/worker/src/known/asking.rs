//! Users whose sessions ask for what only the connection knows that a statement ran on. Their
//! statements keep such a connection for longer than others'.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Of more users nobody notes it.
const ASKING_MAX: usize = 4096;

/// Those who have asked for one such thing since the proxy was started.
#[derive(Default)]
pub(crate) struct Asking(RefCell<BTreeSet<Rc<str>>>);

impl Asking {
    /// A session of this user asks, and so may others. Whether that is news.
    pub(crate) fn hear(&self, user: &Rc<str>) -> bool {
        let mut asking = self.0.borrow_mut();
        asking.len() < ASKING_MAX && !asking.contains(user) && asking.insert(user.clone())
    }

    pub(crate) fn has(&self, user: &str) -> bool {
        self.0.borrow().contains(user)
    }
}
