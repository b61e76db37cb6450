//! A55: the suites of the drivers over the model of a kqueue, since no FreeBSD runs where this is
//! built.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests; and other threads may sleep"
)]

macro_rules! on_every_driver {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        mod kqueue {
            $($(#[$doc])* #[test] fn $name() { super::super::common::run(rt::Driver::Kqueue, super::$name); })*
        }
    };
}
macro_rules! on_real_drivers {
    ($($name:ident;)*) => {
        mod kqueue { $(#[test] fn $name() { super::$name(rt::Driver::Kqueue); })* }
    };
}

#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/suites/sockets.rs"]
mod sockets;
#[path = "../../tests/suites/world.rs"]
mod world;
