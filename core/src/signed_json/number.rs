//! Numbers in canonical text, as JavaScript writes them (ECMA-262, `Number::toString`).

use serde_json::{Number, Value as Json};

/// The integers that every `f64` between holds exactly: up to 2^53.
const MAX_EXACT: u64 = 1 << 53;

/// Returns the text of a number. JavaScript knows `f64` only: `1.0` is `1`, and integers beyond 2^53 are rounded.
pub(super) fn canonical(number: &Number) -> String {
    if number.as_i64().is_some_and(|integer| integer.unsigned_abs() <= MAX_EXACT) {
        return number.to_string();
    }
    // JSON knows neither infinity nor NaN, so every number has an `f64`.
    number.as_f64().map_or_else(|| number.to_string(), float)
}

fn float(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // Like JavaScript, serde_json writes the shortest digits that identify the value, and the even ones if there are two.
    // `{:e}` of the standard library does not choose the even ones.
    let text = Json::from(value.abs()).to_string();
    let (decimal, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let length = |text: &str| i32::try_from(text.len()).unwrap_or(i32::MAX);
    // The value is 0.DIGITS times ten to the power of `point`.
    let point = length(whole) - length(&all) + length(significant) + exponent.parse::<i32>().unwrap_or_default();
    let digits = significant.trim_end_matches('0');
    let count = length(digits);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let sign = if value < 0.0 { "-" } else { "" };
    let text = match point {
        22.. | ..=-6 => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point - 1)
        }
        ..=0 => format!("0.{}{digits}", zeros(-point)),
        _ if point >= count => format!("{digits}{}", zeros(point - count)),
        _ => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
            format!("{whole}.{fraction}")
        }
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_javascript() {
        // RFC 8785, appendix B, and values at the limits of each form.
        for (json, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("-1.50", "-1.5"),
            ("1e0", "1"),
            ("123456789012", "123456789012"),
            ("9007199254740992", "9007199254740992"),
            ("9007199254740993", "9007199254740992"),
            ("-9007199254740993", "-9007199254740992"),
            ("18446744073709551615", "18446744073709552000"),
            ("295147905179352830000", "295147905179352830000"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("1.5e21", "1.5e+21"),
            ("999999999999999900000", "999999999999999900000"),
            ("1e23", "1e+23"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("0.000001", "0.000001"),
            ("0.0000012", "0.0000012"),
            ("1e-7", "1e-7"),
            ("0.00000012", "1.2e-7"),
            ("5e-324", "5e-324"),
            ("-1.7976931348623157e308", "-1.7976931348623157e+308"),
            ("333333333.3333332", "333333333.3333332"),
            ("333333333.33333329", "333333333.3333333"),
            ("0.1", "0.1"),
            ("-0.0000033333333333333333", "-0.0000033333333333333333"),
            ("1424953923781206.2", "1424953923781206.2"),
        ] {
            let number: Number = serde_json::from_str(json).expect(json);
            assert_eq!(canonical(&number), expected, "{json}");
        }
    }
}
