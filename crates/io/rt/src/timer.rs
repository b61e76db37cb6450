//! Timers: a hierarchical wheel with ticks of one millisecond. Inserting and cancelling are O(1),
//! and so is finding out how long the core may sleep.

use std::task::Waker;

const LEVELS: usize = 7; // 7 * 6 bits of milliseconds: 139 years
const SLOTS: usize = 64;
const LAST_TICK: u64 = (1 << (6 * LEVELS)) - 1;
const NIL: u32 = u32::MAX;

/// A timer in the wheel. Its owner removes it, fired or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u32);

pub(crate) struct Wheel {
    now: u64, // every timer that is linked has its slot at or after this tick
    entries: Vec<Entry>,
    free: u32, // head of the list of unused entries, through `next`
    slots: [[Ends; SLOTS]; LEVELS],
    occupied: [u64; LEVELS], // bit s of level l: slots[l][s] is not empty
    linked: usize,
}

struct Entry {
    tick: u64,
    waker: Option<Waker>,
    next: u32,
    previous: u32,
    at: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    Fired,
    Slot { level: u8, slot: u8 },
}

#[derive(Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

impl Wheel {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            entries: Vec::new(),
            free: NIL,
            slots: [[Ends {
                first: NIL,
                last: NIL,
            }; SLOTS]; LEVELS],
            occupied: [0; LEVELS],
            linked: 0,
        }
    }

    /// Sets a timer for `tick`; one in the past fires at the next `advance`.
    pub(crate) fn insert(&mut self, tick: u64, waker: Waker) -> Key {
        let tick = tick.clamp(self.now, LAST_TICK);
        let entry = Entry {
            tick,
            waker: Some(waker),
            next: NIL,
            previous: NIL,
            at: Place::Free,
        };
        let index = if self.free == NIL {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("fewer timers than 2^32 fit in memory")
        } else {
            let index = self.free;
            self.free = self.entry(index).next;
            *self.entry(index) = entry;
            index
        };
        self.link(index);
        Key(index)
    }

    /// Has it fired? If not, `waker` is the one to wake from now on.
    pub(crate) fn poll(&mut self, key: Key, waker: &Waker) -> bool {
        let entry = self.entry(key.0);
        if entry.at == Place::Fired {
            return true;
        }
        match &entry.waker {
            Some(old) if old.will_wake(waker) => {}
            _ => entry.waker = Some(waker.clone()),
        }
        false
    }

    /// The tick of a timer that has not fired and wakes this waker.
    pub(crate) fn pending(&self, key: Key, waker: &Waker) -> Option<u64> {
        let entry = &self.entries[key.0 as usize];
        let is_its = entry.waker.as_ref().is_some_and(|its| its.will_wake(waker));
        (is_its && entry.at != Place::Fired).then_some(entry.tick)
    }

    /// Forgets the timer.
    pub(crate) fn remove(&mut self, key: Key) {
        self.unlink(key.0);
        let free = self.free;
        let entry = self.entry(key.0);
        entry.at = Place::Free;
        entry.waker = None;
        entry.next = free;
        self.free = key.0;
    }

    /// Fires, in order of their ticks, all timers up to `tick`.
    pub(crate) fn advance(&mut self, tick: u64) {
        while let Some((level, slot, at)) = self.first_slot() {
            if at > tick {
                break;
            }
            self.now = self.now.max(at);
            let ends = std::mem::replace(
                &mut self.slots[level][slot],
                Ends {
                    first: NIL,
                    last: NIL,
                },
            );
            self.occupied[level] &= !(1 << slot);
            let mut index = ends.first;
            while index != NIL {
                let now = self.now;
                let entry = self.entry(index);
                let next = entry.next;
                self.linked -= 1;
                let entry = self.entry(index);
                if entry.tick <= now {
                    entry.at = Place::Fired;
                    if let Some(waker) = entry.waker.take() {
                        waker.wake();
                    }
                } else {
                    self.link(index);
                }
                index = next;
            }
        }
        self.now = self.now.max(tick);
    }

    /// The tick at which `advance` has something to do: never later than the first timer.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.first_slot().map(|(_, _, at)| at)
    }

    /// Are there timers that have not fired?
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.linked == 0
    }

    fn entry(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index as usize]
    }

    /// The slot of `tick` is on the level of the highest six bits in which it differs from now. So
    /// all timers of a level come before those of the next, and no level wraps around.
    fn link(&mut self, index: u32) {
        let tick = self.entry(index).tick;
        let differs = (self.now ^ tick) | (SLOTS as u64 - 1);
        let level = (63 - differs.leading_zeros()) as usize / 6;
        let slot = (tick >> (6 * level)) as usize % SLOTS;
        let last = self.slots[level][slot].last;
        let entry = self.entry(index);
        entry.at = Place::Slot {
            level: level as u8,
            slot: slot as u8,
        };
        entry.previous = last;
        entry.next = NIL;
        if last == NIL {
            self.slots[level][slot].first = index;
        } else {
            self.entry(last).next = index;
        }
        self.slots[level][slot].last = index;
        self.occupied[level] |= 1 << slot;
        self.linked += 1;
    }

    fn unlink(&mut self, index: u32) {
        let Entry {
            next,
            previous,
            at: Place::Slot { level, slot },
            ..
        } = *self.entry(index)
        else {
            return;
        };
        let (level, slot) = (usize::from(level), usize::from(slot));
        if previous == NIL {
            self.slots[level][slot].first = next;
        } else {
            self.entry(previous).next = next;
        }
        if next == NIL {
            self.slots[level][slot].last = previous;
        } else {
            self.entry(next).previous = previous;
        }
        if self.slots[level][slot].first == NIL {
            self.occupied[level] &= !(1 << slot);
        }
        self.linked -= 1;
    }

    fn first_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        let slot = self.occupied[level].trailing_zeros() as usize;
        let above = self.now >> (6 * (level + 1)) << (6 * (level + 1));
        Some((level, slot, above + ((slot as u64) << (6 * level))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn every_timer_fires_at_its_tick_and_not_before_whatever_the_steps() {
        let mut seed = 42u64;
        let mut random = move || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            seed >> 33
        };
        for _ in 0..50 {
            let mut wheel = Wheel::new();
            let mut now = random() % 1_000_000;
            wheel.advance(now);
            let mut live: Vec<(Key, u64)> = Vec::new();
            for _ in 0..2_000 {
                match random() % 4 {
                    0 | 1 => {
                        let span = 1 << (random() % 22);
                        let tick = now + random() % span;
                        live.push((wheel.insert(tick, Waker::noop().clone()), tick));
                    }
                    2 if !live.is_empty() => {
                        let (key, _) = live.swap_remove(random() as usize % live.len());
                        wheel.remove(key);
                    }
                    _ => {
                        let first = live.iter().map(|t| t.1).min();
                        if let Some(next) = wheel.next_tick() {
                            assert!(next <= first.unwrap());
                        }
                        let span = 1 << (random() % 16);
                        now += random() % span;
                        wheel.advance(now);
                        live.retain(|&(key, tick)| {
                            let fired = wheel.poll(key, Waker::noop());
                            assert_eq!(fired, tick <= now, "tick {tick} now {now}");
                            if fired {
                                wheel.remove(key);
                            }
                            !fired
                        });
                    }
                }
            }
            for (key, _) in live {
                wheel.remove(key);
            }
            assert!(wheel.is_empty() && wheel.next_tick().is_none());
        }
    }

    #[test]
    fn a_removed_timer_wakes_nobody() {
        let mut wheel = Wheel::new();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let a = wheel.insert(5, count.clone().into());
        let _b = wheel.insert(5, count.clone().into());
        wheel.remove(a);
        wheel.advance(100);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_timer_beyond_all_time_is_kept() {
        let mut wheel = Wheel::new();
        let key = wheel.insert(u64::MAX, Waker::noop().clone());
        wheel.advance(1 << 40);
        assert!(!wheel.poll(key, Waker::noop()));
    }
}
