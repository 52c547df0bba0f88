//! Events of a session, and the callback that receives them (SPEC 6.4).
//!
//! Invariant: the number of an event is its index in [`AuthEvent::ALL`]. Numbers are never reused or moved; new events
//! are added at the end.

use std::ffi::c_void;

use townsquare::auth::AuthEvent;

use crate::{
    auth::session::tsq_session,
    boundary::text::{self, tsq_str},
};

/// An event of a handle's session.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_auth_event {
    /// The first event of every subscription, with the current session or none.
    TSQ_INITIAL_SESSION = 0,
    /// A user signed in.
    TSQ_SIGNED_IN = 1,
    /// The session ended.
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
