//! What the firewall noticed, by whose statement it was: a bounded table, and which of it is worth
//! a line in the log.

use bridge::AlarmRow;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use plan::Action;
use std::cell::{Cell, RefCell};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Rows that a core keeps.
const ROWS_MAX: usize = 10_000;
/// A row has no other line in the log for so long.
const QUIET_S: u64 = 60;
/// Lines that a core writes in a second.
const LINES_MAX: u32 = 10;

/// One alarm.
#[derive(Clone, Copy)]
pub(crate) struct Alarmed<'a> {
    pub(crate) user: &'a str,
    pub(crate) client_address: &'a str,
    pub(crate) schema: &'a str,
    pub(crate) flag: u32,
    pub(crate) digest: u64,
    pub(crate) action: Action,
    pub(crate) fingerprint: &'a str,
    pub(crate) now_s: u64,
}

impl Alarmed<'_> {
    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (
            self.user,
            self.client_address,
            self.schema,
            self.flag,
            self.digest,
            self.action as u8,
            self.fingerprint,
        )
            .hash(&mut hasher);
        hasher.finish()
    }

    fn is(&self, row: &AlarmRow) -> bool {
        (row.digest, row.flag, row.action) == (self.digest, self.flag, self.action.name())
            && (&*row.user, &*row.client_address) == (self.user, self.client_address)
            && (&*row.schema, &*row.fingerprint) == (self.schema, self.fingerprint)
    }
}

struct Kept {
    hash: u64,
    row: AlarmRow,
    logged_s: u64,
}

/// Result of raising an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raised {
    /// Whether the alarm has a row.
    pub(crate) kept: bool,
    /// Whether the alarm is to be told in the log.
    pub(crate) told: bool,
}

/// All alarms of a core.
#[derive(Default)]
pub(crate) struct Alarms {
    rows: RefCell<HashTable<Kept>>,
    /// The second of the last line, and how many it has.
    lines: Cell<(u64, u32)>,
}

impl Alarms {
    /// Counts it; `text` is made only if it is new.
    pub(crate) fn raise(&self, alarm: &Alarmed<'_>, text: impl FnOnce() -> String) -> Raised {
        let hash = alarm.hash();
        let mut rows = self.rows.borrow_mut();
        let full = rows.len() >= ROWS_MAX;
        match rows.entry(
            hash,
            |kept| kept.hash == hash && alarm.is(&kept.row),
            |kept| kept.hash,
        ) {
            Entry::Occupied(mut entry) => {
                let kept = entry.get_mut();
                kept.row.count += 1;
                kept.row.last_seen = alarm.now_s;
                let told = alarm.now_s >= kept.logged_s + QUIET_S && self.has_room(alarm.now_s);
                if told {
                    kept.logged_s = alarm.now_s;
                }
                Raised { kept: true, told }
            }
            Entry::Vacant(_) if full => Raised {
                kept: false,
                told: self.has_room(alarm.now_s),
            },
            Entry::Vacant(entry) => {
                let told = self.has_room(alarm.now_s);
                let row = AlarmRow {
                    user: alarm.user.into(),
                    client_address: alarm.client_address.into(),
                    schema: alarm.schema.into(),
                    flag: alarm.flag,
                    digest: alarm.digest,
                    text: text().into(),
                    action: alarm.action.name(),
                    fingerprint: alarm.fingerprint.into(),
                    count: 1,
                    first_seen: alarm.now_s,
                    last_seen: alarm.now_s,
                };
                entry.insert(Kept {
                    hash,
                    row,
                    logged_s: if told { alarm.now_s } else { 0 },
                });
                Raised { kept: true, told }
            }
        }
    }

    /// Whether the log may have one more line in this second; then it has.
    fn has_room(&self, now_s: u64) -> bool {
        let (second, lines) = self.lines.get();
        let lines = if second == now_s { lines } else { 0 };
        self.lines.set((now_s, lines.saturating_add(1)));
        lines < LINES_MAX
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<AlarmRow> {
        let mut rows = self.rows.borrow_mut();
        let told = rows.iter().map(|kept| kept.row.clone()).collect();
        if reset {
            *rows = HashTable::new();
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Alarmed<'_> = Alarmed {
        user: "u",
        client_address: "10.0.0.1",
        schema: "s",
        flag: 0,
        digest: 7,
        action: Action::Detected,
        fingerprint: "",
        now_s: 1000,
    };

    fn text() -> String {
        "SELECT ?".into()
    }

    #[test]
    fn a_row_is_for_one_user_address_schema_flag_digest_and_action() {
        let alarms = Alarms::default();
        for other in [
            ONE,
            Alarmed { user: "v", ..ONE },
            Alarmed {
                client_address: "10.0.0.2",
                ..ONE
            },
            Alarmed { schema: "t", ..ONE },
            Alarmed { flag: 1, ..ONE },
            Alarmed { digest: 8, ..ONE },
            Alarmed {
                action: Action::Blocked,
                ..ONE
            },
            Alarmed {
                action: Action::Injection,
                fingerprint: "s&1o1",
                ..ONE
            },
        ] {
            alarms.raise(&other, text);
            alarms.raise(
                &Alarmed {
                    now_s: 1005,
                    ..other
                },
                || panic!("the row is there"),
            );
        }
        let rows = alarms.rows(true);
        assert_eq!(rows.len(), 8);
        assert!(
            rows.iter()
                .all(|row| (row.count, row.first_seen, row.last_seen) == (2, 1000, 1005))
        );
        assert!(alarms.rows(false).is_empty());
    }

    #[test]
    fn the_log_is_not_flooded_and_the_table_is_bounded() {
        let alarms = Alarms::default();
        let told = |digest, now_s| {
            alarms
                .raise(
                    &Alarmed {
                        digest,
                        now_s,
                        ..ONE
                    },
                    text,
                )
                .told
        };
        assert_eq!((0..100).filter(|digest| told(*digest, 1000)).count(), 10);
        // What has had its line waits; what has had none need not.
        assert!(!told(0, 1001) && told(50, 1001));
        assert!(told(0, 1060));
        for digest in 0..20_000 {
            alarms.raise(
                &Alarmed {
                    digest,
                    now_s: 2000,
                    ..ONE
                },
                text,
            );
        }
        assert_eq!(alarms.rows(false).len(), ROWS_MAX);
        assert_eq!(
            alarms.raise(
                &Alarmed {
                    digest: 20_000,
                    now_s: 2001,
                    ..ONE
                },
                text
            ),
            Raised {
                kept: false,
                told: true
            }
        );
    }
}
