"""Communities and their records, as the extension module has them; the stub beside this file is their manual."""

from ._native import (
    AsyncCommunities,
    Communities,
    CommunityConfig,
    CommunityDomain,
    SpaceRegistration,
)

__all__ = [
    "AsyncCommunities",
    "Communities",
    "CommunityConfig",
    "CommunityDomain",
    "SpaceRegistration",
]
