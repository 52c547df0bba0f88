//! Pages of a catalog. A page that is valid JSON is read: each received row is listed, skipped or a duplicate. Apps are complete.

use std::{fs, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use townsquare::{ErrorKind, blocking::Client, discovery::Timeframe};

use super::{Target, fixture};

/// See the module.
pub struct CatalogPage {
    client: Client,
    file: PathBuf,
    _folder: TempDir,
}

impl Target for CatalogPage {
    const NAME: &'static str = "catalog_page";

    fn new() -> CatalogPage {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("catalog.json");
        let client = fixture::open(fixture::in_memory().catalog_url(format!("file:{}", file.display())));
        CatalogPage { client, file, _folder: folder }
    }

    fn check(&mut self, data: &[u8]) {
        fs::write(&self.file, data).expect("the temporary folder is writable");
        let discovery = self.client.discovery();
        let rows = rows(data);
        match discovery.force_refresh() {
            Ok(stats) => {
                assert_eq!(stats.received, stats.total + stats.skipped + stats.duplicates, "{stats:?}");
                assert!(rows.is_none_or(|rows| rows == stats.received), "{rows:?} rows: {stats:?}");
                self.check_apps(stats.total);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                let is_empty = error.to_string().contains("describes an app");
                assert!(rows.is_none() || is_empty, "{rows:?} rows: {error}");
            }
        }
    }
}

impl CatalogPage {
    fn check_apps(&self, total: usize) {
        let apps = self.client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1_000).expect("a catalog");
        assert_eq!((apps.len(), apps.total()), (total.min(1_000), total));
        for app in &apps {
            assert!(!app.id().is_empty() && !app.name().is_empty() && !app.domain().is_empty(), "{app:?}");
            assert!(app.home_url().starts_with("https://") || app.home_url().starts_with("http://"), "{app:?}");
            assert_eq!(app.to_json()["homeUrl"], app.home_url());
            let found = self.client.discovery().get_mini_app(app.id()).expect("a catalog").expect("a listed app");
            assert_eq!(found.id(), app.id());
        }
    }
}

/// The number of rows of a page that is valid JSON; `None` for any other body.
fn rows(data: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(data);
    // An object with two members of a name is read in several ways.
    let names = ["frames", "result", "next", "cursor"];
    let occurs_twice = text.contains("\\u00") || names.iter().any(|name| text.matches(name).count() > 1);
    let page: Value = serde_json::from_str(&text).ok().filter(|_| !occurs_twice)?;
    let frames = page.get("frames").or_else(|| page.get("result")?.get("frames"))?;
    frames.as_array().map(Vec::len)
}
