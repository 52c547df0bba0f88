//! Reading an object of a remote store.
//!
//! Invariant: all bytes are of one version. A request after the first one names the version or the etag of the first; if the
//! object was replaced since, it fails with `Unavailable`.

use std::{fmt, ops::Range, pin::Pin};

use bytes::Bytes;
use futures_core::Stream;
use object_store::{Attribute, GetOptions, GetRange, GetResult, path::Path};
use parking_lot::Mutex;

use super::{CallError, Remote, VERSION, next};
use crate::error::{Error, Result};

/// How much the first request asks for.
const HEAD: u64 = 1 << 20;

type Body = Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send>>;

pub(in crate::objects) struct RemoteReader {
    remote: Remote,
    path: Path,
    pub(in crate::objects) size: u64,
    pub(in crate::objects) version: Option<String>,
    /// The store's own names of the version.
    etag: Option<String>,
    store_version: Option<String>,
    /// The first bytes.
    head: Bytes,
    /// The position of the next chunk.
    position: u64,
    /// In a mutex, because a stream is not `Sync`.
    body: Option<Mutex<Body>>,
}

impl RemoteReader {
    /// Reads the attributes and the first bytes. `None` if there is no object.
    pub(super) async fn open(remote: &Remote, path: Path) -> Result<Option<RemoteReader>> {
        use object_store::Error::NotFound;
        let first = GetOptions { range: Some(GetRange::Bounded(0..HEAD)), ..GetOptions::default() };
        let found = match get(remote, &path, first).await {
            Err(CallError::Store(NotFound { .. })) => return Ok(None),
            // An empty object has no range: the stores answer 416, or the whole object.
            Err(CallError::Store(_)) => {
                match get(remote, &path, GetOptions { head: true, ..GetOptions::default() }).await {
                    Err(CallError::Store(NotFound { .. })) => return Ok(None),
                    found => found.map_err(CallError::into_error)?,
                }
            }
            found => found.map_err(CallError::into_error)?,
        };
        let version = found.attributes.get(&Attribute::Metadata(VERSION.into())).map(|value| value.to_string());
        let (meta, range) = (found.meta.clone(), found.range.clone());
        let head = if range.is_empty() || meta.size == 0 {
            Bytes::new()
        } else {
            remote.run(async move { found.bytes().await }).await.map_err(CallError::into_error)?
        };
        Ok(Some(RemoteReader {
            remote: remote.clone(),
            path,
            size: meta.size,
            version,
            etag: meta.e_tag,
            store_version: meta.version,
            head,
            position: 0,
            body: None,
        }))
    }

    pub(in crate::objects) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(self.size);
        let range = range.start.min(end)..end;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        if range.end <= self.head.len() as u64 {
            let position = |at: u64| usize::try_from(at).map_err(|_| Error::file(400, "the range is too large"));
            return Ok(self.head.slice(position(range.start)?..position(range.end)?));
        }
        let length = range.end - range.start;
        let mut body = self.get(range).await?;
        let mut bytes = bytes::BytesMut::with_capacity(usize::try_from(length).unwrap_or_default());
        loop {
            let (chunk, rest) = next_of(&self.remote, body).await?;
            body = rest;
            match chunk {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None if bytes.len() as u64 == length => return Ok(bytes.freeze()),
                None => return Err(Error::file(503, "The object store broke off its answer")),
            }
        }
    }

    pub(in crate::objects) async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        if self.position == self.size {
            return Ok(None);
        }
        if self.position == 0 && !self.head.is_empty() {
            self.position = self.head.len() as u64;
            return Ok(Some(self.head.clone()));
        }
        let body = match self.body.take() {
            Some(body) => body.into_inner(),
            None => self.get(self.position..self.size).await?,
        };
        let (chunk, body) = next_of(&self.remote, body).await?;
        let chunk = chunk.ok_or_else(|| Error::file(503, "The object store broke off its answer"))?;
        self.body = Some(Mutex::new(body));
        self.position += chunk.len() as u64;
        Ok(Some(chunk))
    }

    async fn get(&self, range: Range<u64>) -> Result<Body> {
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
        Ok(found.into_stream())
    }
}

async fn get(remote: &Remote, path: &Path, options: GetOptions) -> Result<GetResult, CallError> {
    let (called, path) = (remote.clone(), path.clone());
    remote.run(async move { called.store().get_opts(&path, options).await }).await
}

async fn next_of(remote: &Remote, mut body: Body) -> Result<(Option<Bytes>, Body)> {
    let next = async move { Ok((next(&mut body).await.transpose()?, body)) };
    remote.run(next).await.map_err(CallError::into_error)
}

impl fmt::Debug for RemoteReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteReader").field("path", &self.path).field("size", &self.size).finish_non_exhaustive()
    }
}
