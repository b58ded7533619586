//! Timestamps in RFC 3339 form.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// Formats a time as `2026-07-28T13:05:09.042Z`.
pub fn rfc3339(time: SystemTime) -> String {
    // A clock before 1970 was never set.
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, milliseconds) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Year, month and day, from a number of days since 1970.
fn date(mut days: u64) -> (u64, usize, u64) {
    let mut year = 1970;
    while days >= 365 + leap_day(year) {
        days -= 365 + leap_day(year);
        year += 1;
    }
    let months = [31, 28 + leap_day(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

fn leap_day(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    leap.into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_follow_the_calendar() {
        for (milliseconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_785_243_909_042, "2026-07-28T13:05:09.042Z"),
            (1_798_761_599_000, "2026-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
            assert_eq!(rfc3339(time), expected);
        }
    }
}
