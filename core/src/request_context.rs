//! What the HTTP endpoints need of their client: how to find a request's caller, the limits, and the origins that may call.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::runtime::Handle;

use crate::{client_key::ClientSlots, database::CurrentPrincipal, error::Result};

/// What an endpoint needs of its client.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) resolve_caller: ResolveCaller,
    /// Pages of these origins may call the endpoint. In lower case; `*` stands for all.
    pub(crate) allowed_origins: Arc<[String]>,
    /// The event streams that the peer may have at the same time.
    pub(crate) streams: ClientSlots,
    /// The uploads that the peer may have at the same time.
    pub(crate) uploads: ClientSlots,
    /// The time between two heartbeats of an event stream.
    pub(crate) heartbeat: Duration,
    /// Runs the timers of heartbeats.
    pub(crate) runtime: Handle,
}

/// Finds the principal of an access token, and the anonymous one without a token. The client provides it, because sessions
/// belong to a service. Fails with `Unauthorized` for a token that is not valid.
pub(crate) type ResolveCaller =
    Arc<dyn Fn(Option<String>) -> Pin<Box<dyn Future<Output = Result<CurrentPrincipal>> + Send>> + Send + Sync>;
