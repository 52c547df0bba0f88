"""`Client`, `AsyncClient` and `shared`. The stub file beside this module documents them."""

from ._native import AsyncClient, Client, __version__, shared
