//! How many partitions the statements of a digest need: asked with values that keys may have in the
//! place of those that a digest does not tell.

use crate::shards::{Sharded, outcome};
use crate::{Case, Guarded, SessionFacts, Statement};
use config::Snapshot;
use shards::{Facts, Making, Map, Numbering, Routed, Spread, spread};
use sql::bound::{self, Bound};
use sql::tree::{DoubleQuotes, tree};

/// Partitions of statements with one digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Width {
    /// For people: `point`, `all (4): …`, `refused: …`.
    pub words: String,
    /// The values of a statement do not matter.
    pub certain: bool,
}

/// Values that are tried, of each table.
const VALUES_MAX: usize = 4;
/// Rows of an INSERT with more columns are not told apart by their keys.
const COLUMNS_MAX: usize = 16;
/// A list that a digest shortens ends so.
const SHORTENED: &[u8] = b",...";

/// Looks a digest up in the map. `None`: it names no sharded table.
#[must_use]
pub fn width(snapshot: &Snapshot, session: &SessionFacts<'_>, digest: &[u8]) -> Option<Width> {
    let lexing = session.split.lexing;
    let text = with_lists(digest);
    let facts = Facts {
        schema: session.schema,
        lexing,
        quotes: DoubleQuotes::Strings,
        comment: None,
        parameters: None,
        prepares: false,
        numbers: Numbering::Whichever,
        columns: None,
        bound: None,
        looked: None,
    };
    let map = &snapshot.shards;
    let text = match shards::number(map, &text, &facts) {
        shards::Numbered::Done { text, .. } => text,
        _ => text,
    };
    let unknown = spread(map, &text, &facts);
    if unknown.spread == Spread::Plain || session.user.fast_forward {
        return None;
    }
    if let Spread::Refused(words) = &unknown.spread
        && tree(&text, lexing, DoubleQuotes::Strings).is_none()
    {
        return Some(Width {
            words: format!("refused: {words}"),
            certain: true,
        });
    }
    let limits = bound::limits(&text, lexing);
    let with = |keys: &[&str], every: usize| {
        let values: Vec<Bound> = values(&limits, keys, every).collect();
        let literals: Vec<_> = values.iter().map(Bound::literal).collect();
        let facts = Facts {
            parameters: Some(&literals),
            ..facts
        };
        (spread(map, &text, &facts), values)
    };
    let keys = keys(map, &text);
    let mut alike: Vec<_> = keys.iter().map(|key| (*key, with(&[key], 1).0)).collect();
    alike.sort_by_key(|(_, routed)| partitions(routed));
    let (key, first) = alike.first()?;
    let narrowest = with(&[key], 1);
    // Neighbours with other values, as `IN (?, ?)` may have them, or rows of a few columns.
    let other = alike
        .iter()
        .find(|(_, routed)| partitions(routed) == 1 && routed.spread != first.spread);
    let mixed = other
        .iter()
        .flat_map(|(other, _)| (1..=COLUMNS_MAX).map(|every| with(&[*key, *other], every)));
    let widest = mixed
        .filter(|(routed, _)| partitions(routed) < usize::MAX)
        .max_by_key(|(routed, _)| partitions(routed))
        .filter(|(routed, _)| partitions(routed) > partitions(&narrowest.0));
    let told = |(routed, values): &(Routed, Vec<Bound>)| {
        told(snapshot, session, &text, (routed, values, &facts))
    };
    let words = match &widest {
        Some(widest) => format!("{}; with other values {}", told(&narrowest), told(widest)),
        None => told(&narrowest),
    };
    Some(Width {
        words,
        certain: widest.is_none(),
    })
}

/// A number for LIMIT, and else one of these, so many places each in turn.
fn values<'v>(
    limits: &'v [bool],
    keys: &'v [&'v str],
    every: usize,
) -> impl Iterator<Item = Bound> + 'v {
    limits
        .iter()
        .enumerate()
        .map(move |(at, limits)| match limits {
            true => Bound::Number("1".into(), false),
            false => Bound::Text(keys[at / every % keys.len()].as_bytes().to_vec()),
        })
}

/// How many partitions it needs; more than any for what is refused.
fn partitions(routed: &Routed) -> usize {
    match &routed.spread {
        Spread::Plain => 0,
        Spread::Point(_) => 1,
        Spread::Some(legs) | Spread::All(legs) => legs.len(),
        Spread::Refused(_) => usize::MAX,
    }
}

/// Tells in words what becomes of a statement.
fn told(
    snapshot: &Snapshot,
    session: &SessionFacts<'_>,
    text: &[u8],
    (routed, values, facts): (&Routed, &[Bound], &Facts<'_>),
) -> String {
    let (kind, legs) = match &routed.spread {
        Spread::Plain => return "plain".into(),
        Spread::Point(_) => return "point".into(),
        Spread::Refused(_) => ("several", 0),
        Spread::Some(legs) => ("some", legs.len()),
        Spread::All(legs) => ("all", legs.len()),
    };
    let refused = match &routed.spread {
        Spread::Refused(words) => Some(words),
        _ => None,
    };
    let shown = match refused {
        Some(_) => kind.to_owned(),
        None if routed.looks_up => format!("looked up, else {kind} ({legs})"),
        None => format!("{kind} ({legs})"),
    };
    let asked = tree(text, facts.lexing, facts.quotes)
        .and_then(|tree| bound::put_in(text, &tree, facts.lexing, values));
    let Some(asked) = asked else {
        if let Some(words) = refused {
            return format!("refused: {words}");
        }
        let how = if routed.in_turn {
            ", one after another"
        } else {
            ""
        };
        return format!("{shown}{how}");
    };
    let statement = Statement {
        text: &asked,
        digest: None,
        comment: None,
        prepared: None,
        parameters: None,
        prepares: false,
        guarded: Guarded::Text,
        routed: crate::Routed::default(),
        numbers: Numbering::Whichever,
        making: Making::Whichever,
        columns: None,
        looked: None,
        answered: None,
    };
    let case = Case {
        snapshot,
        session,
        statement: &statement,
    };
    let again = spread(&snapshot.shards, &asked, facts);
    match outcome(&again, &asked, case, facts) {
        Sharded::Refused(_, words) if refused.is_some() => format!("refused: {words}"),
        Sharded::Refused(_, words) => format!("{shown}, refused: {words}"),
        Sharded::Gathered(gather) if gather.from_query.is_some() => {
            "its rows are read, and inserted where their keys belong".into()
        }
        Sharded::Gathered(gather) if gather.values.is_some() => {
            "queries inside are read first; then it goes where their values belong".into()
        }
        Sharded::Gathered(gather) if gather.loaded.is_some() => {
            "rows of a file go where their keys belong".into()
        }
        Sharded::Gathered(gather) => match (&gather.finishing, &gather.recipe) {
            (Some(finishing), _) => format!(
                "{shown}, finished on hostgroup {}: {}",
                finishing.hostgroup, finishing.why
            ),
            (None, Some(recipe)) => format!("{shown}, {recipe}"),
            (None, None) => format!("{shown}, all or none"),
        },
        Sharded::No
        | Sharded::Said(_)
        | Sharded::To(_)
        | Sharded::Unnumbered(..)
        | Sharded::Unmade(..)
        | Sharded::Undescribed(_)
        | Sharded::Unlooked(_) => shown,
    }
}

/// Values that keys of the tables may have whose names are here: of their partitions, a number, a
/// date.
fn keys<'m>(map: &'m Map, text: &[u8]) -> Vec<&'m str> {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let named = map
        .tables()
        .filter(|table| text.contains(&table.name.to_lowercase()));
    let mut keys = vec!["1", "2008-12-24"];
    for table in named {
        let values = table.homes.iter().map(|home| {
            let end = home.value.find([',', '.']).unwrap_or(home.value.len());
            home.value[..end].trim()
        });
        keys.extend(values.filter(|value| !value.is_empty()).take(VALUES_MAX));
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A digest whose shortened lists have one more of what they had.
fn with_lists(digest: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(digest.len());
    let mut rest = digest;
    while let Some((first, more)) = rest.split_first() {
        match rest.strip_prefix(SHORTENED) {
            Some(behind) => {
                let group = out.iter().rposition(|byte| *byte == b'(').unwrap_or(0);
                let one = match out.last() {
                    Some(b')') => out[group..].to_vec(),
                    _ => b"?".to_vec(),
                };
                out.push(b',');
                out.extend(one);
                rest = behind;
            }
            None => {
                out.push(*first);
                rest = more;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_list_has_one_more() {
        for (digest, wanted) in [
            ("a IN (?,?,...)", "a IN (?,?,?)"),
            ("VALUES (?,?),...", "VALUES (?,?),(?,?)"),
            ("VALUES (?,?),... ON", "VALUES (?,?),(?,?) ON"),
            (",...", ",?"),
        ] {
            let found = with_lists(digest.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), wanted);
        }
    }
}
