//! Changes of objects, which go on if the caller drops the future. The later calls of the caller on the same paths wait for them.
//!
//! Invariant: only calls of the same caller wait. A slow change keeps no other caller from reading the old version.

use super::{Storage, core::LOCK_TIMEOUT};
use crate::{error::Result, objects::ObjectKey, policy::Caller, threads::BoxedWork};

impl Storage {
    /// Runs `work`, which changes what is at `keys`, to completion.
    ///
    /// # Errors
    /// As [`StorageCore::run`](super::core::StorageCore::run).
    pub(super) async fn change<T: Send + 'static>(&self, keys: Vec<ObjectKey>, work: BoxedWork<T>) -> Result<T> {
        self.wait_for_changes(|key| keys.contains(key)).await;
        let caller = self.scope.caller();
        // Anonymous callers are many, and strangers to each other.
        let keys = if caller == Caller::Anonymous { Vec::new() } else { keys };
        let keys = keys.into_iter().map(|key| (caller, key)).collect();
        self.core.runtime.complete_in_order(&self.core.detached, keys, work).await
    }

    /// Does what [`change`](Storage::change) does, under the locks of `keys`.
    ///
    /// # Errors
    /// As [`StorageCore::run_locked`](super::core::StorageCore::run_locked).
    pub(super) async fn change_locked<T: Send + 'static>(
        &self,
        keys: Vec<ObjectKey>,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (core, locked) = (self.core.clone(), keys.clone());
        self.change(keys, Box::pin(async move { core.with_locks(&locked, LOCK_TIMEOUT, work).await })).await
    }

    /// Waits for the detached changes of the caller at a path, and settles what is in doubt there.
    pub(super) async fn wait_for_changes_at(&self, changed: &ObjectKey) {
        self.wait_for_changes(|key| key == changed).await;
    }

    /// Waits for the detached changes of the caller at the paths that `is_concerned` accepts, and settles what is in doubt there.
    pub(super) async fn wait_for_changes(&self, is_concerned: impl Fn(&ObjectKey) -> bool) {
        let caller = self.scope.caller();
        self.core.detached.wait(|(other, key)| *other == caller && is_concerned(key)).await;
        self.core.settle_doubts(is_concerned).await;
    }
}
