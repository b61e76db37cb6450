//! Tables that are spread over partitions: the map chooses the hostgroup, whatever rules, hints and
//! the split have found; they choose only between its writer and its readers.
//!
//! Rules, rewriting, firewall and mirror see the logical statement. What its partition is sent is put
//! in last.

use crate::outcome::{Given, Partition};
use crate::several::{Answered, Finishing, Gather, Part, Values};
use crate::split::{self, Stays};
use crate::trace::Trace;
use crate::{Answer, By, Case, Guarded, Plan, SessionFacts, Statement, Text, transaction};
use ::gather::Names;
use config::{Memo, PartitionChanges, Split, SpreadWidth};
use shards::{
    Facts, Inner, Leg, Listed, Making, Map, Numbered, Numbering, Routed, Spread, Undescribed,
    Wanted,
};
use sql::Against;
use sql::bound::Bound;
use sql::tree::{DoubleQuotes, Literal};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Word of the map about a statement.
#[derive(Debug)]
pub(crate) enum Sharded {
    /// Nothing: it names no table of it.
    No,
    /// Nothing, but that this is its text: values of its queries are in it, or it asks which tables there are.
    Said(Box<[u8]>),
    /// The statement goes there.
    To(To),
    /// Its rows are those of several partitions.
    Gathered(Box<Gather>),
    /// So many rows want numbers of the sequence of the table of this number.
    Unnumbered(u32, u32),
    /// The partition of this bucket of the table of this number must be made first; without a bucket,
    /// none of its partitions may be missing.
    Unmade(u32, Option<Box<str>>),
    /// The columns of its table must be known first.
    Undescribed(Box<Undescribed>),
    /// Look-ups must be asked or told first.
    Unlooked(Box<Wanted>),
    /// The statement is refused, in these words; it names the table of this number.
    Refused(u32, String),
}

/// The partition of a statement.
#[derive(Debug)]
pub(crate) struct To {
    /// The first table that it names, by its number in the map.
    table: u32,
    writer: u32,
    /// The partitions, for people.
    partitions: String,
    /// Text that is sent, if that is not what was asked.
    text: Option<Box<[u8]>>,
    /// Numbers that its rows have got.
    numbered: Option<Given>,
}

/// Asks the map, once rules have rewritten the statement.
#[inline]
pub(crate) fn look<T: Trace>(plan: &Plan, case: Case<'_>, trace: &mut T) -> Sharded {
    if case.snapshot.shards.is_empty() || case.statement.guarded != Guarded::Text {
        return Sharded::No;
    }
    ask(plan, case, trace)
}

#[inline(never)]
fn ask<T: Trace>(plan: &Plan, case: Case<'_>, trace: &mut T) -> Sharded {
    let statement = case.statement;
    let valued = match statement.answered {
        Some(Answered::Values(text)) => Some(&text[..]),
        _ => None,
    };
    let asked = valued.or_else(|| plan.remade()).unwrap_or(statement.text);
    let literals: Option<Vec<_>> = statement
        .parameters
        .map(|values| values.iter().map(Bound::literal).collect());
    let facts = facts(case, literals.as_deref());
    let map = &*case.snapshot.shards;
    let listed = match listed(map, asked, &facts) {
        Ok(listed) => listed,
        Err(unlisted) => return unlisted,
    };
    let is_listed = listed.is_some();
    let asked = listed.as_deref().unwrap_or(asked);
    let (facts, asked, numbered) = match number(map, asked, facts, statement.parameters) {
        Ok(numbered) => numbered,
        Err(unnumbered) => return unnumbered,
    };
    let values = statement.parameters.filter(|_| facts.parameters.is_some());
    let routed = shards::spread(map, &asked, &facts);
    let (routed, made) = match with_partitions(routed, case, (&asked, &facts), trace) {
        Ok(routed) => routed,
        Err(unmade) => return unmade,
    };
    let map = made.as_ref().unwrap_or(map);
    if let Some(wanted) = &routed.lookups {
        return Sharded::Unlooked(Box::new(wanted.clone()));
    }
    // What one server finishes is told the values in its text, too.
    let finishes = |routed: &Routed| {
        is_refused_read(routed) && scratch(case).is_some() || routed.from_query.is_some()
    };
    let has_inner = values.is_some() && inner_queries(&routed, &asked, (case, &facts)).is_some();
    let in_text = is_wide(&routed) || finishes(&routed) || has_inner;
    let (asked, routed) = match values.filter(|_| in_text) {
        None => (asked, routed),
        // Several partitions are told the values in the text.
        Some(values) => match routed_with(values, &asked, (map, &facts), routed.table) {
            Ok((text, routed)) => (Cow::Owned(text), routed),
            Err(other) => return other,
        },
    };
    if routed.spread == Spread::Plain {
        let catalogue = || catalogue(plan, &asked, (case, &facts), &routed);
        let text = valued.map(<[u8]>::to_vec).or_else(catalogue);
        return text.map_or(Sharded::No, |text| Sharded::Said(text.into()));
    }
    tell_of_numbers(&facts, numbered, trace);
    tell_of_reasons(&routed, trace);
    if !finishes(&routed) && routed.loaded.is_none() {
        trace.saw("map", || routed.spread.to_string());
    }
    let outcome = outcome(&routed, &asked, case, &facts);
    tell_of_rows(&outcome, &routed, (&asked, &facts), trace);
    given(outcome, numbered, (is_listed || valued.is_some(), asked))
}

/// Facts about a statement. `literals`: the values of its `?`.
fn facts<'a>(case: Case<'a>, literals: Option<&'a [Literal<'a>]>) -> Facts<'a> {
    let (session, statement) = (case.session, case.statement);
    let quotes = match session.split.ansi_quotes.may_be() {
        true => DoubleQuotes::Unsure,
        false => DoubleQuotes::Strings,
    };
    Facts {
        schema: session.schema,
        lexing: session.split.lexing,
        quotes,
        comment: statement.comment,
        parameters: literals,
        prepares: statement.prepares,
        numbers: match statement.prepares {
            true => Numbering::Whichever,
            false => statement.numbers,
        },
        columns: statement.columns,
        bound: statement.parameters,
        looked: statement.looked,
    }
}

/// A text that asks which tables there are, where it runs, in a way that sees those of the map once.
fn catalogue(
    plan: &Plan,
    asked: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
    routed: &Routed,
) -> Option<Vec<u8>> {
    routed.asks_catalogue.then_some(())?;
    let (snapshot, session) = (case.snapshot, case.session);
    let open = session.in_transaction.filter(|_| session.begun);
    let there = open.unwrap_or_else(|| plan.hostgroup());
    let servers = |hostgroup: u32| {
        let found = snapshot.servers.hostgroup(hostgroup);
        found.map_or(&[][..], |hostgroup| &hostgroup.servers)
    };
    // Its own server, one that is in both hostgroups, or a reader of it.
    let serves = |writer: u32| {
        let of_writer = snapshot.servers.hostgroup(writer);
        let split = of_writer.and_then(|hostgroup| hostgroup.attributes.split.as_ref());
        let is_in_both = |one: &Arc<config::Server>| {
            let mut others = servers(there).iter();
            others.any(|other| other.hostname == one.hostname && other.port == one.port)
        };
        writer == there
            || split.is_some_and(|split| split.read_hostgroup == there)
            || servers(writer).iter().any(is_in_both)
    };
    let as_written = snapshot.variables.claims_mariadb();
    shards::catalogue(&snapshot.shards, asked, facts, (serves, as_written))
}

/// A statement with its values put in, and where it goes.
fn routed_with(
    values: &[Bound],
    asked: &[u8],
    (map, facts): (&Map, &Facts<'_>),
    table: u32,
) -> Result<(Vec<u8>, Routed), Sharded> {
    let text = with_values(asked, facts, values);
    let text = text.map_err(|words| Sharded::Refused(table, words))?;
    let facts = Facts {
        parameters: None,
        ..*facts
    };
    let routed = shards::spread(map, &text, &facts);
    match &routed.lookups {
        Some(wanted) => Err(Sharded::Unlooked(Box::new(wanted.clone()))),
        None => Ok((text, routed)),
    }
}

/// Notes with an outcome the numbers that rows have got. `is_listed`: the text has got columns.
fn given(
    outcome: Sharded,
    numbered: Option<Given>,
    (is_listed, asked): (bool, Cow<'_, [u8]>),
) -> Sharded {
    match outcome {
        // The numbers, or the columns, may be all that a partition is told otherwise.
        Sharded::To(to) if numbered.is_some() || is_listed => Sharded::To(To {
            text: to.text.or_else(|| Some(asked.into())),
            numbered,
            ..to
        }),
        Sharded::Gathered(mut gather) => {
            gather.numbered = numbered;
            Sharded::Gathered(gather)
        }
        other => other,
    }
}

/// Partitions that a statement needs, where they are made by themselves.
enum Made {
    /// All that are needed are known.
    IsThere,
    /// A proxy makes one first, or looks whether another has made one.
    Unmade(Sharded),
    /// The map as it would be, for a statement that is only explained.
    WouldBe(Map),
}

/// Says what becomes of the rows of partitions.
fn tell_of_rows<T: Trace>(
    outcome: &Sharded,
    routed: &Routed,
    (asked, facts): (&[u8], &Facts<'_>),
    trace: &mut T,
) {
    let finishing = match outcome {
        Sharded::Gathered(gather) => gather.finishing.as_deref(),
        _ => None,
    };
    if let Some(Finishing { hostgroup, why, .. }) = finishing {
        trace.saw("scratch", || {
            format!("finished on hostgroup {hostgroup}: {why}")
        });
    } else if !routed.writes && is_wide(routed) {
        trace.saw("gather", || gather::told(asked, facts.lexing, facts.quotes));
    }
}

/// Says how the map has found partitions.
fn tell_of_reasons<T: Trace>(routed: &Routed, trace: &mut T) {
    for reason in &routed.reasons {
        trace.saw("map", || reason.clone());
    }
}

/// Says that numbers stand for others.
fn tell_of_numbers<T: Trace>(facts: &Facts<'_>, numbered: Option<Given>, trace: &mut T) {
    if facts.numbers == Numbering::Whichever && numbered.is_some() {
        trace.saw("map", || {
            "rows get numbers of a sequence; 1 stands for the first".into()
        });
    }
}

/// Routes a statement again by the map as it would be, if it is only explained and a partition would be
/// made for it; the other result if it must wait for one.
fn with_partitions<T: Trace>(
    routed: Routed,
    case: Case<'_>,
    (asked, facts): (&[u8], &Facts<'_>),
    trace: &mut T,
) -> Result<(Routed, Option<Map>), Sharded> {
    let map = match made_first(&routed, case) {
        Made::IsThere => return Ok((routed, None)),
        Made::Unmade(unmade) => return Err(unmade),
        Made::WouldBe(map) => map,
    };
    trace.saw("map", || {
        let name = routed.makes.as_ref().map(|row| &*row.partition_name);
        format!("the partition '{}' is made first", name.unwrap_or_default())
    });
    Ok((shards::spread(&map, asked, facts), Some(map)))
}

/// Looks whether a partition must be made before a statement is routed, or may have been made by
/// another proxy. A table that names none has its rows in the default one.
fn made_first(routed: &Routed, case: Case<'_>) -> Made {
    if routed.makes.is_none() && routed.looks.is_none()
        || case.snapshot.variables.mysql_sharding_partitions.is_empty()
    {
        return Made::IsThere;
    }
    match (case.statement.making, &routed.makes) {
        (Making::Unasked, Some(row)) => {
            let bucket = Some(row.partition_value.as_str().into());
            Made::Unmade(Sharded::Unmade(routed.table, bucket))
        }
        // What is prepared is routed again with each execution.
        (Making::Unasked, None) if !case.statement.prepares => {
            let table = routed.looks.unwrap_or(routed.table);
            Made::Unmade(Sharded::Unmade(table, None))
        }
        (Making::Whichever, Some(row)) => {
            let made = case.snapshot.shards.with_made(std::slice::from_ref(row));
            made.map_or(Made::IsThere, Made::WouldBe)
        }
        _ => Made::IsThere,
    }
}

/// Facts and text with the numbers in it that its rows get from a sequence. Of an execution that is a
/// text with all values written out.
type WithNumbers<'a> = (Facts<'a>, Cow<'a, [u8]>, Option<Given>);

fn number<'a>(
    map: &Map,
    asked: &'a [u8],
    facts: Facts<'a>,
    values: Option<&[Bound]>,
) -> Result<WithNumbers<'a>, Sharded> {
    match shards::number(map, asked, &facts) {
        Numbered::Not => Ok((facts, Cow::Borrowed(asked), None)),
        Numbered::Refused(table, words) => Err(Sharded::Refused(table, words)),
        Numbered::Wants { table, count } => Err(Sharded::Unnumbered(table, count)),
        Numbered::Done { table, returns, .. } if returns && values.is_some() => {
            let words = "its rows get numbers from a sequence, and its RETURNING is prepared; send it as a text";
            Err(Sharded::Refused(table, words.into()))
        }
        Numbered::Done {
            table,
            text,
            first,
            may_update,
            ..
        } => {
            let given = Some(Given { first, may_update });
            let Some(values) = values else {
                return Ok((facts, Cow::Owned(text), given));
            };
            let refused = |words| Sharded::Refused(table, words);
            let text = with_values(asked, &facts, values).map_err(refused)?;
            let facts = Facts {
                parameters: None,
                ..facts
            };
            match shards::number(map, &text, &facts) {
                Numbered::Done { text, .. } => Ok((facts, Cow::Owned(text), given)),
                _ => Err(refused(
                    "its values cannot be written out for certain; send it as a text".into(),
                )),
            }
        }
    }
}

/// A text with the list of columns that it lacks; none if it lacks none.
fn listed(map: &Map, asked: &[u8], facts: &Facts<'_>) -> Result<Option<Vec<u8>>, Sharded> {
    match shards::list(map, asked, facts) {
        Listed::Not => Ok(None),
        Listed::Done(text) => Ok(Some(text)),
        Listed::Wants(wanted) => Err(Sharded::Undescribed(Box::new(wanted))),
        Listed::Refused(table, words) => Err(Sharded::Refused(table, words)),
    }
}

/// Whether it needs several partitions.
const fn is_wide(routed: &Routed) -> bool {
    matches!(routed.spread, Spread::Some(_) | Spread::All(_))
}

/// Whether no partition alone, and no merging, has its rows.
const fn is_refused_read(routed: &Routed) -> bool {
    matches!(routed.spread, Spread::Refused(_)) && !routed.writes
}

/// The hostgroup that finishes what cannot be put together; the outer `None` if none may, the inner
/// where the map says it.
fn scratch(case: Case<'_>) -> Option<Option<u32>> {
    let variables = &case.snapshot.variables;
    match &*variables.mysql_sharding_scratch {
        "off" => None,
        "hostgroup" => Some(u32::try_from(variables.mysql_sharding_scratch_hostgroup).ok()),
        _ => Some(None),
    }
}

/// A statement with the values of its `?` put in.
fn with_values(asked: &[u8], facts: &Facts<'_>, values: &[Bound]) -> Result<Vec<u8>, String> {
    let tree = sql::tree::tree(asked, facts.lexing, facts.quotes);
    let text = tree.and_then(|tree| sql::bound::put_in(asked, &tree, facts.lexing, values));
    text.ok_or_else(|| {
        "with these values it needs several partitions, and a value cannot be written out for certain, or is a number of ORDER BY, GROUP BY or LIMIT; compare the key with one value, or send it as a text".into()
    })
}

/// Tells what the map says of a statement: what reads may go to several partitions; a change, where
/// the user has said how.
pub(crate) fn outcome(routed: &Routed, asked: &[u8], case: Case<'_>, facts: &Facts<'_>) -> Sharded {
    let several = |legs: &[Leg]| {
        let words = match (routed.parameters, routed.writes) {
            (0, false) => match gathered(legs, asked, (case, facts), routed) {
                Ok(gather) => return Sharded::Gathered(Box::new(gather)),
                Err(words) => return finished(words, asked, (case, facts), routed),
            },
            (0, true) => match changed(legs, asked, case, routed) {
                Ok(gather) => return Sharded::Gathered(Box::new(gather)),
                Err(words) => words,
            },
            _ => "the value of its ? is not known here, and several partitions may have it; send it with the key written out"
                .into(),
        };
        Sharded::Refused(routed.table, words)
    };
    match &routed.spread {
        Spread::Plain => Sharded::No,
        Spread::Refused(words)
            if is_refused_read(routed) && (routed.parameters == 0 || facts.prepares) =>
        {
            finished(words.clone(), asked, (case, facts), routed)
        }
        Spread::Refused(words) => match (&routed.from_query, &routed.loaded) {
            (Some(from_query), _) if routed.parameters == 0 || facts.prepares => {
                read_first(from_query, asked, (case, facts), routed)
            }
            (_, Some(loaded)) => loading(loaded, facts, routed),
            _ if routed.parameters == 0 || facts.prepares => {
                values_first(words, asked, (case, facts), routed)
            }
            _ => Sharded::Refused(routed.table, words.clone()),
        },
        Spread::Some(legs) | Spread::All(legs) => several(legs),
        Spread::Point(leg) if is_told_by_name(routed, asked, (case, facts)) => {
            Sharded::Gathered(Box::new(told_by_name(leg, asked, facts, routed)))
        }
        Spread::Point(leg) => Sharded::To(To {
            table: routed.table,
            writer: leg.hostgroup,
            partitions: leg.partitions.join(" and "),
            text: (!leg.cuts.is_empty()).then(|| leg.text(asked).into()),
            numbered: None,
        }),
    }
}

/// Whether its answer has the name of a table in it, which is another one on its server. In a
/// transaction, and prepared, the answer comes as it is.
fn is_told_by_name(routed: &Routed, asked: &[u8], (case, facts): (Case<'_>, &Facts<'_>)) -> bool {
    let session = case.session;
    let mut words = facts.lexing.words(asked);
    let shows = words.next().is_some_and(|first| first.is("SHOW"));
    let named = words.find(|word| !word.is_any(&["FULL", "EXTENDED"]));
    shows
        && named.is_some_and(|word| word.is_any(&["CREATE", "INDEX", "INDEXES", "KEYS"]))
        && routed.told.is_some()
        && !facts.prepares
        && case.statement.parameters.is_none()
        && (!session.begun || session.branches)
        && session.locked.is_none()
}

/// Words of a server about a table, with its name for applications.
fn told_by_name(leg: &Leg, asked: &[u8], facts: &Facts<'_>, routed: &Routed) -> Gather {
    let names = routed.told.clone().map(|[physical, logical]| Names {
        physical: physical.into_bytes().into(),
        logical: logical.into_bytes().into(),
    });
    Gather {
        recipe: Some(::gather::Recipe {
            names,
            ..::gather::Recipe::as_it_comes(asked, facts.lexing)
        }),
        ..Gather::of(vec![part(leg, leg.text(asked))], routed.table)
    }
}

/// Whether so many partitions are too many.
fn too_wide(legs: usize, case: Case<'_>, does: &str) -> Result<(), String> {
    let widest = usize::try_from(case.snapshot.variables.mysql_sharding_max_partitions)
        .unwrap_or(usize::MAX);
    if widest > 0 && legs > widest {
        return Err(format!(
            "it {does} {legs} partitions, and mysql-sharding_max_partitions allows {widest}; name the key in its WHERE"
        ));
    }
    Ok(())
}

/// The part of a leg that is sent this.
fn part(leg: &Leg, text: Vec<u8>) -> Part {
    Part {
        writer: leg.hostgroup,
        hostgroup: leg.hostgroup,
        partitions: leg.partitions.join(" and ").into(),
        text: text.into(),
        rows: Box::default(),
    }
}

/// A change that all of these partitions make, or none.
fn changed(legs: &[Leg], asked: &[u8], case: Case<'_>, routed: &Routed) -> Result<Gather, String> {
    let parts = legs.iter().map(|leg| Part {
        rows: match routed.returns {
            true => leg.rows.as_slice().into(),
            false => Box::default(),
        },
        ..part(leg, leg.text(asked))
    });
    let gather = Gather {
        in_turn: routed.in_turn,
        all: matches!(routed.spread, Spread::All(_)),
        copies: routed.copies,
        returns: routed.returns,
        renames: routed.renames.clone(),
        rekeyed: routed.rekeyed.clone().map(Box::new),
        ..Gather::of(parts.collect(), routed.table)
    };
    let several = gather.partitions();
    let may =
        case.session.branches || case.session.user.partition_changes() == PartitionChanges::Xa;
    if !may && let Some(rekeyed) = &routed.rekeyed {
        let to = &rekeyed.to.table;
        return Err(format!(
            "it gives rows another key, by which some may move to {to}, and one partition is all that a change of this user can have; name the key in its WHERE as well, DELETE the row and INSERT it anew, or have an operator set partition_changes to xa in the user's attributes"
        ));
    }
    if !routed.in_turn && !may {
        return Err(format!(
            "it changes {several} partitions, and one is all that a change of this user can have; name the key in its WHERE, say it for each partition with the hint hscale.partition(table) = 'name', or have an operator set partition_changes to xa in the user's attributes"
        ));
    }
    too_wide(several, case, "changes")?;
    let is_alone = legs.iter().all(|leg| leg.hostgroup == legs[0].hostgroup);
    if !is_alone && !routed.in_turn && case.snapshot.variables.decisions().is_none() {
        return Err(format!(
            "it changes {several} partitions, and no table is named in which the outcome would be written; set mysql-sharding_decisions to schema.table"
        ));
    }
    Ok(gather)
}

/// A SELECT that cannot be put together, for this reason: one server finishes it, if it may.
fn finished(
    why: String,
    asked: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
    routed: &Routed,
) -> Sharded {
    let refused = |words| Sharded::Refused(routed.table, words);
    let map = &case.snapshot.shards;
    let Some(said) = scratch(case) else {
        return refused(why);
    };
    // A change is none, and nor is what is not understood.
    let Some(finish) = shards::finish(map, asked, facts) else {
        return refused(why);
    };
    if let Err(words) = runs_anywhere(asked, facts, false) {
        return refused(words);
    }
    match finish {
        Err(words) => refused(words),
        Ok(what) => {
            let of_map = || Some(map.numbered(routed.table)?.homes.first()?.hostgroup);
            let Some(hostgroup) = said.or_else(of_map) else {
                return refused(why);
            };
            match finishing((hostgroup, why), asked, what, (case, facts), routed) {
                Ok(gather) => Sharded::Gathered(Box::new(gather)),
                Err(words) => refused(words),
            }
        }
    }
}

/// An INSERT whose rows are read first: its query, as it would be read by itself.
fn read_first(
    from_query: &shards::FromQuery,
    asked: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
    routed: &Routed,
) -> Sharded {
    let refused = |words| Sharded::Refused(routed.table, words);
    let query = asked.get(from_query.query.clone()).unwrap_or_default();
    if let Err(words) = runs_anywhere(query, facts, false) {
        return refused(words);
    }
    let gather = match read_alone(query, (case, facts), routed.table) {
        Ok(gather) => gather,
        Err(other) => return other,
    };
    Sharded::Gathered(Box::new(Gather {
        table: routed.table,
        from_query: Some(Box::new(from_query.clone())),
        ..gather
    }))
}

/// How a query is read that stands in a change.
fn read_alone(
    query: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
    table: u32,
) -> Result<Gather, Sharded> {
    let one = |writer, partitions: String, text: &[u8]| Gather {
        recipe: Some(::gather::Recipe::as_it_comes(query, facts.lexing)),
        ..Gather::of(
            vec![Part {
                writer,
                hostgroup: writer,
                partitions: partitions.into(),
                text: text.into(),
                rows: Box::default(),
            }],
            table,
        )
    };
    let read = shards::spread(&case.snapshot.shards, query, facts);
    match outcome(&read, query, case, facts) {
        Sharded::Gathered(gather) => Ok(*gather),
        Sharded::To(to) => Ok(one(
            to.writer,
            to.partitions,
            to.text.as_deref().unwrap_or(query),
        )),
        // Plain tables are where the statement would go, which is said when that is known.
        Sharded::No => Ok(one(PLAIN, String::new(), query)),
        other => Err(other),
    }
}

/// A change that is refused for these words with queries inside: they may be read first.
fn values_first(
    words: &str,
    asked: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
    routed: &Routed,
) -> Sharded {
    let refused = |words: String| Sharded::Refused(routed.table, words);
    let Some(inner) = inner_queries(routed, asked, (case, facts)) else {
        return refused(words.into());
    };
    let mut reads = Vec::new();
    for one in inner {
        let query = asked.get(one.at.clone()).unwrap_or_default();
        if let Err(words) = runs_anywhere(query, facts, false) {
            return refused(words);
        }
        match read_alone(query, (case, facts), routed.table) {
            Ok(gather) => reads.push((one, gather)),
            Err(other) => return other,
        }
    }
    Sharded::Gathered(Box::new(Gather {
        values: Some(Box::new(Values {
            text: asked.into(),
            reads,
        })),
        ..Gather::of(Vec::new(), routed.table)
    }))
}

/// The queries inside a change that may be read first, if no partition does all of it.
fn inner_queries(
    routed: &Routed,
    asked: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
) -> Option<Vec<Inner>> {
    let is_refused = matches!(routed.spread, Spread::Refused(_)) && routed.writes;
    let is_new = !matches!(case.statement.answered, Some(Answered::Values(_)));
    // Which look-ups are asked is not known before the values are.
    let is_certain = !case.snapshot.shards.has_lookups();
    (is_refused && is_new && is_certain).then_some(())?;
    shards::inner_queries(asked, facts)
}

/// A LOAD DATA LOCAL whose rows are told apart here.
fn loading(loaded: &shards::Loaded, facts: &Facts<'_>, routed: &Routed) -> Sharded {
    if facts.prepares {
        let words = "a file is loaded into partitions by a text only; send it as one";
        return Sharded::Refused(routed.table, words.into());
    }
    let parts = loaded.places.iter().map(|place| Part {
        writer: place.hostgroup,
        hostgroup: place.hostgroup,
        partitions: place.partitions.as_str().into(),
        text: place.text.as_slice().into(),
        rows: Box::default(),
    });
    Sharded::Gathered(Box::new(Gather {
        loaded: Some(Box::new(loaded.clone())),
        ..Gather::of(parts.collect(), routed.table)
    }))
}

/// Hostgroup of a part that reads plain tables, until it is known.
const PLAIN: u32 = u32::MAX;

/// Parts that are copied, and the text that is asked then.
fn finishing(
    (hostgroup, why): (u32, String),
    asked: &[u8],
    what: shards::Finish,
    (case, facts): (Case<'_>, &Facts<'_>),
    routed: &Routed,
) -> Result<Gather, String> {
    let mut parts = Vec::new();
    for table in &what.tables {
        let condition = match table.condition.is_empty() {
            true => Vec::new(),
            false => [b" WHERE ", &table.condition[..]].concat(),
        };
        parts.extend(table.sources.iter().map(|source| {
            Part {
                // A plain table's is said when it is known.
                writer: source.hostgroup.unwrap_or(hostgroup),
                hostgroup: source.hostgroup.unwrap_or(hostgroup),
                partitions: source.partitions.as_str().into(),
                text: [b"FROM ", source.table.as_bytes(), &condition]
                    .concat()
                    .into(),
                rows: Box::default(),
            }
        }));
    }
    too_wide(parts.len(), case, "reads")?;
    Ok(Gather {
        recipe: Some(::gather::Recipe::as_it_comes(asked, facts.lexing)),
        all: matches!(routed.spread, Spread::All(_)),
        finishing: Some(Box::new(Finishing {
            hostgroup,
            // What to do instead is no matter here.
            why: why.split("; ").next().unwrap_or_default().into(),
            text: what.text(asked).into(),
            what,
        })),
        ..Gather::of(parts, routed.table)
    })
}

/// Refuses what must run on the session's own connections.
fn runs_anywhere(asked: &[u8], facts: &Facts<'_>, may_lock: bool) -> Result<(), String> {
    let mut class = facts.lexing.class(asked);
    if may_lock && class.against == Some(Against::Lock) {
        // Its rows stay locked until the transaction ends.
        class.against = None;
    }
    sql::reading(&class, asked, facts.lexing, |_| false).map_err(|why| {
        format!("{why}, and rows of several partitions are put together outside of the session's connections; name the key in its WHERE")
    })
}

/// Rows of these partitions, put together.
fn gathered(
    legs: &[Leg],
    asked: &[u8],
    (case, facts): (Case<'_>, &Facts<'_>),
    routed: &Routed,
) -> Result<Gather, String> {
    let tree = sql::tree::tree(asked, facts.lexing, facts.quotes)
        .ok_or("it is not understood whole, and several partitions have rows of it")?;
    let recipe = match case.statement.answered {
        None => ::gather::recipe(asked, &tree)?,
        Some(Answered::Columns(columns)) => ::gather::recipe_for(asked, &tree, columns)?,
        Some(Answered::Beyond(words)) => return Err(words.clone()),
        // Of a change, which is read by nobody.
        Some(Answered::Values(_)) => ::gather::recipe(asked, &tree)?,
    };
    // Each partition runs it by itself, and no connection of the session's but its branches'. Locks
    // of a statement that commits by itself end with it.
    let session = case.session;
    let may_lock = session.branches || session.autocommit && session.in_transaction.is_none();
    runs_anywhere(asked, facts, may_lock)?;
    too_wide(legs.len(), case, "reads")?;
    let parts = legs.iter().map(|leg| part(leg, recipe.text(leg, asked)));
    let parts = parts.collect();
    Ok(Gather {
        recipe: Some(recipe),
        all: matches!(routed.spread, Spread::All(_)),
        ..Gather::of(parts, routed.table)
    })
}

/// Sends it to its partition's hostgroup: to the writer, or to the readers where a rule or hint has
/// said so. A transaction or the session's state on another hostgroup is in the way.
#[inline]
pub(crate) fn lead<T: Trace>(
    plan: &mut Plan,
    sharded: &mut Sharded,
    case: Case<'_>,
    trace: &mut T,
) {
    let (table, led) = match sharded {
        Sharded::To(to) => (to.table, led(plan, to, case, trace)),
        Sharded::Gathered(gather) => (gather.table, led_all(plan, gather, case, trace)),
        Sharded::No
        | Sharded::Said(_)
        | Sharded::Unnumbered(..)
        | Sharded::Unmade(..)
        | Sharded::Undescribed(_)
        | Sharded::Unlooked(_)
        | Sharded::Refused(..) => return,
    };
    if let Err(words) = led {
        *sharded = Sharded::Refused(table, words);
    }
}

/// The queries of a change go where each would go by itself.
fn led_values<T: Trace>(
    plan: &mut Plan,
    gather: &mut Gather,
    case: Case<'_>,
    trace: &mut T,
) -> Result<(), String> {
    let (hostgroup, by) = (plan.hostgroup(), plan.why.by);
    gather.parts.clear();
    for (_, read) in gather
        .values
        .iter_mut()
        .flat_map(|values| &mut values.reads)
    {
        plan.send_to(hostgroup, by);
        led_all(plan, read, case, trace)?;
        gather.parts.extend(read.parts.iter().cloned());
    }
    Ok(())
}

/// Each part goes to its own hostgroup: to the readers, if nothing says that it must be fresh.
#[inline(never)]
fn led_all<T: Trace>(
    plan: &mut Plan,
    gather: &mut Gather,
    case: Case<'_>,
    trace: &mut T,
) -> Result<(), String> {
    if gather.values.is_some() {
        return led_values(plan, gather, case, trace);
    }
    let session = case.session;
    let several = gather.partitions();
    let is_change = gather.is_change();
    let does = if is_change { "changes" } else { "reads" };
    let is_alone = gather.in_turn
        || gather.rekeyed.is_some()
        || gather.loaded.is_some()
        || gather.from_query.is_some();
    // As on a server, a definition ends a transaction before it is done.
    let commits = gather.in_turn && session.branches;
    if session.branches && session.begun && is_alone && !commits {
        return Err(format!(
            "it {does} {several} partitions outside of the connections of the transaction that is open; end it first"
        ));
    }
    let has_branches = session.branches && !is_alone;
    let open = session.in_transaction.filter(|_| session.begun);
    if let Some(open) = open.filter(|_| !has_branches && !commits) {
        let words = format!(
            "it {does} {several} partitions, and a transaction is open on hostgroup {open}; end it first"
        );
        return Err(match is_alone {
            true => words,
            false => format!(
                "{words}, or have an operator set transactions to xa in the user's attributes"
            ),
        });
    }
    // A definition commits by itself, and none is open.
    if is_change && !session.autocommit && !has_branches && !gather.in_turn {
        return Err(format!(
            "it changes {several} partitions, and with autocommit = 0 that would begin a transaction; set autocommit = 1 first"
        ));
    }
    if let Some(locked) = session.locked {
        return Err(format!(
            "it {does} {several} partitions, and what the session holds is on hostgroup {locked}; give it back first"
        ));
    }
    // What must be fresh is read where it was written.
    let is_fresh =
        plan.why.by == By::Fresh || plan.gtid_from_hostgroup.is_some() || plan.bounds.is_some();
    let may_read = !is_change && !is_fresh && !has_branches && session.user.split() != Some(None);
    // Plain tables are where the statement would go; in a transaction, where it has written them.
    let home = session.in_transaction.filter(|_| has_branches);
    let plain = home.unwrap_or_else(|| plan.hostgroup());
    if let Some(finishing) = &gather.finishing {
        let sources = finishing
            .what
            .tables
            .iter()
            .flat_map(|table| &table.sources);
        for (part, source) in gather.parts.iter_mut().zip(sources) {
            part.writer = source.hostgroup.unwrap_or(plain);
        }
    }
    if let Some(from_query) = &mut gather.from_query {
        from_query.hostgroup = plan.hostgroup();
    }
    for part in &mut gather.parts {
        if part.writer == PLAIN {
            part.writer = plain;
        }
        plan.send_to(part.writer, By::Shard);
        let of_writer = case.snapshot.servers.hostgroup(part.writer);
        let split = of_writer.and_then(|hostgroup| hostgroup.attributes.split.as_ref());
        if let Some(split) = split.filter(|_| may_read) {
            // No transaction is open: each part is one of its own.
            let alone = SessionFacts {
                in_transaction: None,
                autocommit: true,
                ..*session
            };
            let alone = Case {
                session: &alone,
                ..case
            };
            read(plan, split, alone, trace);
        }
        part.hostgroup = plan.hostgroup();
    }
    plan.gtid_from_hostgroup = None;
    plan.bounds = None;
    if has_branches {
        tell_of_branches(gather.parts.iter().map(|part| part.hostgroup), trace);
    }
    // What is kept would outlive the writes to its partitions.
    plan.uncache();
    let reader = gather
        .parts
        .iter()
        .find(|part| part.hostgroup != part.writer);
    let by = reader.map_or(By::Shard, |part| By::ShardRead(part.writer));
    if let Some(first) = gather.parts.first() {
        plan.send_to(first.hostgroup, by);
    }
    Ok(())
}

#[inline(never)]
fn led<T: Trace>(plan: &mut Plan, to: &To, case: Case<'_>, trace: &mut T) -> Result<(), String> {
    let Case {
        snapshot, session, ..
    } = case;
    let (wanted, wanted_by, writer) = (plan.hostgroup(), plan.why.by, to.writer);
    let is_said = matches!(plan.why.by, By::Rule(_) | By::Hint | By::Script);
    let of_writer = snapshot.servers.hostgroup(writer);
    let split = of_writer.and_then(|hostgroup| hostgroup.attributes.split.as_ref());
    let is_reader =
        is_said && !session.branches && split.is_some_and(|split| split.read_hostgroup == wanted);
    if !is_reader {
        if is_said && wanted != writer {
            trace.saw("map", || {
                format!(
                    "hostgroup {wanted} is left out: it is neither {writer} nor the readers of it"
                )
            });
        }
        plan.send_to(writer, By::Shard);
        // What a rule or hint has said, or what must be fresh, is not split.
        let is_free = !is_said && wanted_by != By::Fresh && session.user.split() != Some(None);
        if let Some(split) = split.filter(|_| is_free) {
            read(plan, split, case, trace);
        }
    }
    // Writes of a hostgroup elsewhere are not what this one can have.
    plan.gtid_from_hostgroup = plan.gtid_from_hostgroup.filter(|source| *source == writer);
    let there = plan.hostgroup();
    let open = session
        .in_transaction
        .filter(|_| session.begun && !session.branches && session.user.transaction_persistent);
    if let Some(open) = open.filter(|open| *open != there) {
        return Err(format!(
            "a transaction is open on hostgroup {open}, and {} is on hostgroup {there}; end it first, or begin it there with /* hostgroup={there} */ BEGIN",
            to.partitions
        ));
    }
    if let Some(locked) = session.locked.filter(|locked| *locked != there) {
        return Err(format!(
            "what the session holds is on hostgroup {locked}, and {} is on hostgroup {there}; give it back first",
            to.partitions
        ));
    }
    if session.branches {
        tell_of_branches([there], trace);
    }
    Ok(())
}

/// Says where a transaction has branches for a statement.
fn tell_of_branches<T: Trace>(hostgroups: impl IntoIterator<Item = u32>, trace: &mut T) {
    trace.saw("transaction", || {
        let hostgroups: BTreeSet<_> = hostgroups.into_iter().collect();
        let shown: Vec<_> = hostgroups.iter().map(u32::to_string).collect();
        match &shown[..] {
            [one] => format!("a branch on hostgroup {one}"),
            all => format!("a branch on each of the hostgroups {}", all.join(", ")),
        }
    });
}

/// To the readers of the writer, if it only reads.
fn read<T: Trace>(plan: &mut Plan, split: &Split, case: Case<'_>, trace: &mut T) {
    let writer = plan.hostgroup();
    let verdict = split::may_read(plan, split, case.session, case.statement);
    if verdict.is_ok() {
        plan.send_to(split.read_hostgroup, By::ShardRead(writer));
    }
    if matches!(verdict, Err(Stays::Wrote(_))) {
        plan.uncache();
    }
    trace.saw("read/write split", || match verdict {
        Ok(()) => format!("hostgroup {}: it only reads", split.read_hostgroup),
        Err(why) => format!("hostgroup {writer}, to the writer: {why}"),
    });
}

/// A transaction that is open keeps a statement where it is, as [`transaction::stay`] has it; one that
/// is about to begin does so at its partition.
#[inline]
pub(crate) fn stay<T: Trace>(
    plan: &mut Plan,
    sharded: &Sharded,
    session: &SessionFacts<'_>,
    trace: &mut T,
) {
    match sharded {
        Sharded::Gathered(_) => {}
        Sharded::To(_) if !session.begun || session.branches => {
            if session.branches {
                // No fallback has a branch, and nobody would end one there.
                plan.send_to(plan.hostgroup(), By::Transaction);
                plan.uncache();
            }
            let begins = SessionFacts {
                in_transaction: None,
                ..*session
            };
            transaction::stay(plan, &begins, trace);
        }
        _ => transaction::stay(plan, session, trace),
    }
}

/// Answers what is refused with the sentence, unless a rule has an answer.
pub(crate) fn refuse(
    plan: &mut Plan,
    sharded: &Sharded,
    session: &SessionFacts<'_>,
    asked: &Statement<'_>,
) {
    if let Sharded::Unnumbered(table, count) = *sharded
        && plan.answer.is_none()
    {
        plan.answer = Some(Answer::Number { table, count });
    }
    if let Sharded::Unmade(table, bucket) = sharded
        && plan.answer.is_none()
    {
        plan.answer = Some(Answer::Partition {
            table: *table,
            bucket: bucket.clone(),
        });
    }
    if let Sharded::Undescribed(wanted) = sharded
        && plan.answer.is_none()
    {
        plan.answer = Some(Answer::Columns(wanted.clone()));
    }
    if let Sharded::Unlooked(wanted) = sharded
        && plan.answer.is_none()
    {
        plan.answer = Some(Answer::LookUp(wanted.clone()));
    }
    if let Sharded::Refused(_, words) = sharded
        && plan.answer.is_none()
    {
        let asked = String::from_utf8_lossy(asked.text);
        let shown: String = asked.chars().take(QUERY_SHOWN_MAX).collect();
        let words = format!("HSCALE-1000: {words} - query was '{shown}'");
        plan.send_to(session.user.default_hostgroup, By::Shard);
        plan.answer = Some(Answer::NotSupported(Arc::from(words)));
    }
}

/// Characters of a statement that an error shows.
const QUERY_SHOWN_MAX: usize = 200;

/// Counts a statement that names a sharded table; one that is prepared is counted when it is executed.
#[inline(never)]
fn count(plan: &Plan, sharded: &Sharded, case: Case<'_>, memo: Option<&mut Memo>) {
    let Some(memo) = memo.filter(|_| !case.statement.prepares) else {
        return;
    };
    let (number, width) = match sharded {
        Sharded::No
        | Sharded::Said(_)
        | Sharded::Unnumbered(..)
        | Sharded::Unmade(..)
        | Sharded::Undescribed(_)
        | Sharded::Unlooked(_) => return,
        Sharded::To(to) => (to.table, SpreadWidth::Point),
        Sharded::Gathered(gather) if gather.all => {
            (gather.table, SpreadWidth::All(gather.partitions()))
        }
        Sharded::Gathered(gather) => (gather.table, SpreadWidth::Some(gather.partitions())),
        // A rule has another answer.
        Sharded::Refused(..) if !matches!(plan.answer, Some(Answer::NotSupported(_))) => return,
        Sharded::Refused(number, _) => (*number, SpreadWidth::Refused),
    };
    if let Some(table) = case.snapshot.shards.numbered(number) {
        memo.count_spread(table, width);
        if matches!(sharded, Sharded::Gathered(gather) if gather.finishing.is_some()) {
            memo.count_finished(table);
        }
    }
}

/// Puts in what partitions are sent, unless it was prepared so.
pub(crate) fn put_in(plan: &mut Plan, sharded: Sharded, case: Case<'_>, memo: Option<&mut Memo>) {
    if matches!(sharded, Sharded::No) {
        return;
    }
    count(plan, &sharded, case, memo);
    match sharded {
        Sharded::Gathered(gather) => plan.gather = Some(gather),
        Sharded::Said(text) if case.statement.prepared == Some(&*text) => {}
        Sharded::Said(text) => plan.leg.statement = Text::Rewritten(text),
        Sharded::To(To {
            text,
            partitions,
            numbered,
            ..
        }) => {
            plan.partition = Some(Box::new(Partition {
                names: partitions.into(),
                numbered,
            }));
            if let Some(text) = text.filter(|text| case.statement.prepared != Some(&**text)) {
                plan.leg.statement = Text::Rewritten(text);
            }
        }
        Sharded::No
        | Sharded::Unnumbered(..)
        | Sharded::Unmade(..)
        | Sharded::Undescribed(_)
        | Sharded::Unlooked(_)
        | Sharded::Refused(..) => {}
    }
}
