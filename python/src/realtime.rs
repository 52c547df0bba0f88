//! Subscriptions to changes of rows (SPEC 6).

use pyo3::prelude::*;
use townsquare::{
    Operation,
    realtime::{ChangeRequest, EventType, LiveRequest},
};

use crate::{
    area::area,
    argument::{IdArg, TextArg, optional_text},
    callback::{Callback, Subscription},
    change::{Change, RealtimeStats},
    change_stream::NewStream,
    errors::Failure,
    headers::HeadersArg,
    http,
    run::{MethodResult, NoValue},
};

area! {
    "Realtime",
    #[doc = text_of!(Realtime)]
    Realtime,
    #[doc = text_of!(AsyncRealtime)]
    AsyncRealtime
}

#[pymethods]
impl Methods {
    #[doc = text_of!(Realtime.start)]
    fn start<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::StartRealtime, |client| async move {
            client.get()?.realtime().start().await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Realtime.stop)]
    fn stop<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::StopRealtime, |client| async move {
            client.get()?.realtime().stop().await?;
            Ok(NoValue)
        })
    }

    #[doc = text_of!(Realtime.subscribe)]
    #[pyo3(signature = (channel, callback, *, table, event = None, filter = None, schema = None, since = None, until = None, on_close = None))]
    #[pyo3(
        text_signature = "($self, channel, callback, *, table, event='*', filter=None, schema='public', since=None, until=None, on_close=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn subscribe<'py>(
        &self,
        py: Python<'py>,
        channel: TextArg,
        callback: Callback,
        table: TextArg,
        event: Option<TextArg>,
        filter: Option<TextArg>,
        schema: Option<TextArg>,
        since: Option<TextArg>,
        until: Option<TextArg>,
        on_close: Option<Callback>,
    ) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::Subscribe, |client| async move {
            let channel = channel.value("channel")?;
            let mut request = change_request(table, event, filter, since, until)?;
            if let Some(schema) = optional_text(schema, "schema")? {
                request = request.schema(schema);
            }
            if let Some(on_close) = on_close {
                request = request.on_close(move |reason| on_close.call("subscribe", (CloseReason(reason),)));
            }
            let deliver = move |change| callback.call("subscribe", (Change::from(change),));
            let subscription = client.get()?.realtime().subscribe(&channel, request, deliver).await?;
            Ok(Subscription::from(subscription))
        })
    }

    #[doc = text_of!(Realtime.on_space_changes)]
    fn on_space_changes<'py>(&self, py: Python<'py>, space_id: IdArg, callback: Callback) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::Subscribe, |client| async move {
            let deliver = move |change| callback.call("on_space_changes", (Change::from(change),));
            let space_id = space_id.value("space_id")?;
            Ok(Subscription::from(client.get()?.realtime().on_space_changes(space_id, deliver).await?))
        })
    }

    #[doc = text_of!(Realtime.on_fidget_changes)]
    fn on_fidget_changes<'py>(&self, py: Python<'py>, space_id: IdArg, callback: Callback) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::Subscribe, |client| async move {
            let deliver = move |change| callback.call("on_fidget_changes", (Change::from(change),));
            let space_id = space_id.value("space_id")?;
            Ok(Subscription::from(client.get()?.realtime().on_fidget_changes(space_id, deliver).await?))
        })
    }

    #[doc = text_of!(Realtime.changes)]
    #[pyo3(signature = (*, table, event = None, filter = None, since = None, until = None))]
    #[pyo3(text_signature = "($self, *, table, event='*', filter=None, since=None, until=None)")]
    fn changes<'py>(
        &self,
        py: Python<'py>,
        table: TextArg,
        event: Option<TextArg>,
        filter: Option<TextArg>,
        since: Option<TextArg>,
        until: Option<TextArg>,
    ) -> MethodResult<'py> {
        let runner = self.runner.clone();
        self.runner.run_without_gil(py, Operation::Changes, |client| async move {
            let request = change_request(table, event, filter, since, until)?;
            let stream = client.get()?.realtime().changes(request).await?;
            Ok(NewStream { stream, rows: None, runner })
        })
    }

    #[doc = text_of!(Realtime.live)]
    #[pyo3(signature = (*, table, filter = None))]
    fn live<'py>(&self, py: Python<'py>, table: TextArg, filter: Option<TextArg>) -> MethodResult<'py> {
        let runner = self.runner.clone();
        self.runner.run_detached(py, Operation::LiveQuery, |client| async move {
            let mut request = LiveRequest::table(table.value("table")?);
            if let Some(filter) = optional_text(filter, "filter")? {
                request = request.filter(filter);
            }
            let live = client.get()?.realtime().live(request).await?;
            Ok(NewStream { stream: live.changes, rows: Some(live.rows), runner })
        })
    }

    #[doc = text_of!(Realtime.cursor)]
    fn cursor<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::FeedCursor, |client| async move {
            Ok(client.get()?.realtime().cursor().await?)
        })
    }

    #[doc = text_of!(Realtime.handle_events)]
    #[pyo3(signature = (target, headers = None, *, method = None), text_signature = "($self, target, headers=None, *, method='GET')")]
    fn handle_events<'py>(
        &self,
        py: Python<'py>,
        target: TextArg,
        headers: Option<HeadersArg>,
        method: Option<TextArg>,
    ) -> MethodResult<'py> {
        let runner = self.runner.clone();
        let opened = self.runner.run_without_gil(py, Operation::HandleEvents, |client| async move {
            let (target, method) = (target.value("target")?, method.map(|method| method.value("method")).transpose()?);
            let headers = headers.map_or(Ok(Vec::new()), |headers| headers.value("headers"))?;
            let realtime = client.get()?.realtime();
            let method = method.as_deref().unwrap_or("GET");
            Ok(http::NewStream::new(realtime.handle_events_request(method, &target, &headers).await?, runner))
        });
        http::opening(opened?, self.runner.mode())
    }

    #[doc = text_of!(Realtime.stats)]
    fn stats<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run_without_gil(py, Operation::RealtimeStats, |client| async move {
            Ok(RealtimeStats::from(client.get()?.realtime().stats().await?))
        })
    }
}

fn change_request(
    table: TextArg,
    event: Option<TextArg>,
    filter: Option<TextArg>,
    since: Option<TextArg>,
    until: Option<TextArg>,
) -> Result<ChangeRequest, Failure> {
    let mut request = ChangeRequest::table(table.value("table")?);
    if let Some(event) = optional_text(event, "event")?.filter(|event| event != "*") {
        request = request.event(event.parse::<EventType>()?);
    }
    if let Some(filter) = optional_text(filter, "filter")? {
        request = request.filter(filter);
    }
    if let Some(since) = optional_text(since, "since")? {
        request = request.since(since);
    }
    if let Some(until) = optional_text(until, "until")? {
        request = request.until(until);
    }
    Ok(request)
}

/// Why a subscription ended: an exception, or `None`.
struct CloseReason(Option<townsquare::Error>);

impl<'py> IntoPyObject<'py> for CloseReason {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        Ok(match self.0 {
            Some(error) => Failure::from(error)
                .into_exception(py, Some(Operation::Subscribe))
                .into_value(py)
                .into_bound(py)
                .into_any(),
            None => py.None().into_bound(py),
        })
    }
}
