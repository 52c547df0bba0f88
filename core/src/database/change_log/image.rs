//! Row images: the JSON that triggers write, with each value in the form that its column's type has on both engines.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use serde_json::Value as Json;

use super::{EntryKey, EntryKind, LogEntry};
use crate::{
    model::ColumnType,
    policy::{RowImage, Table},
};

/// Reads the image of a row of `table` from the JSON that a trigger wrote. A value that its column's type does not have,
/// which only another program can have stored, stays as it is; columns that another program added are left out. `None` if
/// the text is no JSON object.
pub(in crate::database) fn read_image(table: Table, text: &str) -> Option<RowImage> {
    let mut image = read_object(table, text)?;
    image.retain(|name, _| table.columns().iter().any(|column| column.name == name));
    Some(image)
}

/// Reads the context of a row of `table`. The context of a fidget is a part of its space's image.
pub(in crate::database) fn read_context(table: Table, text: &str) -> Option<RowImage> {
    read_object(if table == Table::Fidgets { Table::Spaces } else { table }, text)
}

/// The texts of an entry of the log: the old and the new image, and the old and the new context.
pub(in crate::database) type EntryTexts<'a> = [Option<Cow<'a, str>>; 4];

/// Reads an entry. `None` for one that another program wrote in another form.
pub(in crate::database) fn read_entry(
    key: EntryKey,
    (table, kind): (&str, &str),
    [old, new, old_context, new_context]: &EntryTexts<'_>,
    at: Timestamp,
) -> Option<LogEntry> {
    let (table, kind) = (Table::from_name(table)?, EntryKind::from_name(kind)?);
    let read = match kind {
        EntryKind::SessionStarted | EntryKind::SessionEnded => read_object,
        EntryKind::Insert | EntryKind::Update | EntryKind::Delete | EntryKind::Visibility => read_image,
    };
    let image = |text: &Option<Cow<'_, str>>| -> Option<Option<Arc<RowImage>>> {
        text.as_deref().map_or(Some(None), |text| read(table, text).map(|image| Some(Arc::new(image))))
    };
    let context = |text: &Option<Cow<'_, str>>| text.as_deref().and_then(|text| read_context(table, text));
    let (mut old, new) = (image(old)?, image(new)?);
    if kind == EntryKind::Visibility {
        old = new.clone();
    }
    let (old_context, new_context) = (context(old_context), context(new_context));
    Some(LogEntry { key, table, kind, old, new, old_context, new_context, at })
}

fn read_object(table: Table, text: &str) -> Option<RowImage> {
    let mut image: RowImage = serde_json::from_str(text).ok()?;
    for column in table.columns() {
        if let Some(value) = image.get_mut(column.name) {
            normalise(value, column.column_type);
        }
    }
    Some(image)
}

fn normalise(value: &mut Json, column_type: ColumnType) {
    let normal = match (column_type, &*value) {
        // SQLite's booleans are 0 and 1.
        (ColumnType::Boolean, Json::Number(number)) => Json::Bool(number.as_f64() != Some(0.0)),
        (ColumnType::Timestamp, Json::String(text)) if !is_canonical(text) => match text.parse::<Timestamp>() {
            Ok(time) => Json::String(format!("{time:.6}")),
            Err(_) => return,
        },
        _ => return,
    };
    *value = normal;
}

/// Whether the text has the form `2023-11-14T22:13:20.000000Z`.
fn is_canonical(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 27 && bytes[10] == b'T' && bytes[19] == b'.' && bytes[26] == b'Z'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_image_has_the_same_form_on_both_engines() {
        let sqlite = r#"{"id":"x","is_public":1,"created_at":"2026-01-02T03:04:05.678901Z","name":"1"}"#;
        let postgres = r#"{"id":"x","is_public":true,"created_at":"2026-01-02T05:04:05.678901+02:00","name":"1"}"#;
        let adopted = postgres.replace('{', r#"{"extra":1,"#);
        let image = json!({ "id": "x", "is_public": true, "created_at": "2026-01-02T03:04:05.678901Z", "name": "1" });
        for text in [sqlite, postgres, &adopted] {
            assert_eq!(read_image(Table::Spaces, text).map(Json::Object), Some(image.clone()), "{text}");
        }
    }

    #[test]
    fn values_of_another_type_stay_and_other_texts_are_no_image() {
        let image = read_image(Table::Spaces, r#"{"is_public":"maybe","created_at":"infinity","owner_id":null}"#);
        let image = Json::Object(image.expect("an object"));
        assert_eq!(image, json!({ "is_public": "maybe", "created_at": "infinity", "owner_id": null }));
        for text in ["", "[]", "1", "{", &"[".repeat(200)] {
            assert_eq!(read_image(Table::Spaces, text), None, "{text}");
        }
    }

    #[test]
    fn the_context_of_a_fidget_is_a_part_of_its_space() {
        let context = read_context(Table::Fidgets, r#"{"owner_id":null,"is_public":0}"#).map(Json::Object);
        assert_eq!(context, Some(json!({ "owner_id": null, "is_public": false })));
    }
}
