//! The state of the catalog.

use maud::html;

use super::{
    Admin,
    page::{Page, facts, lines, number, or_none, text, time},
    page_error::PageError,
};

pub(super) fn page(admin: &Admin) -> Result<Page, PageError> {
    let stats = admin.client.discovery().stats()?;
    let count = |count: usize| html! { (number(count as u64)) };
    let yes_or_no = |is_true: bool| html! { (if is_true { "yes" } else { "no" }) };
    let mut shown = Vec::new();
    // These are unknown until the catalog was read once.
    if stats.fetched_at.is_some() {
        shown.extend([
            ("Apps", count(stats.total)),
            ("Source", html! { (stats.source.as_str()) }),
            ("Fetched", or_none(stats.fetched_at, time)),
            ("Stale", html! { @if stats.is_stale { span.warning { "yes" } } @else { "no" } }),
            (
                "Stale lists",
                html! {
                    @if stats.stale_lists.is_empty() { span.none { "–" } }
                    @for list in &stats.stale_lists { span.item { (text(list)) } " " }
                },
            ),
            ("Received", count(stats.received)),
            ("Skipped", count(stats.skipped)),
            ("Duplicates", count(stats.duplicates)),
            ("Truncated", yes_or_no(stats.truncated)),
        ]);
    }
    shown.extend([
        ("Fetch runs", yes_or_no(stats.is_refreshing)),
        ("Last error", or_none(stats.last_error.as_deref(), |error| html! { span.error { (lines(error)) } })),
        ("Upstream key", html! { (if stats.has_api_key { "set" } else { "not set" }) }),
    ]);
    let body = html! {
        @if stats.fetched_at.is_none() && stats.last_error.is_none() && !stats.is_refreshing { p { "No program has read the catalog since the server started. The first read fetches it." } }
        (facts(&shown))
    };
    Ok(Page::new("Catalog", "Catalog", body).refreshed(5))
}
