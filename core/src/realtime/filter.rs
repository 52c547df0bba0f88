//! The filter of a change subscription: conditions on the columns of a row, such as `space_id=eq.<uuid>` (SPEC 6, DESIGN 5).
//!
//! Invariant: a filter decides by the row image alone, so the change feed and the first rows of a live query agree on both
//! engines. It follows SQL's three-valued logic: a comparison with NULL is not true. Text compares by code point.
//!
//! ```text
//! filter    = [ condition *( "&" condition ) ]
//! condition = column "=" operator "." value
//! value     = text without "&" / quoted                 for every operator but `in`
//!           / "(" [ item *( "," item ) ] ")"             for `in`
//! item      = text without "," "(" ")" and DQUOTE / quoted
//! quoted    = DQUOTE *( character / "\" character ) DQUOTE
//! ```

mod parser;
mod pattern;
mod scalar;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use serde_json::Value as Json;

pub(super) use self::scalar::Scalar;
use self::{
    parser::{RawCondition, RawValue},
    pattern::Pattern,
    scalar::type_name,
};
use crate::{
    error::{Error, Result},
    model::ColumnType,
    policy::{Caller, Column, RowImage, Table},
};

/// The largest size of a filter in bytes. This limit and [`MAX_CONDITIONS`] bound the time that the filter of an anonymous
/// request takes for each change of a row.
const MAX_SIZE: usize = 1_024;

/// The most conditions of a filter.
const MAX_CONDITIONS: usize = 8;

/// The most conditions of a filter that judges a row in a fixed short time.
const CHEAP_CONDITIONS: usize = 3;

/// Conditions that all hold for the rows of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChangeFilter {
    conditions: Vec<Condition>,
    equality: Option<Equality>,
}

/// A value that a column has in every matching row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Equality {
    pub(super) column: Column,
    pub(super) value: Scalar<'static>,
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    column: Column,
    test: Test,
}

/// What a condition demands of its column.
#[derive(Debug, Clone, PartialEq)]
enum Test {
    Compare(Comparison, Scalar<'static>),
    /// Equal to one of the values, which are sorted.
    In(Vec<Scalar<'static>>),
    Like(Pattern),
    IsNull,
    Is(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl ChangeFilter {
    /// Reads the filter of a subscription of `caller` to `table`. Every row matches the empty text.
    ///
    /// # Errors
    /// `InvalidInput` if the text is malformed, if the table has no such column that the caller reads, or if the operator or the
    /// value does not fit the column's type.
    pub(super) fn parse(table: Table, caller: Caller, text: &str) -> Result<ChangeFilter> {
        if text.len() > MAX_SIZE {
            return Err(refused(format_args!("has {} bytes; the limit is {MAX_SIZE}", text.len())));
        }
        if text.contains('\0') {
            return Err(refused(format_args!("contains a NUL character")));
        }
        let conditions = if text.is_empty() { Vec::new() } else { parser::parse(text)? };
        if conditions.len() > MAX_CONDITIONS {
            return Err(refused(format_args!("has {} conditions; the limit is {MAX_CONDITIONS}", conditions.len())));
        }
        let conditions: Vec<_> =
            conditions.into_iter().map(|raw| Condition::new(table, caller, raw)).collect::<Result<_>>()?;
        let equality = select_equality(&conditions);
        Ok(ChangeFilter { conditions, equality })
    }

    /// Whether every condition is true for the row.
    pub(super) fn matches(&self, row: &RowImage) -> bool {
        self.conditions.iter().all(|condition| condition.is_true(row.get(condition.column.name).unwrap_or(&Json::Null)))
    }

    /// Whether a row may match if the caller may only learn its key and, for a fidget, its space. Conditions on other columns
    /// count as fulfilled, so that a filter does not reveal the values of these columns.
    pub(super) fn may_match(&self, table: Table, row: &RowImage) -> bool {
        let is_told = |column: &str| table.key().contains(&column) || (table == Table::Fidgets && column == "space_id");
        let value = |column: &str| row.get(column).filter(|_| is_told(column));
        self.conditions
            .iter()
            .all(|condition| value(condition.column.name).is_none_or(|value| condition.is_true(value)))
    }

    /// Whether judging a row may take long: its time grows with the text of the row, or with the number of conditions.
    pub(super) fn is_costly(&self) -> bool {
        let is_pattern = |condition: &Condition| matches!(condition.test, Test::Like(_));
        self.conditions.len() > CHEAP_CONDITIONS || self.conditions.iter().any(is_pattern)
    }

    /// Returns a text that a column has in every matching row, as the row image has it. `None` if the filter demands none.
    pub(super) fn text_equality(&self) -> Option<(Column, &str)> {
        match self.equality.as_ref()? {
            Equality { column, value: Scalar::Text(text) } => Some((*column, text)),
            _ => None,
        }
    }

    /// Returns a value that a column has in every matching row, to find the filter by. `None` if the filter demands no
    /// equality.
    pub(super) fn equality(&self) -> Option<&Equality> {
        self.equality.as_ref()
    }
}

/// Selects the equality that the fewest rows are likely to have.
fn select_equality(conditions: &[Condition]) -> Option<Equality> {
    use ColumnType::{Boolean, Integer, Text, Timestamp, Uuid};
    [Uuid, Text, Timestamp, Integer, Boolean].into_iter().find_map(|wanted| {
        conditions.iter().filter(|condition| condition.column.column_type == wanted).find_map(|condition| {
            let value = match &condition.test {
                Test::Compare(Comparison::Equal, value) => value,
                Test::In(values) if values.len() == 1 => values.first()?,
                _ => return None,
            };
            Some(Equality { column: condition.column, value: value.clone() })
        })
    })
}

impl Condition {
    fn new(table: Table, caller: Caller, raw: RawCondition<'_>) -> Result<Condition> {
        let column = table
            .column(raw.column)
            .filter(|column| table.may_read(caller, column.name))
            .ok_or_else(|| refused(format_args!("names no column of {}: {:?}", table.name(), excerpt(raw.column))))?;
        let (name, column_type) = (column.name, column.column_type);
        let test = Test::new(column_type, raw.operator, raw.value).map_err(|fault| match fault {
            Fault::UnknownOperator => {
                refused(format_args!("has an unknown operator for {name}: {:?}", excerpt(raw.operator)))
            }
            Fault::UnfitOperator => {
                let column_type = type_name(column_type);
                refused(format_args!("uses the operator {} on {name}, whose type is {column_type}", raw.operator))
            }
            Fault::UnfitValue(expected) => refused(format_args!("has a value for {name} that is not {expected}")),
        })?;
        Ok(Condition { column, test })
    }

    /// Whether the condition is true for the value of its column.
    fn is_true(&self, value: &Json) -> bool {
        let scalar = || Scalar::of_image(self.column.column_type, value);
        match &self.test {
            Test::Compare(comparison, other) => scalar().is_some_and(|scalar| comparison.accepts(scalar.cmp(other))),
            Test::In(others) => scalar().is_some_and(|scalar| others.binary_search(&scalar).is_ok()),
            Test::Like(pattern) => value.as_str().is_some_and(|text| pattern.matches(text)),
            Test::IsNull => value.is_null(),
            Test::Is(expected) => value.as_bool() == Some(*expected),
        }
    }
}

/// Why an operator and its value do not fit a column.
enum Fault {
    UnknownOperator,
    UnfitOperator,
    /// The value is not of the kind that the text names.
    UnfitValue(&'static str),
}

impl Test {
    fn new(column_type: ColumnType, operator: &str, value: RawValue<'_>) -> Result<Test, Fault> {
        let scalar = |text: &str| Scalar::parse(column_type, text).ok_or(Fault::UnfitValue(type_name(column_type)));
        let comparison = match operator {
            "eq" => Some(Comparison::Equal),
            "neq" => Some(Comparison::NotEqual),
            "lt" => Some(Comparison::Less),
            "lte" => Some(Comparison::LessOrEqual),
            "gt" => Some(Comparison::Greater),
            "gte" => Some(Comparison::GreaterOrEqual),
            "in" | "like" | "ilike" | "is" => None,
            _ => return Err(Fault::UnknownOperator),
        };
        if operator != "is" && matches!(column_type, ColumnType::Json | ColumnType::Texts) {
            return Err(Fault::UnfitOperator);
        }
        match (operator, comparison, value) {
            (_, Some(comparison), RawValue::One(text)) => Ok(Test::Compare(comparison, scalar(&text)?)),
            ("in", _, RawValue::List(texts)) => {
                let mut values = texts.iter().map(|text| scalar(text)).collect::<Result<Vec<_>, _>>()?;
                values.sort_unstable();
                values.dedup();
                Ok(Test::In(values))
            }
            ("is", _, RawValue::One(text)) => match &*text {
                "null" => Ok(Test::IsNull),
                "true" | "false" if column_type == ColumnType::Boolean => Ok(Test::Is(text == "true")),
                "true" | "false" => Err(Fault::UnfitValue("null")),
                _ => Err(Fault::UnfitValue("null, true or false")),
            },
            (_, None, RawValue::One(_)) if column_type != ColumnType::Text => Err(Fault::UnfitOperator),
            (_, None, RawValue::One(text)) => {
                let expected = "a pattern of at most 256 characters that does not end with a backslash";
                Pattern::parse(&text, operator == "ilike").map(Test::Like).ok_or(Fault::UnfitValue(expected))
            }
            (_, _, RawValue::List(_)) => Err(Fault::UnfitOperator),
        }
    }
}

impl Comparison {
    fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

fn refused(fault: std::fmt::Arguments<'_>) -> Error {
    Error::invalid_input(format!("filter {fault}"))
}

/// The beginning of a text from outside, for a message.
fn excerpt(text: &str) -> String {
    text.chars().take(50).collect()
}
