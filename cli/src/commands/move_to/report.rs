//! What a move has copied, on the output.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{context::Context, failure::Failure, output::note};

/// The figures of a move.
pub(super) struct Figures<'r> {
    /// The report as the command's JSON has it, without the target.
    pub(super) json: Value,
    pub(super) rows: &'r BTreeMap<String, u64>,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

/// Writes the report of a move to the places `rows` and `files`. `notes` are for a person; `source` says what became of the source.
pub(super) fn write(
    figures: Figures<'_>,
    (rows, files): (&str, &str),
    notes: &[String],
    source: &str,
    context: &Context,
) -> Result<(), Failure> {
    if context.output.is_json {
        let mut value = figures.json;
        value["target"] = json!({ "rows": rows, "files": files });
        return context.output.json(&value);
    }
    let of_files = [("files", figures.files), ("bytes of files", figures.bytes)];
    let counts = figures.rows.iter().map(|(name, count)| (name.as_str(), *count)).chain(of_files);
    let counts: Vec<_> = counts.map(|(name, count)| vec![name.to_owned(), count.to_string()]).collect();
    context.output.table(&["table", "rows"], &counts)?;
    for sentence in notes {
        note(sentence);
    }
    note(&format!("The rows are in {rows}, large files in {files}."));
    note(&format!("Moved and compared in {:.1} s. {source}", figures.seconds));
    Ok(())
}
