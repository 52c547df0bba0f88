//! Reads JSON text, and refuses numbers that would change.
//!
//! Invariant: an accepted number is equal to the number that is stored and read back. Values hold numbers as `i64`, `u64`
//! or `f64`, so other numbers would be rounded without notice.

use serde_json::Value as Json;

use crate::error::{Error, Result};

/// Reads JSON text for a JSON column. `name` stands for the text in the error's message.
///
/// # Errors
/// `InvalidInput` for text that is not JSON, and for a number that would not come back equal: an integer outside -2^63 to
/// 2^64-1, and a number with a fraction or an exponent that no `f64` holds, such as `0.10000000000000000001` or `1e400`.
/// `1.10` is accepted, because it is equal to `1.1`.
///
/// `serde_json::from_str` rounds such numbers without an error.
///
/// ```
/// use townsquare::spaces::parse_json;
///
/// let config = parse_json("config", "[1.10, 18446744073709551615]")?;
/// assert_eq!(config[0], 1.1);
/// let error = parse_json("config", "18446744073709551616").unwrap_err();
/// assert_eq!(error.message(), "config has an integer of more than 64 bits");
/// # Ok::<(), townsquare::Error>(())
/// ```
pub fn parse_json(name: &str, text: &str) -> Result<Json> {
    let refused = |why: &str| Err(Error::invalid_input(format!("{name} {why}")));
    for number in numbers(text) {
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return refused("has an integer of more than 64 bits");
        }
        if !is_integer && !is_exact(number) {
            let shortened: String = number.chars().take(40).collect();
            return refused(&format!("has a number that no double holds: {shortened}"));
        }
    }
    serde_json::from_str(text).or_else(|error| refused(&format!("is not JSON: {error}")))
}

/// The numbers of a JSON text, as they are written.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start =
                rest.find(|character: char| character == '"' || character == '-' || character.is_ascii_digit())?;
            rest = &rest[start..];
            if let Some(string) = rest.strip_prefix('"') {
                rest = after_string(string);
                continue;
            }
            let is_part = |character: char| character.is_ascii_digit() || "+-.eE".contains(character);
            let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
            let number;
            (number, rest) = rest.split_at(end);
            return Some(number);
        }
    })
}

/// The text after the closing quote of a string.
fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return &text[place + 1..],
            _ => {}
        }
    }
    ""
}

/// Whether the nearest `f64`, written with the digits that identify it, is the number. Text that is no number passes: the
/// parser refuses it.
fn is_exact(number: &str) -> bool {
    let Ok(float) = number.parse::<f64>() else { return true };
    float.is_finite() && decimal(number) == decimal(&format!("{float:e}"))
}

/// The digits of a number without leading and trailing zeros, and the power of ten of the first digit; `None` for a power
/// of more than 64 bits.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (number, is_negative) = number.strip_prefix('-').map_or((number, false), |number| (number, true));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let leading_zeros = i64::try_from(all.len() - digits.len()).ok()?;
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return Some((false, String::new(), 0));
    }
    let exponent: i64 = exponent.parse().ok()?;
    let power = i64::try_from(whole.len()).ok()?.checked_add(exponent)?.checked_sub(leading_zeros)?;
    Some((is_negative, digits.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_come_back_equal_are_accepted() {
        for text in [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "0e5",
            "0e99999999999999999999",
            "1.10",
            "1.1",
            "100e-2",
            "1E+2",
            "0.00001e5",
            "1e22",
            "1e23",
            "5e-324",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "-9223372036854775808",
            "18446744073709551615",
            "9007199254740993",
            "123456789.12345679",
        ] {
            let value = parse_json("config", text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(value.as_f64(), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn numbers_that_would_change_are_refused() {
        for number in [
            "18446744073709551616",
            "-9223372036854775809",
            "123456789012345678901234567890",
            "1e400",
            "-1e400",
            "1e-400",
            "0.10000000000000000001",
            "0.1000000000000000055511151231257827",
            "9007199254740993.0",
            "1e99999999999999999999",
            "4.9e-324",
        ] {
            for text in [number.to_owned(), format!(r#"{{"\"a": [true, {number}]}}"#)] {
                assert!(parse_json("config", &text).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn digits_in_strings_are_no_numbers() {
        let text = r#"{"1e400":"18446744073709551616 \" 1e400 \\","b":"\\"}"#;
        assert_eq!(parse_json("config", text).expect("JSON").to_string(), text);
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["", "1.2.3", "007", "--1", "1e", "\"1", "[1", "NaN", "-Infinity", "1 2"] {
            let error = parse_json("config", text).expect_err(text);
            assert!(error.message().starts_with("config is not JSON: "), "{text}: {error}");
        }
    }
}
