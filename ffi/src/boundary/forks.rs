//! Counts the forks that led to this process, so that a child can tell the handles of its parent.
//!
//! Invariant: a call reads one atomic number; it makes no system call.

use std::{
    mem::ManuallyDrop,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

use townsquare::ErrorKind;

use crate::boundary::failure::Failure;

static FORKS: AtomicU32 = AtomicU32::new(0);

/// A function of POSIX; it is no part of the API.
/// cbindgen:ignore
#[allow(unused_doc_comments, reason = "cbindgen reads them")]
#[cfg(unix)]
unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> std::ffi::c_int;
}

/// Runs in every forked child. It only changes an atomic number, which is allowed there.
#[cfg(unix)]
unsafe extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Begins to count, in the first call. Later calls do nothing.
fn watch() {
    static WATCH: Once = Once::new();
    #[cfg(unix)]
    WATCH.call_once(|| {
        // SAFETY: `count_fork` only changes an atomic number. The library stays loaded after `dlclose` (build.rs). A
        // failure, which means a lack of memory, leaves the count at zero, as without this module.
        let _ = unsafe { pthread_atfork(None, None, Some(count_fork)) };
    });
    #[cfg(not(unix))]
    let _ = &WATCH;
}

/// A value that only the process that made it may use. A forked child never drops it: its destructor would wait for threads
/// of the parent, or remove files that the parent still writes.
pub(crate) struct ProcessOwned<T> {
    /// `None` while it is dropped.
    value: Option<T>,
    forks: u32,
}

impl<T> ProcessOwned<T> {
    pub(crate) fn new(value: T) -> ProcessOwned<T> {
        watch();
        ProcessOwned { value: Some(value), forks: count() }
    }

    /// # Errors
    /// `Closed` in a forked child of the process that made the value.
    pub(crate) fn get(&self) -> Result<&T, Failure> {
        self.value.as_ref().filter(|_| self.forks == count()).ok_or_else(belongs_to_parent)
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        if self.forks != count() {
            let _inherited = ManuallyDrop::new(self.value.take());
        }
    }
}

fn belongs_to_parent() -> Failure {
    Failure::new(
        ErrorKind::Closed,
        "The client was opened before a fork and belongs to the parent process: start workers before opening, or \
         spawn them",
    )
}

/// How many forks led to this process since [`watch`].
fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
