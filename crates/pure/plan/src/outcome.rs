//! What was decided.

use crate::{Alarm, Bounds, By, Gather, Why};
use config::Rules;
use shards::{Undescribed, Wanted};
use std::fmt;
use std::sync::Arc;

/// Decision on what shall be done with a statement. In the common case it owns no heap memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Statement that is sent, and where. With an [`Answer`], nothing is: the leg then only says
    /// where the statement is counted.
    pub leg: Leg,
    /// Partitions whose rows become one result. Nothing else is sent then; the leg has what would
    /// be, on the first one's hostgroup.
    pub gather: Option<Box<Gather>>,
    /// The partition of a sharded table that it goes to. None where [`Plan::gather`] has them.
    pub partition: Option<Box<Partition>>,
    /// Answer that the client gets instead of a server's.
    pub answer: Option<Answer>,
    /// Reasons of the decision.
    pub why: Why,
    /// 0: the session keeps its connection; 1: it may give it back; 2: as without, since no `@`
    /// matters here.
    pub multiplex: Option<u8>,
    /// Milliseconds that it may run; mysql-default_query_timeout if `None` or 0.
    pub timeout_ms: Option<u64>,
    /// PCRE gave up on an expression of a rule.
    pub gave_up: bool,
    /// How often it may be tried again; mysql-query_retries_on_failure if `None`.
    pub retries: Option<u32>,
    /// How long it is held back; mysql-default_query_delay if `None`.
    pub delay_ms: Option<u32>,
    /// Whether it is tried again when its connection broke; mysql-default_reconnect if `None`.
    pub reconnect: Option<bool>,
    /// The flag that the chain begins with from the session's next statement on; `None` leaves it
    /// as it is.
    pub next_flag_in: Option<u32>,
    /// Whether it is logged; mysql-eventslog_default_log if `None`.
    pub log: Option<bool>,
    /// Whether it is traced, whatever chance says.
    pub trace: Option<bool>,
    /// How long its result may be reused. Never inside a transaction: its reads may have to see its
    /// own writes.
    pub cache_ttl_ms: Option<u64>,
    /// Whether a result without rows is kept as well.
    pub cache_empty_result: Option<bool>,
    /// How long to wait for another session that fetches the same.
    pub cache_timeout_ms: Option<u32>,
    /// Whether writes through this proxy to its tables end the use of its result.
    pub cache_invalidate: Option<bool>,
    /// A hint asks for a connection that nobody has used.
    pub new_connection: bool,
    /// The hostgroup whose writes it must see, as a rule has it.
    pub gtid_from_hostgroup: Option<u32>,
    /// How fresh a hint wants what it reads.
    pub bounds: Option<Box<Bounds>>,
    /// A result with more rows ends with an error after so many.
    pub(crate) rows_max: Option<Box<u64>>,
    /// Alarm of the firewall, whether it refuses or not.
    pub alarm: Option<Box<Alarm>>,
    /// A copy that goes elsewhere, whose answer nobody gets.
    pub mirror: Option<Box<Mirror>>,
    /// Wish of rules and hints for a copy so far.
    pub(crate) wish: crate::mirror::Wish,
}

/// The partition of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Name as `table.partition`; several of them where tables lie beside each other.
    pub names: Box<str>,
    /// Numbers that rows of an INSERT have got from a sequence.
    pub numbered: Option<Given>,
}

/// Numbers that rows of an INSERT have got from a sequence: they stand in the text that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    /// First of them: `LAST_INSERT_ID()`, once a row is there.
    pub first: u64,
    /// Whether the row may be one that was there before; then the server's answer has its number.
    pub may_update: bool,
}

/// The leg that nobody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// Statement that is sent, and where.
    pub leg: Leg,
    /// Milliseconds that it may run; mysql-default_query_timeout if `None` or 0.
    pub timeout_ms: Option<u64>,
    /// Milliseconds that it is held back, which no client waits for; 0 if `None`.
    pub delay_ms: Option<u32>,
    /// Whether its result is compared with the client's.
    pub compare: bool,
}

impl Plan {
    /// Numbers that its rows have got from a sequence.
    #[must_use]
    pub fn numbered(&self) -> Option<Given> {
        let of_many = self.gather.as_ref().and_then(|gather| gather.numbered);
        of_many.or_else(|| self.partition.as_ref()?.numbered)
    }

    /// To the session's default hostgroup, as long as nothing else is said.
    pub(crate) const fn to(hostgroup: u32) -> Self {
        Self {
            leg: Leg {
                hostgroup,
                statement: Text::AsIs,
            },
            gather: None,
            partition: None,
            answer: None,
            why: Why::new(),
            multiplex: None,
            timeout_ms: None,
            retries: None,
            delay_ms: None,
            reconnect: None,
            next_flag_in: None,
            log: None,
            trace: None,
            cache_ttl_ms: None,
            cache_empty_result: None,
            cache_timeout_ms: None,
            cache_invalidate: None,
            new_connection: false,
            gave_up: false,
            gtid_from_hostgroup: None,
            bounds: None,
            rows_max: None,
            alarm: None,
            mirror: None,
            wish: crate::mirror::Wish::NONE,
        }
    }

    /// The hostgroup that it is sent to; of several partitions the first one's.
    #[must_use]
    pub const fn hostgroup(&self) -> u32 {
        self.leg.hostgroup
    }

    pub(crate) fn send_to(&mut self, hostgroup: u32, by: By) {
        self.leg.hostgroup = hostgroup;
        self.why.by = by;
    }

    pub(crate) fn send_as_is(&mut self) {
        self.leg.statement = Text::AsIs;
    }

    /// Returns what rules have made of the statement.
    #[must_use]
    pub fn remade(&self) -> Option<&[u8]> {
        match &self.leg.statement {
            Text::Rewritten(text) => Some(text),
            Text::AsIs => None,
        }
    }

    /// Sends the statement to this hostgroup, unless a transaction keeps it elsewhere: what has
    /// become of it asks for what a connection there has.
    pub fn follow(&mut self, hostgroup: u32) {
        if self.why.by != By::Transaction {
            self.send_to(hostgroup, By::Lock);
        }
    }

    /// Where it goes, and nothing else that was said of it.
    pub(crate) fn way_alone(self) -> Self {
        let mut alone = Self::to(self.hostgroup());
        alone.why.by = self.why.by;
        alone.gave_up = self.gave_up;
        alone
    }

    /// A result with more rows ends with an error after so many.
    #[must_use]
    pub fn rows_max(&self) -> Option<u64> {
        self.rows_max.as_deref().copied()
    }

    /// Keeps the cache away from the statement: it is neither answered from there nor kept there.
    pub(crate) const fn uncache(&mut self) {
        self.cache_ttl_ms = None;
        self.cache_empty_result = None;
        self.cache_timeout_ms = None;
        self.cache_invalidate = None;
    }

    /// Whether the decision holds for every statement that differs in values only, of the same user in the same
    /// schema, in a session that has nothing anywhere but this transaction: nothing but rules, the default, fast
    /// routing, the read/write split or the transaction has made it. A read of the split holds for a session that
    /// has not written lately.
    /// Whether rules look at values is said by [`config::Rules::repeats`].
    #[must_use]
    pub fn repeats(&self) -> bool {
        matches!(
            self.why.by,
            By::Default | By::Rule(_) | By::FastRouting | By::Read | By::Transaction
        ) && self.answer.is_none()
            && self.alarm.is_none()
            && self.wish == crate::mirror::Wish::NONE
            && !self.gave_up
            && !self.is_causal()
    }

    /// In words, for people. The rules are those it was made with.
    #[must_use]
    pub const fn shown<'a>(&'a self, rules: &'a Rules) -> Shown<'a> {
        Shown { plan: self, rules }
    }
}

/// A statement sent to one hostgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leg {
    /// Where.
    pub hostgroup: u32,
    /// Text that is sent.
    pub statement: Text,
}

/// Text that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// Text of the client, as it was sent.
    AsIs,
    /// This.
    Rewritten(Box<[u8]>),
}

impl Text {
    /// The bytes to send for a statement that the client sent as `original`.
    #[must_use]
    pub fn of<'a>(&'a self, original: &'a [u8]) -> &'a [u8] {
        match self {
            Self::AsIs => original,
            Self::Rewritten(text) => text,
        }
    }
}

/// Answer that the client gets at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An error with this text: 1148, SQLSTATE 42000.
    Refuse(Arc<str>),
    /// An error with this text: 1235, SQLSTATE 42000.
    NotSupported(Arc<str>),
    /// OK with this text.
    Say(Arc<str>),
    /// No answer yet: so many rows want numbers of the sequence of a sharded table, which has this
    /// number in the map. With them it is decided again.
    Number {
        /// The table's number.
        table: u32,
        /// Rows without a number.
        count: u32,
    },
    /// No answer yet: the partitions of a sharded table that are made by themselves matter. When the map
    /// has all of them it is decided again.
    Partition {
        /// The table's number in the map.
        table: u32,
        /// The bucket whose partition must be there; `None` where only none may be missing.
        bucket: Option<Box<str>>,
    },
    /// No answer yet: an INSERT names no columns, and these are not known. With them it is decided
    /// again.
    Columns(Box<Undescribed>),
    /// No answer yet: look-ups say where its rows are, or must have their entries first. With that it is
    /// decided again.
    LookUp(Box<Wanted>),
}

/// A plan in words.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    plan: &'a Plan,
    rules: &'a Rules,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { answer, why, .. } = self.plan;
        match answer {
            Some(Answer::Refuse(text) | Answer::NotSupported(text)) => write!(f, "error '{text}'")?,
            Some(Answer::Say(text)) => write!(f, "OK '{text}'")?,
            Some(Answer::Number { count, .. }) => write!(f, "numbers for {count} rows first")?,
            Some(Answer::Partition {
                bucket: Some(bucket),
                ..
            }) => write!(f, "the partition of '{bucket}' first")?,
            Some(Answer::Partition { bucket: None, .. }) => {
                f.write_str("a look for new partitions first")?
            }
            Some(Answer::Columns(_)) => f.write_str("the columns of its table first")?,
            Some(Answer::LookUp(_)) => f.write_str("look-ups first")?,
            None => {
                let places = self.places();
                write!(f, "{}", places.join(" and "))?;
            }
        }
        match why.by {
            By::Rule(position) => write!(f, ", by rule {}", self.rule_id(position))?,
            by => write!(f, ", {}", words(by))?,
        }
        let plan = self.plan;
        option(f, "timeout_ms", plan.timeout_ms)?;
        option(f, "retries", plan.retries)?;
        option(f, "delay_ms", plan.delay_ms)?;
        option(f, "reconnect", plan.reconnect)?;
        option(f, "multiplex", plan.multiplex)?;
        option(f, "next_query_flagIN", plan.next_flag_in)?;
        option(f, "log", plan.log)?;
        option(f, "trace", plan.trace)?;
        option(f, "cache_ttl_ms", plan.cache_ttl_ms)?;
        option(f, "cache_empty_result", plan.cache_empty_result)?;
        option(f, "cache_timeout_ms", plan.cache_timeout_ms)?;
        option(f, "cache_invalidate", plan.cache_invalidate)?;
        option(f, "new_connection", plan.new_connection.then_some(true))?;
        option(f, "gtid_from_hostgroup", plan.gtid_from_hostgroup)?;
        plan.bounds
            .as_ref()
            .map_or(Ok(()), |bounds| write!(f, "; {bounds}"))?;
        if let Some(text) = plan.remade() {
            write!(f, "; rewritten: {}", String::from_utf8_lossy(text))?;
        }
        plan.gather
            .as_ref()
            .map_or(Ok(()), |gather| write!(f, "{gather}"))?;
        option(f, "max_rows", plan.rows_max())?;
        if let Some(alarm) = &plan.alarm {
            write!(f, "; firewall: {}", alarm.action.name())?;
            alarm
                .fingerprint
                .as_ref()
                .map_or(Ok(()), |print| write!(f, " {print}"))?;
        }
        if let Some(mirror) = &plan.mirror {
            write!(f, "; mirrored to hostgroup {}", mirror.leg.hostgroup)?;
            if mirror.compare {
                write!(f, " and compared")?;
            }
            if let Text::Rewritten(text) = &mirror.leg.statement {
                write!(f, " as: {}", String::from_utf8_lossy(text))?;
            }
            option(f, "mirror_timeout_ms", mirror.timeout_ms)?;
            option(f, "mirror_delay_ms", mirror.delay_ms)?;
        }
        Ok(())
    }
}

fn option(f: &mut fmt::Formatter<'_>, name: &str, value: Option<impl fmt::Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, "; {name}={value}"))
}

impl Shown<'_> {
    /// The hostgroups that are asked, each once.
    fn places(&self) -> Vec<String> {
        let gathered = self.plan.gather.iter().flat_map(|gather| &gather.parts);
        let mut places: Vec<_> = gathered.map(|part| part.hostgroup).collect();
        if places.is_empty() {
            places.push(self.plan.hostgroup());
        }
        places.sort_unstable();
        places.dedup();
        places
            .iter()
            .map(|hostgroup| format!("hostgroup {hostgroup}"))
            .collect()
    }

    fn rule_id(&self, position: u32) -> i64 {
        self.rules
            .chain()
            .get(position as usize)
            .map_or(-1, |rule| rule.rule_id)
    }
}

/// Why a statement goes where it goes.
const fn words(by: By) -> &'static str {
    match by {
        By::Default => "the user's default",
        By::FastForward => "the fast-forward user's default",
        By::FastRouting => "by fast routing",
        By::Read => "because it only reads",
        By::NoReader => "the user's default, as no reader takes it",
        By::Fallback => "the fallback, as nobody serves where it was going",
        By::Hint => "by a hint",
        By::Script => "by a script",
        By::Fresh => "because it must be fresh",
        By::Shard => "by the map of sharded tables",
        By::ShardRead(_) => "by the map of sharded tables, because it only reads",
        By::Transaction => "where the transaction is open",
        By::Lock => "where the session's state is",
        By::Firewall => "by the firewall",
        By::Rule(_) => "by a rule",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan is moved several times for each statement, and up to this size with a few
    /// instructions: 48 fewer than one word more.
    #[test]
    fn a_plan_is_small_enough_to_be_moved_cheaply() {
        assert!(size_of::<Plan>() <= 256, "{}", size_of::<Plan>());
    }
}
