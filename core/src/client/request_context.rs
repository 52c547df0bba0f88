//! How the HTTP endpoints find the caller of a request.

use std::sync::Arc;

use crate::{
    auth::{Accounts, Auth},
    database::{Database, Principal},
    request_context::ResolveCaller,
};

/// Finds the principals of the access tokens in HTTP requests.
pub(super) fn resolve_caller(accounts: Arc<Accounts>, database: Database) -> ResolveCaller {
    Arc::new(move |access_token| {
        let (accounts, database) = (Arc::clone(&accounts), database.clone());
        Box::pin(async move {
            match access_token {
                Some(token) => Ok(Auth::as_user(accounts, &token).await?.principal().clone()),
                None => Ok(database.handle_of(Principal::Anonymous)),
            }
        })
    })
}
