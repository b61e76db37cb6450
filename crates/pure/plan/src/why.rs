//! What decided, and which rules matched on the way.

/// The reasons of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// Reason for the hostgroup, or for the answer.
    pub by: By,
    hits: Hits,
}

/// Reason for the hostgroup, or for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Nothing else did: `mysql_users.default_hostgroup`.
    Default,
    /// The user is a fast-forward user: rules are not asked.
    FastForward,
    /// The rule at this position of the chain.
    Rule(u32),
    /// A row of `mysql_query_rules_fast_routing`.
    FastRouting,
    /// The read/write split: it only reads.
    Read,
    /// The statement only reads, but no server among the readers takes it: to the user's default.
    NoReader,
    /// Nobody serves where it was going: `hostgroup_settings.fallback_hostgroup`.
    Fallback,
    /// A hint in the first comment.
    Hint,
    /// A script.
    Script,
    /// The statement must see what may be missing where it was going.
    Fresh,
    /// The map of sharded tables: its partition is there.
    Shard,
    /// The map of sharded tables, and the split of its partition's writer, which is here: it only reads.
    ShardRead(u32),
    /// A transaction is open there.
    Transaction,
    /// State of the session is there that cannot be brought elsewhere.
    Lock,
    /// The firewall refuses it.
    Firewall,
}

/// Most statements match fewer rules than this.
const INLINE: usize = 5;

#[derive(Debug, Clone)]
struct Hits {
    inline: [u32; INLINE],
    /// How many of `inline` count; all are in `more` once that is in use.
    len: u8,
    more: Vec<u32>,
}

impl PartialEq for Hits {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Hits {}

impl Hits {
    fn as_slice(&self) -> &[u32] {
        if self.more.is_empty() {
            &self.inline[..usize::from(self.len)]
        } else {
            &self.more
        }
    }
}

impl Why {
    pub(crate) const fn new() -> Self {
        Self {
            by: By::Default,
            hits: Hits {
                inline: [0; INLINE],
                len: 0,
                more: Vec::new(),
            },
        }
    }

    /// Whether the read/write split has led it to readers.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(self.by, By::Read | By::ShardRead(_))
    }

    /// Positions in the chain of the rules that matched, in the order in which they did; one that
    /// was met again (mysql-query_processor_iterations) is there again. Each is a hit.
    #[must_use]
    pub fn hits(&self) -> &[u32] {
        self.hits.as_slice()
    }

    pub(crate) fn hit(&mut self, position: u32) {
        let hits = &mut self.hits;
        let len = usize::from(hits.len);
        if len < INLINE {
            hits.inline[len] = position;
            hits.len += 1;
        } else {
            if hits.more.is_empty() {
                hits.more.extend_from_slice(&hits.inline);
            }
            hits.more.push(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_kept_in_order_however_many() {
        let mut why = Why::new();
        for position in 0..20 {
            assert_eq!(why.hits(), (0..position).collect::<Vec<_>>());
            why.hit(position);
        }
    }
}
