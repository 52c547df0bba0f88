"""For FastAPI: the caller of a request as a dependency. Needs the package `fastapi`.

    from townsquare.fastapi import caller

    app = FastAPI()
    Caller = Annotated[townsquare.AsyncClient, Depends(caller(client))]

    @app.get("/spaces")
    async def spaces(caller: Caller) -> list[townsquare.PublicSpace]:
        return await caller.spaces.get_public_spaces()
"""

from __future__ import annotations

from typing import Any, Callable, Coroutine, Union

from fastapi import HTTPException
from fastapi.requests import Request

from ._client import AsyncClient, Client
from ._web import request_client
from .exceptions import AuthError


def caller(client: Union[Client, AsyncClient]) -> Callable[[Request], Coroutine[Any, Any, AsyncClient]]:
    """Returns a dependency that gives the handle of a request's bearer, or an anonymous handle for a request without one.

    A token that is not valid is answered with 401. The peer's address is the client key of the limits.
    """

    async def of_request(request: Request) -> AsyncClient:
        handle = request_client(client, request.client.host if request.client else None)
        values = request.headers.getlist("authorization")
        if not values:
            return await handle.as_anonymous()
        scheme, _, token = values[0].partition(" ")
        try:
            if len(values) == 1 and scheme.lower() == "bearer":
                return await handle.as_user(token.strip())
        except AuthError:
            pass
        raise HTTPException(401, "The access token is not valid", {"WWW-Authenticate": "Bearer"})

    return of_request

