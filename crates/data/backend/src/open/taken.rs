//! Room for a connection that is about to be opened.

use crate::connection::place::Place;
use crate::servers::flight::Slot;
use std::rc::Rc;

/// A permit of a server, given back when dropped.
/// As long as there is one, a connection is being opened there.
pub(crate) struct Taken(Option<Rc<Place>>, Option<Slot>);

impl Taken {
    /// One of a server of which no more than `max` are taken yet.
    pub(crate) fn of(place: &Rc<Place>, max: u32) -> Option<Self> {
        place.try_take(max).then(|| {
            place.opening.set(place.opening.get() + 1);
            Self(Some(place.clone()), None)
        })
    }

    /// The slot of the statement for which it was taken.
    pub(crate) fn take_slot(&mut self) -> Option<Slot> {
        self.1.take()
    }

    pub(crate) fn place(&self) -> &Rc<Place> {
        self.0
            .as_ref()
            .expect("only keep() takes it, and consumes self")
    }

    /// Leaves the permit to a connection, to which it belongs from now on.
    pub(crate) fn keep(mut self) {
        if let Some(place) = self.0.take() {
            place.opening.set(place.opening.get().saturating_sub(1));
        }
    }

    /// Keeps the slot of the statement that it is for.
    pub(crate) fn has_slot(&mut self, slot: Option<Slot>) {
        self.1 = slot;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.opening.set(place.opening.get().saturating_sub(1));
            place.room.give();
        }
    }
}
