//! A length of time on the command line: a number and a unit.

use std::time::Duration;

/// The units, and their seconds.
const UNITS: [(char, u64); 5] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];

/// The longest time.
const MOST: u64 = 366 * 86_400;

/// The time between the beginnings of two backups. It is not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval(pub(super) Duration);

/// Reads a time such as `15m`.
pub(super) fn parse(text: &str) -> Result<Interval, String> {
    let form = || format!("{text:?} is not a number with s, m, h, d or w, such as 15m or 1h");
    let (number, seconds) = number_and_unit(text).ok_or_else(form)?;
    match number.checked_mul(seconds) {
        Some(0) => Err("the time between two backups is not 0".to_owned()),
        Some(seconds) if seconds <= MOST => Ok(Interval(Duration::from_secs(seconds))),
        _ => Err(format!("{text} is longer than a year")),
    }
}

/// A number, and the seconds of the unit after it.
pub(super) fn number_and_unit(text: &str) -> Option<(u64, u64)> {
    let unit = text.chars().next_back()?;
    let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number = &text[..text.len() - unit.len_utf8()];
    // `parse` would take a sign.
    if !number.chars().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok()?, *seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        for (text, seconds) in [("1s", 1), ("15m", 900), ("1h", 3_600), ("2d", 172_800), ("1w", 604_800)] {
            assert_eq!(parse(text), Ok(Interval(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "h", "1", "1H", "-1h", "+1h", "1.5h", "1 h", "0s", "9999d", "99999999999999999999h", "1hé"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
