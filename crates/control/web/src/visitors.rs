//! Visitors who have come in: what their browsers show, and for how long that is good.

use bridge::Pass;
use openssl::error::ErrorStack;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Visitors at once at most; one more, and whoever was silent longest has to come in again.
const VISITORS_MAX: usize = 64;
/// Time after which a visitor who did nothing has to come in again.
const SILENT_MAX: Duration = Duration::from_secs(30 * 60);
/// Time after which every visitor has to come in again.
const STAYS_MAX: Duration = Duration::from_secs(12 * 3600);
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Name of the cookie. Browsers keep one that begins so from other hosts, and from plain HTTP.
pub(crate) const COOKIE: &str = "__Host-millrace";

/// A visitor.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    /// Proof of his credentials.
    pub(crate) pass: Pass,
    /// Token in each form of the visitor: a page of somebody else does not know it.
    pub(crate) token: String,
    came: Instant,
    seen: Instant,
}

/// All of them, by what their cookies say.
#[derive(Debug, Default)]
pub(crate) struct Visitors(HashMap<String, Visitor>);

impl Visitors {
    /// Lets somebody in; what his cookie says.
    pub(crate) fn enter(&mut self, pass: Pass, now: Instant) -> Result<String, ErrorStack> {
        self.forget_old(now);
        if self.0.len() >= VISITORS_MAX {
            let silent = self.0.iter().min_by_key(|(_, visitor)| visitor.seen);
            if let Some(key) = silent.map(|(key, _)| key.clone()) {
                self.0.remove(&key);
            }
        }
        let (key, token) = (secret()?, secret()?);
        let visitor = Visitor {
            pass,
            token,
            came: now,
            seen: now,
        };
        self.0.insert(key.clone(), visitor);
        Ok(key)
    }

    /// Whose cookie this is. `acts`: he does something, other than a page that asks by itself.
    pub(crate) fn of(&mut self, key: &str, acts: bool, now: Instant) -> Option<Visitor> {
        self.forget_old(now);
        let visitor = self.0.get_mut(key)?;
        if acts {
            visitor.seen = now;
        }
        Some(visitor.clone())
    }

    /// Sends one out.
    pub(crate) fn leave(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Sends all out.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn forget_old(&mut self, now: Instant) {
        self.0
            .retain(|_, visitor| now - visitor.seen < SILENT_MAX && now - visitor.came < STAYS_MAX);
    }
}

impl Visitor {
    /// Whether a form has his token.
    pub(crate) fn has_token(&self, given: &str) -> bool {
        given.len() == self.token.len()
            && openssl::memcmp::eq(given.as_bytes(), self.token.as_bytes())
    }
}

/// Digits that nobody can guess.
fn secret() -> Result<String, ErrorStack> {
    let mut bytes = [0; SECRET_BYTES];
    openssl::rand::rand_bytes(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pass(may_act: bool) -> Pass {
        Pass {
            user: "somebody".into(),
            from: "127.0.0.1".parse().unwrap(),
            may_act,
            seal: 1,
        }
    }

    #[test]
    fn a_visitor_stays_while_he_does_something_and_not_for_ever() {
        let (mut all, begun) = (Visitors::default(), Instant::now());
        let key = all.enter(pass(true), begun).unwrap();
        let after = |minutes: u64| begun + Duration::from_secs(60 * minutes);
        assert!(all.of(&key, true, after(29)).is_some());
        assert!(all.of(&key, false, after(58)).is_some());
        // What a page asks by itself does not count.
        assert!(all.of(&key, true, after(60)).is_none());
        let key = all.enter(pass(true), begun).unwrap();
        for minutes in (0..12 * 60).step_by(20) {
            assert!(all.of(&key, true, after(minutes)).is_some(), "{minutes}");
        }
        assert!(all.of(&key, true, after(12 * 60)).is_none());
    }

    #[test]
    fn the_silent_make_room_and_secrets_are_not_alike() {
        let (mut all, begun) = (Visitors::default(), Instant::now());
        let first = all.enter(pass(false), begun).unwrap();
        let later = begun + Duration::from_secs(1);
        let others: Vec<_> = (0..VISITORS_MAX)
            .map(|_| all.enter(pass(false), later).unwrap())
            .collect();
        assert!(all.of(&first, true, later).is_none());
        let last = all.of(&others[0], true, later).unwrap();
        assert!(!others.contains(&last.token) && others[0] != others[1]);
        assert!(last.has_token(&last.token) && !last.has_token("") && !last.has_token(&first));
        all.leave(&others[0]);
        assert!(all.of(&others[0], true, later).is_none());
    }
}
