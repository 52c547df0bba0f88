"""For tests of programs: a client with a clock that the test moves. The fixtures of pytest are in `townsquare.pytest_plugin`."""

from datetime import datetime, timedelta
from typing import Optional, Union, final

from typing_extensions import Unpack

from ._client import Client, _Path
from ._typed import OpenOptions

__all__ = ["ManualClock", "open_with_clock"]

@final
class ManualClock:
    """The time of a client. It stands still until the test moves it, so rows that are made in between have the same times."""

    def __new__(cls, now: Optional[datetime] = None) -> ManualClock:
        """A clock that shows `now`, by default the time of the system."""

    @property
    def now(self) -> datetime:
        """The time of the clock, UTC."""

    def advance(self, by: Union[float, timedelta]) -> None:
        """Moves the clock forwards, by seconds or a timedelta.

        Raises:
            InvalidInputError: `by` is negative.
        """

    def set(self, now: datetime) -> None:
        """Sets the clock. Durations, such as that of a lockout, go on with a later time and stand still with an earlier one.

        A time more than 15 minutes before the last failed sign-in ends a lockout, because the library then assumes that a wrong clock
        recorded the failure.
        """

def open_with_clock(
    clock: ManualClock, data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]
) -> Client:
    """Opens a client with this clock. The other arguments are those of `Client.open`. PostgreSQL has a time of its own."""
