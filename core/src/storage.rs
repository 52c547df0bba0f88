//! The service for files: bytes with their row, under the policies of their bucket.
//!
//! Invariant: every statement names the policy that it runs under. A file that the caller may not see is treated as
//! missing. A download gives one version of the file, whole.

#[cfg(feature = "sqlite")]
mod backup;
mod buckets;
mod checks;
mod content_type;
mod copy;
mod core;
mod damaged_files;
mod delete;
mod delete_prefix;
mod detached;
mod export;
mod files;
#[cfg(feature = "postgres")]
pub(crate) mod foreign_files;
mod host_file;
mod inspection;
mod list;
mod moment;
mod quota;
mod read;
mod reader;
mod recovery;
mod refusal;
mod repair;
mod rows;
mod signed_url;
#[cfg(all(test, feature = "sqlite"))]
mod simulation;
mod statements;
mod store_id;
mod transfer;
mod upload;
mod upload_pause;
mod url_token;
mod writer;

use std::{
    future::poll_fn,
    ops::{ControlFlow, Range},
    path::Path,
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use uuid::Uuid;

#[cfg(feature = "sqlite")]
#[doc(hidden)]
pub use self::backup::RestorePlace;
#[cfg(feature = "sqlite")]
pub(crate) use self::backup::{restore, try_restore};
pub(crate) use self::{
    checks::media_type,
    core::{PreparedStorage, StorageCore, StorageOptions},
    host_file::check_progress,
    quota::FileQuota,
    store_id::require_outside_stores,
    url_token::{ESCAPED, PutLimits, RequestedFile},
};
pub use self::{files::Files, reader::FileReader, writer::FileWriter};
use self::{
    host_file::{SourceFile, TargetFile},
    read::clip,
    writer::source_failed,
};
use crate::{
    database::{CurrentPrincipal, Scope, call},
    error::{Error, Operation, Result},
    policy::Caller,
    request_context::RequestContext,
    threads::Closing,
};
pub use crate::{
    http_message::{FileResponse, RequestBody, ResponseBody},
    model::{FileInfo, ListFiles, Overwrite, RepairReport, UploadOptions, UrlMethod, UrlOptions},
    signed_file::{SignOptions, decrypt_file, encrypt_file, sign_file, verify_file},
    storage_path::{AssetPath, PrivatePath, SpacePath, StoragePath},
};

/// Operations on files, under the policies of the client's caller.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
#[derive(Clone)]
pub struct Storage {
    scope: Scope,
    core: Arc<StorageCore>,
    /// For HTTP requests.
    pub(crate) requests: RequestContext,
}

/// The bytes that `upload_reader` reads at a time.
const CHUNK: usize = 256 * 1_024;

impl Storage {
    pub(crate) fn new(scope: Scope, core: Arc<StorageCore>, requests: RequestContext) -> Storage {
        Storage { scope, core, requests }
    }

    /// The caller of the handle.
    pub(crate) fn principal(&self) -> &CurrentPrincipal {
        self.scope.current_principal()
    }

    /// Checks the size of a file of this handle's caller.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`; `QuotaExceeded` (413) over `max_owner_bytes`.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        self.core.check_size(size)?;
        self.core.options.quota.check_file(self.scope.caller().id(), size)
    }

    /// Begins to watch for the close of the client.
    pub(crate) fn closing(&self) -> Closing {
        self.core.runtime.closing()
    }

    /// The same storage for another principal.
    pub(crate) fn for_principal(&self, principal: CurrentPrincipal) -> Storage {
        Storage { scope: self.scope.for_principal(principal), ..self.clone() }
    }

    /// Stores a file: the bytes are durable when the call returns. An existing file is replaced; see
    /// [`UploadOptions`] for other behaviour. [`upload_from`](Storage::upload_from) does not hold the file in memory.
    ///
    /// # Errors
    /// `InvalidInput` (400) for a malformed path, option or, with `verify`, signature; `Unauthorized` (401) for an
    /// anonymous caller and `Forbidden` (403) for a user whom the policy refuses; `NotFound` (404) for an unknown
    /// bucket; `TooLarge` (413) over `max_file_size`, and with `verify` over `max_verified_size`; `QuotaExceeded` if the caller
    /// would own more than `max_owner_bytes` (413) or `max_owner_files` (409); `AlreadyExists` (409) without `upsert` if the file
    /// exists, and if a file and a folder would share a name; `Conflict` (412) if `if_match` names another version.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::storage::UploadOptions;
    ///
    /// let file = client.storage().upload("assets", "cat.png", vec![0; 10], UploadOptions::new())?;
    /// assert_eq!((file.size, file.content_type.as_str()), (10, "image/png"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn upload(
        &self,
        bucket: &str,
        path: &str,
        data: impl Into<Bytes>,
        options: UploadOptions,
    ) -> Result<FileInfo> {
        call(&self.scope, Operation::Upload, async {
            let target = self.check_upload(bucket, path, &options)?;
            self.upload_bytes(target, &options, data.into()).await
        })
        .await
    }

    /// Stores a file if the caller is the user `user_id`. The service may name any user.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` with the message `Unauthorized file upload` for another user. Else as
    /// [`upload`](Storage::upload).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, user: townsquare::Uuid) -> townsquare::Result<()> {
    /// use townsquare::storage::UploadOptions;
    ///
    /// let path = format!("{user}/homebase");
    /// client.storage().secure_upload("private", &path, "{}", user, UploadOptions::new())?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn secure_upload(
        &self,
        bucket: &str,
        path: &str,
        data: impl Into<Bytes>,
        user_id: Uuid,
        options: UploadOptions,
    ) -> Result<FileInfo> {
        call(&self.scope, Operation::SecureUpload, async {
            match self.scope.caller() {
                Caller::User(id) if id != user_id => return Err(Error::unauthorized_upload(false)),
                Caller::Anonymous => return Err(Error::unauthorized_upload(true)),
                Caller::User(_) | Caller::Service => {}
            }
            let target = self.check_upload(bucket, path, &options)?;
            self.upload_bytes(target, &options, data.into()).await
        })
        .await
    }

    /// Stores the file `source` of the host, streamed: memory does not grow with the file. Calls `progress` with the
    /// number of bytes that were read and the size of the source; `Break` cancels the upload and leaves nothing.
    ///
    /// # Errors
    /// `InvalidInput` (400) if `source` cannot be read or is no regular file (a pipe: [`upload_reader`](Storage::upload_reader));
    /// `Cancelled` if `progress` breaks. Else as
    /// [`upload`](Storage::upload).
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use std::ops::ControlFlow;
    /// use townsquare::storage::UploadOptions;
    ///
    /// let show = |done, total| {
    ///     println!("{done} of {total}");
    ///     ControlFlow::Continue(())
    /// };
    /// client.storage().upload_from("assets", "tour.mp4", "tour.mp4", UploadOptions::new(), show)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn upload_from(
        &self,
        bucket: &str,
        path: &str,
        source: impl AsRef<Path>,
        options: UploadOptions,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<FileInfo> {
        let mut progress = progress;
        call(&self.scope, Operation::UploadFrom, async {
            let mut writer = self.open_writer(bucket, path, options).await?;
            let pool = &self.core.runtime.blocking;
            let mut source = SourceFile::open(pool, source.as_ref()).await?;
            self.check_size(source.size)?;
            let mut done = 0;
            loop {
                let chunk = source.next_chunk(pool).await?;
                if chunk.is_empty() {
                    return writer.complete().await;
                }
                done += chunk.len() as u64;
                writer.append(chunk).await?;
                check_progress(progress(done, source.size.max(done)))?;
            }
        })
        .await
    }

    /// Stores what `reader` gives until its end, streamed.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the reader fails; `Closed` if the client is closed meanwhile. Else as [`upload`](Storage::upload).
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, file: impl tokio::io::AsyncRead + Send) -> townsquare::Result<()> {
    /// use townsquare::storage::UploadOptions;
    ///
    /// client.storage().upload_reader("assets", "tour.mp4", file, UploadOptions::new()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload_reader(
        &self,
        bucket: &str,
        path: &str,
        reader: impl AsyncRead + Send,
        options: UploadOptions,
    ) -> Result<FileInfo> {
        call(&self.scope, Operation::UploadFrom, async {
            let mut writer = self.open_writer(bucket, path, options).await?;
            let (mut reader, mut closing) = (pin!(reader), self.closing());
            loop {
                let chunk = closing.wait_for(read_chunk(reader.as_mut())).await??;
                if chunk.is_empty() {
                    return writer.complete().await;
                }
                writer.append(chunk).await?;
            }
        })
        .await
    }

    /// Opens a file for writing. The file changes when [`FileWriter::finish`] returns, and not before.
    ///
    /// # Errors
    /// The errors of [`upload`](Storage::upload) for a folder that the caller may not write to. [`FileWriter::finish`] has the others.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::storage::UploadOptions;
    ///
    /// let mut writer = client.storage().writer("assets", "notes/a.txt", UploadOptions::new()).await?;
    /// writer.write("one line\n").await?;
    /// let file = writer.finish().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn writer(&self, bucket: &str, path: &str, options: UploadOptions) -> Result<FileWriter> {
        call(&self.scope, Operation::OpenWriter, self.open_writer(bucket, path, options)).await
    }

    /// Returns the bytes of a file, in memory. [`reader`](Storage::reader) and [`download_to`](Storage::download_to)
    /// do not hold the file in memory.
    ///
    /// # Errors
    /// `NotFound` (404) if the file does not exist or the caller may not see it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::ErrorKind;
    ///
    /// let error = client.storage().download("assets", "images/cat.png").unwrap_err();
    /// assert_eq!((error.kind(), error.status()), (ErrorKind::NotFound, 404));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn download(&self, bucket: &str, path: &str) -> Result<Bytes> {
        call(&self.scope, Operation::Download, self.read_file(bucket, path, |info| Ok(0..info.size))).await
    }

    /// Returns the bytes of a file from `range.start` to before `range.end`. An end beyond the file is the file's end.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the start is after the end or beyond the file. Else as [`download`](Storage::download).
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// let first = client.storage().download_range("assets", "images/cat.png", 0..8)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn download_range(&self, bucket: &str, path: &str, range: Range<u64>) -> Result<Bytes> {
        call(&self.scope, Operation::Download, self.read_file(bucket, path, move |info| clip(&range, info.size))).await
    }

    /// Writes a file to `target` on the host, streamed. `target` is there, whole and durable, when the call returns; after
    /// a failure it is as before. A new file is readable and writable by its owner only; an existing file keeps its
    /// permissions. If `target` is a symbolic link, the file that it names is replaced and the link stays. Calls `progress`
    /// with the number of bytes that were written and the size; `Break` cancels the download.
    ///
    /// # Errors
    /// `InvalidInput` (400) if `target` cannot be written, if it is a folder, a device, a pipe or in the folder of the object
    /// store, and if it is a symbolic link to such or to nothing; `Cancelled` if `progress` breaks. Else as [`download`](Storage::download).
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use std::ops::ControlFlow;
    ///
    /// let go_on = |_, _| ControlFlow::Continue(());
    /// client.storage().download_to("assets", "videos/tour.mp4", "tour.mp4", go_on)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn download_to(
        &self,
        bucket: &str,
        path: &str,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<FileInfo> {
        let mut progress = progress;
        call(&self.scope, Operation::DownloadTo, async {
            let mut reader = self.open_reader(bucket, path).await?;
            let pool = &self.core.runtime.blocking;
            let mut written = TargetFile::replacing(&self.core, target.as_ref().to_owned()).await?;
            let (mut done, size) = (0, reader.info().size);
            while let Some(chunk) = reader.next_chunk().await? {
                done += chunk.len() as u64;
                written.write(pool, chunk).await?;
                check_progress(progress(done, size))?;
            }
            written.install(pool).await?;
            Ok(reader.info().clone())
        })
        .await
    }

    /// Opens a file for reading. The reader gives one version of the file from beginning to end, also while others
    /// overwrite or delete it.
    ///
    /// # Errors
    /// `NotFound` (404) if the file does not exist or the caller may not see it.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let mut reader = client.storage().reader("assets", "videos/tour.mp4").await?;
    /// while let Some(chunk) = reader.next_chunk().await? {
    ///     println!("{} bytes", chunk.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reader(&self, bucket: &str, path: &str) -> Result<FileReader> {
        call(&self.scope, Operation::OpenReader, self.open_reader(bucket, path)).await
    }

    /// Removes a file. Also cancels an upload of the caller that ended with code 08007, so that it adds no file later.
    ///
    /// # Errors
    /// `NotFound` (404) if the file does not exist or the caller may not see it; `Unauthorized` (401) or `Forbidden`
    /// (403) if the caller may not delete it.
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// client.storage().delete("assets", "images/cat.png")?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn delete(&self, bucket: &str, path: &str) -> Result<()> {
        call(&self.scope, Operation::DeleteFile, self.delete_version(bucket, path, None)).await
    }

    /// Returns what is known about a file.
    ///
    /// # Errors
    /// `NotFound` (404) if the file does not exist or the caller may not see it.
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// println!("{} bytes", client.storage().stat("assets", "images/cat.png")?.size);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn stat(&self, bucket: &str, path: &str) -> Result<FileInfo> {
        call(&self.scope, Operation::StatFile, async { self.find_row(&self.core.buckets.target(bucket, path)?).await })
            .await
    }

    /// Returns the files of a bucket that the caller may see, ordered by path (by the bytes of its UTF-8 form). In the bucket
    /// `spaces`, these are the files of the caller's own and of public spaces; other files of the bucket can be read by path.
    ///
    /// # Errors
    /// `InvalidInput` (400) for a limit outside 1 to 1,000 and for a prefix that no path can have, such as `/`, `..` or
    /// `a//`; `NotFound` (404) for an unknown bucket.
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use townsquare::storage::ListFiles;
    ///
    /// for file in client.storage().list("assets", ListFiles::with_prefix("images/").limit(20))? {
    ///     println!("{}", file.path);
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn list(&self, bucket: &str, files: ListFiles) -> Result<Vec<FileInfo>> {
        call(&self.scope, Operation::ListFiles, self.list_files(bucket, &files)).await
    }

    /// Copies a file within its bucket. The copy has the source's type, cache control and metadata, and the caller as its
    /// owner.
    ///
    /// # Errors
    /// `NotFound` (404) if the source does not exist or the caller may not see it. Else, for the target, as
    /// [`upload`](Storage::upload).
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use townsquare::storage::Overwrite;
    ///
    /// client.storage().copy("assets", "cat.png", "cat-2.png", Overwrite::Refuse)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn copy(&self, bucket: &str, source: &str, target: &str, overwrite: Overwrite) -> Result<FileInfo> {
        call(&self.scope, Operation::CopyFile, self.copy_file(bucket, source, target, overwrite)).await
    }

    /// Moves a file within its bucket. The file keeps its owner, type, cache control and metadata. `move` in Python and C.
    ///
    /// # Errors
    /// As [`copy`](Storage::copy) and [`delete`](Storage::delete).
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use townsquare::storage::Overwrite;
    ///
    /// client.storage().move_file("assets", "cat.png", "tom.png", Overwrite::Replace)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn move_file(&self, bucket: &str, source: &str, target: &str, overwrite: Overwrite) -> Result<FileInfo> {
        call(&self.scope, Operation::MoveFile, self.rename_file(bucket, source, target, overwrite)).await
    }

    /// Returns a target for [`handle_file`](Storage::handle_file) that needs no session: `/BUCKET/PATH?…`. It acts for
    /// the caller, whoever uses it: keep it out of logs. It ends after its time or up to a second later, with the caller's right,
    /// when the user gets a new password or signs out everywhere ([`SignOutScope::Global`](crate::auth::SignOutScope::Global)), and
    /// with [`rotate_url_key`](Storage::rotate_url_key).
    ///
    /// `options` is a time, or [`UrlOptions`] with what a `Put` may store. The key of the URLs is in the database and in no
    /// backup, or it is the option [`url_signing_key`](crate::Config::url_signing_key).
    ///
    /// # Errors
    /// As [`download`](Storage::download) for `Get` and as [`upload`](Storage::upload) for `Put`: a URL is only for what
    /// the caller may do. `InvalidInput` (400) for a time of 0 or over 7 days, and for the limits of a `Put` on a `Get`.
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use std::time::Duration;
    /// use townsquare::storage::UrlMethod;
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let url = client.storage().signed_url("assets", "images/cat.png", UrlMethod::Get, hour)?;
    /// assert!(url.starts_with("/assets/images/cat.png?"));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn signed_url(
        &self,
        bucket: &str,
        path: &str,
        method: UrlMethod,
        options: impl Into<UrlOptions>,
    ) -> Result<String> {
        call(&self.scope, Operation::SignUrl, self.sign_url(bucket, path, method, options.into())).await
    }

    /// Replaces the key of signed URLs. Every URL that was signed before is refused from now on; a request that has begun
    /// goes on. Only the service may.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` for every other caller; `InvalidInput` (400) if the key is the option
    /// [`url_signing_key`](crate::Config::url_signing_key).
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// client.as_service().storage().rotate_url_key()?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn rotate_url_key(&self) -> Result<()> {
        call(&self.scope, Operation::RotateUrlKey, self.replace_url_key()).await
    }

    /// Writes every file to `TARGET/BUCKET/PATH` on the host, for people and other tools: the files of every bucket
    /// that was ever declared. Returns the number of files. Calls `progress` with the number of files that were written and
    /// the number of all; `Break` cancels the export and leaves the files written so far. Only the service may.
    ///
    /// Other calls may write meanwhile. The export has the files of the object store, and the small files of a SQLite database, as
    /// they were at one moment. On PostgreSQL a small file is exported as it is when the export comes to it.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` for every other caller; `InvalidInput` (400) if `target` is not an empty or new folder,
    /// is in the object store or cannot be written; `Cancelled` if `progress` breaks. `Internal` (500) if the bytes of files are gone or of another
    /// size: the message names them, and the export has every other file.
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// use std::ops::ControlFlow;
    ///
    /// let go_on = |_, _| ControlFlow::Continue(());
    /// let count = client.as_service().storage().export_files("exported", go_on)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn export_files(
        &self,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<u64> {
        call(&self.scope, Operation::ExportFiles, self.export(target.as_ref(), progress)).await
    }

    /// Finishes what a crash left unfinished, removes objects without a row and rows without an object, and reports files
    /// whose bytes are not of the row's size or version. Only the service may. [`Client::open`](crate::Client::open) finishes
    /// unfinished writes too, without looking for orphans.
    ///
    /// Bytes that a killed writer staged are removed by the next `Client::open`, if the store is a folder that no other
    /// client uses. Otherwise `repair` removes them when they are an hour old, because their writer may be alive on another
    /// machine.
    ///
    /// The store has an id in `.townsquare/store`, which the database records with its first large file. `repair` deletes
    /// nothing, and `Client::open` fails, if the store has another id or none. A folder that moves to another place takes
    /// its id along. The rows of large files in a store in memory, which each client has for itself, lose their bytes with
    /// the client: `repair` removes them.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` for every other caller; `Config` if the object store is not that of the database.
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new())?;
    /// let report = client.as_service().storage().repair()?;
    /// assert!(report.mismatched.is_empty());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn repair(&self) -> Result<RepairReport> {
        call(&self.scope, Operation::Repair, self.repair_files()).await
    }
}

impl Storage {
    async fn open_writer(&self, bucket: &str, path: &str, options: UploadOptions) -> Result<FileWriter> {
        let target = self.check_upload(bucket, path, &options)?;
        self.check_write(&target, self.scope.caller().id()).await?;
        Ok(FileWriter::new(self.clone(), target, options))
    }
}

/// Reads the next bytes; empty at the end.
async fn read_chunk(mut reader: Pin<&mut impl AsyncRead>) -> Result<Bytes> {
    let mut space = vec![0; CHUNK];
    let mut buffer = ReadBuf::new(&mut space);
    poll_fn(|context| reader.as_mut().poll_read(context, &mut buffer)).await.map_err(source_failed)?;
    let length = buffer.filled().len();
    space.truncate(length);
    Ok(space.into())
}

crate::model::opaque!(Storage);
