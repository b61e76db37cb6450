//! How a thread becomes a core, and which driver it gets.

use crate::bell::Bell;
use crate::chunk::Pool;
use crate::core::{Core, Rt};
use crate::driver::{Driver, Options};
use crate::executor::Executor;
use crate::hub::{Clock, Hub};
use crate::io::Io;
use crate::random::Random;
use crate::readiness::Readiness;
use crate::sys;
#[cfg(target_os = "linux")]
use crate::uring::{self, Uring};
use std::future::Future;
use std::io;
use std::rc::Rc;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;

/// The driver that `run` will use for `wanted`, and why, in words for the log.
#[cfg(target_os = "linux")]
pub fn choose(wanted: Driver) -> (Driver, String) {
    static UNUSABLE: OnceLock<Option<String>> = OnceLock::new();
    let unusable = || UNUSABLE.get_or_init(|| uring::probe().err().map(|e| e.to_string()));
    match wanted {
        Driver::Auto => match unusable() {
            None => (Driver::Uring, "io_uring works here".to_string()),
            Some(why) => (Driver::Epoll, format!("io_uring does not work here: {why}")),
        },
        Driver::Uring => match unusable() {
            None => (Driver::Uring, "asked for".to_string()),
            Some(why) => (
                Driver::Uring,
                format!("asked for, but io_uring does not work here: {why}"),
            ),
        },
        Driver::Epoll | Driver::Kqueue | Driver::Sim => (wanted, "asked for".to_string()),
    }
}

/// The driver that `run` will use for `wanted`, and why, in words for the log.
#[cfg(not(target_os = "linux"))]
pub fn choose(wanted: Driver) -> (Driver, String) {
    match wanted {
        Driver::Auto => (
            Driver::READINESS,
            "io_uring and epoll are Linux's".to_string(),
        ),
        _ => (wanted, "asked for".to_string()),
    }
}

/// Makes this thread a core until `main` ends. Other tasks are dropped then, and what their sockets
/// have queued gets a second to be sent.
pub fn run<T, F: Future<Output = T>>(driver: Driver, main: impl FnOnce(Rt) -> F) -> io::Result<T> {
    run_with(driver.into(), main)
}

/// [`run`] with more to choose.
pub fn run_with<T, F: Future<Output = T>>(
    options: Options,
    main: impl FnOnce(Rt) -> F,
) -> io::Result<T> {
    let pool = Pool::new(options.buffers.max(4))?;
    let exec = Executor::enter(Some(Bell::new()?)).map_err(io::Error::other)?;
    let bell = exec.remote().bell().expect("given one line above");
    let io = open(choose(options.driver).0, &pool, bell)?;
    let key = [
        sys::entropy(),
        sys::entropy(),
        sys::entropy(),
        sys::entropy(),
    ];
    let core = Core::new(
        Hub::new(exec, pool, Clock::Real),
        io,
        options.watch,
        Random::keyed(key),
    );
    Ok(core.drive(main))
}

/// Opens a driver of a core that this bell wakes.
#[cfg_attr(
    not(target_os = "linux"),
    expect(unused_variables, reason = "buffers in the kernel are io_uring's")
)]
fn open(driver: Driver, pool: &Rc<Pool>, bell: &Bell) -> io::Result<Io> {
    match driver {
        #[cfg(target_os = "linux")]
        Driver::Auto | Driver::Uring => Ok(Io::Uring(Uring::new(pool.clone(), bell)?)),
        #[cfg(target_os = "linux")]
        Driver::Epoll => Ok(Io::Epoll(Readiness::new(bell)?)),
        #[cfg(any(target_os = "freebsd", test))]
        Driver::Kqueue => Ok(Io::Kqueue(Readiness::new(bell)?)),
        Driver::Sim => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "sim::run starts the simulator",
        )),
        #[cfg_attr(
            all(target_os = "linux", test),
            expect(unreachable_patterns, reason = "tests have all drivers")
        )]
        other => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("this system has no driver {other}"),
        )),
    }
}
