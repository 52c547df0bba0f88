//! The standard output: tables and text for people, JSON for programs.
//!
//! Invariant: text of users has no control characters when it reaches a terminal, so it cannot change the terminal's state.

use std::{
    cell::RefCell,
    io::{self, BufWriter, IsTerminal as _, Stdout, Write},
};

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use crate::{
    failure::Failure,
    printable::{printable, printable_json},
    progress_form::ProgressForm,
};

/// The width of the cells of a list where the output is no terminal.
const CELL_WIDTH: u16 = 80;

/// The standard output of a command.
#[derive(Debug)]
pub(crate) struct Output {
    /// Whether the option `--json` is given.
    pub(crate) is_json: bool,
    /// The option `--progress`.
    pub(crate) progress: ProgressForm,
    /// The width of the terminal; `None` if the output goes elsewhere.
    pub(crate) width: Option<u16>,
    writer: RefCell<BufWriter<Stdout>>,
}

impl Output {
    pub(crate) fn new(is_json: bool, progress: ProgressForm) -> Output {
        let is_terminal = io::stdout().is_terminal();
        let width = terminal_size::terminal_size().filter(|_| is_terminal).map(|(width, _)| width.0);
        Output { is_json, progress, width, writer: RefCell::new(BufWriter::new(io::stdout())) }
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
        Ok(writeln!(self.writer.borrow_mut(), "{}", printable_json(&format!("{value:#}")))?)
    }

    /// Writes an object in one line, and flushes it: a line of a stream is read at once.
    pub(crate) fn json_line(&self, value: &Value) -> Result<(), Failure> {
        writeln!(self.writer.borrow_mut(), "{}", printable_json(&value.to_string()))?;
        self.flush()
    }

    /// Writes a table. On a terminal it has the width of the terminal, elsewhere no line is broken.
    pub(crate) fn table(&self, header: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        self.lines(table_lines(self.width, header, rows))
    }

    /// Begins a list, which is written in pages. JSON: an object with the rows as `name`.
    pub(crate) fn list(&self, name: &'static str, header: &'static [&'static str]) -> List<'_> {
        List { output: self, name, header, count: 0 }
    }

    /// The most characters of a cell of a list.
    pub(crate) fn cell_width(&self) -> usize {
        usize::from(self.width.unwrap_or(CELL_WIDTH))
    }

    fn lines(&self, lines: Vec<String>) -> Result<(), Failure> {
        for line in lines {
            writeln!(self.writer.borrow_mut(), "{line}")?;
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> Result<(), Failure> {
        Ok(self.writer.borrow_mut().flush()?)
    }

    /// Whether the output is a pipe or a socket that nobody reads any more.
    #[cfg(unix)]
    pub(crate) fn is_closed(&self) -> bool {
        use std::os::fd::AsFd as _;

        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

        let writer = self.writer.borrow();
        let mut output = [PollFd::new(writer.get_ref().as_fd(), PollFlags::POLLOUT)];
        let is_gone = |flags: PollFlags| flags.intersects(PollFlags::POLLERR | PollFlags::POLLHUP);
        poll(&mut output, PollTimeout::ZERO).is_ok() && output[0].revents().is_some_and(is_gone)
    }

    #[cfg(not(unix))]
    pub(crate) fn is_closed(&self) -> bool {
        false
    }
}

/// A list of rows that is written as its pages are read, so that no page waits in memory.
#[derive(Debug)]
pub(crate) struct List<'o> {
    output: &'o Output,
    name: &'static str,
    header: &'static [&'static str],
    count: usize,
}

impl List<'_> {
    /// Writes a page: each row as JSON, or as the cells of a table. A cell is cut at the width of the terminal.
    pub(crate) fn page<T: serde::Serialize>(
        &mut self,
        rows: &[T],
        cells: impl Fn(&T) -> Vec<String>,
    ) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        if self.output.is_json {
            for row in rows {
                let value = printable_json(&serde_json::to_string(row).map_err(io::Error::from)?);
                let begin = if self.count == 0 { format!("{{\n  \"{}\": [", self.name) } else { ",".to_owned() };
                self.output.text(&format!("{begin}\n    {value}"))?;
                self.count += 1;
            }
            return Ok(());
        }
        let width = self.output.cell_width();
        let cut = |row: &T| cells(row).iter().map(|cell| cut(cell, width)).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(cut).collect();
        let header = if self.count == 0 { self.header } else { &[] };
        self.count += rows.len();
        self.output.table(header, &rows)?;
        self.output.flush()
    }

    /// Ends the list. A list without rows has its header.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match (self.output.is_json, self.count) {
            (true, 0) => self.output.text(&format!("{{\n  \"{}\": []\n}}\n", self.name)),
            (true, _) => self.output.text("\n  ]\n}\n"),
            (false, 0) => self.output.table(self.header, &[]),
            (false, _) => Ok(()),
        }
    }
}

/// The text, or its beginning and … if it has more characters than `width`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width.max(1)) {
        Some(_) => text.chars().take(width.max(1) - 1).chain(['…']).collect(),
        None => text.to_owned(),
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
    if !header.is_empty() {
        table.set_header(header.iter().map(|name| name.to_uppercase()));
    }
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
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!((cut("Zürich", 6), cut("Zürich", 5)), ("Zürich".to_owned(), "Züri…".to_owned()));
    }

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
