//! A row as JSON: what an export writes, and the checks of what an import reads.
//!
//! Invariant: what [`exported`] writes, [`imported`] reads as an equal row, unless another program stored a value that no create
//! accepts. A value is checked as a create checks it, but an address keeps its case and may be one that no new account may have, and
//! a domain keeps its form: other programs store them.

use jiff::{Timestamp, civil};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::TableRow;
use crate::{
    auth,
    communities::domain,
    database::{RecordRow, RecordTable, Value},
    error::{Error, Result},
    model::{
        Column,
        ColumnType::{self, Boolean, Integer, Text, Texts},
        DomainType, SpaceType, Validate as _, timestamp_text,
    },
    validate::{self, Limits},
};

/// A row of an export.
pub(super) fn exported(table: &RecordTable, row: RecordRow) -> TableRow {
    let members = table.columns.iter().zip(row.into_values()).filter_map(|(column, value)| {
        let value = match value {
            Value::Json(None) => return None,
            Value::Json(Some(value)) => value.into_owned(),
            Value::Uuid(id) => json!(id),
            Value::Timestamp(time) => json!(time.map(timestamp_text)),
            Value::Text(Some(text)) => Json::String(text.into_owned()),
            Value::Text(None) => Json::Null,
            Value::Integer(number) => json!(number),
            Value::Boolean(is) => json!(is),
            Value::Texts(texts) => json!(texts),
            // No table with a record has such a column.
            Value::Bytes(_) => Json::Null,
        };
        Some((column.name.to_owned(), value))
    });
    TableRow { table: table.name, values: members.collect() }
}

/// Reads a row. An error begins with the column.
///
/// # Errors
/// `FieldMissing` for a column that is missing, and for NULL where the table requires a value; `InvalidInput` for an unknown column
/// and a value that the column cannot have; `TooLarge`.
pub(super) fn imported(table: &RecordTable, mut row: Map<String, Json>, limits: &Limits) -> Result<RecordRow> {
    let mut values = Vec::with_capacity(table.columns.len());
    for column in table.columns {
        let value = match row.remove(column.name) {
            None if column.column_type == ColumnType::Json && !column.is_required => null(ColumnType::Json),
            None => return Err(Error::field_missing(column.name)),
            Some(Json::Null) if column.column_type != ColumnType::Json => match column.is_required {
                true => return Err(Error::field_missing(column.name)),
                false => null(column.column_type),
            },
            Some(value) => {
                let read = read(column, value, limits).and_then(|value| checked(table.name, column.name, value));
                read.map_err(|error| error.in_column(column.name))?
            }
        };
        values.push(value);
    }
    match row.keys().next() {
        None => Ok(table.row(values)),
        Some(unknown) => {
            let shortened: String = unknown.chars().take(60).collect();
            let message = format!("{}: {} has no column of this name", shortened.escape_debug(), table.name);
            Err(Error::invalid_input(message))
        }
    }
}

fn null(column_type: ColumnType) -> Value<'static> {
    match column_type {
        ColumnType::Uuid => Value::Uuid(None),
        Text => Value::Text(None),
        Integer => Value::Integer(None),
        Boolean => Value::Boolean(None),
        ColumnType::Timestamp => Value::Timestamp(None),
        ColumnType::Json => Value::Json(None),
        Texts => Value::Texts(None),
    }
}

/// Reads a value of a column's type.
fn read(column: &Column, value: Json, limits: &Limits) -> Result<Value<'static>> {
    let name = column.name;
    let refused = |what: &str| Error::invalid_input(format!("{name} is no {what}"));
    Ok(match (column.column_type, value) {
        (ColumnType::Json, value) => {
            limits.json(name, &value)?;
            value.into()
        }
        (ColumnType::Uuid, Json::String(text)) => Uuid::try_parse(&text).map_err(|_| refused("UUID"))?.into(),
        (ColumnType::Uuid, _) => return Err(refused("UUID")),
        (Text, Json::String(text)) => {
            limits.text(name, &text)?;
            text.into()
        }
        (Text, _) => return Err(refused("text")),
        (Integer, value) => value.as_i64().ok_or_else(|| refused("whole number"))?.into(),
        (Boolean, value) => value.as_bool().ok_or_else(|| refused("boolean: true or false"))?.into(),
        (ColumnType::Timestamp, Json::String(text)) => time(name, &text)?.into(),
        (ColumnType::Timestamp, _) => return Err(refused("time in RFC 3339")),
        (Texts, value) => {
            let texts: Vec<String> = serde_json::from_value(value).map_err(|_| refused("list of texts"))?;
            texts.validate(name, limits)?;
            texts.into()
        }
    })
}

/// Reads a time that both engines store without rounding.
fn time(name: &str, text: &str) -> Result<Timestamp> {
    let time: Timestamp =
        text.parse().map_err(|_| Error::invalid_input(format!("{name} is no time in RFC 3339 with an offset")))?;
    if time.as_nanosecond() % 1_000 != 0 {
        return Err(Error::invalid_input(format!("{name} has more than six decimal places of a second")));
    }
    // SQLite stores years of four digits.
    if time.to_zoned(jiff::tz::TimeZone::UTC).date() < civil::date(0, 1, 1) {
        return Err(Error::invalid_input(format!("{name} is before the year 0")));
    }
    Ok(time)
}

/// Checks what the type of a column does not say, as a create does. An address may have capital letters of ASCII, and a domain any form.
fn checked(table: &str, column: &str, value: Value<'static>) -> Result<Value<'static>> {
    match (table, column, &value) {
        (_, "community_id", Value::Text(Some(id))) => validate::community_id(id)?,
        ("community_domains", "domain", Value::Text(Some(text))) => drop(domain::required(text)?),
        ("community_domains", "domain_type", Value::Text(Some(word))) => drop(word.parse::<DomainType>()?),
        ("spaceRegistrations", "spaceType", Value::Text(Some(word))) => drop(word.parse::<SpaceType>()?),
        ("spaceRegistrations", "fid", Value::Integer(Some(fid))) if i32::try_from(*fid).is_err() => {
            return Err(Error::invalid_input("fid is no number of 32 bits"));
        }
        ("users", "email", Value::Text(Some(email))) => {
            let normal = auth::normal_address(email)?;
            // The databases ignore the case of ASCII alone.
            if email.to_ascii_lowercase() != normal {
                return Err(Error::invalid_input(format!("email is not in its normal form, {normal:?}")));
            }
        }
        _ => {}
    }
    Ok(value)
}
