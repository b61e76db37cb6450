//! The process as a whole: its folder and certificate, who begins it again after a crash, who
//! notices that a core hangs, and what is told of all that.
//!
//! docs/features/process.md
#![forbid(unsafe_code)]

mod asked;
mod behind;
mod certificate;
mod counted;
mod crash;
mod end;
mod folder;
mod handover;
mod home;
mod notify;
mod secrets;
mod supervisor;
mod thread;
mod watchdog;

pub use asked::ask_health;
pub use behind::put_behind;
pub use certificate::Pair;
pub use crash::Crashes;
pub use end::{End, Event};
pub use folder::{Owned, remove_pidfile, take};
pub use handover::{Heritage, Successor, look_for, take_over};
pub use home::{Ask, Desk, Home};
pub use notify::Notify;
pub use secrets::Secrets;
pub use supervisor::{Begun, Supervisor, run_on_failure};
pub use thread::{Ready, begin_thread};
pub use watchdog::{Cores, Watchdog};
