//! Subscriptions that the host polls, for hosts with a loop of their own.
//!
//! Invariant: `tsq_change_stream_close` may be called while another thread waits in `tsq_change_stream_next`.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream as _;
use townsquare::{
    Operation,
    blocking::{wait, wait_while},
    realtime::{ChangeStream, RowChange, StreamCloser},
};

use crate::{
    boundary::{
        Bell, Failure, Handle, ProcessOwned, call_optional_handle, call_unit, free, handle, read, record, tsq_error,
        tsq_status,
    },
    realtime::row_change::tsq_row_change,
};

/// A subscription from which the host takes one change after another. Owned, freed with `tsq_change_stream_free`.
pub struct tsq_change_stream {
    _opaque: [u8; 0],
}

pub(crate) struct StreamState {
    stream: ProcessOwned<Mutex<ChangeStream>>,
    /// Rings when a change waits, on the loop of the host.
    bell: Option<Arc<Bell>>,
    closer: ProcessOwned<StreamCloser>,
    has_ended: AtomicBool,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<StreamState>();
};

impl Handle for tsq_change_stream {
    type Value = StreamState;
}

impl StreamState {
    /// `bell` rings at once, so that the host asks for the first change.
    pub(crate) fn new(stream: ChangeStream, bell: Option<Arc<Bell>>) -> StreamState {
        let closer = ProcessOwned::new(stream.closer());
        bell.iter().for_each(|bell| bell.ring());
        StreamState { stream: ProcessOwned::new(Mutex::new(stream)), bell, closer, has_ended: AtomicBool::new(false) }
    }

    /// The next change; `None` at the time-out and after the end.
    fn next(&self, timeout: Option<Duration>) -> Result<Option<RowChange>, Failure> {
        let mut stream = self.stream.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match timeout {
            None => wait(stream.next()),
            Some(timeout) => match wait_while(stream.next(), timeout, || Err(())) {
                Ok(next) => next,
                Err(()) => match self.watch(&mut stream) {
                    Poll::Ready(next) => next,
                    Poll::Pending => return Ok(None),
                },
            },
        };
        // After an error the stream has ended: the error is the reason.
        if !matches!(next, Some(Ok(_))) {
            self.has_ended.store(true, Ordering::Release);
        }
        Ok(next.transpose()?)
    }

    /// Makes the bell ring when the next change waits. Returns a change that came meanwhile.
    fn watch(&self, stream: &mut ChangeStream) -> Poll<Option<townsquare::Result<RowChange>>> {
        let Some(bell) = &self.bell else { return Poll::Pending };
        Pin::new(stream).poll_next(&mut Context::from_waker(&Arc::clone(bell).into()))
    }
}

/// Waits for the next change, at most `timeout_ms` milliseconds: 0 returns at once, a negative number waits for ever. `*out` is
/// NULL after `TSQ_OK` at the time-out and after the end of the stream; `tsq_change_stream_has_ended` tells them apart. After
/// NULL, the descriptor of `tsq_client_poll_fd` is readable again when a change waits or the stream has ended.
///
/// Borrows `stream`; returns owned in `out`. Fails with the reason that ended the stream, once: `TSQ_CURSOR_EXPIRED` when the
/// host fell too far behind, `TSQ_UNAUTHORIZED` when the session of a live query ended; with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_change_stream_next(
    stream: *mut tsq_change_stream,
    timeout_ms: i64,
    out: *mut *mut tsq_row_change,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::Changes), out, err, || {
            let stream = handle::required(stream.cast_const(), "stream")?;
            let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
            Ok(stream.next(timeout)?.map(record))
        })
    }
}

/// Whether `tsq_change_stream_next` has found the end of the stream: it or its client was closed, it has reached `until` of its
/// request, or a call has failed with the reason of the end. False for NULL.
///
/// Borrows `stream`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_change_stream_has_ended(stream: *const tsq_change_stream) -> bool {
    // SAFETY: `stream` is NULL or live, by the manual.
    unsafe { read(stream, |stream| stream.has_ended.load(Ordering::Acquire)) }
}

/// Ends the stream. A call of `tsq_change_stream_next` that waits on another thread returns. A second call does nothing.
///
/// Borrows `stream`. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED` in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_change_stream_close(
    stream: *const tsq_change_stream,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::Changes), err, || {
            handle::required(stream, "stream")?.closer.get()?.close();
            Ok(())
        })
    }
}

/// Frees a stream, which ends it. No other thread may use it any more. Takes `stream`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_change_stream_free(stream: *mut tsq_change_stream) {
    // SAFETY: `stream` is NULL or owned by the caller, by the manual.
    unsafe { free(stream) }
}
