//! Counts the forks that led to this process, so that a child can tell the handles of its parent.
//!
//! Invariant: a call reads one atomic number; it makes no system call.

use std::sync::{
    Once,
    atomic::{AtomicU32, Ordering},
};

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
pub(crate) fn watch() {
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

/// How many forks led to this process since [`watch`].
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}
