"""The native half of `townsquare`: import these names from `townsquare`.

Text is `str`, times are aware datetimes in UTC, binary is `bytes`, lists are real lists. What fails raises a class of
`townsquare.exceptions`; an argument of the wrong type is a `TypeError`. Any object may be used from any thread, and a call
that waits lets other threads run and can be interrupted with Ctrl-C.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Optional, Union, final

from typing_extensions import Buffer, Self, TypeAlias

from .notebook import MiniAppList

_Timeframe: TypeAlias = Literal["1h", "6h", "12h", "24h", "7d"]
_Path: TypeAlias = Union[str, PathLike[str]]
_Seconds: TypeAlias = Union[float, timedelta]

__all__ = [
    "AsyncClient",
    "AsyncDiscovery",
    "Author",
    "Client",
    "Coroutine",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "HttpResponse",
    "MiniApp",
    "__version__",
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
            **options: `busy_timeout`, `catalog_key_header`, `catalog_refresh_timeout`, `catalog_page_size`,
                `catalog_max_pages`, `catalog_max_page_bytes`, `catalog_tries`: see the README.

        Raises:
            ConfigError: an option is unknown or does not fit (the message names it), or the database cannot be used.
        """

    def close(self) -> None:
        """Ends the client and every thread of it. Later calls raise `ClosedError`; closing twice is fine."""

    @property
    def closed(self) -> bool:
        """Whether it was closed, or belongs to the parent process."""

    @property
    def discovery(self) -> Discovery:
        """The mini app directory."""

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
        **options: Any,
    ) -> AsyncClient:
        """See `Client.open`."""

    async def close(self) -> None:
        """See `Client.close`."""

    @property
    def closed(self) -> bool:
        """See `Client.closed`."""

    @property
    def discovery(self) -> AsyncDiscovery:
        """The mini app directory."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        *exc: Union[type[BaseException], BaseException, TracebackType, None],
    ) -> None: ...

@final
class Discovery:
    """The mini app directory: `Client.discovery`.

    Answers come from memory. A catalog older than `refresh_interval` is renewed behind the readers; only the very first
    read waits for one.

    Every list takes: `limit`, 1 to 1,000; `categories` and `networks`, iterables of strings (None or empty: all; a single
    string is a TypeError), which combine. An app that names no network runs on all of them.

    Every list raises: `InvalidInputError` for a limit out of range or an unknown timeframe, category or network;
    `UnavailableError` when there is no catalog to answer from; `ClosedError`.
    """

    def get_trending_mini_apps(
        self,
        timeframe: _Timeframe = "24h",
        limit: int = 50,
        *,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
    ) -> MiniAppList:
        """The apps that trend in a window, best first. `engagement.trending_rank` is the place in its whole order."""

    def get_mini_apps_by_category(
        self, categories: Sequence[str], limit: int = 50, *, networks: Optional[Sequence[str]] = None
    ) -> MiniAppList:
        """The apps of any of these categories, in the order of the last 24 hours."""

    def search_mini_apps(
        self,
        query: str,
        limit: int = 50,
        *,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
    ) -> MiniAppList:
        """The apps a search box would show for these words, best first; none for a blank query.

        Case and accents do not count, the last word may be a beginning, a typo is forgiven from five letters on.
        """

    def refresh(self, *, force: bool = False) -> DiscoveryStats:
        """Fetches the catalog now, whatever its age; calls at the same time share one fetch.

        Args:
            force: Take even a catalog that has lost most of its apps.

        Raises:
            UnavailableError: there is no new catalog; the old one stays.
        """

    def stats(self) -> DiscoveryStats:
        """What the catalog holds, how old it is and why it is no newer. Starts nothing and waits for nothing."""

    def handle(self, method: str, target: str, body: Buffer = b"") -> HttpResponse:
        """The endpoint `/api/miniapp-discovery` without a server: mount it in any web framework.

        Args:
            method: `"GET"`, `"POST"`, …
            target: Path and query as they came: `"/api/miniapp-discovery?limit=5"`.
            body: The request's body.

        A bad request is an answer (400, 404, 405, …), not an exception.
        """

@final
class AsyncDiscovery:
    """The mini app directory: `AsyncClient.discovery`. See `Discovery`."""

    async def get_trending_mini_apps(
        self,
        timeframe: _Timeframe = "24h",
        limit: int = 50,
        *,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
    ) -> MiniAppList:
        """See `Discovery.get_trending_mini_apps`."""

    async def get_mini_apps_by_category(
        self, categories: Sequence[str], limit: int = 50, *, networks: Optional[Sequence[str]] = None
    ) -> MiniAppList:
        """See `Discovery.get_mini_apps_by_category`."""

    async def search_mini_apps(
        self,
        query: str,
        limit: int = 50,
        *,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
    ) -> MiniAppList:
        """See `Discovery.search_mini_apps`."""

    async def refresh(self, *, force: bool = False) -> DiscoveryStats:
        """See `Discovery.refresh`."""

    async def stats(self) -> DiscoveryStats:
        """See `Discovery.stats`."""

    async def handle(self, method: str, target: str, body: Buffer = b"") -> HttpResponse:
        """See `Discovery.handle`."""

@final
class MiniApp:
    """A mini app of the catalog, with its place in the order it was listed in. Frozen; shows as a card in a notebook."""

    @property
    def id(self) -> str:
        """The home URL without its scheme: one app, one id."""
    @property
    def domain(self) -> str:
        """Host of the home URL."""
    @property
    def name(self) -> str:
        """Display name, at most 200 characters."""
    @property
    def description(self) -> Optional[str]:
        """At most 2,000 characters."""
    @property
    def icon_url(self) -> str:
        """Icon or, without one, the app's image; empty when the catalog has neither."""
    @property
    def home_url(self) -> str:
        """Where the app is opened: http or https."""
    @property
    def category(self) -> Optional[str]:
        """One of the catalog's categories, or the app's own word."""
    @property
    def networks(self) -> list[str]:
        """Networks the app asks for; empty when it runs on any."""
    @property
    def tags(self) -> list[str]:
        """Search tags."""
    @property
    def author(self) -> Optional[Author]:
        """Who published it, where the catalog says so."""
    @property
    def engagement(self) -> Engagement:
        """Followers and trending rank."""
    @property
    def screenshots(self) -> list[str]:
        """URLs of screenshots."""
    @property
    def hero_image_url(self) -> Optional[str]:
        """URL of a wide picture."""
    @property
    def tagline(self) -> Optional[str]:
        """A line of promotion."""
    @property
    def subtitle(self) -> Optional[str]:
        """A line of explanation."""
    @property
    def version(self) -> str:
        """Version of the app's manifest."""
    @property
    def button_title(self) -> Optional[str]:
        """The text of the button that opens the app."""
    @property
    def image_url(self) -> Optional[str]:
        """URL of the picture shown in a feed."""
    @property
    def splash_image_url(self) -> Optional[str]:
        """URL of the picture shown while the app loads."""
    @property
    def splash_background_color(self) -> Optional[str]:
        """Colour behind that picture: `#rrggbb`."""
    @property
    def last_fetched(self) -> datetime:
        """When this record was fetched, UTC."""
    def to_dict(self) -> dict[str, Any]:
        """The endpoint's JSON shape, camelCase; what is None here is left out there."""
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class Author:
    """The publisher of a mini app."""

    @property
    def fid(self) -> int:
        """Farcaster id."""
    @property
    def username(self) -> str:
        """Handle, without `@`."""
    @property
    def display_name(self) -> Optional[str]:
        """Name as shown."""
    @property
    def pfp_url(self) -> Optional[str]:
        """URL of the profile picture."""
    @property
    def follower_count(self) -> int:
        """How many follow the author."""
    @property
    def score(self) -> Optional[float]:
        """The catalog's quality score, 0 to 1."""
    @property
    def is_power_user(self) -> bool:
        """The power badge of older catalogs; False without one."""
    def to_dict(self) -> dict[str, Any]:
        """The `author` of `MiniApp.to_dict()`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class Engagement:
    """How a mini app is doing."""

    @property
    def follower_count(self) -> int:
        """Followers of the app's author."""
    @property
    def trending_rank(self) -> Optional[int]:
        """Place in the trending order the app was listed from, from 1; None when that order has it not."""
    def to_dict(self) -> dict[str, Any]:
        """The `engagement` of `MiniApp.to_dict()`."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class DiscoveryStats:
    """The state of the catalog: what it holds, how old it is, and why it is no newer."""

    @property
    def total(self) -> int:
        """Apps of the catalog."""
    @property
    def received(self) -> int:
        """Rows received when it was fetched."""
    @property
    def skipped(self) -> int:
        """Rows of those left out: malformed, or marked `noindex`."""
    @property
    def duplicates(self) -> int:
        """Rows of those that repeated an earlier one."""
    @property
    def has_api_key(self) -> bool:
        """Whether a key for the catalog is set."""
    @property
    def source(self) -> Literal["upstream", "file", "database", "none"]:
        """Where the catalog came from."""
    @property
    def fetched_at(self) -> Optional[datetime]:
        """When it was fetched, UTC."""
    @property
    def is_stale(self) -> bool:
        """Older than the refresh interval, or the last attempt to renew it failed."""
    @property
    def is_refreshing(self) -> bool:
        """Whether a refresh is under way."""
    @property
    def last_error(self) -> Optional[str]:
        """Why the last refresh failed; None once one succeeds."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class HttpResponse:
    """An answer of the endpoint, for a web framework to send."""

    @property
    def status(self) -> int:
        """The HTTP status."""
    @property
    def headers(self) -> dict[str, str]:
        """Header names, in lower case, with their values."""
    @property
    def body(self) -> bytes:
        """The body: JSON in UTF-8, or nothing."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

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
