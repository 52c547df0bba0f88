//! Runs code of the embedding program, and knows on which threads it runs.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    /// How many calls of [`run`] the thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread is inside a callback of the program.
pub(super) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// Runs code of the program that may panic. A panic is logged with the name `what`. The caller holds no lock.
pub(super) fn run(what: &'static str, code: impl FnOnce()) {
    DEPTH.set(DEPTH.get() + 1);
    if catch_unwind(AssertUnwindSafe(code)).is_err() {
        tracing::error!("{what} panicked");
    }
    DEPTH.set(DEPTH.get() - 1);
}
