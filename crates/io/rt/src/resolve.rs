//! From a host to addresses. Literal ones need nobody; for names the system's resolver is asked on a helper thread,
//! because it blocks.

use crate::core::{Instant, Rt};
use crate::{Address, Driver, mailbox};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// For so long an answer is used again.
const FRESH: Duration = Duration::from_secs(5);

/// So many names are remembered.
const NAMES_MAX: usize = 256;

/// So many lookups of the process run at once; others wait.
const LOOKUPS_MAX: usize = 16;

/// What the resolver said lately.
#[derive(Default)]
pub(crate) struct Names(RefCell<Vec<Known>>);

struct Known {
    host: String,
    until: Instant,
    ips: Vec<IpAddr>,
}

impl Names {
    fn known(&self, host: &str, now: Instant) -> Option<Vec<IpAddr>> {
        let mut names = self.0.borrow_mut();
        names.retain(|k| k.until > now);
        names.iter().find(|k| k.host == host).map(|k| k.ips.clone())
    }

    fn learn(&self, host: &str, until: Instant, ips: &[IpAddr]) {
        let mut names = self.0.borrow_mut();
        names.retain(|k| k.host != host);
        if names.len() >= NAMES_MAX {
            names.remove(0);
        }
        names.push(Known { host: host.to_string(), until, ips: ips.to_vec() });
    }
}

pub(crate) async fn resolve(rt: &Rt, host: &str, port: u16) -> io::Result<Vec<Address>> {
    if port == 0 {
        return Ok(vec![Address::Unix(PathBuf::from(host))]);
    }
    let with_port = |ips: Vec<IpAddr>| ips.into_iter().map(|ip| SocketAddr::new(ip, port).into()).collect();
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(with_port(vec![ip]));
    }
    if let Some(ips) = rt.0.names.known(host, rt.now()) {
        return Ok(with_port(ips));
    }
    let ips = if rt.driver() == Driver::Sim { vec![imagined(host)] } else { look_up(rt, host).await? };
    rt.0.names.learn(host, rt.now() + FRESH, &ips);
    Ok(with_port(ips))
}

/// In the simulator every name has an address: always the same, of the network 10.
fn imagined(host: &str) -> IpAddr {
    if host.eq_ignore_ascii_case("localhost") {
        return Ipv4Addr::LOCALHOST.into();
    }
    let hash = host.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let [_, a, b, c] = hash.to_be_bytes();
    Ipv4Addr::new(10, a, b, c).into()
}

async fn look_up(rt: &Rt, host: &str) -> io::Result<Vec<IpAddr>> {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    while RUNNING.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| (n < LOOKUPS_MAX).then(|| n + 1)).is_err() {
        rt.sleep(Duration::from_millis(5)).await;
    }
    let (tx, rx) = mailbox::channel(1);
    let name = host.to_string();
    let started = std::thread::Builder::new().name("resolver".into()).stack_size(256 * 1024).spawn(move || {
        // Any port: without one, the standard library refuses to ask.
        let found = (name.as_str(), 1).to_socket_addrs().map(|all| all.map(|a| a.ip()).collect::<Vec<_>>());
        RUNNING.fetch_sub(1, Ordering::AcqRel);
        // Nobody may wait for it any more.
        let _ = tx.try_send(found);
    });
    if let Err(e) = started {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
        return Err(e);
    }
    let mut ips = rx.recv().await.ok_or_else(|| io::Error::other("the resolver's thread died"))??;
    let mut seen = Vec::with_capacity(ips.len());
    ips.retain(|ip| {
        !seen.contains(ip) && {
            seen.push(*ip);
            true
        }
    });
    if ips.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address")));
    }
    Ok(ips)
}
