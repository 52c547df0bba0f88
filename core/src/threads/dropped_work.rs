//! Work that goes on after its caller has dropped the future: later calls on the same thing wait for its end.
//!
//! Invariant: such work is registered before the drop of its future returns, so whatever the program does next comes after it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
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
        self.running().iter().find(|(other, _)| other == key).map(|(_, ended)| ended.clone())
    }
}

impl<K> DroppedWork<K> {
    /// The work that has not ended. Forgets the rest, so that the list is no longer than what runs.
    fn running(&self) -> MutexGuard<'_, Vec<(K, Ended)>> {
        let mut works = self.0.lock();
        works.retain(|(_, ended)| ended.has_changed().is_ok());
        works
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
            self.dropped.running().extend(works);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use tokio::sync::oneshot;

    use super::*;
    use crate::{
        error::Error,
        threads::{BlockingPool, wait, wait_while},
    };

    fn is_pending(future: Pin<&mut impl Future>) -> bool {
        matches!(future.poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
    }

    #[test]
    fn calls_on_a_key_wait_for_work_that_was_dropped_on_it() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let handle = RuntimeHandle::new(runtime.handle().clone(), BlockingPool::new("test", 1));
        let dropped = DroppedWork::default();
        for _ in 0..3 {
            let (release, released) = oneshot::channel();
            let work = Box::pin(async move { released.await.map_err(|_| Error::closed()) });
            let call = handle.complete_in_order(&dropped, vec!["a", "b"], work);
            wait_while(call, Duration::from_millis(1), || Err(())).expect_err("interrupted");
            let (mut a, mut b, mut c) = (pin!(dropped.wait(&"a")), pin!(dropped.wait(&"b")), pin!(dropped.wait(&"c")));
            assert!(is_pending(a.as_mut()) && is_pending(b.as_mut()) && !is_pending(c.as_mut()));
            release.send(()).expect("the work goes on");
            wait(a);
            wait(b);
            // The list does not grow.
            assert_eq!(dropped.0.lock().len(), 0);
        }
        let ended = wait(handle.complete_in_order(&dropped, vec!["a"], Box::pin(async { Ok(7) })));
        assert_eq!((ended.expect("run"), dropped.0.lock().len()), (7, 0));
    }
}
