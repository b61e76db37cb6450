//! Time zones: ClickHouse sends moments, and clients want clocks.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::HashMap;
use wire::execute::DateTime;

const DAY: i64 = 86_400;

/// The zones of a result's columns.
#[derive(Debug, Clone)]
pub(crate) struct Zones {
    /// Of columns that name none.
    usual: Option<TimeZone>,
    named: HashMap<String, TimeZone>,
}

impl Zones {
    pub(crate) fn utc() -> Self {
        Self::of("UTC")
    }

    /// With this one for columns that name none.
    pub(crate) fn of(usual: &str) -> Self {
        Self {
            usual: named(usual),
            named: HashMap::new(),
        }
    }

    /// Knows the zone of a column from now on.
    pub(crate) fn learn(&mut self, name: &str) {
        if let Some(zone) = named(name) {
            self.named.insert(name.to_owned(), zone);
        }
    }

    /// Returns what a clock in the zone shows at a moment, in seconds of 1970.
    pub(crate) fn clock(&self, zone: Option<&str>, seconds: i64, micros: u32) -> DateTime {
        let zone = match zone {
            Some(name) => self.named.get(name),
            None => self.usual.as_ref(),
        };
        let offset = match (zone, Timestamp::from_second(seconds)) {
            (Some(zone), Ok(moment)) => zone.to_offset(moment).seconds(),
            _ => 0,
        };
        let seconds = seconds + i64::from(offset);
        let mut date = day(seconds.div_euclid(DAY));
        let rest = seconds.rem_euclid(DAY);
        date.hour = (rest / 3600) as u8;
        date.minute = (rest / 60 % 60) as u8;
        date.second = (rest % 60) as u8;
        date.micros = micros;
        date
    }
}

/// The zone of this name, or of an offset such as `+02:00`; none for UTC and for what is unknown.
fn named(name: &str) -> Option<TimeZone> {
    if let Some(seconds) = offset(name) {
        return Some(TimeZone::fixed(
            jiff::tz::Offset::from_seconds(seconds).ok()?,
        ));
    }
    TimeZone::get(name).ok()
}

/// `+02:00` in seconds.
fn offset(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Whether there is such a zone.
pub(crate) fn is_known(name: &str) -> bool {
    named(name).is_some()
}

/// The date of a day, counted from 1970: years of 400 are alike.
pub(crate) fn day(days: i64) -> DateTime {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years begin in March here, so that the odd day is the last.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    DateTime {
        year: u16::try_from(year).unwrap_or_default(),
        month: month as u8,
        day: day as u8,
        ..DateTime::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_those_of_their_zones() {
        let shown = |zone: &str, seconds| {
            let d = Zones::of(zone).clock(None, seconds, 0);
            format!(
                "{:04}-{:02}-{:02} {:02}:{:02}",
                d.year, d.month, d.day, d.hour, d.minute
            )
        };
        assert_eq!(shown("UTC", 0), "1970-01-01 00:00");
        assert_eq!(shown("UTC", 951_782_400), "2000-02-29 00:00");
        assert_eq!(shown("Europe/Berlin", 1_520_000_000), "2018-03-02 15:13");
        assert_eq!(shown("Europe/Berlin", 1_530_000_000), "2018-06-26 10:00");
        assert_eq!(shown("-03:30", 0), "1969-12-31 20:30");
        assert_eq!(shown("UTC", -1), "1969-12-31 23:59");
        assert!(is_known("+02:00") && !is_known("Nowhere/Near"));
    }
}
