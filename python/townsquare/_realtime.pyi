"""Changes of rows, as they are committed. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Literal, Optional, Union, final

from typing_extensions import Self, TypeAlias

from ._auth import Subscription
from ._client import _Headers, _Id, _Record, _Seconds
from ._opening import AsyncResponseOpening
from ._storage import AsyncHttpStream, HttpStream
from .exceptions import Error

_EventType: TypeAlias = Literal["INSERT", "UPDATE", "DELETE"]
_Table: TypeAlias = Literal[
    "users", "spaces", "fidgets", "community_configs", "community_domains", "spaceRegistrations", "files"
]
_Event: TypeAlias = Literal["INSERT", "UPDATE", "DELETE", "*"]
_Callback: TypeAlias = Callable[[Change], object]
_OnClose: TypeAlias = Callable[[Optional[Error]], object]
_Exc: TypeAlias = Union[type[BaseException], BaseException, TracebackType, None]

@final
class Realtime:
    """Changes of rows: `Client.realtime`.

    A subscription delivers every committed change of its *view*, in the order of the commits, exactly once, whoever made it:
    this client, another process, `psql` or the sqlite3 shell. (On PostgreSQL the statements of transactions that overlap in
    time are interleaved; the changes of one row are in order.) The view is the rows that the caller may see and that the
    filter matches. A row that comes into the view is an `INSERT`, one that leaves it a `DELETE`. A subscription that nobody
    reads falls behind in the log: it costs at most 1 MiB of memory, and one larger row.

        subscription = client.realtime.on_space_changes(space.id, lambda change: print(change.event_type, change.new))
        with client.realtime.changes(table="fidgets", filter=f"space_id=eq.{space.id}") as changes:
            client.fidgets.create_fidget(space.id, "clock")
            print(next(changes).to_dict())  # or, without end: for change in changes

    A filter is `column=op.value`, several are joined by `&`. The operators are `eq`, `neq`, `lt`, `lte`, `gt`, `gte`,
    `in` (`name=in.(a,"b,c")`), `like` and `ilike` (`%` for any text, `_` for one character) and `is` (`null`, `true`,
    `false`). A value may stand in double quotes, with a backslash before `"` and `\\`. A filter has at most 8 conditions and
    1,024 bytes.

    The columns `admin_email`, `admin_identity_public_keys` and `custom_domain_authorized` of `community_configs` are the
    service's. Other callers get rows without them, and a filter that names one fails like one that names an unknown column.

    A cursor names a position in the feed, also after a restart of the program: store `change.cursor` and give it as `since`.
    For a row that was deleted since, or that the caller no longer sees, only a `DELETE` with the primary key is delivered. A
    filter then tests only the primary key, and `space_id` for fidgets. The service gets every change as it was.
    """

    def start(self) -> None:
        """Switches the change log on, in the database and so for all processes. Does nothing if it is on.

        The first subscription of the program does so, too. A request over HTTP (`handle_events`) never does.
        """

    def stop(self) -> None:
        """Switches the change log off, for all processes, and empties it. For the service.

        Every subscription ends with `UnavailableError`, and every cursor expires. The next subscription of a program switches
        the log on again.

        Raises:
            AuthError: The caller is not the service.
        """

    def subscribe(
        self,
        channel: str,
        callback: _Callback,
        *,
        table: _Table,
        event: _Event = "*",
        filter: Optional[str] = None,
        schema: str = "public",
        since: Optional[str] = None,
        until: Optional[str] = None,
        on_close: Optional[_OnClose] = None,
    ) -> Subscription:
        """Calls `callback(change)` with every change. The subscription is live when this returns.

        The callback runs on a thread of the library, one call at a time. It may call the library and end any subscription. An
        exception goes to the logger `townsquare`, and the subscription continues.

        Args:
            channel: A name for logs; it selects nothing.
            table: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces`, `fidgets` or `files`.
            event: Only changes that are delivered as this event.
            since: The changes after this cursor come first, then the new ones, without gap and repeat.
            until: The subscription ends at this cursor; changes after it are not delivered. With the cursor of `cursor()`, it delivers
                the changes up to now.
            on_close: Called once, after the last call of the callback, with the reason of the end: None after `unsubscribe`, when
                the client was closed, and at `until`; an `AuthError` when the handle of `as_user` may no longer act for the user, because the
                session has ended or its token is invalid.

        Raises:
            InvalidInputError: There is no such table, column or operator, a value does not fit its column, or `since` or `until` is
                no cursor.
            CursorExpiredError: The feed no longer keeps every change after a cursor, the cursor is of another database, or the
                database was restored or has lost changes since.
        """

    def on_space_changes(self, space_id: _Id, callback: _Callback) -> Subscription:
        """The subscription `space-changes`: the changes of one space."""

    def on_fidget_changes(self, space_id: _Id, callback: _Callback) -> Subscription:
        """The subscription `fidget-changes`: the changes of the fidgets of one space."""

    def changes(
        self,
        *,
        table: _Table,
        event: _Event = "*",
        filter: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
    ) -> ChangeStream:
        """Returns every change as an iterator. It is live when this returns. Arguments and errors as `subscribe`.

            start = client.realtime.cursor()
            client.spaces.create_space("Pier")
            for change in client.realtime.changes(table="spaces", since=start, until=client.realtime.cursor()):
                print(change.event_type)
        """

    def live(self, *, table: _Table, filter: Optional[str] = None) -> LiveQuery:
        """Returns the rows now, and every change after them, without gap and repeat.

        The query keeps the caller that it began with. When that caller's session ends, the next change raises `AuthError`.

        Raises:
            InvalidInputError: As for `subscribe`.
            TooLargeError: The rows take more than 64 MiB of memory.
        """

    def cursor(self) -> str:
        """Returns the position after the last commit, for `since` and `until`."""

    def handle_events(
        self, target: str, headers: Optional[_Headers] = None, *, method: str = "GET"
    ) -> HttpStream:
        """Answers a request (GET, HEAD or OPTIONS) for server-sent events: the changes of `?table=spaces&filter=id=eq.…&event=UPDATE`.

        The header `Authorization: Bearer TOKEN` names the caller, never the session of this client; without it the caller is
        anonymous. `Last-Event-ID` (or the parameter `since`) is the cursor to continue from. Each event is `event: change`, `id:`
        the cursor and `data:` the change as JSON. A comment follows every `event_heartbeat` seconds without a change. If the
        subscription ends by itself, for instance because the token expires, is replaced or is revoked, the last event is
        `event: end` with `data: {"error":"Session has ended","status":401}`.

        The status is 200; 400 for a bad query, 401 for a bad token, 404 for an unknown table, 410 for an expired cursor, 429 for a
        client with too many streams, 503 while the change log is switched off: a request never switches it on, `start` does.
        """

    def stats(self) -> RealtimeStats:
        """Returns the figures of the feed."""

@final
class AsyncRealtime:
    """Changes of rows: `AsyncClient.realtime`. Each method is the coroutine of the same method of `Realtime`."""

    async def start(self) -> None:
        """See `Realtime.start`."""

    async def stop(self) -> None:
        """See `Realtime.stop`."""

    async def subscribe(
        self,
        channel: str,
        callback: _Callback,
        *,
        table: _Table,
        event: _Event = "*",
        filter: Optional[str] = None,
        schema: str = "public",
        since: Optional[str] = None,
        until: Optional[str] = None,
        on_close: Optional[_OnClose] = None,
    ) -> Subscription:
        """See `Realtime.subscribe`. The callback runs on a thread of the library, outside any event loop."""

    async def on_space_changes(self, space_id: _Id, callback: _Callback) -> Subscription:
        """See `Realtime.on_space_changes`."""

    async def on_fidget_changes(self, space_id: _Id, callback: _Callback) -> Subscription:
        """See `Realtime.on_fidget_changes`."""

    async def changes(
        self,
        *,
        table: _Table,
        event: _Event = "*",
        filter: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
    ) -> AsyncChangeStream:
        """See `Realtime.changes`. The result is an async iterator."""

    async def live(self, *, table: _Table, filter: Optional[str] = None) -> AsyncLiveQuery:
        """See `Realtime.live`."""

    async def cursor(self) -> str:
        """See `Realtime.cursor`."""

    def handle_events(
        self, target: str, headers: Optional[_Headers] = None, *, method: str = "GET"
    ) -> AsyncResponseOpening:
        """See `Realtime.handle_events`. `async with` the result, or await it for the response; it is a coroutine."""

    async def stats(self) -> RealtimeStats:
        """See `Realtime.stats`."""

@final
@dataclass(frozen=True, eq=False)
class Change(_Record):
    """A change of one row, as the subscription's caller may see it."""

    schema: Final[str]
    """The schema: `public`."""
    table: Final[str]
    """The table: `spaces`, or another that `subscribe` takes."""
    event_type: Final[_EventType]
    """What happened to the row in the view of the subscription."""
    new: Final[Optional[dict[str, Any]]]
    """The row after the change; None for a row that is gone. Ids and times are text, JSON columns are JSON."""
    old: Final[Optional[dict[str, Any]]]
    """The row before the change; None for a row that came into the view. After a DELETE it is the whole row if the row was deleted. It
    has the key only if the row still exists outside the view, if it was a row of a deleted user, and, for callers other than the
    service, if it was gone already when a subscription `since` a cursor read the change."""
    commit_timestamp: Final[datetime]
    """When the change was made, UTC."""
    cursor: Final[str]
    """The position after this change: opaque text for `since` and `until`."""

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON has it: schema, table, eventType, new, old, commit_timestamp (text), cursor."""

class ChangeStream(Iterator[Change]):
    """Changes as an iterator. It waits for the next change; `close`, `with` or dropping it ends it, and `until` of the request.

    Iterating raises the error that ended the stream: `CursorExpiredError` when it fell too far behind.
    """

    def next(self, timeout: Optional[_Seconds] = None) -> Optional[Change]:
        """Waits for the next change, at most `timeout`. Returns None at the time-out and after the end."""

    def close(self) -> None:
        """Ends the stream, also for a call that waits in it. A second call does nothing."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Change: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: _Exc) -> None: ...

class AsyncChangeStream(AsyncIterator[Change]):
    """Changes as an async iterator. `close`, `async with` or dropping it ends it. See `ChangeStream`."""

    async def next(self, timeout: Optional[_Seconds] = None) -> Optional[Change]:
        """See `ChangeStream.next`. A change that arrives while the call is cancelled is not lost."""

    async def close(self) -> None:
        """See `ChangeStream.close`."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> Change: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: _Exc) -> None: ...

@final
class LiveQuery(ChangeStream):
    """The rows of a table, and every change after them as an iterator."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows when the query began, as `Change.new` has them: one list, the same at every access."""

    def _repr_html_(self) -> str: ...

@final
class AsyncLiveQuery(AsyncChangeStream):
    """The rows of a table, and every change after them as an async iterator."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """See `LiveQuery.rows`."""

    def _repr_html_(self) -> str: ...

@final
@dataclass(frozen=True, eq=False)
class RealtimeStats(_Record):
    """The figures of the change feed."""

    subscriptions: Final[int]
    """The subscriptions, streams and live queries of this client."""
    retained: Final[int]
    """The changes that the feed keeps for subscriptions `since` a cursor."""
    oldest: Final[Optional[datetime]]
    """The time of the oldest of these changes, UTC."""
    lag_seconds: Final[float]
    """How far the feed is behind the last commit; on PostgreSQL also because a transaction stays open."""
    def _repr_html_(self) -> str: ...
