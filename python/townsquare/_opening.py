"""What `AsyncClient.open` returns: a coroutine that is also an asynchronous context manager."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from ._client import AsyncClient


class AsyncClientOpening(Coroutine[Any, Any, "AsyncClient"]):
    """A client that is being opened: `async with` it, or await it for the client."""

    def __init__(self, opening: Coroutine[Any, Any, AsyncClient], /) -> None:
        self._opening = opening
        self._client: Optional[AsyncClient] = None

    def __await__(self) -> Generator[Any, Any, AsyncClient]:
        return self._opening.__await__()

    def send(self, value: Any, /) -> Any:
        return self._opening.send(value)

    def throw(self, *exc: Any) -> Any:
        return self._opening.throw(*exc)

    def close(self) -> None:
        self._opening.close()

    async def __aenter__(self) -> AsyncClient:
        self._client = await self._opening
        return self._client

    async def __aexit__(
        self,
        exc_type: Optional[type[BaseException]],
        exc: Optional[BaseException],
        traceback: Optional[TracebackType],
        /,
    ) -> None:
        if self._client is not None:
            await self._client.close()
