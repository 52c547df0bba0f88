"""townsquare: the community backend and mini app directory as a library.

    import townsquare

    with townsquare.Client.open("town", catalog_url="sample:") as client:
        for app in client.discovery.get_trending_mini_apps(limit=20):
            print(app.engagement.trending_rank, app.name, app.home_url)
        client.auth.sign_up("ann@town.example", "correct horse")
        client.auth.sign_in("ann@town.example", "correct horse")
        for space in client.spaces.get_public_spaces():
            print(space.name, space.created_at)
        client.storage.upload("assets", "harbor.png", open("harbor.png", "rb").read())

The methods of `Client` block, and other threads run meanwhile. `AsyncClient` has the same areas and methods, each one a
coroutine. Records are frozen and typed. Times are aware datetimes in UTC; a time before the year 1 reads as
`datetime.min`. Warnings of the library are records of the logger `townsquare`. Failures raise subclasses of `Error`.
"""

from typing import TYPE_CHECKING

from . import _records  # makes the records dataclasses
from ._async_client import AsyncClient
from ._auth import AsyncAuth, Auth, ImportReport, Session, SessionInfo, Subscription, User, identity_claim
from ._client import Client, __version__, shared
from ._communities import AsyncCommunities, Communities, CommunityConfig, CommunityDomain, SpaceRegistration
from ._discovery import (
    AsyncDiscovery,
    Author,
    Discovery,
    DiscoveryStats,
    Engagement,
    Facet,
    Highlight,
    HttpResponse,
    MiniApp,
    Suggestion,
)
from ._files import AsyncFileOpening, AsyncFileReader, AsyncFileWriter, FileReader, FileWriter
from ._opening import AsyncClientOpening, AsyncResponseOpening
from ._realtime import (
    AsyncChangeStream,
    AsyncLiveQuery,
    AsyncRealtime,
    Change,
    ChangeStream,
    LiveQuery,
    Realtime,
    RealtimeStats,
)
from ._reports import Finding, MigrationPlan, MoveReport, PlannedMigration, RowImportReport, RowProblem, TableRow
from ._spaces import AsyncFidgets, AsyncSpaces, Fidget, Fidgets, Owner, PublicSpace, Space, SpaceWithFidgets, Spaces
from ._storage import (
    AsyncHttpStream,
    AsyncStorage,
    FileInfo,
    HttpStream,
    RepairReport,
    Storage,
    decrypt_file,
    encrypt_file,
    sign_file,
    verify_file,
)
from .exceptions import (
    AlreadyExistsError,
    AuthError,
    ClosedError,
    ConfigError,
    ConflictError,
    CursorExpiredError,
    Error,
    FieldMissingError,
    InvalidInputError,
    NotFoundError,
    QuotaExceededError,
    RateLimitedError,
    ReferenceMissingError,
    TooLargeError,
    UnavailableError,
)
from .notebook import FacetList, MiniApps, SpaceList

if TYPE_CHECKING:
    from ._typed import NewCredential, NewFidget, NewSpace, OpenOptions
    from ._web import asgi, wsgi

__all__ = [
    "AlreadyExistsError",
    "AsyncAuth",
    "AsyncChangeStream",
    "AsyncClient",
    "AsyncClientOpening",
    "AsyncCommunities",
    "AsyncDiscovery",
    "AsyncFidgets",
    "AsyncFileOpening",
    "AsyncFileReader",
    "AsyncFileWriter",
    "AsyncHttpStream",
    "AsyncLiveQuery",
    "AsyncRealtime",
    "AsyncResponseOpening",
    "AsyncSpaces",
    "AsyncStorage",
    "Auth",
    "AuthError",
    "Author",
    "Change",
    "ChangeStream",
    "Client",
    "ClosedError",
    "Communities",
    "CommunityConfig",
    "CommunityDomain",
    "ConfigError",
    "ConflictError",
    "CursorExpiredError",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "Error",
    "Facet",
    "FacetList",
    "Fidget",
    "Fidgets",
    "FieldMissingError",
    "FileInfo",
    "FileReader",
    "FileWriter",
    "Finding",
    "Highlight",
    "HttpResponse",
    "HttpStream",
    "ImportReport",
    "InvalidInputError",
    "LiveQuery",
    "MigrationPlan",
    "MiniApp",
    "MiniApps",
    "MoveReport",
    "NewCredential",
    "NewFidget",
    "NewSpace",
    "NotFoundError",
    "OpenOptions",
    "Owner",
    "PlannedMigration",
    "PublicSpace",
    "QuotaExceededError",
    "RateLimitedError",
    "Realtime",
    "RealtimeStats",
    "ReferenceMissingError",
    "RepairReport",
    "RowImportReport",
    "RowProblem",
    "Session",
    "SessionInfo",
    "Space",
    "SpaceList",
    "SpaceRegistration",
    "SpaceWithFidgets",
    "Spaces",
    "Storage",
    "Subscription",
    "Suggestion",
    "TableRow",
    "TooLargeError",
    "UnavailableError",
    "User",
    "__version__",
    "asgi",
    "decrypt_file",
    "encrypt_file",
    "identity_claim",
    "shared",
    "sign_file",
    "verify_file",
    "wsgi",
]

_LATER = {"NewCredential": "_typed", "NewFidget": "_typed", "NewSpace": "_typed", "OpenOptions": "_typed", "asgi": "_web", "wsgi": "_web"}
"""The modules of the names that few programs use. Their first use imports them: `_web` alone, with asyncio, takes longer than the rest."""

# Type checkers know the names from above, and refuse others.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
