//! `export`: the rows of tables as JSON lines or CSV.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use townsquare::{
    blocking::Client,
    rows::{RowTable, TableRow, tables},
};

use crate::{
    context::Context,
    failure::Failure,
    interrupt,
    new_file::NewFile,
    output::note,
    printable::printable_json,
    progress::Progress,
    row_format::{Format, cells, table},
    settings::IfMissing,
};

/// The bytes that are written at a time.
const CHUNK: usize = 64 * 1024;

/// Write the rows of tables, as they are at one moment. Others may write meanwhile.
///
/// NDJSON has one object a line, with `table` and `row`; CSV has one table. Rows have ids and times, so that `import` makes the same
/// rows. Users have no password, session or identity key there: those go with `move` and `backup`. Files are no rows: `files export`
/// writes them.
///
/// NULL is null in NDJSON; a JSON column that is NULL is left out. In CSV an empty cell is NULL, and a text that is empty or begins with
/// a backslash has one more backslash before it.
///
/// A process that SIGKILL ends leaves a file `.townsquare-new-…` in the folder of FILE.
///
/// JSON, with FILE: `rows` by table.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A table (repeatable). Default: all. Tables: community_configs, community_domains, space_registrations, users, spaces, fidgets.
    #[arg(long = "table", value_name = "TABLE", value_parser = table)]
    tables: Vec<RowTable>,
    /// The format. Default: csv for a FILE that ends in .csv, else ndjson.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The new file, which must not exist; - is the standard output. CSV is not written to a terminal.
    #[arg(value_name = "FILE", default_value = "-")]
    target: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Arguments { tables, target, .. } = arguments;
    let format = Format::of(arguments.format, target);
    if format == Format::Csv && tables.len() != 1 {
        return Err(Failure::usage("CSV has the rows of one table", "Name it with --table, or use --format ndjson."));
    }
    if format == Format::Csv && target == Path::new("-") && io::stdout().is_terminal() {
        let sentence =
            "CSV is not written to a terminal: its texts may have control characters, which CSV cannot escape";
        return Err(Failure::usage(sentence, "Name a file, or use --format ndjson."));
    }
    interrupt::defer();
    if target == Path::new("-") {
        let write = |client: &Client| export(client, tables, format, |bytes| context.output.bytes(bytes));
        return context.with_client(IfMissing::FailReadOnly, write).map(drop);
    }
    let new = NewFile::at(target)?;
    let counts = context.with_client(IfMissing::FailReadOnly, |client| {
        new.write(|file| {
            let _progress = Progress::waiting(&context.output, "exporting");
            export(client, tables, format, |bytes| file.write_all(bytes).map_err(|error| new.failed(&error)))
        })
    })?;
    if context.output.is_json {
        return context.output.json(&json!({ "rows": counts }));
    }
    let counts: Vec<_> = counts.into_iter().map(|(name, count)| vec![name.to_owned(), count.to_string()]).collect();
    context.output.table(&["table", "rows"], &counts)?;
    note(&format!("The rows are in {}.", target.display()));
    Ok(())
}

/// Writes the rows. Returns their numbers.
fn export(
    client: &Client,
    chosen: &[RowTable],
    format: Format,
    mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<BTreeMap<&'static str, u64>, Failure> {
    let names: Vec<_> = chosen.iter().map(|table| table.name).collect();
    let all = tables();
    let counted = all.iter().filter(|table| names.is_empty() || names.contains(&table.name));
    let mut counts: BTreeMap<_, _> = counted.map(|table| (table.name, 0)).collect();
    let mut chunk = Vec::with_capacity(CHUNK * 2);
    if let (Format::Csv, [table]) = (format, chosen) {
        let header: Vec<_> = table.columns.iter().map(|column| column.name.to_owned()).collect();
        add_record(&mut chunk, &header)?;
    }
    for row in client.export_rows(&names)? {
        let row = row?;
        add_row(&mut chunk, &row, format, chosen)?;
        *counts.entry(row.table).or_default() += 1;
        if chunk.len() >= CHUNK {
            write(&chunk)?;
            chunk.clear();
        }
        if interrupt::is_requested() {
            return Err(Failure::interrupted("Run the same command again."));
        }
    }
    write(&chunk)?;
    Ok(counts)
}

fn add_row(chunk: &mut Vec<u8>, row: &TableRow, format: Format, chosen: &[RowTable]) -> Result<(), Failure> {
    match (format, chosen) {
        (Format::Csv, [table]) => add_record(chunk, &cells(table, row)),
        _ => {
            let line = printable_json(&serde_json::to_string(row).map_err(io::Error::from)?);
            chunk.extend_from_slice(line.as_bytes());
            chunk.push(b'\n');
            Ok(())
        }
    }
}

fn add_record(chunk: &mut Vec<u8>, cells: &[String]) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(chunk);
    writer.write_record(cells).map_err(io::Error::from)?;
    Ok(writer.flush()?)
}
