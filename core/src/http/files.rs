//! Files as an axum router.
//!
//! Invariant: bodies are streamed both ways, so that memory does not grow with a file.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    Router,
    body::{Body, BodyDataStream},
    extract::{Request, State},
    http::{Response, StatusCode},
    routing::any,
};
use bytes::Bytes;
use futures_core::Stream;

use super::{empty_response, of_request, streamed_response, text_headers};
use crate::{
    client::Client,
    error::Result,
    storage::{RequestBody, ResponseBody},
};

/// The path under which [`files_router`] serves files: `/files/BUCKET/PATH`.
///
/// ```
/// assert_eq!(townsquare::http::FILES_PATH, "/files");
/// ```
pub const FILES_PATH: &str = "/files";

/// Returns a router that serves files at `/files/BUCKET/PATH`: GET, HEAD, PUT and DELETE. Merge it into the router of your
/// server.
///
/// A request acts for the bearer of its `Authorization` header, or for the signer of its URL, and for nobody else: the
/// caller of `client` has no part in it. Put `/files` in front of a URL of
/// [`signed_url`](crate::storage::Storage::signed_url). Bodies are streamed; the option
/// [`max_file_size`](crate::Config::max_file_size) limits them, and not axum's own limit.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// use townsquare::http::{files_router, router};
///
/// axum::Router::new().merge(router(client.clone())).merge(files_router(client))
/// # }
/// ```
pub fn files_router(client: Client) -> Router {
    Router::new().route("/files/{*target}", any(handle)).with_state(client)
}

async fn handle(State(client): State<Client>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    // The path is still escaped: `handle_file` decodes it.
    let target = path.strip_prefix(FILES_PATH).unwrap_or(path);
    let target = head.uri.query().map_or_else(|| target.to_owned(), |query| format!("{target}?{query}"));
    let Some(headers) = text_headers(&head.headers) else { return empty_response(StatusCode::BAD_REQUEST) };
    let body = RequestBody::from_chunks(Chunks(body.into_data_stream()));
    let client = of_request(client, &head.extensions);
    let Ok(answer) = client.storage().handle_file(head.method.as_str(), &target, &headers, body).await else {
        return empty_response(StatusCode::SERVICE_UNAVAILABLE);
    };
    let body = if answer.body.size() == 0 {
        Body::empty()
    } else {
        Body::from_stream(SentBody { body: Some(answer.body), next: None })
    };
    streamed_response(answer.status, answer.headers, body)
}

/// The body of a request as `RequestBody` takes it.
struct Chunks(BodyDataStream);

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        Pin::new(&mut self.0).poll_next(context).map_err(io::Error::other)
    }
}

/// The body of a response as axum takes it. Reading the next chunk borrows the body, so the future owns it meanwhile.
struct SentBody {
    /// `None` while `next` runs, and after the end.
    body: Option<ResponseBody>,
    next: Option<Pin<Box<NextChunk>>>,
}

type NextChunk = dyn Future<Output = (ResponseBody, Result<Option<Bytes>>)> + Send;

impl Stream for SentBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let this = &mut *self;
        if let Some(mut body) = this.body.take() {
            this.next = Some(Box::pin(async move {
                let chunk = body.next_chunk().await;
                (body, chunk)
            }));
        }
        let Some(next) = &mut this.next else { return Poll::Ready(None) };
        let (body, chunk) = ready!(next.as_mut().poll(context));
        this.next = None;
        match chunk {
            Ok(Some(chunk)) => {
                this.body = Some(body);
                Poll::Ready(Some(Ok(chunk)))
            }
            Ok(None) => Poll::Ready(None),
            // axum ends the connection, so that the client does not take the part for the whole.
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}
