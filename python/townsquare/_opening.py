"""What `AsyncClient.open` and the methods with a streamed response return: coroutines that `async with` takes too."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, TypeVar

if TYPE_CHECKING:
    from typing import Protocol

    from ._async_client import AsyncClient
    from ._storage import AsyncHttpStream

    class _Closable(Protocol):
        async def close(self) -> None: ...

    _Opened = TypeVar("_Opened", bound=_Closable)
else:
    _Opened = TypeVar("_Opened")


class _Opening(Coroutine[Any, Any, _Opened]):
    """An object that is being opened. The end of the `async with` block closes the object."""

    def __init__(self, opening: Coroutine[Any, Any, _Opened], /) -> None:
        self._opening = opening
        self._opened: Optional[_Opened] = None

    def __await__(self) -> Generator[Any, Any, _Opened]:
        return self._opening.__await__()

    def send(self, value: Any, /) -> Any:
        return self._opening.send(value)

    def throw(self, *exc: Any) -> Any:
        return self._opening.throw(*exc)

    def close(self) -> None:
        self._opening.close()

    async def __aenter__(self) -> _Opened:
        self._opened = await self._opening
        return self._opened

    async def __aexit__(
        self,
        exc_type: Optional[type[BaseException]],
        exc: Optional[BaseException],
        traceback: Optional[TracebackType],
        /,
    ) -> None:
        if self._opened is not None:
            await self._opened.close()


class AsyncClientOpening(_Opening["AsyncClient"]):
    """A client that is being opened: `async with` it, or await it for the client."""


class AsyncResponseOpening(_Opening["AsyncHttpStream"]):
    """A response of `AsyncStorage.handle_file` or `AsyncRealtime.handle_events`: `async with` it, or await it for the response."""
