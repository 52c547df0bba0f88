//! The HTTP client of the upstream API: one request, with its limits and error kinds.
//!
//! Invariant: redirects are followed within the origin only, so the key is sent to no other host. A response body is
//! read up to the size limit, which counts decompressed bytes.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{
    Client, NoProxy, Proxy, Response, StatusCode,
    header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect,
};
use url::Url;

use super::retry::RequestError;
use crate::{
    catalog::Timeframe,
    config::{CatalogFormat, OptionValues, ProxySettings, Secret},
    error::{Error, Result},
    tls,
};

const MAX_REDIRECTS: usize = 3;

pub(super) struct ApiClient {
    client: Client,
    endpoint: Url,
    format: CatalogFormat,
    page_size: u32,
    timeout: Duration,
    max_bytes: u64,
}

impl ApiClient {
    /// `key` is the name of a header and the key that it carries; an API that needs no key gets none.
    pub(super) fn new(
        base: &Url,
        format: CatalogFormat,
        key: Option<(&str, &Secret)>,
        proxy: Option<&ProxySettings>,
        options: &OptionValues,
    ) -> Result<ApiClient> {
        let refused = |what: &str| Error::config(format!("Option {what} cannot be sent in a header"));
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        if let Some((header, key)) = key.filter(|_| format == CatalogFormat::Neynar) {
            let name = HeaderName::from_bytes(header.as_bytes()).map_err(|_| refused("catalog_key_header"))?;
            let mut key = HeaderValue::from_str(key.reveal()).map_err(|_| refused("catalog_api_key"))?;
            key.set_sensitive(true);
            headers.insert(name, key);
        }
        let uses_tls = base.scheme() == "https" || proxy.is_some_and(|proxy| proxy.is_https);
        let failed =
            |error: reqwest::Error| Error::config("Cannot set up an HTTP client").caused_by(error.without_url());
        // `no_proxy` keeps reqwest from reading the environment.
        let mut client = Client::builder()
            .default_headers(headers)
            .redirect(redirect::Policy::custom(within_origin))
            .user_agent(concat!("townsquare/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls::client_config(uses_tls)?)
            .no_proxy();
        if let Some(settings) = proxy {
            let proxy = Proxy::all(settings.url.reveal()).map_err(failed)?;
            let exceptions = settings.exceptions.as_deref().and_then(NoProxy::from_string);
            client = client.proxy(proxy.no_proxy(exceptions));
        }
        let client = client.build().map_err(failed)?;
        let mut endpoint = base.clone();
        let folder = base.path().trim_end_matches('/');
        let path = match format {
            CatalogFormat::Neynar => "v2/farcaster/frame/catalog/",
            CatalogFormat::Farcaster => "v1/top-frameapps",
        };
        endpoint.set_path(&format!("{folder}/{path}"));
        Ok(ApiClient {
            client,
            endpoint,
            format,
            page_size: options.catalog_page_size,
            timeout: options.catalog_timeout,
            max_bytes: options.catalog_max_page_bytes,
        })
    }

    pub(super) fn format(&self) -> CatalogFormat {
        self.format
    }

    /// The endpoint's URL without credentials and query.
    pub(super) fn name(&self) -> String {
        format!("{}{}", self.endpoint.origin().ascii_serialization(), self.endpoint.path())
    }

    /// Fetches the body of one page.
    pub(super) async fn get_page(
        &self,
        timeframe: Timeframe,
        network: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Bytes, RequestError> {
        let mut url = self.endpoint.clone();
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("limit", &self.page_size.to_string());
            if self.format == CatalogFormat::Neynar {
                query.append_pair("time_window", timeframe.as_str());
            }
            network.map(|network| query.append_pair("networks", network));
            cursor.map(|cursor| query.append_pair("cursor", cursor));
        }
        let request = async {
            let response = self.client.get(url).send().await.map_err(connection_error)?;
            match response.status() {
                StatusCode::OK => self.read_body(response).await,
                _ => Err(status_error(&response)),
            }
        };
        match tokio::time::timeout(self.timeout, request).await {
            Ok(result) => result,
            Err(_) => Err(RequestError::transient(Error::unavailable(format!(
                "The catalog did not answer within {:?}",
                self.timeout
            )))),
        }
    }

    async fn read_body(&self, mut response: Response) -> Result<Bytes, RequestError> {
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(connection_error)? {
            if (body.len() + chunk.len()) as u64 > self.max_bytes {
                let message = format!("The catalog's answer is larger than {} bytes", self.max_bytes);
                return Err(RequestError::permanent(Error::unavailable(message)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

fn within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let leads_away = attempt.previous().last().is_none_or(|from| from.origin() != attempt.url().origin());
    if leads_away || attempt.previous().len() > MAX_REDIRECTS { attempt.stop() } else { attempt.follow() }
}

/// An error of the connection, without the URL: a base URL may contain a password.
fn connection_error(error: reqwest::Error) -> RequestError {
    let what = if error.is_connect() {
        "Cannot connect to the catalog"
    } else if error.is_decode() || error.is_body() {
        "The connection broke off within the catalog's answer"
    } else {
        "The connection to the catalog broke off"
    };
    RequestError::transient(Error::unavailable(what).caused_by(error.without_url()))
}

/// The error for a status other than 200.
fn status_error(response: &Response) -> RequestError {
    let status = response.status();
    let error = |what: &str| Error::unavailable(format!("The catalog {what} (HTTP {})", status.as_u16()));
    match status.as_u16() {
        401 | 403 => RequestError::permanent(error("refuses the key")),
        402 => RequestError::permanent(error("requires payment or its quota is used up")),
        429 => RequestError::transient(with_retry_after(error("limits the request rate"), response)),
        503 => RequestError::transient(with_retry_after(error("is unavailable"), response)),
        500..=599 | 408 => RequestError::transient(error("failed")),
        300..=399 => RequestError::permanent(error("redirects too often or to another origin")),
        _ => RequestError::permanent(error("refused the request")),
    }
}

/// Adds the upstream's `Retry-After` to an error, if it sent one.
fn with_retry_after(error: Error, response: &Response) -> Error {
    match retry_after(response) {
        Some(wait) => error.retry_in(wait),
        None => error,
    }
}

/// `Retry-After` in either of its forms, seconds or a date (RFC 9110, 10.2.3).
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // Compared with the server's `date`, because our clock may be wrong.
    let until = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(response.headers().get("date")?.to_str().ok()?).ok()?;
    Some(until.duration_since(now).unwrap_or_default())
}
