//! Detached work: operations that run on after their callers have dropped the futures.
//!
//! Invariant: work is in the list before the drop of its future returns. So a later call can wait for it, and comes after it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;

use super::{BoxedWork, RuntimeHandle};
use crate::error::Result;

/// Detached work that has not ended, with what it changes.
pub(crate) struct DetachedWork<K>(Arc<Mutex<Vec<(K, Ended)>>>);

/// Without permits; closed when the work has ended. It wakes its waiters in their order, so that a simulation can be repeated. A watch
/// channel wakes them in a random order.
type Ended = Arc<Semaphore>;

/// Closes the semaphore when the work has ended, or is dropped.
struct Ending(Ended);

/// Is dropped with the future of running work, and then adds the work to the list.
struct DetachOnDrop<K> {
    detached: DetachedWork<K>,
    keys: Vec<K>,
    ended: Ended,
}

impl<K> Default for DetachedWork<K> {
    fn default() -> DetachedWork<K> {
        DetachedWork(Arc::default())
    }
}

impl<K> DetachedWork<K> {
    /// Waits for the work that is detached now and whose key `is_concerned` accepts. Does not wait for work that is detached
    /// meanwhile, so that a caller who starts more and more of it stops nobody.
    pub(crate) async fn wait(&self, is_concerned: impl Fn(&K) -> bool) {
        let running: Vec<_> =
            self.running().iter().filter(|(key, _)| is_concerned(key)).map(|(_, ended)| ended.clone()).collect();
        for ended in running {
            // Closed without a permit.
            let _ = ended.acquire().await;
        }
    }

    /// The work that has not ended. Removes the rest, so that the list is no longer than what runs.
    fn running(&self) -> MutexGuard<'_, Vec<(K, Ended)>> {
        let mut works = self.0.lock();
        works.retain(|(_, ended)| !ended.is_closed());
        works
    }
}

impl RuntimeHandle {
    /// Runs work to completion as [`complete`](RuntimeHandle::complete) does. Adds it to `detached` under each of `keys` if the
    /// caller drops the future. The work itself must not wait for these keys.
    pub(crate) async fn complete_in_order<K, T: Send + 'static>(
        &self,
        detached: &DetachedWork<K>,
        keys: Vec<K>,
        work: BoxedWork<T>,
    ) -> Result<T> {
        let ended = Arc::new(Semaphore::new(0));
        let ending = Ending(Arc::clone(&ended));
        let mut guard = DetachOnDrop { detached: DetachedWork(Arc::clone(&detached.0)), keys, ended };
        let work = async move {
            let _ending = ending;
            work.await
        };
        let result = self.complete(Box::pin(work)).await;
        guard.keys.clear();
        result
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<K> Drop for DetachOnDrop<K> {
    fn drop(&mut self) {
        if !self.keys.is_empty() && !self.ended.is_closed() {
            let works = self.keys.drain(..).map(|key| (key, self.ended.clone()));
            self.detached.running().extend(works);
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
    fn calls_wait_for_detached_work_with_the_same_key() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let handle = RuntimeHandle::new(runtime.handle().clone(), BlockingPool::new("test", 1));
        let detached = DetachedWork::default();
        for _ in 0..3 {
            let (release, released) = oneshot::channel();
            let work = Box::pin(async move { released.await.map_err(|_| Error::closed()) });
            let call = handle.complete_in_order(&detached, vec!["a", "b"], work);
            wait_while(call, Duration::from_millis(1), || Err(())).expect_err("interrupted");
            let (mut a, mut b, mut c) = (
                pin!(detached.wait(|key| *key == "a")),
                pin!(detached.wait(|key| *key == "b")),
                pin!(detached.wait(|key| *key == "c")),
            );
            assert!(is_pending(a.as_mut()) && is_pending(b.as_mut()) && !is_pending(c.as_mut()));
            release.send(()).expect("the work goes on");
            wait(a);
            wait(b);
            // The two keys of this work; what ended before is no longer in the list.
            assert_eq!(detached.0.lock().len(), 2);
        }
        let ended = wait(handle.complete_in_order(&detached, vec!["a"], Box::pin(async { Ok(7) })));
        assert_eq!((ended.expect("run"), detached.running().len()), (7, 0));
    }
}
