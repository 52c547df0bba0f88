//! Callback queues: each subscription's events, delivered to its callback one at a time and in order.
//!
//! Invariant: a callback runs on a thread of the library and under no lock of the library, so it may call the library,
//! block and panic. After [`Subscription::unsubscribe`] returns, the callback is not running, never runs again, and has been
//! dropped. A queue stores no event: it pulls the next one from its [`EventSource`] when its callback is free.

mod bounded_events;
mod inside;
mod listener;
mod pull_queue;
#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;

use std::sync::Weak;

use self::{bounded_events::BoundedEvents, inside::Inside, pull_queue::Unsubscribe};
pub(crate) use self::{
    listener::Listener,
    pull_queue::{EventSource, OnClose, PullQueue, Pulled},
};

/// A subscription to events. It lasts until [`unsubscribe`](Subscription::unsubscribe) is called or the client is closed;
/// dropping this handle does not end it.
///
/// # Examples
///
/// ```no_run
/// use townsquare::{Config, Subscription, blocking::Client};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// let subscription: Subscription = client.auth().on_auth_state_change(|event, session| {
///     println!("{}: {session:?}", event.as_str());
/// });
/// client.auth().sign_in("ann@town.example", "correct horse battery")?;
/// subscription.unsubscribe();
/// client.auth().sign_out()?; // the callback is not called
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Subscription(Weak<dyn Unsubscribe>);

impl Subscription {
    /// Ends the subscription. When this returns, the callback is not running, has been dropped and never runs again. The
    /// callback first gets the events of sessions and of the catalog that happened before the call. It does not get changes of
    /// rows that are waiting.
    ///
    /// Called inside any callback of the library, it does not wait: no further call starts, and the callback is dropped
    /// when a call that runs has returned. A second call waits like the first one and changes nothing. In a forked child
    /// of the process that subscribed, it does nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let subscription = client.auth().on_auth_state_change(|event, _| println!("{}", event.as_str()));
    /// subscription.unsubscribe();
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn unsubscribe(&self) {
        if let Some(queue) = self.0.upgrade() {
            queue.unsubscribe();
        }
    }

    /// Runs a callback that the C binding calls itself: inside it, [`unsubscribe`](Subscription::unsubscribe) does not wait.
    #[doc(hidden)]
    pub fn run_callback<R>(callback: impl FnOnce() -> R) -> R {
        let _inside = Inside::enter();
        callback()
    }

    /// Whether the calling thread runs a callback.
    #[doc(hidden)]
    pub fn is_inside_callback() -> bool {
        inside::is_inside()
    }

    /// Whether the subscription may still have calls to make. For the C binding.
    #[doc(hidden)]
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

crate::model::opaque!(Subscription);
