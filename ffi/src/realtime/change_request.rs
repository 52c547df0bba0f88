//! What a subscription is to deliver, as C gives it.

use townsquare::realtime::ChangeRequest;

use crate::{
    boundary::{Failure, argument, inputs, tsq_str},
    realtime::row_change::{requested_event, tsq_close_callback},
};

/// The changes that a subscription or a stream gets. Zero it, then fill it in: `tsq_change_request request = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_change_request {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// The table: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces`, `fidgets` or `files`.
    /// Required.
    pub table: tsq_str,
    /// Only changes that are delivered as this event: a `tsq_event_type`; 0, `TSQ_EVENT_ANY`, for every event.
    pub event: i32,
    /// Conditions `column=op.value` on the row, joined by `&`: `id=eq.…`. The operators are eq, neq, lt, lte, gt, gte, in,
    /// like, ilike and is. At most 8 conditions and 1,024 bytes. A value that may have an `&` stands in double quotes, with
    /// a backslash before `"` and `\`; `%` and `*` of a pattern stand for any text, `_` for one character. Absent or empty: every row.
    pub filter: tsq_str,
    /// A cursor: the changes after it come first, then the new ones, with no gap and no repeat. Absent: the new ones.
    pub since: tsq_str,
    /// The schema; absent for `public`, the only one.
    pub schema: tsq_str,
    /// Is told when the subscription ends; may be NULL. For `tsq_realtime_subscribe` only: a stream tells its end by itself.
    pub on_close: tsq_close_callback,
    /// A cursor at which the subscription or the stream ends, as if the host had ended it. Changes after it are not delivered;
    /// `tsq_realtime_cursor` returns the cursor of now. Absent: no end.
    pub until: tsq_str,
}

inputs!(tsq_change_request: until);

impl tsq_change_request {
    /// The core's request, without `on_close`.
    ///
    /// # Safety
    /// All members are initialised, and the texts are readable.
    pub(crate) unsafe fn read(&self) -> Result<ChangeRequest, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            let mut request = ChangeRequest::table(argument::text(self.table, "table")?);
            if let Some(event) = requested_event(self.event)? {
                request = request.event(event);
            }
            if let Some(filter) = argument::optional_text(self.filter, "filter")? {
                request = request.filter(filter);
            }
            if let Some(since) = argument::optional_text(self.since, "since")? {
                request = request.since(since);
            }
            if let Some(until) = argument::optional_text(self.until, "until")? {
                request = request.until(until);
            }
            if let Some(schema) = argument::optional_text(self.schema, "schema")? {
                request = request.schema(schema);
            }
            Ok(request)
        }
    }
}
