//! Sets up the client of S3, Google Cloud Storage or Azure from a URL and from variables of the environment.
//!
//! Invariant: an option of the URL's query takes precedence over the environment. No error contains the value of an option.

use std::{error::Error as StdError, fmt, iter::successors, pin::Pin, str::FromStr, time::Duration};

use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    client::{HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    path::Path,
};
use url::Url;

use super::{
    CALL_TIMEOUT, COMPLETE_TIMEOUT, MAX_COPY,
    copy_request::{Signer, added_headers},
    copy_timeout, denial,
};
use crate::{
    error::{Error, Result},
    tls,
};

/// The longest pause that a store may ask for. A call with two of them ends within its time limit.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The headers with the source of a copy: of S3, Google Cloud Storage and Azure.
const COPY_SOURCES: [&str; 3] = ["x-amz-copy-source", "x-goog-copy-source", "x-ms-copy-source"];

/// What an upload in parts does with an object that is there when the upload is completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    Replace,
    /// S3 refuses to complete the upload, unless the option `conditional_put=disabled` says that the server cannot.
    Refuse,
}

/// A store that is set up and not called yet.
pub(super) struct Connected {
    pub(super) store: Box<dyn ObjectStore>,
    /// The path in the store that the URL names.
    pub(super) prefix: Path,
    /// Whether the store's protocol has a copy with other attributes.
    pub(super) copies_on_server: bool,
}

/// Sets up a store.
pub(super) fn connect(url: &Url, environment: &[(String, String)], existing: Existing) -> Result<Connected> {
    let (scheme, prefix) =
        ObjectStoreScheme::parse(url).map_err(|error| refused("is not the URL of a store", error))?;
    require_urls_of_endpoints(url, environment)?;
    let mut bare = url.clone();
    bare.set_query(None);
    let creates_only =
        existing == Existing::Refuse && scheme == ObjectStoreScheme::AmazonS3 && is_conditional(url, environment)?;
    // The caller of a backup has time limits of its own, because its parts are large.
    let patience = if existing == Existing::Refuse { COMPLETE_TIMEOUT } else { CALL_TIMEOUT };
    let signer = Signer::default();
    let connector =
        Connector { allows_http: allows_http(url, environment), creates_only, patience, signer: signer.clone() };
    /// Applies the options to a builder. All builders have these methods and share no trait.
    macro_rules! build {
        ($builder:expr, $key:ty) => {{
            let mut builder = $builder.with_url(bare).with_retry(retries(patience)).with_http_connector(connector);
            for (key, value) in options::<$key>(url, environment)? {
                builder = builder.with_config(key, value);
            }
            builder.build().map_err(|error| refused("cannot be used", error))?
        }};
    }
    let copies_on_server = scheme == ObjectStoreScheme::AmazonS3;
    let store: Box<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => {
            // One object is removed at a time, and not every server has the bulk request.
            let store = build!(AmazonS3Builder::new().with_disable_bulk_delete(true), AmazonS3ConfigKey);
            signer.use_credentials(store.credentials());
            Box::new(store)
        }
        ObjectStoreScheme::GoogleCloudStorage => Box::new(build!(GoogleCloudStorageBuilder::new(), GoogleConfigKey)),
        ObjectStoreScheme::MicrosoftAzure => Box::new(build!(MicrosoftAzureBuilder::new(), AzureConfigKey)),
        _ => return Err(Error::config("Option storage_url starts with s3://, gs:// or az://")),
    };
    Ok(Connected { store, prefix, copies_on_server })
}

/// Returns the options of the environment that the store knows, then the options of the URL's query.
fn options<K: FromStr>(url: &Url, environment: &[(String, String)]) -> Result<Vec<(K, String)>> {
    let known = environment.iter().filter_map(|(name, value)| {
        let key = K::from_str(&name.to_ascii_lowercase()).ok()?;
        Some((key, value.clone()))
    });
    let mut options: Vec<_> = known.collect();
    for (name, value) in url.query_pairs() {
        let key = K::from_str(&name.to_ascii_lowercase())
            .map_err(|_| Error::config(format!("Option storage_url has an unknown option {name:?} in its query")))?;
        options.push((key, value.into_owned()));
    }
    Ok(options)
}

/// # Errors
/// `Config` for an endpoint without a scheme, such as `127.0.0.1:9000`: the crate panics at the first call.
fn require_urls_of_endpoints(url: &Url, environment: &[(String, String)]) -> Result<()> {
    let of_url = url.query_pairs().map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()));
    let of_environment = environment.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
    for (name, value) in of_url.chain(of_environment).filter(|(name, _)| name.contains("endpoint")) {
        let is_url = Url::parse(&value).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !is_url && !value.is_empty() && !matches!(value.as_str(), "true" | "false") {
            return Err(Error::config(format!("Option storage_url has the {name} without http:// or https://")));
        }
    }
    Ok(())
}

/// Whether the options allow conditional writes to S3.
fn is_conditional(url: &Url, environment: &[(String, String)]) -> Result<bool> {
    let options = options::<AmazonS3ConfigKey>(url, environment)?;
    let last = options.iter().rev().find(|(key, _)| *key == AmazonS3ConfigKey::ConditionalPut);
    Ok(last.is_none_or(|(_, value)| value != "disabled"))
}

/// Whether the endpoint is an `http://` URL. All others are called over TLS only.
fn allows_http(url: &Url, environment: &[(String, String)]) -> bool {
    let is_plain = |name: &str, value: &str| name.contains("endpoint") && value.starts_with("http://");
    url.query_pairs().any(|(name, value)| is_plain(&name.to_ascii_lowercase(), &value))
        || environment.iter().any(|(name, value)| is_plain(&name.to_ascii_lowercase(), value))
        || url.query_pairs().any(|(name, value)| name.contains("allow_http") && value == "true")
}

fn retries(patience: Duration) -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 4, retry_timeout: patience / 2 }
}

fn refused(what: &str, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::config(format!("Option storage_url {what}")).caused_by(error)
}

/// Makes HTTP clients with the TLS configuration of the library.
#[derive(Debug)]
struct Connector {
    allows_http: bool,
    /// Whether an upload in parts to S3 replaces no object.
    creates_only: bool,
    /// How long a request may take until its answer begins: the time includes that of sending its body.
    patience: Duration,
    signer: Signer,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let tls = tls::client_config(!self.allows_http)
            .map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })?;
        let build = |read_timeout| {
            let builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .https_only(!self.allows_http)
                .user_agent(concat!("townsquare/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CALL_TIMEOUT / 4)
                .read_timeout(read_timeout)
                .no_gzip()
                .no_proxy();
            builder.build().map_err(|error| object_store::Error::Generic { store: "HTTP", source: error.into() })
        };
        Ok(HttpClient::new(StoreClient {
            client: build(self.patience)?,
            copies: build(self.patience.max(copy_timeout(MAX_COPY)))?,
            creates_only: self.creates_only,
            signer: self.signer.clone(),
        }))
    }
}

/// An HTTP client with errors that name the host of the request.
#[derive(Debug)]
struct StoreClient {
    client: reqwest::Client,
    /// For requests that take as long as the store needs to copy bytes. A client has one time limit for the begin of all its
    /// answers; the callers of these requests have a shorter one for a smaller object.
    copies: reqwest::Client,
    creates_only: bool,
    signer: Signer,
}

/// Whether a request completes an upload in parts to S3.
fn completes_upload(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    *request.method() == http::Method::POST && query.split('&').any(|pair| pair.starts_with("uploadId="))
}

/// Whether the store copies bytes before it answers a request.
fn is_copy(request: &HttpRequest) -> bool {
    completes_upload(request) || COPY_SOURCES.iter().any(|name| request.headers().contains_key(*name))
}

/// Whether the answer to a request is no object: it is that of a change, or a listing of S3.
fn has_short_answer(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    *request.method() != http::Method::GET || query.split('&').any(|pair| pair == "list-type=2")
}

impl HttpService for StoreClient {
    /// The signature is the one that the macro `async_trait` makes of the trait's.
    fn call<'a, 'b>(
        &'a self,
        mut request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        // `object_store` has no option for it. S3 does not require that this header is signed.
        if self.creates_only && completes_upload(&request) {
            request.headers_mut().insert(http::header::IF_NONE_MATCH, http::HeaderValue::from_static("*"));
        }
        let uri = request.uri();
        // Not the authority, which may have a password.
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let host = format!("{}:{port}", uri.host().unwrap_or_default());
        let is_head = *request.method() == http::Method::HEAD;
        let is_short = has_short_answer(&request);
        let client = if is_copy(&request) { &self.copies } else { &self.client };
        let added = added_headers(&request);
        let is_conditional = request.headers().contains_key(http::header::IF_NONE_MATCH);
        Box::pin(async move {
            let failed = |cause: HttpError, kind| HttpError::new(kind, NoAnswer { host: host.clone(), cause });
            let has_added = added.is_some();
            if let Some(added) = added {
                self.signer.add_headers(&mut request, added).await?;
            }
            let mut answer = HttpService::call(client, request).await.map_err(|cause| {
                let kind = cause.kind();
                failed(cause, kind)
            })?;
            if let Some(pause) = requested_pause(&answer) {
                tokio::time::sleep(pause).await;
            }
            if is_short {
                // `object_store` repeats a call without an answer, and not one with half an answer.
                let (head, body) = answer.into_parts();
                let body = body.bytes().await.map_err(|cause| failed(cause, HttpErrorKind::Interrupted))?;
                answer = HttpResponse::from_parts(head, body.into());
            }
            if (has_added || is_conditional) && answer.status() == http::StatusCode::NOT_IMPLEMENTED {
                // `object_store` would repeat the request, and the store would refuse it again.
                *answer.status_mut() = http::StatusCode::METHOD_NOT_ALLOWED;
            }
            if is_head && answer.status() == http::StatusCode::FORBIDDEN {
                return Ok(denial::with_code(answer));
            }
            Ok(answer)
        })
    }
}

/// How long a busy store asks to wait before the next request. `object_store` repeats the request without regard to it.
fn requested_pause(answer: &HttpResponse) -> Option<Duration> {
    use http::{StatusCode, header::RETRY_AFTER};
    if !matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST_PAUSE))
}

/// The failure of a request that got no answer.
#[derive(Debug)]
struct NoAnswer {
    /// The host and the port.
    host: String,
    cause: HttpError,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.cause.kind() == HttpErrorKind::Connect { "cannot connect to" } else { "no answer from" };
        // The errors between say less, such as "tcp connect error".
        let first = successors(Some(&self.cause as &dyn StdError), |&error| error.source()).last();
        write!(f, "{what} {}: {}", self.host, first.unwrap_or(&self.cause))
    }
}

impl StdError for NoAnswer {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.cause)
    }
}

/// Which host gave no answer, and why. `None` for another failure.
pub(super) fn no_answer(error: &object_store::Error) -> Option<String> {
    let mut causes = successors(error.source(), |&error| error.source());
    causes.find_map(|cause| cause.downcast_ref::<NoAnswer>()).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use http::Method;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(200);

    /// Sends a request with this header to a server that answers after three times [`PATIENCE`], unless the client gives up.
    async fn send(method: Method, query: &str, header: &str) -> Result<HttpResponse, HttpError> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let uri = format!("http://{}/town/a{query}", listener.local_addr().expect("an address"));
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            // Until the client gives up, or until the time has passed.
            stream.set_read_timeout(Some(PATIENCE * 3)).expect("a time limit");
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        });
        let signer = Signer::default();
        let connector = Connector { allows_http: true, creates_only: false, patience: PATIENCE, signer };
        let client = connector.connect(&ClientOptions::default()).expect("a client");
        let request =
            http::Request::builder().method(method).uri(uri).header(header, "value").body(String::new().into());
        let answer = client.execute(request.expect("a request")).await;
        server.join().expect("no panic");
        answer
    }

    #[tokio::test]
    async fn a_copy_and_the_end_of_an_upload_have_more_time_than_other_requests() {
        for source in COPY_SOURCES {
            send(Method::PUT, "", source).await.expect(source);
        }
        send(Method::POST, "?uploadId=1", "x-other").await.expect("the end of an upload");
        for (method, query) in
            [(Method::PUT, ""), (Method::PUT, "?partNumber=1&uploadId=1"), (Method::POST, "?uploads")]
        {
            let error = send(method, query, "x-other").await.expect_err(query);
            assert_eq!(error.kind(), HttpErrorKind::Timeout, "{error}");
        }
    }
}
