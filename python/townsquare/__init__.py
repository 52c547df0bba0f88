"""townsquare: the community backend and mini app directory in your process.

    import townsquare

    with townsquare.Client.open("town", catalog_api_key="…") as client:
        for app in client.discovery.get_trending_mini_apps(limit=20):
            print(app.engagement.trending_rank, app.name, app.home_url)

`Client` blocks and lets other threads run meanwhile; `AsyncClient` has the same areas and methods, every one a coroutine.
Records are frozen and typed; times are aware datetimes in UTC; what fails raises a subclass of `Error`.
"""

from ._native import (
    AsyncClient,
    AsyncDiscovery,
    Author,
    Client,
    Discovery,
    DiscoveryStats,
    Engagement,
    HttpResponse,
    MiniApp,
    __version__,
    shared,
)
from .exceptions import (
    AlreadyExistsError,
    AuthError,
    ClosedError,
    ConfigError,
    Error,
    FieldMissingError,
    InvalidInputError,
    NotFoundError,
    RateLimitedError,
    ReferenceMissingError,
    TooLargeError,
    UnavailableError,
)
from .notebook import MiniAppList

__all__ = [
    "AlreadyExistsError",
    "AsyncClient",
    "AsyncDiscovery",
    "AuthError",
    "Author",
    "Client",
    "ClosedError",
    "ConfigError",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "Error",
    "FieldMissingError",
    "HttpResponse",
    "InvalidInputError",
    "MiniApp",
    "MiniAppList",
    "NotFoundError",
    "RateLimitedError",
    "ReferenceMissingError",
    "TooLargeError",
    "UnavailableError",
    "__version__",
    "shared",
]
