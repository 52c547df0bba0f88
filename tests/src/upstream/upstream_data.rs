//! The rows of the fake upstream, and its pages by window, category and network (UPSTREAM 1).

use std::sync::Arc;

use super::{KEY, Request};
use crate::catalog::Row;

/// The path of the catalog.
pub const PATH: &str = "/v2/farcaster/frame/catalog/";

/// The time windows of the upstream.
pub const WINDOWS: [&str; 5] = ["1h", "6h", "12h", "24h", "7d"];

/// The categories of the upstream.
pub const CATEGORIES: [&str; 13] = [
    "games",
    "social",
    "finance",
    "utility",
    "productivity",
    "health-fitness",
    "news-media",
    "music",
    "shopping",
    "education",
    "developer-tools",
    "entertainment",
    "art-creativity",
];

/// The networks of the upstream; hyperevm is not among them.
pub const NETWORKS: [&str; 16] = [
    "ethereum",
    "base",
    "arbitrum",
    "arbitrum-sepolia",
    "base-sepolia",
    "degen",
    "gnosis",
    "optimism",
    "optimism-sepolia",
    "polygon",
    "ethereum-sepolia",
    "zora",
    "unichain",
    "monad-testnet",
    "celo",
    "solana",
];

/// The rows of a catalog, in the order of the 24h window.
pub struct UpstreamData {
    rows: Vec<Arc<Row>>,
}

/// Status and body of a reply.
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) body: String,
}

impl UpstreamData {
    pub(super) fn of(rows: impl IntoIterator<Item = Row>) -> UpstreamData {
        UpstreamData { rows: rows.into_iter().map(Arc::new).collect() }
    }

    /// Returns the rows that pass these filters, in the window's order.
    pub fn list(&self, window: &str, categories: &[&str], networks: &[&str]) -> Vec<Arc<Row>> {
        let mut rows = in_order_of(window, self.rows.clone());
        rows.retain(|row| {
            categories.is_empty() || categories.iter().any(|name| row.category.as_deref() == Some(*name))
        });
        rows.retain(|row| {
            networks.is_empty()
                || row.networks.is_empty()
                || networks.iter().any(|name| row.networks.iter().any(|network| network == name))
        });
        rows
    }

    pub(super) fn page(&self, request: &Request) -> Page {
        let error = |status: u16, message: &str| Page { status, body: format!(r#"{{"message":"{message}"}}"#) };
        if request.header("x-api-key") != Some(KEY) {
            return error(401, "Incorrect or missing API key");
        }
        if request.path != PATH || request.method != "GET" {
            return error(404, "Not found");
        }
        let (categories, networks) = (request.categories(), request.networks());
        let limit = request.limit();
        let known = WINDOWS.contains(&request.window())
            && categories.iter().all(|name| CATEGORIES.contains(name))
            && networks.iter().all(|name| NETWORKS.contains(name));
        let Some(offset) = request.offset().filter(|_| known && (1..=100).contains(&limit)) else {
            return Page {
                status: 400,
                body: r#"{"code":"InvalidField","message":"Invalid","property":"query","status":400}"#.into(),
            };
        };
        let rows = self.list(request.window(), &categories, &networks);
        let end = (offset + limit).min(rows.len());
        let next = if end < rows.len() { format!("\"{}\"", cursor_at(end)) } else { "null".into() };
        Page { status: 200, body: body(rows.get(offset..end).unwrap_or(&[]), &next) }
    }
}

/// Reorders items from the 24h order to the order of another window; each window has its own.
pub fn in_order_of<T>(window: &str, mut items: Vec<T>) -> Vec<T> {
    let (third, half) = (items.len() / 3, items.len() / 2);
    match window {
        "1h" => items.rotate_left(third),
        "6h" => items.rotate_right(third),
        "12h" => items.rotate_left(half),
        "7d" => items.reverse(),
        _ => {}
    }
    items
}

/// Returns a body of the upstream's format; `next` is the cursor as JSON.
pub(super) fn body(rows: &[Arc<Row>], next: &str) -> String {
    let rows: Vec<_> = rows.iter().map(|row| row.body.as_str()).collect();
    format!(r#"{{"frames":[{}],"next":{{"cursor":{next}}}}}"#, rows.join(","))
}

/// Returns the cursor of a row. It contains characters that a query must escape.
pub(super) fn cursor_at(offset: usize) -> String {
    format!("c+/=&%20é{offset}")
}

pub(super) fn offset_of(cursor: &str) -> Option<usize> {
    cursor.strip_prefix("c+/=&%20é")?.parse().ok()
}
