//! The parts of a client that the HTTP endpoints use: how to find a request's caller, the limits, and the origins that may call.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::runtime::Handle;

use crate::{
    client_key::{ClientKey, Slot, Slots},
    database::CurrentPrincipal,
    error::Result,
};

/// What an endpoint needs for a request.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) shared: Arc<SharedContext>,
    /// The client of the request. Without one, the limits of one client do not apply.
    pub(crate) client: Option<ClientKey>,
}

/// The part that all requests share.
pub(crate) struct SharedContext {
    pub(crate) resolve_caller: ResolveCaller,
    /// Pages of these origins may call the endpoint. In lower case; `*` stands for all.
    pub(crate) allowed_origins: Arc<[String]>,
    /// The time between two heartbeats of an event stream.
    pub(crate) heartbeat: Duration,
    /// Runs the timers of heartbeats.
    pub(crate) runtime: Handle,
    /// The event streams that each client has.
    event_streams: Slots,
    /// The uploads that each client has.
    uploads: Slots,
}

/// Finds the principal of an access token, and the anonymous one without a token. The client provides it, because sessions
/// belong to a service. Fails with `Unauthorized` for a token that is not valid.
pub(crate) type ResolveCaller =
    Arc<dyn Fn(Option<String>) -> Pin<Box<dyn Future<Output = Result<CurrentPrincipal>> + Send>> + Send + Sync>;

impl SharedContext {
    pub(crate) fn new(
        resolve_caller: ResolveCaller,
        allowed_origins: Arc<[String]>,
        heartbeat: Duration,
        runtime: Handle,
    ) -> SharedContext {
        let event_streams = Slots::new("event streams of one client", 64);
        let uploads = Slots::new("uploads of one client", 16);
        SharedContext { resolve_caller, allowed_origins, heartbeat, runtime, event_streams, uploads }
    }
}

impl RequestContext {
    /// Takes the slot of an event stream; `None` without a client.
    ///
    /// # Errors
    /// `RateLimited` if the client has 64.
    pub(crate) fn take_event_stream(&self) -> Result<Option<Slot>> {
        self.shared.event_streams.take(self.client)
    }

    /// Takes the slot of an upload; `None` without a client.
    ///
    /// # Errors
    /// `RateLimited` if the client has 16.
    pub(crate) fn take_upload(&self) -> Result<Option<Slot>> {
        self.shared.uploads.take(self.client)
    }
}
