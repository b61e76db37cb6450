//! Rules want to know who writes which tables: the cache forgets what others have written.

use crate::core::Core;
use bridge::Touched;
use config::Rules;

impl Core {
    /// A write has ended of which nobody took note when it began; by now somebody may ask for that.
    pub(crate) fn has_written_unwatched(&self) {
        if self.epoch().snapshot.rules.watches_writes() {
            self.cache.tables().forget();
        }
    }

    /// Others have changed these tables. It is as if a write of ours began and ended now: an answer
    /// that is on its way was asked for before.
    pub(crate) fn others_wrote(&self, touched: &Touched) {
        if self.index > 0 {
            return;
        }
        let mut writing = self.cache.tables().writing();
        if touched.is_everything() {
            writing.everything();
        }
        for (schema, name) in touched.names() {
            writing.table(schema, name);
        }
    }

    /// Rules are in force that ask for something else: what was written while no rule asked for it,
    /// nobody knows.
    pub(crate) fn watch_as(&self, before: &Rules, now: &Rules) {
        if before.watches_writes() != now.watches_writes() {
            self.cache.tables().forget();
        }
    }
}
