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
use serde_json::{error::Category, value::RawValue};

use self::lenient::{Object, Scalar};
use crate::{
    catalog::MiniAppRecord,
    error::{Error, Result},
};

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

impl<'a> Body<'a> {
    fn read(text: &'a str) -> Result<Body<'a>> {
        serde_json::from_str(text).map_err(|error| {
            let html = text.trim_start().starts_with('<');
            Error::unavailable(match (html, error.classify()) {
                (true, _) => "The catalog answered with HTML instead of JSON",
                (_, Category::Eof) => "The catalog's answer is cut off",
                (_, Category::Data) => "The catalog's answer has no list of frames",
                _ => "The catalog's answer is not JSON",
            })
        })
    }
}

/// The pages of one list put together: every app once, in the order of its first row.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) records: Vec<MiniAppRecord>,
    /// Rows the pages held.
    pub(crate) received: usize,
    /// Rows of those without a record: malformed or marked `noindex`.
    pub(crate) skipped: usize,
    pub(crate) duplicates: usize,
    /// Whether any row says which chains it needs.
    pub(crate) has_chains: bool,
    seen: HashSet<ById>,
    earlier: HashSet<ById>,
}

impl Listing {
    /// A list that shares with the records of an earlier one what has not changed since.
    pub(crate) fn after(earlier: &[MiniAppRecord]) -> Listing {
        Listing { earlier: earlier.iter().cloned().map(ById).collect(), ..Listing::default() }
    }

    /// Appends a page that was fetched at `fetched_at`; returns where the next one starts. Pages overlap, so repeated
    /// rows are counted and dropped.
    ///
    /// # Errors
    /// `Unavailable` when the body is not JSON or holds no list `frames`.
    pub(crate) fn add(&mut self, body: &[u8], fetched_at: Timestamp) -> Result<Option<String>> {
        let text = String::from_utf8_lossy(body);
        let Body { frames, next } = Body::read(&text)?;
        self.received += frames.len();
        for frame in frames {
            match row::read(frame.get(), fetched_at) {
                Some(read) => {
                    self.has_chains |= read.has_chains;
                    self.add_record(read.record);
                }
                None => self.skipped += 1,
            }
        }
        let cursor = next.0.and_then(|next| next.cursor.into_text());
        Ok(cursor.filter(|cursor| !cursor.is_empty()).map(Into::into))
    }

    fn add_record(&mut self, mut record: MiniAppRecord) {
        if self.seen.contains(record.id()) {
            self.duplicates += 1;
            return;
        }
        if let Some(ById(earlier)) = self.earlier.get(record.id()) {
            record.share(earlier);
        }
        self.seen.insert(ById(record.clone()));
        self.records.push(record);
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

    fn listing(body: &str) -> (Listing, Option<String>) {
        let mut listing = Listing::default();
        let next = listing.add(body.as_bytes(), Timestamp::UNIX_EPOCH).expect("a page");
        (listing, next)
    }

    #[test]
    fn a_bad_row_costs_only_itself() {
        let (listing, next) = listing(
            r#"{"frames":[1,null,["a"],{"frames_url":"ftp://x"},{"title":"\ud800","frames_url":"https://a.example"},
                {"frames_url":"https://b.example","title":"B"}],"next":{"cursor":"c"}}"#,
        );
        assert_eq!((listing.received, listing.skipped, listing.records.len()), (6, 5, 1));
        assert_eq!(next.as_deref(), Some("c"));
        assert_eq!(listing.records[0].name(), "B");
    }

    #[test]
    fn what_is_no_page_says_what_it_is() {
        for (body, words) in [
            ("<html>", "HTML"),
            (r#"{"frames":[{"#, "cut off"),
            (r#"{"message":"x"}"#, "no list"),
            ("nonsense", "not JSON"),
        ] {
            let error = Listing::default().add(body.as_bytes(), Timestamp::UNIX_EPOCH).expect_err(body);
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
        let (listing, _) = listing(&format!(r#"{{"frames":[{}],"next":{{"cursor":null}}}}"#, rows.join(",")));
        let names: Vec<_> = listing.records.iter().map(MiniAppRecord::name).collect();
        assert_eq!((names, listing.duplicates), (vec!["first", "b"], 1));
    }

    #[test]
    fn what_has_not_changed_is_shared_with_the_earlier_list() {
        let row = |url: &str, name: &str| format!(r#"{{"frames_url":"https://{url}","title":"{name}"}}"#);
        let page = |rows: [String; 2]| format!(r#"{{"frames":[{}]}}"#, rows.join(","));
        let (earlier, _) = listing(&page([row("a.example", "a"), row("b.example", "b")]));
        let mut listing = Listing::after(&earlier.records);
        let later = Timestamp::from_second(60).expect("a time");
        listing.add(page([row("b.example", "b"), row("a.example", "new")]).as_bytes(), later).expect("a page");
        let names = |listing: &Listing| listing.records.iter().map(|record| record.name().as_ptr()).collect::<Vec<_>>();
        assert_eq!(names(&listing)[0], names(&earlier)[1]);
        assert_eq!((listing.records[1].name(), listing.records[0].last_fetched()), ("new", later));
    }
}
