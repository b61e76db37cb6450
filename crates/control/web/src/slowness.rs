//! Slowness: whoever gives wrong passwords waits longer each time before the next is looked at.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Addresses that are remembered at most.
const ADDRESSES_MAX: usize = 1024;
/// Wait after the first wrong password.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
const LAST: Duration = Duration::from_secs(30);
/// Time after which an address counts as one that has done nothing wrong.
const FORGOTTEN: Duration = Duration::from_secs(15 * 60);

/// Addresses of those who gave wrong passwords.
#[derive(Debug, Default)]
pub(crate) struct Slowness(HashMap<IpAddr, Wait>);

#[derive(Debug, Clone, Copy)]
struct Wait {
    failures: u32,
    until: Instant,
}

impl Slowness {
    /// Time that somebody has to wait before his password is looked at, if he has to. An attempt
    /// counts as wrong until it is [`Self::forgive`]n, so that many at once are no way around.
    pub(crate) fn attempt(&mut self, from: IpAddr, now: Instant) -> Result<(), Duration> {
        let from = network(from);
        self.0.retain(|_, wait| now < wait.until + FORGOTTEN);
        let failures = match self.0.get(&from) {
            Some(wait) if now < wait.until => return Err(wait.until - now),
            Some(wait) => wait.failures.saturating_add(1),
            None if self.0.len() >= ADDRESSES_MAX => return Err(LAST),
            None => 1,
        };
        let wait = LAST.min(FIRST * 2_u32.saturating_pow(failures - 1));
        let until = now + wait;
        self.0.insert(from, Wait { failures, until });
        Ok(())
    }

    /// Forgets what somebody did wrong: he has the password.
    pub(crate) fn forgive(&mut self, from: IpAddr) {
        self.0.remove(&network(from));
    }
}

/// The addresses that one person has: of IPv6 they are as many as he likes.
fn network(from: IpAddr) -> IpAddr {
    match from {
        IpAddr::V4(_) => from,
        IpAddr::V6(ip) => {
            let bits = ip.to_bits() >> 64 << 64;
            IpAddr::V6(bits.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_password_doubles_the_wait_up_to_a_bound() {
        let (mut slow, begun) = (Slowness::default(), Instant::now());
        let here: IpAddr = "192.0.2.1".parse().unwrap();
        let mut now = begun;
        for wanted in [1, 2, 4, 8, 16, 30, 30] {
            assert_eq!(slow.attempt(here, now), Ok(()));
            let wait = slow.attempt(here, now).unwrap_err();
            assert_eq!(wait, Duration::from_secs(wanted));
            let other = slow.attempt("192.0.2.2".parse().unwrap(), now);
            assert_eq!(other, Ok(()));
            slow.forgive("192.0.2.2".parse().unwrap());
            now += wait;
        }
        slow.forgive(here);
        assert_eq!(slow.attempt(here, now), Ok(()));
        assert_eq!(slow.attempt(here, now).unwrap_err(), FIRST);
    }

    #[test]
    fn neighbours_of_ipv6_are_one_person_and_too_many_persons_all_wait() {
        let (mut slow, now) = (Slowness::default(), Instant::now());
        assert!(slow.attempt("2001:db8::1".parse().unwrap(), now).is_ok());
        assert!(slow.attempt("2001:db8::2".parse().unwrap(), now).is_err());
        for at in 1..ADDRESSES_MAX as u32 {
            assert!(slow.attempt(IpAddr::V4(at.into()), now).is_ok());
        }
        assert_eq!(slow.attempt("192.0.2.1".parse().unwrap(), now), Err(LAST));
    }
}
