//! The files of a bucket one by one.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use super::Storage;
use crate::{
    database::RowStream,
    error::Result,
    model::{FileInfo, ListFiles},
};

/// The files of a bucket one by one: the result of [`Storage::iter`].
#[derive(Debug)]
pub struct Files(RowStream<FileInfo, String>);

impl Files {
    /// The files of `bucket` with this prefix, read in pages of `page_size`.
    pub(super) fn new(storage: Storage, bucket: &str, prefix: &str, page_size: u32) -> Files {
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
