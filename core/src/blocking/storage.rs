//! Files without async.

use std::{
    io::{self, Read, Write},
    ops::{ControlFlow, Range},
    path::Path,
};

use bytes::Bytes;
use uuid::Uuid;

use super::wait;
use crate::{
    error::Result,
    model::{FileInfo, ListFiles, Overwrite, RepairReport, UploadOptions, UrlMethod, UrlOptions},
    storage::{FileResponse, RequestBody},
};

area! { Storage:
    upload(bucket: &str, path: &str, data: impl Into<Bytes>, options: UploadOptions) -> FileInfo;
    secure_upload(
        bucket: &str, path: &str, data: impl Into<Bytes>, user_id: Uuid, options: UploadOptions
    ) -> FileInfo;
    upload_from(
        bucket: &str, path: &str, source: impl AsRef<Path>, options: UploadOptions,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send
    ) -> FileInfo;
    download(bucket: &str, path: &str) -> Bytes;
    download_range(bucket: &str, path: &str, range: Range<u64>) -> Bytes;
    download_to(
        bucket: &str, path: &str, target: impl AsRef<Path>, progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send
    ) -> FileInfo;
    delete(bucket: &str, path: &str) -> ();
    delete_prefix(bucket: &str, prefix: &str) -> u64;
    exists(bucket: &str, path: &str) -> bool;
    stat(bucket: &str, path: &str) -> FileInfo;
    list(bucket: &str, files: ListFiles) -> Vec<FileInfo>;
    copy(bucket: &str, source: &str, target: &str, overwrite: Overwrite) -> FileInfo;
    move_file(bucket: &str, source: &str, target: &str, overwrite: Overwrite) -> FileInfo;
    signed_url(bucket: &str, path: &str, method: UrlMethod, options: impl Into<UrlOptions>) -> String;
    rotate_url_key() -> ();
    handle_file(
        method: &str, target: &str, headers: &[(String, String)], body: impl Into<RequestBody>
    ) -> FileResponse;
    export_files(target: impl AsRef<Path>, progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send) -> u64;
    repair() -> RepairReport;
}

/// The size of a chunk that `upload_reader` reads.
const CHUNK: usize = 64 * 1024;

impl Storage<'_> {
    #[doc(hidden)]
    pub fn check_upload_size(&self, size: u64, options: &UploadOptions) -> Result<()> {
        self.0.check_upload_size(size, options)
    }

    #[doc = text_of!(Storage.upload_reader)]
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::fs::File;
    /// use townsquare::storage::UploadOptions;
    ///
    /// client.storage().upload_reader("assets", "tour.mp4", File::open("tour.mp4")?, UploadOptions::new())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn upload_reader(
        &self,
        bucket: &str,
        path: &str,
        mut reader: impl Read,
        options: UploadOptions,
    ) -> Result<FileInfo> {
        let mut writer = self.writer(bucket, path, options)?;
        loop {
            let mut chunk = vec![0; CHUNK];
            match reader.read(&mut chunk) {
                Ok(0) => return writer.finish(),
                Ok(read) => {
                    chunk.truncate(read);
                    writer.write_chunk(chunk.into())?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(writer.0.source_failed(error)),
            }
        }
    }

    #[doc = text_of!(Storage.writer)]
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::Write;
    /// use townsquare::storage::UploadOptions;
    ///
    /// let mut writer = client.storage().writer("assets", "notes/a.txt", UploadOptions::new())?;
    /// writeln!(writer, "one line")?;
    /// let file = writer.finish()?; // without it, the file does not change
    /// # Ok(())
    /// # }
    /// ```
    pub fn writer(&self, bucket: &str, path: &str, options: UploadOptions) -> Result<FileWriter> {
        wait(self.0.writer(bucket, path, options)).map(FileWriter)
    }

    #[doc = text_of!(Storage.iter)]
    ///
    /// ```
    /// # fn example(client: townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for file in client.storage().iter("assets", "images/", 100) {
    ///     println!("{}", file?.path);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self, bucket: &str, prefix: &str, page_size: u32) -> Files {
        Files(self.0.iter(bucket, prefix, page_size))
    }

    #[doc = text_of!(Storage.reader)]
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::{BufRead, BufReader};
    ///
    /// for line in BufReader::new(client.storage().reader("assets", "notes/a.txt")?).lines() {
    ///     println!("{}", line?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reader(&self, bucket: &str, path: &str) -> Result<FileReader> {
        wait(self.0.reader(bucket, path)).map(|inner| FileReader { inner, chunk: Bytes::new() })
    }
}

/// The files of a bucket one by one: the result of [`Storage::iter`].
#[derive(Debug)]
pub struct Files(crate::storage::Files);

impl Iterator for Files {
    type Item = Result<FileInfo>;

    fn next(&mut self) -> Option<Result<FileInfo>> {
        wait(self.0.next())
    }
}

/// [`FileWriter`](crate::storage::FileWriter) without async: a [`Write`].
#[derive(Debug)]
pub struct FileWriter(crate::storage::FileWriter);

impl FileWriter {
    /// Appends bytes. [`Write::write`] copies its bytes; this method takes them.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`; `Unavailable` (507) if the disk is full. After an error, `finish` fails too.
    pub fn write_chunk(&mut self, data: Bytes) -> Result<()> {
        wait(self.0.write(data))
    }

    #[doc = text_of!(FileWriter.finish)]
    pub fn finish(self) -> Result<FileInfo> {
        wait(self.0.finish())
    }

    #[doc = text_of!(FileWriter.abort)]
    pub fn abort(self) {
        wait(self.0.abort());
    }
}

impl Write for FileWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.write_chunk(Bytes::copy_from_slice(buffer)).map_err(io::Error::other)?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// [`FileReader`](crate::storage::FileReader) without async: a [`Read`].
#[derive(Debug)]
pub struct FileReader {
    inner: crate::storage::FileReader,
    chunk: Bytes,
}

impl FileReader {
    #[doc = text_of!(FileReader.info)]
    pub fn info(&self) -> &FileInfo {
        self.inner.info()
    }

    #[doc = text_of!(FileReader.read_at)]
    pub fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        wait(self.inner.read_at(range))
    }

    /// Returns the next bytes, or `None` at the end. [`Read::read`] copies the bytes; this method hands them over.
    ///
    /// # Errors
    /// `Unavailable` or `Internal` if the object store fails. Reading on fails with the same error. `Closed` once the client is
    /// closed.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        if self.chunk.is_empty() {
            return wait(self.inner.next_chunk());
        }
        self.inner.require_open()?;
        Ok(Some(std::mem::take(&mut self.chunk)))
    }

    /// `Closed` once the client is closed. For the bindings, which read ahead.
    #[doc(hidden)]
    pub fn require_open(&self) -> Result<()> {
        self.inner.require_open()
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.chunk = self.next_chunk().map_err(io::Error::other)?.unwrap_or_default();
        let length = buffer.len().min(self.chunk.len());
        buffer[..length].copy_from_slice(&self.chunk.split_to(length));
        Ok(length)
    }
}
