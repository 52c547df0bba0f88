//! The last changes as a list, and the changes to come as server-sent events.

use std::{collections::VecDeque, convert::Infallible, sync::Arc};

use axum::{
    http::HeaderMap,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream::unfold};
use maud::{Markup, html};

use super::{
    Admin,
    page::{Page, number, table_row, text, time},
    parameters::Parameters,
    recent_changes::{Entry, MOST_CHANGES, TABLES},
};
use crate::{commands::serve::end_stream, output::cut};

/// The most characters of a row before it is opened.
const SUMMARY: usize = 60;

const COLUMNS: [&str; 5] = ["Committed", "Event", "Table", "Key", "Row"];

pub(super) fn list(admin: &Admin, query: &Parameters) -> Page {
    // Without a table the list has the changes of all.
    let (table, last) = (query.get("table"), admin.changes.last());
    let entries = admin.changes.after(0);
    let shown: Vec<_> = entries.iter().rev().filter(|entry| is_of_table(entry, table)).collect();
    let is_empty = shown.is_empty();
    let last = last.to_string();
    let mut parameters = vec![("after", last.as_str())];
    parameters.extend(table.map(|table| ("table", table)));
    let body = html! {
        @if let Some(problem) = admin.changes.problem() { p.error { (text(&problem)) } }
        p.filter {
            "Table: "
            a href=(admin.at("/changes", &[])) aria-current=[table.is_none().then_some("true")] { "all" }
            @for name in TABLES {
                @let is_current = (table == Some(name)).then_some("true");
                " " a href=(admin.at("/changes", &[("table", name)])) aria-current=[is_current] { (name) }
            }
        }
        p {
            span #live role="status" { "The changes of this run of the server up to now. Reload the page for later ones." }
            " The last " (number(MOST_CHANGES as u64)) " are kept."
        }
        table.changes {
            thead { tr { @for column in COLUMNS { th scope="col" { (column) } } } }
            tbody #changes data-stream=(admin.at("/changes/stream", &parameters)) data-most=(MOST_CHANGES) {
                @for entry in shown { (row(admin, entry, None)) }
                @if is_empty { tr.none { td colspan=(COLUMNS.len()) { "None yet." } } }
            }
        }
    };
    Page::new("Changes", "Changes", body)
}

fn is_of_table(entry: &Entry, table: Option<&str>) -> bool {
    table.is_none_or(|table| entry.table == table)
}

fn row(admin: &Admin, entry: &Entry, class: Option<&str>) -> Markup {
    let link = match (entry.table, entry.key.split_once('/')) {
        ("spaces", _) => Some(admin.at(&format!("/spaces/{}", entry.key), &[])),
        ("users", _) => Some(admin.at(&format!("/users/{}", entry.key), &[])),
        ("files", Some((bucket, path))) => Some(admin.at("/file", &[("bucket", bucket), ("path", path)])),
        _ => None,
    };
    let event = entry.event.as_str();
    let cells = [
        time(entry.committed),
        html! { span class=(event.to_lowercase()) { (event) } },
        html! { (entry.table) },
        html! {
            @if let Some(link) = link { a href=(link) { code { (text(&entry.key)) } } } @else { code { (text(&entry.key)) } }
        },
        html! { details { summary { code { (cut(&entry.row, SUMMARY)) } } pre tabindex="0" { (entry.row) } } },
    ];
    table_row(&COLUMNS, &cells, class)
}

/// The rows of the changes after a number as events. The id of an event is its number.
pub(super) fn stream(admin: &Arc<Admin>, query: &Parameters, headers: &HeaderMap) -> Response {
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = resumed.or(query.get("after")).and_then(|number| number.parse().ok()).unwrap_or_default();
    let events = events(Arc::clone(admin), after, query.get("table").map(str::to_owned));
    end_stream(Sse::new(events).keep_alive(KeepAlive::default()).into_response(), admin.is_ending.clone())
}

fn events(admin: Arc<Admin>, after: u64, table: Option<String>) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold((after, VecDeque::new()), move |(mut after, mut waiting): (u64, VecDeque<Arc<Entry>>)| {
        let (admin, table) = (Arc::clone(&admin), table.clone());
        async move {
            loop {
                if let Some(entry) = waiting.pop_front() {
                    let html = row(&admin, &entry, Some("new")).into_string();
                    return Some((
                        Ok(Event::default().event("change").id(entry.number.to_string()).data(html)),
                        (after, waiting),
                    ));
                }
                admin.changes.wait_for_more(after).await;
                let entries = admin.changes.after(after);
                after = entries.last().map_or(after, |entry| entry.number);
                waiting.extend(entries.into_iter().filter(|entry| is_of_table(entry, table.as_deref())));
            }
        }
    })
}
