//! The log: hands the library's `tracing` events to a callback of the host.
//!
//! Invariant: only events of the library's own crates are handed on. Dependencies log SQL text and URLs, which may
//! contain secrets; their events are dropped. A log callback is never called inside itself.

use std::{
    cell::Cell,
    ffi::c_void,
    fmt::{self, Write as _},
    sync::{PoisonError, RwLock},
};

use townsquare::ErrorKind;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span, subscriber,
};

use crate::boundary::{Callback, Failure, call_unit, text, tsq_destroy, tsq_error, tsq_status, tsq_str};

/// How severe a log event is.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_log_level {
    /// An operation failed, and no function returns the failure.
    TSQ_LOG_ERROR = 1,
    /// The library continues with limits, for example with an old catalog.
    TSQ_LOG_WARN = 2,
    /// Information.
    TSQ_LOG_INFO = 3,
    /// Details for debugging.
    TSQ_LOG_DEBUG = 4,
    /// More details for debugging.
    TSQ_LOG_TRACE = 5,
}

/// A log event. A record (manual, RECORDS) that lives until the callback returns.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_log_event {
    /// How severe the event is.
    pub level: tsq_log_level,
    /// The module of the library, `townsquare::discovery`.
    pub target: tsq_str,
    /// The message, with the event's fields behind it as ` name=value`.
    pub message: tsq_str,
}

/// Receives log events: on any thread, on several threads at once, also during a call of the library. It must not call
/// the library.
pub type tsq_log_callback = Option<unsafe extern "C" fn(event: *const tsq_log_event, user_data: *mut c_void)>;

type LogCallback = Callback<unsafe extern "C" fn(*const tsq_log_event, *mut c_void)>;

static CALLBACK: RwLock<Option<LogCallback>> = RwLock::new(None);

thread_local! {
    static IS_LOGGING: Cell<bool> = const { Cell::new(false) };
}

/// Sets the log callback of the process, in place of an earlier one; a NULL `callback` removes it. When the function
/// returns, the earlier callback is not running, never runs again, and its data is destroyed. Without a log callback
/// the library writes nothing anywhere.
///
/// Takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Fails with `TSQ_INVALID_INPUT`
/// inside a log callback, `TSQ_ALREADY_EXISTS` when a Rust host that links the library statically has its own `tracing`
/// subscriber.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_set_log(
    callback: tsq_log_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        // Without a function, `take` destroys the data.
        let callback = Callback::take(callback, user_data, destroy).ok();
        call_unit(None, err, move || {
            if IS_LOGGING.get() {
                return Err(Failure::invalid_input("tsq_set_log was called inside a log callback"));
            }
            if callback.is_some() {
                install()?;
            }
            let mut current = CALLBACK.write().unwrap_or_else(PoisonError::into_inner);
            let earlier = std::mem::replace(&mut *current, callback);
            drop(current);
            // Drop the earlier callback after releasing the lock, because `destroy` runs the host's code.
            drop(earlier);
            Ok(())
        })
    }
}

/// Makes [`Log`] the subscriber of the process, once.
fn install() -> Result<(), Failure> {
    static IS_INSTALLED: RwLock<bool> = RwLock::new(false);
    let mut is_installed = IS_INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
    if !*is_installed {
        subscriber::set_global_default(Log)
            .map_err(|_| Failure::new(ErrorKind::AlreadyExists, "This process has another tracing subscriber"))?;
        *is_installed = true;
    }
    Ok(())
}

/// The `tracing` subscriber. It ignores spans.
struct Log;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        metadata.is_event() && (target == "townsquare" || target.starts_with("townsquare::"))
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if IS_LOGGING.replace(true) {
            return;
        }
        if let Some(callback) = CALLBACK.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            let mut message = Message::default();
            event.record(&mut message);
            let message = message.text + &message.fields;
            let event = tsq_log_event {
                level: level(*event.metadata().level()),
                target: text::view(event.metadata().target()),
                message: text::view(&message),
            };
            // SAFETY: the host promised a function that may be called on any thread; the event outlives the call.
            callback.call(|function, user_data| unsafe { function(&raw const event, user_data) });
        }
        IS_LOGGING.set(false);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn level(level: Level) -> tsq_log_level {
    match level {
        Level::ERROR => tsq_log_level::TSQ_LOG_ERROR,
        Level::WARN => tsq_log_level::TSQ_LOG_WARN,
        Level::INFO => tsq_log_level::TSQ_LOG_INFO,
        Level::DEBUG => tsq_log_level::TSQ_LOG_DEBUG,
        _ => tsq_log_level::TSQ_LOG_TRACE,
    }
}

/// The fields of an event as text.
#[derive(Default)]
struct Message {
    text: String,
    fields: String,
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
