//! A metric as it is declared beside the counter or column that it shows.

/// Meaning of a number that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Grows until the process ends.
    Total,
    /// Grows likewise, is counted in nanoseconds and shown in seconds.
    Nanoseconds,
    /// Grows likewise, is counted in microseconds and shown in seconds.
    Microseconds,
    /// Goes up and down.
    Gauge,
}

impl Kind {
    /// How many of what is counted are one of what is shown.
    #[must_use]
    pub const fn divisor(self) -> u64 {
        match self {
            Self::Total | Self::Gauge => 1,
            Self::Nanoseconds => 1_000_000_000,
            Self::Microseconds => 1_000_000,
        }
    }

    /// Word for it in an exposition.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Total | Self::Nanoseconds | Self::Microseconds => "counter",
        }
    }
}

/// Name, kind and sentence of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Meaning of the number.
    pub kind: Kind,
    /// Its name, and in braces the labels that are always the same: `name{status="ok"}`.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
}

impl Metric {
    /// Name of the family that it belongs to.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.name.split('{').next().unwrap_or(self.name)
    }

    /// Labels that are always the same, as they are written; empty for none.
    #[must_use]
    pub fn labels(&self) -> &'static str {
        let inner = self.name.split_once('{');
        inner.map_or("", |(_, labels)| labels.trim_end_matches('}'))
    }
}
