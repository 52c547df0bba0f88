//! Starts and stops the watch for commits.
//!
//! Invariant: a lane that has a head is signalled after each later commit.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use super::{core::RealtimeCore, lane::Lane};
use crate::error::{Error, Result};

/// How long the watch outlives the last subscription: a program that subscribes again soon finds it running.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);

impl RealtimeCore {
    /// Starts to watch for commits, if nobody does, and to read the log for a lane.
    pub(super) async fn ensure_watch(&self, lane: &Lane) -> Result<()> {
        if lane.is_active() {
            return Ok(());
        }
        let _starting = self.starting.lock().await;
        if lane.is_active() {
            return Ok(());
        }
        let is_watched = self.watch.lock().is_some();
        let watch = if is_watched {
            None
        } else {
            let this = Weak::clone(&self.this);
            let on_commit = move || {
                if let Some(core) = this.upgrade() {
                    core.signal();
                }
            };
            Some(self.database.watch_commits(Arc::new(on_commit)).await?)
        };
        // After the watch has begun: a commit after this position is signalled.
        let head = self.database.head().await?;
        let mut registry = lane.registry.lock();
        if self.is_closed() {
            drop(registry);
            return Err(Error::closed());
        }
        if let Some(watch) = watch {
            *self.watch.lock() = Some(watch);
        }
        lane.set_head(&mut registry, Some(head.point()));
        Ok(())
    }

    /// Stops the watch after a while, unless somebody subscribes meanwhile.
    pub(super) fn stop_unused_watch_later(&self) {
        if !self.is_closed() && !self.is_watch_ending.swap(true, Ordering::AcqRel) {
            let this = Weak::clone(&self.this);
            self.runtime.spawn(async move {
                tokio::time::sleep(IDLE_TIMEOUT).await;
                if let Some(core) = this.upgrade() {
                    core.stop_unused_watch().await;
                }
            });
        }
    }

    /// Stops reading the log for lanes without subscriptions. If no lane has subscriptions, also stops the watch for commits.
    async fn stop_unused_watch(&self) {
        self.is_watch_ending.store(false, Ordering::Release);
        let _starting = self.starting.lock().await;
        let mut is_used = false;
        for lane in &self.lanes {
            let mut registry = lane.registry.lock();
            if registry.len() == 0 {
                lane.set_head(&mut registry, None);
            } else {
                is_used = true;
            }
        }
        if !is_used {
            let watch = self.watch.lock().take();
            // The end of a watch may wait for a thread.
            if let Err(error) = self.runtime.blocking.submit(move || drop(watch)) {
                tracing::debug!(%error, "the watch for commits was stopped on the calling thread");
            }
        }
    }
}
