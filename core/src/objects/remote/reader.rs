//! Reading an object of a remote store.
//!
//! Invariant: all bytes are of one version. The request that opens the object asks for the whole range that the caller wants, and
//! reads in the order of the bytes are served from its answer, which other writers do not affect. A store in memory serves all reads
//! from that answer. Any other request names the version or the etag of the first; if the object was replaced since, it fails with
//! `Unavailable`.

use std::{fmt, ops::Range, pin::Pin};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use object_store::{Attribute, GetOptions, GetRange, GetResult, path::Path};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{CALL_TIMEOUT, CallError, Remote, VERSION, next};
use crate::{
    error::{Error, Result},
    objects::ObjectStat,
};

/// An answer up to this size is read when the object is opened.
const SMALL: u64 = 1 << 20;

type Chunks = Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send>>;

/// An answer that is being read.
struct Body {
    /// The position of the next byte.
    at: u64,
    /// The part of a chunk that was not asked for yet.
    rest: Bytes,
    chunks: Chunks,
}

pub(in crate::objects) struct RemoteReader {
    remote: Remote,
    pub(super) path: Path,
    pub(in crate::objects) size: u64,
    pub(in crate::objects) version: Option<String>,
    /// The store's own names of the version.
    pub(super) etag: Option<String>,
    store_version: Option<String>,
    /// The bytes of a small answer, and the position of the first.
    loaded: (u64, Bytes),
    /// In a mutex, because a stream is not `Sync`. `None` while it is read.
    body: Mutex<Option<Body>>,
}

impl RemoteReader {
    /// Opens an object for reading `range`, or all of it. `None` if there is no object.
    pub(super) async fn open(remote: &Remote, path: Path, range: Option<Range<u64>>) -> Result<Option<RemoteReader>> {
        use object_store::Error::NotFound;
        let head = || GetOptions { head: true, ..GetOptions::default() };
        let options = match range {
            None => GetOptions::default(),
            Some(range) if range.is_empty() => head(),
            Some(range) => GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() },
        };
        let (mut is_head, has_range) = (options.head, options.range.is_some());
        let found = match get(remote, &path, options).await {
            // The object is shorter than the caller thinks.
            Err(CallError::Store(error)) if has_range && may_be_of_range(&error) => {
                is_head = true;
                get(remote, &path, head()).await
            }
            found => found,
        };
        let found = match found {
            Err(CallError::Store(NotFound { .. })) => return Ok(None),
            found => found.map_err(CallError::into_error)?,
        };
        let version = version_of(&found);
        let (meta, range) = (found.meta.clone(), found.range.clone());
        let mut reader = RemoteReader {
            remote: remote.clone(),
            path,
            size: meta.size,
            version,
            etag: meta.e_tag,
            store_version: meta.version,
            loaded: (range.start, Bytes::new()),
            body: Mutex::default(),
        };
        if is_head || range.is_empty() {
            return Ok(Some(reader));
        }
        let body = Body { at: range.start, rest: Bytes::new(), chunks: found.into_stream() };
        if range.end - range.start <= SMALL {
            reader.loaded.1 = body.read(remote, range.end).await?.1;
        } else if remote.has_locks() {
            // A store in memory answers with the bytes that it has, which stay as they are when the object is replaced.
            reader.loaded.1 = body.next_chunk(remote).await?.1;
        } else {
            reader.body = Mutex::new(Some(body));
        }
        Ok(Some(reader))
    }

    pub(in crate::objects) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(self.size);
        let range = range.start.min(end)..end;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if let Some(loaded) = self.loaded_part(&range)? {
            return Ok(loaded);
        }
        let open = self.body.lock().take_if(|body| body.at == range.start);
        // A store may close an answer that is not read for long.
        if let Some(body) = open {
            match body.read(&self.remote, range.end).await {
                Ok((body, bytes)) => {
                    if body.at < self.size {
                        *self.body.lock() = Some(body);
                    }
                    return Ok(bytes);
                }
                // Another answer would not come faster.
                Err(error) if error.status() == 504 => return Err(error),
                Err(_) => {}
            }
        }
        let end = range.end;
        Ok(self.get(range).await?.read(&self.remote, end).await?.1)
    }

    /// The store's own name of the version that the object has now. `None` if there is no object.
    pub(super) async fn etag_now(&self) -> Result<Option<String>, CallError> {
        match get(&self.remote, &self.path, GetOptions { head: true, ..GetOptions::default() }).await {
            Err(CallError::Store(object_store::Error::NotFound { .. })) => Ok(None),
            found => Ok(found?.meta.e_tag),
        }
    }

    /// A range of the loaded bytes. `None` if they do not contain it.
    fn loaded_part(&self, range: &Range<u64>) -> Result<Option<Bytes>> {
        let (start, bytes) = &self.loaded;
        if range.start < *start || range.end > start + bytes.len() as u64 {
            return Ok(None);
        }
        let place = |at: u64| usize::try_from(at - start).map_err(|_| Error::file(400, "the range is too large"));
        Ok(Some(bytes.slice(place(range.start)?..place(range.end)?)))
    }

    async fn get(&self, range: Range<u64>) -> Result<Body> {
        let at = range.start;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.etag.clone(),
            version: self.store_version.clone(),
            ..GetOptions::default()
        };
        let found = get(&self.remote, &self.path, options).await.map_err(|error| match error {
            CallError::Store(object_store::Error::NotFound { .. }) => {
                Error::file(503, "The object changed while it was read")
            }
            error => error.into_error(),
        })?;
        // Some servers ignore `If-Match`.
        if found.meta.e_tag != self.etag {
            return Err(Error::file(503, "The object changed while it was read"));
        }
        Ok(Body { at, rest: Bytes::new(), chunks: found.into_stream() })
    }
}

impl Body {
    /// Reads up to `end`, with a time limit for each mebibyte, so that an answer without an end does not hold its reader for ever.
    async fn read(mut self, remote: &Remote, end: u64) -> Result<(Body, Bytes)> {
        let length = usize::try_from(end - self.at).map_err(|_| Error::file(400, "the range is too large"))?;
        // The store says how long its answer is, and may be wrong.
        let mut bytes = BytesMut::with_capacity(length.min(SMALL as usize));
        let mebibytes = u32::try_from(length >> 20).unwrap_or(u32::MAX);
        let (start, limit) = (Instant::now(), CALL_TIMEOUT.saturating_mul(mebibytes.saturating_add(1)));
        while bytes.len() < length {
            if start.elapsed() >= limit {
                return Err(Error::file(504, "The object store answers too slowly"));
            }
            let (body, mut chunk) = self.next_chunk(remote).await?;
            self = body;
            let surplus = (bytes.len() + chunk.len()).saturating_sub(length);
            self.rest = chunk.split_off(chunk.len() - surplus);
            self.at -= surplus as u64;
            bytes.extend_from_slice(&chunk);
        }
        Ok((self, bytes.freeze()))
    }

    async fn next_chunk(mut self, remote: &Remote) -> Result<(Body, Bytes)> {
        let mut chunk = std::mem::take(&mut self.rest);
        if chunk.is_empty() {
            let next = async move { Ok((next(&mut self.chunks).await.transpose()?, self)) };
            let (found, body) = remote.run(next).await.map_err(CallError::into_error)?;
            chunk = found.ok_or_else(|| Error::file(503, "The object store broke off its answer"))?;
            self = body;
        }
        self.at += chunk.len() as u64;
        Ok((self, chunk))
    }
}

/// Whether an error may mean that the object has no such range. A store that denies the access, is busy or gives no answer says so
/// to a second request too.
fn may_be_of_range(error: &object_store::Error) -> bool {
    use object_store::Error::{NotFound, PermissionDenied, Unauthenticated};
    !matches!(error, NotFound { .. } | PermissionDenied { .. } | Unauthenticated { .. }) && !is_out_of_reach(error)
}

/// Whether a store is busy or gave no answer.
pub(super) fn is_out_of_reach(error: &object_store::Error) -> bool {
    let text = error.to_string();
    super::no_answer(error).is_some()
        || ["status code: 5", "status code: 429"].iter().any(|status| text.contains(status))
}

/// Size and version of an object. `None` if there is none.
pub(super) async fn stat(remote: &Remote, path: &Path) -> Result<Option<ObjectStat>> {
    match get(remote, path, GetOptions { head: true, ..GetOptions::default() }).await {
        Err(CallError::Store(object_store::Error::NotFound { .. })) => Ok(None),
        Err(error) => Err(error.into_error()),
        Ok(found) => Ok(Some(ObjectStat { size: found.meta.size, version: version_of(&found) })),
    }
}

fn version_of(found: &GetResult) -> Option<String> {
    found.attributes.get(&Attribute::Metadata(VERSION.into())).map(|value| value.to_string())
}

async fn get(remote: &Remote, path: &Path, options: GetOptions) -> Result<GetResult, CallError> {
    let (called, path) = (remote.clone(), path.clone());
    remote.run(async move { called.store().get_opts(&path, options).await }).await
}

impl fmt::Debug for RemoteReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteReader").field("path", &self.path).field("size", &self.size).finish_non_exhaustive()
    }
}
