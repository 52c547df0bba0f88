//! The mini app directory without async.

use super::{Client, wait};
use crate::{
    discovery::{DiscoveryStats, HttpResponse, MiniApps, Selection, Timeframe},
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
