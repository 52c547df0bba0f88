//! What the HTTP endpoints need of a client.

use std::sync::Arc;

use super::ClientCore;
use crate::{
    auth::Auth,
    client_key::ClientKey,
    request_context::{RequestContext, ResolveCaller},
};

impl ClientCore {
    /// The context of the requests of one client of a server.
    pub(super) fn request_context(&self, client: Option<ClientKey>) -> RequestContext {
        let (streams, uploads) = self.client_limits.of(client);
        RequestContext {
            resolve_caller: self.resolve_caller(),
            allowed_origins: Arc::clone(&self.allowed_origins),
            streams,
            uploads,
            heartbeat: self.event_heartbeat,
            runtime: self.runtime.tokio().clone(),
        }
    }

    /// Finds the principals of the access tokens in HTTP requests.
    fn resolve_caller(&self) -> ResolveCaller {
        let (accounts, database) = (Arc::clone(&self.accounts), self.database.clone());
        Arc::new(move |access_token| {
            let (accounts, database) = (Arc::clone(&accounts), database.clone());
            Box::pin(async move {
                match access_token {
                    Some(token) => Ok(Auth::as_user(accounts, &token).await?.principal().clone()),
                    None => Ok(database.anonymous_request()),
                }
            })
        })
    }
}
