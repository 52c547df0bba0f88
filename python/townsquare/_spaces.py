"""Spaces and fidgets, and their records, as the extension module has them; the stub beside this file is their manual."""

from ._native import (
    AsyncFidgets,
    AsyncSpaces,
    Fidget,
    Fidgets,
    Owner,
    PublicSpace,
    Space,
    SpaceWithFidgets,
    Spaces,
)

__all__ = [
    "AsyncFidgets",
    "AsyncSpaces",
    "Fidget",
    "Fidgets",
    "Owner",
    "PublicSpace",
    "Space",
    "SpaceWithFidgets",
    "Spaces",
]
