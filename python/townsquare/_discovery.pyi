"""Discovery and its records: import these names from `townsquare`, whose conventions `_native.pyi` tells."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Optional, final

from typing_extensions import Buffer, Self, TypeAlias

from .notebook import MiniAppList

__all__ = [
    "AsyncDiscovery",
    "Author",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "HttpResponse",
    "MiniApp",
]

_Timeframe: TypeAlias = Literal["1h", "6h", "12h", "24h", "7d"]

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
