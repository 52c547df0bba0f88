//! The change feed without async.

use std::time::Duration;

use uuid::Uuid;

use super::{Client, wait};
use crate::{
    callbacks::Subscription,
    error::Result,
    model::{RealtimeStats, RowChange},
    realtime::{ChangeRequest, LiveRequest},
};

area! { Realtime:
    subscribe(channel: &str, request: ChangeRequest, callback: impl FnMut(RowChange) + Send + 'static) -> Subscription;
    on_space_changes(space_id: Uuid, callback: impl FnMut(RowChange) + Send + 'static) -> Subscription;
    on_fidget_changes(space_id: Uuid, callback: impl FnMut(RowChange) + Send + 'static) -> Subscription;
    cursor() -> String;
    stats() -> RealtimeStats;
}

impl Realtime<'_> {
    /// Calls [`Realtime::changes`](crate::realtime::Realtime::changes) and waits for its result.
    ///
    /// # Errors
    /// Those of the async method.
    pub fn changes(&self, request: ChangeRequest) -> Result<ChangeStream> {
        wait(self.0.changes(request)).map(ChangeStream)
    }

    /// Calls [`Realtime::live`](crate::realtime::Realtime::live) and waits for its result.
    ///
    /// # Errors
    /// Those of the async method.
    pub fn live(&self, request: LiveRequest) -> Result<crate::realtime::LiveQuery> {
        wait(self.0.live(request))
    }
}

/// [`townsquare::realtime::ChangeStream`](crate::realtime::ChangeStream) without async.
#[derive(Debug)]
pub struct ChangeStream(crate::realtime::ChangeStream);

impl ChangeStream {
    /// The next change. Waits for it at most `timeout`, or for ever without one. `None` at the time-out and after the end.
    pub fn next(&mut self, timeout: Option<Duration>) -> Option<Result<RowChange>> {
        let _ = timeout;
        wait(self.0.next())
    }

    /// Ends the stream.
    pub fn close(&self) {
        self.0.close();
    }
}

impl Client {
    /// [`Client::realtime`](crate::Client::realtime) without async.
    pub fn realtime(&self) -> Realtime<'_> {
        Realtime(self.0.realtime())
    }
}
