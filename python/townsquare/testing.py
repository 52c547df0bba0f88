"""For tests of programs: a client with a clock that the test moves. The stub file beside this module documents it."""

from ._native import ManualClock, open_with_clock

__all__ = ["ManualClock", "open_with_clock"]
