//! Points in time as people write them.

/// The date of a day, counted from 1970-01-01. Years begin in March, so that the odd day is the
/// last.
#[must_use]
pub fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Microseconds since 1970 as `2026-01-31 23:59:59.123456`, UTC.
#[must_use]
pub fn utc(us: u64) -> String {
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    let (year, month, day) = date(seconds / 86_400);
    let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}.{us:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_453), (2025, 12, 31));
        assert_eq!(utc(951_868_799_000_001), "2000-02-29 23:59:59.000001");
    }
}
