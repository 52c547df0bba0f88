//! The mini app catalog as plain data: records, word lists, the page parser, the search index and the snapshot that
//! answers from them. No I/O and no async code; `discovery` fetches, caches and stores what is defined here.

mod catalog_data;
mod mini_app;
mod page;
mod search;
mod selection;
mod snapshot;
mod taxonomy;

use self::mini_app::{Fields, Publisher};
pub(crate) use self::{
    catalog_data::{CatalogData, Header, View},
    page::Listing,
    snapshot::{Filter, Snapshot},
    taxonomy::known_network,
};
pub use self::{
    mini_app::{Author, CatalogSource, DiscoveryStats, Engagement, MiniApp, MiniAppRecord, MiniApps, Texts, Timeframe},
    selection::Selection,
    taxonomy::CATEGORIES,
};
