//! A server that becomes OFFLINE_HARD, or is removed: the session leaves what it holds there.

use crate::session::Session;
use crate::session::course::Unfit;

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

    /// Something of the session is lost with the connection of this hostgroup: if it is not the
    /// transaction, that cannot be replayed alone.
    fn loses_beside_course(&mut self, hostgroup: Option<u32>) {
        if let Some(course) = &mut self.course
            && course.is_open
            && hostgroup.is_some_and(|of| of != course.hostgroup)
        {
            course.spoil(Unfit::Statement);
        }
    }
}
