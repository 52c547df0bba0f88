//! Discovery: the mini app directory, answered from memory (SPEC 4.1, 4.2; DESIGN 6).
//!
//! Invariant: a read waits only when there is nothing at all to answer from; everything else is served from the
//! snapshot in memory while a refresh, at most one at a time, goes on behind it. What was good is kept until
//! something as good replaces it, and [`Discovery::stats`] says so.

mod endpoint;
mod refresh;
mod store;

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;

#[cfg(feature = "http")]
pub(crate) use self::endpoint::MAX_BODY;
pub use self::endpoint::{ENDPOINT_PATH, HttpResponse};
use self::refresh::Catalog;
pub use crate::catalog::{
    Author, CATEGORIES, CatalogSource, DiscoveryStats, Engagement, MiniApp, MiniAppRecord, MiniApps, Selection, Texts,
    Timeframe,
};
use crate::{
    catalog::{Filter, Snapshot},
    clock::Clock,
    database::Scope,
    error::{Operation, Result, WithOperation},
    upstream::Upstream,
    validate,
};

/// The mini app directory of a client.
///
/// One catalog, fetched from the upstream (or a `file:` catalog), kept in memory for 15 minutes, and in the database
/// for the day the upstream does not answer. Without an upstream key every result is empty (SPEC 1.5).
#[derive(Clone)]
pub struct Discovery {
    catalog: Arc<Catalog>,
}

impl Discovery {
    pub(crate) fn new(
        upstream: Upstream,
        interval: Duration,
        lease: Duration,
        database: Scope,
        clock: Clock,
        runtime: Handle,
    ) -> Discovery {
        Discovery { catalog: Catalog::new(upstream, interval, lease, database, clock, runtime) }
    }

    /// The mini apps that trend in a timeframe, best first (SPEC 4.2).
    ///
    /// Categories and networks of the selection combine with the order and with each other. Each app's
    /// `trending_rank` is its place in that timeframe's whole order. A timeframe that was never asked for is fetched
    /// first; when that fails, the answer is in the default order.
    ///
    /// # Errors
    /// `InvalidInput` for a limit that is not 1 to 1,000, or a category or network that neither the known lists nor
    /// any app has; `Unavailable` when there is no catalog to answer from.
    pub async fn get_trending_mini_apps(
        &self,
        timeframe: Timeframe,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        let selection = selection.into();
        self.select(timeframe, &selection, |catalog, filter, limit| catalog.list(timeframe, filter, limit))
            .await
            .with_operation(Operation::GetTrendingMiniApps)
    }

    /// The mini apps of any of these categories, in the trending order of the default timeframe (SPEC 4.2).
    ///
    /// The selection's own categories join `categories`; no category at all is no restriction.
    ///
    /// # Errors
    /// As [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn get_mini_apps_by_category<S: Into<String>>(
        &self,
        categories: impl IntoIterator<Item = S>,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        let selection = selection.into().in_categories(categories);
        let timeframe = Timeframe::default();
        self.select(timeframe, &selection, |catalog, filter, limit| catalog.list(timeframe, filter, limit))
            .await
            .with_operation(Operation::GetMiniAppsByCategory)
    }

    /// The mini apps that match a query, best first (SPEC 4.2).
    ///
    /// Case and accents do not count; the last word may be a beginning; a typo is forgiven from five letters on; words
    /// count in any order, and in a name more than in a tag, a tagline, an author or a description. Ties fall to
    /// what trends. A blank query has no matches.
    ///
    /// # Errors
    /// As [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn search_mini_apps(&self, query: &str, selection: impl Into<Selection>) -> Result<MiniApps> {
        let selection = selection.into();
        self.select(Timeframe::default(), &selection, |catalog, filter, limit| catalog.search(query, filter, limit))
            .await
            .with_operation(Operation::SearchMiniApps)
    }

    /// Fetches the catalog now, whatever its age, and returns the stats afterwards (SPEC 1.4).
    ///
    /// Readers go on with the old one meanwhile; calls at the same time share one fetch.
    ///
    /// # Errors
    /// `Unavailable` saying why there is no new catalog: the upstream failed, or its answer has lost most of the
    /// apps. The old one stays. Without a key nothing is fetched and nothing fails.
    pub async fn refresh(&self) -> Result<DiscoveryStats> {
        self.catalog.refresh(false).await.with_operation(Operation::RefreshMiniApps)?;
        self.stats()
    }

    /// [`refresh`](Discovery::refresh) that takes even a catalog which has lost most of its apps.
    ///
    /// # Errors
    /// As [`refresh`](Discovery::refresh), but for that.
    pub async fn force_refresh(&self) -> Result<DiscoveryStats> {
        self.catalog.refresh(true).await.with_operation(Operation::RefreshMiniApps)?;
        self.stats()
    }

    /// What the catalog holds, how old it is and why it is no newer. Starts nothing and waits for nothing.
    ///
    /// # Errors
    /// `Closed` after the client was closed.
    pub fn stats(&self) -> Result<DiscoveryStats> {
        self.catalog.stats()
    }

    /// Answers with whatever catalog serves `timeframe` and `selection`.
    async fn select(
        &self,
        timeframe: Timeframe,
        selection: &Selection,
        answer: impl FnOnce(&Snapshot, &Filter, usize) -> MiniApps,
    ) -> Result<MiniApps> {
        let limit = validate::limit(selection.limit)? as usize;
        let current = self.catalog.serving(timeframe, selection).await?;
        let filter = current.snapshot.filter(selection)?;
        Ok(answer(&current.snapshot, &filter, limit))
    }

    pub(crate) fn close(&self) {
        self.catalog.close();
    }
}
