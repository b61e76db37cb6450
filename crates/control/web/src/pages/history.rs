//! Histories: plots of days, from the tables of schema `stats_history`.

use super::asked::Asked;
use crate::listing::{cell, complaint, words};
use crate::page::Page;
use crate::plot::{Line, Unit, plot};
use bridge::{Table, Unanswered};
use maud::{Markup, html};

/// Points of a plot at most.
const POINTS_MAX: usize = 300;

/// Spans: name in the address, name on the page, seconds, ending of the tables.
const SPANS: &[(&str, &str, u64, &str)] = &[
    ("hour", "an hour", 3600, ""),
    ("day", "a day", 86_400, ""),
    ("week", "a week", 7 * 86_400, ""),
    ("month", "a month", 31 * 86_400, "_hour"),
    ("year", "a year", 366 * 86_400, "_hour"),
    ("decade", "ten years", 3660 * 86_400, "_day"),
];

/// A line of a plot: its name, its column, and whether that only grows.
type Drawn = (&'static str, &'static str, bool);

/// A plot: its title, the table without its ending, its unit, its lines.
struct Kind(&'static str, &'static str, Unit, &'static [Drawn]);

const KINDS: &[Kind] = &[
    Kind(
        "Statements",
        "mysql_connections",
        Unit::PerSecond,
        &[
            ("statements", "Questions", true),
            ("slow", "Slow_queries", true),
        ],
    ),
    Kind(
        "Connections",
        "mysql_connections",
        Unit::Count,
        &[
            ("clients", "Client_Connections_connected", false),
            ("to servers", "Server_Connections_connected", false),
        ],
    ),
    Kind(
        "Connections that failed",
        "mysql_connections",
        Unit::PerSecond,
        &[
            ("of clients", "Client_Connections_aborted", true),
            ("to servers", "Server_Connections_aborted", true),
        ],
    ),
    Kind(
        "Cache",
        "mysql_query_cache",
        Unit::PerSecond,
        &[
            ("asked", "count_GET", true),
            ("found", "count_GET_OK", true),
        ],
    ),
    Kind(
        "Size of the cache",
        "mysql_query_cache",
        Unit::Bytes,
        &[("results", "Memory_Bytes", false)],
    ),
    Kind(
        "Processor, in ticks of the kernel",
        "system_cpu",
        Unit::PerSecond,
        &[("own", "tms_utime", true), ("kernel's", "tms_stime", true)],
    ),
    Kind(
        "Memory",
        "system_memory",
        Unit::Bytes,
        &[
            ("allocated", "allocated", false),
            ("resident", "resident", false),
        ],
    ),
];

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let span = SPANS
        .iter()
        .find(|span| span.0 == asked.field("span"))
        .unwrap_or(&SPANS[1]);
    let mut plots = Vec::new();
    for kind in KINDS {
        plots.push(drawn(
            kind,
            &asked.ask(&question(kind, span.2, span.3)).await,
        ));
    }
    let live = html! {
        p id="spans" { "The last:" }
        ul.sorts aria-labelledby="spans" {
            @for one in SPANS {
                li { a href=(format!("/history?span={}", one.0)) aria-current=[(one.0 == span.0).then_some("true")] { (one.1) } }
            }
        }
        div.plots { @for plot in &plots { (plot) } }
        p.hint { "From the tables of " code { "stats_history" } ". The variables " code { "admin-stats_…" } " say how often samples are taken." }
    };
    Page {
        path: "/history",
        title: "History",
        live,
        every_ms: 0,
        still: html! {},
    }
}

/// As many rows as there are points at most, each the last of its piece of the time.
fn question(kind: &Kind, span_s: u64, ending: &str) -> String {
    let columns: Vec<_> = kind.3.iter().map(|drawn| drawn.1).collect();
    let piece = (span_s as usize / POINTS_MAX).max(1);
    format!(
        "SELECT max(timestamp), {} FROM stats_history.{}{ending} WHERE timestamp > CAST(strftime('%s', 'now') AS INTEGER) - {span_s} \
         GROUP BY timestamp / {piece} ORDER BY timestamp LIMIT {}",
        columns.join(", "),
        kind.1,
        POINTS_MAX + 1
    )
}

fn drawn(kind: &Kind, answer: &Result<Table, Unanswered>) -> Markup {
    let rows = match answer {
        Ok(table) => &table.rows,
        Err(unanswered) => return complaint(words(unanswered)),
    };
    let moments: Vec<u64> = rows
        .iter()
        .map(|row| cell(row, 0).parse().unwrap_or(0))
        .collect();
    let lines = kind.3.iter().enumerate().map(|(at, &(name, _, grows))| {
        let values: Vec<f64> = rows
            .iter()
            .map(|row| cell(row, at + 1).parse().unwrap_or(0.0))
            .collect();
        Line {
            name,
            values: match grows {
                true => rates(&moments, &values),
                false => values.into_iter().map(Some).collect(),
            },
        }
    });
    plot(kind.0, kind.2, &moments, &lines.collect::<Vec<_>>())
}

/// Growth in a second of what counts from the start of the process; none where it began anew.
fn rates(moments: &[u64], values: &[f64]) -> Vec<Option<f64>> {
    let rate = |at: usize| {
        let before = at.checked_sub(1)?;
        let growth = values[at] - values[before];
        let seconds = moments[at].checked_sub(moments[before])?.max(1) as f64;
        (growth >= 0.0).then_some(growth / seconds)
    };
    (0..values.len()).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_from_the_start_has_a_gap_at_a_start() {
        let all = rates(&[0, 60, 120, 180], &[60.0, 180.0, 12.0, 72.0]);
        assert_eq!(all, [None, Some(2.0), None, Some(1.0)]);
    }

    #[test]
    fn a_question_has_a_bound_whatever_the_span() {
        let sql = question(&KINDS[0], SPANS[3].2, SPANS[3].3);
        assert!(
            sql.contains(
                "max(timestamp), Questions, Slow_queries FROM stats_history.mysql_connections_hour"
            ),
            "{sql}"
        );
        assert!(
            sql.contains("GROUP BY timestamp / 8928 ") && sql.ends_with("LIMIT 301"),
            "{sql}"
        );
    }
}
