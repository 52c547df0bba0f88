//! Changes of rows, and the callbacks that receive them (SPEC 6).
//!
//! Invariant: the number of an event type never changes; new ones are added at the end.

use std::ffi::c_void;

use townsquare::realtime::{EventType, RowChange};

use crate::boundary::{
    Failure, Memory, Record, call_handle, free, handle, json, text, tsq_error, tsq_status, tsq_str, tsq_string,
};

/// What happened to a row, as a subscription sees it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_event_type {
    /// Every event; in a request only.
    TSQ_EVENT_ANY = 0,
    /// The row came into the view.
    TSQ_EVENT_INSERT = 1,
    /// The row changed and stays in the view.
    TSQ_EVENT_UPDATE = 2,
    /// The row left the view.
    TSQ_EVENT_DELETE = 3,
}

use tsq_event_type::{TSQ_EVENT_ANY, TSQ_EVENT_DELETE, TSQ_EVENT_INSERT, TSQ_EVENT_UPDATE};

/// The numbers in the order of [`EventType::ALL`]. A new type in `ALL` does not compile until it is added here.
const EVENTS: [tsq_event_type; EventType::ALL.len()] = [TSQ_EVENT_INSERT, TSQ_EVENT_UPDATE, TSQ_EVENT_DELETE];

impl From<EventType> for tsq_event_type {
    fn from(event: EventType) -> tsq_event_type {
        let place = EventType::ALL.iter().position(|known| *known == event);
        EVENTS[place.expect("ALL has every event type")]
    }
}

/// The event type of a request; `None` for every event.
///
/// # Errors
/// `InvalidInput` for another number.
pub(crate) fn requested_event(number: i32) -> Result<Option<EventType>, Failure> {
    if number == TSQ_EVENT_ANY as i32 {
        return Ok(None);
    }
    let known = EventType::ALL.into_iter().find(|event| tsq_event_type::from(*event) as i32 == number);
    known.map(Some).ok_or_else(|| Failure::invalid_input("Argument event is no tsq_event_type"))
}

/// The name of an event type: `INSERT`, `UPDATE`, `DELETE`, and `*` for `TSQ_EVENT_ANY`; absent for an unknown number.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_event_type_name(event: i32) -> tsq_str {
    text::optional_view(requested_event(event).ok().map(|event| event.map_or("*", EventType::as_str)))
}

/// A change of one row, as the subscription's caller may see it. A record (manual, RECORDS); freed with
/// `tsq_row_change_free` where a call returns it owned.
#[repr(C)]
pub struct tsq_row_change {
    /// The schema: `public`.
    pub schema: tsq_str,
    /// The table: `spaces`, or another that `tsq_change_request` takes.
    pub table: tsq_str,
    /// What happened.
    pub event: tsq_event_type,
    /// The row after the change, as JSON: an object with a member for each column. Absent for a row that is gone.
    pub new_row: tsq_str,
    /// The row before the change, as JSON; absent for a row that came into the view. After a `TSQ_EVENT_DELETE` it is the
    /// whole row if the row was deleted. It has the key only if the row still exists outside the view, if it was a row of a
    /// deleted user, and, for callers other than the service, if it was gone already when a subscription `since` a cursor
    /// read the change.
    pub old_row: tsq_str,
    /// When the change was made, in microseconds.
    pub commit_timestamp: i64,
    /// The position after this change, for `since` and `until` of a request.
    pub cursor: tsq_str,
}

impl Record for tsq_row_change {
    type Source = RowChange;

    fn new(change: &RowChange, memory: &mut Memory) -> tsq_row_change {
        tsq_row_change {
            schema: text::view(change.schema),
            table: text::view(change.table),
            event: change.event_type.into(),
            new_row: memory.optional_row(change.new.as_deref()),
            old_row: memory.optional_row(change.old.as_deref()),
            commit_timestamp: change.commit_timestamp.as_microsecond(),
            cursor: text::view(&change.cursor),
        }
    }
}

/// Receives the changes of a subscription, one at a time: a view that lives until the callback returns. See CALLBACKS in
/// the manual.
pub type tsq_change_callback = Option<unsafe extern "C" fn(change: *const tsq_row_change, user_data: *mut c_void)>;

/// Is called once, after the last change, with the reason why a subscription ended. `reason` is NULL after
/// `tsq_subscription_unsubscribe`, when the client was closed, and at `until` of the request, else a view that lives until the
/// callback returns. `user_data` is the one of the subscription.
pub type tsq_close_callback = Option<unsafe extern "C" fn(reason: *const tsq_error, user_data: *mut c_void)>;

/// The change as a JSON object: schema, table, eventType, new, old, commit_timestamp, cursor.
///
/// Borrows `change`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_row_change_json(
    change: *const tsq_row_change,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(change, "change")?)) }
}

/// Frees a change. Takes `change`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_row_change_free(change: *mut tsq_row_change) {
    // SAFETY: `change` is NULL or owned by the caller, by the manual.
    unsafe { free(change) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_the_event_types() {
        for (place, event) in EventType::ALL.into_iter().enumerate() {
            let number = tsq_event_type::from(event);
            assert_eq!(number as usize, place + 1);
            assert_eq!(format!("{number:?}"), format!("TSQ_EVENT_{}", event.as_str()));
            assert_eq!(requested_event(number as i32).ok(), Some(Some(event)));
        }
        assert_eq!(requested_event(0).ok(), Some(None));
        assert!(requested_event(4).is_err() && requested_event(-1).is_err());
    }
}
