//! Ways to talk to the kernel, by name, and how to run a core.

use std::fmt;
use std::str::FromStr;
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
