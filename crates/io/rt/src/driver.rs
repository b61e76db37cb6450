//! Which driver a core runs on, and how a thread becomes a core.

use crate::chunk::Pool;
use crate::core::{Clock, Core, Rt};
use crate::epoll::Epoll;
use crate::executor::Executor;
use crate::io::Io;
use crate::random::Random;
use crate::sys::{self, EventFd};
use crate::uring::{self, Uring};
use std::fmt;
use std::future::Future;
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

/// A way to talk to the kernel, or to a world without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Driver {
    /// `Uring` where it works, else `Epoll`.
    #[default]
    Auto,
    /// io_uring: the fastest.
    Uring,
    /// epoll: works everywhere.
    Epoll,
    /// The simulator; only [`sim::run`](crate::sim::run) starts it.
    Sim,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Epoll => "epoll",
            Self::Sim => "sim",
        })
    }
}

/// A word that names no driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADriver(
    /// The word as it was given.
    pub String,
);

impl fmt::Display for NotADriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not one of auto, uring, epoll", self.0)
    }
}

impl std::error::Error for NotADriver {}

impl FromStr for Driver {
    type Err = NotADriver;

    fn from_str(word: &str) -> Result<Self, NotADriver> {
        match word {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "epoll" => Ok(Self::Epoll),
            _ => Err(NotADriver(word.to_string())),
        }
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
        Driver::Epoll | Driver::Sim => (wanted, "asked for".to_string()),
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
    let exec = Executor::enter(Some(EventFd::new()?)).map_err(io::Error::other)?;
    let bell = exec.remote().bell().expect("given one line above");
    let io = match choose(options.driver).0 {
        Driver::Epoll => {
            let epoll = Epoll::new()?;
            epoll.start(bell)?;
            Io::Epoll(epoll)
        }
        Driver::Sim => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "sim::run starts the simulator",
            ));
        }
        Driver::Auto | Driver::Uring => Io::Uring(Uring::new(pool.clone(), bell)?),
    };
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
