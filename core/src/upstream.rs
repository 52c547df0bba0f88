//! The catalog's source: an upstream API over HTTP, or a file kept by hand (UPSTREAM 1).
//!
//! Invariant: one call fetches one whole list or fails; it never takes longer, reads more bytes or asks more often
//! than configured, and the key leaves this process only in the configured header to the configured origin.

mod http;
mod retry;

use std::{path::PathBuf, sync::Arc};

use self::{http::Http, retry::Attempts};
use crate::{
    catalog::{CatalogSource, Listing, Timeframe, View},
    catalog_thread::CatalogThread,
    clock::Clock,
    config::{CatalogLocation, OptionValues},
    error::{Error, Result},
};

/// Where catalogs are fetched from. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Upstream {
    origin: Arc<Origin>,
    clock: Clock,
}

enum Origin {
    /// No key: nothing is ever fetched.
    Nothing,
    Http {
        http: Http,
        limits: Limits,
    },
    File {
        path: PathBuf,
        max_bytes: u64,
    },
}

struct Limits {
    max_pages: u32,
    list_timeout: std::time::Duration,
    tries: u32,
}

impl Upstream {
    /// # Errors
    /// `Config` when no HTTP client can be set up.
    pub(crate) fn new(location: &CatalogLocation, options: &OptionValues, clock: Clock) -> Result<Upstream> {
        let origin = match location {
            CatalogLocation::Upstream { key: None, .. } => Origin::Nothing,
            CatalogLocation::Upstream { base, key: Some(key), header } => Origin::Http {
                http: Http::new(base, key, header, options)?,
                limits: Limits {
                    max_pages: options.catalog_max_pages,
                    list_timeout: options.catalog_refresh_timeout,
                    tries: options.catalog_tries,
                },
            },
            CatalogLocation::File(path) => {
                Origin::File { path: path.clone(), max_bytes: options.catalog_max_page_bytes }
            }
        };
        Ok(Upstream { origin: Arc::new(origin), clock })
    }

    /// Whether there is a key, or a file, to fetch with.
    pub(crate) fn is_reachable(&self) -> bool {
        !matches!(*self.origin, Origin::Nothing)
    }

    /// Whether a fetch goes over the network: costs money, and is worth sharing between processes.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(*self.origin, Origin::Http { .. })
    }

    /// What a catalog fetched here says of its source.
    pub(crate) fn source(&self) -> CatalogSource {
        match *self.origin {
            Origin::Nothing => CatalogSource::None,
            Origin::Http { .. } => CatalogSource::Upstream,
            Origin::File { .. } => CatalogSource::File,
        }
    }

    /// The name under which the database keeps this source's catalog; it holds no secret.
    pub(crate) fn name(&self) -> String {
        match &*self.origin {
            Origin::Nothing => String::new(),
            Origin::Http { http, .. } => http.name(),
            Origin::File { path, .. } => format!("file:{}", path.display()),
        }
    }

    /// Fetches one list and adds it to `listing`, an empty one.
    ///
    /// # Errors
    /// `Unavailable` saying why; with `retry_after` when the upstream named a time.
    pub(crate) async fn fetch(
        &self,
        view: &View,
        mut listing: Listing,
        catalog_thread: &CatalogThread,
    ) -> Result<Listing> {
        match &*self.origin {
            Origin::Nothing => Ok(listing),
            Origin::Http { http, limits } => {
                let pages = self.pages(http, limits, view, listing, catalog_thread);
                match tokio::time::timeout(limits.list_timeout, pages).await {
                    Ok(result) => result,
                    Err(_) => Err(Error::unavailable(format!(
                        "The catalog took longer than {:?} in all",
                        limits.list_timeout
                    ))),
                }
            }
            Origin::File { path, max_bytes } => {
                let (path, max_bytes, now) = (path.clone(), *max_bytes, self.clock.now());
                let read = move || listing.add(&read_file(&path, max_bytes)?, now).map(|_| listing);
                catalog_thread.run(read).await?
            }
        }
    }

    async fn pages(
        &self,
        http: &Http,
        limits: &Limits,
        view: &View,
        mut listing: Listing,
        catalog_thread: &CatalogThread,
    ) -> Result<Listing> {
        let (timeframe, network) = match view {
            View::Order(timeframe) => (*timeframe, None),
            View::Network(network) => (Timeframe::default(), Some(&**network)),
        };
        let mut cursors: Vec<String> = Vec::new();
        for _ in 0..limits.max_pages {
            let cursor = cursors.last().map(String::as_str);
            let mut attempts = Attempts::new(limits.tries, limits.list_timeout);
            let body = loop {
                match http.get(timeframe, network, cursor).await {
                    Ok(body) => break body,
                    Err(failure) => attempts.wait_after(failure).await?,
                }
            };
            let now = self.clock.now();
            // A page of 32 MiB takes a while to read; workers have connections to serve.
            let add = move || listing.add(&body, now).map(|next| (listing, next));
            let next;
            (listing, next) = catalog_thread.run(add).await??;
            match next {
                None => break,
                Some(next) if cursors.contains(&next) => {
                    return Err(Error::unavailable("The catalog's pages go round in circles: a cursor came back"));
                }
                Some(next) => cursors.push(next),
            }
        }
        Ok(listing)
    }
}

fn read_file(path: &std::path::Path, max_bytes: u64) -> Result<Vec<u8>> {
    use std::io::Read;
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("Cannot read the catalog file {}: {}", path.display(), error)).caused_by(error)
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut body = Vec::new();
    // One byte more than allowed tells a file that fits from one that does not, whatever its size claims to be.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut body).map_err(failed)?;
    if body.len() as u64 > max_bytes {
        return Err(Error::unavailable(format!("The catalog file is larger than {max_bytes} bytes")));
    }
    Ok(body)
}
