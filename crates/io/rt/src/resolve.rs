//! From a host to addresses. Literal ones need nobody; for names the system's resolver is asked on
//! a helper thread, because it blocks.
//!
//! A resolver that fails, or takes long, does not take away what is known: the last addresses of a
//! name serve until it answers again. That there is no such name is an answer: what was known is
//! forgotten when it is given twice, some seconds apart, since another host may have the address by
//! then. A name that nobody answers for costs one thread of a core, however many ask for it.

use crate::address::Address;
use crate::core::Rt;
use crate::driver::Driver;
use crate::mailbox;
use crate::names::Name;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A resolver that takes longer is not waited for by who knows an older answer; and by who knows
/// one from long ago. Both are less than a connect may take.
const PATIENCE: Duration = Duration::from_millis(250);
const PATIENCE_IF_OLD: Duration = Duration::from_millis(700);

/// An answer from before is from long ago.
const OLD: Duration = Duration::from_secs(30);

/// So many lookups of the process run at once; others wait.
const LOOKUPS_MAX: usize = 64;

impl Rt {
    /// Finds the addresses of a host: literal IPs, and the path of a unix socket (port 0), at once;
    /// names by the system's resolver on a helper thread, remembered for five seconds, and longer
    /// while the resolver has no answer.
    pub async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<Address>> {
        self.resolve_within(host, port, Duration::MAX).await
    }

    /// Finds the addresses of a host, as [`resolve`](Self::resolve); whoever knows addresses from
    /// before waits no longer than `patience` for newer ones.
    pub async fn resolve_within(
        &self,
        host: &str,
        port: u16,
        patience: Duration,
    ) -> io::Result<Vec<Address>> {
        resolve(self, host, port, patience).await
    }

    /// Addresses of a name by asking now, whatever is known. What [`Rt::resolve`] says stays as it
    /// is.
    pub async fn look_up(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        ask(self, host).await
    }
}

async fn resolve(rt: &Rt, host: &str, port: u16, patience: Duration) -> io::Result<Vec<Address>> {
    if port == 0 {
        return Ok(vec![Address::Unix(PathBuf::from(host))]);
    }
    let with_port = |ips: Vec<IpAddr>| {
        ips.into_iter()
            .map(|ip| SocketAddr::new(ip, port).into())
            .collect()
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|h| h.strip_suffix(']'))
        .unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(with_port(vec![ip]));
    }
    if rt.driver() == Driver::Sim {
        return Ok(with_port(vec![imagined(host)]));
    }
    let name = rt.0.names.of(host)?;
    if let Some(ips) = name.within(rt.0.names.fresh.get(), rt.now()) {
        return Ok(with_port(ips));
    }
    if !name.looking.replace(true) {
        rt.spawn(look(rt.clone(), name.clone()));
    }
    let known = || name.learnt.get().map(|_| name.ips.borrow().clone());
    let patience = patience.min(if name.within(OLD, rt.now()).is_some() {
        PATIENCE
    } else {
        PATIENCE_IF_OLD
    });
    if known().is_none() {
        name.done.wait().await;
    } else {
        let _late = rt.timeout(patience, name.done.wait()).await;
    }
    // The answer, or what was known before where there is none.
    known().map(with_port).ok_or_else(|| name.error())
}

/// Addresses of a name, by asking now.
async fn ask(rt: &Rt, host: &str) -> io::Result<Vec<IpAddr>> {
    match rt.driver() {
        Driver::Sim => Ok(vec![imagined(host)]),
        _ => look_up(rt, host).await,
    }
}

/// Looks a name up, for all who wait for it.
async fn look(rt: Rt, name: Rc<Name>) {
    match look_up(&rt, &name.host).await {
        Ok(ips) => name.learn(ips, rt.now()),
        Err(error) => name.fail(&error, rt.now(), rt.0.names.fresh.get()),
    }
    name.looking.set(false);
    name.done.notify_all();
}

/// In the simulator every name has an address: always the same, of the network 10.
fn imagined(host: &str) -> IpAddr {
    if host.eq_ignore_ascii_case("localhost") {
        return Ipv4Addr::LOCALHOST.into();
    }
    let hash = host.bytes().fold(0x811c_9dc5_u32, |h, b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    });
    let [_, a, b, c] = hash.to_be_bytes();
    Ipv4Addr::new(10, a, b, c).into()
}

async fn look_up(rt: &Rt, host: &str) -> io::Result<Vec<IpAddr>> {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    while RUNNING
        .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| {
            (n < LOOKUPS_MAX).then(|| n + 1)
        })
        .is_err()
    {
        rt.sleep(Duration::from_millis(5)).await;
    }
    let (tx, rx) = mailbox::channel(1);
    let (name, lookup) = (host.to_string(), rt.0.names.lookup.get());
    let started = std::thread::Builder::new()
        .name("resolver".into())
        .stack_size(256 * 1024)
        .spawn(move || {
            let found = lookup(&name);
            RUNNING.fetch_sub(1, Ordering::AcqRel);
            // Nobody may wait for it any more.
            let _ = tx.try_send(found);
        });
    if let Err(e) = started {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
        return Err(e);
    }
    let mut ips = rx
        .recv()
        .await
        .ok_or_else(|| io::Error::other("the resolver's thread died"))??;
    let mut seen = Vec::with_capacity(ips.len());
    ips.retain(|ip| {
        !seen.contains(ip) && {
            seen.push(*ip);
            true
        }
    });
    if ips.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("`{host}` has no address"),
        ));
    }
    Ok(ips)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{FRESH, NAMES_MAX, ask_system};
    use crate::{Options, run_with};
    use std::sync::atomic::AtomicBool;

    fn on_a_core(main: impl AsyncFnOnce(Rt)) {
        let options = Options {
            driver: Driver::Epoll,
            ..Options::default()
        };
        run_with(options, |rt| async move {
            rt.0.names.fresh.set(Duration::ZERO);
            main(rt).await;
        })
        .unwrap();
    }

    fn one() -> Vec<IpAddr> {
        vec![Ipv4Addr::new(10, 0, 0, 1).into()]
    }

    #[test]
    fn what_is_known_serves_while_the_resolver_fails() {
        static FAILS: AtomicBool = AtomicBool::new(false);
        fn answer(_: &str) -> io::Result<Vec<IpAddr>> {
            if FAILS.load(Ordering::Relaxed) {
                Err(io::Error::other("no resolver"))
            } else {
                Ok(one())
            }
        }
        on_a_core(async |rt| {
            rt.0.names.lookup.set(answer);
            let known = rt.resolve("db", 3306).await.unwrap();
            FAILS.store(true, Ordering::Relaxed);
            assert_eq!(rt.resolve("db", 3306).await.unwrap(), known);
            let unknown = rt.resolve("other", 3306).await;
            assert_eq!(unknown.unwrap_err().to_string(), "no resolver");
        });
    }

    #[test]
    fn a_name_that_is_taken_out_is_forgotten_when_the_resolver_says_so_twice() {
        static GONE: AtomicBool = AtomicBool::new(false);
        fn answer(_: &str) -> io::Result<Vec<IpAddr>> {
            if GONE.load(Ordering::Relaxed) {
                Err(io::Error::new(io::ErrorKind::NotFound, "no such name"))
            } else {
                Ok(one())
            }
        }
        on_a_core(async |rt| {
            rt.0.names.lookup.set(answer);
            let known = rt.resolve("db", 3306).await.unwrap();
            rt.sleep(Duration::from_millis(60)).await;
            GONE.store(true, Ordering::Relaxed);
            rt.0.names.fresh.set(Duration::from_millis(50));
            assert_eq!(rt.resolve("db", 3306).await.unwrap(), known);
            rt.sleep(Duration::from_millis(60)).await;
            assert_eq!(
                rt.resolve("db", 3306).await.unwrap_err().to_string(),
                "no such name"
            );
            GONE.store(false, Ordering::Relaxed);
            assert_eq!(rt.resolve("db", 3306).await.unwrap(), known);
        });
    }

    #[test]
    fn the_system_says_what_has_no_address() {
        assert_eq!(
            ask_system("no such name").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(!ask_system("localhost").unwrap().is_empty());
    }

    #[test]
    fn a_slow_resolver_is_not_waited_for_and_its_answer_is_not_lost() {
        static LATE: AtomicBool = AtomicBool::new(false);
        #[expect(
            clippy::disallowed_methods,
            reason = "it runs on the resolver's thread"
        )]
        fn answer(_: &str) -> io::Result<Vec<IpAddr>> {
            if LATE.load(Ordering::Relaxed) {
                std::thread::sleep(2 * PATIENCE);
                return Ok(vec![Ipv4Addr::new(10, 0, 0, 2).into()]);
            }
            Ok(one())
        }
        on_a_core(async |rt| {
            rt.0.names.lookup.set(answer);
            let before = rt.resolve("db", 3306).await.unwrap();
            LATE.store(true, Ordering::Relaxed);
            let begun = rt.now();
            assert_eq!(
                rt.resolve_within("db", 3306, Duration::from_millis(10))
                    .await
                    .unwrap(),
                before
            );
            assert!(rt.now() - begun < PATIENCE);
            assert_eq!(rt.resolve("db", 3306).await.unwrap(), before);
            rt.0.names.of("db").unwrap().done.wait().await;
            rt.0.names.fresh.set(FRESH);
            assert_eq!(
                rt.resolve("db", 3306).await.unwrap(),
                ["10.0.0.2:3306".parse().unwrap()]
            );
        });
    }

    #[test]
    fn a_name_that_nobody_answers_for_is_looked_up_once_however_many_ask() {
        static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
        #[expect(
            clippy::disallowed_methods,
            reason = "it runs on the resolver's thread"
        )]
        fn answer(name: &str) -> io::Result<Vec<IpAddr>> {
            if name == "dead" {
                LOOKUPS.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(one())
        }
        on_a_core(async |rt| {
            rt.0.names.lookup.set(answer);
            for _ in 0..LOOKUPS_MAX + 1 {
                let asks = rt.clone();
                rt.spawn(async move { drop(asks.resolve("dead", 3306).await) });
            }
            rt.sleep(Duration::from_millis(1)).await;
            rt.resolve("well", 3306).await.unwrap();
            // Who came while it was looked up has its answer.
            rt.resolve("dead", 3306).await.unwrap();
            assert_eq!(LOOKUPS.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn names_are_bounded() {
        on_a_core(async |rt| {
            rt.0.names.lookup.set(|_| Ok(one()));
            for n in 0..NAMES_MAX + 10 {
                rt.resolve(&format!("db{n}"), 3306).await.unwrap();
            }
            assert_eq!(rt.0.names.known.borrow().len(), NAMES_MAX);
        });
    }
}
