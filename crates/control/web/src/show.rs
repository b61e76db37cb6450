//! Values as people read them.

/// Kinds of values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    /// Any text.
    Text,
    /// SQL, or another text that a machine reads.
    Code,
    /// A whole number, in groups of three digits.
    Number,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds since 1970.
    Moment,
    /// State of a server.
    State,
}

impl As {
    /// Whether columns of this kind stand to the right.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Number | Self::Bytes | Self::Us | Self::Ms)
    }

    /// A value of this kind in words; one that is none stays as it is.
    pub fn words(self, value: &str) -> String {
        let number = value.parse::<f64>().ok();
        match (self, number) {
            (Self::Number, Some(_)) if !value.contains('.') => grouped(value),
            (Self::Number, Some(number)) => format!("{number:.1}"),
            (Self::Bytes, Some(number)) => bytes(number),
            (Self::Us, Some(number)) => time(number),
            (Self::Ms, Some(number)) => time(number * 1000.0),
            (Self::Moment, Some(seconds)) if seconds > 0.0 => moment(seconds as u64),
            (Self::Moment, Some(_)) => "never".to_owned(),
            _ => value.to_owned(),
        }
    }
}

/// A whole number in groups of three digits.
pub fn grouped(digits: &str) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let mut grouped = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Bytes in the largest unit of which there is one.
pub fn bytes(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    for unit in units {
        if value.abs() < 1024.0 || unit == units[4] {
            let digits = usize::from(unit != "B" && value.abs() < 100.0);
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{bytes:.0} B")
}

/// Microseconds in the largest unit of which there is one.
pub fn time(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.*} ms", usize::from(us < 1e5), us / 1e3),
        us if us < 120e6 => format!("{:.1} s", us / 1e6),
        us if us < 7200e6 => format!("{:.0} min", us / 60e6),
        us => format!("{:.0} h", us / 3600e6),
    }
}

/// A moment, in UTC.
pub fn moment(seconds: u64) -> String {
    let (year, month, day) = bridge::date(seconds / 86400);
    let of_day = seconds % 86400;
    format!(
        "{year}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Anything that is counted, short enough for the side of a plot.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{:.1}G", value / 1e9),
        value if value >= 1e6 => format!("{:.1}M", value / 1e6),
        value if value >= 1e4 => format!("{:.0}k", value / 1e3),
        value if value >= 1e3 => format!("{:.1}k", value / 1e3),
        value if value >= 10.0 || value == value.trunc() => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_in_units_that_people_read() {
        assert_eq!(As::Number.words("1234567"), "1\u{202f}234\u{202f}567");
        assert_eq!(As::Number.words("-123"), "-123");
        assert_eq!(As::Number.words("<script>"), "<script>");
        assert_eq!(As::Bytes.words("0"), "0 B");
        assert_eq!(As::Bytes.words("1536"), "1.5 KiB");
        assert_eq!(As::Us.words("999"), "999 µs");
        assert_eq!(As::Us.words("12345"), "12.3 ms");
        assert_eq!(As::Ms.words("90000"), "90.0 s");
        assert_eq!(As::Moment.words("1700000000"), "2023-11-14 22:13:20");
        assert_eq!(short(12345.0), "12k");
        assert_eq!(short(0.25), "0.2");
    }
}
