//! The service for files: bytes with their row, under the policies of their bucket (SPEC 2.8, 4.4, 5.5, 7).
//!
//! Invariant: every statement names the policy that it runs under. A file that the caller may not see is treated as
//! missing. A download gives one version of the file, whole.

#[cfg(feature = "sqlite")]
mod backup;
mod buckets;
mod checks;
mod copy;
mod core;
mod damaged_files;
mod delete;
mod export;
mod handler;
mod host_file;
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
mod statements;
mod store_id;
mod upload;
mod writer;

use std::{
    fmt,
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
pub(crate) use self::backup::restore;
pub(crate) use self::core::{PreparedStorage, StorageCore, StorageOptions};
pub(crate) use self::quota::FileQuota;
use self::{
    host_file::{SourceFile, TargetFile, check_progress},
    read::clip,
    writer::source_failed,
};

pub use self::{
    handler::{FileResponse, RequestBody, ResponseBody},
    reader::FileReader,
    writer::FileWriter,
};
use crate::{
    bearer::BearerResolver,
    client_key::ClientSlots,
    database::{CurrentPrincipal, Scope},
    error::{Error, Operation, Result, WithOperation as _, operation},
    policy::Caller,
};
pub use crate::{
    model::{FileInfo, ListFiles, Overwrite, RepairReport, UploadOptions, UrlMethod, UrlOptions},
    signed_file::{SignOptions, decrypt_file, encrypt_file, sign_file, verify_file},
    storage_path::{AssetPath, PrivatePath, SpacePath, StoragePath},
};

/// Operations on files, under the policies of the client's caller.
#[derive(Clone)]
pub struct Storage {
    scope: Scope,
    core: Arc<StorageCore>,
    /// Finds whom a request of `handle_file` acts for.
    bearer: BearerResolver,
    /// The uploads that requests may have at the same time.
    uploads: ClientSlots,
}

/// The bytes that `upload_reader` reads at a time.
const CHUNK: usize = 256 * 1_024;

impl Storage {
    pub(crate) fn new(scope: Scope, core: Arc<StorageCore>, bearer: BearerResolver, uploads: ClientSlots) -> Storage {
        Storage { scope, core, bearer, uploads }
    }

    /// The same storage for another principal.
    fn for_principal(&self, principal: CurrentPrincipal) -> Storage {
        Storage { scope: self.scope.for_principal(principal), ..self.clone() }
    }

    /// Stores a file (SPEC 4.4): the bytes are durable when the call returns.
    ///
    /// # Errors
    /// `InvalidInput` (400) for a malformed path, option or, with `verify`, signature; `Unauthorized` (401) for an
    /// anonymous caller and `Forbidden` (403) for a user whom the policy refuses; `NotFound` (404) for an unknown
    /// bucket; `TooLarge` (413) over `max_file_size`, and with `verify` over `max_verified_size`; `QuotaExceeded` if the caller
    /// would own more than `max_owner_bytes` (413) or `max_owner_files` (409); `AlreadyExists` (409) without `upsert` if the file
    /// exists, and if a file and a folder would share a name; `Conflict` (412) if `if_match` names another version.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::storage::UploadOptions;
    ///
    /// let file = client.storage().upload("assets", "cat.png", vec![0; 10], UploadOptions::new())?;
    /// assert_eq!((file.size, file.content_type.as_str()), (10, "image/png"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upload(
        &self,
        bucket: &str,
        path: &str,
        data: impl Into<Bytes>,
        options: UploadOptions,
    ) -> Result<FileInfo> {
        operation(Operation::Upload, async {
            let target = self.check_upload(bucket, path, &options)?;
            self.upload_bytes(target, &options, data.into()).await
        })
        .await
    }

    /// Stores a file if the caller is the user `user_id` (SPEC 4.4, 5.5). The service may name any user.
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
        operation(Operation::SecureUpload, async {
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
    /// `InvalidInput` (400) if `source` cannot be read; `Cancelled` if `progress` breaks. Else as
    /// [`upload`](Storage::upload).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use std::ops::ControlFlow;
    /// use townsquare::storage::UploadOptions;
    ///
    /// let show = |done, total| {
    ///     println!("{done} of {total}");
    ///     ControlFlow::Continue(())
    /// };
    /// client.storage().upload_from("assets", "tour.mp4", "tour.mp4", UploadOptions::new(), show)?;
    /// # Ok(())
    /// # }
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
        operation(Operation::UploadFrom, async {
            let mut writer = self.open_writer(bucket, path, options).await?;
            let pool = &self.core.runtime.blocking;
            let mut source = SourceFile::open(pool, source.as_ref()).await?;
            self.core.check_size(source.size)?;
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
    /// `InvalidInput` (400) if the reader fails. Else as [`upload`](Storage::upload).
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
        operation(Operation::UploadFrom, async {
            let mut writer = self.open_writer(bucket, path, options).await?;
            let mut reader = pin!(reader);
            loop {
                let chunk = read_chunk(reader.as_mut()).await?;
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
    /// As [`upload`](Storage::upload), except for those that depend on the bytes.
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
        operation(Operation::OpenWriter, self.open_writer(bucket, path, options)).await
    }

    /// Returns the bytes of a file (SPEC 4.4).
    ///
    /// # Errors
    /// `NotFound` (404) if the file does not exist or the caller may not see it.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let bytes = client.storage().download("assets", "images/cat.png")?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn download(&self, bucket: &str, path: &str) -> Result<Bytes> {
        operation(Operation::Download, self.read_file(bucket, path, |info| Ok(0..info.size))).await
    }

    /// Returns the bytes of a file from `range.start` to before `range.end`. An end beyond the file is the file's end.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the start is after the end or beyond the file. Else as [`download`](Storage::download).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let first = client.storage().download_range("assets", "images/cat.png", 0..8)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn download_range(&self, bucket: &str, path: &str, range: Range<u64>) -> Result<Bytes> {
        operation(Operation::Download, self.read_file(bucket, path, move |info| clip(&range, info.size))).await
    }

    /// Writes a file to `target` on the host, streamed. `target` is there, whole and durable, when the call returns; after
    /// a failure it is as before. A new file is readable and writable by its owner only; an existing file keeps its
    /// permissions. If `target` is a symbolic link, the file that it names is replaced and the link stays. Calls `progress`
    /// with the number of bytes that were written and the size; `Break` cancels the download.
    ///
    /// # Errors
    /// `InvalidInput` (400) if `target` cannot be written, if it is a folder, a device or a pipe, and if it is a symbolic
    /// link to such or to nothing; `Cancelled` if `progress` breaks. Else as [`download`](Storage::download).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use std::ops::ControlFlow;
    ///
    /// let go_on = |_, _| ControlFlow::Continue(());
    /// client.storage().download_to("assets", "videos/tour.mp4", "tour.mp4", go_on)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn download_to(
        &self,
        bucket: &str,
        path: &str,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<FileInfo> {
        let mut progress = progress;
        operation(Operation::DownloadTo, async {
            let mut reader = self.open_reader(bucket, path).await?;
            let pool = &self.core.runtime.blocking;
            let mut written = TargetFile::create(pool, target.as_ref().to_owned(), true).await?;
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
    /// As [`download`](Storage::download).
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
        operation(Operation::OpenReader, self.open_reader(bucket, path)).await
    }

    /// Removes a file (SPEC 4.4).
    ///
    /// # Errors
    /// `NotFound` (404) if the file does not exist or the caller may not see it; `Unauthorized` (401) or `Forbidden`
    /// (403) if the caller may not delete it.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// client.storage().delete("assets", "images/cat.png")?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self, bucket: &str, path: &str) -> Result<()> {
        operation(Operation::DeleteFile, self.delete_version(bucket, path, None)).await
    }

    /// Returns what is known about a file.
    ///
    /// # Errors
    /// As [`download`](Storage::download).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// println!("{} bytes", client.storage().stat("assets", "images/cat.png")?.size);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stat(&self, bucket: &str, path: &str) -> Result<FileInfo> {
        operation(Operation::StatFile, async { self.find_row(&self.core.buckets.target(bucket, path)?).await }).await
    }

    /// Returns the files of a bucket that the caller may see, ordered by path (by the bytes of its UTF-8 form). In the bucket
    /// `spaces`, these are the files of the caller's own and of public spaces; the others can be read by their path.
    ///
    /// # Errors
    /// `InvalidInput` (400) for a limit outside 1 to 1,000 and for a prefix that no path can have, such as `/`, `..` or
    /// `a//`; `NotFound` (404) for an unknown bucket.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::storage::ListFiles;
    ///
    /// for file in client.storage().list("assets", ListFiles::with_prefix("images/").limit(20))? {
    ///     println!("{}", file.path);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list(&self, bucket: &str, files: ListFiles) -> Result<Vec<FileInfo>> {
        operation(Operation::ListFiles, self.list_files(bucket, &files)).await
    }

    /// Copies a file within its bucket. The copy has the source's type, cache control and metadata, and the caller as its
    /// owner.
    ///
    /// # Errors
    /// `NotFound` (404) if the source does not exist or the caller may not see it. Else, for the target, as
    /// [`upload`](Storage::upload).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::storage::Overwrite;
    ///
    /// client.storage().copy("assets", "cat.png", "cat-2.png", Overwrite::Refuse)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn copy(&self, bucket: &str, source: &str, target: &str, overwrite: Overwrite) -> Result<FileInfo> {
        operation(Operation::CopyFile, self.copy_file(bucket, source, target, overwrite)).await
    }

    /// Moves a file within its bucket. The file keeps its owner, type, cache control and metadata. `move` in Python and C.
    ///
    /// # Errors
    /// As [`copy`](Storage::copy) and [`delete`](Storage::delete).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::storage::Overwrite;
    ///
    /// client.storage().move_file("assets", "cat.png", "tom.png", Overwrite::Replace)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn move_file(&self, bucket: &str, source: &str, target: &str, overwrite: Overwrite) -> Result<FileInfo> {
        operation(Operation::MoveFile, self.rename_file(bucket, source, target, overwrite)).await
    }

    /// Returns a target for [`handle_file`](Storage::handle_file) that needs no session: `/BUCKET/PATH?…`. It acts for
    /// the caller. It ends after its time, with the caller's right, when the user gets a new password or signs out
    /// everywhere ([`SignOutScope::Global`](crate::auth::SignOutScope::Global)), and with
    /// [`rotate_url_key`](Storage::rotate_url_key).
    ///
    /// `options` is a time, or [`UrlOptions`] with what a `Put` may store. The key of the URLs is in the database and in no
    /// backup, or it is the option [`url_signing_key`](crate::Config::url_signing_key).
    ///
    /// # Errors
    /// As [`download`](Storage::download) for `Get` and as [`upload`](Storage::upload) for `Put`: a URL is only for what
    /// the caller may do. `InvalidInput` (400) for a time of 0 or over 7 days, and for the limits of a `Put` on a `Get`.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use std::time::Duration;
    /// use townsquare::storage::UrlMethod;
    ///
    /// let hour = Duration::from_secs(3_600);
    /// let url = client.storage().signed_url("assets", "images/cat.png", UrlMethod::Get, hour)?;
    /// assert!(url.starts_with("/assets/images/cat.png?"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn signed_url(
        &self,
        bucket: &str,
        path: &str,
        method: UrlMethod,
        options: impl Into<UrlOptions>,
    ) -> Result<String> {
        operation(Operation::SignUrl, self.sign_url(bucket, path, method, options.into())).await
    }

    /// Replaces the key of signed URLs. Every URL that was signed before is refused from now on. Only the service may.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` for every other caller; `InvalidInput` (400) if the key is the option
    /// [`url_signing_key`](crate::Config::url_signing_key).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// client.as_service().storage().rotate_url_key()?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rotate_url_key(&self) -> Result<()> {
        operation(Operation::RotateUrlKey, self.replace_url_key()).await
    }

    /// Answers an HTTP request for `/BUCKET/PATH`: GET, HEAD, PUT and DELETE. `target` is the request target; the header
    /// `Authorization: Bearer` names the caller, never the session of this handle. Failures of a request are responses.
    ///
    /// # Errors
    /// `Closed` if the client is closed.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let response = client.storage().handle_file("GET", "/assets/images/cat.png", &[], "").await?;
    /// assert_eq!(response.status, 404);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn handle_file(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: impl Into<RequestBody>,
    ) -> Result<FileResponse> {
        self.scope.check_open().with_operation(Operation::HandleFile)?;
        Ok(self.respond(method, target, headers, body.into()).await)
    }

    /// Writes every file to `TARGET/BUCKET/PATH` on the host, for people and other tools (SPEC 2.8): those of every bucket
    /// that was ever declared. Returns the number of files. Calls `progress` with the number of files that were written and
    /// the number of all; `Break` cancels the export and leaves the files written so far. Only the service may.
    ///
    /// Other calls may write meanwhile. The export has the files of the object store, and the small files of a SQLite database, as
    /// they were at one moment. On PostgreSQL a small file is exported as it is when the export comes to it.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` for every other caller; `InvalidInput` (400) if `target` is not an empty or new folder
    /// or cannot be written; `Cancelled` if `progress` breaks. `Internal` (500) if the bytes of files are gone or of another
    /// size: the message names them, and the export has every other file.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use std::ops::ControlFlow;
    ///
    /// let go_on = |_, _| ControlFlow::Continue(());
    /// let count = client.as_service().storage().export_files("exported", go_on)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export_files(
        &self,
        target: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<u64> {
        operation(Operation::ExportFiles, self.export(target.as_ref(), progress)).await
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
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let report = client.as_service().storage().repair()?;
    /// assert!(report.mismatched.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn repair(&self) -> Result<RepairReport> {
        operation(Operation::Repair, self.repair_files()).await
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

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").finish_non_exhaustive()
    }
}
