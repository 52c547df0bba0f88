//! What the discovery endpoint serves: its routes, its options, and the catalogs that requests see.

use std::{sync::Arc, time::Duration};

use super::{Discovery, DiscoveryStats, Selection};
use crate::{
    catalog::{Snapshot, Timeframe},
    error::Result,
};

/// The path of the endpoint.
///
/// ```
/// assert_eq!(townsquare::discovery::ENDPOINT_PATH, "/api/miniapp-discovery");
/// ```
pub const ENDPOINT_PATH: &str = "/api/miniapp-discovery";

/// What callers over HTTP may do.
#[derive(Debug, Clone)]
pub(crate) struct EndpointOptions {
    /// Whether they may refresh the catalog.
    pub(crate) can_refresh: bool,
    /// The age of the catalog below which their refresh fetches nothing.
    pub(crate) min_refresh_age: Duration,
    /// Whether they may have further lists fetched that the program has not read.
    pub(crate) can_fetch_lists: bool,
    /// Pages of these origins may call the endpoint. In lower case; `*` stands for all.
    pub(crate) allowed_origins: Arc<[String]>,
}

/// One catalog with its state, for a response.
pub(crate) struct RequestedCatalog {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) stats: DiscoveryStats,
    pub(crate) age: Duration,
    /// How long the catalog is fresh.
    pub(crate) remaining_freshness: Duration,
}

crate::model::named! {
    /// A route of the discovery endpoint, for a server that mounts only some of them.
    ///
    /// ```
    /// use townsquare::discovery::EndpointRoute;
    ///
    /// assert_eq!(EndpointRoute::Suggest.path(), "/api/miniapp-discovery/suggest");
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum EndpointRoute {
        /// Lists, and the actions of POST.
        List = "/api/miniapp-discovery",
        /// One app.
        App = "/api/miniapp-discovery/apps/{id}",
        /// The categories with their numbers of apps.
        Categories = "/api/miniapp-discovery/categories",
        /// The networks with their numbers of apps.
        Networks = "/api/miniapp-discovery/networks",
        /// Suggestions for a search box.
        Suggest = "/api/miniapp-discovery/suggest",
        /// The OpenAPI document of all routes.
        OpenApi = "/api/miniapp-discovery/openapi.json",
    }

    /// Every route.
    pub const ALL;

    /// The path of the route. `{id}` stands for the rest of a path.
    ///
    /// ```
    /// use townsquare::discovery::EndpointRoute;
    ///
    /// assert_eq!(EndpointRoute::App.path(), "/api/miniapp-discovery/apps/{id}");
    /// ```
    pub fn path;
}

impl EndpointRoute {
    /// The path below the endpoint's, without slashes at its ends.
    pub(crate) fn below_endpoint(self) -> &'static str {
        self.path().strip_prefix(ENDPOINT_PATH).unwrap_or_default().trim_start_matches('/')
    }
}

impl Discovery {
    /// The same directory for requests: they cost at most the fetches that the options allow.
    pub(crate) fn for_requests(&self) -> Discovery {
        Discovery { is_for_requests: true, ..self.clone() }
    }

    /// Returns the catalog for a request.
    pub(crate) async fn requested_catalog(
        &self,
        timeframe: Timeframe,
        selection: &Selection,
    ) -> Result<RequestedCatalog> {
        let catalog = self.catalog_for(timeframe, selection).await?;
        Ok(RequestedCatalog {
            snapshot: Arc::clone(&catalog.snapshot),
            stats: self.refresher.stats_of(Some(&catalog)),
            age: catalog.age(self.refresher.moment()),
            remaining_freshness: self.refresher.remaining_freshness(&catalog),
        })
    }

    /// Refreshes a catalog that is old enough.
    pub(crate) async fn refresh_for_request(&self) -> Result<()> {
        self.refresher.refresh_older_than(self.endpoint.min_refresh_age).await
    }

    /// A message for callers over HTTP: without a path of the host.
    pub(crate) fn public_message(&self, message: &str) -> String {
        self.refresher.public_message(message)
    }

    /// When a request may try again, if the last fetch failed.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.refresher.retry_after()
    }
}
