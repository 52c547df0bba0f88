"""The mini app directory and its records. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Optional, final

from typing_extensions import Buffer, TypeAlias

from ._auth import Subscription
from ._client import _Headers, _Record
from .notebook import FacetList, MiniApps

_Timeframe: TypeAlias = Literal["1h", "6h", "12h", "24h", "7d"]

@final
class Discovery:
    """The mini app directory: `Client.discovery`.

    Methods answer from memory. When the catalog is older than `refresh_interval`, a read starts a refresh in the background;
    only a read without any catalog waits for it.

    Arguments of every list: `limit`, 1 to 1,000, and `offset`, how many apps to leave out at the start; `categories` and
    `networks`, iterables of strings, where None or empty means all. An app must match both. An app that names no network
    runs on all networks. A single string instead of a list raises `TypeError`. `collapse=True` returns near-copies (apps with
    the same name and author) once.

    Errors of every list: `InvalidInputError` for a limit out of range, an unknown timeframe, category or network;
    `UnavailableError` when there is no catalog and it cannot be fetched; `ClosedError`.
    """

    def get_trending_mini_apps(
        self,
        timeframe: _Timeframe = "24h",
        limit: int = 50,
        *,
        offset: int = 0,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """Lists the apps that trend in a timeframe, best first.

        `engagement.trending_rank` is an app's rank among all apps of the timeframe, before filters and limit.
        """

    def get_mini_apps_by_category(
        self,
        categories: Sequence[str],
        limit: int = 50,
        *,
        offset: int = 0,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """Lists the apps of any of these categories, in the trending order of 24 hours."""

    def search_mini_apps(
        self,
        query: str,
        limit: int = 50,
        *,
        offset: int = 0,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """Lists the apps that match the query, best first. A blank query matches nothing.

        Case and accents are ignored. The last word may be a prefix. A word also matches its English plural or singular, and
        two words also match written as one. A word of five letters or more may have a typo, one of nine letters two; such
        matches come after exact ones. Beside other words, an app needs no function word of the query (`to`, `is`, `the`,
        `my`). The address of an app finds the apps of its host, followed by at most four others. Apps that match much worse
        than the best one are left out. `MiniApp.highlights` tells which words match.
        """

    def get_new_mini_apps(
        self,
        limit: int = 50,
        *,
        offset: int = 0,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """Lists the apps that were first seen last, latest first; apps of one time in trending order."""

    def get_similar_mini_apps(self, id: str, limit: int = 10) -> MiniApps:
        """Lists the apps that are like another one, best first: by shared words, author and category.

        The app itself and its near-copies are not in the list.

        Args:
            id: An id, a home URL or a domain.

        Raises:
            NotFoundError: There is no such app.
        """

    def get_mini_app(self, id: str) -> Optional[MiniApp]:
        """Returns the app of an id, of a home URL in any spelling, or of a domain (its best ranked app); None without one."""

    def suggest_mini_apps(self, text: str, limit: int = 8) -> list[Suggestion]:
        """Lists suggestions for a search box while the user types, best first; near-copies once."""

    def categories(self, *, networks: Optional[Sequence[str]] = None) -> FacetList:
        """Lists the categories of the apps on these networks with their numbers of apps, most first."""

    def networks(self, *, categories: Optional[Sequence[str]] = None) -> FacetList:
        """Lists the networks of the apps in these categories with their numbers of apps, most first.

        An app that names no network counts for each. When no app of the catalog names one, the list has the networks that
        earlier calls filtered by.
        """

    def on_catalog_change(self, callback: Callable[[DiscoveryStats], object]) -> Subscription:
        """Calls `callback(stats)` after each refresh that changed the apps, their texts or an order.

        The callback runs on a thread of the library and may call the library.
        """

    def refresh(self, *, force: bool = False) -> DiscoveryStats:
        """Fetches the catalog, even if the one in memory is fresh. Concurrent calls share one fetch.

        Args:
            force: Accept a catalog, and further lists of it, that have lost most of their apps.

        Raises:
            UnavailableError: The fetch failed or the catalog was refused. The old catalog stays.
        """

    def stats(self) -> DiscoveryStats:
        """Returns the size, age and state of the catalog. Starts no refresh and never waits."""

    def handle(
        self, method: str, target: str, body: Buffer = b"", headers: Optional[_Headers] = None
    ) -> HttpResponse:
        """Answers a request to the endpoint `/api/miniapp-discovery`, for any web framework to mount.

        A bad request returns a response with status 400, 404 or 405; it raises nothing.

        Args:
            method: The HTTP method, such as `"GET"`.
            target: Path and query as received: `"/api/miniapp-discovery?limit=5"`.
            body: The body of the request.
            headers: The headers of the request, a mapping or pairs, names in any case. Caches, compression and CORS work by `If-None-Match`,
                `Accept-Encoding` and `Origin`.
        """

@final
class AsyncDiscovery:
    """The mini app directory: `AsyncClient.discovery`. Each method is the coroutine of the same method of `Discovery`."""

    async def get_trending_mini_apps(
        self,
        timeframe: _Timeframe = "24h",
        limit: int = 50,
        *,
        offset: int = 0,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """See `Discovery.get_trending_mini_apps`."""

    async def get_mini_apps_by_category(
        self,
        categories: Sequence[str],
        limit: int = 50,
        *,
        offset: int = 0,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """See `Discovery.get_mini_apps_by_category`."""

    async def search_mini_apps(
        self,
        query: str,
        limit: int = 50,
        *,
        offset: int = 0,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """See `Discovery.search_mini_apps`."""

    async def get_new_mini_apps(
        self,
        limit: int = 50,
        *,
        offset: int = 0,
        categories: Optional[Sequence[str]] = None,
        networks: Optional[Sequence[str]] = None,
        collapse: bool = False,
    ) -> MiniApps:
        """See `Discovery.get_new_mini_apps`."""

    async def get_similar_mini_apps(self, id: str, limit: int = 10) -> MiniApps:
        """See `Discovery.get_similar_mini_apps`."""

    async def get_mini_app(self, id: str) -> Optional[MiniApp]:
        """See `Discovery.get_mini_app`."""

    async def suggest_mini_apps(self, text: str, limit: int = 8) -> list[Suggestion]:
        """See `Discovery.suggest_mini_apps`."""

    async def categories(self, *, networks: Optional[Sequence[str]] = None) -> FacetList:
        """See `Discovery.categories`."""

    async def networks(self, *, categories: Optional[Sequence[str]] = None) -> FacetList:
        """See `Discovery.networks`."""

    async def on_catalog_change(self, callback: Callable[[DiscoveryStats], object]) -> Subscription:
        """See `Discovery.on_catalog_change`."""

    async def refresh(self, *, force: bool = False) -> DiscoveryStats:
        """See `Discovery.refresh`."""

    async def stats(self) -> DiscoveryStats:
        """See `Discovery.stats`."""

    async def handle(
        self, method: str, target: str, body: Buffer = b"", headers: Optional[_Headers] = None
    ) -> HttpResponse:
        """See `Discovery.handle`."""

@final
@dataclass(frozen=True, eq=False)
class MiniApp(_Record):
    """A mini app of the catalog, with its rank in the order it was listed in. A notebook shows it as a card."""

    id: Final[str]
    """Identifies the app: its home URL without the scheme."""
    domain: Final[str]
    """Host of the home URL."""
    name: Final[str]
    """Display name, at most 200 characters."""
    description: Final[Optional[str]]
    """Description, at most 2,000 characters."""
    icon_url: Final[str]
    """URL of the icon or, without one, of the app's image; empty when the catalog has neither."""
    home_url: Final[str]
    """URL that opens the app: http or https."""
    category: Final[Optional[str]]
    """One of the catalog's categories, or the app's own text."""
    networks: Final[list[str]]
    """Networks that the app requires; empty when it runs on any."""
    tags: Final[list[str]]
    """Search tags."""
    author: Final[Optional[Author]]
    """The publisher, if the catalog names one."""
    engagement: Final[Engagement]
    """Followers and trending rank."""
    screenshots: Final[list[str]]
    """URLs of screenshots."""
    hero_image_url: Final[Optional[str]]
    """URL of a wide image."""
    tagline: Final[Optional[str]]
    """Promotional line."""
    subtitle: Final[Optional[str]]
    """Explanatory line."""
    version: Final[str]
    """Version of the app's manifest."""
    button_title: Final[Optional[str]]
    """The text of the button that opens the app."""
    image_url: Final[Optional[str]]
    """URL of the image shown in a feed."""
    splash_image_url: Final[Optional[str]]
    """URL of the image shown while the app loads."""
    splash_background_color: Final[Optional[str]]
    """Colour behind the splash image: `#rrggbb`."""
    last_fetched: Final[datetime]
    """When this record was fetched, UTC."""
    first_seen: Final[datetime]
    """When the app was first in the catalog, UTC."""
    def highlights(self, query: str) -> list[Highlight]:
        """The words of the app that match a search query, by field. Texts without a match are left out."""
    def to_dict(self) -> dict[str, Any]:
        """The app in the JSON shape of the endpoint: camelCase keys, without keys for attributes that are None."""
    def _repr_html_(self) -> str: ...

@final
@dataclass(frozen=True, eq=False)
class Author(_Record):
    """The publisher of a mini app."""

    fid: Final[int]
    """Farcaster id."""
    username: Final[str]
    """Handle, without `@`."""
    display_name: Final[Optional[str]]
    """Display name."""
    pfp_url: Final[Optional[str]]
    """URL of the profile picture."""
    follower_count: Final[int]
    """How many followers the author has."""
    score: Final[Optional[float]]
    """The catalog's quality score, 0 to 1."""
    is_power_user: Final[bool]
    """Whether the author has the power badge of older catalogs."""
    def to_dict(self) -> dict[str, Any]:
        """The value of `author` in `MiniApp.to_dict()`."""

@final
@dataclass(frozen=True, eq=False)
class Engagement(_Record):
    """Followers and trending rank of a mini app."""

    follower_count: Final[int]
    """Followers of the app's author."""
    trending_rank: Final[Optional[int]]
    """Rank in the trending order that the app was listed from, starting at 1; None outside that order."""
    def to_dict(self) -> dict[str, Any]:
        """The value of `engagement` in `MiniApp.to_dict()`."""

@final
@dataclass(frozen=True, eq=False)
class Suggestion(_Record):
    """A suggestion for a search box. `app` in `to_dict()` has the endpoint's shape."""

    app: Final[MiniApp]
    """The app."""
    text: Final[str]
    """The text to show: the app's name."""
    matches: Final[list[tuple[int, int]]]
    """The parts of `text` that the input matches, as start and end in characters; empty if another text matches."""

@final
@dataclass(frozen=True, eq=False)
class Highlight(_Record):
    """A text of an app with the words that match a query."""

    field: Final[str]
    """`name`, `tags`, `category`, `subtitle`, `tagline`, `author_display_name`, `author_username`, `description` or
    `domain`."""
    text: Final[str]
    """The whole text of the field; of `tags`, one tag."""
    matches: Final[list[tuple[int, int]]]
    """The matched words, as start and end in characters."""

@final
@dataclass(frozen=True, eq=False)
class Facet(_Record):
    """A category or a network with its number of apps."""

    name: Final[str]
    """The name, as a filter takes it."""
    count: Final[int]
    """How many apps have it."""

@final
@dataclass(frozen=True, eq=False)
class DiscoveryStats(_Record):
    """The size, age and state of the catalog."""

    total: Final[int]
    """How many apps the catalog has."""
    received: Final[int]
    """How many rows the last fetch received."""
    skipped: Final[int]
    """How many of those rows were left out: malformed, or marked `noindex`."""
    duplicates: Final[int]
    """How many of those rows repeated an earlier one."""
    has_api_key: Final[bool]
    """Whether the client has a key for the catalog."""
    source: Final[Literal["upstream", "file", "database", "none"]]
    """Where the catalog came from."""
    fetched_at: Final[Optional[datetime]]
    """When the catalog was fetched, UTC."""
    is_stale: Final[bool]
    """Whether the catalog is older than the refresh interval, or its last refresh failed."""
    is_refreshing: Final[bool]
    """Whether a refresh is running."""
    last_error: Final[Optional[str]]
    """Why the last refresh failed, of the catalog or of a further list; None after a successful one."""
    stale_lists: Final[list[str]]
    """The further lists (`7d`, `networks=base`) that are older than the catalog or could not be fetched."""
    truncated: Final[bool]
    """Whether the source has more apps: the fetch ended at the option `catalog_max_pages`."""
    def _repr_html_(self) -> str: ...

@final
@dataclass(frozen=True, eq=False)
class HttpResponse(_Record):
    """A response of the endpoint, for a web framework to send."""

    status: Final[int]
    """The HTTP status."""
    headers: Final[dict[str, str]]
    """Header names in lower case, with their values."""
    body: Final[bytes]
    """The body: JSON in UTF-8, or empty."""
