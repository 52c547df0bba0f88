//! An S3 server on the loopback, which keeps its objects in a temporary folder: s3s with s3s-fs.
//!
//! Invariant: a request sees each object whole, old or new, with its own attributes, as S3 promises. s3s-fs alone does not
//! promise this, so changes exclude other requests. Dropping the server closes its port and ends its threads.

use std::{
    convert::Infallible,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use hyper::{Method, Request, Response, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use s3s::{
    Body, S3Request, S3Result,
    access::S3Access,
    auth::SimpleAuth,
    dto::CopyObjectInput,
    service::{S3Service, S3ServiceBuilder},
};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{OwnedRwLockWriteGuard, RwLock},
};

const BUCKET: &str = "town";
const ACCESS_KEY: &str = "tester";
const COPY_SOURCE: &str = "x-amz-copy-source";
/// The part of the keys of staged bytes.
const STAGING: &str = "/.townsquare/staging/";
/// Tests search logs and errors for it.
pub const SECRET_KEY: &str = "MARKED-s3-key-of-the-tests";

/// A running server with one bucket.
pub struct S3Server {
    address: SocketAddr,
    folder: TempDir,
    runtime: Option<Runtime>,
    copies: Arc<Copies>,
    refused_removals: Arc<AtomicUsize>,
}

/// How the server treats copies inside the bucket.
struct Copies {
    /// Each copy from a key with the text takes it for reading.
    gate: Arc<RwLock<()>>,
    of: Mutex<String>,
    /// Whether the server answers such a copy with 503 and carries it out nevertheless.
    are_given_up: AtomicBool,
    /// Whether a copy has the attributes of its source, whatever the request says.
    keep_attributes: AtomicBool,
    /// How many copies the server accepts without carrying them out.
    ignored: AtomicUsize,
}

/// Counts down. False at zero.
fn counts_down(counter: &AtomicUsize) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Copies {
    fn new() -> Arc<Copies> {
        Arc::new(Copies {
            gate: Arc::default(),
            of: Mutex::new(STAGING.to_owned()),
            are_given_up: AtomicBool::default(),
            keep_attributes: AtomicBool::default(),
            ignored: AtomicUsize::default(),
        })
    }

    /// Whether a request is a copy that the gate is for.
    fn are_of(&self, request: &Request<Incoming>) -> bool {
        let source = request.headers().get(COPY_SOURCE).and_then(|source| source.to_str().ok());
        source.is_some_and(|source| source.contains(&*self.of.lock()))
    }
}

/// Changes the requests whose signatures are right.
struct Changes(Arc<Copies>);

impl S3Access for Changes {
    /// The signature is the one that the macro `async_trait` makes of the trait's.
    fn copy_object<'a, 'b, 'c>(
        &'a self,
        request: &'b mut S3Request<CopyObjectInput>,
    ) -> Pin<Box<dyn Future<Output = S3Result<()>> + Send + 'c>>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        if self.0.keep_attributes.load(Ordering::SeqCst) {
            request.input.metadata_directive = None;
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Holds copies back until it is dropped, and has the server answer them at once with 503.
pub struct GivenUpCopies {
    copies: Arc<Copies>,
    _gate: OwnedRwLockWriteGuard<()>,
}

impl Drop for GivenUpCopies {
    fn drop(&mut self) {
        self.copies.are_given_up.store(false, Ordering::SeqCst);
    }
}

/// A listener of the runtime at a free port of the loopback. Without `block_on`, which panics in an async test.
///
/// # Panics
/// When the system has no port left.
pub fn listen(runtime: &Runtime) -> (TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
    listener.set_nonblocking(true).expect("a listener that does not block");
    let address = listener.local_addr().expect("a bound listener has an address");
    let _entered = runtime.enter();
    (TcpListener::from_std(listener).expect("a listener of the runtime"), address)
}

impl S3Server {
    /// Starts a server with an empty bucket.
    ///
    /// # Panics
    /// When the system has no port or no thread left.
    pub fn start() -> S3Server {
        let folder = tempfile::Builder::new().prefix("townsquare-s3-").tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join(BUCKET)).expect("the bucket");
        let mut service = S3ServiceBuilder::new(FileSystem::new(folder.path()).expect("the folder exists"));
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let copies = Copies::new();
        service.set_access(Changes(Arc::clone(&copies)));
        let service = service.build();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads for a server");
        let (listener, address) = listen(&runtime);
        let refused_removals = Arc::default();
        let refused = Arc::clone(&refused_removals);
        runtime.spawn(serve(listener, service, folder.path().to_owned(), Arc::clone(&copies), refused));
        S3Server { address, folder, runtime: Some(runtime), copies, refused_removals }
    }

    /// The `storage_url` of a store below `prefix`.
    pub fn url(&self, prefix: &str) -> String {
        let address = self.address;
        format!(
            "s3://{BUCKET}/{prefix}?endpoint=http://{address}&region=us-east-1&access_key_id={ACCESS_KEY}\
             &secret_access_key={SECRET_KEY}"
        )
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL without a bucket, and without the keys.
    pub fn url_without_bucket(&self) -> String {
        format!("s3://?endpoint=http://{}&region=us-east-1", self.address)
    }

    /// The variables with the keys.
    pub fn variables() -> [(&'static str, &'static str); 2] {
        [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)]
    }

    /// The folder whose folders are the buckets.
    pub fn buckets(&self) -> &Path {
        self.folder.path()
    }

    /// Holds copies of staged bytes back until the result is dropped: townsquare makes staged bytes an object by a copy.
    /// Its clients give up after some seconds.
    pub fn hold_copies(&self) -> OwnedRwLockWriteGuard<()> {
        self.hold_copies_of(STAGING)
    }

    /// Holds copies from the keys with this text back until the result is dropped.
    pub fn hold_copies_of(&self, key: &str) -> OwnedRwLockWriteGuard<()> {
        key.clone_into(&mut self.copies.of.lock());
        let gate = Arc::clone(&self.copies.gate);
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(gate.write_owned())
    }

    /// Answers copies of staged bytes with 503, as a server does that takes too long, and carries them out when the result is
    /// dropped.
    pub fn give_up_on_copies(&self) -> GivenUpCopies {
        let gate = self.hold_copies();
        self.copies.are_given_up.store(true, Ordering::SeqCst);
        GivenUpCopies { copies: Arc::clone(&self.copies), _gate: gate }
    }

    /// Has copies keep the attributes of their source from now on.
    pub fn keep_attributes_of_copies(&self) {
        self.copies.keep_attributes.store(true, Ordering::SeqCst);
    }

    /// Accepts so many copies of staged bytes and keeps the objects before, as a store does whose clocks differ.
    pub fn ignore_copies(&self, times: usize) {
        self.copies.ignored.store(times, Ordering::SeqCst);
    }

    /// Refuses so many removals of objects with 403.
    pub fn refuse_removals(&self, times: usize) {
        self.refused_removals.store(times, Ordering::SeqCst);
    }

    /// How many removals it will still refuse.
    pub fn removals_to_refuse(&self) -> usize {
        self.refused_removals.load(Ordering::SeqCst)
    }

    /// The folder of the bucket: each object is a file at its key.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn serve(
    listener: TcpListener,
    service: S3Service,
    folder: PathBuf,
    copies: Arc<Copies>,
    refused_removals: Arc<AtomicUsize>,
) {
    let (changes, folder) = (Arc::new(RwLock::new(())), Arc::new(folder));
    while let Ok((stream, _)) = listener.accept().await {
        let (service, changes, folder) = (service.clone(), Arc::clone(&changes), Arc::clone(&folder));
        let (copies, refused_removals) = (Arc::clone(&copies), Arc::clone(&refused_removals));
        let respond = service_fn(move |request: Request<Incoming>| {
            let (service, changes, folder) = (service.clone(), Arc::clone(&changes), Arc::clone(&folder));
            let copies = copies.are_of(&request).then(|| Arc::clone(&copies));
            let is_refused = *request.method() == Method::DELETE && counts_down(&refused_removals);
            async move {
                if is_refused {
                    return Ok(failed(hyper::StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>"));
                }
                if copies.as_ref().is_some_and(|copies| counts_down(&copies.ignored)) {
                    return Ok(Response::new(Body::from("<CopyObjectResult/>".to_owned())));
                }
                let is_given_up = copies.as_ref().is_some_and(|copies| copies.are_given_up.load(Ordering::SeqCst));
                // A task, because a copy is carried out also after its client has closed the connection.
                let response = tokio::spawn(async move {
                    let _copy = match &copies {
                        Some(copies) => Some(copies.gate.read().await),
                        None => None,
                    };
                    respond(&service, &changes, &folder, request).await
                });
                if is_given_up {
                    return Ok::<_, Infallible>(failed(hyper::StatusCode::SERVICE_UNAVAILABLE, "please wait"));
                }
                Ok(response
                    .await
                    .unwrap_or_else(|error| failed(hyper::StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())))
            }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), respond);
        tokio::spawn(async move {
            // A client may close its connection at any time.
            let _ = connection.await;
        });
    }
}

async fn respond(
    service: &S3Service,
    changes: &RwLock<()>,
    folder: &Path,
    request: Request<Incoming>,
) -> Response<Body> {
    // s3s-fs creates a bucket that is missing.
    let bucket = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
    if !folder.join(bucket).is_dir() {
        let mut response = Response::new(Body::from("<Error><Code>NoSuchBucket</Code></Error>".to_owned()));
        *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        return response;
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let is_part = query.contains("partNumber=");
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD) && !is_part;
    let (_change, _read);
    if is_change {
        _change = changes.write().await;
    } else {
        _read = changes.read().await;
    }
    if let Some(source) = request.headers().get(COPY_SOURCE) {
        // s3s-fs writes a copy into the file of the old object, which others may be reading.
        let file = |key: &str| folder.join(percent_decoded(key.trim_start_matches('/')));
        if source.to_str().is_ok_and(|source| file(source).exists()) {
            let _ = std::fs::remove_file(file(request.uri().path()));
        }
    }
    let is_removal = *request.method() == Method::DELETE;
    let removed = folder.join(percent_decoded(request.uri().path().trim_start_matches('/')));
    match service.call(request.map(Body::from)).await {
        Ok(mut response) => {
            if response.status() == hyper::StatusCode::FORBIDDEN && is_of_no_upload(folder, &query) {
                // S3 says so; s3s-fs denies the access.
                response = Response::new(Body::from("<Error><Code>NoSuchUpload</Code></Error>".to_owned()));
                *response.status_mut() = hyper::StatusCode::NOT_FOUND;
            }
            if is_removal {
                // S3 has no folders; s3s-fs keeps the empty ones.
                let above_key = removed.ancestors().skip(1).take_while(|above| above.parent() != Some(folder));
                let _ = above_key.into_iter().try_for_each(std::fs::remove_dir);
            }
            response
        }
        Err(error) => failed(hyper::StatusCode::INTERNAL_SERVER_ERROR, &format!("{error:?}")),
    }
}

/// Whether a query names an upload in parts that is completed, aborted or was never begun.
fn is_of_no_upload(folder: &Path, query: &str) -> bool {
    let upload = query.split('&').find_map(|pair| pair.strip_prefix("uploadId="));
    upload.is_some_and(|upload| !folder.join(format!(".upload-{upload}.json")).exists())
}

fn failed(status: hyper::StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(message.to_owned()));
    *response.status_mut() = status;
    response
}

fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |byte: Option<u8>| char::from(byte.unwrap_or_default()).to_digit(16).unwrap_or_default();
        decoded.push(match byte {
            b'%' => u8::try_from(hex(bytes.next()) * 16 + hex(bytes.next())).unwrap_or_default(),
            byte => byte,
        });
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
