//! Row images: the JSON that triggers write, with each value in the form that its column's type has on both engines.

use jiff::Timestamp;
use serde_json::Value as Json;

use crate::{
    model::ColumnType,
    policy::{RowImage, Table},
};

/// Reads the image of a row of `table` from the JSON that a trigger wrote. A value that its column's type does not have,
/// which only another program can have stored, stays as it is. `None` if the text is no JSON object.
pub(in crate::database) fn read_image(table: Table, text: &str) -> Option<RowImage> {
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
