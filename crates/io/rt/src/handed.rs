//! A connection between two cores: it belongs to none, and any may adopt it.

use crate::core::Core;
use crate::{Rt, Socket};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// A connection that no core has. It may cross threads, to cores with the same driver. Dropped, it is closed.
pub struct Handed(pub(crate) Kind);

pub(crate) enum Kind {
    Fd(OwnedFd),
    /// The place of its end in the simulated world.
    Sim(u32),
}

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Fd(fd) => write!(f, "Handed({fd:?})"),
            Kind::Sim(place) => write!(f, "Handed(sim {place})"),
        }
    }
}

impl Rt {
    /// The connection is this core's from now on.
    ///
    /// # Errors
    /// The driver cannot take it (no memory, too many watched), or it comes from another driver.
    pub fn adopt(&self, handed: Handed) -> io::Result<Socket> {
        let core: &Rc<Core> = &self.0;
        core.io.adopt(core, handed)
    }
}
