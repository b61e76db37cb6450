//! `mysql_query_rules_fast_routing`: (user, schema, flagIN) to hostgroup by one look into one
//! immutable table.
//!
//! 200,000 rows are some ten megabytes, for all cores together; a look allocates nothing.

use crate::FastRoutingRow;
use crate::refusal::Refusals;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash, Hasher};

/// Rows between two pauses of a build.
const AT_ONCE: usize = 256;

const TABLE: &str = "mysql_query_rules_fast_routing";

/// The table. An empty user name in a row means any user; the row of the user himself goes first.
#[derive(Debug, Default)]
pub struct FastRouting {
    entries: Box<[Entry]>,
    /// Open addressing with linear probing; a power of two, at least twice the entries. 0 is free;
    /// otherwise the upper half is the upper half of the hash, and the lower half is the entry's
    /// index plus one.
    slots: Box<[u64]>,
    /// All strings, each once.
    strings: Box<str>,
    has_any_user: bool,
    has_named_user: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    user: Span,
    schema: Span,
    comment: Span,
    flag_in: u32,
    hostgroup: u32,
}

/// `strings[start .. start + len]`.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of(self, strings: &str) -> &str {
        &strings[self.start as usize..self.start as usize + self.len as usize]
    }
}

fn key_hash(user: &str, schema: &str, flag_in: u32) -> u64 {
    let mut hasher = FixedState::default().build_hasher();
    user.hash(&mut hasher);
    schema.hash(&mut hasher);
    flag_in.hash(&mut hasher);
    hasher.finish()
}

impl FastRouting {
    pub(crate) fn build(
        rows: impl IntoIterator<Item = FastRoutingRow>,
        refusals: &mut Refusals,
        pause: &dyn Fn(),
    ) -> Self {
        let mut strings = Strings::default();
        let mut entries = Vec::new();
        for row in rows {
            if entries.len() % AT_ONCE == 0 {
                pause();
            }
            let key = || format!("'{}', '{}', {}", row.username, row.schemaname, row.flagIN);
            let flag_in = refusals.number(key, "flagIN", row.flagIN, (0, i64::from(u32::MAX)));
            let hostgroup = refusals.number(
                key,
                "destination_hostgroup",
                row.destination_hostgroup,
                (0, i64::from(i32::MAX)),
            );
            let spans =
                [&row.username, &row.schemaname, &row.comment].map(|text| strings.keep(text));
            let [Some(user), Some(schema), Some(comment)] = spans else {
                refusals.add(
                    key,
                    "username",
                    "and the other texts of this table are more than 4 GiB together",
                );
                break;
            };
            entries.push(Entry {
                user,
                schema,
                comment,
                flag_in,
                hostgroup,
            });
        }
        let strings = strings.text.into_boxed_str();
        let mut slots = vec![0_u64; (entries.len() * 2).next_power_of_two()].into_boxed_slice();
        let mask = slots.len() - 1;
        for (index, entry) in entries.iter().enumerate() {
            if index % AT_ONCE == 0 {
                pause();
            }
            let (user, schema) = (entry.user.of(&strings), entry.schema.of(&strings));
            let hash = key_hash(user, schema, entry.flag_in);
            let mut at = hash as usize & mask;
            while slots[at] != 0 {
                let other = &entries[(slots[at] as u32 - 1) as usize];
                let same = slots[at] >> 32 == hash >> 32
                    && other.flag_in == entry.flag_in
                    && other.user.of(&strings) == user
                    && other.schema.of(&strings) == schema;
                if same {
                    let key = || format!("'{user}', '{schema}', {}", entry.flag_in);
                    refusals.add(
                        key,
                        "username",
                        "with this schemaname and flagIN has a row already",
                    );
                    break;
                }
                at = (at + 1) & mask;
            }
            if slots[at] == 0 {
                slots[at] = (hash >> 32 << 32) | (index as u64 + 1);
            }
        }
        let has_any_user = entries.iter().any(|entry| entry.user.len == 0);
        let has_named_user = entries.iter().any(|entry| entry.user.len != 0);
        Self {
            entries: entries.into(),
            slots,
            strings,
            has_any_user,
            has_named_user,
        }
    }

    /// Where statements of this user in this schema go when the chain ended with this flag.
    #[must_use]
    pub fn hostgroup(&self, user: &str, schema: &str, flag_in: u32) -> Option<u32> {
        let named = if self.has_named_user {
            self.find(user, schema, flag_in)
        } else {
            None
        };
        match named {
            None if self.has_any_user => self.find("", schema, flag_in),
            named => named,
        }
    }

    fn find(&self, user: &str, schema: &str, flag_in: u32) -> Option<u32> {
        let hash = key_hash(user, schema, flag_in);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            // At least half of the slots are free, so this ends.
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if slot >> 32 == hash >> 32 {
                let entry = &self.entries[(slot as u32 - 1) as usize];
                if entry.flag_in == flag_in
                    && entry.user.of(&self.strings) == user
                    && entry.schema.of(&self.strings) == schema
                {
                    return Some(entry.hostgroup);
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.slots) + self.strings.len()
    }

    /// The rows, in the order in which they came.
    pub fn rows(&self) -> impl Iterator<Item = FastRoutingRow> + '_ {
        self.entries.iter().map(|entry| FastRoutingRow {
            username: entry.user.of(&self.strings).to_owned(),
            schemaname: entry.schema.of(&self.strings).to_owned(),
            flagIN: i64::from(entry.flag_in),
            destination_hostgroup: i64::from(entry.hostgroup),
            comment: entry.comment.of(&self.strings).to_owned(),
        })
    }
}

/// Name of the table these refusals are of.
pub(crate) const fn refusals() -> Refusals {
    Refusals::of(TABLE)
}

/// Strings, each kept once.
#[derive(Default)]
struct Strings {
    text: String,
    known: HashTable<Span>,
}

impl Strings {
    fn keep(&mut self, text: &str) -> Option<Span> {
        let hash = |text: &str| FixedState::default().hash_one(text);
        if let Some(span) = self
            .known
            .find(hash(text), |span| span.of(&self.text) == text)
        {
            return Some(*span);
        }
        let span = Span {
            start: u32::try_from(self.text.len()).ok()?,
            len: u32::try_from(text.len()).ok()?,
        };
        self.text.push_str(text);
        u32::try_from(self.text.len()).ok()?;
        self.known
            .insert_unique(hash(text), span, |span| hash(span.of(&self.text)));
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(user: &str, schema: &str, flag: i64, hostgroup: i64) -> FastRoutingRow {
        FastRoutingRow {
            username: user.into(),
            schemaname: schema.into(),
            flagIN: flag,
            destination_hostgroup: hostgroup,
            comment: String::new(),
        }
    }

    fn built(rows: Vec<FastRoutingRow>) -> FastRouting {
        let mut refusals = refusals();
        let table = FastRouting::build(rows, &mut refusals, &|| ());
        refusals.or(table).unwrap()
    }

    #[test]
    fn an_empty_table_knows_nothing() {
        assert_eq!(FastRouting::default().hostgroup("a", "b", 0), None);
        assert_eq!(built(vec![]).hostgroup("a", "b", 0), None);
    }

    /// A39: the key is (username, schemaname, flagIN); an empty username is any user, after the
    /// named one.
    #[test]
    fn the_row_of_the_user_goes_before_the_one_of_any_user() {
        let table = built(vec![
            row("", "s", 0, 1),
            row("u", "s", 0, 2),
            row("u", "s", 1, 3),
        ]);
        assert_eq!(table.hostgroup("u", "s", 0), Some(2));
        assert_eq!(table.hostgroup("u", "s", 1), Some(3));
        assert_eq!(table.hostgroup("v", "s", 0), Some(1));
        assert_eq!(table.hostgroup("v", "s", 1), None);
        assert_eq!(
            table.hostgroup("u", "S", 0),
            None,
            "names are compared as they are written"
        );
    }

    #[test]
    fn doubles_and_negative_hostgroups_are_refused() {
        let mut refusals = refusals();
        FastRouting::build(
            vec![
                row("u", "s", 0, 1),
                row("u", "s", 0, 2),
                row("u", "t", 0, -1),
            ],
            &mut refusals,
            &|| (),
        );
        let words: Vec<_> = refusals
            .into_list()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(words.len(), 2, "{words:?}");
        assert!(
            words[1].ends_with(
                "('u', 's', 0): username with this schemaname and flagIN has a row already"
            ),
            "{words:?}"
        );
    }

    /// A48, A49: one structure for all cores, and small.
    #[test]
    fn two_hundred_thousand_rows_are_less_than_forty_megabytes() {
        let table = built(
            (0..200_000)
                .map(|n| row("sbtest", &format!("shard_{}", n % 50_000), n / 50_000, n))
                .collect(),
        );
        assert!(table.bytes() < 20 << 20, "{}", table.bytes());
        assert_eq!(table.len(), 200_000);
        assert_eq!(table.hostgroup("sbtest", "shard_49999", 3), Some(199_999));
        assert_eq!(table.rows().nth(7).unwrap(), row("sbtest", "shard_7", 0, 7));
    }
}
