//! What the honest upstream answers: rows by window, category and network, page by page (UPSTREAM 1).

use std::sync::Arc;

use super::{KEY, Request};
use crate::catalog::Row;

/// The path that upstream serves.
pub const PATH: &str = "/v2/farcaster/frame/catalog/";

/// The windows that upstream knows.
pub const WINDOWS: [&str; 5] = ["1h", "6h", "12h", "24h", "7d"];

/// The categories that upstream knows.
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

/// The networks that upstream knows; hyperevm is not among them.
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
pub struct Shelf {
    rows: Vec<Arc<Row>>,
}

/// Status and body.
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) body: String,
}

impl Shelf {
    pub(super) fn of(rows: impl IntoIterator<Item = Row>) -> Shelf {
        Shelf { rows: rows.into_iter().map(Arc::new).collect() }
    }

    /// The rows that a request of these filters lists, in the window's order.
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

    pub(super) fn answer(&self, request: &Request) -> Page {
        let refuse = |status: u16, message: &str| Page { status, body: format!(r#"{{"message":"{message}"}}"#) };
        if request.header("x-api-key") != Some(KEY) {
            return refuse(401, "Incorrect or missing API key");
        }
        if request.path != PATH || request.method != "GET" {
            return refuse(404, "Not found");
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

/// Things that are in the order of 24h, in the order of another window: each window has one of its own.
pub fn in_order_of<T>(window: &str, mut things: Vec<T>) -> Vec<T> {
    let (third, half) = (things.len() / 3, things.len() / 2);
    match window {
        "1h" => things.rotate_left(third),
        "6h" => things.rotate_right(third),
        "12h" => things.rotate_left(half),
        "7d" => things.reverse(),
        _ => {}
    }
    things
}

/// A body of the upstream's shape; `next` is the cursor as JSON.
pub(super) fn body(rows: &[Arc<Row>], next: &str) -> String {
    let rows: Vec<_> = rows.iter().map(|row| row.body.as_str()).collect();
    format!(r#"{{"frames":[{}],"next":{{"cursor":{next}}}}}"#, rows.join(","))
}

/// Opaque, and full of what a query must escape.
pub(super) fn cursor_at(offset: usize) -> String {
    format!("c+/=&%20é{offset}")
}

pub(super) fn offset_of(cursor: &str) -> Option<usize> {
    cursor.strip_prefix("c+/=&%20é")?.parse().ok()
}
