//! Starts the threads of the library: they take no signals of the host, and a thread that cannot start is an error.
//!
//! Invariant: a thread of the library is started while its parent blocks all signals, and inherits that mask. So there is
//! no moment at which it could take a signal that the host waits for, or that would run a handler of the host on it. One
//! kind of thread is started by tokio on a thread of the host: the thread of a name look-up for PostgreSQL. It blocks all signals
//! before it does anything else.

pub(crate) mod blocking_caller;
mod blocking_pool;
mod closing;
mod completion;
mod detached_work;
mod fork_mark;
mod gate;
mod panics;
mod process_owned;
mod runtime;
pub(crate) mod sync;
#[cfg(test)]
pub(crate) mod turn;
mod wait;

use std::{io, sync::Arc};

#[cfg(feature = "sqlite")]
pub(crate) use self::fork_mark::ForkMark;
use self::sync::{
    Mutex,
    thread::{Builder, JoinHandle},
};
pub(crate) use self::{
    blocking_pool::{BlockingPool, Job, RunningJob},
    closing::Closing,
    completion::{BoxedFuture, BoxedWork},
    detached_work::DetachedWork,
    process_owned::ProcessOwned,
    runtime::{Runtime, RuntimeHandle},
};
pub use self::{
    panics::log_panics,
    wait::{wait, wait_while},
};
use crate::error::{Error, ErrorKind, Result};

/// Starts a thread. For the core, and for the Python binding.
///
/// # Errors
/// `Unavailable` if the system has no further thread.
pub fn spawn<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    with_blocked_signals(|| Builder::new().name(name.to_owned()).spawn(body)).map_err(cannot_start)
}

/// Fails unless `count` further threads can run at the same time.
///
/// # Errors
/// `Unavailable` if the system has too few.
fn require(count: usize) -> Result<()> {
    let gate = Arc::new(Mutex::new(()));
    let mut threads = Vec::new();
    let closed_gate = gate.lock();
    let mut outcome = Ok(());
    while outcome.is_ok() && threads.len() < count {
        let gate = Arc::clone(&gate);
        outcome = spawn("townsquare-probe", move || drop(gate.lock())).map(|thread| threads.push(thread));
    }
    drop(closed_gate);
    for thread in threads {
        thread.join().map_err(|_| Error::unavailable("Cannot start a thread"))?;
    }
    outcome
}

/// Blocks all signals on this thread.
fn block_signals() {
    signals::Blocked::new().keep();
}

/// Runs `start`, which starts threads, and blocks all signals on this thread meanwhile.
fn with_blocked_signals<T>(start: impl FnOnce() -> T) -> T {
    let _blocked = signals::Blocked::new();
    start()
}

/// The error of an operation that panicked. It leaves out the panic's message, which may contain a secret.
pub(crate) fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "the operation panicked")
}

fn cannot_start(error: io::Error) -> Error {
    Error::unavailable(format!("Cannot start a thread: {error}")).caused_by(error)
}

#[cfg(unix)]
mod signals {
    //! The signal mask of a thread.

    use nix::sys::signal::{SigSet, SigmaskHow, Signal};

    /// Signals of a thread's own faults. To block them would end the process without the host's handler.
    const FAULTS: [Signal; 6] =
        [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGSYS];

    /// Blocks signals on the current thread. Restores the mask when it is dropped.
    pub(super) struct Blocked {
        /// `None` if the mask could not be set.
        mask_before: Option<SigSet>,
    }

    impl Blocked {
        pub(super) fn new() -> Blocked {
            let mut signals = SigSet::all();
            for fault in FAULTS {
                signals.remove(fault);
            }
            Blocked { mask_before: signals.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok() }
        }

        /// Leaves the signals blocked.
        pub(super) fn keep(mut self) {
            self.mask_before = None;
        }
    }

    impl Drop for Blocked {
        fn drop(&mut self) {
            if let Some(mask) = self.mask_before {
                // It fails for a wrong argument only, and the system returned this mask.
                let _ = mask.thread_set_mask();
            }
        }
    }
}

#[cfg(not(unix))]
mod signals {
    //! Systems without signal masks.

    /// Does nothing.
    pub(super) struct Blocked;

    impl Blocked {
        pub(super) fn new() -> Blocked {
            Blocked
        }

        pub(super) fn keep(self) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_joined() {
        let thread = spawn("townsquare-test", || 7).expect("a thread");
        assert_eq!(thread.join().expect("no panic"), 7);
    }

    #[test]
    fn four_threads_are_available() {
        require(4).expect("threads");
    }

    #[cfg(unix)]
    #[test]
    fn a_thread_blocks_signals_and_its_parent_keeps_its_mask() {
        use nix::sys::signal::{SigSet, Signal};
        let mask = || SigSet::thread_get_mask().expect("a mask");
        let before = mask();
        let inherited = spawn("townsquare-test", mask).expect("a thread").join().expect("no panic");
        assert!(inherited.contains(Signal::SIGTERM) && inherited.contains(Signal::SIGCHLD));
        assert!(!inherited.contains(Signal::SIGSEGV));
        assert_eq!(mask(), before);
    }
}
