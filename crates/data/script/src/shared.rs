//! `m.shared`: values that the sessions of a script share over all cores. A lock is held for one
//! operation, and never while somebody waits.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError};

/// Parts of the map, each behind a lock of its own.
const PARTS: usize = 16;
/// Bytes of a key at most.
const KEY_LEN_MAX: usize = 1024;
/// Bytes of a text at most.
const TEXT_LEN_MAX: usize = 64 << 10;
/// Values of a part at most.
const VALUES_MAX: usize = 1 << 16;
/// Bytes of a part at most: 64 MiB in all.
const BYTES_MAX: usize = 4 << 20;
/// Bytes that a value counts for besides its key and its text.
const VALUE_LEN: usize = 128;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// A number.
    Number(f64),
    /// A text.
    Text(Vec<u8>),
    /// True or false.
    Flag(bool),
}

/// Request to a shared value.
#[derive(Debug, Clone, PartialEq)]
pub enum Keep {
    /// The value.
    Get,
    /// This value from now on, or none.
    Set(Option<Kept>),
    /// So much more than there is; than zero if there is none.
    Add(f64),
}

struct One {
    value: Kept,
    /// Microseconds of the hosts' clock.
    until_us: u64,
}

#[derive(Default)]
struct Part {
    values: HashMap<Box<[u8]>, One>,
    bytes: usize,
}

#[expect(
    clippy::disallowed_types,
    reason = "what cores count together: held for one operation, and not over an await"
)]
type Locked = std::sync::Mutex<Part>;

/// The values of all scripts. Cloning shares them.
#[derive(Clone)]
pub struct Shared(Arc<(RandomState, [Locked; PARTS])>);

impl Default for Shared {
    fn default() -> Self {
        Self(Arc::new((RandomState::new(), Default::default())))
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shared")
    }
}

impl Shared {
    /// Does this to the value of a script with this key. Of [`Keep::Add`], and of a value that is
    /// new, `ttl_us` says how long it lasts; none for ever. What is there afterwards.
    ///
    /// # Errors
    /// Words for the script's author: there is no room, or no number to add to.
    pub fn keep(
        &self,
        (script, key): (&str, &[u8]),
        what: Keep,
        (now_us, ttl_us): (u64, Option<u64>),
    ) -> Result<Option<Kept>, String> {
        if key.len() > KEY_LEN_MAX {
            let words = format!("a key of m.shared has {KEY_LEN_MAX} bytes at most");
            return Err(words);
        }
        let key = [script.as_bytes(), b"\0", key].concat();
        let (hasher, parts) = &*self.0;
        let part = &parts[hasher.hash_one(&key) as usize % PARTS];
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        if part
            .values
            .get(&*key)
            .is_some_and(|one| one.until_us <= now_us)
        {
            part.take(&key);
        }
        let until_us = ttl_us.map_or(u64::MAX, |ttl| now_us.saturating_add(ttl));
        match what {
            Keep::Get => Ok(part.values.get(&*key).map(|one| one.value.clone())),
            Keep::Set(value) => {
                part.take(&key);
                if let Some(value) = value.clone() {
                    part.put(key, One { value, until_us }, now_us)?;
                }
                Ok(value)
            }
            Keep::Add(by) => match part.values.get_mut(&*key) {
                Some(One {
                    value: Kept::Number(number),
                    ..
                }) => {
                    *number += by;
                    Ok(Some(Kept::Number(*number)))
                }
                Some(_) => Err("m.shared.add wants a number, and there is another value".into()),
                None => {
                    let value = Kept::Number(by);
                    let one = One { value, until_us };
                    part.put(key, one, now_us)?;
                    Ok(Some(Kept::Number(by)))
                }
            },
        }
    }
}

impl Part {
    fn take(&mut self, key: &[u8]) {
        if let Some(one) = self.values.remove(key) {
            self.bytes -= weight(key, &one.value);
        }
    }

    fn put(&mut self, key: Vec<u8>, one: One, now_us: u64) -> Result<(), String> {
        if matches!(&one.value, Kept::Text(text) if text.len() > TEXT_LEN_MAX) {
            let words = format!("a text in m.shared has {TEXT_LEN_MAX} bytes at most");
            return Err(words);
        }
        let weight = weight(&key, &one.value);
        let is_full =
            |part: &Self| part.values.len() >= VALUES_MAX || part.bytes + weight > BYTES_MAX;
        if is_full(self) {
            self.values.retain(|_, one| one.until_us > now_us);
            let weights = self
                .values
                .iter()
                .map(|(key, one)| self::weight(key, &one.value));
            self.bytes = weights.sum();
        }
        if is_full(self) {
            return Err("m.shared is full".into());
        }
        self.bytes += weight;
        self.values.insert(key.into(), one);
        Ok(())
    }
}

fn weight(key: &[u8], value: &Kept) -> usize {
    let text = match value {
        Kept::Text(text) => text.len(),
        Kept::Number(_) | Kept::Flag(_) => 0,
    };
    VALUE_LEN + key.len() + text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(len: usize) -> Keep {
        Keep::Set(Some(Kept::Text(vec![b'x'; len])))
    }

    #[test]
    fn numbers_are_counted_together_until_they_end() {
        let (shared, number) = (Shared::default(), |n| Ok(Some(Kept::Number(n))));
        let add = |script, now_us| {
            shared
                .clone()
                .keep((script, b"k"), Keep::Add(2.0), (now_us, Some(10)))
        };
        assert_eq!(add("a", 0), number(2.0));
        assert_eq!(add("a", 9), number(4.0));
        assert_eq!(add("b", 9), number(2.0));
        assert_eq!(add("a", 10), number(2.0));
        let get = |key: &[u8]| shared.keep(("a", key), Keep::Get, (11, None));
        assert_eq!(get(b"k"), number(2.0));
        assert_eq!(get(b"none"), Ok(None));
        let set = |what| shared.keep(("a", b"k"), what, (11, None));
        assert_eq!(
            set(Keep::Set(Some(Kept::Flag(true)))),
            Ok(Some(Kept::Flag(true)))
        );
        assert!(set(Keep::Add(1.0)).is_err());
        assert_eq!(set(Keep::Set(None)), Ok(None));
        assert_eq!(get(b"k"), Ok(None));
    }

    #[test]
    fn there_is_an_end_to_it_and_what_has_ended_makes_room() {
        let shared = Shared::default();
        let put = |number: usize, now_us| {
            let key = number.to_string();
            shared.keep(("a", key.as_bytes()), text(60_000), (now_us, Some(100)))
        };
        let kept = (0..2000).filter(|number| put(*number, 0).is_ok()).count();
        assert!((900..1200).contains(&kept), "{kept}");
        assert!((2000..2100).all(|number| put(number, 100).is_ok()));
        assert!(
            shared
                .keep(("a", b"k"), text(TEXT_LEN_MAX + 1), (0, None))
                .is_err()
        );
        assert!(
            shared
                .keep(("a", &[0; 2000]), Keep::Get, (0, None))
                .is_err()
        );
    }
}
