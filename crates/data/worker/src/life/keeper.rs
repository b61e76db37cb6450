//! What an operator asks of the cache and of the digests, and what age takes away, done between the
//! statements of others: a part, then everybody else, then the next part.

use crate::core::{Core, SWEPT_AT_ONCE};
use crate::seen::stats::Listing;
use bridge::{FlushCache, PreparedRow, QueryCacheRow, Report};
use cache::{Entry, Read};
use std::rc::Rc;
use std::time::Duration;

/// Rows that a listing has at most.
const LISTED_MAX: usize = 10_000;
/// How long what nobody may have any more takes room, at most, besides the time for looking.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Digests that are listed before others have their turn: a part of a millisecond.
const DIGESTS_AT_ONCE: usize = 500;
/// Bytes of a statement that it shows.
const TEXT_MAX: usize = 1024;
/// Bytes of prepared statements that are looked through before others have their turn, and what is
/// reckoned for the row of one.
const PREPARED_AT_ONCE: usize = 256 << 10;
const PREPARED_ROW: usize = 1024;
/// Bytes of a prepared statement that its row shows.
const PREPARED_TEXT_MAX: usize = 16 << 10;

impl Core {
    /// Drops results; says how many.
    pub(crate) async fn flush_cache(self: Rc<Self>, which: FlushCache, reply: bridge::Reply<u64>) {
        let mut dropped = 0;
        for n in self.cache.drop_those(|_, entry| is_meant(&which, entry)) {
            dropped += n;
            self.rt.yield_now().await;
        }
        reply(dropped);
    }

    /// Takes away what has become too old, now and then.
    pub(crate) async fn sweep_cache(self: Rc<Self>) {
        loop {
            self.rt.sleep(SWEEP_EVERY).await;
            for (n, ()) in self.cache.sweep(|| self.rt.now().as_ns()).enumerate() {
                if n % SWEPT_AT_ONCE == SWEPT_AT_ONCE - 1 {
                    self.rt.yield_now().await;
                }
            }
        }
    }

    /// Lists digests: there may be a hundred thousand, and who waits for an answer of a server is
    /// served in between.
    pub(crate) async fn list_digests(
        self: Rc<Self>,
        mut listing: Listing,
        reply: bridge::Reply<Report>,
    ) {
        while self.digests.list_more(&mut listing, DIGESTS_AT_ONCE) {
            self.rt.yield_now().await;
        }
        reply(Report::Digests(listing.into_rows()));
    }

    /// Lists prepared statements: each is looked through for its digest, and there may be many, and
    /// long ones.
    pub(crate) async fn list_prepared(self: Rc<Self>, reply: bridge::Reply<Report>) {
        let (all, mut rows, mut bytes) = (self.statements.all(), Vec::new(), 0);
        for statement in all {
            bytes += statement.sql.len() + PREPARED_ROW;
            let mut buffer = self.scratch.take();
            let (clients, servers) = statement.counts();
            rows.push(PreparedRow {
                id: statement
                    .number
                    .wrapping_mul(u64::from(self.cores))
                    .wrapping_add(u64::from(self.index)),
                schema: statement.schema.as_ref().into(),
                user: statement.user.as_ref().into(),
                digest: sql::digest(&statement.sql, &self.epoch().digest, &mut buffer),
                clients: clients.into(),
                servers: servers.into(),
                columns: statement.columns.get(),
                params: statement.params.get(),
                text: String::from_utf8_lossy(
                    &statement.sql[..statement.sql.len().min(PREPARED_TEXT_MAX)],
                )
                .into(),
            });
            self.scratch.give(buffer);
            if bytes > PREPARED_AT_ONCE {
                bytes = 0;
                self.rt.yield_now().await;
            }
        }
        reply(Report::Prepared(rows));
    }

    /// Lists what somebody may still have.
    pub(crate) async fn list_cache(self: Rc<Self>, reply: bridge::Reply<Report>) {
        let now_ns = self.rt.now().as_ns();
        let rows = std::cell::RefCell::new(Vec::new());
        let show = |read: &Read<'_>, entry: &Entry, bytes: usize| {
            let mut rows = rows.borrow_mut();
            if rows.len() < LISTED_MAX && now_ns < entry.until_ns {
                rows.push(row(read, entry, bytes, now_ns));
            }
        };
        for () in self.cache.each(show) {
            self.rt.yield_now().await;
        }
        reply(Report::QueryCache(rows.into_inner()));
    }
}

fn row(read: &Read<'_>, entry: &Entry, bytes: usize, now_ns: u64) -> QueryCacheRow {
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    QueryCacheRow {
        hostgroup: read.hostgroup,
        user: words(read.user),
        schema: words(read.schema),
        digest: entry.digest,
        binary: read.binary,
        text: words(&read.text[..read.text.len().min(TEXT_MAX)]),
        tables: entry.tables.to_string(),
        watched: entry.versions.is_some(),
        rows: entry.rows(),
        bytes: bytes as u64,
        hits: entry.hits(),
        age_ms: now_ns.saturating_sub(entry.asked_at_ns) / 1_000_000,
        ttl_ms: entry.until_ns.saturating_sub(entry.asked_at_ns) / 1_000_000,
    }
}

fn is_meant(which: &FlushCache, entry: &Entry) -> bool {
    match which {
        FlushCache::All => true,
        FlushCache::Digest(digest) => entry.digest == *digest,
        FlushCache::Table { schema, name } => entry.tables.iter().any(|(of, called)| {
            called.eq_ignore_ascii_case(name)
                && schema
                    .as_ref()
                    .is_none_or(|schema| of.eq_ignore_ascii_case(schema))
        }),
    }
}
