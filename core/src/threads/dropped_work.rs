//! Work that goes on after its caller has dropped the future: later calls on the same thing wait for its end.
//!
//! Invariant: such work is registered before the drop of its future returns, so whatever the program does next comes after it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{BoxedWork, RuntimeHandle};
use crate::error::Result;

/// The work that was dropped and has not ended, by what it changes.
pub(crate) struct DroppedWork<K>(Arc<Mutex<Vec<(K, Ended)>>>);

/// Closes when the work has ended.
type Ended = watch::Receiver<()>;

/// The future of work that runs; if it is dropped, the work becomes dropped work.
struct Caller<K> {
    dropped: DroppedWork<K>,
    keys: Vec<K>,
    ended: Ended,
}

impl<K> Default for DroppedWork<K> {
    fn default() -> DroppedWork<K> {
        DroppedWork(Arc::default())
    }
}

impl<K: PartialEq> DroppedWork<K> {
    /// Waits until the work on `key` that was dropped before has ended.
    pub(crate) async fn wait(&self, key: &K) {
        while let Some(mut ended) = self.find(key) {
            // An error: nobody sends, the channel closes.
            let _ = ended.changed().await;
        }
    }

    fn find(&self, key: &K) -> Option<Ended> {
        let mut works = self.0.lock();
        works.retain(|(_, ended)| ended.has_changed().is_ok());
        works.iter().find(|(other, _)| other == key).map(|(_, ended)| ended.clone())
    }
}

impl RuntimeHandle {
    /// Runs work to completion as [`complete`](RuntimeHandle::complete) does. If the caller drops the future, later calls on
    /// `keys` can wait for its end. The work waits for none of its own keys.
    pub(crate) async fn complete_in_order<K, T: Send + 'static>(
        &self,
        dropped: &DroppedWork<K>,
        keys: Vec<K>,
        work: BoxedWork<T>,
    ) -> Result<T> {
        let (ending, ended) = watch::channel(());
        let mut caller = Caller { dropped: DroppedWork(Arc::clone(&dropped.0)), keys, ended };
        let work = async move {
            let _ending = ending;
            work.await
        };
        let result = self.complete(Box::pin(work)).await;
        caller.keys.clear();
        result
    }
}

impl<K> Drop for Caller<K> {
    fn drop(&mut self) {
        if !self.keys.is_empty() && self.ended.has_changed().is_ok() {
            let works = self.keys.drain(..).map(|key| (key, self.ended.clone()));
            self.dropped.0.lock().extend(works);
        }
    }
}
