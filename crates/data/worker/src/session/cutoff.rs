//! A server that becomes OFFLINE_HARD, or is removed: who works there is cut off at the LOAD.

use crate::core::Core;
use crate::session::Session;
use backend::Place;
use std::rc::Rc;

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

impl Session {
    /// Closes what is held on servers that are cut off; whether something of the session went with
    /// it. Warnings and found rows are not: who asks for them is told.
    pub(crate) fn leave_cut_off(&mut self) -> bool {
        let mut lost = false;
        while let Some((hostgroup, backend)) = self.held.take_cut_off() {
            let carries = backend.holds.carry_state();
            lost |= carries;
            self.loses_beside_course(carries.then_some(hostgroup));
            self.lose_memories(backend.holds);
            self.core.pools.release(backend);
        }
        lost
    }
}
