"""The native half of `townsquare`: import these names from `townsquare`.

Text is `str`, times are aware datetimes in UTC, binary is `bytes`, lists are real lists. What fails raises a class of
`townsquare.exceptions`; an argument of the wrong type is a `TypeError`. Any object may be used from any thread, and a call
that waits lets other threads run and can be interrupted with Ctrl-C.

An id is a `uuid.UUID` or its text. JSON is `dict` with `str` keys, `list`, `str`, `int` of 64 bits, finite `float`, `bool`
and None, nested at most 100 deep, and comes back equal; None for a whole column is SQL's NULL. What an update is not given
(`...`) stays as it is; None clears it. All of these raise `InvalidInputError` for what does not fit.

A row that the caller may not see is one that is not there: `NotFoundError`. A client starts as nobody, who sees what is
public, and becomes a user by `auth.sign_in`; `as_user()` gives a handle for each of many users, `as_service()` one that may
do everything.
"""

from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Optional, Union, final

from typing_extensions import Self, TypeAlias

from ._auth import (
    AsyncAuth as AsyncAuth,
    Auth as Auth,
    Session as Session,
    Subscription as Subscription,
    User as User,
    identity_claim as identity_claim,
)
from ._communities import (
    AsyncCommunities as AsyncCommunities,
    Communities as Communities,
    CommunityConfig as CommunityConfig,
    CommunityDomain as CommunityDomain,
    SpaceRegistration as SpaceRegistration,
)
from ._discovery import (
    AsyncDiscovery as AsyncDiscovery,
    Author as Author,
    Discovery as Discovery,
    DiscoveryStats as DiscoveryStats,
    Engagement as Engagement,
    HttpResponse as HttpResponse,
    MiniApp as MiniApp,
)
from ._spaces import (
    AsyncFidgets as AsyncFidgets,
    AsyncSpaces as AsyncSpaces,
    Fidget as Fidget,
    Fidgets as Fidgets,
    Owner as Owner,
    PublicSpace as PublicSpace,
    Space as Space,
    SpaceWithFidgets as SpaceWithFidgets,
    Spaces as Spaces,
)

_Path: TypeAlias = Union[str, PathLike[str]]
_Seconds: TypeAlias = Union[float, timedelta]

__all__ = [
    "AsyncAuth",
    "AsyncClient",
    "AsyncCommunities",
    "AsyncDiscovery",
    "AsyncFidgets",
    "AsyncSpaces",
    "Auth",
    "Author",
    "Client",
    "Communities",
    "CommunityConfig",
    "CommunityDomain",
    "Coroutine",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "Fidget",
    "Fidgets",
    "HttpResponse",
    "MiniApp",
    "Owner",
    "PublicSpace",
    "Session",
    "Space",
    "SpaceRegistration",
    "SpaceWithFidgets",
    "Spaces",
    "Subscription",
    "User",
    "__version__",
    "identity_claim",
    "shared",
]

__version__: str

def shared(data_dir: Optional[_Path] = None, **options: Any) -> Client:
    """The process-wide client: the first call opens it, later calls return the same object.

    Takes the arguments of `Client.open`. Without any, it is the client that is open already, whatever its options; after
    it was closed, the next call opens another.

    Raises:
        ConfigError: it is open with other options.
        ClosedError: it was opened before a fork, by the parent process.
    """

@final
class Client:
    """One handle: a store, a catalog cache and a caller. Calls block; `AsyncClient` is the twin for asyncio.

    with townsquare.Client.open("town") as client:
        apps = client.discovery.search_mini_apps("chess", limit=10)

    Never open its file with Python's `sqlite3` in the same process: two SQLite libraries there drop each other's file locks.

    One client serves all threads. Leaving the `with` block closes it; one that is dropped closes by itself. After a
    `fork` the child's calls raise `ClosedError`: open a client there.
    """

    @classmethod
    def open(
        cls,
        data_dir: Optional[_Path] = None,
        *,
        database_url: Optional[str] = None,
        catalog_url: Optional[str] = None,
        catalog_api_key: Optional[str] = None,
        refresh_interval: Optional[_Seconds] = 900,
        catalog_timeout: Optional[_Seconds] = 10,
        durability: Optional[Literal["full", "normal"]] = "full",
        persist_session: Optional[bool] = False,
        expose_owner_email: Optional[bool] = True,
        **options: Any,
    ) -> Client:
        """Opens a client, making the folder, the database and its tables where they are missing.

        An option that is None is one not given.

        Args:
            data_dir: Folder of the database; default $TOWNSQUARE_DATA_DIR, else ./townsquare-data.
            database_url: `sqlite:PATH` or `postgres://…`; default SQLite inside data_dir.
            catalog_url: Base URL of the catalog, or `file:///…` for one kept by hand (it needs no key).
            catalog_api_key: Its key; default $CATALOG_API_KEY. Without one (or with "") discovery is empty, not an error.
            refresh_interval: How long a fetched catalog counts as fresh: seconds or a timedelta.
            catalog_timeout: How long one request to the catalog may take: seconds or a timedelta.
            durability: Whether a commit survives power loss ("full") or a crash of the process alone ("normal").
            persist_session: Whether who signs in stays signed in over restarts: the session is kept in data_dir, in a file
                that only its owner may read. For an app with one user.
            expose_owner_email: Whether public spaces show their owners' e-mail addresses to every reader.
            **options: `busy_timeout`, `catalog_key_header`, `catalog_refresh_timeout`, `catalog_page_size`,
                `catalog_max_pages`, `catalog_max_page_bytes`, `catalog_tries`: see the README.

        Raises:
            ConfigError: an option is unknown or does not fit (the message names it), or the database cannot be used.
        """

    def close(self) -> None:
        """Ends the client and every thread of it. Later calls raise `ClosedError`; closing twice is fine.

        From a callback of the library's it returns at once; the client ends when the callback has returned.
        """

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the parent process."""

    def as_service(self) -> Client:
        """The same store, past row-level security: for trusted code. One store: closing either closes both."""

    def as_user(self, access_token: str) -> Client:
        """The same store as the user of a session, for servers with many users: a handle of its own, whose caller stays.

        One store: closing either closes both. After the session has ended or expired, everything asked of the handle raises
        `AuthError`.

        Raises:
            AuthError: the session has ended, or its access token expired (`unauthorized`).
        """

    def backup(self, target: _Path) -> None:
        """Writes a consistent copy of the SQLite database to the file `target` while writers go on.

        Raises:
            InvalidInputError: `target` exists, or the database is PostgreSQL, which has tools of its own.
        """

    @staticmethod
    def restore(source: _Path, data_dir: _Path) -> None:
        """Puts a copy made by `backup` into a folder that no client has open, made if it is missing.

        Raises:
            ConfigError: `source` is no such copy, damaged or of a newer version, or the folder has a database.
        """

    @property
    def discovery(self) -> Discovery:
        """The mini app directory."""

    @property
    def communities(self) -> Communities:
        """Communities: configuration, domains, registered spaces."""

    @property
    def spaces(self) -> Spaces:
        """Spaces."""

    @property
    def fidgets(self) -> Fidgets:
        """The fidgets of spaces."""

    @property
    def auth(self) -> Auth:
        """Accounts, sessions and sign-in."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        *exc: Union[type[BaseException], BaseException, TracebackType, None],
    ) -> None: ...

@final
class AsyncClient:
    """`Client` for asyncio: the same areas and methods, every one a coroutine.

    async with await townsquare.AsyncClient.open("town") as client:
        apps = await client.discovery.search_mini_apps("chess", limit=10)

    An answer that is in memory does not go round the event loop. Cancelling a task ends the work that it waits for, as far
    as nobody else waits for the same. A client is bound to no loop.
    """

    @classmethod
    async def open(
        cls,
        data_dir: Optional[_Path] = None,
        *,
        database_url: Optional[str] = None,
        catalog_url: Optional[str] = None,
        catalog_api_key: Optional[str] = None,
        refresh_interval: Optional[_Seconds] = 900,
        catalog_timeout: Optional[_Seconds] = 10,
        durability: Optional[Literal["full", "normal"]] = "full",
        persist_session: Optional[bool] = False,
        expose_owner_email: Optional[bool] = True,
        **options: Any,
    ) -> AsyncClient:
        """See `Client.open`."""

    async def close(self) -> None:
        """See `Client.close`."""

    @property
    def closed(self) -> bool:
        """See `Client.closed`."""

    async def as_service(self) -> AsyncClient:
        """See `Client.as_service`."""

    async def as_user(self, access_token: str) -> AsyncClient:
        """See `Client.as_user`."""

    async def backup(self, target: _Path) -> None:
        """See `Client.backup`."""

    @staticmethod
    async def restore(source: _Path, data_dir: _Path) -> None:
        """See `Client.restore`."""

    @property
    def discovery(self) -> AsyncDiscovery:
        """The mini app directory."""

    @property
    def communities(self) -> AsyncCommunities:
        """Communities: configuration, domains, registered spaces."""

    @property
    def spaces(self) -> AsyncSpaces:
        """Spaces."""

    @property
    def fidgets(self) -> AsyncFidgets:
        """The fidgets of spaces."""

    @property
    def auth(self) -> AsyncAuth:
        """Accounts, sessions and sign-in."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        *exc: Union[type[BaseException], BaseException, TracebackType, None],
    ) -> None: ...

@final
class Coroutine:
    """What the methods of `AsyncClient` return: await it, once."""

    @property
    def __name__(self) -> str: ...
    @property
    def __qualname__(self) -> str: ...
    def __await__(self) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, typ: Any, val: Any = None, tb: Any = None, /) -> Any: ...
    def close(self) -> None: ...
