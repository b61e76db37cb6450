//! Messages to systemd, if it has started us: `Type=notify`.
// <https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>

use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

/// The way to whoever has started us; nobody is told where it is none.
#[derive(Debug, Clone, Default)]
pub struct Notify {
    to: Option<Arc<(UnixDatagram, SocketAddr)>>,
    /// Interval in which a sign of life is wanted.
    every: Option<Duration>,
}

impl Notify {
    /// From the values of `NOTIFY_SOCKET` and `WATCHDOG_USEC`, as far as they make sense.
    #[must_use]
    pub fn of(socket: Option<&OsStr>, watchdog_us: Option<&OsStr>) -> Self {
        let to = socket.and_then(|name| way(name).ok());
        let every = watchdog_us
            .and_then(|text| text.to_str()?.parse().ok())
            .filter(|us| *us > 0)
            .map(Duration::from_micros);
        Self {
            to: to.map(Arc::new),
            every: every.filter(|_| socket.is_some()),
        }
    }

    /// Clients are served.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// Clients are served by this process, and no longer by the one before.
    pub fn took_over(&self) {
        self.say(&format!("READY=1\nMAINPID={}", std::process::id()));
    }

    /// The end has begun.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// A sign of life.
    pub fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    /// Interval in which a sign of life is wanted, if any is.
    #[must_use]
    pub fn every(&self) -> Option<Duration> {
        self.every
    }

    fn say(&self, words: &str) {
        if let Some((socket, to)) = self.to.as_deref() {
            // Whoever does not listen any more did not want it.
            let _unheard = socket.send_to_addr(words.as_bytes(), to);
        }
    }
}

fn way(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match name.as_bytes().split_first() {
        // Abstract names, and with them systemd, are Linux's. Elsewhere a path may be named.
        #[cfg(target_os = "linux")]
        Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut bytes = [0; 64];
        let n = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    }

    #[test]
    fn whoever_has_started_us_hears_of_ready_alive_and_stopping() {
        let path = std::env::temp_dir().join(format!("millrace-notify-{}", std::process::id()));
        let _none = std::fs::remove_file(&path);
        let mut all = vec![(
            UnixDatagram::bind(&path).unwrap(),
            path.display().to_string(),
        )];
        #[cfg(target_os = "linux")]
        {
            let name = format!("millrace-notify-{}", std::process::id());
            let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
            let socket = UnixDatagram::bind_addr(&address).unwrap();
            all.push((socket, format!("@{name}")));
        }
        for (socket, name) in all {
            let notify = Notify::of(Some(OsStr::new(&name)), Some(OsStr::new("2000000")));
            assert_eq!(notify.every(), Some(Duration::from_secs(2)));
            notify.ready();
            notify.alive();
            notify.stopping();
            let said = [(); 3].map(|()| heard(&socket));
            assert_eq!(said, ["READY=1", "WATCHDOG=1", "STOPPING=1"]);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn nobody_is_told_where_nobody_asks() {
        let us = Some(OsStr::new("2000000"));
        for socket in [None, Some(OsStr::new("")), Some(OsStr::new("/nowhere/x"))] {
            Notify::of(socket, us).ready();
        }
        assert_eq!(Notify::of(None, us).every(), None);
        assert_eq!(Notify::of(Some(OsStr::new("/x")), None).every(), None);
    }
}
