//! The calls that a subscription to changes has for its callback on the loop of a host.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream as _;
use townsquare::{
    Error,
    realtime::{ChangeStream, RowChange},
};

use crate::host_loop::HostCalls;

/// The function that is told the end of a subscription.
pub(crate) type OnClose = Box<dyn FnOnce(Option<Error>) + Send>;

/// A stream, and what it calls.
pub(crate) struct ChangeCalls {
    pub(crate) stream: ChangeStream,
    pub(crate) on_change: Box<dyn FnMut(RowChange) + Send>,
    pub(crate) on_close: Option<OnClose>,
}

impl ChangeCalls {
    fn close(&mut self, reason: Option<Error>) {
        if let Some(on_close) = self.on_close.take() {
            on_close(reason);
        }
    }
}

impl HostCalls for ChangeCalls {
    fn poll_call(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        Pin::new(&mut self.stream).poll_next(context).map(|next| match next {
            Some(Ok(change)) => {
                (self.on_change)(change);
                true
            }
            end => {
                self.close(end.and_then(Result::err));
                false
            }
        })
    }

    fn end(mut self: Box<Self>, _drains: bool) {
        self.stream.close();
        self.close(None);
    }
}
