//! A response gathered on its way to the client: at most so many bytes of one, and of all together.

use crate::entry::Made;
use crate::store::Cache;
use wire::caps::Caps;

/// Numbers that the end of the response said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// Its rows.
    pub rows: u64,
    /// SERVER_STATUS_* flags.
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
}

/// Bytes that the client has been sent so far.
#[derive(Debug)]
pub struct Gathered {
    cache: Cache,
    bytes: Vec<u8>, // bytes.len() <= max, and as much is booked in `cache`
    max: usize,
    lost: bool,
    said: Option<Said>,
}

impl Gathered {
    /// Gathers up to `max` bytes.
    #[must_use]
    pub const fn up_to(max: usize, cache: Cache) -> Self {
        Self {
            cache,
            bytes: Vec::new(),
            max,
            lost: false,
            said: None,
        }
    }

    /// Another attempt: what came of the first does not count.
    pub fn restart(&mut self) {
        self.forget();
        self.lost = false;
        self.said = None;
    }

    /// The client is sent this.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.lost {
            return;
        }
        if self.bytes.len() + bytes.len() > self.max || !self.cache.book(bytes.len()) {
            self.forget();
            self.lost = true;
            return;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Notes that the response has ended well, as one result set; otherwise this is not called.
    pub const fn ended(&mut self, said: Said) {
        self.said = Some(said);
    }

    /// Returns what the end of the response said; `None` if the response is not one whole result
    /// set.
    #[must_use]
    pub const fn said(&self) -> Option<Said> {
        if self.lost { None } else { self.said }
    }

    /// The result set, if it is one and whole. `caps`: of the client that it was written for.
    #[must_use]
    pub fn made(&self, caps: Caps) -> Option<Made> {
        let said = self.said()?;
        Made::read(&self.bytes, caps, said)
    }

    fn forget(&mut self) {
        self.cache.unbook(self.bytes.len());
        self.bytes = Vec::new();
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_given_up_and_its_memory_with_it() {
        let cache = Cache::new(1);
        cache.set_capacity_at_once(1 << 20);
        let mut gathered = Gathered::up_to(10, cache.clone());
        gathered.add(b"12345");
        assert_eq!(cache.numbers().gathering, 5);
        gathered.add(b"678901");
        assert_eq!(cache.numbers().gathering, 0);
        gathered.ended(Said {
            rows: 0,
            status: 2,
            warnings: 0,
        });
        assert_eq!(gathered.said(), None);
        gathered.restart();
        gathered.add(b"1");
        drop(gathered);
        assert_eq!(cache.numbers().gathering, 0);
    }

    #[test]
    fn all_together_gather_no_more_than_a_quarter_of_the_cache() {
        let cache = Cache::new(1);
        cache.set_capacity_at_once(4000);
        let mut one = Gathered::up_to(4000, cache.clone());
        let mut other = Gathered::up_to(4000, cache.clone());
        one.add(&[0; 900]);
        other.add(&[0; 200]);
        assert_eq!(cache.numbers().gathering, 900);
        other.ended(Said {
            rows: 0,
            status: 2,
            warnings: 0,
        });
        assert!(other.said().is_none());
    }
}
