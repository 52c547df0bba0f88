//! A client on a catalog, with its folder.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use townsquare::{Config, Timeframe, blocking::Client};

use crate::catalog;

/// A new folder, removed with all it holds on drop.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one.
    ///
    /// # Panics
    /// When the system's temporary folder cannot be written to.
    #[allow(clippy::new_without_default, reason = "it touches the disk")]
    pub fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("townsquare-benches-{}-{number}", process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder can be written to");
        Folder(folder)
    }

    /// The path of something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever cannot be removed is the system's to clean.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The defaults, but for bounds that large catalogs need, and for a catalog that does not grow old during a run.
pub fn config(folder: &Folder) -> Config {
    let day = Duration::from_secs(86_400);
    Config::new()
        .data_dir(folder.join("data"))
        .refresh_interval(day)
        .catalog_refresh_timeout(day)
        .catalog_max_pages(1_000_000)
        .catalog_max_page_bytes(16 << 30)
}

/// A client and what it stands on.
pub struct Town {
    /// Open, with its catalog in memory.
    pub client: Client,
    /// The catalog.
    pub file: PathBuf,
    _folder: Folder,
}

impl Town {
    /// On a catalog of `size` invented apps.
    ///
    /// # Panics
    /// When the disk is full or the library fails.
    pub fn of(size: usize) -> Town {
        let folder = Folder::new();
        let file = folder.join("catalog.json");
        catalog::write(&file, size).expect("the catalog can be written");
        Town::open(folder, file)
    }

    /// On a catalog that is there.
    ///
    /// # Panics
    /// When the library fails.
    pub fn on(file: &Path) -> Town {
        Town::open(Folder::new(), file.to_owned())
    }

    fn open(folder: Folder, file: PathBuf) -> Town {
        let url = format!("file://{}", file.display());
        let client = Client::open(config(&folder).catalog_url(url)).expect("the client opens");
        client.discovery().get_trending_mini_apps(Timeframe::default(), 1).expect("the catalog loads");
        Town { client, file, _folder: folder }
    }

    /// How many apps its catalog has.
    ///
    /// # Panics
    /// When the client was closed.
    pub fn len(&self) -> usize {
        self.client.discovery().stats().expect("an open client").total
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
