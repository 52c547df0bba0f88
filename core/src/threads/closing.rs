//! Ends a wait for a source outside the library when the client is closed. Such a source may never answer.

use std::{convert::Infallible, pin::pin};

use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::RuntimeHandle;
use crate::error::{Error, Result};

/// Tells a waiting call that the runtime has ended.
pub(crate) struct Closing(oneshot::Receiver<Infallible>);

impl RuntimeHandle {
    /// Begins to watch for the end of the runtime. It costs a task, until the value is dropped.
    pub(crate) fn closing(&self) -> Closing {
        let (mut sender, receiver) = oneshot::channel();
        // The runtime drops its tasks at its end, and with this one the sender.
        self.spawn(async move { sender.closed().await });
        Closing(receiver)
    }
}

impl Closing {
    /// Waits for `source`.
    ///
    /// # Errors
    /// `Closed` if the client is closed first.
    pub(crate) async fn wait_for<T>(&mut self, source: impl Future<Output = T>) -> Result<T> {
        match select(pin!(source), &mut self.0).await {
            Either::Left((value, _)) => Ok(value),
            Either::Right(_) => Err(Error::closed()),
        }
    }
}
