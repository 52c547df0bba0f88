//! Locks, atomics and threads of the protocols that a model checker runs.
//!
//! They are those of parking_lot and `std`. With `--cfg shuttle` they are those of [`model`], for the tests named `schedules`: each test
//! runs a protocol in thousands of orders of its threads. Other tests do not run then.

#[cfg(shuttle)]
mod model;

#[cfg(shuttle)]
pub(crate) use self::model::*;
#[cfg(not(shuttle))]
pub(crate) use self::system::*;

#[cfg(not(shuttle))]
mod system {
    pub(crate) use std::{sync::atomic, thread, thread_local};

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
}
