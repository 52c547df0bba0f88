"""Spaces, fidgets and their records. The stub file beside this module documents them."""

from ._native import AsyncFidgets, AsyncSpaces, Fidget, Fidgets, Owner, PublicSpace, Space, SpaceWithFidgets, Spaces
