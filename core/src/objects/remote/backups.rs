//! Backups in a remote store, for the command: a folder of objects, each of which is written once.
//!
//! Invariant: an object appears when its upload is completed, whole, and replaces no object. S3 checks this when it completes the
//! upload. Another store is asked just before, because `object_store` has no condition for an upload in parts. At most two parts
//! are in memory.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use object_store::{Attribute, Attributes, ObjectStoreExt, PutMultipartOptions, PutPayloadMut, path::Path};
use uuid::Uuid;

use super::{
    CALL_TIMEOUT, CHUNK, COMPLETE_TIMEOUT, CallError, Connected, Existing, Remote, RemoteReader, VERSION,
    cleanup::OpenUpload, connect, denial, no_answer, part, reader,
};
use crate::{
    config::remote_store,
    error::{Error, ErrorKind, Result},
    threads::Runtime,
};

/// The smallest part. All parts but the last have the same size, which some stores require.
const SMALLEST_PART: u64 = 8 << 20;

/// The most parts of an upload. The limit of S3 is 10,000; the size of a backup is an estimate.
const MOST_PARTS: u64 = 9_000;

/// The size of the allocations of a part. Whole parts, freed by other threads, could leave gaps in the heap that no part fits in.
const BLOCK: usize = 64 << 10;

/// The largest object of S3.
const MAX_SIZE: u64 = 5 << 40;

/// How long [`BackupStore::close`] waits for the store.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Objects below one path of a remote store. It has threads of its own, because a restore has no client.
pub struct BackupStore {
    remote: Remote,
    runtime: Runtime,
}

/// An upload. Dropping it aborts it, unless [`finish`](BackupUpload::finish) completed it.
#[derive(Debug)]
pub struct BackupUpload {
    remote: Remote,
    path: Path,
    part_size: usize,
    /// The part that is sent next.
    part: PutPayloadMut,
    /// Tells this object from one that another process has made.
    version: String,
    upload: Option<Arc<OpenUpload>>,
    sending: Option<tokio::task::JoinHandle<object_store::Result<()>>>,
}

/// An object that is being read, from its beginning to its end.
#[derive(Debug)]
pub struct BackupDownload {
    reader: RemoteReader,
    position: u64,
}

impl BackupStore {
    /// Sets up the store of a URL, which names a folder. It is not called yet. The URL has the form of the option `storage_url`.
    ///
    /// # Errors
    /// `Config` if the URL is not valid. The message does not show it.
    pub fn of_folder(url: &str) -> Result<BackupStore> {
        let (store, path) = BackupStore::connect(url)?;
        store(path)
    }

    /// Does what [`of_folder`](BackupStore::of_folder) does for the folder of the object that the URL names. Also returns the
    /// object's name in it.
    ///
    /// # Errors
    /// Those of `of_folder`; `Config` if the URL names only a bucket.
    pub fn of_object(url: &str) -> Result<(BackupStore, String)> {
        let (store, path) = BackupStore::connect(url)?;
        let mut parts: Vec<_> = path.parts().collect();
        let name = parts.pop().ok_or_else(|| Error::config("The URL names a bucket and no object in it"))?;
        let name = name.as_ref().to_owned();
        Ok((store(Path::from_iter(parts))?, name))
    }

    fn connect(url: &str) -> Result<(impl FnOnce(Path) -> Result<BackupStore>, Path)> {
        let (url, environment) =
            remote_store(url).map_err(|why| Error::config(format!("The URL of the object store {why}")))?;
        let connected = connect::connect(&url, &environment, Existing::Refuse);
        let connected = connected.map_err(|error| {
            // The error has the name of the option, and no source with more.
            Error::config(error.message().replace("Option storage_url", "The URL of the object store"))
        })?;
        let path = connected.prefix.clone();
        let open = move |prefix| {
            let (runtime, connected) = (Runtime::start()?, Connected { prefix, ..connected });
            Ok(BackupStore { remote: Remote::of(connected, &url, runtime.handle().clone()), runtime })
        };
        Ok((open, path))
    }

    /// Whether there is an object.
    ///
    /// # Errors
    /// `Forbidden` if the store denies the access; `Unavailable` if it does not answer.
    pub async fn exists(&self, name: &str) -> Result<bool> {
        exists(&self.remote, self.path(name)?).await
    }

    /// Begins an upload to a name, and aborts it. There may be an object of this name.
    ///
    /// # Errors
    /// `NotFound` if there is no such bucket; `Forbidden` if the store denies to write; `Unavailable` if it does not answer.
    pub async fn check_writing(&self, name: &str) -> Result<()> {
        self.begin(self.path(name)?, 0).await.map(drop)
    }

    /// The names of the objects of the folder, without those in folders of it.
    ///
    /// # Errors
    /// Those of [`check_writing`](BackupStore::check_writing).
    pub async fn list(&self) -> Result<Vec<String>> {
        let (remote, prefix) = (self.remote.clone(), self.remote.0.prefix.clone());
        let list = async move { remote.store().list_with_delimiter(Some(&prefix)).await };
        let found = self.remote.run(list).await.map_err(failed)?;
        Ok(found.objects.iter().filter_map(|object| object.location.filename().map(ToOwned::to_owned)).collect())
    }

    /// Removes an object. Succeeds if there is none.
    ///
    /// # Errors
    /// `Forbidden` if the store denies it; `Unavailable` if it does not answer.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let (remote, path) = (self.remote.clone(), self.path(name)?);
        match self.remote.run(async move { remote.store().delete(&path).await }).await {
            Err(CallError::Store(object_store::Error::NotFound { .. })) => Ok(()),
            removed => removed.map_err(failed),
        }
    }

    /// Begins an upload of at most `size` bytes.
    ///
    /// # Errors
    /// `AlreadyExists` if there is an object of this name; `TooLarge` if the store takes no object of this size; those of
    /// [`check_writing`](BackupStore::check_writing).
    pub async fn upload(&self, name: &str, size: u64) -> Result<BackupUpload> {
        let path = self.path(name)?;
        if size > MAX_SIZE {
            return Err(Error::new(ErrorKind::TooLarge, "The object store takes objects up to 5 TiB"));
        }
        if exists(&self.remote, path.clone()).await? {
            return Err(object_exists());
        }
        self.begin(path, size).await
    }

    async fn begin(&self, path: Path, size: u64) -> Result<BackupUpload> {
        let version = Uuid::new_v4().simple().to_string();
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(VERSION.into()), version.clone().into());
        attributes.insert(Attribute::ContentType, "application/x-tar".into());
        let options = PutMultipartOptions::from(attributes);
        let upload = OpenUpload::begin_call(&self.remote, path.clone(), options).await.map_err(failed)?;
        let part_size = usize::try_from(size.div_ceil(MOST_PARTS).next_multiple_of(1 << 20).max(SMALLEST_PART))
            .map_err(|_| Error::new(ErrorKind::TooLarge, "This machine has no room for the parts of the object"))?;
        Ok(BackupUpload {
            remote: self.remote.clone(),
            path,
            part_size,
            part: new_part(),
            version,
            upload: Some(upload),
            sending: None,
        })
    }

    /// Opens an object and returns it with its size in bytes.
    ///
    /// # Errors
    /// `NotFound` if there is no such object; `Forbidden` if the store denies the access; `Unavailable` if it does not answer.
    pub async fn download(&self, name: &str) -> Result<(BackupDownload, u64)> {
        let path = self.path(name)?;
        // Its errors are those of this module.
        let is_there = exists(&self.remote, path.clone()).await?;
        let reader = if is_there { RemoteReader::open(&self.remote, path, None).await? } else { None };
        let reader = reader.ok_or_else(|| Error::new(ErrorKind::NotFound, "The object store has no such object"))?;
        let size = reader.size;
        Ok((BackupDownload { reader, position: 0 }, size))
    }

    /// Waits until the uploads that were dropped are aborted, and ends the threads. Blocks the thread.
    pub fn close(self) {
        self.remote.end_uploads(CLOSE_TIMEOUT);
        self.runtime.shut_down();
    }

    fn path(&self, name: &str) -> Result<Path> {
        Ok(self.remote.0.prefix.clone().join(part(name)?))
    }
}

impl BackupUpload {
    /// Adds bytes to the part that is sent next, until it is full. Returns how many.
    pub fn add(&mut self, bytes: &[u8]) -> usize {
        let room = self.part_size - self.part.content_length();
        let added = bytes.get(..room).unwrap_or(bytes);
        self.part.extend_from_slice(added);
        added.len()
    }

    /// Whether the part that is sent next takes no more bytes.
    pub fn is_full(&self) -> bool {
        self.part.content_length() == self.part_size
    }

    /// Starts to send the part that was added, if it has bytes. Waits for the part before.
    ///
    /// # Errors
    /// `Forbidden` if the store denies the access; `Unavailable` if it does not answer.
    pub async fn send(&mut self) -> Result<()> {
        self.join_part().await?;
        if self.part.is_empty() {
            return Ok(());
        }
        let upload = self.upload.as_ref().ok_or_else(Error::closed)?;
        let megabytes = u32::try_from(self.part.content_length() >> 20).unwrap_or(u32::MAX);
        let part = std::mem::replace(&mut self.part, new_part()).freeze();
        let part = upload.put_part(part).await?;
        // The calls of a part are repeated if the store does not answer, and a slow line has time for each of its megabytes.
        let timeout = CALL_TIMEOUT.saturating_mul(megabytes.saturating_add(1));
        self.sending = Some(self.remote.0.runtime.spawn(async move {
            tokio::time::timeout(timeout, part).await.unwrap_or_else(|elapsed| {
                Err(object_store::Error::Generic { store: "Remote", source: Box::new(elapsed) })
            })
        }));
        Ok(())
    }

    /// Sends the rest and completes the upload: now the object is there.
    ///
    /// # Errors
    /// `AlreadyExists` if there is an object of this name meanwhile; those of [`send`](BackupUpload::send).
    pub async fn finish(mut self) -> Result<()> {
        self.send().await?;
        self.join_part().await?;
        if exists(&self.remote, self.path.clone()).await? {
            return Err(object_exists());
        }
        let upload = self.upload.take().ok_or_else(Error::closed)?;
        let complete = async move { tokio::time::timeout(COMPLETE_TIMEOUT, upload.complete()).await };
        let error = match self.remote.0.runtime.spawn(complete).await {
            Ok(Ok(Ok(()))) => return Ok(()),
            Ok(Ok(Err(error))) => failed_upload(error),
            Ok(Err(_)) => Error::unavailable("The object store does not answer in time"),
            Err(_) => Error::closed(),
        };
        // The answer may be lost, and a repeated call finds an upload that is completed.
        match reader::stat(&self.remote, &self.path).await {
            Ok(Some(found)) if found.version.as_deref() == Some(&*self.version) => Ok(()),
            _ => Err(error),
        }
    }

    async fn join_part(&mut self) -> Result<()> {
        if let Some(sending) = &mut self.sending {
            let sent = sending.await;
            self.sending = None;
            sent.map_err(|_| Error::closed())?.map_err(failed_upload)?;
        }
        Ok(())
    }
}

impl Drop for BackupUpload {
    fn drop(&mut self) {
        if let (Some(upload), Some(sending)) = (self.upload.take(), self.sending.take()) {
            // A part that arrives after the upload is aborted could stay in the store.
            sending.abort();
            self.remote.clean_up(async move {
                let _ = sending.await;
                upload.abort().await;
            });
        }
    }
}

impl BackupDownload {
    /// The next bytes. `None` at the end.
    ///
    /// # Errors
    /// `Unavailable` if the store does not answer, or if the object was replaced.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let bytes = self.reader.read(self.position..self.position.saturating_add(CHUNK)).await?;
        self.position += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}

fn new_part() -> PutPayloadMut {
    PutPayloadMut::new().with_block_size(BLOCK)
}

async fn exists(remote: &Remote, path: Path) -> Result<bool> {
    let called = remote.clone();
    match remote.run(async move { called.store().head(&path).await }).await {
        Err(CallError::Store(object_store::Error::NotFound { .. })) => Ok(false),
        found => found.map(|_| true).map_err(failed),
    }
}

/// The error of a call of an upload that had begun.
fn failed_upload(error: object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => {
            Error::unavailable("The object store has removed the upload before it was complete").caused_by(error)
        }
        error => failed(CallError::Store(error)),
    }
}

fn object_exists() -> Error {
    Error::new(ErrorKind::AlreadyExists, "The object exists, and a backup replaces nothing")
}

fn failed(error: CallError) -> Error {
    use object_store::Error::{AlreadyExists, NotFound, PermissionDenied, Precondition, Unauthenticated};
    let error = match error {
        CallError::Store(error) => error,
        CallError::Other(error) => return error,
    };
    let failed = match &error {
        NotFound { .. } => Error::new(ErrorKind::NotFound, "The object store has no such bucket"),
        PermissionDenied { .. } | Unauthenticated { .. } => Error::new(ErrorKind::Forbidden, denial::reason(&error)),
        AlreadyExists { .. } | Precondition { .. } => object_exists(),
        other => {
            let reason = no_answer(other).map_or_else(String::new, |why| format!(": {why}"));
            Error::unavailable(format!("The object store does not answer as expected{reason}"))
        }
    };
    failed.caused_by(error)
}

impl std::fmt::Debug for BackupStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackupStore").field("remote", &self.remote).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{objects::tests::s3_server::S3Server, threads::wait};

    fn store(server: &S3Server, options: &str) -> (BackupStore, String) {
        BackupStore::of_object(&format!("{}{options}", server.url("backups/town.tar"))).expect("a store")
    }

    /// Completes two uploads to one name without the question before. Returns the outcome of the second.
    fn completed_twice(options: &str) -> (object_store::Result<()>, Vec<u8>) {
        let server = S3Server::start();
        let (store, name) = store(&server, options);
        let mut uploads: Vec<_> = (0..2).map(|_| wait(store.upload(&name, 10)).expect("an upload")).collect();
        for (upload, bytes) in uploads.iter_mut().zip([b"first", b"other"]) {
            assert_eq!(upload.add(bytes), bytes.len());
            wait(upload.send()).expect("sent");
            wait(upload.join_part()).expect("sent");
        }
        let mut outcomes: Vec<_> = uploads
            .iter()
            .map(|upload| {
                let upload = Arc::clone(upload.upload.as_ref().expect("it is open"));
                wait(store.runtime.handle().spawn(async move { upload.complete().await })).expect("a task")
            })
            .collect();
        assert!(outcomes.remove(0).is_ok());
        drop(uploads);
        store.close();
        let object = std::fs::read(server.folder().join("backups/town.tar")).expect("the object");
        let parts = std::fs::read_dir(server.folder().parent().expect("a folder")).expect("a folder");
        let parts = parts.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(".upload"));
        assert_eq!(parts.count(), 0, "an upload that is not completed is aborted");
        (outcomes.remove(0), object)
    }

    #[test]
    fn s3_completes_no_upload_to_the_name_of_an_object() {
        let (outcome, object) = completed_twice("");
        let error = outcome.map_err(|error| failed(CallError::Store(error))).expect_err("refused");
        assert_eq!((error.kind(), object.as_slice()), (ErrorKind::AlreadyExists, &b"first"[..]));
        // A server that does not know the condition.
        let (outcome, object) = completed_twice("&conditional_put=disabled");
        assert_eq!((outcome.is_ok(), object.as_slice()), (true, &b"other"[..]));
    }

    #[test]
    fn the_parts_of_an_upload_of_any_size_fit() {
        let server = S3Server::start();
        let (store, name) = store(&server, "");
        for size in [0, 1, 10 << 30, 1 << 40, MAX_SIZE] {
            let upload = wait(store.upload(&name, size)).expect("an upload");
            assert!(size.div_ceil(upload.part_size as u64) <= MOST_PARTS, "{size}");
        }
        let error = wait(store.upload(&name, MAX_SIZE + 1)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        store.close();
    }

    #[test]
    fn an_object_has_the_version_of_its_upload() {
        let server = S3Server::start();
        let (store, name) = store(&server, "");
        let mut upload = wait(store.upload(&name, 10)).expect("an upload");
        assert_eq!(upload.add(b"bytes"), 5);
        wait(upload.send()).expect("sent");
        wait(upload.join_part()).expect("sent");
        let version = upload.version.clone();
        wait(upload.finish()).expect("completed");
        let found = wait(reader::stat(&store.remote, &store.path(&name).expect("a path"))).expect("an answer");
        assert_eq!(found.and_then(|found| found.version), Some(version));
        store.close();
    }
}
