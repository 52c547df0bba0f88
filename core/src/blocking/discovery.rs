//! The mini app directory without async.

use super::wait;
use crate::{
    callbacks::Subscription,
    discovery::{DiscoveryStats, Facet, HttpResponse, MiniApp, MiniApps, Selection, Suggestion, Timeframe},
    error::Result,
};

// For the links of the documentation.
#[cfg(doc)]
use crate::discovery::MiniAppRecord;

area! { Discovery:
    get_trending_mini_apps(timeframe: Timeframe, selection: impl Into<Selection>) -> MiniApps;
    get_mini_apps_by_category(
        categories: impl IntoIterator<Item = impl Into<String>>, selection: impl Into<Selection>
    ) -> MiniApps;
    search_mini_apps(query: &str, selection: impl Into<Selection>) -> MiniApps;
    get_new_mini_apps(selection: impl Into<Selection>) -> MiniApps;
    get_similar_mini_apps(id: &str, limit: u32) -> MiniApps;
    get_mini_app(id: &str) -> Option<MiniApp>;
    suggest_mini_apps(text: &str, limit: u32) -> Vec<Suggestion>;
    categories(selection: impl Into<Selection>) -> Vec<Facet>;
    networks(selection: impl Into<Selection>) -> Vec<Facet>;
    refresh() -> DiscoveryStats;
    force_refresh() -> DiscoveryStats;
    handle(method: &str, target: &str, body: &[u8], headers: &[(String, String)]) -> HttpResponse;
}

impl Discovery<'_> {
    #[doc = text_of!(Discovery.stats)]
    pub fn stats(&self) -> Result<DiscoveryStats> {
        self.0.stats()
    }

    #[doc = text_of!(Discovery.on_catalog_change)]
    pub fn on_catalog_change(&self, callback: impl FnMut(DiscoveryStats) + Send + 'static) -> Subscription {
        self.0.on_catalog_change(callback)
    }
}
