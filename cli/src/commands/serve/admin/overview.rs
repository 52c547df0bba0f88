//! The first page: how much there is, and how it is.

use maud::{Markup, html};
use townsquare::{check::Severity, storage::ListFiles};

use super::{
    Admin, check,
    page::{Page, facts, number, text, time},
    page_error::PageError,
};

/// The most rows of a kind that are counted. Counting reads whole rows, so that more would make the page slow.
const MOST_COUNTED: u32 = 1_000;

/// How many rows of a kind there are, up to [`MOST_COUNTED`].
struct Count(u32);

impl Count {
    /// Counts the rows that `page` returns for a limit and the key of the last row before. Only an empty page is the last one.
    async fn of<Row, Key, Rows: Future<Output = townsquare::Result<Vec<Row>>>>(
        mut page: impl FnMut(u32, Option<Key>) -> Rows,
        key: impl Fn(&Row) -> Key,
    ) -> townsquare::Result<Count> {
        let (mut count, mut after) = (0, None);
        while count < MOST_COUNTED {
            let rows = page(MOST_COUNTED - count, after).await?;
            let Some(last) = rows.last() else { break };
            after = Some(key(last));
            count += u32::try_from(rows.len()).unwrap_or(MOST_COUNTED);
        }
        Ok(Count(count))
    }

    fn shown(&self) -> String {
        if self.0 < MOST_COUNTED { number(self.0.into()) } else { format!("{} or more", number(MOST_COUNTED.into())) }
    }
}

pub(super) async fn page(admin: &Admin) -> Result<Page, PageError> {
    let client = &admin.client;
    let users = Count::of(|limit, after| client.auth().list_users(limit, after), |user| user.id).await?;
    let spaces = Count::of(|limit, after| client.spaces().list_spaces(limit, after), |space| space.id).await?;
    let mut files = Vec::new();
    for bucket in &admin.buckets {
        let page = |limit, after: Option<String>| {
            let page = ListFiles::new().limit(limit);
            client.storage().list(bucket, after.into_iter().fold(page, ListFiles::after))
        };
        files.push((bucket, Count::of(page, |file| file.path.clone()).await?.shown()));
    }
    let link = |path: &str, shown: &str| html! { a href=(admin.at(path, &[])) { (shown) } };
    let server = &admin.server;
    let body = html! {
        h2 { "Contents" }
        (facts(&[
            ("Users", link("/users", &users.shown())),
            ("Spaces", link("/spaces", &spaces.shown())),
            ("Files", html! {
                @for (bucket, count) in &files { span.item { (link(&format!("/files/{bucket}"), bucket)) " " (count) } " " }
            }),
        ]))
        h2 { "State" }
        (facts(&[
            ("Check", findings(admin).await),
            ("Change feed", feed(admin).await),
            ("Catalog", catalog(admin)?),
        ]))
        h2 { "Server" }
        (facts(&[
            ("Started", time(server.started)),
            ("Database", html! { (text(&server.database)) }),
            ("Large files", html! { (text(&server.store)) }),
            ("Data folder", html! { code { (text(&server.data_dir)) } }),
            ("Version", html! { (env!("CARGO_PKG_VERSION")) }),
        ]))
    };
    Ok(Page::new("Overview", "Overview", body))
}

/// The result of the last check in one line.
async fn findings(admin: &Admin) -> Markup {
    let state = check::current(admin).await;
    let link = admin.at("/check", &[]);
    let Some(last) = state.last else { return html! { a href=(link) { "a check runs" } } };
    match &last.findings {
        Err(error) => html! { span.error { "failed" } " " a href=(link) { (text(error)) } },
        Ok(findings) if findings.is_empty() => html! { span.good { "no findings" } ", at " (time(last.time)) },
        Ok(findings) => {
            let worst = findings.iter().map(townsquare::check::Finding::severity).min().unwrap_or(Severity::Note);
            let noun = if findings.len() == 1 { "finding" } else { "findings" };
            html! { a class=(worst.as_str()) href=(link) { (findings.len()) " " (noun) } ", at " (time(last.time)) }
        }
    }
}

/// The state of the change feed in one line.
async fn feed(admin: &Admin) -> Markup {
    let problem = admin.changes.problem();
    let stats = admin.client.realtime().stats().await;
    html! {
        @if let Some(problem) = problem { span.error { (text(&problem)) } ". " }
        @match stats {
            Ok(stats) => {
                a href=(admin.at("/changes", &[])) { "Changes since the start of the server" } ": " (number(admin.changes.last()))
                ". In the log: " (number(stats.retained)) ", lag " (format!("{:.1}", stats.lag_seconds)) " s"
            }
            Err(error) => span.error { (text(&error.to_string())) }
        }
    }
}

/// The state of the catalog in one line.
fn catalog(admin: &Admin) -> Result<Markup, PageError> {
    let stats = admin.client.discovery().stats()?;
    let link = admin.at("/catalog", &[]);
    Ok(html! {
        @match stats.fetched_at {
            Some(fetched) => { a href=(link) { (number(stats.total as u64)) " apps" } ", fetched at " (time(fetched)) }
            None => a href=(link) { (if stats.last_error.is_some() { "never read" } else { "not read yet" }) }
        }
        @if stats.is_stale && stats.fetched_at.is_some() { ", " span.warning { "stale" } }
        @if stats.last_error.is_some() { ", " span.error { "the last fetch failed" } }
    })
}
