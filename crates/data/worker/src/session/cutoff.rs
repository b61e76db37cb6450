//! A server that becomes OFFLINE_HARD, or is removed: who works there is cut off at the LOAD.

use crate::session::Session;

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
