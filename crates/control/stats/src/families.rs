//! Metrics by family, written out as Prometheus reads them.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>

use bridge::{Kind, Latency, Metric, Observed, Width};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Format of an exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus' text, 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    Open,
}

impl Format {
    /// The better one of those that a reader accepts.
    pub(crate) fn of_accept(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") {
            Self::Open
        } else {
            Self::Text
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

struct Family {
    word: &'static str,
    helps: Vec<&'static str>,
    /// Ending of the name, labels as they are written, value.
    samples: Vec<(&'static str, String, String)>,
}

/// All families, in the order of their names.
#[derive(Default)]
pub(crate) struct Families(BTreeMap<&'static str, Family>);

/// Names and values of labels; values are any text at all.
pub(crate) type Labels<'a> = &'a [(&'static str, &'a str)];

impl Families {
    /// Adds a number.
    pub(crate) fn add(&mut self, metric: &Metric, labels: Labels<'_>, number: u64) {
        let divisor = metric.kind.divisor();
        let value = if divisor == 1 {
            number.to_string()
        } else {
            seconds(number, divisor)
        };
        let family = self.family(metric, metric.kind.word());
        family
            .samples
            .push(("", written(metric.labels(), labels), value));
    }

    /// Adds the columns of a row that have metrics.
    pub(crate) fn row<T: Observed>(&mut self, row: &T, labels: Labels<'_>) {
        let mut cells = Vec::with_capacity(T::WIDTH);
        row.cells(&mut cells);
        for (metric, cell) in T::METRICS.iter().zip(cells) {
            if let (Some(metric), bridge::Cell::Number(number)) = (metric, cell) {
                self.add(metric, labels, number.max(0).cast_unsigned());
            }
        }
    }

    /// Adds a histogram: its buckets, each with all that was shorter.
    pub(crate) fn latency<W: Width>(
        &mut self,
        metric: &Metric,
        labels: Labels<'_>,
        latency: &Latency<W>,
        sum_us: Option<u64>,
    ) {
        let family = self.family(metric, "histogram");
        let base = written(metric.labels(), labels);
        let of = |bound: &str| {
            let comma = if base.is_empty() { "" } else { "," };
            format!("{base}{comma}le=\"{bound}\"")
        };
        let mut total = 0;
        for (bound_us, count) in latency.cumulative() {
            total = count;
            let bound = seconds(bound_us, 1_000_000);
            family
                .samples
                .push(("_bucket", of(&bound), count.to_string()));
        }
        total = total.max(latency.total());
        family
            .samples
            .push(("_bucket", of("+Inf"), total.to_string()));
        if let Some(sum_us) = sum_us {
            let sum = seconds(sum_us, 1_000_000);
            family.samples.push(("_sum", base.clone(), sum));
        }
        family.samples.push(("_count", base, total.to_string()));
    }

    fn family(&mut self, metric: &Metric, word: &'static str) -> &mut Family {
        let family = self.0.entry(metric.family()).or_insert_with(|| Family {
            word,
            helps: Vec::new(),
            samples: Vec::new(),
        });
        if !family.helps.contains(&metric.help) {
            family.helps.push(metric.help);
        }
        family
    }

    /// Writes all of it.
    pub(crate) fn write(&self, format: Format) -> String {
        let mut text = String::new();
        for (name, family) in &self.0 {
            let (shown, word) = head(name, family.word, format);
            let help = escaped(&family.helps.join(" "), format == Format::Open);
            // Writing to a text cannot fail.
            let _fine = writeln!(text, "# HELP {shown} {help}\n# TYPE {shown} {word}");
            for (ending, labels, value) in &family.samples {
                let _fine = match labels.as_str() {
                    "" => writeln!(text, "{name}{ending} {value}"),
                    _ => writeln!(text, "{name}{ending}{{{labels}}} {value}"),
                };
            }
        }
        if format == Format::Open {
            text.push_str("# EOF\n");
        }
        text
    }
}

/// Name and type of a family; OpenMetrics has counters end in `_total` and leaves that out here.
fn head<'a>(name: &'a str, word: &'a str, format: Format) -> (&'a str, &'a str) {
    match (format, word, name.strip_suffix("_total")) {
        (Format::Open, "counter", Some(short)) => (short, word),
        (Format::Open, "counter", None) => (name, "unknown"),
        _ => (name, word),
    }
}

fn seconds(number: u64, divisor: u64) -> String {
    (number as f64 / divisor as f64).to_string()
}

fn written(fixed: &str, labels: Labels<'_>) -> String {
    let mut text = String::new();
    for (name, value) in labels {
        let comma = if text.is_empty() { "" } else { "," };
        let _fine = write!(text, "{comma}{name}=\"{}\"", escaped(value, true));
    }
    if !fixed.is_empty() {
        let comma = if text.is_empty() { "" } else { "," };
        let _fine = write!(text, "{comma}{fixed}");
    }
    text
}

/// A text in which nothing ends a line or a value.
fn escaped(text: &str, quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            one => out.push(one),
        }
    }
    out
}

/// A metric that is shown for a whole process, or for what has no row of its own.
pub(crate) const fn metric(kind: Kind, name: &'static str, help: &'static str) -> Metric {
    Metric { kind, name, help }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HITS: Metric = metric(Kind::Total, "x_hits_total{status=\"ok\"}", "Hits.");

    #[test]
    fn what_strangers_say_ends_no_line_and_no_value() {
        let mut families = Families::default();
        families.add(&HITS, &[("user", "a\"b\\c\nd")], 7);
        assert_eq!(
            families.write(Format::Text),
            "# HELP x_hits_total Hits.\n# TYPE x_hits_total counter\n\
             x_hits_total{user=\"a\\\"b\\\\c\\nd\",status=\"ok\"} 7\n"
        );
    }

    #[test]
    fn openmetrics_leaves_total_out_of_the_family_and_says_where_it_ends() {
        let mut families = Families::default();
        families.add(&HITS, &[], 1);
        let killed = metric(Kind::Total, "killed", "Ended.");
        families.add(&killed, &[], 2);
        assert_eq!(
            families.write(Format::Open),
            "# HELP killed Ended.\n# TYPE killed unknown\nkilled 2\n\
             # HELP x_hits Hits.\n# TYPE x_hits counter\nx_hits_total{status=\"ok\"} 1\n# EOF\n"
        );
    }

    #[test]
    fn buckets_hold_all_that_was_shorter_and_times_are_seconds() {
        let mut latency = Latency::<u64>::default();
        [100, 100, 900_000]
            .into_iter()
            .for_each(|us| latency.count(us));
        let mut families = Families::default();
        let metric = metric(Kind::Microseconds, "x_seconds", "Times.");
        families.latency(&metric, &[("hostgroup", "1")], &latency, Some(900_200));
        let text = families.write(Format::Text);
        assert!(
            text.contains("x_seconds_bucket{hostgroup=\"1\",le=\"0.000127\"} 2\n"),
            "{text}"
        );
        assert!(text.contains("le=\"0.524287\"} 2\n"), "{text}");
        assert!(text.contains("le=\"+Inf\"} 3\n"), "{text}");
        assert!(
            text.contains("x_seconds_sum{hostgroup=\"1\"} 0.9002\n"),
            "{text}"
        );
        assert!(
            text.contains("x_seconds_count{hostgroup=\"1\"} 3\n"),
            "{text}"
        );
    }
}
