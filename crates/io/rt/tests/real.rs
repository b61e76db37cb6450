//! The suite of the real world on the drivers of this system.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests; and other threads may sleep"
)]

macro_rules! on_real_drivers {
    ($($name:ident;)*) => {
        #[cfg(target_os = "linux")]
        mod uring { $(#[test] fn $name() { super::$name(rt::Driver::Uring); })* }
        mod readiness { $(#[test] fn $name() { super::$name(rt::Driver::READINESS); })* }
    };
}

mod common;
#[path = "suites/world.rs"]
mod world;
