//! How long answers take, as all threads together see it: samples gather in windows, and one thread
//! at a time closes a window and says what follows from it. Nobody waits for anybody.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// So many words are kept for whoever closes windows.
pub const WORDS: usize = 9;

/// Samples of the window that is open, and what followed from those before.
#[derive(Debug)]
pub struct Flow {
    /// Limit that followed; 0 before anything was said.
    limit: AtomicU32,
    /// Mean of the last window, in nanoseconds.
    mean_ns: AtomicU64,
    /// When the open window began; 0 before the first sample.
    began_ns: AtomicU64,
    samples: AtomicU32,
    sum_ns: AtomicU64,
    most: AtomicU32,
    closing: AtomicBool,
    words: [AtomicU64; WORDS],
}

/// When a window may be closed.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Samples that it has, when it is so long,
    pub samples: u32,
    /// in nanoseconds.
    pub least_ns: u64,
    /// Length at which it may be closed with any.
    pub most_ns: u64,
}

/// A window that is closed, and the only right to say what follows.
#[derive(Debug)]
pub struct Closed<'a> {
    flow: &'a Flow,
    /// Samples in it.
    pub samples: u32,
    /// Their mean, in nanoseconds.
    pub mean_ns: u64,
    /// The greatest number that [`Flow::saw`] was told.
    pub most: u32,
    /// Its length, in nanoseconds.
    pub length_ns: u64,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            limit: AtomicU32::new(0),
            mean_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
            samples: AtomicU32::new(0),
            sum_ns: AtomicU64::new(0),
            most: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }
}

impl Flow {
    /// The limit that was said last; 0 if none was.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Mean of the last window that was closed, in nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.mean_ns.load(Ordering::Relaxed)
    }

    /// Words that were kept last.
    pub fn words(&self) -> [u64; WORDS] {
        std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed))
    }

    /// So many are in flight.
    pub fn saw(&self, in_flight: u32) {
        if in_flight > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(in_flight, Ordering::Relaxed);
        }
    }

    /// Something took so long. What this returns is for the caller alone, until it is dropped.
    /// A sample that comes while a window is being closed counts in one of both, or in part: one of
    /// many.
    pub fn add(&self, took_ns: u64, in_flight: u32, now_ns: u64, size: Size) -> Option<Closed<'_>> {
        self.saw(in_flight);
        self.sum_ns.fetch_add(took_ns, Ordering::Relaxed);
        let samples = self.samples.fetch_add(1, Ordering::Relaxed) + 1;
        let began_ns = self.began_ns.load(Ordering::Relaxed);
        if began_ns == 0 {
            self.began_ns.store(now_ns.max(1), Ordering::Relaxed);
            return None;
        }
        let length_ns = now_ns.saturating_sub(began_ns);
        let is_full = samples >= size.samples && length_ns >= size.least_ns;
        if !is_full && length_ns < size.most_ns || self.closing.swap(true, Ordering::Acquire) {
            return None;
        }
        // Another may have closed it since.
        if self.began_ns.load(Ordering::Relaxed) != began_ns {
            self.closing.store(false, Ordering::Release);
            return None;
        }
        self.began_ns.store(now_ns.max(1), Ordering::Relaxed);
        let samples = self.samples.swap(0, Ordering::Relaxed).max(1);
        let sum_ns = self.sum_ns.swap(0, Ordering::Relaxed);
        let mean_ns = sum_ns / u64::from(samples);
        self.mean_ns.store(mean_ns, Ordering::Relaxed);
        Some(Closed {
            flow: self,
            samples,
            mean_ns,
            most: self.most.swap(in_flight, Ordering::Relaxed),
            length_ns,
        })
    }

    /// Says a limit where none was said yet.
    pub fn begin(&self, limit: u32) {
        let _said_before =
            self.limit
                .compare_exchange(0, limit, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Closed<'_> {
    /// Says what follows from the window.
    pub fn follows(self, limit: u32, words: [u64; WORDS]) {
        for (kept, word) in self.flow.words.iter().zip(words) {
            kept.store(word, Ordering::Relaxed);
        }
        self.flow.limit.store(limit, Ordering::Relaxed);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.flow.closing.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size {
        samples: 3,
        least_ns: 100,
        most_ns: 1000,
    };

    #[test]
    fn a_window_has_enough_samples_or_has_lasted_long_enough() {
        let flow = Flow::default();
        assert!((10..13).all(|now| flow.add(6, 2, now, SIZE).is_none()));
        let closed = flow.add(10, 5, 110, SIZE).unwrap();
        assert_eq!(
            (
                closed.samples,
                closed.mean_ns,
                closed.most,
                closed.length_ns
            ),
            (4, 7, 5, 100)
        );
        closed.follows(9, [1; WORDS]);
        assert_eq!(
            (flow.limit(), flow.mean_ns(), flow.words()),
            (9, 7, [1; WORDS])
        );
        // Few samples, and a long time.
        assert!(flow.add(1, 1, 1000, SIZE).is_none());
        let closed = flow.add(3, 1, 1110, SIZE).unwrap();
        assert_eq!((closed.samples, closed.mean_ns, closed.most), (2, 2, 5));
        // Only one at a time closes.
        assert!(flow.add(1, 1, 9999, SIZE).is_none());
        drop(closed);
        assert!(flow.add(1, 1, 9999, SIZE).is_some());
        let new = Flow::default();
        new.begin(7);
        new.begin(8);
        assert_eq!((new.limit(), new.words()), (7, [0; WORDS]));
    }

    #[test]
    fn threads_lose_no_sample() {
        let flow = Flow::default();
        let closed = AtomicU32::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for now in 1..=10_000 {
                        if let Some(window) = flow.add(1, 1, now, SIZE) {
                            closed.fetch_add(window.samples, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let open = flow.samples.load(Ordering::Relaxed);
        assert_eq!(closed.into_inner() + open, 40_000);
    }
}
