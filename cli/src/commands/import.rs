//! `import`: inserts the rows of a file that `export` wrote.

mod reader;
mod seen;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Seek as _},
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value, json};
use townsquare::{
    Error, ErrorKind,
    blocking::Client,
    rows::{ImportOptions, RowImportReport, RowProblem, RowProblemKind, RowTable},
};

use self::{
    reader::{Limits, NumberedRow, Rows, of_line},
    seen::Seen,
};
use crate::{
    context::Context,
    exit_code,
    failure::Failure,
    interrupt,
    interruptible_input::InterruptibleInput,
    output::note,
    progress::{Progress, Unit},
    row_format::{Format, table},
    settings::IfMissing,
};

/// The most rows that are inserted in one call.
const BATCH: usize = 500;

/// About the most bytes of the file that are inserted in one call, apart from a longer line.
const BATCH_BYTES: u64 = 8 << 20;

/// The problems that a dry run shows.
const SHOWN: usize = 100;

/// Insert the rows of a file, with their ids and times. The whole file is checked first; nothing is inserted if a line has a fault.
///
/// A row that is there and equal is left as it is. A row that is there and differs is a fault: an import changes no row. A row
/// comes after the rows that it references, as `export` writes them. At most 500 rows are inserted at a time; if the command is
/// interrupted then, the same command goes on. A line has at most 64 MiB. The check keeps about 60 bytes of memory for each unique
/// value; a user has two. A value is refused unread if its text is longer than six times `max_text_size`, or `max_json_size` for
/// JSON.
///
/// An imported user has no password: give one by `users password`, or let the user recover the account.
///
/// JSON: `rows` by table, with `inserted` and `unchanged`. With --dry-run also `problems` (the first 100), and `more`, the number of
/// others.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The table of the rows. Lines of NDJSON may then be rows without `table`. CSV needs it.
    #[arg(long, value_name = "TABLE", value_parser = table)]
    table: Option<RowTable>,
    /// The format. Default: csv for a FILE that ends in .csv, else ndjson.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Insert nothing, and say what would happen: the numbers of rows, and the lines that conflict with rows of the database. A
    /// line with another fault ends the check.
    #[arg(long)]
    dry_run: bool,
    /// The file to read; - is the standard input.
    #[arg(value_name = "FILE")]
    source: PathBuf,
}

/// What an import did with the rows of a table.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Count {
    inserted: u64,
    unchanged: u64,
}

/// What a pass over the file found or did.
#[derive(Debug, Default)]
struct Outcome {
    counts: BTreeMap<&'static str, Count>,
    /// The first problems, with their lines.
    problems: Vec<(u64, &'static str, RowProblem)>,
    /// The number of further problems.
    more: u64,
}

/// What a pass over the file does with its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    Check,
    Insert,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let format = Format::of(arguments.format, &arguments.source);
    if format == Format::Csv && arguments.table.is_none() {
        return Err(Failure::usage("CSV has the rows of one table", "Name it with --table."));
    }
    interrupt::defer();
    let file = open(&arguments.source)?;
    let size = file.metadata().map_err(|error| Failure::of_file(&arguments.source, &error))?.len();
    let if_missing = if arguments.dry_run { IfMissing::FailReadOnly } else { IfMissing::Create };
    let settings = context.settings()?;
    let number = |name: &str| settings.get(name).and_then(|setting| setting.value.to_str()?.parse().ok());
    let batch = number("max_bulk_rows").unwrap_or(BATCH).clamp(1, BATCH);
    let limits = Limits::new(number("max_text_size").unwrap_or(1 << 20), number("max_json_size").unwrap_or(1 << 18));
    context.with_client(if_missing, |client| {
        let progress = Progress::new(&context.output, "rows", Unit::Bytes);
        let passes = if arguments.dry_run { 1 } else { 2 };
        let mut import = Import { client, batch, progress: &progress, before: 0, all: size * passes };
        let mut pass = |pass, outcome: &mut Outcome| {
            // Both passes share the place in the file.
            let failed = |error: io::Error| Failure::of_file(&arguments.source, &error);
            let mut again = file.try_clone().map_err(failed)?;
            again.rewind().map_err(failed)?;
            let done = import.pass(Rows::new(again, format, arguments.table.as_ref(), limits)?, pass, outcome);
            import.before += size;
            done
        };
        let mut found = Outcome::default();
        let checked = pass(Pass::Check, &mut found);
        // A problem of an earlier line comes before the fault that ended the check.
        let has_problems = !found.problems.is_empty() && !interrupt::is_requested();
        if arguments.dry_run {
            drop(progress);
            if has_problems || checked.is_ok() {
                let code = write_dry_run(&found, context)?;
                return checked.map(|()| code);
            }
            return checked.map(|()| exit_code::SUCCESS);
        }
        if has_problems && let Some((line, table, problem)) = found.problems.first() {
            let others = found.problems.len() as u64 - 1 + found.more + u64::from(checked.is_err());
            let others = if others == 0 { String::new() } else { format!("; {others} more lines have problems") };
            return Err(Failure::new(
                exit_code::FAILURE,
                format!("line {line}: {}{others}", sentence(table, problem)),
                "Nothing was imported. --dry-run lists the lines; take them out, or change the rows that are there.",
            ));
        }
        checked?;
        let mut imported = Outcome::default();
        pass(Pass::Insert, &mut imported)?;
        drop(progress);
        write(&imported, context)?;
        Ok(exit_code::SUCCESS)
    })
}

/// Opens the file. The standard input is copied to a temporary file, because it is read twice.
fn open(source: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::of_file(source, &error);
    if source != Path::new("-") {
        // First: to open a pipe would wait for a writer.
        if !fs::metadata(source).map_err(failed)?.is_file() {
            let sentence = format!("{} is no file", source.display());
            return Err(Failure::usage(sentence, "Send it to the standard input: townsquare import - < FILE."));
        }
        return File::open(source).map_err(failed);
    }
    let mut file = tempfile::tempfile().map_err(failed)?;
    let copied = InterruptibleInput::start().and_then(|mut input| io::copy(&mut input, &mut file));
    match copied {
        Ok(_) => Ok(file),
        Err(_) if interrupt::is_requested() => Err(Failure::interrupted("Nothing was imported.")),
        Err(error) => Err(failed(error)),
    }
}

/// An import that runs.
struct Import<'c> {
    client: &'c Client,
    /// The most rows of a call.
    batch: usize,
    progress: &'c Progress,
    /// The bytes of the passes before.
    before: u64,
    /// The bytes of all passes.
    all: u64,
}

/// Rows of one table that go into one call.
#[derive(Debug, Default)]
struct Batch {
    table: usize,
    rows: Vec<Map<String, Value>>,
    lines: Vec<u64>,
    /// The bytes of the file that were read when the batch began.
    begins: u64,
}

impl Import<'_> {
    /// On a failure, `outcome` has what was found before it.
    fn pass(&self, mut rows: Rows, pass: Pass, outcome: &mut Outcome) -> Result<(), Failure> {
        let (mut seen, mut batch) = (Seen::default(), Batch::default());
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                // The lines before it may have faults, too, and the first one is named.
                end => {
                    self.send(&mut batch, &rows.tables, pass, &seen, outcome)?;
                    return end.map(drop);
                }
            };
            let NumberedRow { line, table, values, read } = row;
            let is_full = batch.rows.len() >= self.batch || read - batch.begins > BATCH_BYTES;
            if table != batch.table || is_full {
                self.send(&mut batch, &rows.tables, pass, &seen, outcome)?;
                self.show(read, pass, outcome)?;
                batch = Batch { table, begins: read, ..Batch::default() };
            }
            // Only now: the rows of the batch come before this one, so they may not reference it.
            if pass == Pass::Check
                && let Some(columns) = seen.add(&rows.tables[table], &values)
            {
                self.send(&mut batch, &rows.tables, pass, &seen, outcome)?;
                return Err(of_line(line, format!("an earlier line has the same {columns}")));
            }
            batch.rows.push(values);
            batch.lines.push(line);
        }
    }

    /// Ends the import if a signal asks for it.
    fn show(&self, read: u64, pass: Pass, outcome: &Outcome) -> Result<(), Failure> {
        let is_begun = pass == Pass::Insert && outcome.counts.values().any(|count| count.inserted > 0);
        match self.progress.show(self.before + read, self.all) {
            std::ops::ControlFlow::Continue(()) => Ok(()),
            std::ops::ControlFlow::Break(()) if is_begun => Err(Failure::interrupted(GOES_ON)),
            std::ops::ControlFlow::Break(()) => Err(Failure::interrupted("Nothing was imported.")),
        }
    }

    fn send(
        &self,
        batch: &mut Batch,
        tables: &[RowTable],
        pass: Pass,
        seen: &Seen,
        outcome: &mut Outcome,
    ) -> Result<(), Failure> {
        if batch.rows.is_empty() {
            return Ok(());
        }
        let name = tables[batch.table].name;
        let options = if pass == Pass::Check { ImportOptions::new().dry_run() } else { ImportOptions::new() };
        let mut rows = std::mem::take(&mut batch.rows);
        // The library names the first row that is not valid, and says nothing about the rows before it.
        let again = (pass == Pass::Check).then(|| rows.clone());
        let report = match (self.client.import_rows(name, rows, options.clone()), again) {
            (Ok(report), _) => report,
            (Err(error), Some(before)) if error.row().is_some_and(|row| row > 0) => {
                rows = before;
                rows.truncate(error.row().unwrap_or_default());
                if let Ok(report) = self.client.import_rows(name, rows, options) {
                    outcome.add(name, report, &batch.lines, tables, seen);
                }
                return Err(of_batch(error, &batch.lines, pass));
            }
            (Err(error), _) => return Err(of_batch(error, &batch.lines, pass)),
        };
        outcome.add(name, report, &batch.lines, tables, seen);
        Ok(())
    }
}

impl Outcome {
    /// Adds what a call found or did for the rows of these lines.
    fn add(&mut self, name: &'static str, report: RowImportReport, lines: &[u64], tables: &[RowTable], seen: &Seen) {
        let count = self.counts.entry(name).or_default();
        count.inserted += report.inserted;
        count.unchanged += report.unchanged;
        for problem in report.problems {
            // A row that it references may be one of the file, which a check does not insert.
            let other = tables.iter().find(|table| Some(table.name) == problem.table);
            if other.zip(problem.value.as_deref()).is_some_and(|(table, value)| seen.has(table, value)) {
                count.inserted += 1;
            } else if self.problems.len() < SHOWN {
                self.problems.push((lines[problem.row], name, problem));
            } else {
                self.more += 1;
            }
        }
    }
}

/// What to do after an import that ended while it inserted.
const GOES_ON: &str = "Run the same command again: it goes on where this one ended.";

/// The failure of a call for the rows of these lines.
fn of_batch(error: Error, lines: &[u64], pass: Pass) -> Failure {
    let line = error.row().and_then(|row| lines.get(row));
    let place = match (line, lines) {
        (Some(line), _) => format!("line {line}"),
        (None, [first, .., last]) => format!("lines {first} to {last}"),
        (None, _) => format!("line {}", lines.first().copied().unwrap_or_default()),
    };
    let row = error.row().unwrap_or_default();
    let message = error.message().replace(&format!("rows[{row}]."), "").replace(&format!("rows[{row}]: "), "");
    let of_data = [ErrorKind::InvalidInput, ErrorKind::FieldMissing, ErrorKind::TooLarge];
    let advice = match pass {
        Pass::Insert => GOES_ON,
        Pass::Check if of_data.contains(&error.kind()) => {
            "Nothing was imported. Correct the line, then run the same command again."
        }
        Pass::Check => return Failure::from(error).at(place),
    };
    Failure::new(exit_code::of(&error), format!("{place}: {message}"), advice)
}

/// What is wrong with a row.
fn sentence(table: &str, problem: &RowProblem) -> String {
    let column = problem.column;
    match problem.kind {
        RowProblemKind::Differs => format!("there is a row of {table} with this id, and it differs in {column}"),
        RowProblemKind::Taken => format!("another row of {table} has this {column}"),
        _ => {
            let value = problem.value.as_deref().unwrap_or_default();
            format!("{column}: {} has no row with {value:?}", problem.table.unwrap_or_default())
        }
    }
}

fn write(outcome: &Outcome, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        return context.output.json(&json!({ "rows": outcome.counts }));
    }
    table_of(outcome, "inserted", context)
}

fn table_of(outcome: &Outcome, inserted: &str, context: &Context) -> Result<(), Failure> {
    let row = |(name, count): (&&str, &Count)| {
        vec![(*name).to_owned(), count.inserted.to_string(), count.unchanged.to_string()]
    };
    let rows: Vec<_> = outcome.counts.iter().map(row).collect();
    context.output.table(&["table", inserted, "unchanged"], &rows)
}

fn write_dry_run(outcome: &Outcome, context: &Context) -> Result<u8, Failure> {
    if context.output.is_json {
        let problem = |(line, table, problem): &(u64, &str, RowProblem)| {
            json!({
                "line": line, "table": table, "column": problem.column, "kind": problem.kind,
                "message": sentence(table, problem)
            })
        };
        let problems: Vec<_> = outcome.problems.iter().map(problem).collect();
        context.output.json(&json!({ "rows": outcome.counts, "problems": problems, "more": outcome.more }))?;
    } else {
        table_of(outcome, "to insert", context)?;
        for (line, table, problem) in &outcome.problems {
            context.output.line(&format!("line {line}: {}", sentence(table, problem)))?;
        }
        if outcome.more > 0 {
            note(&format!("{} more lines have problems.", outcome.more));
        }
        note("Nothing was imported.");
    }
    Ok(if outcome.problems.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
}
