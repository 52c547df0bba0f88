//! Subscriptions: what a callback is called off by.
//!
//! Invariant: the handle is only a way to reach the subscription: freeing it ends nothing.

use townsquare::Subscription;

use crate::{
    boundary::{free, read},
    handle::Handle,
};

/// A subscription. It lasts until `tsq_subscription_unsubscribe`, or until the client handle that it was made with is
/// freed; for the process's own client (`tsq_client_shared`), which nobody's freeing ends, until it is unsubscribed. Owned,
/// ended with `tsq_subscription_free`; it may outlive its client.
pub struct tsq_subscription {
    _opaque: [u8; 0],
}

impl Handle for tsq_subscription {
    type Value = Subscription;
}

/// Ends the subscription. After it returns the callback is not running, never runs again, and its `user_data` was
/// destroyed: it waits for a callback that runs on another thread. From inside the callback it returns at once; the
/// callback never runs after that time, and its data is destroyed when it has returned. Again does nothing.
///
/// Borrows `subscription`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_subscription_unsubscribe(subscription: *const tsq_subscription) {
    // SAFETY: `subscription` is NULL or live, by the manual.
    unsafe { read(subscription, Subscription::unsubscribe) }
}

/// Ends the handle and leaves the subscription as it is. Takes `subscription`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_subscription_free(subscription: *mut tsq_subscription) {
    // SAFETY: `subscription` is NULL or owned by the caller, by the manual.
    unsafe { free(subscription) }
}
