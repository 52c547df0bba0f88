//! Subscriptions that have fallen behind: their consumers read the log.
//!
//! Invariant: one thread at a time reads for a subscription, from its position. An entry that was written before the subscription
//! began is also judged by the row as it is now, except for the service.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use super::{
    core::RealtimeCore,
    deletions::{Deletions, find_in_page},
    pending_change::PendingChange,
    subscription_state::SubscriptionState,
    view::SharedChange,
};
use crate::{
    database::{
        change_log::{
            CursorKey, EntryKey, EntryKind, LogEntry, LogPage, LogPoint, OutlinedRow, Position, TableSet, session_of,
        },
        session_ended,
    },
    error::{Error, ErrorKind, Result},
    policy::{Caller, RowKey, may_see},
    threads::wait,
};

impl RealtimeCore {
    /// Reads a page for a subscription that is behind, and lets it join the log reader if the page reaches it. If there is nothing to
    /// read, checks that the log has what the position stands on.
    ///
    /// # Errors
    /// `CursorExpired` if the log does not have what the position stands on, or what follows it.
    pub(super) async fn read_behind(&self, subscription: &Arc<SubscriptionState>, position: Position) -> Result<()> {
        let lane = self.lane(&subscription.view);
        let Some(head) = lane.registry.lock().head else {
            // A lane that stops ends its subscriptions: the consumer looks again and finds the reason.
            return if subscription.has_ended() { Ok(()) } else { Err(Error::closed()) };
        };
        let is_unchecked = subscription.is_unchecked();
        let has_page = !is_unchecked && position.after < head.after;
        if has_page {
            let cursors = self.cursors().await?;
            let tables = TableSet::from_iter([subscription.view.table]);
            let page = self.database.read_changes_up_to(position.point(), head.after, tables).await?;
            // The last page reaches the log reader also if no entry has the log reader's key.
            let mut reached = position.clone();
            reached.advance_to(position.point().max(if page.is_last { head } else { page.end.min(head) }));
            // The page was read after the point alone. What the snapshot saw is checked with the first page and the last one that
            // leave it out.
            let is_first = position.seen.as_ref().is_some_and(|snapshot| position.after.id <= snapshot.settled);
            if is_first || (position.seen.is_some() && reached.seen.is_none()) {
                self.database.check_position(&position).await?;
            }
            if subscription.has_ended() {
                return Ok(());
            }
            let is_rotation = |entry: &LogEntry| {
                entry.kind == EntryKind::SessionRotated && session_of(entry) == subscription.fixed_session()
            };
            if page.entries.iter().any(is_rotation) && !self.keeps_session(subscription).await? {
                return Ok(());
            }
            self.wake(subscription.end_if_expired(self.clock.now()));
            // After the page, so that rows which were hidden or deleted since are found.
            let mut rows =
                self.database.rows_with_keys(subscription.view.table, replayed_rows(subscription, &page)).await?;
            self.find_deletions(subscription, position.point(), head, &mut rows).await?;
            let (changes, end) = changes_of(subscription, &position, &page, &cursors, head, &rows);
            subscription.add_read(changes, reached, end);
        } else {
            self.database.check_position(&position).await?;
            if is_unchecked {
                subscription.approve();
            } else if position.is_reached_by(head.after) {
                // No entry is between the position and the log reader.
                subscription.add_read(Vec::new(), head.into(), None);
            }
        }
        let mut registry = lane.registry.lock();
        let Some(head) = registry.head else { return Ok(()) };
        let woken = registry.join(subscription, head);
        drop(registry);
        self.wake(woken);
        self.failures.clear();
        if has_page || is_unchecked {
            self.signal_for(subscription);
        }
        Ok(())
    }

    /// Sets `last_deletion` of each row to the id of the last entry after `from` that deletes its key. `rows` are of the
    /// subscription's table and were read before. `head` is where the log reader is.
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
        match self.read_deletions(subscription, from, head, &mut deletions, rows).await {
            // What is known may be of another history.
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                deletions.forget();
                rows.values_mut().for_each(|row| row.last_deletion = 0);
                self.read_deletions(subscription, from, head, &mut deletions, rows).await
            }
            read => read,
        }
    }

    /// Finds the deletions of `rows` after `from`. Reads the parts of the log with deletions that are not known yet. Stops if the
    /// subscription ends.
    async fn read_deletions(
        &self,
        subscription: &SubscriptionState,
        from: LogPoint,
        head: LogPoint,
        deletions: &mut Deletions,
        rows: &mut HashMap<RowKey, OutlinedRow>,
    ) -> Result<()> {
        let tables = TableSet::from_iter([subscription.view.table]);
        let (start, known_end) = deletions.known(from);
        let (mut at, mut is_remembered) = (from, true);
        while at.after < start.after && !subscription.has_ended() {
            let page = self.database.read_changes_up_to(at, start.after, tables).await?;
            find_in_page(&page, rows);
            is_remembered &= deletions.remember(&page);
            at = if page.is_last { page.end.max(start) } else { page.end };
        }
        if is_remembered && start.after <= at.after && from.after < start.after {
            deletions.begin_at(from);
        }
        let mut end = known_end;
        while end.after < head.after && !subscription.has_ended() {
            let page = self.database.read_changes_up_to(end, head.after, tables).await?;
            find_in_page(&page, rows);
            is_remembered = deletions.remember(&page);
            // The last page reaches the head also if no entry has the head's key.
            end = if page.is_last { page.end.max(head) } else { page.end };
            if is_remembered {
                deletions.advance_to(end);
            }
        }
        // A key that was given again was deleted in a transaction that has ended, but an entry before that one may be missing
        // yet (PostgreSQL). So the entries after the log reader are read each time.
        while !subscription.has_ended() {
            let page = self.database.read_changes_up_to(end, EntryKey::up_to(i64::MAX), tables).await?;
            find_in_page(&page, rows);
            end = page.end;
            if page.is_last {
                break;
            }
        }
        deletions.find(rows);
        Ok(())
    }

    /// Makes a thread read a page for a stream: to judge a page may take long, and the threads of a runtime are few. If the
    /// stream is dropped while its job is queued, the job does nothing. Ends the stream if the client is closed.
    pub(super) fn read_for_stream(&self, subscription: &Arc<SubscriptionState>, position: Position) {
        let (this, weak) = (Weak::clone(&self.this), Arc::downgrade(subscription));
        let submitted = self.lane(&subscription.view).replays.submit(move || {
            let (Some(core), Some(subscription)) = (this.upgrade(), weak.upgrade()) else { return };
            if subscription.has_ended() {
                return;
            }
            match wait(core.read_behind(&subscription, position)) {
                Ok(()) => core.wake(subscription.end_read()),
                Err(error) => core.retry_read(&subscription, error),
            }
        });
        if submitted.is_err() {
            subscription.close();
        }
    }

    /// Lets a consumer read the log again after a while, or ends the subscription if the entries that it needs were deleted from
    /// the log.
    pub(super) fn retry_read(&self, subscription: &Arc<SubscriptionState>, error: Error) {
        match error.kind() {
            ErrorKind::CursorExpired => self.wake(subscription.end_after_batch(Some(error))),
            ErrorKind::Closed => subscription.close(),
            _ => {
                let pause = self.failures.add(&error);
                let (this, subscription) = (Weak::clone(&self.this), Arc::downgrade(subscription));
                self.runtime.spawn(async move {
                    tokio::time::sleep(pause).await;
                    if let (Some(core), Some(subscription)) = (this.upgrade(), subscription.upgrade()) {
                        core.wake(subscription.end_read());
                    }
                });
            }
        }
    }
}

/// The keys of the rows that the subscription has to look up in the tables before it takes over the page.
fn replayed_rows(subscription: &SubscriptionState, page: &LogPage) -> Vec<RowKey> {
    let is_replayed = |entry: &&LogEntry| entry.table == subscription.view.table && subscription.replays(entry.key);
    let mut keys: Vec<_> = page.entries.iter().filter(is_replayed).filter_map(LogEntry::row_key).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The changes of a page for the subscription at `position`, up to the point `head` of the log reader, and why it ends after them.
/// `rows` are the rows of [`replayed_rows`] that exist.
fn changes_of(
    subscription: &SubscriptionState,
    position: &Position,
    page: &LogPage,
    cursors: &CursorKey,
    head: LogPoint,
    rows: &HashMap<RowKey, OutlinedRow>,
) -> (Vec<PendingChange>, Option<Error>) {
    let view = &subscription.view;
    let (mut changes, mut end_reason) = (Vec::new(), None);
    for entry in page.entries.iter().take_while(|entry| entry.key <= head.after) {
        if !position.includes(&entry.key) {
            continue;
        }
        if let Some(session_id) = session_of(entry).filter(|_| entry.kind == EntryKind::SessionEnded) {
            if subscription.fixed_session() == Some(session_id) {
                end_reason = Some(session_ended());
                break;
            }
            // The log reader can have passed the entry before it knew the handle.
            if let Some(timeline) = subscription.timeline() {
                timeline.end_session(session_id, entry.key);
            }
        }
        if entry.table != view.table || subscription.is_after_end(&entry.key) {
            continue;
        }
        let caller = subscription.caller_at(entry.key);
        let shared = if subscription.replays(entry.key) && is_gone(entry, caller, rows) {
            SharedChange::of_gone_row(entry, cursors)
        } else {
            SharedChange::new(entry, cursors)
        };
        changes.extend(shared.and_then(|shared| view.change(&shared, caller, position)));
    }
    (changes, end_reason)
}

/// Whether the caller may only learn the key of the row of a replayed entry: the row is deleted or hidden from the caller. Another
/// row may have the key of a deleted one.
fn is_gone(entry: &LogEntry, caller: Caller, rows: &HashMap<RowKey, OutlinedRow>) -> bool {
    let is_shown = |row: &OutlinedRow| {
        entry.key.id > row.last_deletion && may_see(entry.table, caller, &row.image, row.context.as_ref())
    };
    entry.kind == EntryKind::Delete || !entry.row_key().and_then(|key| rows.get(&key)).is_some_and(is_shown)
}
