//! The response of `handle_events`. Dropping its body ends the subscription.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;

use super::StreamCloser;
use crate::{
    error::Result,
    http_message::{HttpResponse, ResponseBody},
};

/// The response of [`Realtime::handle_events`](super::Realtime::handle_events), for any HTTP server.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// client.realtime().start().await?;
/// let mut response = client.realtime().handle_events("/events?table=spaces", &[]).await?;
/// assert_eq!(response.status, 200);
/// while let Some(bytes) = response.body.next_chunk().await {
///     println!("{}", String::from_utf8_lossy(&bytes));
/// }
/// # Ok(())
/// # }
/// ```
pub type EventResponse<B = EventBody> = HttpResponse<B>;

/// The body of an [`EventResponse`], in chunks: events until the client or the stream is closed, or JSON that describes a
/// refusal. Dropping it ends the subscription.
#[must_use]
pub struct EventBody {
    body: ResponseBody,
    closer: Option<StreamCloser>,
}

impl EventBody {
    pub(crate) fn new(body: ResponseBody, closer: Option<StreamCloser>) -> EventBody {
        EventBody { body, closer }
    }

    /// Returns the next bytes: one or several whole events, or a heartbeat. `None` at the end: after the event `end`, or when the
    /// stream or the client was closed.
    pub async fn next_chunk(&mut self) -> Option<Bytes> {
        // An error is an event.
        self.body.next_chunk().await.ok().flatten()
    }

    /// A handle that ends the body from another thread or task; `None` for a refusal.
    pub fn closer(&self) -> Option<StreamCloser> {
        self.closer.clone()
    }
}

impl From<EventBody> for ResponseBody {
    fn from(events: EventBody) -> ResponseBody {
        events.body
    }
}

impl Stream for EventBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}

impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody").finish_non_exhaustive()
    }
}
