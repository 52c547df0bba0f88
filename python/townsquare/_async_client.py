"""`AsyncClient`. The stub file beside this module documents it."""

from ._native import AsyncClient
