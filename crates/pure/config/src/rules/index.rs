//! Which rules can match at all: the chain is compiled once, shared by all cores, and only
//! candidates are looked at.
//!
//! Rules are kept in buckets by what they name: the flag always, and of user, schema, digest,
//! client address (whole, or its part before a `%`), listener's address and port whatever the rule
//! gives. For each combination that occurs, the facts of a statement lead to one bucket. Where a
//! bucket has many expressions, a [`Filter`] finds in one pass over the text which of them can
//! match. Buckets and filters only leave out what cannot match: each candidate is still checked.

use super::filter::Filter;
use super::memo::{Matching, Memo};
use super::{Candidates, Rule};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Columns that the rules of a bucket name, as bits.
const USER: u8 = 1;
const SCHEMA: u8 = 2;
const DIGEST: u8 = 4;
const CLIENT: u8 = 8;
const ADDR: u8 = 16;
const PORT: u8 = 32;

/// Each costs a look into the table for each statement. Rules that name something else than these
/// many combinations are looked up by less than they name.
const GROUPS_MAX: usize = 33;

/// Fewer expressions than this are tried one by one.
const FILTERED_MIN: usize = 8;

/// Shorter chains are walked through as they are.
const INDEXED_MIN: usize = 8;

/// Values by which rules are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The chain's flag.
    pub flag: u32,
    /// The client's user.
    pub user: &'a str,
    /// The session's schema.
    pub schema: &'a str,
    /// Where the client comes from.
    pub client_addr: &'a str,
    /// The address it connected to.
    pub proxy_addr: &'a str,
    /// The port it connected to.
    pub proxy_port: u16,
    /// The digest: hash and text.
    pub digest: Option<(u64, &'a [u8])>,
    /// The statement, as earlier rules have rewritten it.
    pub text: &'a [u8],
}

/// A combination of things that rules name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Group {
    names: u8,
    /// Length of `client_addr` before its `%`; none if there is no `%`.
    head: Option<u8>,
}

/// Rules that name the same.
#[derive(Debug)]
struct Bucket {
    hash: u64,
    group: u8,
    /// Always candidates; ascending.
    always: Box<[u32]>,
    /// Of these positions, what the filters pass on.
    filters: Option<Box<Filters>>,
    /// One of the rules, to compare with.
    sample: u32,
}

#[derive(Debug)]
struct Filters {
    /// By `match_digest`.
    digest: Filter,
    /// By `match_pattern`.
    text: Filter,
    /// Which bucket it is to the memo.
    number: u32,
}

/// Positions by what their rules name.
#[derive(Debug, Default)]
pub(super) struct Index {
    groups: Vec<Group>,
    buckets: HashTable<Bucket>,
    /// Some bucket looks at the text of the statement.
    by_text: bool,
    is_whole: bool,
    len: u32,
}

fn mix(hash: u64, part: u64) -> u64 {
    (hash ^ part)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
}

fn text_hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

impl Group {
    fn of(rule: &Rule) -> Self {
        let mut names = 0;
        for (bit, named) in [
            (USER, rule.username.is_some()),
            (SCHEMA, rule.schemaname.is_some()),
            (DIGEST, rule.digest.is_some()),
            (ADDR, rule.proxy_addr.is_some()),
            (PORT, rule.proxy_port.is_some()),
        ] {
            if named {
                names |= bit;
            }
        }
        let mut head = None;
        if let Some(address) = &rule.client_addr {
            head = address
                .head()
                .map(|head| u8::try_from(head.len()).unwrap_or(u8::MAX));
            // `%…` tells nothing, and no address is that long.
            if !matches!(head, Some(0 | u8::MAX)) {
                names |= CLIENT;
            } else {
                head = None;
            }
        }
        Self { names, head }
    }

    /// Where its rules are: in their own group, or else in that of those which asks for the most of
    /// what they name. The first asks for nothing.
    fn home(self, groups: &[Self]) -> usize {
        let is_part = |group: &Self| {
            group.names & !self.names == 0 && (group.names & CLIENT == 0 || group.head == self.head)
        };
        let asked = |group: &Self| (*group == self, group.names.count_ones());
        let parts = groups
            .iter()
            .enumerate()
            .filter(|(_, group)| is_part(group));
        parts
            .max_by_key(|(at, group)| (asked(group), usize::MAX - at))
            .map_or(0, |(at, _)| at)
    }

    /// The key in this group of a rule.
    fn key(self, rule: &Rule) -> u64 {
        let client = rule
            .client_addr
            .as_ref()
            .map_or("", |address| address.fixed());
        self.hash(
            rule.flag_in,
            || text_hash(rule.username.as_deref().unwrap_or_default()),
            || text_hash(rule.schemaname.as_deref().unwrap_or_default()),
            rule.digest.unwrap_or_default(),
            client,
            rule.proxy_addr.as_deref().unwrap_or_default(),
            rule.proxy_port.unwrap_or_default(),
        )
    }

    #[inline]
    #[allow(
        clippy::too_many_arguments,
        reason = "one for each thing that a rule can name"
    )]
    fn hash(
        self,
        flag: u32,
        user: impl FnOnce() -> u64,
        schema: impl FnOnce() -> u64,
        digest: u64,
        client: &str,
        proxy_addr: &str,
        proxy_port: u16,
    ) -> u64 {
        let mut hash = mix(
            u64::from(self.names) << 8 | u64::from(self.head.unwrap_or(u8::MAX)),
            u64::from(flag),
        );
        if self.names & USER != 0 {
            hash = mix(hash, user());
        }
        if self.names & SCHEMA != 0 {
            hash = mix(hash, schema());
        }
        if self.names & DIGEST != 0 {
            hash = mix(hash, digest);
        }
        if self.names & CLIENT != 0 {
            hash = mix(hash, text_hash(client));
        }
        if self.names & ADDR != 0 {
            hash = mix(hash, text_hash(proxy_addr));
        }
        if self.names & PORT != 0 {
            hash = mix(hash, u64::from(proxy_port));
        }
        hash ^ hash >> 32
    }

    /// Whether the rules of a bucket, of which this is one, name what is asked for.
    fn fits(self, rule: &Rule, asked: &Asked<'_>, client: &str) -> bool {
        let named = |bit| self.names & bit != 0;
        rule.flag_in == asked.flag
            && (!named(USER) || rule.username.as_deref() == Some(asked.user))
            && (!named(SCHEMA) || rule.schemaname.as_deref() == Some(asked.schema))
            && (!named(DIGEST) || rule.digest == asked.digest.map(|(hash, _)| hash))
            && (!named(CLIENT) || rule.client_addr.as_ref().map(|one| one.fixed()) == Some(client))
            && (!named(ADDR) || rule.proxy_addr.as_deref() == Some(asked.proxy_addr))
            && (!named(PORT) || rule.proxy_port == Some(asked.proxy_port))
    }

    /// Whether two rules have the same key.
    fn is_same(self, a: &Rule, b: &Rule) -> bool {
        let asked = Asked {
            flag: b.flag_in,
            user: b.username.as_deref().unwrap_or_default(),
            schema: b.schemaname.as_deref().unwrap_or_default(),
            client_addr: "",
            proxy_addr: b.proxy_addr.as_deref().unwrap_or_default(),
            proxy_port: b.proxy_port.unwrap_or_default(),
            digest: b.digest.map(|hash| (hash, &b""[..])),
            text: b"",
        };
        let client = b.client_addr.as_ref().map_or("", |address| address.fixed());
        self.fits(a, &asked, client)
    }
}

impl Index {
    pub(super) fn of(chain: &[Rule], pause: &dyn Fn()) -> Self {
        let len = u32::try_from(chain.len()).unwrap_or(u32::MAX);
        if chain.len() < INDEXED_MIN {
            return Self {
                is_whole: true,
                len,
                ..Self::default()
            };
        }
        let groups = groups(chain);
        let mut gathered: HashTable<(u64, usize, Vec<u32>)> = HashTable::new();
        for (position, rule) in (0..).zip(chain) {
            pause();
            let own = Group::of(rule);
            let at = own.home(&groups);
            let hash = groups[at].key(rule);
            let same = |(known, group, positions): &(u64, usize, Vec<u32>)| {
                *known == hash
                    && *group == at
                    && groups[at].is_same(&chain[positions[0] as usize], rule)
            };
            let entry = gathered
                .entry(hash, same, |(hash, ..)| *hash)
                .or_insert_with(|| (hash, at, Vec::new()));
            entry.into_mut().2.push(position);
        }
        let mut index = Self {
            groups,
            len,
            ..Self::default()
        };
        let mut numbers = 0..;
        for (hash, group, positions) in gathered {
            pause();
            let sample = positions[0];
            let (always, filters) = filtered(chain, positions, &mut numbers, pause);
            index.by_text |= filters
                .as_ref()
                .is_some_and(|filters| !filters.text.is_empty());
            let group = u8::try_from(group).expect("there are at most GROUPS_MAX");
            let bucket = Bucket {
                hash,
                group,
                always: always.into(),
                filters: filters.map(Box::new),
                sample,
            };
            index
                .buckets
                .insert_unique(hash, bucket, |bucket| bucket.hash);
        }
        index
    }

    /// The candidates from position `from` on.
    #[inline]
    pub(super) fn candidates<'i>(
        &'i self,
        chain: &[Rule],
        asked: &Asked<'_>,
        from: u32,
        mut memo: Option<&mut Memo>,
    ) -> Candidates<'i> {
        if self.is_whole {
            return Candidates::whole(from, self.len);
        }
        let mut candidates = Candidates::default();
        let (mut user, mut schema) = (None, None);
        for (at, group) in self.groups.iter().enumerate() {
            let digest = match asked.digest {
                Some((digest, _)) => digest,
                None if group.names & DIGEST != 0 => continue,
                None => 0,
            };
            let client = match group.head {
                Some(head) => match asked.client_addr.get(..usize::from(head)) {
                    Some(client) => client,
                    None => continue,
                },
                None => asked.client_addr,
            };
            let hash = group.hash(
                asked.flag,
                || *user.get_or_insert_with(|| text_hash(asked.user)),
                || *schema.get_or_insert_with(|| text_hash(asked.schema)),
                digest,
                client,
                asked.proxy_addr,
                asked.proxy_port,
            );
            let fits = |bucket: &Bucket| {
                bucket.hash == hash
                    && usize::from(bucket.group) == at
                    && group.fits(&chain[bucket.sample as usize], asked, client)
            };
            let Some(bucket) = self.buckets.find(hash, fits) else {
                continue;
            };
            candidates.add_list(&bucket.always, from);
            if let Some(filters) = &bucket.filters {
                filters.pass(chain, asked, from, &mut candidates, memo.as_deref_mut());
            }
        }
        candidates.order();
        candidates
    }

    /// Whether a rewritten text has other candidates.
    pub(super) const fn by_text(&self) -> bool {
        self.by_text
    }

    /// Bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let one = |bucket: &Bucket| {
            let filters = bucket.filters.as_ref().map_or(0, |filters| {
                size_of::<Filters>() + filters.digest.bytes() + filters.text.bytes()
            });
            size_of_val(&*bucket.always) + filters
        };
        self.buckets.allocation_size() + self.buckets.iter().map(one).sum::<usize>()
    }
}

/// The combinations that occur, without the rarest if there are too many. The first names nothing.
fn groups(chain: &[Rule]) -> Vec<Group> {
    let mut counted: Vec<(Group, usize)> = Vec::new();
    for rule in chain {
        let own = Group::of(rule);
        match counted.iter_mut().find(|(group, _)| *group == own) {
            Some((_, count)) => *count += 1,
            None => counted.push((own, 1)),
        }
    }
    let nothing = Group {
        names: 0,
        head: None,
    };
    counted.retain(|(group, _)| *group != nothing);
    counted.sort_by_key(|(_, count)| usize::MAX - count);
    let named = counted
        .into_iter()
        .map(|(group, _)| group)
        .take(GROUPS_MAX - 1);
    std::iter::once(nothing).chain(named).collect()
}

/// The positions that are always candidates, and the filters of the others.
fn filtered(
    chain: &[Rule],
    positions: Vec<u32>,
    numbers: &mut impl Iterator<Item = u32>,
    pause: &dyn Fn(),
) -> (Vec<u32>, Option<Filters>) {
    let (mut always, mut by_digest, mut by_text) = (Vec::new(), Vec::new(), Vec::new());
    for &position in &positions {
        pause();
        let rule = &chain[position as usize];
        match (&rule.match_digest, &rule.match_pattern) {
            // The expressions of a negated one must not match.
            _ if rule.negate_match_pattern => always.push(position),
            (Some(digest), _) => by_digest.push((position, digest.needed())),
            (None, Some(text)) => by_text.push((position, text.needed())),
            (None, None) => always.push(position),
        }
    }
    if by_digest.len() + by_text.len() < FILTERED_MIN {
        return (positions, None);
    }
    let (digest, unknown) = Filter::of(by_digest);
    always.extend(unknown);
    let (text, unknown) = Filter::of(by_text);
    always.extend(unknown);
    always.sort_unstable();
    if digest.is_empty() && text.is_empty() {
        return (always, None);
    }
    let number = numbers.next().expect("there are fewer buckets than rules");
    (
        always,
        Some(Filters {
            digest,
            text,
            number,
        }),
    )
}

impl Filters {
    fn pass(
        &self,
        chain: &[Rule],
        asked: &Asked<'_>,
        from: u32,
        candidates: &mut Candidates<'_>,
        memo: Option<&mut Memo>,
    ) {
        if let Some((hash, digest)) = asked.digest.filter(|_| !self.digest.is_empty()) {
            match memo {
                Some(memo) => {
                    let matching =
                        memo.matching(self.number, hash, digest, || self.matching(chain, digest));
                    candidates.add_found(matching, from, true);
                }
                None => self.digest.candidates(digest, &mut |positions| {
                    candidates.add_found(positions, from, false)
                }),
            }
        }
        if !self.text.is_empty() {
            self.text.candidates(asked.text, &mut |positions| {
                candidates.add_found(positions, from, false)
            });
        }
    }

    /// Of the rules by digest, those whose `match_digest` matches.
    fn matching(&self, chain: &[Rule], digest: &[u8]) -> Matching {
        let (mut found, mut gave_up) = (Vec::new(), 0);
        self.digest.candidates(digest, &mut |positions| {
            found.extend_from_slice(positions);
            if found.len() > 4096 {
                found.sort_unstable();
                found.dedup();
            }
        });
        found.sort_unstable();
        found.dedup();
        found.retain(|position| {
            let rule = &chain[*position as usize];
            rule.match_digest
                .as_ref()
                .is_some_and(|pattern| rule.fits(pattern, digest, &mut || gave_up += 1))
        });
        Matching {
            positions: found.into(),
            gave_up,
        }
    }
}
