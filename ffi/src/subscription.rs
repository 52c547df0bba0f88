//! Subscriptions of callbacks.
//!
//! Invariant: the handle only refers to the subscription; freeing it does not unsubscribe.

use std::sync::Arc;

use townsquare::Subscription;

use crate::{
    boundary::{Handle, ProcessOwned, free, read},
    host_loop::LoopSubscription,
};

/// A subscription. It lasts until `tsq_subscription_unsubscribe`, until the client handle that made it is freed, or
/// until the client is closed. Handles of `tsq_client_shared` do not end it when they are freed, unless its callback runs in
/// `tsq_client_dispatch`. Owned, freed with
/// `tsq_subscription_free`; it may outlive its client.
pub struct tsq_subscription {
    _opaque: [u8; 0],
}

impl Handle for tsq_subscription {
    type Value = AnySubscription;
}

/// A subscription, by where its callback runs.
pub(crate) enum AnySubscription {
    /// On threads of the library.
    Threads(Subscription),
    /// In `tsq_client_dispatch`.
    Loop(ProcessOwned<Arc<LoopSubscription>>),
}

impl AnySubscription {
    fn unsubscribe(&self) {
        match self {
            AnySubscription::Threads(subscription) => subscription.unsubscribe(),
            AnySubscription::Loop(subscription) => {
                // A callback may free the handle.
                if let Ok(subscription) = subscription.get().cloned() {
                    subscription.unsubscribe();
                }
            }
        }
    }
}

impl From<Subscription> for AnySubscription {
    fn from(subscription: Subscription) -> AnySubscription {
        AnySubscription::Threads(subscription)
    }
}

impl From<Arc<LoopSubscription>> for AnySubscription {
    fn from(subscription: Arc<LoopSubscription>) -> AnySubscription {
        AnySubscription::Loop(ProcessOwned::new(subscription))
    }
}

/// Ends the subscription. It waits for a callback that runs on another thread. After it returns the callback is not
/// running, never runs again, and its `user_data` is destroyed. Inside any callback of the library it returns at once: no
/// further call starts, and the data is destroyed after a call that runs has returned. Unsubscribing again does nothing.
/// In a forked child of the process that subscribed, this function does nothing.
///
/// Borrows `subscription`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_subscription_unsubscribe(subscription: *const tsq_subscription) {
    // SAFETY: `subscription` is NULL or live, by the manual.
    unsafe { read(subscription, AnySubscription::unsubscribe) }
}

/// Frees the handle; the subscription continues. Takes `subscription`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_subscription_free(subscription: *mut tsq_subscription) {
    // SAFETY: `subscription` is NULL or owned by the caller, by the manual.
    unsafe { free(subscription) }
}
