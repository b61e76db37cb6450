//! State of the thread of the web page.

use crate::busiest::Busiest;
use crate::desk::Desk;
use crate::pulse::Pulse;
use crate::slowness::Slowness;
use crate::visitors::Visitors;
use bridge::ToAdmin;
use config::{Refusal, Variables};
use events::lines::Log;
use std::cell::RefCell;
use std::net::SocketAddr;

/// State of the thread.
pub(crate) struct Work {
    pub(crate) desk: Desk,
    pub(crate) visitors: RefCell<Visitors>,
    pub(crate) slowness: RefCell<Slowness>,
    pub(crate) pulse: RefCell<Pulse>,
    pub(crate) busiest: RefCell<Busiest>,
    pub(crate) address: fn(&Variables) -> Result<Option<SocketAddr>, Refusal>,
    pub(crate) log: Log,
}

impl Work {
    pub(crate) fn new(
        admin: Box<dyn Fn(ToAdmin) -> bool + Send>,
        address: fn(&Variables) -> Result<Option<SocketAddr>, Refusal>,
        log: Log,
    ) -> Self {
        Self {
            desk: Desk::new(admin),
            visitors: RefCell::default(),
            slowness: RefCell::default(),
            pulse: RefCell::default(),
            busiest: RefCell::default(),
            address,
            log,
        }
    }
}
