"""`AsyncClient`. Import it from `townsquare`; the stub of `_client` has the conventions."""

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Optional, Union, final

from typing_extensions import Never, Self, Unpack

from ._auth import AsyncAuth
from ._client import _Headers, _Path, _Seconds
from ._communities import AsyncCommunities
from ._discovery import AsyncDiscovery
from ._opening import AsyncClientOpening, AsyncResponseOpening
from ._realtime import AsyncRealtime
from ._reports import Finding, MigrationPlan, MoveReport, RowImportReport, TableRow
from ._spaces import AsyncFidgets, AsyncSpaces
from ._storage import AsyncStorage, _AsyncSource, _Progress, _Source
from ._typed import OpenOptions

@final
class AsyncClient:
    """`Client` for asyncio: the same areas and methods, each one a coroutine.

        async with townsquare.AsyncClient.open("town") as client:
            apps = await client.discovery.search_mini_apps("chess", limit=10)

    Work starts at the `await`. An answer from memory does not go through the event loop. Cancelling a task cancels the work
    that it awaits, unless another call waits for the same work. A cancelled write that has begun may have happened. The next call
    that changes the session waits for a cancelled sign-in. If a file is larger than `inline_file_limit`, later calls of the same
    caller on its path wait for a cancelled upload, deletion, copy or move. A smaller file, or a row, may still change shortly after
    the cancellation. One client serves any number of event loops.
    """

    def __new__(cls, call_AsyncClient_open: Never, /) -> Self:
        """A client is opened by `AsyncClient.open`. A call of the class is an error: `TypeError` at run time."""

    @classmethod
    def open(
        cls, data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]
    ) -> AsyncClientOpening:
        """See `Client.open`. `async with` the result, or await it for the client; it is a coroutine."""

    async def close(self) -> None:
        """See `Client.close`."""

    @property
    def closed(self) -> bool:
        """See `Client.closed`."""

    async def as_service(self) -> AsyncClient:
        """See `Client.as_service`."""

    async def as_anonymous(self) -> AsyncClient:
        """See `Client.as_anonymous`."""

    async def with_client_key(self, client_key: str) -> AsyncClient:
        """See `Client.with_client_key`."""

    async def read_position(self) -> str:
        """See `Client.read_position`."""

    async def read_after(self, position: str) -> None:
        """See `Client.read_after`."""

    async def as_user(self, access_token: str) -> AsyncClient:
        """See `Client.as_user`."""

    def handle_request(
        self, method: str, target: str, body: Union[_Source, _AsyncSource] = b"", headers: Optional[_Headers] = None
    ) -> AsyncResponseOpening:
        """See `Client.handle_request`. `async with` the result, or await it for the response; it is a coroutine."""

    async def check(self, *, full: bool = False) -> list[Finding]:
        """See `Client.check`."""

    async def backup(self, target: _Path) -> None:
        """See `Client.backup`."""

    async def metrics(self) -> dict[str, Any]:
        """See `Client.metrics`."""

    async def metrics_text(self) -> str:
        """See `Client.metrics_text`."""

    @staticmethod
    async def restore(source: _Path, data_dir: _Path) -> None:
        """See `Client.restore`."""

    async def move_to(
        self,
        *,
        data_dir: Optional[_Path] = None,
        sessions: bool = True,
        follow: Optional[_Seconds] = None,
        progress: Optional[_Progress] = None,
        **options: Unpack[OpenOptions],
    ) -> MoveReport:
        """See `Client.move_to`."""

    async def reopen_for_writes(self) -> bool:
        """See `Client.reopen_for_writes`."""

    async def check_move(
        self, *, data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]
    ) -> Literal["new", "empty", "unfinished"]:
        """See `Client.check_move`."""

    def export_rows(self, tables: Iterable[str] = ()) -> AsyncIterator[TableRow]:
        """See `Client.export_rows`."""

    async def import_rows(
        self, table: str, rows: Iterable[Mapping[str, Any]], *, dry_run: bool = False
    ) -> RowImportReport:
        """See `Client.import_rows`."""

    @staticmethod
    async def plan_migrations(data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]) -> MigrationPlan:
        """See `Client.plan_migrations`."""

    @property
    def discovery(self) -> AsyncDiscovery:
        """The mini app directory."""

    @property
    def communities(self) -> AsyncCommunities:
        """Communities: configurations, domains and registered spaces."""

    @property
    def spaces(self) -> AsyncSpaces:
        """Spaces."""

    @property
    def fidgets(self) -> AsyncFidgets:
        """The fidgets of spaces."""

    @property
    def storage(self) -> AsyncStorage:
        """Files."""

    @property
    def realtime(self) -> AsyncRealtime:
        """Changes of rows, as they are committed."""

    @property
    def auth(self) -> AsyncAuth:
        """Accounts, sessions and sign-in."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: Union[type[BaseException], BaseException, TracebackType, None]) -> None: ...
