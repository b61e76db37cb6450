//! Scripts in the way of one session.

use crate::core::guests::{At, Owner};
use crate::scripts::collected::Collected;
use crate::scripts::door::Early;
use crate::scripts::home::Runs;
use crate::scripts::servers::Counted;
use config::Script;
use plan::Routed;
use std::rc::Rc;
use std::sync::Arc;

/// Scripts in the way of one client.
pub(crate) struct Chain {
    pub(crate) all: Vec<Rc<One>>,
    /// Script that reads answers before the client does.
    pub(crate) collects: Option<Collected>,
    /// Where the statement goes that runs now, if a script says so.
    pub(crate) route: Routed,
    /// The server that it goes to, if a script has named one.
    pub(crate) named: Option<Rc<At>>,
    /// The session counts as one on a server.
    pub(crate) counted: Option<Counted>,
    /// Whose session it is, from its first command on.
    pub(crate) owner: Option<Owner>,
    /// Scripts that have seen the client before it was greeted, until its first command.
    pub(crate) early: Option<Box<Early>>,
    /// Whether it is in the way of an operator at the console.
    pub(crate) is_at_console: bool,
    /// Attributes that the client has sent along with its COM_QUERY. Scripts do not see them.
    pub(crate) attributes: Vec<u8>,
}

impl Chain {
    /// Without scripts yet.
    pub(crate) fn new(early: Option<Box<Early>>, is_at_console: bool) -> Self {
        Self {
            all: Vec::new(),
            collects: None,
            route: Routed::default(),
            named: None,
            counted: None,
            owner: None,
            early,
            is_at_console,
            attributes: Vec::new(),
        }
    }

    /// Whether the statement that runs now is the client's own, on its own way, and nobody waits for its answer.
    pub(crate) fn leaves_alone(&self) -> bool {
        self.collects.is_none()
            && self.named.is_none()
            && self.route == Routed::default()
            && !self.is_at_console
    }
}

/// A script of a chain. None where its main chunk has failed.
pub(crate) struct One {
    pub(crate) script: Arc<Script>,
    pub(crate) runs: Option<Rc<Runs>>,
}
