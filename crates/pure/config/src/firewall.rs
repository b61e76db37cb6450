//! `mysql_firewall_whitelist_users`, `_rules` and `_sqli_fingerprints`: whose statements are looked
//! at, and which may run.
//!
//! A rule takes some thirty bytes: what many share (user, address, schema, flag) is kept once. A
//! look takes two looks into tables of hashes, however many rules there are, and allocates nothing.

use crate::refusal::Refusals;
use crate::rules::c_number;
use crate::{FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow, Refusal};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet, HashTable};
use std::hash::BuildHasher;

/// Treatment of a user's statements that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They run, and nobody looks at them.
    Off,
    /// They run, and are told.
    Detecting,
    /// They are refused.
    Protecting,
}

impl Mode {
    /// As the table spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Detecting => "DETECTING",
            Self::Protecting => "PROTECTING",
        }
    }
}

/// The active rows of the three tables.
#[derive(Debug, Default)]
pub struct Firewall {
    users: Users,
    places: Vec<Place>,
    /// Indexes of `places`, by what is in them.
    place_at: HashTable<u32>,
    rules: Vec<Rule>,
    /// Indexes of `rules`, by place and digest.
    rule_at: HashTable<u32>,
    /// The comments of rules, each once.
    comments: Vec<Box<str>>,
    fingerprints: HashSet<Box<str>, FixedState>,
}

/// By user: the rows' addresses, modes and comments.
type Users = HashMap<Box<str>, Vec<(Box<str>, Mode, Box<str>)>, FixedState>;

/// Values that the rules of one place have in common.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    user: Box<str>,
    client: Box<str>,
    schema: Box<str>,
    flag: u32,
}

impl Place {
    fn hash(user: &str, client: &str, schema: &str, flag: u32) -> u64 {
        FixedState::default().hash_one((user, client, schema, flag))
    }

    fn own_hash(&self) -> u64 {
        Self::hash(&self.user, &self.client, &self.schema, self.flag)
    }
}

#[derive(Debug)]
struct Rule {
    digest: u64,
    place: u32,
    comment: u32,
}

impl Rule {
    fn hash(place: u32, digest: u64) -> u64 {
        FixedState::default().hash_one((place, digest))
    }
}

impl Firewall {
    /// From the rows; inactive ones are left out.
    ///
    /// # Errors
    /// Whatever cannot be honoured, of all three tables.
    pub fn build(
        users: impl IntoIterator<Item = FirewallUserRow>,
        rules: impl IntoIterator<Item = FirewallRuleRow>,
        fingerprints: impl IntoIterator<Item = FirewallFingerprintRow>,
    ) -> Result<Self, Vec<Refusal>> {
        let mut built = Self::default();
        let mut refused = built.take_users(users.into_iter().filter(|row| row.active != 0));
        refused.extend(built.take_rules(rules.into_iter().filter(|row| row.active != 0)));
        refused.extend(
            built.take_fingerprints(fingerprints.into_iter().filter(|row| row.active != 0)),
        );
        if refused.is_empty() {
            Ok(built)
        } else {
            Err(refused)
        }
    }

    fn take_users(&mut self, rows: impl Iterator<Item = FirewallUserRow>) -> Vec<Refusal> {
        let mut refusals = Refusals::of("mysql_firewall_whitelist_users");
        for row in rows {
            let modes = [Mode::Off, Mode::Detecting, Mode::Protecting];
            let Some(mode) = modes.into_iter().find(|mode| mode.name() == row.mode) else {
                let key = || {
                    format!(
                        "username {}, client_address {}",
                        row.username, row.client_address
                    )
                };
                refusals.add(
                    key,
                    "mode",
                    format!(
                        "must be OFF, DETECTING or PROTECTING; '{}' is not",
                        row.mode
                    ),
                );
                continue;
            };
            self.users.entry(row.username.into()).or_default().push((
                row.client_address.into(),
                mode,
                row.comment.into(),
            ));
        }
        refusals.into_list()
    }

    fn take_rules(&mut self, rows: impl Iterator<Item = FirewallRuleRow>) -> Vec<Refusal> {
        let mut refusals = Refusals::of("mysql_firewall_whitelist_rules");
        let mut comments: HashMap<Box<str>, u32, FixedState> = HashMap::default();
        for row in rows {
            let key = || {
                let FirewallRuleRow {
                    username,
                    client_address,
                    schemaname,
                    flagIN,
                    digest,
                    ..
                } = &row;
                format!(
                    "username {username}, client_address {client_address}, schemaname {schemaname}, flagIN {flagIN}, digest {digest}"
                )
            };
            let flag = refusals.number(key, "flagIN", row.flagIN, (0, i64::from(u32::MAX)));
            let Some(digest) = c_number(row.digest.trim()) else {
                refusals.add(
                    key,
                    "digest",
                    format!(
                        "must be a number such as 0x1D8D2DD2EE6E8B0A; '{}' is not",
                        row.digest
                    ),
                );
                continue;
            };
            if self.rules.len() >= u32::MAX as usize {
                refusals.add(String::new, "", "has more rows than can be numbered");
                break;
            }
            let place = self.place(row.username, row.client_address, row.schemaname, flag);
            let comment = *comments
                .entry(row.comment.into())
                .or_insert_with_key(|comment| {
                    self.comments.push(comment.clone());
                    self.comments.len() as u32 - 1
                });
            let hash = Rule::hash(place, digest);
            let same = |at: &u32| {
                self.rules
                    .get(*at as usize)
                    .is_some_and(|rule| rule.place == place && rule.digest == digest)
            };
            // `0xAB` and `0x00ab` are two rows, and one digest.
            if self.rule_at.find(hash, same).is_none() {
                let at = self.rules.len() as u32;
                self.rules.push(Rule {
                    digest,
                    place,
                    comment,
                });
                let rules = &self.rules;
                self.rule_at.insert_unique(hash, at, |at| {
                    rules
                        .get(*at as usize)
                        .map_or(0, |rule| Rule::hash(rule.place, rule.digest))
                });
            }
        }
        self.rules.shrink_to_fit();
        refusals.into_list()
    }

    /// The index of a place, which is made if it is new.
    fn place(&mut self, user: String, client: String, schema: String, flag: u32) -> u32 {
        let place = Place {
            user: user.into(),
            client: client.into(),
            schema: schema.into(),
            flag,
        };
        if let Some(at) = self.place_at.find(place.own_hash(), |at| {
            self.places.get(*at as usize) == Some(&place)
        }) {
            return *at;
        }
        // There are no more places than rules.
        let at = self.places.len() as u32;
        let hash = place.own_hash();
        self.places.push(place);
        let places = &self.places;
        self.place_at.insert_unique(hash, at, |at| {
            places.get(*at as usize).map_or(0, Place::own_hash)
        });
        at
    }

    fn take_fingerprints(
        &mut self,
        rows: impl Iterator<Item = FirewallFingerprintRow>,
    ) -> Vec<Refusal> {
        let mut refusals = Refusals::of("mysql_firewall_whitelist_sqli_fingerprints");
        for row in rows {
            if row.fingerprint.is_empty() {
                refusals.add(|| "fingerprint ".into(), "fingerprint", "must not be empty");
            }
            self.fingerprints.insert(row.fingerprint.into());
        }
        refusals.into_list()
    }

    /// Returns what happens to this user's statements, and the client_address of the row that says
    /// so. That is the client's own, or the empty one, which is for all addresses that have no row.
    /// `None`: there is no row.
    #[must_use]
    pub fn mode(&self, user: &str, client: &str) -> Option<(Mode, &str)> {
        let rows = self.users.get(user)?;
        let row = |wanted: &str| {
            rows.iter()
                .find(|(client, ..)| **client == *wanted)
                .map(|(client, mode, _)| (*mode, &**client))
        };
        row(client).or_else(|| row(""))
    }

    /// The addresses of all rows of a user.
    pub fn addresses(&self, user: &str) -> impl Iterator<Item = &str> {
        self.users
            .get(user)
            .into_iter()
            .flatten()
            .map(|(client, ..)| &**client)
    }

    /// Whether a rule names this statement. `client` is the client_address of the user's row, and
    /// empty for a user without one.
    #[must_use]
    pub fn allows(&self, user: &str, client: &str, schema: &str, flag: u32, digest: u64) -> bool {
        let same = |at: &u32| {
            self.places.get(*at as usize).is_some_and(|place| {
                place.flag == flag
                    && *place.schema == *schema
                    && *place.user == *user
                    && *place.client == *client
            })
        };
        let Some(&place) = self
            .place_at
            .find(Place::hash(user, client, schema, flag), same)
        else {
            return false;
        };
        let same = |at: &u32| {
            self.rules
                .get(*at as usize)
                .is_some_and(|rule| rule.digest == digest && rule.place == place)
        };
        self.rule_at.find(Rule::hash(place, digest), same).is_some()
    }

    /// Whether statements with this fingerprint are no injections.
    #[must_use]
    pub fn is_harmless(&self, fingerprint: &str) -> bool {
        self.fingerprints.contains(fingerprint)
    }

    /// Bytes that users take, and rules, nearly.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        let of_row = |(client, _, comment): &(Box<str>, Mode, Box<str>)| {
            size_of::<(Box<str>, Mode, Box<str>)>() + client.len() + comment.len()
        };
        let users = self
            .users
            .iter()
            .map(|(user, rows)| user.len() + rows.iter().map(of_row).sum::<usize>());
        let places = self.places.iter().map(|place| {
            size_of::<Place>() + place.user.len() + place.client.len() + place.schema.len()
        });
        let comments = self.comments.iter();
        let comments = comments.map(|comment| size_of::<Box<str>>() + comment.len());
        let rules = size_of_val(&*self.rules)
            + self.rule_at.allocation_size()
            + self.place_at.allocation_size()
            + places.sum::<usize>()
            + comments.sum::<usize>();
        (self.users.allocation_size() + users.sum::<usize>(), rules)
    }

    /// The rows of `runtime_mysql_firewall_whitelist_users`.
    pub fn user_rows(&self) -> impl Iterator<Item = FirewallUserRow> {
        self.users.iter().flat_map(|(user, rows)| {
            rows.iter().map(|(client, mode, comment)| FirewallUserRow {
                active: 1,
                username: user.to_string(),
                client_address: client.to_string(),
                mode: mode.name().into(),
                comment: comment.to_string(),
            })
        })
    }

    /// The rows of `runtime_mysql_firewall_whitelist_rules`; a digest is spelled as the statistics
    /// spell it.
    pub fn rule_rows(&self) -> impl Iterator<Item = FirewallRuleRow> {
        self.rules.iter().filter_map(|rule| {
            let place = self.places.get(rule.place as usize)?;
            Some(FirewallRuleRow {
                active: 1,
                username: place.user.to_string(),
                client_address: place.client.to_string(),
                schemaname: place.schema.to_string(),
                flagIN: i64::from(place.flag),
                digest: format!("0x{:016X}", rule.digest),
                comment: self
                    .comments
                    .get(rule.comment as usize)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            })
        })
    }

    /// The rows of `runtime_mysql_firewall_whitelist_sqli_fingerprints`.
    pub fn fingerprint_rows(&self) -> impl Iterator<Item = FirewallFingerprintRow> {
        self.fingerprints
            .iter()
            .map(|fingerprint| FirewallFingerprintRow {
                active: 1,
                fingerprint: fingerprint.to_string(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(username: &str, client_address: &str, mode: &str) -> FirewallUserRow {
        FirewallUserRow {
            username: username.into(),
            client_address: client_address.into(),
            mode: mode.into(),
            ..FirewallUserRow::default()
        }
    }

    fn rule(username: &str, client_address: &str, digest: &str) -> FirewallRuleRow {
        FirewallRuleRow {
            username: username.into(),
            client_address: client_address.into(),
            schemaname: "s".into(),
            digest: digest.into(),
            ..FirewallRuleRow::default()
        }
    }

    #[test]
    fn an_address_of_its_own_goes_before_the_row_for_all() {
        let users = [
            user("u", "", "PROTECTING"),
            user("u", "10.0.0.1", "OFF"),
            user("v", "10.0.0.1", "DETECTING"),
            FirewallUserRow {
                active: 0,
                ..user("w", "", "OFF")
            },
        ];
        let firewall = Firewall::build(users, [], []).unwrap();
        assert_eq!(firewall.mode("u", "10.0.0.2"), Some((Mode::Protecting, "")));
        assert_eq!(
            firewall.mode("u", "10.0.0.1"),
            Some((Mode::Off, "10.0.0.1"))
        );
        assert_eq!(firewall.mode("v", "10.0.0.2"), None);
        assert_eq!(firewall.mode("w", ""), None);
        assert_eq!(firewall.user_rows().count(), 3);
    }

    #[test]
    fn a_rule_is_for_one_user_address_schema_flag_and_digest() {
        let rules = [
            rule("u", "", "0x1F"),
            rule("u", "", " 0x001f"),
            FirewallRuleRow {
                flagIN: 3,
                ..rule("u", "10.0.0.9", "32")
            },
        ];
        let firewall = Firewall::build(
            [],
            rules,
            [FirewallFingerprintRow {
                fingerprint: "1&1o1".into(),
                active: 1,
            }],
        )
        .unwrap();
        assert!(firewall.allows("u", "", "s", 0, 31));
        assert!(firewall.allows("u", "10.0.0.9", "s", 3, 32));
        for (user, client, schema, flag, digest) in [
            ("v", "", "s", 0, 31),
            ("u", "10.0.0.9", "s", 0, 31),
            ("u", "", "t", 0, 31),
            ("u", "", "s", 1, 31),
            ("u", "", "s", 0, 32),
        ] {
            assert!(
                !firewall.allows(user, client, schema, flag, digest),
                "{user} {client} {schema} {flag} {digest}"
            );
        }
        let rows: Vec<_> = firewall
            .rule_rows()
            .map(|row| (row.client_address, row.flagIN, row.digest))
            .collect();
        let digest = |text: &str| text.to_owned();
        assert_eq!(
            rows,
            [
                (String::new(), 0, digest("0x000000000000001F")),
                (digest("10.0.0.9"), 3, digest("0x0000000000000020"))
            ]
        );
        assert!(firewall.is_harmless("1&1o1") && !firewall.is_harmless("s&1o1"));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_every_reason() {
        let rules = [
            FirewallRuleRow {
                flagIN: -1,
                ..rule("u", "", "x")
            },
            rule("u", "", "0xA"),
            rule("u", "", ""),
        ];
        let refused = Firewall::build(
            [user("u", "", "ON")],
            rules,
            [FirewallFingerprintRow::default()],
        )
        .unwrap_err();
        let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
        let of_rule =
            "mysql_firewall_whitelist_rules (username u, client_address , schemaname s, flagIN";
        assert_eq!(
            words,
            [
                "mysql_firewall_whitelist_users (username u, client_address ): mode must be OFF, DETECTING or PROTECTING; 'ON' is not",
                &format!(
                    "{of_rule} -1, digest x): flagIN must be from 0 to 4294967295; '-1' is not"
                ),
                &format!(
                    "{of_rule} -1, digest x): digest must be a number such as 0x1D8D2DD2EE6E8B0A; 'x' is not"
                ),
                &format!(
                    "{of_rule} 0, digest ): digest must be a number such as 0x1D8D2DD2EE6E8B0A; '' is not"
                ),
                "mysql_firewall_whitelist_sqli_fingerprints (fingerprint ): fingerprint must not be empty",
            ]
        );
    }

    #[test]
    fn hundreds_of_thousands_of_rules_are_found_one_by_one() {
        let digest = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let rows = (0..300_000_u64).map(|n| FirewallRuleRow {
            schemaname: format!("s{}", n % 1000),
            ..rule("u", "", &format!("0x{:X}", digest(n)))
        });
        let firewall = Firewall::build([], rows, []).unwrap();
        assert_eq!(
            (
                firewall.rules.len(),
                firewall.places.len(),
                firewall.comments.len()
            ),
            (300_000, 1000, 1)
        );
        for n in 0..300_000 {
            assert!(firewall.allows("u", "", &format!("s{}", n % 1000), 0, digest(n)));
            assert!(!firewall.allows("u", "", &format!("s{}", (n + 1) % 1000), 0, digest(n)));
        }
    }
}
