"""`asgi` and `wsgi`: discovery, files, events and health as one application of a web server.

Invariant: a request acts for the bearer of its header `Authorization` or the signer of its URL, and for nobody else. Bodies are
streamed both ways. The applications own nothing: they neither open nor close the client.
"""

from __future__ import annotations

import asyncio
import json
import re
from http import HTTPStatus
from typing import Any, Awaitable, Callable, Coroutine, Dict, Iterable, Iterator, List, MutableMapping, Optional, Tuple, Union
from urllib.parse import quote
from uuid import UUID

from ._client import AsyncClient, Client
from ._native import RequestChunks, request_handle  # type: ignore[import-not-found]
from ._storage import AsyncHttpStream, HttpStream
from .exceptions import Error

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Headers = Dict[str, str]

_DISCOVERY = "/api/miniapp-discovery"
_FILES = "/files"
_EVENTS = "/events"
_HEALTH = "/health"

_JSON = {"content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff"}

# A larger body of a discovery request is refused. One byte more lets the endpoint say so.
_MAX_BODY = (64 << 10) + 1

# The bytes that are read from a WSGI server at a time. A smaller body is sent in one piece.
_CHUNK = 64 << 10

# The characters that a path may contain unescaped (RFC 3986, 3.3).
_SAFE_IN_SEGMENT = "~!$&'()*+,;=:@"
_SAFE = "/" + _SAFE_IN_SEGMENT


def asgi(client: Union[Client, AsyncClient], *, prefix: str = "") -> Callable[..., Coroutine[Any, Any, None]]:
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
        prefix: The beginning of all paths as plain text, such as `/town`. A mount's own prefix (`root_path`) is added to it.

    Raises:
        ValueError: The prefix does not begin with a slash.
    """
    prefix = _prefix(prefix)

    async def app(scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] != "http":
            raise ValueError(f"townsquare.asgi answers no scope of type {scope['type']!r}")
        else:
            await _Request(prefix, scope, receive, send).answer(client)

    return app


def wsgi(client: Client, *, prefix: str = "") -> Callable[..., Iterable[bytes]]:
    """Returns a WSGI application (PEP 3333) with discovery, files, events and health; see `asgi`.

    Run it with gunicorn, or mount it in Flask: `app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/town": townsquare.wsgi(client)})`.
    A stream of events occupies a thread of the server until its peer disconnects: use the server's threads (not
    greenlets, which share one), or `asgi`. The server notices that a peer is gone with the next event or heartbeat. A body in
    chunks needs a server that marks its end (`wsgi.input_terminated`, as gunicorn); others get 411.
    """
    prefix = _prefix(prefix)

    def app(environ: Dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = _answer_wsgi(client, prefix, environ)
        start_response(f"{status} {HTTPStatus(status).phrase}", list(headers.items()))
        return body

    return app


def request_client(client: Union[Client, AsyncClient], peer: Optional[str]) -> AsyncClient:
    """Returns a handle for the requests of a peer, by its address, with the limits of one client."""
    handle: AsyncClient = request_handle(client, peer, True)
    return handle


def _prefix(prefix: str) -> str:
    if prefix and not prefix.startswith("/"):
        raise ValueError(f"prefix begins with a slash, or is empty: {prefix!r}")
    return quote(prefix.rstrip("/"), safe=_SAFE)


_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def _normal(path: bytes) -> str:
    """The path with escapes where RFC 3986 needs them and nowhere else (6.2.2), as `quote` writes them.

    An escaped slash stays escaped: it separates no segments. What is no escape stays, too, and the endpoint refuses it.
    """
    # Some servers pass bytes on that a client has not escaped.
    text = quote(path, safe=_SAFE + "%")
    return _ESCAPE.sub(lambda found: quote(bytes.fromhex(found[1]), safe=_SAFE_IN_SEGMENT), text) if "%" in text else text


def _below(path: str, start: str) -> Optional[str]:
    """The rest of a path below `start`; None for another path."""
    if not path.startswith(start):
        return None
    rest = path[len(start) :]
    return rest if not rest or rest.startswith("/") else None


def _error(status: int, message: str, **headers: str) -> Tuple[int, _Headers, bytes]:
    return _json(status, {"success": False, "error": message}, **headers)


def _json(status: int, value: Dict[str, Any], **headers: str) -> Tuple[int, _Headers, bytes]:
    body = json.dumps(value).encode()
    return status, {**_JSON, "content-length": str(len(body)), **headers}, body


def _sent(method: str, body: bytes) -> bytes:
    return b"" if method == "HEAD" else body


def _failed(error: Error) -> Tuple[int, _Headers, bytes]:
    retry = {"retry-after": "1"} if error.status == 503 else {}
    return _error(error.status, str(error), **retry)


def _health(is_healthy: bool) -> Tuple[int, _Headers, bytes]:
    return _json(200, {"status": "ok"}) if is_healthy else _json(503, {"status": "unavailable"})


# An id that no row has. `/health` asks whether the database answers.
_NO_SPACE = UUID(int=0)


async def _lifespan(receive: _Receive, send: _Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _pairs(headers: _Headers) -> List[Tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


class _Request:
    """A request to the ASGI application."""

    handle: AsyncClient

    def __init__(self, prefix: str, scope: _Message, receive: _Receive, send: _Send) -> None:
        self.method: str = scope["method"]
        self.receive, self.send, self.has_started = receive, send, False
        peer = scope.get("client")
        self.peer: Optional[str] = peer[0] if peer else None
        raw_path: Optional[bytes] = scope.get("raw_path")
        path = quote(scope["path"], safe=_SAFE) if raw_path is None else _normal(raw_path.partition(b"?")[0])
        root = scope.get("root_path", "")
        root = quote(root, safe=_SAFE).rstrip("/") if root else ""
        rest = _below(path, root)
        if rest is None and scope.get("app_root_path"):
            # A proxy has removed its part from the path: of `root_path` the path has what Starlette's mounts have added.
            proxy = quote(scope["app_root_path"], safe=_SAFE).rstrip("/")
            rest = _below(path, root[len(proxy) :] if root.startswith(proxy) else root)
        path = path if rest is None else rest
        self.path = _below(path, prefix)
        query = scope.get("query_string", b"")
        self.query = f"?{quote(query, safe=_SAFE + '%?')}" if query else ""
        self.headers: _Headers = {}
        for name, value in scope["headers"]:
            text, found = value.decode("latin-1"), self.headers.get(name.decode("latin-1").lower())
            self.headers[name.decode("latin-1").lower()] = text if found is None else f"{found}, {text}"

    async def answer(self, client: Union[Client, AsyncClient]) -> None:
        try:
            self.handle = request_client(client, self.peer)
            await self._route()
        except Error as error:
            if self.has_started:
                # The server cuts the connection, so that the peer does not take the part for the whole.
                raise
            # The client is closed, or was opened before a fork; or the database does not answer.
            await self._respond(*_failed(error))

    async def _route(self) -> None:
        path, method = self.path, self.method
        if path is None:
            await self._respond(*_error(404, "Not found"))
        elif _below(path, _DISCOVERY) is not None:
            response = await self.handle.discovery.handle(method, path + self.query, await self._small_body(), self.headers)
            await self._respond(response.status, response.headers, response.body)
        elif path.startswith(_FILES + "/"):
            await self._file(path[len(_FILES) :] + self.query)
        elif path == _EVENTS:
            await self._stream(await self.handle.realtime.handle_events(path + self.query, self.headers, method=method))
        elif path == _HEALTH:
            if method not in ("GET", "HEAD"):
                await self._respond(*_error(405, "Method not allowed", allow="GET, HEAD"))
                return
            await self._respond(*_health(await self._is_healthy()))
        else:
            await self._respond(*_error(404, "Not found"))

    async def _is_healthy(self) -> bool:
        try:
            await (await self.handle.as_anonymous()).communities.get_space_registration(_NO_SPACE)
        except Error:
            return False
        return True

    async def _small_body(self) -> bytes:
        chunks: List[bytes] = []
        size = 0
        while size < _MAX_BODY:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                break
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if not message.get("more_body", False):
                break
        return b"".join(chunks)[:_MAX_BODY]

    async def _file(self, target: str) -> None:
        if self.method != "PUT":
            await self._stream(await self.handle.storage.handle_file(self.method, target, b"", self.headers))
            return
        chunks = RequestChunks(self.handle)
        feed = asyncio.ensure_future(self._feed(chunks))
        try:
            response = await self.handle.storage.handle_file(self.method, target, chunks, self.headers)
        finally:
            feed.cancel()
            (failure,) = await asyncio.gather(feed, return_exceptions=True)
        if isinstance(failure, Exception):
            # Of `receive`: a middleware refuses the request.
            raise failure
        await self._stream(response)

    async def _feed(self, chunks: RequestChunks) -> None:
        try:
            while (message := await self.receive())["type"] != "http.disconnect":
                body = message.get("body", b"")
                if body and not await chunks.push(body):
                    return
                if not message.get("more_body", False):
                    chunks.finish()
                    return
        finally:
            chunks.cut()

    async def _respond(self, status: int, headers: _Headers, body: bytes) -> None:
        await self._start(status, headers)
        await self.send({"type": "http.response.body", "body": _sent(self.method, body)})

    async def _start(self, status: int, headers: _Headers) -> None:
        self.has_started = True
        await self.send({"type": "http.response.start", "status": status, "headers": _pairs(headers)})

    async def _stream(self, response: AsyncHttpStream) -> None:
        """Sends a response until it ends or the peer disconnects."""
        headers = response.headers
        if int(headers.get("content-length", _CHUNK)) < _CHUNK:
            # Two tasks would take longer than the body.
            body = b"".join([chunk async for chunk in response])
            await self._respond(response.status, headers, body)
            return
        sending = asyncio.ensure_future(self._send_all(response))
        watching = asyncio.ensure_future(self._disconnected())
        try:
            await asyncio.wait([sending, watching], return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            # Ends the iteration, also while it waits for the next event.
            await response.close()
            if not sending.done():
                sending.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)
        if not sending.cancelled() and sending.exception() is not None:
            raise sending.exception()  # type: ignore[misc]

    async def _send_all(self, response: AsyncHttpStream) -> None:
        await self._start(response.status, response.headers)
        async for chunk in response:
            await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
            # Lets the other task see that the peer is gone: a chunk in memory waits for nothing.
            await asyncio.sleep(0)
        await self.send({"type": "http.response.body", "body": b""})

    async def _disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass


_Answer = Tuple[int, _Headers, Iterable[bytes]]


def _answer_wsgi(client: Client, prefix: str, environ: Dict[str, Any]) -> _Answer:
    try:
        return _route_wsgi(client, prefix, environ)
    except Error as error:
        status, headers, body = _failed(error)
        return status, headers, [_sent(environ["REQUEST_METHOD"], body)]


def _route_wsgi(client: Client, prefix: str, environ: Dict[str, Any]) -> _Answer:
    method: str = environ["REQUEST_METHOD"]
    handle: Client = request_handle(client, environ.get("REMOTE_ADDR") or None, False)
    # WSGI has decoded the path.
    path = _below(quote(environ.get("PATH_INFO", "").encode("latin-1"), safe=_SAFE), prefix)
    query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    if path is None:
        status, fields, body = _error(404, "Not found")
    elif _below(path, _DISCOVERY) is not None:
        request = b"".join(_request_body(environ, _MAX_BODY))
        response = handle.discovery.handle(method, path + query, request, headers)
        status, fields, body = response.status, response.headers, response.body
    elif path.startswith(_FILES + "/"):
        target = path[len(_FILES) :] + query
        if method == "PUT" and _has_unknown_end(environ):
            status, fields, body = _error(411, "The server does not mark the end of a body in chunks")
            return status, fields, [body]
        if method == "PUT":
            return _stream_wsgi(_put(handle, target, headers, environ))
        return _stream_wsgi(handle.storage.handle_file(method, target, b"", headers))
    elif path == _EVENTS:
        return _stream_wsgi(handle.realtime.handle_events(path + query, headers, method=method))
    elif path == _HEALTH and method in ("GET", "HEAD"):
        try:
            handle.as_anonymous().communities.get_space_registration(_NO_SPACE)
        except Error:
            status, fields, body = _health(False)
        else:
            status, fields, body = _health(True)
    elif path == _HEALTH:
        status, fields, body = _error(405, "Method not allowed", allow="GET, HEAD")
    else:
        status, fields, body = _error(404, "Not found")
    return status, fields, [_sent(method, body)]


def _stream_wsgi(response: HttpStream) -> _Answer:
    return response.status, response.headers, response


def _request_body(environ: Dict[str, Any], limit: Optional[int]) -> Iterator[bytes]:
    """The body in chunks, at most `limit` bytes of it. Raises if it ends before its length."""
    # A server that ends the body itself lets it be read without a length (chunked requests).
    length = environ.get("CONTENT_LENGTH", "")
    rest = int(length) if length.isdecimal() else None
    if rest is None and not environ.get("wsgi.input_terminated"):
        return
    if limit is not None:
        rest = limit if rest is None else min(rest, limit)
    while rest is None or rest > 0:
        chunk = environ["wsgi.input"].read(_CHUNK if rest is None else min(_CHUNK, rest))
        if not chunk:
            if rest is not None and limit is None:
                raise OSError("the request ended before its length")
            return
        rest = None if rest is None else rest - len(chunk)
        yield chunk


def _has_unknown_end(environ: Dict[str, Any]) -> bool:
    """Whether a body in chunks would read as an empty one."""
    return "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower() and not environ.get("wsgi.input_terminated")


def _put(handle: Client, target: str, headers: _Headers, environ: Dict[str, Any]) -> HttpStream:
    chunks = RequestChunks(handle)
    # Another thread stores the chunks that this one reads.
    chunks.start(target, headers)
    try:
        if all(chunks.push(chunk) for chunk in _request_body(environ, None)):
            chunks.finish()
    except (OSError, ValueError):
        pass  # The body is not complete, which the answer says.
    finally:
        chunks.cut()
    stream: HttpStream = chunks.response()
    return stream
