//! `stats`: the state of the catalog and of the change feed.

use std::{thread, time::Duration};

use clap::Args;
use serde_json::{Value, json};
use townsquare::{
    blocking::Client,
    discovery::{DiscoveryStats, Timeframe},
    realtime::RealtimeStats,
};

use crate::{context::Context, failure::Failure, settings::IfMissing};

/// Show the state of the catalog and of the change feed. JSON: `catalog`, `feed`; a line each time with --watch.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Show it again and again, until the command is interrupted.
    #[arg(long)]
    watch: bool,
    /// Seconds between updates.
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    context.with_client(IfMissing::FailReadOnly, |client| {
        // The first read loads the catalog. Its failure is the last error of the stats.
        let _ = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1);
        if !arguments.watch {
            return show(client, context, false);
        }
        loop {
            show(client, context, true)?;
            thread::sleep(Duration::from_secs(arguments.every));
        }
    })
}

fn show(client: &Client, context: &Context, is_repeated: bool) -> Result<(), Failure> {
    let (catalog, feed) = (client.discovery().stats()?, client.realtime().stats()?);
    let output = &context.output;
    if output.is_json {
        let value = json!({ "catalog": catalog_json(&catalog), "feed": feed });
        return if is_repeated { output.json_line(&value) } else { output.json(&value) };
    }
    if is_repeated && output.width.is_some() {
        // Clears the screen.
        output.text("\u{1b}[H\u{1b}[2J")?;
    }
    write_catalog(&catalog, context)?;
    write_feed(&feed, context)?;
    output.flush()
}

/// The state of the catalog as JSON.
pub(crate) fn catalog_json(stats: &DiscoveryStats) -> Value {
    json!({
        "total": stats.total,
        "received": stats.received,
        "skipped": stats.skipped,
        "duplicates": stats.duplicates,
        "has_api_key": stats.has_api_key,
        "source": stats.source.as_str(),
        "fetched_at": stats.fetched_at.map(|time| time.to_string()),
        "is_stale": stats.is_stale,
        "is_refreshing": stats.is_refreshing,
        "last_error": stats.last_error,
        "stale_lists": stats.stale_lists,
        "truncated": stats.truncated,
    })
}

/// Writes the state of the catalog as a table.
pub(crate) fn write_catalog(stats: &DiscoveryStats, context: &Context) -> Result<(), Failure> {
    let age = if stats.is_stale { " (stale)" } else { "" };
    let fetched = stats.fetched_at.map_or_else(|| "never".to_owned(), |time| format!("{time:.0}{age}"));
    let rows = [
        ("apps", stats.total.to_string()),
        ("rows left out", stats.skipped.to_string()),
        ("source", stats.source.as_str().to_owned()),
        ("fetched", fetched),
        ("last error", stats.last_error.clone().unwrap_or_else(|| "-".to_owned())),
    ];
    context.output.table(&["catalog", ""], &rows.map(|(name, value)| vec![name.to_owned(), value]))
}

fn write_feed(stats: &RealtimeStats, context: &Context) -> Result<(), Failure> {
    let rows = [
        ("changes kept", stats.retained.to_string()),
        ("oldest", stats.oldest.map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"))),
        ("lag", format!("{:.1} s", stats.lag_seconds)),
    ];
    context.output.line("")?;
    context.output.table(&["change feed", ""], &rows.map(|(name, value)| vec![name.to_owned(), value]))
}
