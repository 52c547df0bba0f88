//! Feeds that have fallen behind: their consumers read the log.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

use super::{
    core::{RETRY_AFTER, RealtimeCore},
    deletions::Deletions,
    subscription_state::{ReadAhead, SubscriptionState},
};
use crate::{
    database::change_log::{EntryKey, EntryKind, LogEntry, LogPoint, OutlinedRow, Position, TableSet, session_of},
    error::{Error, ErrorKind, Result},
    policy::RowKey,
    threads::wait,
};

impl RealtimeCore {
    /// Reads a page for a subscription that has fallen behind. Makes the subscription live if the page reaches the log reader.
    pub(super) async fn read_behind(&self, subscription: &Arc<SubscriptionState>, position: Position) -> Result<()> {
        let lane = self.lane(&subscription.view);
        let Some(head) = lane.registry.lock().head else {
            // A lane that stops ends its subscriptions: the consumer looks again and finds the reason.
            return if subscription.has_ended() { Ok(()) } else { Err(Error::closed()) };
        };
        if position.after < head.after {
            let cursors = self.cursors().await?;
            let (page, head) = match subscription.take_read_ahead(position.point()) {
                Some(reading) => reading.join().await?,
                None => {
                    let tables = TableSet::from_iter([subscription.view.table]);
                    (self.database.read_changes_up_to(position.point(), head.after, tables).await?, head)
                }
            };
            if subscription.has_ended() {
                return Ok(());
            }
            // One row that is larger than a page waits for a consumer, not two.
            if !page.is_last && page.end.after < head.after && !page.is_one_large_row() {
                self.read_ahead(subscription, page.end, head);
            }
            let is_rotation = |entry: &LogEntry| {
                entry.kind == EntryKind::SessionRotated && session_of(entry) == subscription.fixed_session()
            };
            // The consumer looks again by itself, so it needs no wake.
            let mut wakes = Vec::new();
            if page.entries.iter().any(is_rotation) && !self.keeps_session(subscription, &mut wakes).await? {
                return Ok(());
            }
            drop(subscription.end_if_expired(self.clock.now()));
            // After the page, so that rows which were hidden or deleted since are found.
            let mut rows =
                self.database.rows_with_keys(subscription.view.table, subscription.replayed_rows(&page)).await?;
            self.find_deletions(subscription, position.point(), head, &mut rows).await?;
            subscription.absorb(&page, &cursors, head, &rows);
        }
        let registry = lane.registry.lock();
        if let Some(head) = registry.head {
            subscription.go_live(head.after);
        }
        Ok(())
    }

    /// Notes in each row of the subscription's table where the log after `from` last deletes a row with its key. `rows` were read
    /// before. `head` is where the log reader is.
    async fn find_deletions(
        &self,
        subscription: &SubscriptionState,
        from: LogPoint,
        head: LogPoint,
        rows: &mut HashMap<RowKey, OutlinedRow>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut deletions = self.deletions[subscription.view.table as usize].lock().await;
        match self.read_deletions(subscription, from, head, &mut deletions).await {
            // What is known may be of another history.
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                deletions.forget();
                self.read_deletions(subscription, from, head, &mut deletions).await?;
            }
            read => read?,
        }
        for (key, row) in rows {
            row.last_deletion = deletions.last(key);
        }
        Ok(())
    }

    /// Reads the log for the deletions after `from` that are not known yet. Stops if the subscription ends.
    async fn read_deletions(
        &self,
        subscription: &SubscriptionState,
        from: LogPoint,
        head: LogPoint,
        deletions: &mut Deletions,
    ) -> Result<()> {
        let tables = TableSet::from_iter([subscription.view.table]);
        let mut end = deletions.begin(from);
        while end.after < head.after && !subscription.has_ended() {
            let page = self.database.read_changes_up_to(end, head.after, tables).await?;
            deletions.note(&page);
            // The last page reaches the head also if no entry has the head's key.
            end = if page.is_last { page.end.max(head) } else { page.end };
            deletions.advance_to(end);
        }
        // A key that was given again was deleted in a transaction that has ended, but an entry before that one may be missing
        // yet (PostgreSQL). So the entries after the log reader are read each time.
        while !subscription.has_ended() {
            let page = self.database.read_changes_up_to(end, EntryKey::up_to(i64::MAX), tables).await?;
            deletions.note(&page);
            end = page.end;
            if page.is_last {
                break;
            }
        }
        Ok(())
    }

    /// Starts to read the page after `after`, while the subscription's consumer uses the page before. On SQLite a read waits for
    /// nobody, so it is no faster on another thread.
    fn read_ahead(&self, subscription: &SubscriptionState, after: LogPoint, head: LogPoint) {
        if self.database.is_embedded() {
            return;
        }
        let (this, tables) = (Weak::clone(&self.this), TableSet::from_iter([subscription.view.table]));
        let page = self.runtime.spawn(async move {
            let core = this.upgrade().ok_or_else(Error::closed)?;
            core.database.read_changes_up_to(after, head.after, tables).await
        });
        subscription.set_read_ahead(ReadAhead { after, head, page });
    }

    /// Reads a page for a stream that has fallen behind. Tries again after a failure, as long as the subscription has not ended.
    pub(super) fn spawn_read(&self, subscription: &Arc<SubscriptionState>, position: Position) -> JoinHandle<()> {
        let (this, subscription) = (Weak::clone(&self.this), Arc::clone(subscription));
        let readers = Arc::clone(&self.lane(&subscription.view).readers);
        self.runtime.spawn(async move {
            while !subscription.has_ended() {
                let read = match Arc::clone(&readers).acquire_owned().await {
                    Ok(turn) => read_on_thread(&this, &subscription, position.clone(), turn).await,
                    Err(_) => Err(Error::closed()),
                };
                match read {
                    Ok(()) => return,
                    Err(error) if error.kind() == ErrorKind::CursorExpired => {
                        subscription.end_after_batch(Some(error));
                        return;
                    }
                    Err(error) if error.kind() == ErrorKind::Closed => return subscription.close(),
                    Err(error) => {
                        tracing::warn!(%error, "the change log could not be read for a slow stream; it tries again");
                    }
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
        })
    }

    /// Lets a subscription read the log again after a while, or ends it if the entries that it needs were deleted from the log.
    pub(super) fn retry_later(&self, subscription: &Arc<SubscriptionState>, error: &Error) {
        match error.kind() {
            ErrorKind::CursorExpired => {
                let wake = subscription.end_after_batch(Some(error.clone()));
                self.deliver(wake.into_iter().collect());
            }
            ErrorKind::Closed => {}
            _ => {
                tracing::warn!(%error, "the change log could not be read for a slow subscription; it tries again");
                let (this, subscription) = (Weak::clone(&self.this), Arc::downgrade(subscription));
                self.runtime.spawn(async move {
                    tokio::time::sleep(RETRY_AFTER).await;
                    if let (Some(core), Some(subscription)) = (this.upgrade(), subscription.upgrade()) {
                        core.deliver(subscription.wake().into_iter().collect());
                    }
                });
            }
        }
    }
}

/// Reads a page for a stream on a thread of its own, which holds `turn` until it is done. To judge a page may take long, and the
/// threads of the runtime are few.
async fn read_on_thread(
    core: &Weak<RealtimeCore>,
    subscription: &Arc<SubscriptionState>,
    position: Position,
    turn: OwnedSemaphorePermit,
) -> Result<()> {
    let core = core.upgrade().ok_or_else(Error::closed)?;
    let (threads, subscription) = (core.runtime.blocking.clone(), Arc::clone(subscription));
    let read = move || {
        let _turn = turn;
        if subscription.has_ended() { Ok(()) } else { wait(core.read_behind(&subscription, position)) }
    };
    threads.run(read).await?
}
