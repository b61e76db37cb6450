//! The operator's variables: what a declaration is, how texts become values and values texts.
//!
//! The declarations themselves are one line each in `declared.rs`; [`REGISTRY`], the fields of
//! [`Variables`], their defaults, checks and descriptions all follow from there.

mod declared;

pub use declared::{REGISTRY, Variables};

use crate::Refusal;
use crate::networks::are_networks;
use crate::refusal::{Notices, Refusals};
use std::fmt;
use wire::charset;

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// With LOAD … TO RUNTIME.
    Live,
    /// When the proxy starts the next time.
    Restart,
    /// A change is accepted and kept, and does nothing yet.
    NotYet,
    /// A change is accepted and kept for the scripts that set the variable; there is nothing here
    /// that it could change.
    Moot,
}

impl Effect {
    /// Why a change does nothing, in words that follow the variable's name; `None` if it does
    /// something.
    const fn nothing(self) -> Option<&'static str> {
        match self {
            Self::Live | Self::Restart => None,
            Self::NotYet => Some("is accepted and kept, but has no effect yet"),
            Self::Moot => Some("is accepted and kept, but has no meaning here"),
        }
    }
}

/// Values that a variable can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number in a range.
    Int {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Any text.
    Text,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Listeners separated by `;`, each `ip:port` or the absolute path of a Unix socket; empty
    /// means the default.
    Interfaces,
    /// Networks separated by `,`, each `address/bits` or an address; `*` is every address.
    Networks,
    /// Name of a character set.
    Charset,
    /// Name of a collation.
    Collation,
    /// Ours to say: what the operator writes there is not kept.
    Fixed,
}

/// One variable.
#[derive(Clone, Copy)]
pub struct Variable {
    /// As `global_variables` has it: `mysql-wait_timeout`.
    pub name: &'static str,
    /// Values that the variable can have.
    pub kind: Kind,
    /// The value it has if nobody gives one.
    pub default: &'static str,
    /// One sentence, with the unit.
    pub about: &'static str,
    /// When a change takes effect.
    pub effect: Effect,
    value: fn(&Variables) -> Value<'_>,
    slot: fn(&mut Variables) -> Slot<'_>,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

enum Value<'a> {
    Bool(bool),
    Int(u64),
    Text(&'a str),
}

enum Slot<'a> {
    Bool(&'a mut bool),
    Int(&'a mut u64),
    Text(&'a mut Box<str>),
}

impl Variable {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        REGISTRY.iter().find(|variable| variable.name == name)
    }

    /// Returns what stands before the first `-`: `mysql`, `admin`, `sqliteserver`, `clickhouse`.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.name.split_once('-').map_or("", |(family, _)| family)
    }

    /// For people: [`Variable::about`], and what a change does.
    #[must_use]
    pub fn description(&self) -> String {
        let effect = match self.effect {
            Effect::Live => "",
            Effect::Restart => " Takes effect at the next start.",
            Effect::NotYet => " Accepted and kept, but without effect yet.",
            Effect::Moot => " Accepted and kept; without meaning here.",
        };
        format!("{}{effect}", self.about)
    }

    /// Returns the variable's values in words that follow "must be": `from 0 to 10`.
    #[must_use]
    pub fn range(&self) -> String {
        match self.kind {
            Kind::Bool => "true or false".into(),
            Kind::Int { min, max } => format!("from {min} to {max}"),
            Kind::Text | Kind::Fixed => "a text".into(),
            Kind::Choice(words) => words.join(" or "),
            Kind::Networks => {
                "a list of networks such as 10.0.0.0/8 separated by ',', or '*'".into()
            }
            Kind::Interfaces => "a list of ip:port or /path separated by ';'".into(),
            Kind::Charset => "the name of a character set".into(),
            Kind::Collation => "the name of a collation".into(),
        }
    }

    /// `text` as it would be kept, or the refusal.
    pub fn check(&self, text: &str) -> Result<String, Refusal> {
        let mut scratch = Variables::default();
        self.put(text, &mut scratch)?;
        Ok(self.text(&scratch))
    }

    /// Its value in `variables`, as text.
    #[must_use]
    pub fn text(&self, variables: &Variables) -> String {
        match (self.value)(variables) {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Text(value) => value.to_owned(),
        }
    }

    fn put(&self, text: &str, variables: &mut Variables) -> Result<(), Refusal> {
        let value = text.trim();
        let fine = match ((self.slot)(variables), self.kind) {
            (Slot::Bool(slot), _) => truth(value).map(|value| *slot = value),
            (Slot::Int(slot), Kind::Int { min, max }) => value
                .parse()
                .ok()
                .filter(|value| (min..=max).contains(value))
                .map(|value| *slot = value),
            (Slot::Int(_), _) => None,
            (Slot::Text(slot), kind) => match kind {
                Kind::Fixed => Some(()),
                Kind::Choice(words) => words
                    .iter()
                    .find(|word| word.eq_ignore_ascii_case(value))
                    .map(|word| *slot = (*word).into()),
                Kind::Interfaces if interfaces(value).next().is_none() => {
                    *slot = self.default.into();
                    Some(())
                }
                Kind::Interfaces => interfaces(value)
                    .all(is_interface)
                    .then(|| *slot = value.into()),
                Kind::Networks if value == "(null)" => {
                    *slot = self.default.into();
                    Some(())
                }
                Kind::Networks => are_networks(value).then(|| *slot = value.into()),
                Kind::Charset => charset::default_of(value).map(|_| *slot = value.into()),
                Kind::Collation => charset::by_name(value).map(|_| *slot = value.into()),
                // ProxySQL writes what was never set so, and databases and scripts of its users
                // have it.
                Kind::Text if value == "(null)" => {
                    *slot = self.default.into();
                    Some(())
                }
                Kind::Bool | Kind::Int { .. } | Kind::Text => {
                    *slot = text.into();
                    Some(())
                }
            },
        };
        fine.ok_or_else(|| Refusal {
            table: "global_variables",
            row: self.name.into(),
            column: self.name,
            words: format!("must be {}; '{text}' is not", self.range()),
        })
    }
}

fn truth(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is(&["true", "1", "on", "yes"]) {
        Some(true)
    } else if is(&["false", "0", "off", "no"]) {
        Some(false)
    } else {
        None
    }
}

/// The listeners of a variable such as mysql-interfaces: each `ip:port` or the absolute path of a
/// Unix socket.
pub fn interfaces(list: &str) -> impl Iterator<Item = &str> {
    list.split(';')
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

/// Pairs of user and password of a variable such as admin-admin_credentials: `user:password`,
/// separated by `;`.
pub fn credentials(list: &str) -> impl Iterator<Item = (&str, &str)> {
    list.split(';')
        .map(str::trim)
        .filter_map(|pair| pair.split_once(':'))
}

/// Whether these credentials are a default, or have no password: everybody knows them.
pub fn is_known_to_everybody((user, password): (&str, &str)) -> bool {
    password.is_empty() || [("admin", "admin"), ("stats", "stats")].contains(&(user, password))
}

/// Words for a user of such credentials who comes from another machine.
pub fn only_from_here(user: &str) -> String {
    format!(
        "User '{user}' can only connect locally: everybody knows its password, choose another in admin-admin_credentials or \
         admin-stats_credentials"
    )
}

fn is_interface(text: &str) -> bool {
    (text.starts_with('/') && text.len() > 1) || text.parse::<std::net::SocketAddr>().is_ok()
}

impl Variables {
    /// Whether clients are told that the server is a MariaDB.
    #[must_use]
    pub fn claims_mariadb(&self) -> bool {
        self.mysql_server_version.contains("MariaDB")
    }

    /// From the defaults and these (name, value) pairs. With the result come notices: what was set
    /// away from its default and has no effect yet.
    pub fn build<N: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(Self, Vec<Refusal>), Vec<Refusal>> {
        Self::default().with(pairs)
    }

    /// As [`Variables::build`], where what is not given stays as it is here: one family can be
    /// loaded alone.
    pub fn with<N: AsRef<str>, V: AsRef<str>>(
        &self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<(Self, Vec<Refusal>), Vec<Refusal>> {
        let mut variables = self.clone();
        let mut refusals = Refusals::of("global_variables");
        let mut notices = Notices::of("global_variables");
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            let Some(variable) = Variable::named(name) else {
                refusals.add(|| name.into(), "", format!("'{name}' is not a variable"));
                continue;
            };
            if let Err(refusal) = variable.put(value, &mut variables) {
                refusals.add(|| name.into(), variable.name, refusal.words);
            } else if let Some(words) = variable.effect.nothing()
                && variable.text(&variables) != variable.default
            {
                notices.add(|| name.into(), variable.name, words);
            }
        }
        variables.fit_collation(&mut notices);
        let collector = &variables.mysql_traces_endpoint;
        if !collector.is_empty()
            && let Err(words) = crate::Collector::parse(collector)
        {
            let name = "mysql-traces_endpoint";
            refusals.add(|| name.into(), name, words);
        }
        if let Err(words) = crate::HttpHosts::parse(&variables.mysql_script_mail_hosts) {
            let name = "mysql-script_mail_hosts";
            refusals.add(|| name.into(), name, words);
        }
        refusals.or((variables, notices.into_list()))
    }

    /// Tells in words what differs from `before` and takes effect at the next start only.
    #[must_use]
    pub fn waiting_for_a_start(&self, before: &Self) -> Vec<String> {
        let waits = |variable: &&Variable| {
            variable.effect == Effect::Restart && variable.text(self) != variable.text(before)
        };
        REGISTRY
            .iter()
            .filter(waits)
            .map(|variable| format!("{} takes effect at the next start", variable.name))
            .collect()
    }

    /// How statements are digested.
    #[must_use]
    pub fn digest_options(&self) -> sql::DigestOptions {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        sql::DigestOptions {
            max_digest_length: size(self.mysql_query_digests_max_digest_length),
            max_query_length: size(self.mysql_query_digests_max_query_length),
            grouping_limit: size(self.mysql_query_digests_grouping_limit),
            groups_grouping_limit: size(self.mysql_query_digests_groups_grouping_limit),
            lowercase: self.mysql_query_digests_lowercase,
            replace_null: self.mysql_query_digests_replace_null,
            no_digits: self.mysql_query_digests_no_digits,
            keep_comment: self.mysql_query_digests_keep_comment,
            normalize_digest_text: self.mysql_query_digests_normalize_digest_text,
        }
    }

    /// All, as (name, value), in the order of their names.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs: Vec<_> = REGISTRY
            .iter()
            .map(|variable| (variable.name, variable.text(self)))
            .collect();
        pairs.sort_unstable();
        pairs
    }

    /// A collation belongs to its character set. Scripts set only the character set and expect the
    /// collation to follow, so it does, with a notice.
    fn fit_collation(&mut self, notices: &mut Notices) {
        let of_collation =
            charset::by_name(&self.mysql_default_collation_connection).map(|found| found.charset);
        let Some(fitting) = charset::default_of(&self.mysql_default_charset) else {
            return;
        };
        if of_collation != Some(fitting.charset) {
            let words = format!("is '{}' now, to fit mysql-default_charset", fitting.name);
            let name = "mysql-default_collation_connection";
            notices.add(|| name.into(), name, &words);
            self.mysql_default_collation_connection = fitting.name.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(pairs: &[(&str, &str)]) -> Result<(Variables, Vec<Refusal>), Vec<Refusal>> {
        Variables::build(pairs.iter().copied())
    }

    #[test]
    fn names_follow_from_fields_and_defaults_are_valid() {
        let defaults = Variables::default();
        let mut names: Vec<_> = REGISTRY.iter().map(|variable| variable.name).collect();
        for variable in REGISTRY {
            assert_eq!(
                variable.text(&defaults),
                variable.default,
                "{}",
                variable.name
            );
            let checked = variable
                .check(variable.default)
                .unwrap_or_else(|refusal| panic!("{refusal}"));
            assert_eq!(checked, variable.default, "{}", variable.name);
            assert!(
                matches!(
                    variable.family(),
                    "mysql" | "admin" | "sqliteserver" | "clickhouse"
                ),
                "{}",
                variable.name
            );
            assert!(
                variable.about.ends_with('.'),
                "{}: a sentence ends with a full stop",
                variable.name
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REGISTRY.len());
        assert!(names.contains(&"mysql-query_cache_size_MB"));
    }

    #[test]
    fn all_refusals_come_at_once_in_the_operators_words() {
        let refusals = built(&[
            ("mysql-max_connections", "0"),
            ("mysql-multiplexing", "maybe"),
            ("mysql-nosuch", "1"),
            ("mysql-interfaces", "0.0.0.0"),
            ("mysql-default_charset", "klingon"),
            ("mysql-wait_timeout", "-1"),
        ])
        .unwrap_err();
        let words: Vec<_> = refusals.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "mysql-max_connections must be from 1 to 1000000; '0' is not",
                "mysql-multiplexing must be true or false; 'maybe' is not",
                "'mysql-nosuch' is not a variable",
                "mysql-interfaces must be a list of ip:port or /path separated by ';'; '0.0.0.0' is not",
                "mysql-default_charset must be the name of a character set; 'klingon' is not",
                "mysql-wait_timeout must be from 0 to 1728000000; '-1' is not",
            ]
        );
    }

    #[test]
    fn values_are_kept_in_one_spelling_and_loading_one_family_leaves_the_others() {
        let (first, notices) = built(&[
            ("mysql-multiplexing", "0"),
            ("mysql-default_session_track_gtids", "own_gtid"),
            ("mysql-aurora_max_lag_ms_only_read_from_replicas", "5"),
            ("mysql-interfaces", "127.0.0.1:6033; /tmp/m.sock;"),
            ("admin-version", "9.9"),
            ("admin-read_only", "TRUE"),
            ("mysql-ssl_p2s_ca", "(null)"),
        ])
        .unwrap();
        assert!(!first.mysql_multiplexing);
        assert_eq!(&*first.mysql_default_session_track_gtids, "OWN_GTID");
        assert!(notices.is_empty(), "{notices:?}");
        assert_eq!(&*first.mysql_ssl_p2s_ca, "");
        assert_eq!(
            interfaces(&first.mysql_interfaces).collect::<Vec<_>>(),
            ["127.0.0.1:6033", "/tmp/m.sock"]
        );
        let (second, _) = first.with([("mysql-interfaces", "")]).unwrap();
        assert_eq!(&*second.mysql_interfaces, "0.0.0.0:6033");
        assert!(second.admin_read_only);
        let pairs = second.pairs();
        assert!(pairs.contains(&("mysql-multiplexing", "false".into())));
        assert!(!pairs.contains(&("admin-version", "9.9".into())));
    }

    #[test]
    fn the_default_collation_follows_the_default_character_set() {
        let (both, notices) = built(&[
            ("mysql-default_charset", "utf8mb4"),
            ("mysql-default_collation_connection", "utf8mb4_unicode_ci"),
        ])
        .unwrap();
        assert_eq!(
            &*both.mysql_default_collation_connection,
            "utf8mb4_unicode_ci"
        );
        assert!(notices.is_empty());
        let (one, notices) = built(&[("mysql-default_charset", "latin1")]).unwrap();
        assert_eq!(
            &*one.mysql_default_collation_connection,
            "latin1_swedish_ci"
        );
        let words = "mysql-default_collation_connection is 'latin1_swedish_ci' now, to fit mysql-default_charset";
        assert_eq!(notices[0].to_string(), words);
    }
}
