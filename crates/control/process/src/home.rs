//! How a process came to its data directory, and how it lets the next one have it.

use crate::end::Event;
use crate::folder::Owned;
use crate::handover::{self, Heritage, Leaves};
use bridge::{Earlier, Moved, Nobody, ToAdmin};
use rt::Driver;
use rt::permits::Registry;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time that the admin's thread has to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The data directory, and how it came to be this process's.
pub enum Home {
    /// Nobody had it.
    Own(Owned),
    /// Another process has left it, with its listeners.
    Left(Heritage),
}

impl Home {
    /// The driver that is wished, or the one that the listeners were opened for, which are used from
    /// now on.
    ///
    /// # Errors
    /// Another one is wished.
    pub fn listen(&mut self, wished: Driver) -> Result<Driver, String> {
        let Self::Left(left) = self else {
            return Ok(wished);
        };
        if wished != Driver::Auto && wished != left.driver {
            let words = format!(
                "--io-driver {wished} cannot take over from a process with {}: leave it out, or start anew",
                left.driver
            );
            left.refuse(&words);
            return Err(words);
        }
        left.listen();
        Ok(left.driver)
    }

    /// Limits over all cores, and over both processes where another leaves.
    #[must_use]
    pub fn permits(&self) -> Registry {
        match self {
            Self::Own(_) => Registry::new(),
            Self::Left(left) => left.permits(),
        }
    }

    /// Totals of the process before.
    #[must_use]
    pub fn earlier(&self) -> Earlier {
        match self {
            Self::Own(_) => Arc::new(Nobody),
            Self::Left(left) => left.earlier(),
        }
    }

    /// Whether another process has left it.
    #[must_use]
    pub const fn is_left(&self) -> bool {
        matches!(self, Self::Left(_))
    }

    /// Clients are served: who served them before is told so, and its sessions come.
    ///
    /// # Errors
    /// As [`Heritage::serves`].
    pub fn settle(self, settle: impl Fn(Moved) + Send + 'static) -> Result<Owned, String> {
        match self {
            Self::Own(owned) => Ok(owned),
            Self::Left(left) => left.serves(settle),
        }
    }
}

/// Writes a letter; whether there was room for it.
pub type Ask = Box<dyn Fn(ToAdmin) -> bool + Send>;

/// The way to the admin's thread, for all who have letters for it.
#[derive(Clone)]
pub struct Desk(Arc<Mutex<Ask>>);

impl Desk {
    /// Over this way.
    #[must_use]
    pub fn new(ask: Ask) -> Self {
        Self(Arc::new(Mutex::new(ask)))
    }

    /// For one of them.
    #[must_use]
    pub fn ask(&self) -> Ask {
        let to = self.0.clone();
        Box::new(move |letter| to.lock().is_ok_and(|ask| ask(letter)))
    }

    /// Lets another process take over. Without a socket for it nobody can, which is noted.
    pub fn offer(
        &self,
        (datadir, lock): (&Path, &Owned),
        driver: Driver,
        (events, permits): (&mpsc::Sender<Event>, Registry),
        note: impl Fn(&str) + Clone + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        let (ask, events) = (self.ask(), events.clone());
        let begins = move |begins| {
            let (told, hears) = mpsc::channel();
            let reply = Box::new(move |()| told.send(()).unwrap_or_default());
            let heard = ask(ToAdmin::HandOver { begins, reply });
            match heard && hears.recv_timeout(ANSWERS_WITHIN).is_ok() {
                true => Ok(()),
                false => Err("the admin port has too much to do".to_owned()),
            }
        };
        let ask = Mutex::new(self.ask());
        let count = move |of| {
            let (told, hears) = mpsc::channel();
            let reply = Box::new(move |totals| told.send(totals).unwrap_or_default());
            let heard = ask
                .lock()
                .is_ok_and(|ask| ask(ToAdmin::Count { of, reply }));
            heard
                .then(|| hears.recv_timeout(ANSWERS_WITHIN).ok())
                .flatten()
        };
        let leaves = Leaves {
            count: Arc::new(count),
            begins: Box::new(begins),
            left: Box::new(move |successor| drop(events.send(Event::Left(successor)))),
            note: Box::new(note.clone()),
            permits,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        handover::offer(datadir, lock, driver, leaves)
            .inspect_err(|error| note(&format!("no process can take over from this one: {error}")))
            .ok()
    }
}
