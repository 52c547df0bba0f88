//! The names of the copies that `backup --every` makes, and which of them it keeps.
//!
//! Invariant: the rule looks at names only, so neither a clock that jumps nor the time of a file decides. A name that the command
//! does not make is never a copy, a copy with a time in the future is neither counted nor removed, and the newest copy is kept.

use std::collections::BTreeSet;

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::interval::number_and_unit;

const PREFIX: &str = "townsquare-";

/// The time in a name, in UTC: `20260131T235900Z`.
const FORM: &str = "%Y%m%dT%H%M%SZ";

/// The most copies of a unit.
const MOST: u64 = 100_000;

/// 1 January 1970 was a Thursday, and a week begins on Monday.
const SECONDS_BEFORE_MONDAY: i64 = 3 * 86_400;

/// What `--keep` keeps: for each length of a period in seconds, the number of the last periods with a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keep(Vec<(i64, usize)>);

/// Reads a list such as `24h,7d,4w`.
pub(super) fn parse(text: &str) -> Result<Keep, String> {
    let mut periods: Vec<(i64, usize)> = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let form = || format!("{part:?} is not a number with s, m, h, d or w; a list is such as 24h,7d,4w");
        let (count, seconds) = number_and_unit(part).ok_or_else(form)?;
        if count == 0 || count > MOST {
            return Err(format!("{part}: the number of copies is 1 to {MOST}"));
        }
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        if periods.iter().any(|(known, _)| *known == seconds) {
            return Err(format!("{part}: the unit stands in the list twice"));
        }
        periods.push((seconds, usize::try_from(count).unwrap_or(usize::MAX)));
    }
    Ok(Keep(periods))
}

/// The name of a copy that begins at a time. `suffix` is the end of the names of the place: `.db` or `.tar`.
pub(super) fn name(time: Timestamp, suffix: &str) -> String {
    format!("{PREFIX}{}{suffix}", time.strftime(FORM))
}

/// The time in a name, if the command makes such names.
pub(super) fn time_of(name: &str, suffix: &str) -> Option<Timestamp> {
    let text = name.strip_prefix(PREFIX)?.strip_suffix(suffix)?;
    let time = DateTime::strptime(FORM, text).ok()?;
    let time = TimeZone::UTC.to_timestamp(time).ok()?;
    // Only the exact form: `strptime` also takes fewer digits.
    (self::name(time, suffix) == name).then_some(time)
}

impl Keep {
    /// The copies to remove at the time `now`, the oldest first.
    pub(super) fn superfluous(&self, copies: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
        let mut past: Vec<i64> =
            copies.iter().map(|time| time.as_second()).filter(|time| *time <= now.as_second()).collect();
        past.sort_unstable();
        past.dedup();
        let mut kept: BTreeSet<i64> = past.last().copied().into_iter().collect();
        for &(seconds, count) in &self.0 {
            let mut periods = BTreeSet::new();
            for &time in past.iter().rev() {
                let period = (time + SECONDS_BEFORE_MONDAY).div_euclid(seconds);
                if !periods.contains(&period) {
                    if periods.len() == count {
                        break;
                    }
                    periods.insert(period);
                    kept.insert(time);
                }
            }
        }
        past.into_iter()
            .filter(|time| !kept.contains(time))
            .filter_map(|time| Timestamp::from_second(time).ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(texts: &[&str]) -> Vec<Timestamp> {
        texts.iter().map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
    }

    #[test]
    fn a_list_of_numbers_and_units_is_read_and_others_are_refused() {
        assert_eq!(parse("24h,7d,4w"), Ok(Keep(vec![(3_600, 24), (86_400, 7), (604_800, 4)])));
        assert_eq!(parse("3s, 2m"), Ok(Keep(vec![(1, 3), (60, 2)])));
        for (text, part) in [
            ("", "24h,7d,4w"),
            ("24", "24h,7d,4w"),
            ("24h,", "24h,7d,4w"),
            ("24h;7d", "24h,7d,4w"),
            ("4y", "\"4y\" is not"),
            ("-1h", "\"-1h\" is not"),
            ("0h", "1 to 100000"),
            ("100001h", "1 to 100000"),
            ("99999999999999999999h", "is not"),
            ("24h,2h", "twice"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn only_the_names_of_the_command_are_copies() {
        let time: Timestamp = "2026-01-31T23:59:00Z".parse().expect("a time");
        for suffix in [".db", ".tar"] {
            assert_eq!(name(time, suffix), format!("townsquare-20260131T235900Z{suffix}"));
            assert_eq!(time_of(&name(time, suffix), suffix), Some(time));
        }
        for other in [
            "townsquare.db",
            "townsquare-20260131T235900Z.tar",
            "townsquare-20260131T235900Z.db.files",
            "townsquare-20260131T235900Z.db.0123.part",
            "townsquare-20260131T235900Z",
            "townsquare-20260131T235900Z.DB",
            "townsquare-20260131T2359Z.db",
            "townsquare-2026131T235900Z.db",
            "townsquare-20260231T000000Z.db",
            "townsquare-20260131T235960Z.db",
            "townsquare-20260131T235900Z-mine.db",
            "Townsquare-20260131T235900Z.db",
            "my-townsquare-20260131T235900Z.db",
        ] {
            assert_eq!(time_of(other, ".db"), None, "{other}");
        }
    }

    #[test]
    fn the_newest_copy_of_each_period_is_kept() {
        let now = "2026-02-01T12:00:00Z";
        // The list, the copies, and the ones that are removed.
        let table: [(&str, &[&str], &[&str]); 10] = [
            ("1h", &[], &[]),
            ("1h", &["2026-01-01T00:00:00Z"], &[]),
            // Two copies of one hour.
            ("1h", &["2026-02-01T11:00:00Z", "2026-02-01T11:59:59Z"], &["2026-02-01T11:00:00Z"]),
            ("2h", &["2026-02-01T10:59:59Z", "2026-02-01T11:00:00Z"], &[]),
            // Hours without a copy do not count.
            (
                "2h",
                &["2026-01-01T00:10:00Z", "2026-01-05T00:20:00Z", "2026-02-01T11:00:00Z"],
                &["2026-01-01T00:10:00Z"],
            ),
            // A day has more than its last hour.
            (
                "1h,2d",
                &["2026-01-30T23:00:00Z", "2026-01-31T01:00:00Z", "2026-01-31T23:00:00Z", "2026-02-01T01:00:00Z"],
                &["2026-01-30T23:00:00Z", "2026-01-31T01:00:00Z"],
            ),
            // 1 February 2026 is a Sunday, the last day of its week, and 26 January is the first.
            (
                "2w",
                &["2026-01-19T00:00:00Z", "2026-01-25T23:59:59Z", "2026-01-26T00:00:00Z", "2026-02-01T00:00:00Z"],
                &["2026-01-19T00:00:00Z", "2026-01-26T00:00:00Z"],
            ),
            // The order of the list of a folder does not count.
            ("1d", &["2026-02-01T11:00:00Z", "2026-01-30T11:00:00Z"], &["2026-01-30T11:00:00Z"]),
            // The clock was ahead: these copies are neither counted nor removed.
            (
                "1h",
                &["2026-02-01T10:00:00Z", "2026-02-01T11:00:00Z", "2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z"],
                &["2026-02-01T10:00:00Z"],
            ),
            // The clock went back behind every copy.
            ("1h", &["2026-02-02T10:00:00Z", "2026-02-02T10:30:00Z"], &[]),
        ];
        for (keep, copies, removed) in table {
            let keep = parse(keep).expect("a list");
            assert_eq!(keep.superfluous(&times(copies), times(&[now])[0]), times(removed), "{keep:?} {copies:?}");
        }
    }

    #[test]
    fn an_hourly_backup_of_a_year_keeps_what_the_list_says() {
        let keep = parse("24h,7d,4w").expect("a list");
        let begin: Timestamp = "2025-01-01T00:00:00Z".parse().expect("a time");
        let mut copies: Vec<Timestamp> = Vec::new();
        for hour in 0..365 * 24 {
            let now = Timestamp::from_second(begin.as_second() + hour * 3_600).expect("a time");
            copies.push(now);
            let superfluous = keep.superfluous(&copies, now);
            copies.retain(|copy| !superfluous.contains(copy));
            assert_eq!(copies.last(), Some(&now));
        }
        // Of the 24 hours, the newest one is also that of its day and of its week; the day before is, too.
        let days: BTreeSet<String> = copies.iter().map(|time| time.strftime("%F").to_string()).collect();
        assert!((30..=33).contains(&copies.len()) && days.len() >= 9, "{copies:?}");
    }
}
