//! The standard output: tables and text for people, JSON for programs.
//!
//! Invariant: text of users has no control characters when it reaches a terminal, so it cannot change the terminal's state.

use std::{
    cell::RefCell,
    io::{self, BufWriter, IsTerminal as _, Stdout, Write},
};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use crate::{failure::Failure, printable::printable};

/// The standard output of a command.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether the option `--json` is given.
    pub(crate) is_json: bool,
    /// The width of the terminal; `None` if the output goes elsewhere.
    pub(crate) width: Option<u16>,
    writer: RefCell<BufWriter<Stdout>>,
}

impl Output {
    pub(crate) fn new(is_json: bool) -> Output {
        let is_terminal = io::stdout().is_terminal();
        let width = terminal_size::terminal_size().filter(|_| is_terminal).map(|(width, _)| width.0);
        Output { is_json, width, writer: RefCell::new(BufWriter::new(io::stdout())) }
    }

    /// Writes a line of text for people.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.writer.borrow_mut(), "{}", printable(text))?)
    }

    /// Writes text that a program made: it may have several lines.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        Ok(self.writer.borrow_mut().write_all(text.as_bytes())?)
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.writer.borrow_mut().write_all(bytes)?)
    }

    /// Writes an object in several lines.
    pub(crate) fn json(&self, value: &Value) -> Result<(), Failure> {
        Ok(writeln!(self.writer.borrow_mut(), "{value:#}")?)
    }

    /// Writes an object in one line, and flushes it: a line of a stream is read at once.
    pub(crate) fn json_line(&self, value: &Value) -> Result<(), Failure> {
        writeln!(self.writer.borrow_mut(), "{value}")?;
        self.flush()
    }

    /// Writes a table. On a terminal it has the width of the terminal, elsewhere no line is broken.
    pub(crate) fn table(&self, header: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        for line in table_lines(self.width, header, rows) {
            writeln!(self.writer.borrow_mut(), "{line}")?;
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> Result<(), Failure> {
        Ok(self.writer.borrow_mut().flush()?)
    }
}

/// The lines of a table, which breaks its cells if it is wider than `width`.
fn table_lines(width: Option<u16>, header: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    match width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|text| printable(text)));
    }
    // The first column begins at the margin.
    table.trim_fmt().lines().map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect()
}

/// Writes a line for people to the standard error. It is no data, so a failure is ignored.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal_and_is_whole_elsewhere() {
        let rows = [vec!["a long name of something".to_owned(), "x".repeat(100), "\u{1b}[31m".to_owned()]];
        let lines = table_lines(Some(40), &["name", "value", "end"], &rows);
        assert!(lines.len() > 3 && lines.iter().all(|line| line.chars().count() <= 40), "{lines:#?}");
        let lines = table_lines(None, &["name", "value", "end"], &rows);
        assert!(lines.len() == 2 && lines[0].starts_with("NAME") && lines[1].contains(&rows[0][1]), "{lines:#?}");
        assert!(!lines.concat().contains('\u{1b}'));
    }
}
