//! Removes from a remote store what was sent to it and is not needed: uploads in parts that nobody completes, and staged objects.
//!
//! Invariant: an upload in parts is completed or aborted, also if its writer is dropped or the client is closed. A removal that
//! fails is repeated, for as long as [`Attempts`] allows. What stays in the store: an upload that was open when the process ended,
//! or whose abort failed until then, and one that the store began without an answer.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::future::{join, join_all};
use object_store::{MultipartUpload, PutMultipartOptions, UploadPart, path::Path};
use parking_lot::Mutex;
use tokio::{sync::Notify, task::JoinHandle};

use super::{CALL_TIMEOUT, CallError, Remote, write_failed};
use crate::error::{Error, Result};

/// How long `close` of a client waits for the store.
pub(in crate::objects) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What has to be removed from the store before the client is closed.
#[derive(Default)]
pub(super) struct Cleanups {
    pending: Mutex<Pending>,
    is_closing: AtomicBool,
    /// Ends the pauses of [`Attempts`].
    closing: Notify,
}

/// The pause after the first failure of a removal. Each further pause is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(2);

const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How often a removal is repeated: for half an hour.
const MOST_ATTEMPTS: u32 = 12;

/// How many removals are repeated at a time. More of them are tried once.
const MOST_REPEATED: usize = 1_000;

/// The attempts to remove one thing from a store that fails.
#[derive(Default)]
pub(super) struct Attempts(u32);

impl Attempts {
    /// Waits before the next attempt. False if there is none. When the client is closed, there is one last attempt, at once.
    pub(super) async fn again(&mut self, remote: &Remote) -> bool {
        let cleanups = &remote.0.cleanups;
        let closing = cleanups.closing.notified();
        let is_one_of_few = cleanups.pending.lock().tasks.len() <= MOST_REPEATED;
        if cleanups.is_closing.load(Ordering::SeqCst) || self.0 >= MOST_ATTEMPTS || !is_one_of_few {
            return false;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.0).min(LONGEST_PAUSE);
        self.0 += 1;
        // Both outcomes, the end of the pause and the end of the client, start an attempt.
        let _ = tokio::time::timeout(pause, closing).await;
        true
    }
}

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
        OpenUpload::begin_call(remote, path, options).await.map_err(write_failed)
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
            let mut pending = called.0.cleanups.pending.lock();
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
            abort(&self.remote, upload).await;
        }
    }
}

impl Drop for OpenUpload {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.get_mut().take() {
            let remote = self.remote.clone();
            self.remote.clean_up(async move { abort(&remote, upload).await });
        }
    }
}

async fn abort(remote: &Remote, mut upload: Box<dyn MultipartUpload>) {
    let mut attempts = Attempts::default();
    loop {
        let aborted = tokio::time::timeout(CALL_TIMEOUT, upload.abort()).await;
        if matches!(aborted, Ok(Ok(()) | Err(object_store::Error::NotFound { .. }))) {
            return;
        }
        if !attempts.again(remote).await {
            tracing::warn!("an upload in parts may stay in the object store");
            return;
        }
    }
}

impl Remote {
    /// Starts to remove something from the store. `close` waits for it.
    pub(super) fn clean_up(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.0.runtime.spawn(task);
        let mut pending = self.0.cleanups.pending.lock();
        pending.tasks.retain(|task| !task.is_finished());
        pending.tasks.push(task);
    }

    /// Aborts the open uploads and waits for what is being removed, for `timeout`. Blocks the thread.
    pub(in crate::objects) fn end_uploads(&self, timeout: Duration) {
        let cleanups = &self.0.cleanups;
        cleanups.is_closing.store(true, Ordering::SeqCst);
        cleanups.closing.notify_waiters();
        let Pending { tasks, uploads } = std::mem::take(&mut *cleanups.pending.lock());
        let uploads: Vec<_> = uploads.iter().filter_map(Weak::upgrade).collect();
        if uploads.is_empty() && tasks.iter().all(JoinHandle::is_finished) {
            return;
        }
        let (done, ended) = mpsc::channel();
        self.0.runtime.spawn(async move {
            // Together: one that fails must not take the time of the others.
            join(join_all(tasks), join_all(uploads.iter().map(|upload| upload.abort()))).await;
            let _ = done.send(());
        });
        if ended.recv_timeout(timeout).is_err() {
            tracing::warn!("staged bytes may stay in the object store");
        }
    }
}

crate::model::opaque!(OpenUpload);
