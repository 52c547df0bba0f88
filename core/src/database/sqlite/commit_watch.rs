//! Tells of commits: those of this client's writer between COMMIT and the answers, and those of other processes within
//! milliseconds.

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use parking_lot::{Condvar, Mutex};

use super::connection::Connection;
use crate::{
    database::change_log::{CommitWatch, OnCommit},
    error::Result,
    threads,
};

/// How often the file is checked for commits of other processes. A check takes 3 us.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Ends the watch when it is dropped.
struct Guard {
    listeners: CommitListener,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    is_stopped: Mutex<bool>,
    stopped: Condvar,
}

/// What a writer tells of its commits.
pub(super) type CommitListener = Arc<arc_swap::ArcSwapOption<OnCommit>>;

/// Starts to tell `on_commit` of the commits of the writer with `listeners` and of other processes. `connection` is used for
/// nothing else.
pub(super) fn start(listeners: CommitListener, connection: Connection, on_commit: OnCommit) -> Result<CommitWatch> {
    let stop = Arc::new(Stop::default());
    // Before this function returns: a commit that follows changes the version.
    let mut version = data_version(&connection);
    let (of_thread, tell) = (Arc::clone(&stop), Arc::clone(&on_commit));
    let thread = threads::spawn("townsquare-watch", move || {
        loop {
            let mut is_stopped = of_thread.is_stopped.lock();
            if !*is_stopped {
                of_thread.stopped.wait_for(&mut is_stopped, POLL_INTERVAL);
            }
            if *is_stopped {
                return;
            }
            drop(is_stopped);
            let now = data_version(&connection);
            if now != version {
                version = now;
                tell();
            }
        }
    })?;
    listeners.store(Some(Arc::new(on_commit)));
    Ok(CommitWatch::new(Guard { listeners, stop, thread: Some(thread) }))
}

/// A number that changes with every commit of another connection. `None` if it cannot be read now.
fn data_version(connection: &Connection) -> Option<i64> {
    let mut statement = connection.0.prepare_cached("PRAGMA data_version").ok()?;
    statement.query_row([], |row| row.get(0)).ok()
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.listeners.store(None);
        *self.stop.is_stopped.lock() = true;
        self.stop.stopped.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
            && thread.join().is_err()
        {
            tracing::error!("the thread that watches for commits panicked");
        }
    }
}
