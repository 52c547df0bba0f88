//! Events of a session, and the callback that receives them (SPEC 6.4).
//!
//! Invariant: the number of an event is its index in [`AuthEvent::ALL`]. Numbers are never reused or moved; new events
//! are added at the end.

use std::{ffi::c_void, sync::Arc};

use townsquare::{
    ErrorKind,
    auth::{AuthEvent, Session},
};

use crate::{
    auth::session::{self, tsq_session},
    boundary::{
        Callback, Failure, Subscribing, call_wanted_handle, record, text, tsq_destroy, tsq_error, tsq_status, tsq_str,
    },
    client::{self, tsq_client},
    host_loop::EventQueue,
    subscription::tsq_subscription,
};

/// An event of a handle's session.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_auth_event {
    /// The first event of every subscription, with the current session or none.
    TSQ_INITIAL_SESSION = 0,
    /// A user signed in.
    TSQ_SIGNED_IN = 1,
    /// The session ended: by a sign-out, or elsewhere, which the handle learns by its next call or refresh.
    TSQ_SIGNED_OUT = 2,
    /// The session has new tokens.
    TSQ_TOKEN_REFRESHED = 3,
    /// The signed-in user has another address or password.
    TSQ_USER_UPDATED = 4,
}

/// Receives events of a handle's session: the event, and the session after it (NULL: none), a view that lives until the
/// callback returns. See CALLBACKS in the manual.
pub type tsq_auth_callback =
    Option<unsafe extern "C" fn(event: tsq_auth_event, session: *const tsq_session, user_data: *mut c_void)>;

use tsq_auth_event::{TSQ_INITIAL_SESSION, TSQ_SIGNED_IN, TSQ_SIGNED_OUT, TSQ_TOKEN_REFRESHED, TSQ_USER_UPDATED};

/// The events in the order of [`AuthEvent::ALL`]. A new event in `ALL` does not compile until it is added here.
const EVENTS: [tsq_auth_event; AuthEvent::ALL.len()] =
    [TSQ_INITIAL_SESSION, TSQ_SIGNED_IN, TSQ_SIGNED_OUT, TSQ_TOKEN_REFRESHED, TSQ_USER_UPDATED];

impl From<AuthEvent> for tsq_auth_event {
    fn from(event: AuthEvent) -> tsq_auth_event {
        let place = AuthEvent::ALL.iter().position(|known| *known == event);
        EVENTS[place.expect("ALL has every event")]
    }
}

/// The name of an event: `INITIAL_SESSION`, `SIGNED_IN`, …; absent for an unknown number.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_auth_event_name(event: i32) -> tsq_str {
    let event = AuthEvent::ALL.into_iter().enumerate().find(|(number, _)| i32::try_from(*number) == Ok(event));
    text::optional_view(event.map(|(_, event)| event.as_str()))
}

/// Calls `callback` with `TSQ_INITIAL_SESSION` and the current session, then with every event of this handle's session,
/// in order. `*out` is set before the first call. At most 1,024 events wait for the callback; one that falls further
/// behind misses the oldest of them, and always gets the last one. See CALLBACKS in the manual.
///
/// Borrows `client`; takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: the subscription then lasts as long as the handle. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_on_auth_state_change(
    client: *const tsq_client,
    callback: tsq_auth_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
) -> tsq_status {
    let subscribing = Subscribing::default();
    let (subscribed, _subscribing) = (subscribing.clone(), subscribing.hold());
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        let callback = Callback::take(callback, user_data, destroy);
        call_wanted_handle(None, out, err, move || {
            let (callback, host) = (callback?, client::host_loop(client)?);
            let inner = client::usable(client)?.inner();
            if inner.is_closed() {
                return Err(Failure::new(ErrorKind::Closed, "The client is closed"));
            }
            let call = move |(event, session): (AuthEvent, Option<Session>)| {
                subscribed.wait();
                let session = session.map(record);
                callback.call(|function, user_data| {
                    function(event.into(), session::optional_view(session.as_ref()), user_data);
                });
            };
            let auth = inner.auth();
            Ok(match host {
                None => {
                    let made = auth.on_auth_state_change(move |event, session| call((event, session)));
                    client::own_subscription(client, made)?.into()
                }
                Some(host) => {
                    let subscribe = |queue: Arc<EventQueue<_>>| {
                        auth.on_auth_state_change(move |event, session| queue.push((event, session)))
                    };
                    host.add_events(call, |queue| Some(subscribe(queue))).into()
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_the_events() {
        for (place, event) in AuthEvent::ALL.into_iter().enumerate() {
            let number = tsq_auth_event::from(event);
            assert_eq!(number as usize, place);
            assert_eq!(format!("{number:?}"), format!("TSQ_{}", event.as_str()));
        }
    }
}
