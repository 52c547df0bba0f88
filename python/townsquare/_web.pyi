"""`asgi` and `wsgi`. Import these names from `townsquare`."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Optional, Union

from ._client import AsyncClient, Client

def request_client(client: Union[Client, AsyncClient], peer: Optional[str]) -> AsyncClient:
    """Returns a handle for the requests of a peer, by its address, with the limits of one client."""

def asgi(client: Union[Client, AsyncClient], *, prefix: str = "") -> Callable[..., Awaitable[None]]:
    """Returns an ASGI 3 application with discovery, files, events and health.

    It answers `{prefix}/api/miniapp-discovery`, `{prefix}/files/BUCKET/PATH`, `{prefix}/events` and `{prefix}/health`. Run it
    with uvicorn, hypercorn or granian, or mount it in Starlette and FastAPI: `app.mount("/town", townsquare.asgi(client))`.

    A request acts for the bearer of its header `Authorization` or the signer of its URL; without them it is anonymous. The
    caller of `client` is ignored. The address of the peer is the client key of the limits: behind a proxy, let the server set it
    from the proxy's header. Bodies are streamed both ways. When a peer disconnects, its stream ends and its unfinished upload
    stores nothing. `/health` answers 200 while the database answers, else 503.

    The application owns nothing: it neither opens nor closes the client, and lifespan events change nothing. Needs asyncio.

    Args:
        client: The client that answers. It stays open as long as the server runs.
        prefix: The beginning of all paths, such as `/town`. A mount's own prefix (`root_path`) is added to it.

    Raises:
        ValueError: The prefix does not begin with a slash.
    """

def wsgi(client: Client, *, prefix: str = "") -> Callable[..., Iterable[bytes]]:
    """Returns a WSGI application (PEP 3333) with discovery, files, events and health; see `asgi`.

    Run it with gunicorn, or mount it in Flask: `app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/town": townsquare.wsgi(client)})`.
    A stream of events occupies a thread of the server until its peer disconnects: use the server's threads, or `asgi`.
    """
