//! Names whose addresses were asked for lately on a core.

use crate::instant::Instant;
use crate::local::Notify;
use crate::sys;
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::Duration;

/// For so long an answer is used again.
pub(crate) const FRESH: Duration = Duration::from_secs(5);

/// So many names are remembered.
pub(crate) const NAMES_MAX: usize = 256;

type Lookup = fn(&str) -> io::Result<Vec<IpAddr>>;

/// Names with what the resolver said of them lately.
pub(crate) struct Names {
    pub(crate) known: RefCell<Vec<Rc<Name>>>,
    pub(crate) lookup: Cell<Lookup>,
    pub(crate) fresh: Cell<Duration>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            known: RefCell::default(),
            lookup: Cell::new(ask_system),
            fresh: Cell::new(FRESH),
        }
    }
}

/// A name, with what the resolver said of it lately.
pub(crate) struct Name {
    pub(crate) host: String,
    pub(crate) ips: RefCell<Vec<IpAddr>>,
    /// When they were learnt, if they were.
    pub(crate) learnt: Cell<Option<Instant>>,
    /// Since when the resolver says that there is no such name.
    pub(crate) gone: Cell<Option<Instant>>,
    /// Error that the last lookup ended with instead of an answer.
    pub(crate) failed: RefCell<Option<(io::ErrorKind, String)>>,
    /// A lookup runs.
    pub(crate) looking: Cell<bool>,
    pub(crate) done: Notify,
}

impl Name {
    pub(crate) fn within(&self, age: Duration, now: Instant) -> Option<Vec<IpAddr>> {
        self.learnt
            .get()
            .filter(|learnt| now < *learnt + age)
            .map(|_| self.ips.borrow().clone())
    }

    pub(crate) fn learn(&self, ips: Vec<IpAddr>, now: Instant) {
        self.ips.replace(ips);
        self.learnt.set(Some(now));
        self.gone.set(None);
        self.failed.replace(None);
    }

    pub(crate) fn fail(&self, error: &io::Error, now: Instant, soon: Duration) {
        if error.kind() == io::ErrorKind::NotFound {
            let since = self.gone.get().unwrap_or(now);
            self.gone.set(Some(since));
            if now - since >= soon {
                self.learnt.set(None);
            }
        }
        self.failed.replace(Some((error.kind(), error.to_string())));
    }

    pub(crate) fn error(&self) -> io::Error {
        match &*self.failed.borrow() {
            Some((kind, words)) => io::Error::new(*kind, words.clone()),
            None => io::Error::other("the resolver did not answer"),
        }
    }
}

impl Names {
    pub(crate) fn of(&self, host: &str) -> io::Result<Rc<Name>> {
        let mut known = self.known.borrow_mut();
        if let Some(name) = known.iter().find(|name| name.host == host) {
            return Ok(name.clone());
        }
        if known.len() >= NAMES_MAX {
            let idle = known.iter().position(|name| !name.looking.get());
            known.remove(
                idle.ok_or_else(|| io::Error::other("too many names are being looked up"))?,
            );
        }
        let name = Rc::new(Name {
            host: host.to_owned(),
            ips: RefCell::default(),
            learnt: Cell::new(None),
            gone: Cell::new(None),
            failed: RefCell::new(None),
            looking: Cell::new(false),
            done: Notify::new(),
        });
        known.push(name.clone());
        Ok(name)
    }
}

/// Asks the system's resolver, and waits for it.
pub(crate) fn ask_system(name: &str) -> io::Result<Vec<IpAddr>> {
    // Any port: without one, the standard library refuses to ask.
    match (name, 1).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| address.ip()).collect()),
        Err(error) if sys::says_no_such_host(&error) => {
            Err(io::Error::new(io::ErrorKind::NotFound, error))
        }
        Err(error) => Err(error),
    }
}
