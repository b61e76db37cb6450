//! Other cores are asked for a connection.

use crate::connection::backend::Backend;
use crate::connection::place::Place;
use crate::cores::neighbours::LOOK_AGAIN;
use crate::cores::word::{Wanted, Why, Word};
use crate::pool::pools::Pools;
use crate::session::key::OF_CLIENT;
use crate::session::want::Want;
use rt::Instant;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// So long who could open a connection waits for the answers of the others.
const ANSWER: Duration = Duration::from_millis(5);

impl Pools {
    /// Asks all others. Nobody waits for the answers: what comes joins the idle connections here,
    /// and the line is called.
    fn ask_for(&self, want: &Want<'_>, why: Why) {
        if !want.new_connection {
            self.ask(want, None, 0, why);
        }
    }

    /// Asks all others for one that they do not need, in the same way.
    pub(crate) fn ask_to_spare(&self, want: &Want<'_>) {
        self.ask(want, None, 0, Why::Copies);
    }

    /// Whether some other core may have a connection to the server, for which room was just taken.
    pub(crate) fn others_have(&self, place: &Place) -> bool {
        self.taken_elsewhere(place) > 1 && !self.neighbours.others.borrow().is_empty()
    }

    /// Whether some other core may have a connection to the server.
    pub(crate) fn others_have_one_of(&self, place: &Place) -> bool {
        self.taken_elsewhere(place) > 0 && !self.neighbours.others.borrow().is_empty()
    }

    /// Connections to the server that are none of this core's, be it that they are being opened.
    fn taken_elsewhere(&self, place: &Place) -> u64 {
        let own = place.numbers.used.get() + place.idle.borrow().len() as u64;
        u64::from(place.taken()).saturating_sub(own)
    }

    /// Asks all others for a connection to this server, and waits a moment for what comes.
    pub(crate) async fn borrow(&self, place: &Rc<Place>, want: &Want<'_>) -> Option<Box<Backend>> {
        let asking = self.neighbours.begin_asking();
        let asked = &asking.asked;
        let at = (place.host().clone(), place.server().port);
        asked
            .unanswered
            .set(self.ask(want, Some(at), asked.number, Why::Spare));
        let until = self.rt.now() + ANSWER;
        while asked.unanswered.get() > 0 && self.rt.now() < until {
            let _late = self
                .rt
                .timeout(until - self.rt.now(), asked.bell.wait())
                .await;
            if let Some(backend) = self.take_from(place, want) {
                return Some(backend);
            }
        }
        None
    }

    /// How many were asked.
    fn ask(&self, want: &Want<'_>, at: Option<(Arc<str>, u16)>, number: u64, why: Why) -> usize {
        let speak = self.neighbours.speak.borrow();
        let Some(speak) = speak.as_ref() else {
            return 0;
        };
        let now = self.rt.now();
        if !self
            .group(want.hostgroup)
            .places
            .borrow()
            .iter()
            .any(|place| place.serves(now))
        {
            // What would be lent could not be used here.
            return 0;
        }
        let wanted = Wanted {
            hostgroup: want.hostgroup,
            at,
            user: want.user.into(),
            caps: want.caps & OF_CLIENT,
            number,
            why,
        };
        let others = self.neighbours.others.borrow();
        others
            .iter()
            .filter(|core| speak(**core, Word::Wanted(wanted.clone())).is_ok())
            .count()
    }

    /// Asks the other cores, unless that was a moment ago.
    pub(crate) fn ask_now_and_then(&self, want: &Want<'_>, why: Why, asked: &mut Option<Instant>) {
        let now = self.rt.now();
        if asked.is_none_or(|asked| now - asked >= LOOK_AGAIN) {
            *asked = Some(now);
            self.ask_for(want, why);
        }
    }
}
