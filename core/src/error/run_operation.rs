//! Setting the operation of an error.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::{Operation, Result};

/// Runs `work` and sets the operation of its error to `operation`, unless the error has one.
pub(crate) fn operation<T, F: Future<Output = Result<T>>>(operation: Operation, work: F) -> RunOperation<F> {
    RunOperation { operation, work }
}

pin_project! {
    /// The future of [`operation`]. An `async fn` would store `work` twice, which costs a read from memory a tenth of its
    /// time.
    pub(crate) struct RunOperation<F> {
        operation: Operation,
        #[pin]
        work: F,
    }
}

impl<T, F: Future<Output = Result<T>>> Future for RunOperation<F> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.project();
        this.work.poll(context).map_err(|error| error.with_operation(*this.operation))
    }
}
