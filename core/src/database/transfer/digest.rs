//! The digest of a table: the same for equal rows in every engine and in every order.
//!
//! Invariant: two values have one encoding if and only if a caller reads them as equal. JSON is compared as a value: PostgreSQL
//! keeps neither the order of the members of an object nor the form of a number.

use serde_json::{Number, Value as Json};

use super::{FILES, TransferRow, TransferTable, tables::PLACE_OF_FILE};
use crate::database::value::Value;

/// The rows of a table, in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TableDigest {
    pub(crate) rows: u64,
    /// The bytes of the files of the table of files; else 0.
    pub(crate) bytes: u64,
    /// The sum of the BLAKE3 digests of the rows.
    sum: [u64; 4],
}

impl TableDigest {
    /// Adds rows. `contents` are the digests of the bytes of files; empty for the rows of another table.
    pub(crate) fn add_rows(&mut self, table: &TransferTable, rows: &[TransferRow], contents: &[String]) {
        for (index, row) in rows.iter().enumerate() {
            self.add(table, row, contents.get(index).map_or("", String::as_str));
        }
    }

    fn add(&mut self, table: &TransferTable, row: &TransferRow, content: &str) {
        let mut hasher = blake3::Hasher::new();
        for (value, (name, _)) in row.values.iter().zip(&table.columns) {
            if table.name == FILES && PLACE_OF_FILE.contains(name) {
                continue;
            }
            add_value(&mut hasher, value);
        }
        add_bytes(&mut hasher, content.as_bytes());
        let digest = hasher.finalize();
        for (sum, part) in self.sum.iter_mut().zip(digest.as_bytes().chunks_exact(8)) {
            let part = part.iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
            *sum = sum.wrapping_add(part);
        }
        self.rows += 1;
        self.bytes += row.file_size();
    }
}

impl TransferRow {
    /// The digest of the key.
    pub(super) fn key_digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        self.key().iter().for_each(|value| add_value(&mut hasher, value));
        *hasher.finalize().as_bytes()
    }
}

impl TransferTable {
    /// The digest of the path, version and place of a file.
    pub(crate) fn version_of(row: &TransferRow) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for column in ["bucket", "path", "etag", "digest"] {
            row.of_file(column).into_iter().for_each(|value| add_value(&mut hasher, value));
        }
        *hasher.finalize().as_bytes()
    }

    /// Whether two rows of the table have equal values.
    pub(crate) fn are_equal(&self, one: &TransferRow, other: &TransferRow) -> bool {
        let [one, other] = [one, other].map(|row| {
            let mut digest = TableDigest::default();
            digest.add(self, row, "");
            digest
        });
        one == other
    }
}

/// Whether a caller reads two values as equal.
pub(super) fn are_equal(one: &Value<'_>, other: &Value<'_>) -> bool {
    let digest = |value| {
        let mut hasher = blake3::Hasher::new();
        add_value(&mut hasher, value);
        hasher.finalize()
    };
    digest(one) == digest(other)
}

fn add_bytes(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
}

fn add_value(hasher: &mut blake3::Hasher, value: &Value<'_>) {
    match value {
        Value::Boolean(Some(value)) => drop(hasher.update(&[1, u8::from(*value)])),
        Value::Integer(Some(value)) => drop(hasher.update(&[2]).update(&value.to_le_bytes())),
        Value::Text(Some(value)) => add_bytes(hasher.update(&[3]), value.as_bytes()),
        Value::Uuid(Some(value)) => drop(hasher.update(&[4]).update(value.as_bytes())),
        Value::Timestamp(Some(value)) => drop(hasher.update(&[5]).update(&value.as_microsecond().to_le_bytes())),
        Value::Json(Some(value)) => add_json(hasher.update(&[6]), value),
        Value::Texts(Some(values)) => {
            hasher.update(&[7]).update(&(values.len() as u64).to_le_bytes());
            values.iter().for_each(|value| add_bytes(hasher, value.as_bytes()));
        }
        Value::Bytes(Some(value)) => add_bytes(hasher.update(&[8]), value),
        Value::Boolean(None)
        | Value::Integer(None)
        | Value::Text(None)
        | Value::Uuid(None)
        | Value::Timestamp(None)
        | Value::Json(None)
        | Value::Texts(None)
        | Value::Bytes(None) => drop(hasher.update(&[0])),
    }
}

fn add_json(hasher: &mut blake3::Hasher, value: &Json) {
    match value {
        Json::Null => drop(hasher.update(&[0])),
        Json::Bool(value) => drop(hasher.update(&[1, u8::from(*value)])),
        Json::Number(number) => add_bytes(hasher.update(&[2]), number_text(number).as_bytes()),
        Json::String(text) => add_bytes(hasher.update(&[3]), text.as_bytes()),
        Json::Array(items) => {
            hasher.update(&[4]).update(&(items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| add_json(hasher, item));
        }
        Json::Object(members) => {
            hasher.update(&[5]).update(&(members.len() as u64).to_le_bytes());
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, item) in members {
                add_bytes(hasher, name.as_bytes());
                add_json(hasher, item);
            }
        }
    }
}

/// The number without exponent and without zeros at the end: `1e2`, `100.0` and `100` are one number.
fn number_text(number: &Number) -> String {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), ..) => whole.to_string(),
        (_, Some(whole), _) => whole.to_string(),
        (.., Some(0.0)) => "0".to_owned(),
        (.., Some(float)) => float.to_string(),
        (.., None) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        add_json(&mut hasher, &serde_json::from_str(json).expect("JSON"));
        hasher.finalize()
    }

    #[test]
    fn equal_json_has_one_digest_whatever_its_form() {
        for (one, other) in [
            (r#"{"a":1,"b":[2]}"#, r#"{ "b": [2], "a": 1 }"#),
            ("1e2", "100"),
            ("100.0", "100"),
            ("-0.0", "0"),
            ("1e19", "10000000000000000000"),
        ] {
            assert_eq!(digest(one), digest(other), "{one} and {other}");
        }
        for (one, other) in
            [("1", "\"1\""), ("[]", "{}"), ("null", "false"), ("[[1],2]", "[[1,2]]"), (r#"["ab"]"#, r#"["a","b"]"#)]
        {
            assert_ne!(digest(one), digest(other), "{one} and {other}");
        }
    }
}
