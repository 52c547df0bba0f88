//! Feeds that have fallen behind: their consumers read the log.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use tokio::{sync::OwnedSemaphorePermit, task::JoinHandle};

use super::{
    core::{RETRY_AFTER, RealtimeCore},
    deletions::Deletions,
    feed::{Feed, ReadAhead},
};
use crate::{
    database::change_log::{EntryKey, EntryKind, LogEntry, LogPoint, OutlinedRow, Position, TableSet, session_of},
    error::{Error, ErrorKind, Result},
    policy::RowKey,
    threads::wait,
};

impl RealtimeCore {
    /// Reads a page for a feed that has fallen behind. Makes the feed live if the page reaches the pump.
    pub(super) async fn read_behind(&self, feed: &Arc<Feed>, position: Position) -> Result<()> {
        let lane = self.lane(&feed.view);
        let Some(head) = lane.registry.lock().head else {
            // A lane that stops ends its feeds: the consumer looks again and finds the reason.
            return if feed.has_ended() { Ok(()) } else { Err(Error::closed()) };
        };
        if position.after < head.after {
            let cursors = self.cursors().await?;
            let (page, head) = match feed.take_read_ahead(position.point()) {
                Some(reading) => reading.join().await?,
                None => {
                    let tables = TableSet::from_iter([feed.view.table]);
                    (self.database.read_changes_up_to(position.point(), head.after, tables).await?, head)
                }
            };
            if feed.has_ended() {
                return Ok(());
            }
            // One row that is larger than a page waits for a consumer, not two.
            if !page.is_last && page.end.after < head.after && !page.is_one_large_row() {
                self.read_ahead(feed, page.end, head);
            }
            let is_rotation =
                |entry: &LogEntry| entry.kind == EntryKind::SessionRotated && session_of(entry) == feed.fixed_session();
            // The consumer looks again by itself, so it needs no wake.
            let mut wakes = Vec::new();
            if page.entries.iter().any(is_rotation) && !self.keeps_session(feed, &mut wakes).await? {
                return Ok(());
            }
            drop(feed.end_if_expired(self.clock.now()));
            // After the page, so that rows which were hidden or deleted since are found.
            let mut rows = self.database.rows_with_keys(feed.view.table, feed.replayed_rows(&page)).await?;
            self.find_deletions(feed, position.point(), head, &mut rows).await?;
            feed.absorb(&page, &cursors, head, &rows);
        }
        let registry = lane.registry.lock();
        if let Some(head) = registry.head {
            feed.go_live(head.after);
        }
        Ok(())
    }

    /// Notes in each row of the feed's table where the log after `from` last deletes a row with its key. `rows` were read before.
    /// `head` is where the pump is.
    async fn find_deletions(
        &self,
        feed: &Feed,
        from: LogPoint,
        head: LogPoint,
        rows: &mut HashMap<RowKey, OutlinedRow>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut deletions = self.deletions[feed.view.table as usize].lock().await;
        match self.read_deletions(feed, from, head, &mut deletions).await {
            // What is known may be of another history.
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                deletions.forget();
                self.read_deletions(feed, from, head, &mut deletions).await?;
            }
            read => read?,
        }
        for (key, row) in rows {
            row.last_deletion = deletions.last(key);
        }
        Ok(())
    }

    /// Reads the log for the deletions after `from` that are not known yet. Stops if the feed ends.
    async fn read_deletions(
        &self,
        feed: &Feed,
        from: LogPoint,
        head: LogPoint,
        deletions: &mut Deletions,
    ) -> Result<()> {
        let tables = TableSet::from_iter([feed.view.table]);
        let mut end = deletions.begin(from);
        while end.after < head.after && !feed.has_ended() {
            let page = self.database.read_changes_up_to(end, head.after, tables).await?;
            deletions.note(&page);
            // The last page reaches the head also if no entry has the head's key.
            end = if page.is_last { page.end.max(head) } else { page.end };
            deletions.advance_to(end);
        }
        // A key that was given again was deleted in a transaction that has ended, but an entry before that one may be missing
        // yet (PostgreSQL). So the entries after the pump are read each time.
        while !feed.has_ended() {
            let page = self.database.read_changes_up_to(end, EntryKey::up_to(i64::MAX), tables).await?;
            deletions.note(&page);
            end = page.end;
            if page.is_last {
                break;
            }
        }
        Ok(())
    }

    /// Starts to read the page after `after`, while the feed's consumer uses the page before. On SQLite a read waits for nobody,
    /// so it is no faster on another thread.
    fn read_ahead(&self, feed: &Feed, after: LogPoint, head: LogPoint) {
        if self.database.is_embedded() {
            return;
        }
        let (this, tables) = (Weak::clone(&self.this), TableSet::from_iter([feed.view.table]));
        let page = self.runtime.spawn(async move {
            let core = this.upgrade().ok_or_else(Error::closed)?;
            core.database.read_changes_up_to(after, head.after, tables).await
        });
        feed.set_read_ahead(ReadAhead { after, head, page });
    }

    /// Reads a page for a stream that has fallen behind. Tries again after a failure, as long as the feed has not ended.
    pub(super) fn spawn_read(&self, feed: &Arc<Feed>, position: Position) -> JoinHandle<()> {
        let (this, feed) = (Weak::clone(&self.this), Arc::clone(feed));
        let readers = Arc::clone(&self.lane(&feed.view).readers);
        self.runtime.spawn(async move {
            while !feed.has_ended() {
                let read = match Arc::clone(&readers).acquire_owned().await {
                    Ok(turn) => read_on_thread(&this, &feed, position.clone(), turn).await,
                    Err(_) => Err(Error::closed()),
                };
                match read {
                    Ok(()) => return,
                    Err(error) if error.kind() == ErrorKind::CursorExpired => {
                        feed.end_after_batch(Some(error));
                        return;
                    }
                    Err(error) if error.kind() == ErrorKind::Closed => return feed.close(),
                    Err(error) => {
                        tracing::warn!(%error, "the change log could not be read for a slow stream; it tries again");
                    }
                }
                tokio::time::sleep(RETRY_AFTER).await;
            }
        })
    }

    /// Lets a feed read the log again after a while, or ends it if the entries that it needs were deleted from the log.
    pub(super) fn retry_later(&self, feed: &Arc<Feed>, error: &Error) {
        match error.kind() {
            ErrorKind::CursorExpired => {
                let wake = feed.end_after_batch(Some(error.clone()));
                self.deliver(wake.into_iter().collect());
            }
            ErrorKind::Closed => {}
            _ => {
                tracing::warn!(%error, "the change log could not be read for a slow subscription; it tries again");
                let (this, feed) = (Weak::clone(&self.this), Arc::downgrade(feed));
                self.runtime.spawn(async move {
                    tokio::time::sleep(RETRY_AFTER).await;
                    if let (Some(core), Some(feed)) = (this.upgrade(), feed.upgrade()) {
                        core.deliver(feed.wake().into_iter().collect());
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
    feed: &Arc<Feed>,
    position: Position,
    turn: OwnedSemaphorePermit,
) -> Result<()> {
    let core = core.upgrade().ok_or_else(Error::closed)?;
    let (threads, feed) = (core.runtime.blocking.clone(), Arc::clone(feed));
    let read = move || {
        let _turn = turn;
        if feed.has_ended() { Ok(()) } else { wait(core.read_behind(&feed, position)) }
    };
    threads.run(read).await?
}
