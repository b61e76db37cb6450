//! A client's result and a mirror's, compared: the verdicts of a core, by digest.

use bridge::MirrorRow;
use sql::{DigestOptions, Lexing};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use wire::response::RowSum;

/// Digests whose verdicts a core keeps; those of others are not.
const DIGESTS_MAX: usize = 10_000;

/// One of the two results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) error: Option<u16>,
    pub(crate) affected: u64,
    pub(crate) sum: RowSum,
    pub(crate) time_us: u64,
    /// Rows that a rule allows, if the result had more: nobody knows which those were.
    pub(crate) more_than: Option<u64>,
}

/// Two results of one statement, of which either may come first, or never.
pub(crate) struct Pair {
    hostgroup: u32,
    text: Box<[u8]>,
    lexing: Lexing,
    client: Cell<Option<Side>>,
    mirror: Cell<Option<Side>>,
}

impl Pair {
    pub(crate) fn new(hostgroup: u32, text: &[u8], lexing: Lexing) -> Self {
        Self {
            hostgroup,
            text: text.into(),
            lexing,
            client: Cell::new(None),
            mirror: Cell::new(None),
        }
    }

    /// Returns how many bytes wait with this pair.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// False if there is a verdict now and no room for it.
    #[must_use]
    pub(crate) fn client_said(
        &self,
        verdicts: &Verdicts,
        side: Side,
        now_s: u64,
        options: &DigestOptions,
    ) -> bool {
        self.client.set(Some(side));
        self.judge(verdicts, now_s, options)
    }

    /// As [`Self::client_said`].
    #[must_use]
    pub(crate) fn mirror_said(
        &self,
        verdicts: &Verdicts,
        side: Side,
        now_s: u64,
        options: &DigestOptions,
    ) -> bool {
        self.mirror.set(Some(side));
        self.judge(verdicts, now_s, options)
    }

    fn judge(&self, verdicts: &Verdicts, now_s: u64, options: &DigestOptions) -> bool {
        let (Some(client), Some(mirror)) = (self.client.get(), self.mirror.get()) else {
            return true;
        };
        let mut text = Vec::new();
        let digest = sql::digest(&self.text, options, &mut text);
        let difference = Difference::between(&client, &mirror, is_ordered(&self.text, self.lexing));
        verdicts.add(
            (self.hostgroup, digest),
            &text,
            [&client, &mirror],
            difference,
            now_s,
        )
    }
}

/// Whether the order of its rows is part of the result: ORDER BY outside of parentheses.
fn is_ordered(text: &[u8], lexing: Lexing) -> bool {
    let (mut depth, mut after_order) = (0_u32, false);
    for token in lexing.words(text) {
        if token.is_sign(b'(') {
            depth += 1;
        } else if token.is_sign(b')') {
            depth = depth.saturating_sub(1);
        } else if after_order && token.is("BY") {
            return true;
        }
        after_order = depth == 0 && token.is("ORDER");
    }
    false
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    Errors(Option<u16>, Option<u16>),
    Rows(u64, u64),
    /// The client's had more than so many, and was cut there; the mirror's had not.
    FewerThan(u64, u64),
    Affected(u64, u64),
    Content(u64),
    Order(u64),
}

impl Difference {
    fn between(client: &Side, mirror: &Side, ordered: bool) -> Option<Self> {
        if client.error != mirror.error {
            return Some(Self::Errors(client.error, mirror.error));
        }
        if let Some(rows_max) = client.more_than {
            // The first rows of two results without an order may be any: the rest says nothing.
            return (mirror.sum.rows <= rows_max)
                .then_some(Self::FewerThan(rows_max, mirror.sum.rows));
        }
        if client.sum.rows != mirror.sum.rows {
            return Some(Self::Rows(client.sum.rows, mirror.sum.rows));
        }
        if client.affected != mirror.affected {
            return Some(Self::Affected(client.affected, mirror.affected));
        }
        if client.sum.unordered != mirror.sum.unordered {
            return Some(Self::Content(client.sum.rows));
        }
        (ordered && client.sum.ordered != mirror.sum.ordered)
            .then_some(Self::Order(client.sum.rows))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |error: Option<u16>| {
            error.map_or_else(|| "no error".to_owned(), |code| format!("error {code}"))
        };
        match *self {
            Self::Errors(client, mirror) => {
                write!(f, "client: {}, mirror: {}", said(client), said(mirror))
            }
            Self::Rows(client, mirror) => write!(f, "client: {client} rows, mirror: {mirror}"),
            Self::FewerThan(rows_max, mirror) => {
                write!(f, "client: more than {rows_max} rows, mirror: {mirror}")
            }
            Self::Affected(client, mirror) => {
                write!(f, "client: {client} rows changed, mirror: {mirror}")
            }
            Self::Content(rows) => write!(f, "{rows} rows each, with other values"),
            Self::Order(rows) => write!(f, "the same {rows} rows in another order"),
        }
    }
}

#[derive(Default)]
struct Verdict {
    text: Box<[u8]>,
    count: u64,
    same: u64,
    different: u64,
    errors: u64,
    last: Option<(Difference, u64)>,
    client_us: u64,
    mirror_us: u64,
}

/// By hostgroup of the mirror and digest; and the results that sessions have just relayed, by
/// session: an idle one has no room for it.
#[derive(Default)]
pub(crate) struct Verdicts(
    RefCell<BTreeMap<(u32, u64), Verdict>>,
    RefCell<BTreeMap<u32, Side>>,
);

impl Verdicts {
    pub(crate) fn relayed(&self, session: u32, side: Side) {
        self.1.borrow_mut().insert(session, side);
    }

    pub(crate) fn take(&self, session: u32) -> Option<Side> {
        self.1.borrow_mut().remove(&session)
    }

    /// False if there is no room for it.
    fn add(
        &self,
        key: (u32, u64),
        text: &[u8],
        [client, mirror]: [&Side; 2],
        difference: Option<Difference>,
        now_s: u64,
    ) -> bool {
        let mut all = self.0.borrow_mut();
        if all.len() >= DIGESTS_MAX && !all.contains_key(&key) {
            return false;
        }
        let verdict = all.entry(key).or_insert_with(|| Verdict {
            text: text.into(),
            ..Verdict::default()
        });
        verdict.count += 1;
        verdict.client_us += client.time_us;
        verdict.mirror_us += mirror.time_us;
        match difference {
            None => verdict.same += 1,
            Some(Difference::Errors(..)) => verdict.errors += 1,
            Some(_) => verdict.different += 1,
        }
        verdict.last = difference
            .map(|difference| (difference, now_s))
            .or(verdict.last);
        true
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<MirrorRow> {
        let mut all = self.0.borrow_mut();
        let rows = all.iter().map(|((hostgroup, digest), verdict)| MirrorRow {
            hostgroup: *hostgroup,
            digest: *digest,
            text: String::from_utf8_lossy(&verdict.text).into(),
            count: verdict.count,
            same: verdict.same,
            different: verdict.different,
            errors: verdict.errors,
            last_difference: verdict.last.map_or_else(
                || Arc::from(""),
                |(difference, _)| difference.to_string().into(),
            ),
            last_difference_at: verdict.last.map_or(0, |(_, at)| at),
            client_us: verdict.client_us,
            mirror_us: verdict.mirror_us,
        });
        let rows = rows.collect();
        if reset {
            all.clear();
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(error: Option<u16>, rows: u64, ordered: u64, unordered: u64) -> Side {
        Side {
            error,
            affected: 0,
            sum: RowSum {
                rows,
                ordered,
                unordered,
            },
            time_us: 5,
            more_than: None,
        }
    }

    #[test]
    fn the_order_of_rows_matters_where_the_statement_asks_for_one() {
        for (text, ordered) in [
            ("SELECT a FROM t", false),
            ("SELECT a FROM t ORDER BY a", true),
            ("SELECT a FROM (SELECT a FROM t ORDER BY a) x", false),
            ("SELECT 'ORDER BY' FROM t", false),
            ("select a from t order /* x */ by a", true),
            ("SELECT `order` FROM t", false),
        ] {
            assert_eq!(
                is_ordered(text.as_bytes(), Lexing::Escapes),
                ordered,
                "{text}"
            );
        }
        // Where its string ends depends on the session.
        let path = br"SELECT a FROM t WHERE p = 'c:\' ORDER BY a";
        assert!(is_ordered(path, Lexing::NoEscapes) && !is_ordered(path, Lexing::Escapes));
    }

    #[test]
    fn verdicts_are_counted_by_digest_when_both_have_spoken() {
        let verdicts = Verdicts::default();
        let options = DigestOptions::default();
        let judge = |text: &str, client, mirror| {
            let pair = Pair::new(9, text.as_bytes(), Lexing::Escapes);
            assert!(pair.mirror_said(&verdicts, mirror, 100, &options));
            pair.client_said(&verdicts, client, 100, &options)
        };
        assert!(Pair::new(9, b"SELECT 1", Lexing::Escapes).mirror_said(
            &verdicts,
            side(None, 1, 1, 1),
            100,
            &options
        ));
        assert!(verdicts.rows(false).is_empty(), "one side says nothing");
        let told = |verdicts: &Verdicts| verdicts.rows(false).pop().unwrap();
        assert!(judge("SELECT 1", side(None, 2, 3, 4), side(None, 2, 9, 4)));
        assert_eq!((told(&verdicts).same, told(&verdicts).count), (1, 1));
        assert!(judge("SELECT 2", side(None, 2, 3, 4), side(None, 1, 3, 4)));
        assert_eq!(
            &*told(&verdicts).last_difference,
            "client: 2 rows, mirror: 1"
        );
        assert!(judge("SELECT 2", side(None, 2, 3, 4), side(None, 2, 3, 5)));
        assert_eq!(
            &*told(&verdicts).last_difference,
            "2 rows each, with other values"
        );
        assert!(judge(
            "SELECT 3",
            side(None, 0, 0, 0),
            side(Some(1146), 0, 0, 0)
        ));
        let row = told(&verdicts);
        assert_eq!(
            &*row.last_difference,
            "client: no error, mirror: error 1146"
        );
        assert_eq!(
            (
                row.count,
                row.same,
                row.different,
                row.errors,
                row.mirror_us
            ),
            (4, 1, 2, 1, 20)
        );
        assert!(judge(
            "SELECT a FROM t ORDER BY a",
            side(None, 2, 3, 4),
            side(None, 2, 9, 4)
        ));
        assert!(
            verdicts
                .rows(true)
                .iter()
                .any(|row| &*row.last_difference == "the same 2 rows in another order")
        );
        assert!(verdicts.rows(false).is_empty());
        let same = side(None, 2, 3, 4);
        for n in 0..DIGESTS_MAX {
            assert!(judge(&format!("SELECT a{n}"), same, same));
        }
        assert!(!judge("SELECT b", same, same), "there is room for so many");
        assert!(judge("SELECT a1", same, same));
    }

    #[test]
    fn of_a_result_that_is_cut_only_the_number_of_rows_is_compared() {
        let cut = Side {
            more_than: Some(5),
            ..side(None, 7, 1, 1)
        };
        assert_eq!(Difference::between(&cut, &side(None, 6, 2, 2), true), None);
        let fewer = Difference::between(&cut, &side(None, 5, 2, 2), true).unwrap();
        assert_eq!(fewer.to_string(), "client: more than 5 rows, mirror: 5");
        assert_eq!(
            Difference::between(&cut, &side(Some(1146), 0, 0, 0), true),
            Some(Difference::Errors(None, Some(1146)))
        );
    }
}
