//! Subscriptions to changes of rows (SPEC 6).

pub(crate) mod row_change;

pub(crate) mod change_request;

pub(crate) mod change_stream;

pub(crate) mod change_calls;

pub(crate) mod live_query;

pub(crate) mod realtime_stats;

use std::{ffi::c_void, sync::Arc};

use townsquare::{
    Operation, Result, Uuid,
    blocking::wait,
    realtime::{ChangeRequest, LiveRequest, Realtime, RowChange},
};

use crate::{
    boundary::{
        Callback, ErrorReport, Failure, OwnedRecord, Subscribing, Terminated, argument, call_handle, call_unit,
        call_wanted_handle, handle, input::input, record, tsq_destroy, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    client::{self, tsq_client},
    discovery::http_response::tsq_http_header,
    realtime::{
        change_calls::{ChangeCalls, OnClose},
        change_request::tsq_change_request,
        change_stream::{StreamState, tsq_change_stream},
        live_query::{LiveState, tsq_live_query},
        realtime_stats::tsq_realtime_stats,
        row_change::{tsq_change_callback, tsq_close_callback, tsq_row_change},
    },
    storage::file_response::tsq_file_response,
    subscription::{AnySubscription, tsq_subscription},
};

type ChangeFn = unsafe extern "C" fn(change: *const tsq_row_change, user_data: *mut c_void);

/// # Safety
/// `client` is NULL or live for `'a`.
unsafe fn realtime<'a>(client: *const tsq_client) -> Result<&'a Realtime, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.inner().realtime())
}

/// Switches the change log on, in the database and so for all processes. Does nothing if it is on. The first subscription of the
/// host does so, too; `tsq_realtime_handle_events` never does.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_start(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_unit(Some(Operation::StartRealtime), err, || Ok(wait(realtime(client)?.start())?)) }
}

/// Switches the change log off, for all processes, and empties it. Every subscription ends with `TSQ_UNAVAILABLE`, and every cursor
/// expires. The next subscription of a host switches the log on again. The service only.
///
/// Borrows `client`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for another caller, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_stop(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_unit(Some(Operation::StopRealtime), err, || Ok(wait(realtime(client)?.stop())?)) }
}

/// Calls `callback` with every committed change that `request` selects, in the order of the commits, exactly once. (On
/// PostgreSQL the statements of transactions that overlap in time are interleaved; the changes of one row are in order.) The
/// subscription is live when this returns. `channel` is a name for logs. See CALLBACKS in the manual.
///
/// Borrows all but `user_data`, which it takes: `destroy` (may be NULL) destroys it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: the subscription then lasts as long as the handle. Fails with
/// `TSQ_INVALID_INPUT` for an unknown table, column or operator, for a value that does not fit its column and for text that is
/// no cursor, `TSQ_CURSOR_EXPIRED` when the feed no longer keeps every change after a cursor and for a cursor of another database,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_subscribe(
    client: *const tsq_client,
    channel: tsq_str,
    request: *const tsq_change_request,
    callback: tsq_change_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        subscribe(callback, user_data, destroy, out, err, |callback, subscribed| {
            let channel = argument::text(channel, "channel")?;
            let read = |request: &tsq_change_request| Ok((request.read()?, request.on_close));
            let (request, on_close) = input(request, "request", read)?;
            let on_close = close_callback(on_close, &callback, &subscribed);
            subscribe_to(client, channel, request, change_callback(callback, subscribed), on_close)
        })
    }
}

/// The subscription `space-changes`: every change of the space with the id `space_id`.
///
/// As `tsq_realtime_subscribe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_on_space_changes(
    client: *const tsq_client,
    space_id: tsq_str,
    callback: tsq_change_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        subscribe(callback, user_data, destroy, out, err, |callback, subscribed| {
            let space_id: Uuid = argument::id(space_id, "space_id")?;
            let request = ChangeRequest::table("spaces").filter(format!("id=eq.{space_id}"));
            subscribe_to(client, "space-changes", request, change_callback(callback, subscribed), None)
        })
    }
}

/// The subscription `fidget-changes`: every change of the fidgets in the space with the id `space_id`.
///
/// As `tsq_realtime_subscribe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_on_fidget_changes(
    client: *const tsq_client,
    space_id: tsq_str,
    callback: tsq_change_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        subscribe(callback, user_data, destroy, out, err, |callback, subscribed| {
            let space_id: Uuid = argument::id(space_id, "space_id")?;
            let request = ChangeRequest::table("fidgets").filter(format!("space_id=eq.{space_id}"));
            subscribe_to(client, "fidget-changes", request, change_callback(callback, subscribed), None)
        })
    }
}

/// Returns every committed change that `request` selects as a stream that the host polls. It is live when this returns.
///
/// Borrows all; returns owned in `out`. Fails as `tsq_realtime_subscribe`; with `TSQ_INVALID_INPUT` also for `on_close`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_changes(
    client: *const tsq_client,
    request: *const tsq_change_request,
    out: *mut *mut tsq_change_stream,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Changes), out, err, || {
            let realtime = realtime(client)?;
            let request = input(request, "request", |request: &tsq_change_request| {
                if request.on_close.is_some() {
                    return Err(Failure::invalid_input("Argument on_close is for tsq_realtime_subscribe only"));
                }
                request.read()
            })?;
            let bell = client::host_loop(client)?.map(|host| Arc::clone(&host.host.bell));
            Ok(StreamState::new(wait(realtime.changes(request))?, bell))
        })
    }
}

/// Returns the rows of `table` that match `filter` (absent: all) and that the caller may see, and every change after them, with
/// no gap and no repeat. The query keeps the caller that it began with.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_TOO_LARGE` when they take more than 64 MiB of
/// memory, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_live(
    client: *const tsq_client,
    table: tsq_str,
    filter: tsq_str,
    out: *mut *mut tsq_live_query,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::LiveQuery), out, err, || {
            let realtime = realtime(client)?;
            let mut request = LiveRequest::table(argument::text(table, "table")?);
            if let Some(filter) = argument::optional_text(filter, "filter")? {
                request = request.filter(filter);
            }
            let bell = client::host_loop(client)?.map(|host| Arc::clone(&host.host.bell));
            Ok(LiveState::new(wait(realtime.live(request))?, bell))
        })
    }
}

/// Returns the position after the last commit, for `since` and `until` of a request.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_cursor(
    client: *const tsq_client,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::FeedCursor), out, err, || Ok(Terminated::new(wait(realtime(client)?.cursor())?)))
    }
}

/// Returns the figures of the feed.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_get_stats(
    client: *const tsq_client,
    out: *mut *mut tsq_realtime_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(Some(Operation::RealtimeStats), out, err, || Ok(record(wait(realtime(client)?.stats())?))) }
}

/// Answers a request for server-sent events: `/events?table=spaces&filter=id=eq.…`. `method` is GET, HEAD, or OPTIONS for a
/// preflight of another origin; others get 405. The header
/// `Authorization: Bearer TOKEN` names the caller, never the session of `client`; without it the caller is anonymous.
/// `Last-Event-ID` is the cursor to continue from. `tsq_file_response_read` waits for the next event or heartbeat, and
/// `tsq_file_response_free` ends the subscription. If the subscription ends by itself, for instance because the access token
/// expires, is replaced or is revoked, the last event is `event: end` with the status and the reason as JSON.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too: `TSQ_OK` with status 400, 401, 404, 410, or 503
/// while the change log is switched off: a request never switches it on. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_handle_events(
    client: *const tsq_client,
    method: tsq_str,
    target: tsq_str,
    headers: *const tsq_http_header,
    headers_len: usize,
    out: *mut *mut tsq_file_response,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::HandleEvents), out, err, || {
            let (method, target) = (argument::text(method, "method")?, argument::text(target, "target")?);
            let headers =
                argument::structures(headers, headers_len, "headers", |header: &tsq_http_header| header.read())?;
            Ok(record(wait(realtime(client)?.handle_events_request(method, target, &headers))?))
        })
    }
}

/// Takes the callback, runs `body` and sets `*out` before the first call of the callback.
///
/// # Safety
/// `user_data` may be used on other threads, and `destroy` may be called with it; `out` and `err` are NULL or writable.
unsafe fn subscribe(
    callback: tsq_change_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
    body: impl FnOnce(Arc<Callback<ChangeFn>>, Subscribing) -> Result<AnySubscription, Failure>,
) -> tsq_status {
    let subscribing = Subscribing::default();
    let (subscribed, _subscribing) = (subscribing.clone(), subscribing.hold());
    // SAFETY: the caller's promise, passed on.
    unsafe {
        let callback = Callback::take(callback, user_data, destroy);
        call_wanted_handle(Some(Operation::Subscribe), out, err, move || body(Arc::new(callback?), subscribed))
    }
}

/// The callback of the core that calls the callback of the host with each change.
fn change_callback(
    callback: Arc<Callback<ChangeFn>>,
    subscribed: Subscribing,
) -> impl FnMut(RowChange) + Send + 'static {
    move |change| {
        subscribed.wait();
        let change: OwnedRecord<tsq_row_change> = record(change);
        // SAFETY: the promise of `Callback::take`; the change lives during the call.
        callback.call(|function, user_data| unsafe { function(handle::view(&change), user_data) });
    }
}

/// The host's `on_close`, which gets the data of the callback.
fn close_callback(
    on_close: tsq_close_callback,
    callback: &Arc<Callback<ChangeFn>>,
    subscribed: &Subscribing,
) -> Option<OnClose> {
    let (on_close, callback, subscribed) = (on_close?, Arc::clone(callback), subscribed.clone());
    Some(Box::new(move |reason| {
        subscribed.wait();
        let report = reason.map(|reason| ErrorReport::new(reason.into(), Some(Operation::Subscribe)));
        let view = report.as_ref().map_or(std::ptr::null(), handle::view::<tsq_error>);
        // SAFETY: the promise of `Callback::take`; the reason lives during the call.
        callback.call(|_, user_data| unsafe { on_close(view, user_data) });
    }))
}

/// Subscribes on the loop of the host, or on threads of the library.
///
/// # Safety
/// `client` is NULL or live.
unsafe fn subscribe_to(
    client: *const tsq_client,
    channel: &str,
    request: ChangeRequest,
    on_change: impl FnMut(RowChange) + Send + 'static,
    on_close: Option<OnClose>,
) -> Result<AnySubscription, Failure> {
    // SAFETY: the caller's promise, passed on.
    let (realtime, host) = unsafe { (realtime(client)?, client::host_loop(client)?) };
    if let Some(host) = host {
        let stream = wait(realtime.changes_as(Operation::Subscribe, request))?;
        return Ok(host.add(ChangeCalls { stream, on_change: Box::new(on_change), on_close }).into());
    }
    let request = match on_close {
        Some(on_close) => request.on_close(on_close),
        None => request,
    };
    let made = wait(realtime.subscribe(channel, request, on_change))?;
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::own_subscription(client, made) }?.into())
}
