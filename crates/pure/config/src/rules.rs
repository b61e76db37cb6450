//! `mysql_query_rules`, compiled: the chain in the order of rule_id, and which of it can concern a
//! session at all.

mod address;
mod candidates;
mod check;
mod expressions;
mod filter;
mod flags;
mod index;
mod memo;

pub use address::AddressPattern;
pub use candidates::{Candidate, Candidates};
pub use expressions::{Alone, Help, Step};
pub use index::Asked;
pub use memo::Memo;

pub(crate) use check::c_number;

use crate::fast_routing::{self, FastRouting};
use crate::{Dialect, FastRoutingRow, Pattern, Refusal, Replacement, RuleRow, Variables};
use flags::NextFlags;
use index::Index;
use std::sync::Arc;

/// The active rules and the fast routing table.
#[derive(Debug, Default)]
pub struct Rules {
    chain: Vec<Rule>,
    index: Arc<Index>,
    fast: Arc<FastRouting>,
    notices: Arc<[Refusal]>,
    /// Positions of those that ask for more than user, schema and digest.
    unsure: Arc<[u32]>,
    next_flags: Arc<NextFlags>,
    needs_digest: bool,
    watches_writes: bool,
    repeats: Repeats,
    /// How the expressions were read.
    dialect: Option<Dialect>,
}

/// Statements of one user in one schema for which the rules decide alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeats {
    /// Those that differ in values only: their skeleton ([`sql::write_skeleton`]) is one.
    #[default]
    Always,
    /// As long as no value has a newline, likewise.
    OnOneLine,
    /// None for certain: an expression looks at values, or chance, the client's address or the listener decides.
    Never,
}

/// One active rule. What is `None` asks nothing or sets nothing.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its key, which orders the chain.
    pub rule_id: i64,
    /// Flag that the chain must have for the rule to be looked at.
    pub flag_in: u32,
    /// The client's user.
    pub username: Option<Arc<str>>,
    /// The session's schema.
    pub schemaname: Option<Arc<str>>,
    /// Where the client comes from.
    pub client_addr: Option<AddressPattern>,
    /// The address the client connected to.
    pub proxy_addr: Option<Arc<str>>,
    /// The port the client connected to.
    pub proxy_port: Option<u16>,
    /// Hash of the digest.
    pub digest: Option<u64>,
    /// Tried on the text of the digest.
    pub match_digest: Option<Pattern>,
    /// Tried on the statement, as earlier rules have rewritten it.
    pub match_pattern: Option<Pattern>,
    /// The expressions must not match.
    pub negate_match_pattern: bool,
    /// The flag of the chain from here on.
    pub flag_out: Option<u32>,
    /// Where there is no `flag_out`: flags to draw from, with their weights.
    pub flag_outs: Option<Arc<[(u32, u32)]>>,
    /// Replacement of what matches `match_pattern`, and whether everywhere.
    pub replace: Option<(Arc<Replacement>, bool)>,
    /// Where the statement goes.
    pub destination_hostgroup: Option<u32>,
    /// How long its result may be reused.
    pub cache_ttl_ms: Option<u64>,
    /// Whether results without rows are kept as well.
    pub cache_empty_result: Option<bool>,
    /// How long to wait for another session that fetches the same.
    pub cache_timeout_ms: Option<u32>,
    /// Whether writes through this proxy end the use of what it keeps: `cache_invalidate` in
    /// `attributes`.
    pub cache_invalidate: Option<bool>,
    /// Whether it is tried again when its connection broke.
    pub reconnect: Option<bool>,
    /// How long it may run.
    pub timeout_ms: Option<u64>,
    /// How often it is tried again.
    pub retries: Option<u32>,
    /// How long it is held back.
    pub delay_ms: Option<u32>,
    /// The flag that the chain begins with from the session's next statement on.
    pub next_flag_in: Option<u32>,
    /// The client gets this error.
    pub error_msg: Option<Arc<str>>,
    /// The client gets OK with this text.
    pub ok_msg: Option<Arc<str>>,
    /// 0: the session keeps its connection; 1: it may give it back; 2: as without, since no `@`
    /// matters here.
    pub multiplex: Option<u8>,
    /// The hostgroup whose writes the statement must see.
    pub gtid_from_hostgroup: Option<u32>,
    /// Whether it is logged.
    pub log: Option<bool>,
    /// Where a copy of the statement goes.
    pub mirror_hostgroup: Option<u32>,
    /// The flag with which the copy goes through the chain by itself.
    pub mirror_flag_out: Option<u32>,
    /// Whether the copy's result is compared with the client's.
    pub mirror_compare: Option<bool>,
    /// A result with more rows ends with an error after so many.
    pub rows_max: Option<u64>,
    /// So many statements that it matches are sent in a second.
    pub statements_per_sec: Option<u32>,
    /// Priority of the statements that it matches.
    pub priority: Option<u8>,
    /// Whether it is traced, whatever chance says.
    pub trace: Option<bool>,
    /// Name of a script that sees the statement. One that rules name sees no others.
    pub script: Option<Arc<str>>,
    /// The chain ends here.
    pub apply: bool,
    row: Arc<RuleRow>,
}

impl Repeats {
    /// Of all rules together.
    fn of(chain: &[Rule]) -> Self {
        let worse = |one, other| match (one, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::OnOneLine, _) | (_, Self::OnOneLine) => Self::OnOneLine,
            (Self::Always, Self::Always) => Self::Always,
        };
        chain.iter().map(Rule::repeats).fold(Self::Always, worse)
    }
}

impl Rule {
    /// Whether it depends on where the client is, on the listener or on the statement itself.
    const fn asks_beyond_digest(&self) -> bool {
        self.client_addr.is_some()
            || self.proxy_addr.is_some()
            || self.proxy_port.is_some()
            || self.match_pattern.is_some()
    }

    fn repeats(&self) -> Repeats {
        let looks_elsewhere = self.client_addr.is_some()
            || self.proxy_addr.is_some()
            || self.proxy_port.is_some()
            || self.flag_outs.is_some()
            || self.replace.is_some();
        match &self.match_pattern {
            _ if looks_elsewhere => Repeats::Never,
            None => Repeats::Always,
            Some(pattern) if pattern.is_blind_to_values() => Repeats::OnOneLine,
            Some(_) => Repeats::Never,
        }
    }

    /// The row, as `runtime_mysql_query_rules` has it.
    #[must_use]
    pub fn row(&self) -> &RuleRow {
        &self.row
    }
}

impl Rule {
    /// Whether one of its expressions lets it match. Where PCRE gives up the expression does not
    /// match, unless the rule refuses statements: nobody shall get past it by a statement that is
    /// made for that.
    pub fn fits(&self, pattern: &Pattern, text: &[u8], gave_up: &mut dyn FnMut()) -> bool {
        match pattern.look(text) {
            Some(found) => found != self.negate_match_pattern,
            None => {
                gave_up();
                self.error_msg.is_some() || self.negate_match_pattern
            }
        }
    }
}

impl Rules {
    /// From the rows of `mysql_query_rules` and `mysql_query_rules_fast_routing`; inactive rules
    /// are left out.
    pub fn build(
        rules: impl IntoIterator<Item = RuleRow>,
        fast: impl IntoIterator<Item = FastRoutingRow>,
        variables: &Variables,
    ) -> Result<Self, Vec<Refusal>> {
        Self::build_with_help(&Self::default(), rules, fast, variables, &Alone)
    }

    /// Builds rules from both tables with help, on a machine that has other work. Expressions that
    /// `before` has are not compiled again: it takes as long as what is new.
    pub fn build_with_help(
        before: &Self,
        rules: impl IntoIterator<Item = RuleRow>,
        fast: impl IntoIterator<Item = FastRoutingRow>,
        variables: &Variables,
        help: &dyn Help,
    ) -> Result<Self, Vec<Refusal>> {
        let mut refused = Vec::new();
        let dialect = if variables.mysql_query_processor_regex == 2 {
            Dialect::Re2
        } else {
            Dialect::Pcre
        };
        let (chain, notices) = check::chain(rules, (dialect, before), &mut refused, help);
        let mut refusals = fast_routing::refusals();
        let pause = &|| help.pause();
        let fast = FastRouting::build(fast, &mut refusals, pause);
        refused.extend(refusals.into_list());
        if !refused.is_empty() {
            return Err(refused);
        }
        Ok(Self {
            index: Arc::new(Index::of(&chain, pause)),
            needs_digest: chain
                .iter()
                .any(|rule| rule.digest.is_some() || rule.match_digest.is_some()),
            unsure: (0..)
                .zip(&chain)
                .filter(|(_, rule)| rule.asks_beyond_digest())
                .map(|(position, _)| position)
                .collect(),
            next_flags: Arc::new(NextFlags::of(&chain)),
            watches_writes: chain.iter().any(|rule| rule.cache_invalidate == Some(true)),
            repeats: Repeats::of(&chain),
            chain,
            fast: Arc::new(fast),
            notices: notices.into(),
            dialect: Some(dialect),
        })
    }

    /// Copies the rules for one core, with scratch memory of its own for the expressions: see
    /// [`crate::Snapshot::for_core`].
    #[must_use]
    pub fn for_core(&self, pause: &dyn Fn()) -> Self {
        let copy = |rule: &Rule| {
            pause();
            rule.clone()
        };
        Self {
            chain: self.chain.iter().map(copy).collect(),
            index: Arc::clone(&self.index),
            fast: Arc::clone(&self.fast),
            notices: Arc::clone(&self.notices),
            unsure: Arc::clone(&self.unsure),
            next_flags: Arc::clone(&self.next_flags),
            needs_digest: self.needs_digest,
            watches_writes: self.watches_writes,
            repeats: self.repeats,
            dialect: self.dialect,
        }
    }

    /// Frees what it takes, rule by rule.
    pub fn take_apart(self, pause: &dyn Fn()) {
        for rule in self.chain {
            drop(rule);
            pause();
        }
    }

    /// The rules in the order of rule_id. A position in it is what hits are counted by.
    #[must_use]
    pub fn chain(&self) -> &[Rule] {
        &self.chain
    }

    /// The rules from position `from` on that may match; no other can. With a memo, which must have
    /// seen no other rules than these, expressions of `match_digest` run once for a digest.
    #[must_use]
    #[inline]
    pub fn candidates(
        &self,
        asked: &Asked<'_>,
        from: u32,
        memo: Option<&mut Memo>,
    ) -> Candidates<'_> {
        self.index.candidates(&self.chain, asked, from, memo)
    }

    /// The rules that may match, and besides those all that ask for more than user, schema and
    /// digest: what is told of a digest depends on no others. Some come twice, one behind the
    /// other.
    #[must_use]
    pub fn candidates_and_unsure(&self, asked: &Asked<'_>, from: u32) -> Candidates<'_> {
        let mut candidates = self.index.candidates(&self.chain, asked, from, None);
        candidates.add_besides(&self.unsure, from);
        candidates
    }

    /// All rules from position `from` on: what an explanation walks through.
    #[must_use]
    pub fn all_from(&self, from: u32) -> Candidates<'_> {
        Candidates::whole(from, u32::try_from(self.chain.len()).unwrap_or(u32::MAX))
    }

    /// Whether a text that a rule has rewritten may have other candidates.
    #[must_use]
    pub fn candidates_by_text(&self) -> bool {
        self.index.by_text()
    }

    /// Bytes of the index, which all cores share.
    #[must_use]
    pub fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    /// Bytes of rules and fast routing, nearly, without what their expressions compile to.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_rule = |rule: &Rule| {
            let row = rule.row();
            let texts = [
                &row.username,
                &row.schemaname,
                &row.client_addr,
                &row.proxy_addr,
                &row.digest,
                &row.match_digest,
                &row.match_pattern,
                &row.re_modifiers,
                &row.replace_pattern,
                &row.error_msg,
                &row.OK_msg,
                &row.comment,
            ];
            let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
            size_of::<Rule>() + row.attributes.len() + texts
        };
        let chain = self.chain.iter().map(of_rule).sum::<usize>();
        chain + self.index_bytes() + self.fast.bytes()
    }

    /// The fast routing table.
    #[must_use]
    pub fn fast(&self) -> &FastRouting {
        &self.fast
    }

    /// Whether some rule asks for the digest: otherwise nobody needs to make it for the rules.
    #[must_use]
    pub const fn needs_digest(&self) -> bool {
        self.needs_digest
    }

    /// Statements for which they decide alike.
    #[must_use]
    pub const fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// Whether some rule's cached results end with writes: otherwise nobody needs to look at those.
    #[must_use]
    pub const fn watches_writes(&self) -> bool {
        self.watches_writes
    }

    /// Whether some rule leaves this flag to a session's next statement; never of 0, with which
    /// every session begins.
    #[must_use]
    pub fn leaves_flag(&self, flag: u32) -> bool {
        self.next_flags.has(flag)
    }

    /// Whether a statement of this user may begin with another flag than 0, because of one before.
    #[must_use]
    pub fn may_leave_a_flag_to(&self, user: &str) -> bool {
        self.next_flags.may_be_of(user)
    }

    /// Returns the notices: what was accepted and has less effect than it says.
    #[must_use]
    pub fn notices(&self) -> &[Refusal] {
        &self.notices
    }

    /// The rows of `runtime_mysql_query_rules`.
    pub fn rows(&self) -> impl Iterator<Item = &RuleRow> {
        self.chain.iter().map(Rule::row)
    }
}
