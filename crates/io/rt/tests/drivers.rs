//! The suite of sockets and tasks on the drivers of this system, and in the simulator.
#![allow(clippy::unwrap_used, reason = "tests")]

use rt::Rt;
use std::future::Future;
use std::time::Duration;

macro_rules! on_every_driver {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        #[cfg(target_os = "linux")]
        mod uring { $($(#[$doc])* #[test] fn $name() { crate::common::run(rt::Driver::Uring, super::$name); })* }
        mod readiness { $($(#[$doc])* #[test] fn $name() { crate::common::run(rt::Driver::READINESS, super::$name); })* }
        mod sim { $($(#[$doc])* #[test] fn $name() { crate::run_sim(super::$name); })* }
    };
}

mod common;
#[path = "suites/sockets.rs"]
mod sockets;

fn run_sim<F: Future<Output = ()>>(main: impl FnOnce(Rt) -> F) {
    rt::sim::run(1, rt::sim::Faults::default(), main);
}

#[test]
fn random_lives_leave_nothing_behind_in_a_rough_world_either() {
    for seed in 0..40 {
        let faults = rt::sim::Faults {
            latency_min: Duration::from_micros(20),
            latency_max: Duration::from_millis(2),
            split: 0.2,
            partial: 0.2,
            stall: 0.02,
            stall_max: Duration::from_millis(100),
            reset: 0.01,
            refuse: 0.02,
            lose_connect: 0.01,
            shuffle: true,
            slow: Duration::ZERO,
        };
        rt::sim::run(seed, faults, sockets::random_lives_leave_nothing_behind);
    }
}
