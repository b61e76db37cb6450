//! Which driver a core runs on, and how a thread becomes a core.

use crate::bell::Bell;
use crate::chunk::Pool;
use crate::core::{Clock, Core, Rt};
use crate::executor::Executor;
use crate::io::Io;
use crate::random::Random;
use crate::readiness::Readiness;
use crate::sys;
#[cfg(target_os = "linux")]
use crate::uring::{self, Uring};
use std::fmt;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::str::FromStr;
#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::time::Duration;

/// A way to talk to the kernel, or to a world without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Driver {
    /// `Uring` where it works, else [`Driver::READINESS`].
    #[default]
    Auto,
    /// io_uring: the fastest, on Linux.
    Uring,
    /// epoll: works on every Linux.
    Epoll,
    /// kqueue, on FreeBSD.
    Kqueue,
    /// The simulator; only [`sim::run`](crate::sim::run) starts it.
    Sim,
}

impl Driver {
    /// The driver that works wherever this system does: epoll on Linux, kqueue on FreeBSD.
    pub const READINESS: Self = if cfg!(target_os = "freebsd") {
        Self::Kqueue
    } else {
        Self::Epoll
    };

    /// Drivers that an operator may name on this system.
    const NAMED: &[Self] = if cfg!(target_os = "freebsd") {
        &[Self::Auto, Self::Kqueue]
    } else {
        &[Self::Auto, Self::Uring, Self::Epoll]
    };
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Epoll => "epoll",
            Self::Kqueue => "kqueue",
            Self::Sim => "sim",
        })
    }
}

/// A word that names no driver of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADriver(
    /// The word as it was given.
    pub String,
);

impl fmt::Display for NotADriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = Driver::NAMED.iter().map(Driver::to_string).collect();
        write!(f, "`{}` is not one of {}", self.0, named.join(", "))
    }
}

impl std::error::Error for NotADriver {}

impl FromStr for Driver {
    type Err = NotADriver;

    fn from_str(word: &str) -> Result<Self, NotADriver> {
        let mut named = Self::NAMED.iter().copied();
        named
            .find(|driver| driver.to_string() == word)
            .ok_or_else(|| NotADriver(word.to_string()))
    }
}

/// How to run a core.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The driver.
    pub driver: Driver,
    /// How many receive buffers of [`CHUNK_LEN`](crate::CHUNK_LEN) the core has. Their memory is
    /// taken from the kernel when they are first used.
    pub buffers: u16,
    /// How long the core looks for what comes next before it sleeps, while one thing comes quickly
    /// after the other; zero for sleeping at once. Clients that ask again as soon as they are
    /// answered are answered sooner, at the cost of that much of a processor; well below a
    /// millisecond.
    pub watch: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            driver: Driver::Auto,
            buffers: 1024,
            watch: Duration::ZERO,
        }
    }
}

impl From<Driver> for Options {
    /// The usual ones, with this driver.
    fn from(driver: Driver) -> Self {
        Self {
            driver,
            ..Self::default()
        }
    }
}

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
        exec,
        io,
        pool,
        Clock::Real,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A55: only drivers of this system can be named.
    #[test]
    fn a_driver_of_another_system_is_refused_in_words() {
        let (named, foreign) = match Driver::READINESS {
            Driver::Kqueue => ("auto, kqueue", "epoll"),
            _ => ("auto, uring, epoll", "kqueue"),
        };
        for driver in Driver::NAMED {
            assert_eq!(driver.to_string().parse(), Ok(*driver));
        }
        let refused = foreign.parse::<Driver>().unwrap_err().to_string();
        assert_eq!(refused, format!("`{foreign}` is not one of {named}"));
        assert!("sim".parse::<Driver>().is_err());
    }
}
