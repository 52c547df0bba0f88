//! What the HTTP endpoints need of their client: whom requests act for, the limits, and the origins of other sites.

use std::{pin::Pin, sync::Arc, time::Duration};

use tokio::runtime::Handle;

use crate::{client_key::ClientSlots, database::CurrentPrincipal, error::Result};

/// What an endpoint needs of its client.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) callers: CallerResolver,
    /// The origins whose pages may read the responses, in lower case; `*` for all.
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
/// belong to a service.
#[derive(Clone)]
pub(crate) struct CallerResolver(Arc<Resolve>);

type Resolve = dyn Fn(Option<String>) -> Pin<Box<dyn Future<Output = Result<CurrentPrincipal>> + Send>> + Send + Sync;

impl CallerResolver {
    pub(crate) fn new<F>(resolve: impl Fn(Option<String>) -> F + Send + Sync + 'static) -> CallerResolver
    where
        F: Future<Output = Result<CurrentPrincipal>> + Send + 'static,
    {
        CallerResolver(Arc::new(move |token| Box::pin(resolve(token))))
    }

    /// # Errors
    /// `Unauthorized` for a token that is not valid.
    pub(crate) async fn resolve(&self, access_token: Option<String>) -> Result<CurrentPrincipal> {
        self.0(access_token).await
    }
}
