//! Removes from a remote store what was sent to it and is not needed: uploads in parts that nobody completes, and staged objects.
//!
//! Invariant: an upload in parts is completed or aborted, also if its writer is dropped or the client is closed. Only the end of
//! the process leaves one in the store.

use std::{
    sync::{Arc, Weak, mpsc},
    time::Duration,
};

use object_store::{MultipartUpload, PutMultipartOptions, UploadPart, path::Path};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::{CALL_TIMEOUT, CallError, Remote};
use crate::error::{Error, Result};

/// How long `close` of a client waits for the store.
pub(in crate::objects) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What has to be removed from the store before the client is closed.
#[derive(Default)]
pub(super) struct Cleanups(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    tasks: Vec<JoinHandle<()>>,
    uploads: Vec<Weak<OpenUpload>>,
}

/// An upload in parts. Dropping it aborts it, unless it was completed.
pub(super) struct OpenUpload {
    remote: Remote,
    /// `None` when it is completed or aborted.
    upload: tokio::sync::Mutex<Option<Box<dyn MultipartUpload>>>,
}

impl OpenUpload {
    /// Begins an upload.
    pub(super) async fn begin(remote: &Remote, path: Path, options: PutMultipartOptions) -> Result<Arc<OpenUpload>> {
        OpenUpload::begin_call(remote, path, options).await.map_err(CallError::into_error)
    }

    /// Does what [`begin`](OpenUpload::begin) does, for a caller with errors of its own.
    pub(super) async fn begin_call(
        remote: &Remote,
        path: Path,
        options: PutMultipartOptions,
    ) -> Result<Arc<OpenUpload>, CallError> {
        let called = remote.clone();
        let begin = async move {
            let upload = called.store().put_multipart_opts(&path, options).await?;
            let upload = tokio::sync::Mutex::new(Some(upload));
            let upload = Arc::new(OpenUpload { remote: called.clone(), upload });
            let mut pending = called.0.cleanups.0.lock();
            pending.uploads.retain(|upload| upload.strong_count() > 0);
            pending.uploads.push(Arc::downgrade(&upload));
            drop(pending);
            // If the caller has dropped its future, the result is dropped, which aborts the upload.
            Ok(upload)
        };
        remote.run(begin).await
    }

    /// The call that sends the next part.
    pub(super) async fn put_part(&self, payload: object_store::PutPayload) -> Result<UploadPart> {
        let mut upload = self.upload.lock().await;
        Ok(upload.as_mut().ok_or_else(Error::closed)?.put_part(payload))
    }

    /// Completes the upload.
    pub(super) async fn complete(&self) -> object_store::Result<()> {
        let mut upload = self.upload.lock().await;
        if let Some(open) = upload.as_mut() {
            open.complete().await?;
            *upload = None;
            return Ok(());
        }
        Err(object_store::Error::Generic { store: "Remote", source: Box::new(Error::closed()) })
    }

    pub(super) async fn abort(&self) {
        let mut slot = self.upload.lock().await;
        if let Some(upload) = slot.take() {
            abort(upload).await;
        }
    }
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.get_mut().take() {
            self.remote.clean_up(abort(upload));
        }
    }
}

async fn abort(mut upload: Box<dyn MultipartUpload>) {
    let aborted = tokio::time::timeout(CALL_TIMEOUT, upload.abort()).await;
    if !matches!(aborted, Ok(Ok(()))) {
        tracing::warn!("an upload in parts may stay in the object store");
    }
}

impl Remote {
    /// Starts to remove something from the store. `close` waits for it.
    pub(super) fn clean_up(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.0.runtime.spawn(task);
        let mut pending = self.0.cleanups.0.lock();
        pending.tasks.retain(|task| !task.is_finished());
        pending.tasks.push(task);
    }

    /// Aborts the open uploads and waits for what is being removed, for `timeout`. Blocks the thread.
    pub(in crate::objects) fn end_uploads(&self, timeout: Duration) {
        let Pending { tasks, uploads } = std::mem::take(&mut *self.0.cleanups.0.lock());
        let uploads: Vec<_> = uploads.iter().filter_map(Weak::upgrade).collect();
        if uploads.is_empty() && tasks.iter().all(JoinHandle::is_finished) {
            return;
        }
        let (done, ended) = mpsc::channel();
        self.0.runtime.spawn(async move {
            for task in tasks {
                let _ = task.await;
            }
            for upload in uploads {
                upload.abort().await;
            }
            let _ = done.send(());
        });
        if ended.recv_timeout(timeout).is_err() {
            tracing::warn!("staged bytes may stay in the object store");
        }
    }
}

crate::model::opaque!(OpenUpload);
