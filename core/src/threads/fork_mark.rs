//! Refuses a client in a process that was forked while its parent had a client open.
//!
//! The child has copies of the locks and wait lists of the parent's threads, without the threads, and could wait for them without
//! an end. SQLite keeps its locks by process and its knowledge of them in memory: a child has that knowledge without the locks,
//! and would lose committed rows.
//!
//! Invariant: nothing here waits for a lock, because a fork may copy a lock while it is held.

use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::{Error, Result};

/// The upper half is the id of a process, the lower half the number of its marks.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Marks threads that run or a database that is open. A forked child that drops its copy changes nothing.
#[derive(Debug)]
pub(crate) struct ForkMark(());

impl ForkMark {
    /// # Errors
    /// `Config` in a child that was forked while its parent had a client open.
    pub(crate) fn new() -> Result<ForkMark> {
        let entered = OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| {
            of_this_process(open).map(|count| this_process() | (count + 1))
        });
        entered.map(|_| ForkMark(())).map_err(|_| {
            Error::config(
                "A client was open in the parent process when it forked this one, and neither SQLite nor the threads of a \
                 client survive that: start workers before opening, or spawn them",
            )
        })
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        let _ = OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| {
            let count = of_this_process(open).filter(|count| *count > 0)?;
            Some(this_process() | (count - 1))
        });
    }
}

fn this_process() -> u64 {
    u64::from(process::id()) << 32
}

/// The number of marks of this process; `None` if they are those of a parent.
fn of_this_process(open: u64) -> Option<u64> {
    let count = open & u64::from(u32::MAX);
    (count == 0 || open - count == this_process()).then_some(count)
}
