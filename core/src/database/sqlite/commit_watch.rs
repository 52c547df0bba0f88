//! The watch for commits: it reports commits of this client's writer between COMMIT and the answers, and of other processes within
//! milliseconds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::connection::Connection;
use crate::{
    database::change_log::{CommitWatch, OnCommit},
    error::Result,
    threads::{
        self,
        sync::thread::{self, JoinHandle},
    },
};

/// How often the file is checked for commits of other processes. A check takes 3 us.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Ends the watch when it is dropped.
struct Guard {
    listeners: CommitListener,
    /// The listener of this watch. A watch that ends late leaves that of the next one.
    own: Option<Arc<OnCommit>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a writer tells of its commits.
pub(super) type CommitListener = Arc<arc_swap::ArcSwapOption<OnCommit>>;

/// Starts to tell `on_commit` of the commits of the writer with `listeners` and of other processes. `connection` is used for
/// nothing else.
pub(super) fn start(listeners: CommitListener, connection: Connection, on_commit: OnCommit) -> Result<CommitWatch> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    // Before this function returns: a commit that follows changes the version.
    let mut version = data_version(&connection);
    let (of_thread, tell) = (Arc::clone(&is_stopped), Arc::clone(&on_commit));
    let thread = threads::spawn("townsquare-watch", move || {
        loop {
            thread::park_timeout(POLL_INTERVAL);
            if of_thread.load(Ordering::Acquire) {
                return;
            }
            let now = data_version(&connection);
            if now != version {
                version = now;
                tell();
            }
        }
    })?;
    Ok(CommitWatch::new(Guard::new(listeners, on_commit, is_stopped, Some(thread))))
}

/// Starts to tell `on_commit` of the commits of the writer with `listeners`, for a database that no other process has.
pub(super) fn start_in_process(listeners: CommitListener, on_commit: OnCommit) -> CommitWatch {
    CommitWatch::new(Guard::new(listeners, on_commit, Arc::default(), None))
}

/// A number that changes with every commit of another connection. `None` if it cannot be read now.
fn data_version(connection: &Connection) -> Option<i64> {
    let mut statement = connection.0.prepare_cached("PRAGMA data_version").ok()?;
    statement.query_row([], |row| row.get(0)).ok()
}

impl Guard {
    fn new(
        listeners: CommitListener,
        on_commit: OnCommit,
        is_stopped: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    ) -> Guard {
        let own = Some(Arc::new(on_commit));
        listeners.store(own.clone());
        Guard { listeners, own, is_stopped, thread }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.listeners.compare_and_swap(&self.own, None);
        self.is_stopped.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        if thread.thread().id() != thread::current().id() && thread.join().is_err() {
            tracing::error!("the thread that watches for commits panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_watch_that_ends_late_leaves_the_listener_of_the_next_one() {
        let listeners = CommitListener::default();
        let commits = [(); 2].map(|()| Arc::new(AtomicU32::new(0)));
        let watch = |number: usize| {
            let count = Arc::clone(&commits[number]);
            let on_commit = move || {
                count.fetch_add(1, Ordering::Relaxed);
            };
            start_in_process(Arc::clone(&listeners), Arc::new(on_commit))
        };
        let commit = || listeners.load().as_ref().map(|listener| listener());
        let first = watch(0);
        let second = watch(1);
        drop(first);
        commit().expect("the second watch listens");
        drop(second);
        assert!(commit().is_none());
        assert_eq!([0, 1].map(|number: usize| commits[number].load(Ordering::Relaxed)), [0, 1]);
    }
}
