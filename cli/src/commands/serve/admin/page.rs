//! The frame of a page, and the parts that pages are made of. Texts are escaped by `maud`.
//!
//! Invariant: a text of a user is shown by [`text`] or [`lines`], which also replace the characters that change the order of
//! what is read. Only the script and the style of the admin page have the nonce of the response.

use axum::{
    http::{
        HeaderName,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
};
use indicatif::HumanCount;
use maud::{DOCTYPE, Markup, html};
use townsquare::{Json, Timestamp, Uuid};

use super::{Admin, page_error::PageError, parameters::address};
use crate::{
    output::cut,
    printable::{is_unsafe, printable},
};

/// The rows of a page.
pub(super) const ROWS: u32 = 100;

/// The most rows that a search reads, and how many at a time.
pub(super) const MOST_SEARCHED: u32 = 100_000;
const SEARCHED_PAGE: u32 = 1_000;

/// The most characters of a text in a table.
const CELL: usize = 200;

/// The most characters of a JSON value before it is opened, and after.
const SHORT_JSON: usize = 60;
const MOST_JSON: usize = 8_192;

/// The pages that the navigation lists: name and path.
const SECTIONS: [(&str, &str); 9] = [
    ("Overview", ""),
    ("Users", "/users"),
    ("Spaces", "/spaces"),
    ("Files", "/files"),
    ("Communities", "/communities"),
    ("Changes", "/changes"),
    ("Catalog", "/catalog"),
    ("Check", "/check"),
    ("Metrics", "/metrics"),
];

/// A page without its frame.
pub(super) struct Page {
    /// The section of the navigation that the page is in.
    pub(super) section: &'static str,
    pub(super) title: String,
    pub(super) body: Markup,
    /// The seconds after which the script loads the page again.
    pub(super) refresh: Option<u32>,
}

/// The page that says why there is none.
pub(super) fn respond_error(error: &PageError, admin: &Admin) -> Response {
    let body = html! { p { (lines(&error.sentence)) } };
    let mut response = Page::new("", error.status.to_string(), body).respond(admin);
    *response.status_mut() = error.status;
    response
}

impl Page {
    pub(super) fn new(section: &'static str, title: impl Into<String>, body: Markup) -> Page {
        Page { section, title: title.into(), body, refresh: None }
    }

    pub(super) fn refreshed(self, seconds: u32) -> Page {
        Page { refresh: Some(seconds), ..self }
    }

    pub(super) fn respond(self, admin: &Admin) -> Response {
        let nonce = Uuid::new_v4().simple().to_string();
        // A nonce instead of 'self': the server's own /files has scripts of users.
        let policy = format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'; \
             form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        );
        let headers: [(HeaderName, String); 2] =
            [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, policy)];
        (headers, self.in_frame(admin, &nonce).into_string()).into_response()
    }

    fn in_frame(&self, admin: &Admin, nonce: &str) -> Markup {
        let base = &admin.base;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (printable(&self.title)) " · townsquare" }
                    link rel="icon" type="image/svg+xml" href={ (base.strip_suffix(super::PATH).unwrap_or(base)) "/directory/icon.svg" };
                    link rel="stylesheet" href={ (base) "/page.css" } nonce=(nonce);
                    script src={ (base) "/page.js" } nonce=(nonce) defer {}
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    header {
                        strong { "townsquare" }
                        nav aria-label="Pages" {
                            @for (name, path) in SECTIONS {
                                a href={ (base) (path) } aria-current=[(name == self.section).then_some("page")] { (name) }
                            }
                        }
                    }
                    main #main data-refresh=[self.refresh] {
                        h1 { (text(&self.title)) }
                        (self.body)
                    }
                    footer { "Read-only. Times are in UTC." }
                }
            }
        }
    }
}

/// A text of a user in one line, cut if it is long.
pub(super) fn text(text: &str) -> String {
    cut(&printable(text), CELL)
}

/// A text of a user with its line breaks.
pub(super) fn lines(text: &str) -> String {
    let shown =
        |character| if !matches!(character, '\n' | '\t') && is_unsafe(character) { '\u{fffd}' } else { character };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// A time to the second.
pub(super) fn time(time: Timestamp) -> Markup {
    html! { time datetime=(time) { (time.strftime("%Y-%m-%d %H:%M:%S")) } }
}

/// A number with commas between thousands.
pub(super) fn number(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A value that may be missing.
pub(super) fn or_none<T>(value: Option<T>, shown: impl FnOnce(T) -> Markup) -> Markup {
    value.map_or_else(|| html! { span.none { "–" } }, shown)
}

/// A table. On a narrow window each cell has the name of its column before it.
pub(super) fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<Markup>>) -> Markup {
    let mut rows = rows.into_iter().peekable();
    html! {
        @if rows.peek().is_none() {
            p.none { "None." }
        } @else {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { @for row in rows { (table_row(columns, &row, None)) } }
            }
        }
    }
}

/// A row of a table with these columns.
pub(super) fn table_row(columns: &[&str], cells: &[Markup], class: Option<&str>) -> Markup {
    html! { tr class=[class] { @for (column, cell) in columns.iter().zip(cells) { td data-label=(column) { (cell) } } } }
}

/// Names and values.
pub(super) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! { dl { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } } }
}

/// The rows after `after`, and the key of the last of them if more rows follow. `read` returns the rows for a limit and the key of
/// the row before. It may return fewer than the limit though more follow, so that a second call asks for the row after the last.
pub(super) async fn read_rows<Row, Key: Copy, Rows: Future<Output = townsquare::Result<Vec<Row>>>>(
    after: Option<Key>,
    read: impl Fn(u32, Option<Key>) -> Rows,
    key: impl Fn(&Row) -> Key,
) -> townsquare::Result<(Vec<Row>, Option<Key>)> {
    let rows = read(ROWS, after).await?;
    let Some(last) = rows.last().map(key) else { return Ok((rows, None)) };
    let has_more = !read(1, Some(last)).await?.is_empty();
    Ok((rows, has_more.then_some(last)))
}

/// What a search has found.
#[derive(Debug)]
pub(super) struct Found<Row> {
    pub(super) rows: Vec<Row>,
    end: SearchEnd,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchEnd {
    /// All rows were read.
    All,
    /// [`ROWS`] rows match.
    Enough,
    /// So many rows were read.
    Read(u32),
}

/// Reads rows in the order of their keys until [`ROWS`] of them match, or `most` were read. `read` returns the rows for a limit and
/// the key of the row before.
pub(super) async fn search_rows<Row, Key: Copy, Rows: Future<Output = townsquare::Result<Vec<Row>>>>(
    most: u32,
    read: impl Fn(u32, Option<Key>) -> Rows,
    key: impl Fn(&Row) -> Key,
    is_match: impl Fn(&Row) -> bool,
) -> townsquare::Result<Found<Row>> {
    let (mut found, mut after, mut count) = (Vec::new(), None, 0);
    let end = loop {
        let rows = read(SEARCHED_PAGE, after).await?;
        let Some(last) = rows.last() else { break SearchEnd::All };
        after = Some(key(last));
        count += u32::try_from(rows.len()).unwrap_or(u32::MAX);
        found.extend(rows.into_iter().filter(&is_match));
        if found.len() >= ROWS as usize {
            break SearchEnd::Enough;
        }
        if count >= most {
            break SearchEnd::Read(count);
        }
    };
    found.truncate(ROWS as usize);
    Ok(Found { rows: found, end })
}

impl<Row> Found<Row> {
    /// Says which rows the search has left out. `other_way` finds one of them.
    pub(super) fn note(&self, other_way: &str) -> Markup {
        html! {
            @match self.end {
                SearchEnd::All => {}
                SearchEnd::Enough => p { "The first " (ROWS) " that match. A longer part finds fewer." }
                SearchEnd::Read(count) => p { "Among the first " (number(count.into())) " by id. " (other_way) " finds the others." }
            }
        }
    }
}

/// Whether a text has another one in it. `part` is in lower case.
pub(super) fn contains_in_any_case(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(part)
}

/// The form that looks for rows. `wanted` is what it looked for.
pub(super) fn find_form(action: &str, label: &str, wanted: &str) -> Markup {
    html! {
        form action=(action) method="get" {
            label { (label) " " input type="search" name="find" value=(wanted) required autocomplete="off"; }
            button { "Find" }
        }
    }
}

/// The link to the owner of a row.
pub(super) fn owner_link(admin: &Admin, owner: Option<Uuid>) -> Markup {
    or_none(owner, |owner| html! { a href=(admin.at(&format!("/users/{owner}"), &[])) { code { (owner) } } })
}

/// The link to the page after this one.
pub(super) fn next_link(path: &str, parameters: &[(&str, &str)]) -> Markup {
    html! { p { a href=(address(path, parameters)) rel="next" { "Next page" } } }
}

/// A JSON value: a short one in a line, a long one to be opened.
pub(super) fn json(value: &Json) -> Markup {
    let line = value.to_string();
    html! {
        @if line.len() <= SHORT_JSON {
            code { (text(&line)) }
        } @else {
            details {
                summary { code { (cut(&printable(&line), SHORT_JSON)) } }
                pre tabindex="0" { (cut(&lines(&format!("{value:#}")), MOST_JSON)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::block_on;

    #[test]
    fn numbers_have_commas() {
        for (value, shown) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(value), shown);
        }
    }

    #[test]
    fn a_search_ends_with_the_rows_the_matches_or_the_limit() {
        let read = |limit: u32, after: Option<u32>| async move {
            let first = after.map_or(0, |after| after + 1);
            Ok((first..(first + limit).min(5_500)).collect::<Vec<_>>())
        };
        let search = |most, wanted: fn(&u32) -> bool| {
            let found = block_on(search_rows(most, read, |row| *row, wanted)).map_err(|failure| failure.sentence);
            found.expect("a runtime").expect("the rows are read")
        };
        let found = search(MOST_SEARCHED, |row| *row == 5_499);
        assert_eq!((found.rows.as_slice(), found.end), (&[5_499][..], SearchEnd::All));
        assert_eq!(found.note("").into_string(), "");
        let found = search(MOST_SEARCHED, |_| true);
        assert_eq!((found.rows.len(), found.end), (ROWS as usize, SearchEnd::Enough));
        let found = search(2_000, |row| *row == 5_499);
        assert_eq!((found.rows.len(), found.end), (0, SearchEnd::Read(2_000)));
        assert_eq!(found.note("The id").into_string(), "<p>Among the first 2,000 by id. The id finds the others.</p>");
    }

    #[test]
    fn texts_have_no_controls() {
        assert_eq!(text("a\nb\u{202e}c\u{1b}"), "a b\u{fffd}c\u{fffd}");
        assert_eq!(lines("a\r\n\tb\u{202e}c\0"), "a\n\tb\u{fffd}c\u{fffd}");
        assert_eq!(text(&"x".repeat(1_000)).chars().count(), CELL);
    }
}
