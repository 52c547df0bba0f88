//! The files of a bucket one by one, and whether a file exists.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::Storage;
use crate::{
    database::{RowStream, call},
    error::{Operation, Result},
    model::{FileInfo, ListFiles},
};

impl Storage {
    /// Returns true if the file exists and the caller may see it.
    ///
    /// # Errors
    /// `NotFound` (404) for an unknown bucket; `InvalidInput` (400) for a malformed path.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// assert!(!client.storage().exists("assets", "images/cat.png")?);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn exists(&self, bucket: &str, path: &str) -> Result<bool> {
        call(&self.scope, Operation::FileExists, async {
            let target = self.core.buckets.target(bucket, path)?;
            Ok(self.find_visible_row(&target).await?.is_some())
        })
        .await
    }

    /// Returns the files with this prefix one by one, in the order of [`list`](Storage::list). Reads `page_size` of them at a time,
    /// each page after the last file of the page before.
    ///
    /// The result ends after an error. The async one is a `Stream`, and its `next` needs no crate for
    /// streams.
    ///
    /// # Errors
    /// The items have the errors of [`list`](Storage::list), also for a `page_size` that is not 1 to 1,000.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let mut files = client.storage().iter("assets", "images/", 100);
    /// while let Some(file) = files.next().await {
    ///     println!("{}", file?.path);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self, bucket: &str, prefix: &str, page_size: u32) -> Files {
        Files::new(self.clone(), bucket, prefix, page_size)
    }
}

/// The files of a bucket one by one: the result of [`Storage::iter`].
#[derive(Debug)]
pub struct Files(RowStream<FileInfo, String>);

impl Files {
    /// The files of `bucket` with this prefix, read in pages of `page_size`.
    fn new(storage: Storage, bucket: &str, prefix: &str, page_size: u32) -> Files {
        let (bucket, files) = (bucket.to_owned(), ListFiles::with_prefix(prefix).limit(page_size));
        let load = move |after: Option<String>| {
            let (storage, bucket, mut files) = (storage.clone(), bucket.clone(), files.clone());
            files.after = after;
            async move { storage.list(&bucket, files).await }
        };
        Files(RowStream::new(load, |file| file.path.clone()))
    }

    /// Returns the next file; `None` after the last one and after an error.
    ///
    /// Dropping the future loses no file.
    ///
    /// # Errors
    /// The errors of [`Storage::list`].
    pub async fn next(&mut self) -> Option<Result<FileInfo>> {
        poll_fn(|context| self.0.poll_next(context)).await
    }

    /// Whether [`next`](Files::next) has its file in memory. For the Python binding.
    #[doc(hidden)]
    pub fn has_read_ahead(&self) -> bool {
        self.0.has_read_ahead()
    }
}

impl Stream for Files {
    type Item = Result<FileInfo>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<FileInfo>>> {
        self.get_mut().0.poll_next(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
