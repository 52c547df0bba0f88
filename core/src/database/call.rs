//! The calls of operations: the error gets the operation, the call is counted, and a span says who called and how it ended.
//!
//! Invariant: a call counts from its first poll to its end, or until its future is dropped. The span has no text of a user.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tracing::{Span, field};

use super::CurrentPrincipal;
use crate::{
    clock::{Clock, Moment},
    error::{Operation, Result},
    metrics::Outcome,
    policy::Caller,
};

/// Runs `work` as a call of an operation on a handle. Sets the operation of its error, unless the error has one. On a closed handle it
/// does not begin: the error is `Closed`.
pub(crate) fn call<T, F: Future<Output = Result<T>>>(
    handle: &impl AsRef<CurrentPrincipal>,
    operation: Operation,
    work: F,
) -> RunCall<'_, F> {
    RunCall { call: Call { operation, principal: handle.as_ref(), begun: None }, work }
}

pin_project! {
    /// The future of [`call`]. An `async fn` would store `work` twice, which costs a read from memory a
    /// tenth of its time.
    pub(crate) struct RunCall<'a, F> {
        call: Call<'a>,
        #[pin]
        work: F,
    }
}

/// A call, which counts as dropped if it is dropped before its end.
struct Call<'a> {
    operation: Operation,
    principal: &'a CurrentPrincipal,
    begun: Option<(Moment, Span)>,
}

impl<T, F: Future<Output = Result<T>>> Future for RunCall<'_, F> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let this = self.project();
        if this.call.begun.is_none()
            && let Err(closed) = this.call.principal.check_open()
        {
            return Poll::Ready(Err(closed.with_operation(this.call.operation)));
        }
        let polled = {
            let _entered = this.call.begin().enter();
            this.work.poll(context)
        };
        polled.map(|result| {
            this.call.end(result.as_ref().map_or_else(|error| Outcome::Failed(error.kind()), |_| Outcome::Ok));
            result.map_err(|error| error.with_operation(this.call.operation))
        })
    }
}

impl Call<'_> {
    fn begin(&mut self) -> &Span {
        let Call { operation, principal, begun } = self;
        let (_, span) = begun.get_or_insert_with(|| {
            principal.counts().begin();
            let span = tracing::debug_span!(
                target: "townsquare::operation",
                "operation",
                name = operation.name(),
                caller = kind(principal.principal().caller()),
                outcome = field::Empty
            );
            (Clock::default().moment(), span)
        });
        span
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some((begun, span)) = self.begun.take() {
            span.record("outcome", outcome.name());
            self.principal.counts().end(self.operation, outcome, Clock::default().moment().since(begun));
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.end(Outcome::Dropped);
    }
}

fn kind(caller: Caller) -> &'static str {
    match caller {
        Caller::Anonymous => "anonymous",
        Caller::User(_) => "user",
        Caller::Service => "service",
    }
}
