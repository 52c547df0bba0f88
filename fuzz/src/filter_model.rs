//! The syntax and the meaning of filters, written once more: without the library's parser, without sorting, and with patterns that are
//! matched by trying every place.

use std::{cmp::Ordering, collections::BTreeMap};

use jiff::Timestamp;
use serde_json::{Map, Value};
use townsquare::{Uuid, rows::ValueKind};

/// Conditions that all hold.
pub(super) struct Filter(Vec<(String, ValueKind, Test)>);

enum Test {
    /// True if the order of the column's value and this one is in the list.
    Compare(&'static [Ordering], Scalar),
    In(Vec<Scalar>),
    /// A pattern, and whether case is ignored.
    Like(Vec<Piece>, bool),
    Is(Value),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Scalar {
    Text(String),
    Boolean(bool),
    Integer(i64),
    Time(Timestamp),
}

#[derive(Clone, Copy)]
enum Piece {
    AnyText,
    AnyCharacter,
    Character(char),
}

impl Filter {
    /// Reads a filter; `None` if it is malformed or does not fit the columns.
    pub(super) fn parse(columns: &BTreeMap<&str, ValueKind>, text: &str) -> Option<Filter> {
        if text.len() > 1_024 || text.contains('\0') {
            return None;
        }
        let mut conditions = Vec::new();
        if text.is_empty() {
            return Some(Filter(conditions));
        }
        let mut rest = text;
        loop {
            let (column, after) = rest.split_once('=')?;
            let (operator, after) = after.split_once('.')?;
            let (values, after) = if operator == "in" { list(after)? } else { single(after)? };
            let kind = *columns.get(column)?;
            conditions.push((column.to_owned(), kind, test(kind, operator, &values)?));
            if after.is_empty() {
                break;
            }
            rest = after.strip_prefix('&')?;
        }
        Some(Filter(conditions)).filter(|filter| filter.0.len() <= 8)
    }

    pub(super) fn selects(&self, row: &Map<String, Value>) -> bool {
        self.0.iter().all(|(column, kind, test)| {
            let value = row.get(column).unwrap_or(&Value::Null);
            let scalar = || value_of(*kind, value);
            match test {
                Test::Compare(orders, other) => scalar().is_some_and(|value| orders.contains(&value.cmp(other))),
                Test::In(others) => scalar().is_some_and(|value| others.contains(&value)),
                Test::Like(pattern, folds) => value.as_str().is_some_and(|text| {
                    let text: Vec<char> = text.chars().map(|character| fold(character, *folds)).collect();
                    is_like(pattern, &text)
                }),
                Test::Is(expected) => value == expected,
            }
        })
    }
}

fn single(text: &str) -> Option<(Vec<String>, &str)> {
    let (value, rest) = item(text, "&")?;
    Some((vec![value], rest))
}

fn list(text: &str) -> Option<(Vec<String>, &str)> {
    let mut rest = text.strip_prefix('(')?;
    let mut values = Vec::new();
    if let Some(rest) = rest.strip_prefix(')') {
        return Some((values, rest));
    }
    loop {
        let (value, after) = item(rest, ",()\"")?;
        values.push(value);
        if let Some(after) = after.strip_prefix(')') {
            return Some((values, after));
        }
        rest = after.strip_prefix(',')?;
    }
}

/// Reads a quoted value, or one up to one of `ends`.
fn item<'a>(text: &'a str, ends: &str) -> Option<(String, &'a str)> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(|character| ends.contains(character)).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut characters = inner.chars();
    loop {
        match characters.next()? {
            '"' => return Some((value, characters.as_str())),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
}

fn test(kind: ValueKind, operator: &str, values: &[String]) -> Option<Test> {
    use Ordering::{Equal, Greater, Less};
    let scalars = || values.iter().map(|text| parse(kind, text)).collect::<Option<Vec<_>>>();
    let compare = |orders| Some(Test::Compare(orders, scalars()?.pop()?));
    match operator {
        "eq" => compare(&[Equal]),
        "neq" => compare(&[Less, Greater]),
        "lt" => compare(&[Less]),
        "lte" => compare(&[Less, Equal]),
        "gt" => compare(&[Greater]),
        "gte" => compare(&[Greater, Equal]),
        "in" if !matches!(kind, ValueKind::Json | ValueKind::Texts) => Some(Test::In(scalars()?)),
        "like" | "ilike" if kind == ValueKind::Text => {
            Some(Test::Like(pattern(values.first()?, operator == "ilike")?, operator == "ilike"))
        }
        "is" => match values.first()?.as_str() {
            "null" => Some(Test::Is(Value::Null)),
            "true" if kind == ValueKind::Boolean => Some(Test::Is(true.into())),
            "false" if kind == ValueKind::Boolean => Some(Test::Is(false.into())),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the value of a filter.
fn parse(kind: ValueKind, text: &str) -> Option<Scalar> {
    match kind {
        ValueKind::Uuid => Uuid::try_parse(text).ok().map(|id| Scalar::Text(id.to_string())),
        ValueKind::Text => Some(Scalar::Text(text.to_owned())),
        ValueKind::Integer => text.parse().ok().map(Scalar::Integer),
        ValueKind::Boolean => text.parse().ok().map(Scalar::Boolean),
        ValueKind::Time => text.parse().ok().map(Scalar::Time),
        _ => None,
    }
}

/// Reads the value of a row.
fn value_of(kind: ValueKind, value: &Value) -> Option<Scalar> {
    match value {
        Value::String(text) => parse(kind, text),
        Value::Number(number) => number.as_i64().map(Scalar::Integer),
        Value::Bool(is_true) => Some(Scalar::Boolean(*is_true)),
        _ => None,
    }
}

fn pattern(text: &str, folds: bool) -> Option<Vec<Piece>> {
    if text.chars().count() > 256 {
        return None;
    }
    let mut pieces = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '%' | '*' => Piece::AnyText,
            '_' => Piece::AnyCharacter,
            '\\' => Piece::Character(fold(characters.next()?, folds)),
            other => Piece::Character(fold(other, folds)),
        });
    }
    Some(pieces)
}

/// Whether a text fits a pattern. `ends` holds the places of the text that the pieces so far can end at.
fn is_like(pattern: &[Piece], text: &[char]) -> bool {
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for piece in pattern {
        let mut next = vec![false; text.len() + 1];
        for end in 0..=text.len() {
            next[end] = match piece {
                Piece::AnyText => ends[..=end].contains(&true),
                Piece::AnyCharacter => end > 0 && ends[end - 1],
                Piece::Character(character) => end > 0 && ends[end - 1] && text[end - 1] == *character,
            };
        }
        ends = next;
    }
    ends[text.len()]
}

/// Unicode's simple case folding, if `folds`.
fn fold(character: char, folds: bool) -> char {
    let alone = |mut characters: Vec<char>| characters.pop().filter(|_| characters.is_empty());
    if !folds || character == 'ı' {
        return character;
    }
    let upper = alone(character.to_uppercase().collect()).unwrap_or(character);
    alone(upper.to_lowercase().collect()).unwrap_or(upper)
}
