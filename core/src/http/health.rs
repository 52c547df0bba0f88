//! The health of a client, for load balancers and monitors: whether its database answers.

use ::http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::{
    refusal::HttpRefusal,
    request::Request,
    response::{self, Response},
};
use crate::client::Client;

/// The methods that are answered.
const METHODS: &str = "GET, HEAD";

/// Answers 200 if the database answers, else 503. A closed client is not healthy.
pub(super) async fn respond(client: &Client, request: &Request<'_>) -> Response {
    let answer = async {
        if !matches!(request.method, "GET" | "HEAD") {
            return Err(HttpRefusal::method_not_allowed(METHODS));
        }
        // A read that succeeds whether a row has the id or not: users choose ids.
        let is_healthy = client.as_anonymous().communities().get_space_registration(Uuid::nil()).await.is_ok();
        let status = if is_healthy { "ok" } else { "unavailable" };
        let mut response = response::json(&json!({ "status": status }));
        if !is_healthy {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        Ok(response)
    };
    request.respond(METHODS, &[], answer).await
}
