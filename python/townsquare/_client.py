"""`Client` and `shared`. The stub file beside this module documents them."""

from ._native import Client, __version__, shared
