//! A client on a catalog file, with its data folder.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use townsquare::{Config, blocking::Client, discovery::Timeframe};
use townsquare_tests::{TempDir, catalog::Catalog, temp_dir};

use crate::{comparison::Engine, queries::Kind};

/// Returns the default configuration with limits for large catalogs and a refresh interval of a day.
pub fn config(folder: &Path) -> Config {
    let day = Duration::from_secs(86_400);
    Config::new()
        .data_dir(folder.join("data"))
        .refresh_interval(day)
        .catalog_refresh_timeout(day)
        .catalog_max_pages(1_000_000)
        .catalog_max_page_bytes(16 << 30)
}

/// A client with its catalog in memory.
pub struct Fixture {
    /// The client.
    pub client: Client,
    /// The catalog file.
    pub file: PathBuf,
    _folder: TempDir,
}

impl Fixture {
    /// Opens a client on a catalog of `size` invented apps.
    ///
    /// # Panics
    /// When the disk is full or the library fails.
    pub fn of(size: usize) -> Fixture {
        let folder = temp_dir();
        let file = folder.path().join("catalog.json");
        Catalog::of(size).write(&file).expect("the temporary folder is writable");
        Fixture::open(folder, file)
    }

    /// Opens a client on an existing catalog.
    ///
    /// # Panics
    /// When the library fails.
    pub fn on(file: &Path) -> Fixture {
        Fixture::open(temp_dir(), file.to_owned())
    }

    fn open(folder: TempDir, file: PathBuf) -> Fixture {
        let url = format!("file://{}", file.display());
        let client = Client::open(config(folder.path()).catalog_url(url)).expect("the client opens");
        client.discovery().get_trending_mini_apps(Timeframe::default(), 1).expect("the catalog loads");
        Fixture { client, file, _folder: folder }
    }

    /// Returns the number of apps in the catalog.
    ///
    /// # Panics
    /// When the client is closed.
    pub fn app_count(&self) -> usize {
        self.client.discovery().stats().expect("an open client").total
    }
}

impl Engine for Fixture {
    fn name(&self) -> &'static str {
        "townsquare"
    }

    fn answer(&mut self, _kind: Kind, query: &str) -> usize {
        // One call for every kind of query: the library is not told the kind.
        self.client.discovery().search_mini_apps(query, 20).map_or(0, |apps| apps.len())
    }
}
