//! Row images: the JSON that triggers write, with each value in the form that its column's type has on both engines.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Value as Json, value::RawValue};

use super::{EntryKey, EntryKind, EntryProof, LogEntry};
use crate::{
    model::{ColumnType, memory_of_map, timestamp_text},
    policy::{RowImage, Table},
};

/// The longest text of an image that is kept once it has been read.
const SMALL_TEXT: usize = 1 << 10;

/// The most memory of an image that is kept.
const SMALL_IMAGE: usize = 4 << 10;

/// A row of the log: the JSON that a trigger wrote. It stays text until a subscriber takes the row, because the values of a JSON
/// column can take eighty times the memory of their text.
pub(crate) struct LoggedRow {
    table: Table,
    text: Box<str>,
    /// For the old row of an update: the new row. It has the large columns that did not change, which the trigger left out.
    after: Option<Arc<LoggedRow>>,
    /// The image of a small row, which the subscribers share.
    image: OnceLock<Arc<RowImage>>,
}

impl LoggedRow {
    pub(crate) fn new(table: Table, text: impl Into<Box<str>>) -> LoggedRow {
        LoggedRow { table, text: text.into(), after: None, image: OnceLock::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The row for a subscriber. Empty if the text is no JSON object: [`judged`](LoggedRow::judged) tells that before.
    pub(crate) fn image(&self) -> Arc<RowImage> {
        let image = self.image.get().map(Arc::clone);
        image.unwrap_or_else(|| self.kept(Arc::new(self.read(read_image).unwrap_or_default())))
    }

    /// The image, which stays if it is small.
    fn kept(&self, image: Arc<RowImage>) -> Arc<RowImage> {
        if self.text.len() <= SMALL_TEXT && memory_of_map(&image) <= SMALL_IMAGE {
            return Arc::clone(self.image.get_or_init(|| image));
        }
        image
    }

    /// The row for its only reader.
    pub(super) fn into_image(self) -> Arc<RowImage> {
        let image = self.image.get().cloned();
        image.unwrap_or_else(|| Arc::new(self.read(read_image).unwrap_or_default()))
    }

    /// The columns that policies and filters read: a JSON column is null, or true in place of its value. `None` if the text
    /// is no JSON object. In a table without JSON columns this is the image.
    pub(crate) fn judged(&self) -> Option<Arc<RowImage>> {
        let judged = Arc::new(self.read(read_judged)?);
        let is_image = !is_erased(&judged) && !self.table.columns().iter().any(|column| is_json(column.column_type));
        Some(if is_image { self.kept(judged) } else { judged })
    }

    /// Reads the row with `read`, which keeps the member [`UNCHANGED`].
    fn read(&self, read: fn(Table, &str) -> Option<RowImage>) -> Option<RowImage> {
        let mut row = read(self.table, &self.text)?;
        let unchanged = row.remove(UNCHANGED);
        if let (Some(Json::Array(names)), Some(after)) = (unchanged, &self.after) {
            let mut after = after.read(read)?;
            let names = names.iter().filter_map(Json::as_str);
            row.extend(names.filter_map(|name| after.remove_entry(name)));
        }
        Some(row)
    }

    /// The most memory that the row takes: its text, and the image that may be kept beside it.
    pub(crate) fn size(&self) -> usize {
        let image = if self.text.len() <= SMALL_TEXT { SMALL_IMAGE } else { 0 };
        size_of::<LoggedRow>() + self.text.len() + image
    }
}

impl PartialEq for LoggedRow {
    fn eq(&self, other: &LoggedRow) -> bool {
        (self.table, &self.text) == (other.table, &other.text)
    }
}

impl fmt::Debug for LoggedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedRow").field("table", &self.table).finish_non_exhaustive()
    }
}

/// Reads the image of a row of `table` from the JSON that a trigger wrote. A value that its column's type does not have,
/// which only another program can have stored, stays as it is; a JSON value that cannot be read is null; columns that another
/// program added are left out. `None` if the text is no JSON object.
pub(super) fn read_image(table: Table, text: &str) -> Option<RowImage> {
    let mut image = read_object(table, text)?;
    image.retain(|name, _| name == UNCHANGED || table.column(name).is_some());
    Some(image)
}

/// Reads the context of a row of `table`; `None` if it cannot be read. The context of a fidget or of a file has columns of the
/// space.
pub(crate) fn read_context(table: Table, text: &str) -> Option<RowImage> {
    read_object(if matches!(table, Table::Fidgets | Table::Files) { Table::Spaces } else { table }, text)
}

/// The member of an old image with the names of the columns that are as in the new image.
const UNCHANGED: &str = "=";

/// The member of an image that says that the row was erased with its owner.
const ERASED: &str = "(erased)";

/// Whether the row of a judged image went with its owner. The image has the columns of [`Table::outline`].
pub(crate) fn is_erased(judged: &RowImage) -> bool {
    judged.contains_key(ERASED)
}

/// The texts of an entry of the log: the old and the new image, and the old and the new context.
pub(in crate::database) type EntryTexts<'a> = [Option<Cow<'a, str>>; 4];

/// Makes an entry. `None` for one of a table or kind that this version does not know.
pub(in crate::database) fn read_entry(
    (key, proof): (EntryKey, EntryProof),
    (table, kind): (&str, &str),
    [old, new, old_context, new_context]: EntryTexts<'_>,
    at: Timestamp,
) -> Option<LogEntry> {
    let (table, kind) = (Table::from_name(table)?, EntryKind::from_name(kind)?);
    let new = new.map(|text| Arc::new(LoggedRow::new(table, text)));
    let old = match kind {
        EntryKind::Visibility => new.clone(),
        _ => old.map(|text| {
            let after = new.clone().filter(|_| kind == EntryKind::Update);
            Arc::new(LoggedRow { after, ..LoggedRow::new(table, text) })
        }),
    };
    let context = |text: Option<Cow<'_, str>>| text.map(Box::<str>::from);
    let (old_context, new_context) = (context(old_context), context(new_context));
    Some(LogEntry { key, proof, table, kind, old, new, old_context, new_context, at })
}

/// Reads the columns of an image that policies and filters read. Needs no memory for JSON columns.
fn read_judged(table: Table, text: &str) -> Option<RowImage> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let judged = JudgedColumns(table).deserialize(&mut reader).ok().filter(|_| reader.end().is_ok());
    let mut judged = judged.or_else(|| read_each_judged_value(table, text))?;
    normalise_all(&mut judged, table);
    Some(judged)
}

/// Does what [`read_each_value`] does, for the columns that policies and filters read.
fn read_each_judged_value(table: Table, text: &str) -> Option<RowImage> {
    let values: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let read = |(name, value): (String, &RawValue)| {
        let column = table.column(&name);
        if column.is_none() && ![ERASED, UNCHANGED].contains(&&*name) {
            return None;
        }
        let value = if column.is_some_and(|column| is_json(column.column_type)) {
            serde_json::from_str::<Probe>(value.get()).map_or(Json::Null, Json::from)
        } else {
            serde_json::from_str(value.get()).unwrap_or_default()
        };
        Some((name, value))
    };
    Some(values.into_iter().filter_map(read).collect())
}

const fn is_json(column_type: ColumnType) -> bool {
    matches!(column_type, ColumnType::Json | ColumnType::Texts)
}

/// Reads an object's columns of a table, JSON columns as a [`Probe`].
struct JudgedColumns(Table);

impl<'de> serde::de::DeserializeSeed<'de> for JudgedColumns {
    type Value = RowImage;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RowImage, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for JudgedColumns {
    type Value = RowImage;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RowImage, M::Error> {
        let mut columns = RowImage::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = match self.0.column(&name) {
                Some(column) if is_json(column.column_type) => map.next_value::<Probe>()?.into(),
                Some(_) => map.next_value()?,
                None if [ERASED, UNCHANGED].contains(&&*name) => map.next_value()?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            columns.insert(name, value);
        }
        Ok(columns)
    }
}

/// Whether a JSON value is null. Reading it fails where reading the value fails.
enum Probe {
    Null,
    Value,
}

impl From<Probe> for Json {
    fn from(probe: Probe) -> Json {
        match probe {
            Probe::Null => Json::Null,
            Probe::Value => Json::Bool(true),
        }
    }
}

impl<'de> Deserialize<'de> for Probe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Probe, D::Error> {
        deserializer.deserialize_any(ProbeVisitor)
    }
}

struct ProbeVisitor;

impl<'de> Visitor<'de> for ProbeVisitor {
    type Value = Probe;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Probe, E> {
        Ok(Probe::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Probe, E> {
        Ok(Probe::Value)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Probe, E> {
        Ok(Probe::Value)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Probe, E> {
        Ok(Probe::Value)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Probe, E> {
        Ok(Probe::Value)
    }

    fn visit_str<E>(self, _: &str) -> Result<Probe, E> {
        Ok(Probe::Value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Probe, A::Error> {
        while values.next_element::<Probe>()?.is_some() {}
        Ok(Probe::Value)
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Probe, M::Error> {
        while map.next_entry::<Probe, Probe>()?.is_some() {}
        Ok(Probe::Value)
    }
}

fn read_object(table: Table, text: &str) -> Option<RowImage> {
    let mut image: RowImage = serde_json::from_str(text).ok().or_else(|| read_each_value(table, text))?;
    normalise_all(&mut image, table);
    Some(image)
}

fn normalise_all(image: &mut RowImage, table: Table) {
    for column in table.columns() {
        if let Some(value) = image.get_mut(column.name) {
            normalise(value, column.column_type);
        }
    }
}

/// Reads each value by itself. Both engines accept JSON that serde_json refuses: numbers that no `f64` holds, 130 levels, and
/// SQLite also half of a surrogate pair. Such a value must not cost the change of its row, so it becomes null.
fn read_each_value(table: Table, text: &str) -> Option<RowImage> {
    let values: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let read = |(name, value): (String, &RawValue)| {
        let value = serde_json::from_str(value.get()).unwrap_or_else(|error| {
            let (table, column) = (table.name(), &name);
            tracing::warn!(%error, table, column, "the change feed delivers null for a value that cannot be read");
            Json::Null
        });
        (name, value)
    };
    Some(values.into_iter().map(read).collect())
}

fn normalise(value: &mut Json, column_type: ColumnType) {
    let normal = match (column_type, &*value) {
        // SQLite's booleans are 0 and 1.
        (ColumnType::Boolean, Json::Number(number)) => Json::Bool(number.as_f64() != Some(0.0)),
        (ColumnType::Timestamp, Json::String(text)) if !is_canonical(text) => match text.parse::<Timestamp>() {
            Ok(time) => Json::String(timestamp_text(time)),
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
    fn a_value_that_cannot_be_read_is_null_and_the_others_stay() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for value in ["1e999", r#""\ud800""#, &deep, r#"{"a":[1e999]}"#] {
            let text = format!(r#"{{"id":"x","config":{value},"position":[1],"extra":{value}}}"#);
            let image = read_image(Table::Fidgets, &text).map(Json::Object);
            assert_eq!(image, Some(json!({ "id": "x", "config": null, "position": [1] })), "{value:.20}");
        }
    }

    #[test]
    fn policies_and_filters_read_what_subscribers_get_but_no_json() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let values =
            ["null", "[1,{\"a\":[]}]", "\"x\"", "0", "false", "1e999", r#""\ud800""#, r#"{"\ud800":1}"#, &deep];
        for value in values {
            let text = format!(
                r#"{{"id":"x","config":{value},"type":"clock","created_at":"2026-01-02T03:04:05Z","extra":1e999}}"#
            );
            let row = LoggedRow::new(Table::Fidgets, text);
            let mut expected = (*row.image()).clone();
            let config = expected.get_mut("config").expect("a column");
            *config = if config.is_null() { Json::Null } else { Json::Bool(true) };
            assert_eq!(row.judged().as_deref(), Some(&expected), "{value:.20}");
        }
        for text in ["", "[]", "1", "{", "{} {}"] {
            assert!(LoggedRow::new(Table::Fidgets, text).judged().is_none(), "{text}");
        }
    }

    #[test]
    fn a_row_keeps_no_image_that_is_larger_than_its_size_says() {
        let empty = LoggedRow::new(Table::Fidgets, r#"{"id":"x","config":{}}"#);
        assert!(Arc::ptr_eq(&empty.image(), &empty.image()), "subscribers share the image of a small row");
        let objects = format!(r#"{{"id":"x","config":[{}0]}}"#, r#"{"a":0},"#.repeat(50));
        let large = format!(r#"{{"id":"x","config":"{}"}}"#, "a".repeat(100_000));
        for text in [objects, large] {
            let row = LoggedRow::new(Table::Fidgets, text);
            assert!(!Arc::ptr_eq(&row.image(), &row.image()));
            assert!(row.size() >= row.text().len());
        }
    }

    #[test]
    fn an_old_image_has_its_unchanged_columns_from_the_new_one() {
        let new = r#"{"id":"x","config":{"a":[1]},"position":null}"#;
        let old = r#"{"=":["config",null],"id":"x","config":null,"position":2,"extra":1}"#;
        let texts = [Some(old.into()), Some(new.into()), None, None];
        let place = (EntryKey::START, EntryProof::default());
        let entry = read_entry(place, ("fidgets", "update"), texts, Timestamp::UNIX_EPOCH).expect("an entry");
        let judged = entry.old.as_ref().and_then(|old| old.judged()).map(|row| Json::Object((*row).clone()));
        assert_eq!(judged, Some(json!({ "id": "x", "config": true, "position": true })));
        let old = entry.old.map(|old| Json::Object((*old.image()).clone()));
        assert_eq!(old, Some(json!({ "id": "x", "config": { "a": [1] }, "position": 2 })));
        let new = entry.new.map(|new| Json::Object((*new.image()).clone()));
        assert_eq!(new, Some(json!({ "id": "x", "config": { "a": [1] }, "position": null })));
    }

    #[test]
    fn the_context_of_a_fidget_is_a_part_of_its_space() {
        let context = read_context(Table::Fidgets, r#"{"owner_id":null,"is_public":0}"#).map(Json::Object);
        assert_eq!(context, Some(json!({ "owner_id": null, "is_public": false })));
    }
}
