//! Marks a thread that waits for the future which it polls: `blocking` polls futures inside [`enter`].
//!
//! Such a thread may do the work of its future itself, also a flush to disk, instead of waiting for another thread. A
//! thread of an async runtime must not: other tasks wait for it.

use std::cell::Cell;

use super::sync::thread_local;

thread_local! {
    static IS_CURRENT: Cell<bool> = const { Cell::new(false) };
}

/// Ends the mark of this thread when it is dropped.
pub(crate) struct BlockingCaller {
    was_current: bool,
}

/// Marks this thread as one that waits for its future.
pub(crate) fn enter() -> BlockingCaller {
    BlockingCaller { was_current: IS_CURRENT.with(|is_current| is_current.replace(true)) }
}

/// True if this thread waits for the future that it polls.
pub(crate) fn is_current() -> bool {
    IS_CURRENT.with(Cell::get)
}

impl Drop for BlockingCaller {
    fn drop(&mut self) {
        IS_CURRENT.with(|is_current| is_current.set(self.was_current));
    }
}
