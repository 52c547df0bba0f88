//! The parser of upstream pages: bytes in, normalized records out (UPSTREAM 1).
//!
//! Invariant: parsing fails only for a body that is no catalog page. A malformed row is skipped and counted; a
//! malformed optional part of a row is dropped. Rows are parsed one by one, so that an invalid escape in one row does
//! not fail the page.

mod lenient;
mod row;

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{error::Category, value::RawValue};

pub(crate) use self::row::app_id;
use self::{
    lenient::{Lenient, Object},
    row::ParsedRow,
};
use super::MiniAppRecord;
use crate::error::Error;

#[derive(Deserialize)]
struct PageJson<'a> {
    #[serde(borrow)]
    frames: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    next: Object<NextPageJson<'a>>,
}

#[derive(Deserialize)]
struct NextPageJson<'a> {
    #[serde(borrow, default)]
    cursor: Lenient<'a>,
}

/// A page of Farcaster's own catalog.
#[derive(Deserialize)]
struct ResultJson<'a> {
    #[serde(borrow)]
    result: PageJson<'a>,
    #[serde(borrow, default)]
    next: Object<NextPageJson<'a>>,
}

/// Why a body is no page of a catalog.
#[derive(Debug)]
pub(crate) struct MalformedPage {
    what: &'static str,
    /// The line and the column at which the parser gave up; `None` for HTML and for too many rows.
    place: Option<(usize, usize)>,
}

impl MalformedPage {
    fn new(text: &str, error: &serde_json::Error) -> MalformedPage {
        if text.trim_start().starts_with('<') {
            return MalformedPage { what: "is HTML instead of JSON", place: None };
        }
        let what = match error.classify() {
            Category::Eof => "is cut off",
            Category::Data => "has no list of frames",
            _ => "is not JSON",
        };
        MalformedPage { what, place: Some((error.line(), error.column())) }
    }

    /// The error for a body with this name, such as `The catalog's answer`. It quotes nothing of the body.
    pub(crate) fn into_error(self, name: &str) -> Error {
        let what = self.what;
        Error::unavailable(match self.place {
            None => format!("{name} {what}"),
            Some((line, column)) => format!("{name} {what} (line {line}, column {column})"),
        })
    }
}

impl<'a> PageJson<'a> {
    fn parse(text: &'a str) -> Result<PageJson<'a>, MalformedPage> {
        let parsed = serde_json::from_str(text).or_else(|error| match serde_json::from_str::<ResultJson<'a>>(text) {
            Ok(ResultJson { result, next }) => {
                Ok(PageJson { next: Object(next.0.or(result.next.0)), frames: result.frames })
            }
            Err(_) => Err(error),
        });
        parsed.map_err(|error| MalformedPage::new(text, &error))
    }
}

/// The most rows of a list, over all its pages: ten times the largest catalog that is tuned for. A source that sends more, page after
/// page, must not fill the memory of the program.
const MAX_ROWS: usize = 100_000;

/// A list as fetched: the records of all its pages, each app once, in the order of first occurrence.
#[derive(Default)]
pub(crate) struct FetchedList {
    pub(crate) records: Vec<MiniAppRecord>,
    /// Number of rows.
    pub(crate) received: usize,
    /// Number of rows without a record: malformed or marked `noindex`.
    pub(crate) skipped: usize,
    /// Number of rows that repeat an earlier row.
    pub(crate) duplicates: usize,
    /// Whether the source has more pages than the fetch may read.
    pub(crate) is_truncated: bool,
    /// Number of records that name the chains they require.
    with_chains: usize,
    seen: HashSet<Box<str>>,
    /// The records of an earlier list by id.
    earlier: HashMap<Box<str>, MiniAppRecord>,
}

impl FetchedList {
    /// An empty list that will share unchanged records with an earlier catalog.
    pub(crate) fn sharing(earlier: &[MiniAppRecord]) -> FetchedList {
        FetchedList {
            earlier: earlier.iter().map(|record| (record.id().into(), record.clone())).collect(),
            ..FetchedList::default()
        }
    }

    /// Adds a page that was fetched at `fetched_at` and returns the cursor of the next one. Rows of apps that the
    /// list has are counted and dropped.
    ///
    /// # Errors
    /// If the body is not JSON or has no list `frames`, or if the list has too many rows.
    pub(crate) fn add_page(&mut self, body: &[u8], fetched_at: Timestamp) -> Result<Option<String>, MalformedPage> {
        let text = String::from_utf8_lossy(body);
        // Some editors begin a file with a byte order mark.
        let PageJson { frames, next } = PageJson::parse(text.trim_start_matches('\u{feff}'))?;
        self.received += frames.len();
        if self.received > MAX_ROWS {
            return Err(MalformedPage { what: "has more than 100,000 rows", place: None });
        }
        for frame in frames {
            match row::parse(frame.get(), fetched_at) {
                Some(row) => {
                    self.add_record(row);
                }
                None => self.skipped += 1,
            }
        }
        let cursor = next.0.and_then(|next| next.cursor.into_text());
        Ok(cursor.filter(|cursor| !cursor.is_empty()).map(Into::into))
    }

    /// Whether the source names the chains that apps require. Some sources do for every app that requires any; in others
    /// a few rows name theirs by chance. The threshold of a tenth tells them apart.
    pub(crate) fn has_chains(&self) -> bool {
        self.with_chains > 0 && self.with_chains * 10 >= self.records.len()
    }

    fn add_record(&mut self, ParsedRow { mut record, has_chains }: ParsedRow) {
        if !self.seen.insert(record.id().into()) {
            self.duplicates += 1;
            return;
        }
        if let Some(earlier) = self.earlier.get(record.id()) {
            record.share(earlier);
        }
        self.with_chains += usize::from(has_chains);
        self.records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(body: &str) -> (FetchedList, Option<String>) {
        let mut list = FetchedList::default();
        let next = list.add_page(body.as_bytes(), Timestamp::UNIX_EPOCH).expect("a page");
        (list, next)
    }

    #[test]
    fn a_malformed_row_is_skipped_alone() {
        let (list, next) = fetched(
            r#"{"frames":[1,null,["a"],{"frames_url":"ftp://x"},{"title":"\ud800","frames_url":"https://a.example"},
                {"frames_url":"https://b.example","title":"B"}],"next":{"cursor":"c"}}"#,
        );
        assert_eq!((list.received, list.skipped, list.records.len()), (6, 5, 1));
        assert_eq!(next.as_deref(), Some("c"));
        assert_eq!(list.records[0].name(), "B");
    }

    #[test]
    fn a_list_with_too_many_rows_is_refused_before_they_are_read() {
        let page = |rows: usize| format!(r#"{{"frames":[{}]}}"#, vec!["1"; rows].join(","));
        let (mut list, _) = fetched(&page(MAX_ROWS));
        assert_eq!((list.received, list.skipped), (MAX_ROWS, MAX_ROWS));
        let refused = list.add_page(page(1).as_bytes(), Timestamp::UNIX_EPOCH).expect_err("one more");
        assert!(refused.into_error("The catalog's answer").message().contains("more than 100,000 rows"));
        assert_eq!(list.skipped, MAX_ROWS);
    }

    #[test]
    fn a_page_of_farcasters_catalog_is_recognised() {
        let row = r#"{"homeUrl":"https://a.example","name":"A"}"#;
        for body in [
            format!(r#"{{"result":{{"frames":[{row}]}},"next":{{"cursor":"c"}}}}"#),
            format!(r#"{{"result":{{"frames":[{row}],"next":{{"cursor":"c"}}}}}}"#),
        ] {
            let (list, next) = fetched(&body);
            assert_eq!((list.records[0].name(), next.as_deref()), ("A", Some("c")), "{body}");
        }
    }

    #[test]
    fn a_file_may_begin_with_a_byte_order_mark() {
        let (list, _) = fetched("\u{feff}{\"frames\":[{\"frames_url\":\"https://a.example\",\"title\":\"A\"}]}");
        assert_eq!(list.records[0].name(), "A");
    }

    #[test]
    fn the_error_says_why_a_body_is_no_page() {
        for (body, message) in [
            ("<html>", "The file is HTML instead of JSON"),
            (r#"{"frames":[{"#, "The file is cut off (line 1, column 12)"),
            (r#"{"message":"x"}"#, "The file has no list of frames (line 1, column 15)"),
            ("\n nonsense", "The file is not JSON (line 2, column 3)"),
        ] {
            let fault = FetchedList::default().add_page(body.as_bytes(), Timestamp::UNIX_EPOCH).expect_err(body);
            assert_eq!(fault.into_error("The file").message(), message);
        }
    }

    #[test]
    fn the_first_of_two_rows_of_an_app_is_kept() {
        let row = |url: &str, name: &str| format!(r#"{{"frames_url":"{url}","title":"{name}"}}"#);
        let rows = [
            row("https://A.example:443/#x", "first"),
            row("https://b.example", "b"),
            row("https://a.example/", "second"),
        ];
        let (list, _) = fetched(&format!(r#"{{"frames":[{}],"next":{{"cursor":null}}}}"#, rows.join(",")));
        let names: Vec<_> = list.records.iter().map(MiniAppRecord::name).collect();
        assert_eq!((names, list.duplicates), (vec!["first", "b"], 1));
    }

    #[test]
    fn unchanged_records_are_shared_with_the_earlier_list() {
        let row = |url: &str, name: &str| format!(r#"{{"frames_url":"https://{url}","title":"{name}"}}"#);
        let page = |rows: [String; 2]| format!(r#"{{"frames":[{}]}}"#, rows.join(","));
        let (earlier, _) = fetched(&page([row("a.example", "a"), row("b.example", "b")]));
        let mut list = FetchedList::sharing(&earlier.records);
        let later = Timestamp::from_second(60).expect("a time");
        list.add_page(page([row("b.example", "b"), row("a.example", "new")]).as_bytes(), later).expect("a page");
        let names = |list: &FetchedList| list.records.iter().map(|record| record.name().as_ptr()).collect::<Vec<_>>();
        assert_eq!(names(&list)[0], names(&earlier)[1]);
        assert_eq!((list.records[1].name(), list.records[0].last_fetched()), ("new", later));
    }
}
