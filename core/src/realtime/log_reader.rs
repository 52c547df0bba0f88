//! Reads the log after each commit and gives the entries to the subscriptions of a lane.
//!
//! Invariant: one thread at a time reads the log for a lane. It reads one page a job. The thread that has read the last page
//! runs the first callback itself, which saves a change of threads; another one reads the log meanwhile.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    core::RealtimeCore,
    lane::Lane,
    subscription_state::{SubscriptionState, WokenConsumer},
};
use crate::{
    database::change_log::{EntryKind, LogPage, LogPoint, capture_is_off, session_of},
    error::{Error, ErrorKind, Result},
    threads::wait,
};

/// A page that was given to the subscriptions.
#[derive(Default)]
struct DeliveredPage {
    /// Whether nothing comes after it.
    is_last: bool,
    woken: Vec<WokenConsumer>,
}

impl RealtimeCore {
    /// Makes a thread read the log for each lane, after a commit.
    pub(super) fn signal(&self) {
        for (index, lane) in self.lanes.iter().enumerate() {
            if lane.is_active() && lane.signal() {
                self.start_reader(index, lane.remaining_pause());
            }
        }
    }

    /// Starts the log readers if a subscription waits for them. What it waits for may be after the last entry, where no commit starts
    /// them.
    pub(super) fn signal_for(&self, subscription: &SubscriptionState) {
        if subscription.awaits_reader() {
            self.signal();
        }
    }

    /// Makes a thread read a page for a lane after `delay`.
    fn start_reader(&self, index: usize, delay: Duration) {
        let this = Weak::clone(&self.this);
        if !delay.is_zero() {
            self.runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                if let Some(core) = this.upgrade() {
                    core.start_reader(index, Duration::ZERO);
                }
            });
            return;
        }
        let read = move || {
            if let Some(core) = this.upgrade() {
                core.read_log(index);
            }
        };
        // Before the callbacks that wait for a thread: many subscriptions wait for what the log has.
        if self.callbacks.submit_first(read).is_err() {
            // The client is closed.
            self.lanes[index].stop_reader();
        }
    }

    /// The job of a log reader.
    fn read_log(&self, index: usize) {
        let lane = &self.lanes[index];
        lane.begin_read();
        let next_after = match self.deliver_page(lane) {
            Ok(DeliveredPage { is_last, woken }) => {
                self.failures.clear();
                let callbacks = WokenConsumer::wake_tasks(woken);
                if let Err(error) = self.callbacks.submit_before_return(callbacks) {
                    tracing::debug!(%error, "callbacks have no thread");
                }
                match is_last {
                    true if lane.end_read() => return,
                    true => lane.remaining_pause(),
                    false => Duration::ZERO,
                }
            }
            Err(error) if error.kind() == ErrorKind::Closed => return lane.stop_reader(),
            Err(error) => self.failures.add(&error),
        };
        self.start_reader(index, next_after);
    }

    /// Reads one page and gives it to the subscriptions.
    fn deliver_page(&self, lane: &Lane) -> Result<DeliveredPage> {
        let (head, tables, has_waiting) = {
            let registry = lane.registry.lock();
            let Some(head) = registry.head else {
                return Ok(DeliveredPage { is_last: true, woken: Vec::new() });
            };
            (head, registry.tables(), registry.has_waiting())
        };
        let cursors = wait(self.cursors())?;
        // A transaction that is rolled back takes ids and leaves no entry, so the last entry does not tell up to which id the log is
        // complete. The end is read before the page, so the last page has every entry up to it.
        let end = if has_waiting { Some(wait(self.database.log_end())?) } else { None };
        let page = match wait(self.database.read_changes(head, tables)) {
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                self.end_lane(lane, &error)?;
                return Ok(DeliveredPage::default());
            }
            page => page?,
        };
        if page.end == head {
            let mut registry = lane.registry.lock();
            if registry.head.is_none_or(|now| now.after != head.after) {
                return Ok(DeliveredPage::default());
            }
            let mut woken = Vec::new();
            registry.end_waits(end, &mut woken);
            return Ok(DeliveredPage { is_last: true, woken });
        }
        self.follow_callers(lane, head, &page)?;
        let mut registry = lane.registry.lock();
        if registry.head.is_none_or(|now| now.after != head.after) || !tables.contains_all(registry.tables()) {
            // The lane was idle meanwhile and begins elsewhere, or a subscription of another table has joined, and the page can
            // lack rows for it.
            return Ok(DeliveredPage::default());
        }
        let mut woken = registry.end_expired(self.clock.now());
        let dispatch = registry.begin_dispatch(&page);
        drop(registry);
        if let Some(dispatch) = dispatch {
            dispatch.run(&page, &cursors, &lane.registry, &mut woken);
            lane.registry.lock().end_dispatch(end.filter(|_| page.is_last), &mut woken);
        }
        if page.is_last {
            lane.note_last_page(page.count);
        }
        Ok(DeliveredPage { is_last: page.is_last, woken })
    }

    /// Takes over the changes of callers that count for a page. The page was read before, so its entries were committed before a
    /// later change of a caller.
    fn follow_callers(&self, lane: &Lane, head: LogPoint, page: &LogPage) -> Result<()> {
        let changed = lane.registry.lock().changed_timelines();
        for timeline in changed {
            timeline.follow(head.after, |session_id| wait(self.database.session_entries(session_id, head.after)))?;
        }
        // Changes after a rotation of tokens are only for handles with the new tokens.
        let rotated = page.entries.iter().filter(|entry| entry.kind == EntryKind::SessionRotated);
        let subscriptions = lane.registry.lock().subscriptions_of_sessions(rotated.filter_map(session_of));
        for subscription in subscriptions {
            wait(self.keeps_session(&subscription))?;
        }
        Ok(())
    }

    /// Ends the subscriptions of a lane because of `error`: another process has pruned entries that they have not read. Or another
    /// server with another history has taken over; it may have another incarnation, or capture off.
    fn end_lane(&self, lane: &Lane, error: &Error) -> Result<()> {
        tracing::warn!(%error, "the change feed ends its subscriptions");
        let (is_on, cursors) = wait(self.database.capture_state())?;
        self.cursors.store(Some(Arc::new(cursors)));
        if is_on {
            let head = wait(self.database.head())?.point();
            self.end_all(lane, error, Some(head));
        } else {
            self.end_all(lane, &capture_is_off(), None);
        }
        Ok(())
    }
}
