//! A configuration, or a new sight of the servers, comes to the pools. Whoever works on a server that is cut
//! off hears so.

use crate::core::Core;
use crate::known::epoch::placed;
use backend::Place;
use config::Snapshot;
use std::rc::Rc;

impl Core {
    /// Works with who serves now, and ends what runs where nobody does any more.
    pub(crate) fn adopt(&self, snapshot: &Snapshot) {
        let placed = placed(snapshot, &self.observed.borrow());
        self.pools.adopt(snapshot, &placed);
        self.cut_off();
    }
}

impl Core {
    /// Tells the sessions whose statement runs, or whose connection is held, on a server that is
    /// cut off.
    pub(crate) fn cut_off(&self) {
        let is_cut = |place: &Rc<Place>| place.is_cut_off();
        for entry in self.roster.all() {
            let runs = entry.command.get() != "Sleep"
                && entry
                    .server
                    .borrow()
                    .as_ref()
                    .is_some_and(|(place, _)| is_cut(place));
            if runs {
                entry.cut.set(true);
            }
            if runs
                || entry
                    .holding
                    .borrow()
                    .iter()
                    .any(|held| is_cut(&held.place))
            {
                entry.bell.ring();
            }
        }
    }
}
