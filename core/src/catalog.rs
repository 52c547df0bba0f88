//! The mini app catalog as plain data: records, word lists, the page parser, the search index and the snapshot.
//!
//! Invariant: no I/O and no async code. `upstream` fetches the pages that are parsed here; `discovery` caches and
//! stores the result.

mod catalog_data;
mod mini_app;
mod page;
mod search;
mod selection;
mod snapshot;
mod stats;
mod taxonomy;
mod timeframe;

pub(crate) use self::{
    catalog_data::{CatalogData, CatalogHeader, ListContent, ListKey},
    page::{FetchedList, MalformedPage, app_id},
    snapshot::{FacetedList, ListOrder, Snapshot},
    taxonomy::{canonical_category, canonical_network},
};
pub use self::{
    mini_app::{Author, Engagement, MiniApp, MiniAppRecord, MiniApps, Texts},
    search::Highlight,
    selection::Selection,
    snapshot::{Facet, Suggestion},
    stats::{CatalogSource, DiscoveryStats},
    taxonomy::CATEGORIES,
    timeframe::Timeframe,
};
