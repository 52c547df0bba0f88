"""townsquare: the community backend and mini app directory in your process.

    import townsquare

    with townsquare.Client.open("town", catalog_api_key="…") as client:
        for app in client.discovery.get_trending_mini_apps(limit=20):
            print(app.engagement.trending_rank, app.name, app.home_url)
        client.auth.sign_in("ann@town.example", "correct horse")
        for space in client.spaces.get_public_spaces():
            print(space.name, space.created_at)

`Client` blocks and lets other threads run meanwhile; `AsyncClient` has the same areas and methods, every one a coroutine.
Records are frozen and typed; times are aware datetimes in UTC; what fails raises a subclass of `Error`.
"""

from ._native import (
    AsyncAuth,
    AsyncClient,
    AsyncCommunities,
    AsyncDiscovery,
    AsyncFidgets,
    AsyncSpaces,
    Auth,
    Author,
    Client,
    Communities,
    CommunityConfig,
    CommunityDomain,
    Discovery,
    DiscoveryStats,
    Engagement,
    Fidget,
    Fidgets,
    HttpResponse,
    MiniApp,
    Owner,
    PublicSpace,
    Session,
    Space,
    SpaceRegistration,
    SpaceWithFidgets,
    Spaces,
    Subscription,
    User,
    __version__,
    identity_claim,
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
from .notebook import MiniAppList, SpaceList

__all__ = [
    "AlreadyExistsError",
    "AsyncAuth",
    "AsyncClient",
    "AsyncCommunities",
    "AsyncDiscovery",
    "AsyncFidgets",
    "AsyncSpaces",
    "Auth",
    "AuthError",
    "Author",
    "Client",
    "ClosedError",
    "Communities",
    "CommunityConfig",
    "CommunityDomain",
    "ConfigError",
    "Discovery",
    "DiscoveryStats",
    "Engagement",
    "Error",
    "Fidget",
    "Fidgets",
    "FieldMissingError",
    "HttpResponse",
    "InvalidInputError",
    "MiniApp",
    "MiniAppList",
    "NotFoundError",
    "Owner",
    "PublicSpace",
    "RateLimitedError",
    "ReferenceMissingError",
    "Session",
    "Space",
    "SpaceList",
    "SpaceRegistration",
    "SpaceWithFidgets",
    "Spaces",
    "Subscription",
    "TooLargeError",
    "UnavailableError",
    "User",
    "__version__",
    "identity_claim",
    "shared",
]
