//! Flights for the cache: who fetches a key, over all cores. One core keeps count for each key, and is asked
//! by message.
//!
//! Sessions of a core first look among its own flights; the first of them asks the core at which the key is
//! at home. So a statement is sent once, however many cores there are, and its cost is one message and its
//! answer, where a rule says `cache_timeout` and the answer is not kept yet.

use crate::core::Core;
use bridge::{Counter, Fetching};
use cache::Landing;
use rt::mailbox;
use std::rc::Rc;

/// This session's flight. It lands when this is dropped, and whoever waits for it hears so.
pub(crate) struct Flying {
    pub(crate) _here: Landing,
    pub(crate) _at_home: Option<bridge::Flight>,
}

impl Core {
    /// Fetches it whoever else does. Sessions of this core may wait for it.
    pub(crate) fn fly_alone(&self, key: &[u8]) -> Flying {
        Flying {
            _here: self.flights.begin(key),
            _at_home: None,
        }
    }

    /// Another core asks whether somebody fetches this.
    pub(crate) fn fetching(self: &Rc<Self>, key: &[u8], reply: bridge::Reply<Fetching>) {
        if let Some(flight) = self.flights.find(key) {
            self.tally.up(Counter::QueryCacheWaited);
            self.rt.spawn(async move {
                flight.ended().await;
                reply(Fetching::Over);
            });
            return;
        }
        let here = self.flights.begin(key);
        let (flies, landed) = mailbox::channel::<()>(1);
        self.rt.spawn(async move {
            // Nothing is ever sent: it ends when the other side is dropped, wherever that is.
            let _dropped = landed.recv().await;
            drop(here);
        });
        reply(Fetching::Yours(Box::new(flies)));
    }
}
