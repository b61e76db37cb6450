//! The one structure that all cores share: a map in shards, bounded in bytes, and who may have what
//! is in it.

use crate::entry::Entry;
use crate::key::Read;
use crate::tables::Tables;
use quick_cache::{Equivalent, Lifecycle, OptionsBuilder, Weighter};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of the map, each behind a lock of its own that is held for one operation: cores rarely
/// meet, and what goes through all entries stops at each of these.
const SHARDS: usize = 32;
/// A result may take this part of the cache at most: half of a shard.
const RESULTS_MIN: u64 = 2 * SHARDS as u64;
/// Part of the cache that answers may take while they are gathered.
const GATHERED_PART: u64 = 4;
/// Bytes that an entry takes besides its key and its packets: entry, key, two counters, slots of
/// the map at its usual load.
const ENTRY_LEN: usize = size_of::<Entry>() + size_of::<Key>() + 16 + 16 + 64;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    hash: u64,
    bytes: Arc<[u8]>,
}

struct Borrowed<'a> {
    hash: u64,
    bytes: &'a [u8],
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for Borrowed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for Borrowed<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.hash == key.hash && *self.bytes == *key.bytes
    }
}

/// Keys bring their hash.
#[derive(Clone, Copy, Default)]
struct Known(u64);

impl BuildHasher for Known {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.is_empty(), "keys write one number");
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Clone, Copy)]
struct Bytes;

fn weight(key: &[u8], entry: &Entry) -> usize {
    ENTRY_LEN + key.len() + entry.heap_len()
}

impl Weighter<Key, Arc<Entry>> for Bytes {
    fn weight(&self, key: &Key, entry: &Arc<Entry>) -> u64 {
        weight(&key.bytes, entry) as u64
    }
}

/// Counts what the map throws out.
#[derive(Clone)]
struct Evicted(Arc<AtomicU64>);

impl Lifecycle<Key, Arc<Entry>> for Evicted {
    type RequestState = ();
    fn begin_request(&self) {}
    fn on_evict(&self, (): &mut (), _: Key, _: Arc<Entry>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "the one thing that cores share by lock: a copy per core would halve the hit rate, and no lock is held over an await"
)]
type Shard = quick_cache::sync::Cache<Key, Arc<Entry>, Bytes, Known, Evicted>;

struct Shared {
    shards: Box<[Shard]>,
    hasher: foldhash::quality::FixedState,
    capacity: AtomicU64,
    gathering: AtomicU64,
    /// How often somebody has said that what there is shall go.
    flushes: AtomicU64,
    purged: Arc<AtomicU64>,
    tables: Arc<Tables>,
}

/// The cache. Cloning shares it.
#[derive(Clone)]
pub struct Cache(Arc<Shared>);

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cache of {:?}", self.numbers())
    }
}

/// How full it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Entries, those that nobody may have any more among them.
    pub entries: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Bytes of results that are being gathered now.
    pub gathering: u64,
    /// Entries dropped: to make room, too old, written over, or because an operator said so.
    pub purged: u64,
}

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Nanoseconds of the runtime's clock.
    pub now_ns: u64,
    /// How old a result may be.
    pub ttl_ns: u64,
    /// Percent of that after which one client fetches it anew; 0 for never.
    pub soft_pct: u64,
    /// Whether writes to its tables end its use.
    pub watched: bool,
}

/// Result of a look into the cache.
#[derive(Debug)]
pub enum Found {
    /// A result.
    This(Arc<Entry>),
    /// A result that this client is to fetch anew, while others still get it.
    Renew(Renewal),
    /// None.
    Nothing,
}

/// One client's turn to fetch a result anew. Dropped, it is somebody else's.
#[derive(Debug)]
pub struct Renewal(Arc<Entry>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.renewing.store(false, Ordering::Release);
    }
}

impl Cache {
    /// Without room: see [`Self::set_capacity`]. `seed`: chance, so that clients cannot choose keys
    /// that collide.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let purged = Arc::new(AtomicU64::new(0));
        let shard = || {
            let options = OptionsBuilder::new()
                .shards(1)
                .estimated_items_capacity(1024)
                .weight_capacity(0)
                .build();
            let options = options.expect("all that it needs is set");
            Shard::with_options(options, Bytes, Known::default(), Evicted(purged.clone()))
        };
        Self(Arc::new(Shared {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: foldhash::quality::FixedState::with_seed(seed),
            capacity: AtomicU64::new(0),
            gathering: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            purged,
            tables: Arc::default(),
        }))
    }

    /// Bytes it may take.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.0.capacity.load(Ordering::Relaxed)
    }

    /// Bytes that one result may take.
    #[must_use]
    pub fn result_len_max(&self) -> usize {
        usize::try_from(self.capacity() / RESULTS_MIN).unwrap_or(usize::MAX)
    }

    /// Writes seen.
    #[must_use]
    pub fn tables(&self) -> &Arc<Tables> {
        &self.0.tables
    }

    /// How full it is.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        Numbers {
            entries: self.0.shards.iter().map(|shard| shard.len() as u64).sum(),
            bytes: self.0.shards.iter().map(Shard::weight).sum(),
            gathering: self.0.gathering.load(Ordering::Relaxed),
            purged: self.0.purged.load(Ordering::Relaxed),
        }
    }

    fn shard(&self, bytes: &[u8]) -> (&Shard, u64) {
        let hash = self.0.hasher.hash_one(bytes);
        // The map takes the lowest and the highest bits.
        (&self.0.shards[(hash >> 24) as usize % SHARDS], hash)
    }

    /// Which of so many cores keeps count of who fetches it. The same on all of them.
    #[must_use]
    pub fn home(&self, key: &[u8], cores: usize) -> usize {
        self.0.hasher.hash_one(key) as usize % cores.max(1)
    }

    /// Returns what there is for this key and may be had by who asks.
    #[must_use]
    pub fn get(&self, key: &[u8], asked: &Asked) -> Found {
        let (shard, hash) = self.shard(key);
        let Some(entry) = shard.get(&Borrowed { hash, bytes: key }) else {
            return Found::Nothing;
        };
        let untouched = |versions| self.0.tables.are_untouched(versions);
        let over = entry
            .versions
            .as_ref()
            .is_some_and(|versions| asked.watched && !untouched(versions));
        if over || asked.now_ns >= entry.until_ns {
            // A newer one may have come in between.
            let gone = shard.remove_if(&Borrowed { hash, bytes: key }, |now| {
                Arc::ptr_eq(now, &entry)
            });
            self.0
                .purged
                .fetch_add(u64::from(gone.is_some()), Ordering::Relaxed);
            return Found::Nothing;
        }
        let age_ns = asked.now_ns.saturating_sub(entry.asked_at_ns);
        if age_ns >= asked.ttl_ns || (asked.watched && entry.versions.is_none()) {
            return Found::Nothing;
        }
        let soft_ns = asked.ttl_ns / 100 * asked.soft_pct;
        if asked.soft_pct > 0 && age_ns >= soft_ns && !entry.renewing.swap(true, Ordering::AcqRel) {
            return Found::Renew(Renewal(entry));
        }
        entry.hits.fetch_add(1, Ordering::Relaxed);
        Found::This(entry)
    }

    /// How often operators have dropped results so far: [`Self::keep`] wants to know how often they
    /// had when a result was asked for.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.0.flushes.load(Ordering::Acquire)
    }

    /// Keeps a result that was asked for after so many `flushes`; whether there was room for it. A
    /// newer one for the same key stays, and what was asked for before a flush is gone with it.
    pub fn keep(&self, key: &[u8], entry: Entry, flushes: u64) -> bool {
        let (shard, hash) = self.shard(key);
        if weight(key, &entry) > self.result_len_max() || flushes != self.flushes() {
            return false;
        }
        let newer = shard
            .peek(&Borrowed { hash, bytes: key })
            .is_some_and(|kept| kept.asked_at_ns > entry.asked_at_ns);
        if newer {
            return false;
        }
        let entry = Arc::new(entry);
        shard.insert(
            Key {
                hash,
                bytes: key.into(),
            },
            entry.clone(),
        );
        if flushes != self.flushes() {
            // It may have passed this shard before.
            shard.remove_if(&Borrowed { hash, bytes: key }, |now| {
                Arc::ptr_eq(now, &entry)
            });
            return false;
        }
        true
    }

    /// Takes memory for a result that is being gathered; false if there is none.
    pub(crate) fn book(&self, bytes: usize) -> bool {
        let max = self.capacity() / GATHERED_PART;
        let before = self.0.gathering.fetch_add(bytes as u64, Ordering::Relaxed);
        let fits = before + bytes as u64 <= max;
        if !fits {
            self.unbook(bytes);
        }
        fits
    }

    pub(crate) fn unbook(&self, bytes: usize) {
        self.0.gathering.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// From now on it may take so many bytes; what is too much goes shard by shard. Await something
    /// between the steps: each takes time for the entries of one shard.
    pub fn set_capacity(&self, bytes: u64) -> impl Iterator<Item = ()> {
        self.0.capacity.store(bytes, Ordering::Relaxed);
        self.0
            .shards
            .iter()
            .map(move |shard| shard.set_capacity(bytes / SHARDS as u64))
    }

    /// Sets the capacity in one go, for tests.
    pub fn set_capacity_at_once(&self, bytes: u64) {
        self.set_capacity(bytes).for_each(drop);
    }

    /// Drops what `which` says, shard by shard as in [`Self::set_capacity`]; each step says how
    /// many it dropped. What is being fetched now is not kept.
    pub fn drop_those<'a>(
        &'a self,
        which: impl Fn(&Read<'_>, &Entry) -> bool + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        self.0.flushes.fetch_add(1, Ordering::AcqRel);
        self.0.shards.iter().map(move |shard| {
            let before = shard.len() as u64;
            shard
                .retain(|key, entry| !Read::of(&key.bytes).is_some_and(|read| which(&read, entry)));
            let gone = before.saturating_sub(shard.len() as u64);
            self.0.purged.fetch_add(gone, Ordering::Relaxed);
            gone
        })
    }

    /// Drops what is too old for everybody. Each step looks at one entry; await something now and
    /// then.
    pub fn sweep<'a>(&'a self, now_ns: impl Fn() -> u64 + 'a) -> impl Iterator<Item = ()> + 'a {
        self.0
            .shards
            .iter()
            .flat_map(Shard::iter)
            .map(move |(key, entry)| {
                if now_ns() >= entry.until_ns {
                    let (shard, hash) = self.shard(&key.bytes);
                    // A newer one may have come in between.
                    let gone = shard.remove_if(
                        &Borrowed {
                            hash,
                            bytes: &key.bytes,
                        },
                        |now| Arc::ptr_eq(now, &entry),
                    );
                    self.0
                        .purged
                        .fetch_add(u64::from(gone.is_some()), Ordering::Relaxed);
                }
            })
    }

    /// Shows every entry, shard by shard as in [`Self::set_capacity`], with the bytes that it
    /// takes.
    pub fn each<'a>(
        &'a self,
        mut show: impl FnMut(&Read<'_>, &Entry, usize) + 'a,
    ) -> impl Iterator<Item = ()> + 'a {
        self.0.shards.iter().map(move |shard| {
            for (key, entry) in shard.iter() {
                if let Some(read) = Read::of(&key.bytes) {
                    show(&read, &entry, weight(&key.bytes, &entry));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Made;
    use crate::gathered::Said;
    use crate::key::{Charset, Question};
    use wire::{caps, ok, packet};

    const MS: u64 = 1_000_000;

    fn made(row: &[u8]) -> Made {
        let mut out = Vec::new();
        let mut seq = 1;
        packet::append(&mut out, &mut seq, &[1]);
        packet::append(&mut out, &mut seq, b"\x03def");
        packet::append(&mut out, &mut seq, row);
        packet::append_with(&mut out, &mut seq, |out| {
            ok::Ok::default().write_end(out, caps::PROTOCOL_41 | caps::DEPRECATE_EOF)
        });
        let said = Said {
            rows: 1,
            status: 2,
            warnings: 0,
        };
        Made::read(&out, caps::PROTOCOL_41 | caps::DEPRECATE_EOF, said).unwrap()
    }

    fn entry(asked_at_ms: u64, ttl_ms: u64) -> Entry {
        Entry::new(
            made(b"\x01x"),
            asked_at_ms * MS,
            (asked_at_ms + ttl_ms) * MS,
            7,
            crate::TableNames::default(),
            None,
        )
    }

    fn key(user: &str, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let question = Question {
            user,
            schema: "s",
            hostgroup: 1,
            caps: caps::PROTOCOL_41,
            charset: Charset::Collation(45),
            text: text.as_bytes(),
            binary: None,
            attributes: b"",
            client: None,
        };
        question.write([].into_iter(), [].into_iter(), &mut out);
        out
    }

    fn cache() -> Cache {
        let cache = Cache::new(42);
        cache.set_capacity_at_once(1 << 20);
        cache
    }

    fn at(now_ms: u64, ttl_ms: u64) -> Asked {
        Asked {
            now_ns: now_ms * MS,
            ttl_ns: ttl_ms * MS,
            soft_pct: 0,
            watched: false,
        }
    }

    fn is_there(found: &Found) -> bool {
        matches!(found, Found::This(_))
    }

    fn keep(cache: &Cache, key: &[u8], entry: Entry) -> bool {
        cache.keep(key, entry, cache.flushes())
    }

    #[test]
    fn what_was_asked_for_before_a_flush_is_not_kept_after_it() {
        let cache = Cache::new(1);
        cache.set_capacity_at_once(1 << 20);
        let asked = cache.flushes();
        cache.drop_those(|_, _| true).for_each(drop);
        assert!(!cache.keep(&key("u", "q"), entry(0, 1000), asked));
        assert!(matches!(
            cache.get(&key("u", "q"), &at(1, 1000)),
            Found::Nothing
        ));
        assert!(keep(&cache, &key("u", "q"), entry(0, 1000)));
    }

    #[test]
    fn nobody_gets_what_is_older_than_the_filler_or_the_asker_allows() {
        let cache = cache();
        assert!(keep(&cache, &key("u", "q"), entry(1000, 500)));
        assert!(is_there(&cache.get(&key("u", "q"), &at(1100, 500))));
        assert!(
            !is_there(&cache.get(&key("u", "q"), &at(1100, 100))),
            "the asker's ttl is shorter"
        );
        assert!(is_there(&cache.get(&key("u", "q"), &at(1499, 5000))));
        assert!(
            !is_there(&cache.get(&key("u", "q"), &at(1500, 5000))),
            "the filler's is over"
        );
        assert_eq!(
            (
                cache.numbers().entries,
                cache.numbers().purged,
                cache.numbers().bytes
            ),
            (0, 1, 0)
        );
    }

    #[test]
    fn what_is_too_old_for_everybody_goes_though_nobody_asks_for_it() {
        let cache = cache();
        for n in 0..1000 {
            keep(&cache, &key("u", &format!("q{n}")), entry(1000, n));
        }
        assert_eq!(cache.sweep(|| 1500 * MS).count(), 1000);
        assert_eq!(
            (cache.numbers().entries, cache.numbers().purged),
            (499, 501)
        );
        assert!(is_there(&cache.get(&key("u", "q501"), &at(1500, 5000))));
        cache.sweep(|| 9000 * MS).for_each(drop);
        assert_eq!((cache.numbers().entries, cache.numbers().bytes), (0, 0));
    }

    #[test]
    fn another_user_finds_nothing() {
        let cache = cache();
        keep(&cache, &key("u", "q"), entry(0, 500));
        assert!(!is_there(&cache.get(&key("v", "q"), &at(1, 500))));
        assert!(!is_there(&cache.get(&key("u", "r"), &at(1, 500))));
    }

    #[test]
    fn keys_with_the_same_hash_are_still_two() {
        let same = |bytes: &'static [u8]| Borrowed { hash: 1, bytes };
        let kept = Key {
            hash: 1,
            bytes: b"a".as_slice().into(),
        };
        assert!(same(b"a").equivalent(&kept) && !same(b"b").equivalent(&kept));
    }

    #[test]
    fn one_client_renews_while_others_get_the_old() {
        let cache = cache();
        keep(&cache, &key("u", "q"), entry(0, 1000));
        let soft = |now| Asked {
            soft_pct: 50,
            ..at(now, 1000)
        };
        assert!(is_there(&cache.get(&key("u", "q"), &soft(499))));
        let Found::Renew(renewal) = cache.get(&key("u", "q"), &soft(500)) else {
            panic!("the first one renews")
        };
        assert!(is_there(&cache.get(&key("u", "q"), &soft(501))));
        drop(renewal);
        assert!(
            matches!(cache.get(&key("u", "q"), &soft(502)), Found::Renew(_)),
            "it failed: the next one"
        );
    }

    #[test]
    fn a_watched_result_ends_with_a_write() {
        let cache = cache();
        let versions = || {
            Some(
                cache
                    .tables()
                    .versions([(b"s".as_slice(), b"t".as_slice())].into_iter()),
            )
        };
        let asked = Asked {
            watched: true,
            ..at(1, 1000)
        };
        keep(&cache, &key("u", "q"), entry(0, 1000));
        assert!(
            !is_there(&cache.get(&key("u", "q"), &asked)),
            "nobody watched when it was filled"
        );
        keep(
            &cache,
            &key("u", "q"),
            Entry {
                versions: versions(),
                ..entry(0, 1000)
            },
        );
        assert!(is_there(&cache.get(&key("u", "q"), &asked)));
        cache.tables().writing().table(b"s", b"t");
        assert!(!is_there(&cache.get(&key("u", "q"), &asked)));
        assert_eq!(cache.numbers().entries, 0);
    }

    #[test]
    fn an_older_answer_does_not_take_the_place_of_a_newer_one() {
        let cache = cache();
        assert!(keep(&cache, &key("u", "q"), entry(10, 1000)));
        assert!(!keep(&cache, &key("u", "q"), entry(5, 1000)));
        assert!(keep(&cache, &key("u", "q"), entry(11, 1000)));
        assert_eq!(cache.numbers().entries, 1);
    }

    #[test]
    fn it_stays_within_its_bytes_and_shrinks_when_told() {
        let cache = cache();
        for n in 0..20_000 {
            keep(&cache, &key("u", &format!("SELECT {n}")), entry(0, 1000));
        }
        let full = cache.numbers();
        assert!(
            full.bytes <= 1 << 20 && full.entries > 1000 && full.purged > 0,
            "{full:?}"
        );
        cache.set_capacity_at_once(1 << 18);
        assert!(cache.numbers().bytes <= 1 << 18);
        cache.set_capacity_at_once(0);
        assert_eq!(cache.numbers().entries, 0);
        assert!(!keep(&cache, &key("u", "q"), entry(0, 1000)));
        cache.set_capacity_at_once(1 << 20);
        assert!(keep(&cache, &key("u", "q"), entry(0, 1000)));
        assert!(is_there(&cache.get(&key("u", "q"), &at(1, 1000))));
    }

    #[test]
    fn some_can_be_dropped_and_all_can_be_seen() {
        let cache = cache();
        for user in ["u", "v"] {
            for n in 0..50 {
                keep(&cache, &key(user, &format!("SELECT {n}")), entry(0, 1000));
            }
        }
        assert_eq!(
            cache.drop_those(|read, _| read.user == b"u").sum::<u64>(),
            50
        );
        let mut seen = 0;
        let mut bytes = 0;
        cache
            .each(|read, entry, len| {
                assert_eq!(
                    (read.user, entry.rows(), entry.digest),
                    (b"v".as_slice(), 1, 7)
                );
                seen += 1;
                bytes += len as u64;
            })
            .for_each(drop);
        assert_eq!(seen, 50);
        assert_eq!(bytes, cache.numbers().bytes);
    }
}
