//! The gate that callers pass for each poll inside the client's runtime. It is closed before the runtime shuts down.
//!
//! Invariant: once [`Gate::close`] returns, nobody is inside and nobody gets in. The only exception is a poll that takes longer
//! than [`LONGEST_POLL`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;

/// How long `close` waits for polls. A poll does not block, unless code of the host runs in it: a waker, or a subscriber of the
/// log. Such code may call `close` itself, which then must not wait for ever.
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// Clones are one gate.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_closed: AtomicBool,
    /// Read-locked by every thread inside.
    polls: RwLock<()>,
}

/// A thread is inside until this value is dropped.
#[cfg(feature = "postgres")]
pub(super) struct Passage<'a> {
    _poll: parking_lot::RwLockReadGuard<'a, ()>,
}

impl Gate {
    /// Passes the gate; `None` if it is closed.
    #[cfg(feature = "postgres")]
    pub(super) fn pass(&self) -> Option<Passage<'_>> {
        // Recursive: a poll may poll another future inside, while `close` already waits.
        let poll = self.0.polls.read_recursive();
        // Read after the lock is taken: `close` waits for this thread, or this thread sees the closed gate.
        (!self.0.is_closed.load(Ordering::Acquire)).then_some(Passage { _poll: poll })
    }

    /// Closes the gate, and waits until nobody is inside.
    pub(super) fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
        if self.0.polls.try_write_for(LONGEST_POLL).is_none() {
            tracing::debug!("the client is closed while a call still runs code of the host");
        }
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn close_waits_for_the_thread_inside_and_lets_no_other_in() {
        let gate = Gate::default();
        let (entered, is_inside) = mpsc::channel();
        let has_left = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let passage = gate.pass().expect("open");
                entered.send(()).expect("the test waits");
                while !gate.0.is_closed.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                assert!(gate.pass().is_none(), "a nested poll neither enters nor waits");
                thread::sleep(Duration::from_millis(50));
                has_left.store(true, Ordering::Release);
                drop(passage);
            });
            is_inside.recv().expect("inside");
            gate.close();
            assert!(has_left.load(Ordering::Acquire));
        });
        assert!(gate.pass().is_none());
    }

    #[test]
    fn a_poll_that_closes_the_gate_does_not_hang() {
        let gate = Gate::default();
        let passage = gate.pass().expect("open");
        gate.close();
        drop(passage);
        assert!(gate.pass().is_none());
    }
}
