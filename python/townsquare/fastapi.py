"""For FastAPI: the caller of a request as a dependency, and errors as responses. Needs the package `fastapi`.

    from townsquare.fastapi import answer_errors, caller

    app = FastAPI()
    answer_errors(app)
    Caller = Annotated[townsquare.AsyncClient, Depends(caller(client))]

    @app.get("/spaces")
    async def spaces(caller: Caller) -> list[townsquare.PublicSpace]:
        return await caller.spaces.get_public_spaces()
"""

from __future__ import annotations

from typing import Any, Callable, Coroutine, List, Optional, Union

from fastapi import FastAPI, HTTPException, WebSocket
from fastapi.requests import HTTPConnection
from fastapi.responses import Response
from fastapi.websockets import WebSocketState

from ._async_client import AsyncClient
from ._client import Client
from ._web import failed, request_client
from .exceptions import AuthError, Error, InvalidInputError

POSITION_HEADER = "townsquare-position"
"""The header in which a browser returns a position of `Client.read_position`."""

_DENIAL = "websocket.http.response"
"""The extension of ASGI for an answer to a WebSocket that is not accepted."""


def answer_errors(app: FastAPI) -> None:
    """Answers the library's errors in routes of `app`, and refusals by `caller`, in one form.

    It has the `status` of the error and `{"success": false, "error": …}`, as answers of `asgi` have. The reason at the end of an
    error's message is for the developer: an answer has it only with status 400. A failure of the server is not described to the
    peer: it goes to the log of `townsquare`. A WebSocket that is accepted is closed: with 1011 after a failure of the server, else
    with 1008. One that is not accepted yet gets the answer, if the server can send one (`websocket.http.response`).

    Without `answer_errors`, FastAPI answers 500, and what `caller` refuses as an `HTTPException`.
    """

    async def answered(request: HTTPConnection, error: Error) -> Optional[Response]:
        status, headers, body = failed(error, request.scope.get("method", "GET"))
        response = Response(body, status, headers)
        if not isinstance(request, WebSocket):
            return response
        if request.application_state is WebSocketState.CONNECTING and _DENIAL in request.scope.get("extensions", {}):
            return response
        if request.application_state is not WebSocketState.DISCONNECTED:
            await request.close(1011 if status >= 500 else 1008)
        return None

    async def refused(request: HTTPConnection, refusal: _Refusal) -> Optional[Response]:
        return await answered(request, refusal.error)

    app.add_exception_handler(Error, answered)  # type: ignore[arg-type]
    app.add_exception_handler(_Refusal, refused)  # type: ignore[arg-type]


class _Refusal(HTTPException):
    """The refusal of a request by `caller`."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.status, error.message, {"WWW-Authenticate": "Bearer"} if error.status == 401 else None)
        self.error = error


def caller(
    client: Union[Client, AsyncClient, Callable[[], Union[Client, AsyncClient]]],
) -> Callable[[HTTPConnection], Coroutine[Any, Any, AsyncClient]]:
    """Returns a dependency that gives the handle of a request's bearer, or an anonymous handle for a request without one.

    A token that is not valid is answered with 401. The peer's address is the client key of the limits. It works in routes of
    WebSockets, too. Keep the dependency in a variable, so that tests can override it.

    The handle reads what was written before the position in the header `townsquare-position` (`POSITION_HEADER`), also where a
    replica answers (`Client.read_after`): return `Client.read_position` in it with the response to a write. A header that is no
    position is answered with 400.

    Args:
        client: The client, or a function that returns it, for a client that is opened in the lifespan of the application.
    """

    async def of_request(request: HTTPConnection) -> AsyncClient:
        opened = client() if callable(client) else client
        handle = request_client(opened, request.client.host if request.client else None)
        handle = await _bearer(handle, request.headers.getlist("authorization"))
        position = request.headers.get(POSITION_HEADER)
        if position is not None:
            try:
                await handle.read_after(position)
            except InvalidInputError as error:
                raise _Refusal(error) from error
        return handle

    return of_request


async def _bearer(handle: AsyncClient, values: List[str]) -> AsyncClient:
    """The handle for the caller who is named by the values of the headers `Authorization`."""
    if not values:
        return await handle.as_anonymous()
    scheme, _, token = values[0].partition(" ")
    try:
        if len(values) == 1 and scheme.lower() == "bearer":
            return await handle.as_user(token.strip())
    except AuthError:
        pass
    raise _Refusal(AuthError("The access token is not valid", kind="unauthorized", status=401))

