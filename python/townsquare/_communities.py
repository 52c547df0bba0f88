"""Communities and their records. The stub file beside this module documents them."""

from ._native import AsyncCommunities, Communities, CommunityConfig, CommunityDomain, SpaceRegistration
