//! Reads the rows of a file one by one, with the numbers of their lines.
//!
//! Invariant: a line, or a record of CSV, has at most [`LONGEST`] bytes. A value with a text longer than the limits allow is
//! refused before it is parsed.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
    rc::Rc,
};

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};
use townsquare::{
    rows::{RowTable, ValueKind, tables},
    spaces::parse_json,
};

use crate::{
    failure::Failure,
    row_format::{Format, database_name, read_cell},
};

/// The most bytes of a line.
const LONGEST: u64 = 64 << 20;

/// The most members of an object of a line: more than a table has columns.
const MOST_MEMBERS: usize = 100;

/// The most bytes of the text of a value. A larger one is refused before it is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    of_text: usize,
    of_json: usize,
}

impl Limits {
    /// For these values of `max_text_size` and `max_json_size`. An escape of JSON has up to six bytes for one.
    pub(super) fn new(max_text_size: usize, max_json_size: usize) -> Limits {
        let longest = |size: usize| size.saturating_mul(6).saturating_add(1_024);
        Limits { of_text: longest(max_text_size), of_json: longest(max_json_size) }
    }

    fn check(self, name: &str, text: &str, is_text: bool) -> Result<(), String> {
        let longest = if is_text { self.of_text } else { self.of_json };
        match text.len() <= longest {
            true => Ok(()),
            false => Err(format!("{name} has {} bytes, and the most that is read is {longest}", text.len())),
        }
    }
}

/// A row of the file.
#[derive(Debug)]
pub(super) struct NumberedRow {
    pub(super) line: u64,
    /// The place of the table in [`Rows::tables`].
    pub(super) table: usize,
    pub(super) values: Map<String, Value>,
    /// The bytes that were read from the file so far.
    pub(super) read: u64,
}

/// The rows of a file.
pub(super) struct Rows {
    pub(super) tables: Vec<RowTable>,
    /// The only table of the file, if the command line names it.
    only: Option<usize>,
    limits: Limits,
    source: Source,
}

enum Source {
    Ndjson { input: BufReader<Counted>, line: u64 },
    Csv { reader: Box<csv::Reader<Counted>>, columns: Vec<usize> },
}

/// A file that counts what is read. A read fails when [`LONGEST`] bytes were read since the last record.
struct Counted {
    file: File,
    counts: Counts,
}

#[derive(Debug, Clone, Default)]
struct Counts {
    all: Rc<Cell<u64>>,
    of_record: Rc<Cell<u64>>,
    /// Whether the number of quotation marks is odd: whole CSV has an even number, because one in a quoted cell is doubled.
    has_odd_quotes: Rc<Cell<bool>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.counts.of_record.get() > LONGEST {
            return Err(too_long());
        }
        let read = self.file.read(buffer)?;
        self.counts.all.set(self.counts.all.get() + read as u64);
        self.counts.of_record.set(self.counts.of_record.get() + read as u64);
        let quotes = buffer[..read].iter().filter(|byte| **byte == b'"').count();
        self.counts.has_odd_quotes.set(self.counts.has_odd_quotes.get() ^ (quotes % 2 == 1));
        Ok(read)
    }
}

fn too_long() -> io::Error {
    io::Error::other(format!("it has more than {} MiB", LONGEST >> 20))
}

/// The failure for a line of the file.
pub(super) fn of_line(line: u64, what: impl fmt::Display) -> Failure {
    Failure::usage(format!("line {line}: {what}"), "Correct the line, then run the same command again.")
}

impl Rows {
    /// Reads from the beginning of a file.
    pub(super) fn new(file: File, format: Format, only: Option<&RowTable>, limits: Limits) -> Result<Rows, Failure> {
        let tables = tables();
        let only = only.and_then(|only| tables.iter().position(|table| table.name == only.name));
        let counted = Counted { file, counts: Counts::default() };
        let source = match (format, only) {
            (Format::Ndjson, _) => Source::Ndjson { input: BufReader::new(counted), line: 0 },
            (Format::Csv, Some(only)) => {
                let mut reader = Box::new(csv::ReaderBuilder::new().has_headers(false).from_reader(counted));
                let columns = header(&mut reader, &tables[only])?;
                Source::Csv { reader, columns }
            }
            (Format::Csv, None) => {
                return Err(Failure::usage("CSV has the rows of one table", "Name the table with --table."));
            }
        };
        Ok(Rows { tables, only, limits, source })
    }

    /// The next row; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<NumberedRow>, Failure> {
        let Rows { tables, only, limits, source } = self;
        match source {
            Source::Ndjson { input, line } => loop {
                *line += 1;
                let Some(text) = next_line(input, *line)? else { return Ok(None) };
                if !text.trim().is_empty() {
                    let (table, values) =
                        row_of_line(&text, tables, *only, *limits).map_err(|what| of_line(*line, what))?;
                    return Ok(Some(NumberedRow {
                        line: *line,
                        table,
                        values,
                        read: input.get_ref().counts.all.get(),
                    }));
                }
            },
            Source::Csv { reader, columns } => {
                let Some((line, record)) = next_record(reader)? else {
                    // The reader takes the end of the file for the end of the cell.
                    let what = "the file ends within a quoted cell, or a cell with a quotation mark is not quoted";
                    return match reader.get_ref().counts.has_odd_quotes.get() {
                        true => Err(of_line(reader.position().line(), what)),
                        false => Ok(None),
                    };
                };
                let table = only.unwrap_or_default();
                let mut values = Map::new();
                for (place, cell) in columns.iter().zip(&record) {
                    let column = &tables[table].columns[*place];
                    let is_text = !matches!(column.kind, ValueKind::Json | ValueKind::Texts);
                    let read = limits.check(column.name, cell, is_text);
                    read.and_then(|()| read_cell(&mut values, column, cell)).map_err(|what| of_line(line, what))?;
                }
                Ok(Some(NumberedRow { line, table, values, read: reader.get_ref().counts.all.get() }))
            }
        }
    }
}

/// The next line without its end; `None` at the end of the file.
fn next_line(input: &mut BufReader<Counted>, line: u64) -> Result<Option<String>, Failure> {
    input.get_ref().counts.of_record.set(0);
    let mut bytes = Vec::new();
    input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes).map_err(|error| of_line(line, error))?;
    if bytes.len() as u64 > LONGEST {
        return Err(of_line(line, too_long()));
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| of_line(line, format!("byte {} is not UTF-8", error.utf8_error().valid_up_to() + 1)))?;
    let text = if line == 1 { text.strip_prefix('\u{feff}').unwrap_or(&text) } else { &text };
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// The members of an object, unparsed. A repeated member is an error; `serde_json` would keep the last one.
struct Object<'t>(BTreeMap<String, &'t RawValue>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<'de>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.len() >= MOST_MEMBERS {
                return Err(A::Error::custom(format_args!("an object has more than {MOST_MEMBERS} members")));
            }
            let shown = shortened(&name);
            if members.insert(name, map.next_value()?).is_some() {
                return Err(A::Error::custom(format_args!("{shown:?} is there twice")));
            }
        }
        Ok(Object(members))
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(60).collect()
}

/// The members of an object that `what` names.
fn members<'t>(what: &str, text: &'t str) -> Result<BTreeMap<String, &'t RawValue>, String> {
    serde_json::from_str(text).map(|Object(members)| members).map_err(|error| {
        let message = error.to_string().replace(" at line 1 column", " at column");
        if error.is_data() { message } else { format!("{what} is not JSON: {message}") }
    })
}

/// The table and the row of a line of JSON.
fn row_of_line(
    text: &str,
    tables: &[RowTable],
    only: Option<usize>,
    limits: Limits,
) -> Result<(usize, Map<String, Value>), String> {
    let mut line = members("the line", text)?;
    let Some(row) = line.remove("row") else {
        let only = only.ok_or("it has no `table` and `row`; name the table with --table if each line is a row")?;
        return Ok((only, parsed(&tables[only], line, limits)?));
    };
    let table = match line.remove("table") {
        Some(name) => {
            let name: String = serde_json::from_str(name.get()).map_err(|_| "`table` is no text")?;
            let known = || tables.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
            let found = table_of(tables, &name);
            found.ok_or_else(|| format!("the table is one of {}, not {:?}", known(), shortened(&name)))?
        }
        None => only.ok_or("it has a `row` without a `table`")?,
    };
    if let Some(only) = only.filter(|only| *only != table) {
        return Err(format!("it is a row of {}, and --table is {}", tables[table].name, tables[only].name));
    }
    if let Some(name) = line.keys().next() {
        return Err(format!("it has a member {:?} besides `table` and `row`", shortened(name)));
    }
    Ok((table, parsed(&tables[table], members("the row", row.get())?, limits)?))
}

/// The place of the table with a name.
fn table_of(tables: &[RowTable], name: &str) -> Option<usize> {
    tables.iter().position(|table| table.name == database_name(name))
}

/// Parses the values of a row. Numbers that would be rounded are refused.
fn parsed(
    table: &RowTable,
    members: BTreeMap<String, &RawValue>,
    limits: Limits,
) -> Result<Map<String, Value>, String> {
    let values = members.into_iter().map(|(name, raw)| {
        if !table.columns.iter().any(|column| column.name == name) {
            return Err(format!("{} has no column {:?}", table.name, shortened(&name)));
        }
        limits.check(&name, raw.get(), raw.get().starts_with('"'))?;
        let value = parse_json(&name, raw.get());
        let value = value.map_err(|error| error.message().replace(" at line 1 column", " at column"))?;
        Ok((name, value))
    });
    values.collect()
}

/// Reads the header. Returns the place of each cell's column.
fn header(reader: &mut csv::Reader<Counted>, table: &RowTable) -> Result<Vec<usize>, Failure> {
    let names = || table.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(",");
    let Some((line, record)) = next_record(reader)? else {
        return Err(of_line(1, format!("it has no header: {}", names())));
    };
    let mut columns = Vec::new();
    for cell in &record {
        let found = table.columns.iter().position(|column| column.name == cell);
        let place = found.ok_or_else(|| of_line(line, format!("{} has no column {cell:?}", table.name)))?;
        if columns.contains(&place) {
            return Err(of_line(line, format!("the column {cell} is there twice")));
        }
        columns.push(place);
    }
    match (0..table.columns.len()).find(|place| !columns.contains(place)) {
        None => Ok(columns),
        Some(missing) => Err(of_line(line, format!("the column {} is missing", table.columns[missing].name))),
    }
}

/// The next record and the line on which it begins.
fn next_record(reader: &mut csv::Reader<Counted>) -> Result<Option<(u64, csv::StringRecord)>, Failure> {
    reader.get_ref().counts.of_record.set(0);
    let mut record = csv::StringRecord::new();
    let before = reader.position().line();
    match reader.read_record(&mut record) {
        Ok(false) => Ok(None),
        Ok(true) => Ok(Some((record.position().map_or(before, csv::Position::line), record))),
        Err(error) => {
            let line = error.position().map_or(before, csv::Position::line);
            let what = match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("it has {len} cells, and the header has {expected_len}")
                }
                csv::ErrorKind::Utf8 { err, .. } => format!("cell {} is not UTF-8", err.field() + 1),
                csv::ErrorKind::Io(error) => error.to_string(),
                _ => error.to_string(),
            };
            Err(of_line(line, what))
        }
    }
}
