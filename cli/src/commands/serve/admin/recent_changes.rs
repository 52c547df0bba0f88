//! The changes since the server started, for the page that shows them as they come.
//!
//! Invariant: it never switches the change log on. A feed that ends is not begun again, because an operator may have switched the log
//! off.

use std::{collections::VecDeque, sync::Arc};

use futures_util::{StreamExt as _, stream::select_all};
use tokio::sync::watch;
use townsquare::{
    Client, Json, Result, Timestamp,
    realtime::{ChangeRequest, EventType, RowChange},
};

use crate::{output::cut, printable::printable_json};

/// The tables with changes.
pub(super) const TABLES: [&str; 7] =
    ["spaces", "fidgets", "users", "files", "community_configs", "community_domains", "spaceRegistrations"];

/// The most changes that are kept.
pub(super) const MOST_CHANGES: usize = 200;

/// The most characters of a row that are kept.
const MOST_ROW: usize = 4_096;

/// A change as it is shown.
#[derive(Debug)]
pub(super) struct Entry {
    /// The place among the changes of this run of the server, from 1.
    pub(super) number: u64,
    pub(super) table: &'static str,
    pub(super) event: EventType,
    pub(super) committed: Timestamp,
    /// The primary key.
    pub(super) key: String,
    /// The new row, or the old one of a deletion, as JSON that may be cut.
    pub(super) row: String,
}

impl Entry {
    fn of(number: u64, change: &RowChange) -> Entry {
        let row = change.new.as_ref().or(change.old.as_ref());
        let column = |name: &str| row.and_then(|row| row.get(name)).and_then(Json::as_str);
        let key = match (column("id").or_else(|| column("spaceId")), column("bucket"), column("path")) {
            (Some(id), ..) => id.to_owned(),
            (_, Some(bucket), Some(path)) => format!("{bucket}/{path}"),
            _ => String::new(),
        };
        let row = row.and_then(|row| serde_json::to_string(&**row).ok()).unwrap_or_default();
        Entry {
            number,
            table: change.table,
            event: change.event_type,
            committed: change.commit_timestamp,
            key,
            row: printable_json(&cut(&row, MOST_ROW)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The last changes, the oldest first.
    entries: VecDeque<Arc<Entry>>,
    /// The number of the last change.
    last: u64,
    problem: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct RecentChanges(watch::Sender<State>);

impl RecentChanges {
    /// Follows the changes until the client is closed. `no_feed` says why there are none.
    pub(super) async fn follow(&self, client: &Client, no_feed: Option<String>) {
        if no_feed.is_some() {
            self.0.send_modify(|state| state.problem = no_feed);
            return;
        }
        if let Err(error) = self.follow_all(client).await {
            let sentence = format!("The changes ended: {error}. A new start of `serve` follows them again.");
            self.0.send_modify(|state| state.problem = Some(sentence));
        }
    }

    async fn follow_all(&self, client: &Client) -> Result<()> {
        let mut streams = Vec::new();
        for table in TABLES {
            streams.push(client.realtime().changes(ChangeRequest::table(table)).await?);
        }
        let mut changes = select_all(streams);
        while let Some(change) = changes.next().await.transpose()? {
            self.0.send_modify(|state| {
                state.last += 1;
                state.entries.push_back(Arc::new(Entry::of(state.last, &change)));
                if state.entries.len() > MOST_CHANGES {
                    state.entries.pop_front();
                }
            });
        }
        Ok(())
    }

    /// The changes after a number, the oldest first.
    pub(super) fn after(&self, number: u64) -> Vec<Arc<Entry>> {
        self.0.borrow().entries.iter().filter(|entry| entry.number > number).cloned().collect()
    }

    /// The number of the last change; 0 without one.
    pub(super) fn last(&self) -> u64 {
        self.0.borrow().last
    }

    /// Why changes are missing.
    pub(super) fn problem(&self) -> Option<String> {
        self.0.borrow().problem.clone()
    }

    /// Waits for changes after a number.
    pub(super) async fn wait_for_more(&self, number: u64) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|state| state.last > number).await;
    }
}
