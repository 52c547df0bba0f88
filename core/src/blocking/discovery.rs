//! The mini app directory without async.

use super::{Client, wait};
use crate::{
    callbacks::Subscription,
    discovery::{DiscoveryStats, Facet, HttpResponse, MiniApp, MiniApps, Selection, Suggestion, Timeframe},
    error::Result,
};

area! { Discovery:
    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::discovery::{Selection, Timeframe};
    ///
    /// let games = Selection::first(10).in_categories(["games"]);
    /// for app in &client.discovery().get_trending_mini_apps(Timeframe::Days7, games)? {
    ///     println!("{}", app.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    get_trending_mini_apps(timeframe: Timeframe, selection: impl Into<Selection>) -> MiniApps;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let apps = client.discovery().get_mini_apps_by_category(["games", "music"], 20)?;
    /// # Ok(())
    /// # }
    /// ```
    get_mini_apps_by_category(
        categories: impl IntoIterator<Item = impl Into<String>>, selection: impl Into<Selection>
    ) -> MiniApps;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let apps = client.discovery().search_mini_apps("chess", 10)?;
    /// # Ok(())
    /// # }
    /// ```
    search_mini_apps(query: &str, selection: impl Into<Selection>) -> MiniApps;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let newest = client.discovery().get_new_mini_apps(10)?;
    /// # Ok(())
    /// # }
    /// ```
    get_new_mini_apps(selection: impl Into<Selection>) -> MiniApps;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let similar = client.discovery().get_similar_mini_apps("rodeo.club", 5)?;
    /// # Ok(())
    /// # }
    /// ```
    get_similar_mini_apps(id: &str, limit: u32) -> MiniApps;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let app = client.discovery().get_mini_app("https://rodeo.club/")?;
    /// # Ok(())
    /// # }
    /// ```
    get_mini_app(id: &str) -> Option<MiniApp>;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let suggestions = client.discovery().suggest_mini_apps("harb", 8)?;
    /// # Ok(())
    /// # }
    /// ```
    suggest_mini_apps(text: &str, limit: u32) -> Vec<Suggestion>;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::discovery::Selection;
    ///
    /// let categories = client.discovery().categories(Selection::default())?;
    /// # Ok(())
    /// # }
    /// ```
    categories(selection: impl Into<Selection>) -> Vec<Facet>;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::discovery::Selection;
    ///
    /// let networks = client.discovery().networks(Selection::default())?;
    /// # Ok(())
    /// # }
    /// ```
    networks(selection: impl Into<Selection>) -> Vec<Facet>;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let stats = client.discovery().refresh()?;
    /// println!("{} mini apps", stats.total);
    /// # Ok(())
    /// # }
    /// ```
    refresh() -> DiscoveryStats;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let stats = client.discovery().force_refresh()?;
    /// # Ok(())
    /// # }
    /// ```
    force_refresh() -> DiscoveryStats;

    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let response = client.discovery().handle("GET", "/api/miniapp-discovery?category=games", b"", &[])?;
    /// assert_eq!(response.status, 200);
    /// # Ok(())
    /// # }
    /// ```
    handle(method: &str, target: &str, body: &[u8], headers: &[(String, String)]) -> HttpResponse;
}

impl Discovery<'_> {
    /// Returns the result of [`Discovery::stats`](crate::discovery::Discovery::stats), which does not wait.
    ///
    /// # Errors
    /// Those of the async service's method.
    ///
    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// println!("{} mini apps", client.discovery().stats()?.total);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> Result<DiscoveryStats> {
        self.0.stats()
    }

    /// Calls [`Discovery::on_catalog_change`](crate::discovery::Discovery::on_catalog_change), which does not wait.
    ///
    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) {
    /// let subscription = client.discovery().on_catalog_change(|stats| println!("{} apps", stats.total));
    /// # let _ = subscription;
    /// # }
    /// ```
    pub fn on_catalog_change(&self, callback: impl FnMut(DiscoveryStats) + Send + 'static) -> Subscription {
        self.0.on_catalog_change(callback)
    }
}

impl Client {
    /// The mini app directory.
    ///
    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let apps = client.discovery().search_mini_apps("chess", 10)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovery(&self) -> Discovery<'_> {
        Discovery(self.0.discovery())
    }
}
