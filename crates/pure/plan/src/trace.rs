//! Who watches the decision: nobody, or `explain`. The same code runs for both.

use crate::Plan;
use config::Rule;
use std::fmt;

/// Watches a decision being made.
pub(crate) trait Trace {
    /// Which rules are looked at besides those that may match.
    const LOOKS_AT: Besides;

    /// A rule was looked at and does not match.
    fn missed(&mut self, rule: &Rule, why: Miss);

    /// A rule matches; the chain has this flag now.
    fn matched(&mut self, rule: &Rule, flag: u32);

    /// Something else was looked at.
    fn saw(&mut self, what: &str, outcome: impl FnOnce() -> String);

    /// The end.
    fn decided(&mut self, plan: &Plan);
}

/// Which rules are looked at besides those that may match.
pub(crate) enum Besides {
    /// No others.
    Nothing,
    /// Those that ask for more than a digest tells.
    Unsure,
    /// All.
    Everything,
}

/// Nobody watches.
pub(crate) struct Silent;

impl Trace for Silent {
    const LOOKS_AT: Besides = Besides::Nothing;

    #[inline(always)]
    fn missed(&mut self, _: &Rule, _: Miss) {}

    #[inline(always)]
    fn matched(&mut self, _: &Rule, _: u32) {}

    #[inline(always)]
    fn saw(&mut self, _: &str, _: impl FnOnce() -> String) {}

    #[inline(always)]
    fn decided(&mut self, _: &Plan) {}
}

/// The first reason why a rule does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// The chain has this flag.
    FlagIn(u32),
    /// `username` is another.
    Username,
    /// `schemaname` is another.
    Schemaname,
    /// `client_addr` is another.
    ClientAddr,
    /// `proxy_addr` is another.
    ProxyAddr,
    /// `proxy_port` is another.
    ProxyPort,
    /// The statement has no digest: mysql-query_digests is off, or it is too long.
    NoDigest,
    /// `digest` is another.
    Digest,
    /// `match_digest` does not match; with `negate_match_pattern`, it does.
    MatchDigest,
    /// `match_pattern` does not match; with `negate_match_pattern`, it does.
    MatchPattern,
}

impl Miss {
    /// In words that follow "no: ".
    pub(crate) fn words(self, rule: &Rule) -> impl fmt::Display {
        let matches = if rule.negate_match_pattern {
            "matches"
        } else {
            "does not match"
        };
        let row = rule.row();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        match self {
            Self::FlagIn(flag) => format!("flagIN is {}, the chain has {flag}", rule.flag_in),
            Self::Username => format!("username is '{}'", text(&row.username)),
            Self::Schemaname => format!("schemaname is '{}'", text(&row.schemaname)),
            Self::ClientAddr => format!("client_addr is '{}'", text(&row.client_addr)),
            Self::ProxyAddr => format!("proxy_addr is '{}'", text(&row.proxy_addr)),
            Self::ProxyPort => format!("proxy_port is {}", rule.proxy_port.unwrap_or_default()),
            Self::NoDigest => "it asks for a digest, and this statement has none".to_owned(),
            Self::Digest => format!("digest is {}", text(&row.digest)),
            Self::MatchDigest => format!("match_digest '{}' {matches}", text(&row.match_digest)),
            Self::MatchPattern => format!("match_pattern '{}' {matches}", text(&row.match_pattern)),
        }
    }
}
