//! Staging in a remote store: a small file in one request, a larger one in parts.
//!
//! Invariant: a [`RemoteStage`] or [`RemoteStaged`] that is dropped removes what it has sent, unless its install failed with an
//! unknown outcome. At most two parts are in memory.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{Attribute, Attributes, PutMultipartOptions, PutOptions, PutPayload};
use uuid::Uuid;

use super::{
    CALL_TIMEOUT, CallError, MAX_COPY, Remote, VERSION,
    cleanup::{Attempts, OpenUpload},
    copy_timeout, reader, write_failed,
};
use crate::{
    error::{Error, Result},
    objects::{ObjectAttributes, hashing::Digester},
};

/// The size of a part in a store that is not simulated.
pub(super) const PART: usize = 8 << 20;
type Sending = tokio::task::JoinHandle<object_store::Result<()>>;

/// Bytes on their way to a staged object.
#[derive(Debug)]
pub(in crate::objects) struct RemoteStage {
    remote: Remote,
    pub(in crate::objects) id: String,
    version: Option<String>,
    attributes: Attributes,
    size: u64,
    pending: Vec<Bytes>,
    pending_size: usize,
    digester: Digester,
    /// The upload in parts, from the first full part on.
    upload: Option<Arc<OpenUpload>>,
    sending: Option<Sending>,
}

/// A staged object.
#[derive(Debug)]
pub(in crate::objects) struct RemoteStaged {
    remote: Remote,
    id: String,
    /// [`ObjectAttributes::version`].
    version: Option<String>,
    /// Whether the stage stays when this value is dropped: the store may be installing it, or the install has to be repeated.
    pub(super) is_kept: bool,
}

impl RemoteStage {
    pub(super) fn new(remote: Remote, attributes: ObjectAttributes) -> RemoteStage {
        RemoteStage {
            remote,
            id: Uuid::new_v4().simple().to_string(),
            version: attributes.version.clone(),
            attributes: to_attributes(attributes),
            size: 0,
            pending: Vec::new(),
            pending_size: 0,
            digester: Digester::default(),
            upload: None,
            sending: None,
        }
    }

    pub(in crate::objects) async fn write(&mut self, mut data: Bytes) -> Result<()> {
        self.size += data.len() as u64;
        if self.size > MAX_COPY {
            return Err(Error::file(413, "the object store takes files up to 5 GiB"));
        }
        let part_size = self.remote.0.part_size;
        let is_split = self.pending_size + data.len() >= part_size;
        while self.pending_size + data.len() >= part_size {
            let part = data.split_to(part_size - self.pending_size);
            self.push(part);
            self.send_part().await?;
        }
        // The rest of a chunk would keep all of it in memory until the next part.
        self.push(if is_split { Bytes::copy_from_slice(&data) } else { data });
        Ok(())
    }

    fn push(&mut self, data: Bytes) {
        self.pending_size += data.len();
        if !data.is_empty() {
            self.pending.push(data);
        }
    }

    pub(in crate::objects) async fn finish(mut self) -> Result<(RemoteStaged, u64, String)> {
        // Dropping it removes the staged object, also if the caller drops the future while the store completes the call.
        let staged = RemoteStaged {
            remote: self.remote.clone(),
            id: self.id.clone(),
            version: self.version.take(),
            is_kept: false,
        };
        let staged = if self.upload.is_none() {
            let payload = self.take_payload().await?;
            let (remote, path) = (self.remote.clone(), self.remote.staging_path(&self.id)?);
            let options = PutOptions { attributes: std::mem::take(&mut self.attributes), ..PutOptions::default() };
            let put = async move {
                remote.store().put_opts(&path, payload, options).await?;
                Ok(staged)
            };
            self.remote.run(put).await.map_err(write_failed)?
        } else {
            if self.pending_size > 0 {
                self.send_part().await?;
            }
            self.join_part().await?;
            let upload = self.upload.take().ok_or_else(Error::closed)?;
            let complete = async move { Ok((upload.complete().await, staged)) };
            let completed = self.remote.run_within(copy_timeout(self.size), complete).await;
            let (completed, staged) = completed.map_err(CallError::into_error)?;
            if let Err(error) = completed
                && !is_completed(&self.remote, &self.id, self.size, &error).await
            {
                return Err(failed_upload(error));
            }
            staged
        };
        let digest = self.digester.finish().await?;
        Ok((staged, self.size, digest))
    }

    /// Starts to send the pending bytes as a part. Waits for the part before.
    async fn send_part(&mut self) -> Result<()> {
        let upload = match &self.upload {
            Some(upload) => Arc::clone(upload),
            None => {
                let options = PutMultipartOptions::from(self.attributes.clone());
                let begin = OpenUpload::begin(&self.remote, self.remote.staging_path(&self.id)?, options);
                Arc::clone(self.upload.insert(begin.await?))
            }
        };
        let payload = self.take_payload().await?;
        self.join_part().await?;
        let part = upload.put_part(payload).await?;
        let timeout = async move {
            tokio::time::timeout(CALL_TIMEOUT, part).await.unwrap_or_else(|elapsed| {
                Err(object_store::Error::Generic { store: "Remote", source: Box::new(elapsed) })
            })
        };
        self.sending = Some(self.remote.0.runtime.spawn(timeout));
        Ok(())
    }

    async fn join_part(&mut self) -> Result<()> {
        if let Some(sending) = &mut self.sending {
            let outcome = sending.await;
            self.sending = None;
            let outcome = outcome.map_err(|_| Error::closed())?;
            outcome.map_err(failed_upload)?;
        }
        Ok(())
    }

    async fn take_payload(&mut self) -> Result<PutPayload> {
        self.pending_size = 0;
        let data = std::mem::take(&mut self.pending);
        self.digester.update(&self.remote.0.runtime.blocking, data.as_slice().into()).await?;
        Ok(PutPayload::from_iter(data))
    }
}

/// Whether an upload is completed although its call failed: the answer may be lost, and a repeated call finds no upload.
async fn is_completed(remote: &Remote, id: &str, size: u64, error: &object_store::Error) -> bool {
    let Ok(path) = remote.staging_path(id) else { return false };
    use object_store::Error::{PermissionDenied, Unauthenticated};
    !matches!(error, PermissionDenied { .. } | Unauthenticated { .. })
        && matches!(reader::stat(remote, &path).await, Ok(Some(found)) if found.size == size)
}

/// The failure of an upload that had begun.
fn failed_upload(error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => {
            Error::file(503, "The object store has removed the upload before it was complete").caused_by(error)
        }
        error => CallError::Store(error).into_error(),
    }
}

impl Drop for RemoteStage {
    fn drop(&mut self) {
        if let (Some(upload), Some(sending)) = (self.upload.take(), self.sending.take()) {
            // A part that arrives after the upload is aborted could stay in the store.
            self.remote.clean_up(async move {
                let _ = sending.await;
                drop(upload);
            });
        }
    }
}

impl RemoteStaged {
    /// A stage that the store is about to write in one request.
    pub(super) fn begin(remote: &Remote, version: Option<String>) -> RemoteStaged {
        let id = Uuid::new_v4().simple().to_string();
        RemoteStaged { remote: remote.clone(), id, version, is_kept: false }
    }

    pub(in crate::objects) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

impl Drop for RemoteStaged {
    fn drop(&mut self) {
        if !self.is_kept {
            self.remote.discard_later(std::mem::take(&mut self.id));
        }
    }
}

impl Remote {
    /// Removes a stage in the background.
    pub(in crate::objects) fn discard_later(&self, id: String) {
        let remote = self.clone();
        let discard = async move {
            let mut attempts = Attempts::default();
            while let Err(error) = remote.discard(&id).await {
                if !attempts.again(&remote).await {
                    tracing::debug!(%error, "a staged object was not removed");
                    return;
                }
            }
        };
        self.clean_up(discard);
    }
}

pub(super) fn to_attributes(given: ObjectAttributes) -> Attributes {
    let mut attributes = Attributes::new();
    let mut set = |attribute, value: Option<String>| value.map(|value| attributes.insert(attribute, value.into()));
    set(Attribute::ContentType, given.content_type);
    set(Attribute::CacheControl, given.cache_control);
    set(Attribute::Metadata(VERSION.into()), given.version);
    // The version is not the user's.
    for (name, value) in given.metadata.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case(VERSION)) {
        set(Attribute::Metadata(name.into()), Some(value));
    }
    attributes
}
