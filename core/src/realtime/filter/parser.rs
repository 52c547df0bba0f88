//! The syntax of filters: splits the text into columns, operators and values, and resolves quotes.

use std::borrow::Cow;

use super::refused;
use crate::error::Result;

/// A condition before its column, operator and value are checked.
pub(super) struct RawCondition<'a> {
    pub(super) column: &'a str,
    pub(super) operator: &'a str,
    pub(super) value: RawValue<'a>,
}

pub(super) enum RawValue<'a> {
    One(Cow<'a, str>),
    /// The values in the parentheses of `in`.
    List(Vec<Cow<'a, str>>),
}

/// Splits a filter into its conditions.
///
/// # Errors
/// `InvalidInput` if a condition is not `column=operator.value`, or if a quote or parenthesis is not closed.
pub(super) fn parse(text: &str) -> Result<Vec<RawCondition<'_>>> {
    let mut rest = text;
    let mut conditions = Vec::new();
    loop {
        let parts = rest.split_once('=').and_then(|(column, rest)| Some((column, rest.split_once('.')?)));
        let Some((column, (operator, after))) = parts else {
            return Err(refused(format_args!("is not of the form column=operator.value")));
        };
        let (value, after) = if operator == "in" { list(after)? } else { one(after)? };
        conditions.push(RawCondition { column, operator, value });
        match after.strip_prefix('&') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(conditions),
            None => return Err(refused(format_args!("goes on after the end of a value without &"))),
        }
    }
}

/// Reads a single value. Returns it with the text after it.
fn one(text: &str) -> Result<(RawValue<'_>, &str)> {
    let (value, rest) = item(text, &['&'])?;
    Ok((RawValue::One(value), rest))
}

/// Reads the values of `in`. Returns them with the text after the closing parenthesis.
fn list(text: &str) -> Result<(RawValue<'_>, &str)> {
    let Some(mut rest) = text.strip_prefix('(') else {
        return Err(refused(format_args!("has no list in parentheses after in.")));
    };
    if let Some(rest) = rest.strip_prefix(')') {
        return Ok((RawValue::List(Vec::new()), rest));
    }
    let mut values = Vec::new();
    loop {
        let (value, after) = item(rest, &[',', '(', ')', '"'])?;
        values.push(value);
        if let Some(after) = after.strip_prefix(')') {
            return Ok((RawValue::List(values), after));
        }
        let Some(after) = after.strip_prefix(',') else {
            return Err(refused(format_args!("has a list whose values are not separated by commas and ended by )")));
        };
        rest = after;
    }
}

/// Reads a quoted value, or an unquoted one up to the first of `ends` or the end of the text.
fn item<'a>(text: &'a str, ends: &[char]) -> Result<(Cow<'a, str>, &'a str)> {
    if let Some(inner) = text.strip_prefix('"') {
        return quoted(inner);
    }
    let (value, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
    Ok((Cow::Borrowed(value), rest))
}

/// Reads a quoted value after its opening quote. A backslash takes the next character literally.
fn quoted(text: &str) -> Result<(Cow<'_, str>, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Ok((Cow::Owned(value), &text[index + 1..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    Err(refused(format_args!("has a quoted value without its closing quote")))
}
