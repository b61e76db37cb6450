//! Plots: lines over time as SVG, and the same in words for who cannot see them.

use crate::show::{moment, short, time};
use maud::{Markup, html};

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 150.0;
/// Space for the numbers at the left.
const LEFT: f64 = 52.0;
/// Space above the highest point, and below the lowest.
const ABOVE: f64 = 8.0;
const BELOW: f64 = 20.0;
/// Length of a line with one point.
const ALONE: f64 = 6.0;

/// Units of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Anything that is counted.
    Count,
    /// Anything that is counted, in a second.
    PerSecond,
    /// Microseconds.
    Us,
    Bytes,
}

impl Unit {
    fn words(self, value: f64) -> String {
        match self {
            Self::Count => short(value),
            Self::PerSecond => format!("{}/s", short(value)),
            Self::Us => time(value),
            Self::Bytes => crate::show::bytes(value),
        }
    }
}

/// A line: its name, and a value for each moment, or none.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<Option<f64>>,
}

/// A plot of lines over these moments, in seconds since 1970.
pub(crate) fn plot(title: &str, unit: Unit, moments: &[u64], lines: &[Line]) -> Markup {
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
        return html! { figure { figcaption { (title) } p.none { "Nothing was measured yet." } } };
    };
    let values = lines.iter().flat_map(|line| line.values.iter().flatten());
    let top = nice(values.copied().fold(0.0, f64::max));
    let span = (last - first).max(1) as f64;
    let x = |moment: u64| LEFT + (moment - first) as f64 / span * (WIDTH - LEFT);
    let y = |value: f64| HEIGHT - BELOW - value / top * (HEIGHT - ABOVE - BELOW);
    let told = told(unit, lines);
    html! {
        figure {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{title}: {told}")) {
                @for part in [0.0, 0.5, 1.0] {
                    line.grid x1=(LEFT) x2=(WIDTH) y1=(y(top * part)) y2=(y(top * part)) {}
                    text.at-left x=(LEFT - 6.0) y=(y(top * part) + 4.0) { (unit.words(top * part)) }
                }
                text x=(LEFT) y=(HEIGHT - 4.0) { (of_day(*first, span)) }
                text.at-left x=(WIDTH) y=(HEIGHT - 4.0) { (of_day(*last, span)) }
                @for (at, line) in lines.iter().enumerate() {
                    @for piece in pieces(moments, &line.values) {
                        polyline class=(format!("line l{at}"))
                            points=(points(piece.iter().map(|(at, value)| (x(*at), y(*value))))) {}
                    }
                }
            }
            ul.legend {
                @for (at, line) in lines.iter().enumerate() {
                    li class=(format!("l{at}")) { (line.name) " " b { (now(unit, line)) } }
                }
            }
        }
    }
}

/// Points of a line; a single one is a short line to it, or nobody would see it.
fn points(places: impl Iterator<Item = (f64, f64)>) -> String {
    let mut places: Vec<_> = places.collect();
    if let [(x, y)] = places[..] {
        places.insert(0, (x - ALONE, y));
    }
    let point = |(x, y): &(f64, f64)| format!("{x:.1},{y:.1} ");
    places.iter().map(point).collect()
}

/// Values without a gap between them.
fn pieces(moments: &[u64], values: &[Option<f64>]) -> Vec<Vec<(u64, f64)>> {
    let mut pieces = vec![Vec::new()];
    for (moment, value) in moments.iter().zip(values) {
        match (value, pieces.last_mut()) {
            (Some(value), Some(piece)) => piece.push((*moment, *value)),
            (None, Some(piece)) if !piece.is_empty() => pieces.push(Vec::new()),
            _ => {}
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// The next number above that people like.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps.into_iter().find(|step| step * power >= value);
    step.unwrap_or(10.0) * power
}

fn of_day(seconds: u64, span: f64) -> String {
    let words = moment(seconds);
    match span {
        span if span < 86400.0 => words[11..].to_owned(),
        _ => words[..16].to_owned(),
    }
}

fn now(unit: Unit, line: &Line) -> String {
    let last = line.values.iter().rev().find_map(|value| *value);
    last.map_or_else(|| "none".to_owned(), |last| unit.words(last))
}

fn told(unit: Unit, lines: &[Line]) -> String {
    let of = |line: &Line| {
        let most = line.values.iter().flatten().copied().fold(0.0, f64::max);
        format!(
            "{} now {}, at most {}",
            line.name,
            now(unit, line),
            unit.words(most)
        )
    };
    let all: Vec<_> = lines.iter().map(of).collect();
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_tells_in_words_what_it_draws_and_leaves_gaps() {
        let line = Line {
            name: "statements",
            values: vec![Some(1.0), None, Some(30.0), Some(20.0)],
        };
        let shown = plot("Rate <1>", Unit::PerSecond, &[100, 102, 104, 106], &[line]).into_string();
        assert!(
            shown.contains(r#"aria-label="Rate &lt;1&gt;: statements now 20/s, at most 30/s""#),
            "{shown}"
        );
        assert_eq!(shown.matches("<polyline").count(), 2, "{shown}");
        // The single one before the gap is seen, too.
        let drawn = shown.split("points=\"").skip(1);
        let mut drawn = drawn.map(|rest| rest.split('"').next().unwrap_or_default());
        assert!(
            drawn.all(|line| line.split_whitespace().count() == 2),
            "{shown}"
        );
        assert!(
            shown.contains(">50/s<") && shown.contains(">00:01:40<"),
            "{shown}"
        );
        assert!(
            plot("Rate", Unit::Count, &[], &[])
                .into_string()
                .contains("Nothing was measured")
        );
    }

    #[test]
    fn a_scale_ends_at_a_number_that_people_like() {
        let all = [0.0, 0.03, 1.0, 1.1, 4.0, 9.0, 101.0].map(nice);
        assert_eq!(all, [1.0, 0.05, 1.0, 2.0, 5.0, 10.0, 200.0]);
        assert_eq!(nice(f64::INFINITY), 1.0);
    }
}
