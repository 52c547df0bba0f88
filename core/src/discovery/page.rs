//! An upstream page, read: bytes in, tidy records out (UPSTREAM 1).
//!
//! Invariant: only a body that is no catalog page fails; a bad row costs itself and is counted, a bad optional part
//! costs that part. Rows are located first and parsed one by one, so that not even an unreadable escape in one of
//! them can take the page along.

mod lenient;
mod row;

use std::{borrow::Borrow, collections::HashSet, hash};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::lenient::{Object, Scalar};
use crate::{
    error::{Error, Result},
    model::MiniAppRecord,
};

/// One page of the upstream catalog.
pub(crate) struct Page {
    pub(crate) records: Vec<MiniAppRecord>,
    /// Rows the page held.
    pub(crate) received: usize,
    /// Rows of those without a record: malformed or marked `noindex`.
    pub(crate) skipped: usize,
    /// Whether any row says which chains it needs.
    pub(crate) has_chains: bool,
    /// Where the next page starts.
    pub(crate) next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    frames: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    next: Object<Next<'a>>,
}

#[derive(Deserialize)]
struct Next<'a> {
    #[serde(borrow, default)]
    cursor: Scalar<'a>,
}

impl Page {
    /// Reads a body that was fetched at `fetched_at`.
    ///
    /// # Errors
    /// `Unavailable` when the body is not JSON or holds no list `frames`.
    pub(crate) fn parse(body: &[u8], fetched_at: Timestamp) -> Result<Page> {
        let text = String::from_utf8_lossy(body);
        let body: Body<'_> = serde_json::from_str(&text).map_err(|error| {
            let html = text.trim_start().starts_with('<');
            Error::unavailable(match (html, error.classify()) {
                (true, _) => "The catalog answered with HTML instead of JSON",
                (_, serde_json::error::Category::Eof) => "The catalog's answer is cut off",
                (_, serde_json::error::Category::Data) => "The catalog's answer has no list of frames",
                _ => "The catalog's answer is not JSON",
            })
        })?;
        let mut page = Page {
            records: Vec::with_capacity(body.frames.len()),
            received: body.frames.len(),
            skipped: 0,
            has_chains: false,
            next_cursor: body
                .next
                .0
                .and_then(|next| next.cursor.into_text())
                .filter(|cursor| !cursor.is_empty())
                .map(Into::into),
        };
        for frame in body.frames {
            match row::read(frame.get(), fetched_at) {
                Some(read) => {
                    page.has_chains |= read.has_chains;
                    page.records.push(read.record);
                }
                None => page.skipped += 1,
            }
        }
        Ok(page)
    }
}

/// The pages of one list put together: every app once, in the order of its first row.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) records: Vec<MiniAppRecord>,
    pub(crate) received: usize,
    pub(crate) skipped: usize,
    pub(crate) duplicates: usize,
    pub(crate) has_chains: bool,
    seen: HashSet<ById>,
}

impl Listing {
    /// Appends a page; pages overlap, so repeated rows are counted and dropped.
    pub(crate) fn add(&mut self, page: Page) {
        self.received += page.received;
        self.skipped += page.skipped;
        self.has_chains |= page.has_chains;
        for record in page.records {
            if self.seen.contains(record.id()) {
                self.duplicates += 1;
                continue;
            }
            self.seen.insert(ById(record.clone()));
            self.records.push(record);
        }
    }
}

/// A record that is looked up by its id.
struct ById(MiniAppRecord);

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &ById) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Eq for ById {}

impl hash::Hash for ById {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.id().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Page {
        Page::parse(body.as_bytes(), Timestamp::UNIX_EPOCH).expect("a page")
    }

    #[test]
    fn a_bad_row_costs_only_itself() {
        let page = parse(
            r#"{"frames":[1,null,["a"],{"frames_url":"ftp://x"},{"title":"\ud800","frames_url":"https://a.example"},
                {"frames_url":"https://b.example","title":"B"}],"next":{"cursor":"c"}}"#,
        );
        assert_eq!((page.received, page.skipped, page.records.len()), (6, 5, 1));
        assert_eq!(page.next_cursor.as_deref(), Some("c"));
        assert_eq!(page.records[0].name(), "B");
    }

    #[test]
    fn what_is_no_page_says_what_it_is() {
        for (body, words) in [
            ("<html>", "HTML"),
            (r#"{"frames":[{"#, "cut off"),
            (r#"{"message":"x"}"#, "no list"),
            ("nonsense", "not JSON"),
        ] {
            let error = Page::parse(body.as_bytes(), Timestamp::UNIX_EPOCH).err().expect(body);
            assert!(error.message().contains(words), "{body}: {error}");
        }
    }

    #[test]
    fn the_first_of_two_rows_of_one_app_keeps_its_place() {
        let row = |url: &str, name: &str| format!(r#"{{"frames_url":"{url}","title":"{name}"}}"#);
        let rows = [
            row("https://A.example:443/#x", "first"),
            row("https://b.example", "b"),
            row("https://a.example/", "second"),
        ];
        let mut listing = Listing::default();
        listing.add(parse(&format!(r#"{{"frames":[{}],"next":{{"cursor":null}}}}"#, rows.join(","))));
        let names: Vec<_> = listing.records.iter().map(|record| record.name()).collect();
        assert_eq!((names, listing.duplicates), (vec!["first", "b"], 1));
    }
}
