//! The source of the catalog: the upstream API over HTTP, a local file (UPSTREAM 1), or the sample.
//!
//! Invariant: a call fetches one whole list or fails. It never exceeds the configured time, size and number of tries,
//! and sends the key only in the configured header to the configured origin.

mod http;
mod retry;

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use self::{http::ApiClient, retry::Retries};
use crate::{
    catalog::{CatalogSource, FetchedList, ListKey, MalformedPage, Timeframe},
    clock::Clock,
    config::{CatalogFormat, CatalogLocation, OptionValues, SAMPLE_URL},
    error::{Error, Result},
    regular_file::open_regular,
    threads::BlockingPool,
};

/// The catalog of invented apps, in the format of a catalog file.
#[cfg(feature = "sample")]
const SAMPLE: &[u8] = include_bytes!("../samples/catalog.json");
/// A URL that needs it is refused.
#[cfg(not(feature = "sample"))]
const SAMPLE: &[u8] = b"";

const NO_SOURCE: &str = "discovery has no mini apps: it needs the key of the catalog API (catalog_api_key, or the variable \
     CATALOG_API_KEY), a catalog file (catalog_url), or catalog_url=sample: for invented apps";

/// Fetches catalog lists. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Upstream {
    origin: Arc<Origin>,
    clock: Clock,
}

enum Origin {
    /// No key is configured: nothing is fetched. `explanation` is what the log says once about it.
    None {
        explanation: Mutex<Option<&'static str>>,
    },
    /// The invented apps of the library.
    Sample,
    Api {
        client: ApiClient,
        limits: FetchLimits,
    },
    File {
        path: PathBuf,
        max_bytes: u64,
    },
}

struct FetchLimits {
    max_pages: u32,
    list_timeout: Duration,
    tries: u32,
}

impl Upstream {
    /// Sets up the source without connecting.
    ///
    /// # Errors
    /// `Config` if the HTTP client cannot be set up.
    pub(crate) fn new(location: &CatalogLocation, options: &OptionValues, clock: Clock) -> Result<Upstream> {
        let origin = match location {
            CatalogLocation::Upstream { format: CatalogFormat::Neynar, key: None, .. } => {
                // An empty key is a decision of the program.
                let explanation = options.catalog_api_key.is_none().then_some(NO_SOURCE);
                Origin::None { explanation: Mutex::new(explanation) }
            }
            CatalogLocation::Sample => Origin::Sample,
            CatalogLocation::Upstream { base, format, key, header, proxy } => Origin::Api {
                client: ApiClient::new(
                    base,
                    *format,
                    key.as_ref().map(|key| (&**header, key)),
                    proxy.as_ref(),
                    options,
                )?,
                limits: FetchLimits {
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

    /// Whether there is a key, a file or the sample.
    pub(crate) fn is_configured(&self) -> bool {
        !matches!(*self.origin, Origin::None { .. })
    }

    /// Says once in the log where mini apps come from, if nothing is configured.
    pub(crate) fn explain_absence(&self) {
        if let Origin::None { explanation } = &*self.origin
            && let Some(explanation) = explanation.lock().take()
        {
            tracing::warn!("{explanation}");
        }
    }

    /// Whether an upstream key is configured. Only a source with a key has an order for each timeframe and a list for each
    /// network.
    pub(crate) fn has_key(&self) -> bool {
        matches!(&*self.origin, Origin::Api { client, .. } if client.format() == CatalogFormat::Neynar)
    }

    /// Whether a fetch goes over the network. Such a fetch costs money, so processes share its result.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(*self.origin, Origin::Api { .. })
    }

    /// The source that `DiscoveryStats` names for a catalog from this upstream.
    pub(crate) fn source(&self) -> CatalogSource {
        match *self.origin {
            Origin::None { .. } => CatalogSource::None,
            Origin::Api { .. } => CatalogSource::Upstream,
            Origin::File { .. } | Origin::Sample => CatalogSource::File,
        }
    }

    /// The key of this source's catalog in the database. It contains no secret.
    pub(crate) fn name(&self) -> String {
        match &*self.origin {
            Origin::None { .. } => String::new(),
            Origin::Sample => SAMPLE_URL.to_owned(),
            Origin::Api { client, .. } => client.name(),
            Origin::File { path, .. } => format!("file:{}", path.display()),
        }
    }

    /// A message of this source for callers over HTTP: without the path of a catalog file.
    pub(crate) fn public_message(&self, message: &str) -> String {
        match &*self.origin {
            Origin::File { path, .. } => message.replace(&format!(" {}", path.display()), ""),
            Origin::None { .. } | Origin::Sample | Origin::Api { .. } => message.to_owned(),
        }
    }

    /// Fetches the list `key` into `list`, which must be empty. Pages are parsed on `blocking`.
    ///
    /// # Errors
    /// `Unavailable`, with `retry_after` if the upstream sent one.
    pub(crate) async fn fetch(&self, key: &ListKey, list: FetchedList, blocking: &BlockingPool) -> Result<FetchedList> {
        let list = self.fetch_rows(key, list, blocking).await?;
        if list.received > 0 && list.records.is_empty() {
            let name = match &*self.origin {
                Origin::File { path, .. } => name_of(path),
                _ => "catalog".to_owned(),
            };
            return Err(Error::unavailable(format!(
                "None of the {} rows of the {name} describes an app",
                list.received
            )));
        }
        Ok(list)
    }

    async fn fetch_rows(&self, key: &ListKey, mut list: FetchedList, blocking: &BlockingPool) -> Result<FetchedList> {
        match &*self.origin {
            Origin::None { .. } => Ok(list),
            Origin::Sample => {
                let now = self.clock.now();
                let failed = |fault: MalformedPage| fault.into_error("The sample");
                blocking.run(move || list.add_page(SAMPLE, now).map(|_| list).map_err(failed)).await?
            }
            Origin::Api { client, limits } => {
                let pages = self.fetch_pages(client, limits, key, list, blocking);
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
                let read = move || {
                    let page = list.add_page(&read_file(&path, max_bytes)?, now);
                    page.map(|_| list).map_err(|fault| fault.into_error(&format!("The {}", name_of(&path))))
                };
                blocking.run(read).await?
            }
        }
    }

    async fn fetch_pages(
        &self,
        client: &ApiClient,
        limits: &FetchLimits,
        key: &ListKey,
        mut list: FetchedList,
        blocking: &BlockingPool,
    ) -> Result<FetchedList> {
        let (timeframe, network) = match key {
            ListKey::Timeframe(timeframe) => (*timeframe, None),
            ListKey::Network(network) => (Timeframe::default(), Some(&**network)),
        };
        let mut cursors: Vec<String> = Vec::new();
        list.is_truncated = true;
        for _ in 0..limits.max_pages {
            let cursor = cursors.last().map(String::as_str);
            let mut retries = Retries::new(limits.tries, limits.list_timeout);
            let body = loop {
                match client.get_page(timeframe, network, cursor).await {
                    Ok(body) => break body,
                    Err(failure) => retries.wait_after(failure).await?,
                }
            };
            let now = self.clock.now();
            // Parsing a page of up to 32 MiB would block a runtime thread.
            let failed = |fault: MalformedPage| fault.into_error("The catalog's answer");
            let add = move || list.add_page(&body, now).map(|next| (list, next)).map_err(failed);
            let next;
            (list, next) = blocking.run(add).await??;
            match next {
                None => {
                    list.is_truncated = false;
                    break;
                }
                Some(next) if cursors.contains(&next) => {
                    return Err(Error::unavailable("The catalog repeats a page cursor"));
                }
                Some(next) => cursors.push(next),
            }
        }
        Ok(list)
    }
}

/// What messages call a catalog file. [`Upstream::public_message`] removes the path from them.
fn name_of(path: &Path) -> String {
    format!("catalog file {}", path.display())
}

fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let name = name_of(path);
    let failed = |error: io::Error| Error::unavailable(format!("Cannot read the {name}: {error}")).caused_by(error);
    let file = open_regular(path).map_err(failed)?;
    let mut body = Vec::new();
    // Reads one byte more than allowed to detect a file that is too large: its reported size may be wrong.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut body).map_err(failed)?;
    if body.len() as u64 > max_bytes {
        return Err(Error::unavailable(format!("The {name} is larger than {max_bytes} bytes")));
    }
    Ok(body)
}
