//! Runs code of the embedding program, and knows on which threads it runs.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::threads::sync::thread_local;

thread_local! {
    /// How many values of [`Inside`] the thread has.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether the calling thread is inside a callback of the program.
pub(super) fn is_inside() -> bool {
    DEPTH.with(Cell::get) > 0
}

/// The calling thread runs code of the program until this value is dropped.
pub(super) struct Inside(());

impl Inside {
    pub(super) fn enter() -> Inside {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

/// Runs code of the program that may panic. A panic is logged with the name `what`. The caller holds no lock.
pub(super) fn run(what: &'static str, code: impl FnOnce()) {
    let _inside = Inside::enter();
    if catch_unwind(AssertUnwindSafe(code)).is_err() {
        tracing::error!("{what} panicked");
    }
}
