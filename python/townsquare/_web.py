"""`asgi` and `wsgi`: discovery, files, events and health as one application of a web server.

Invariant: a request acts for the bearer of its header `Authorization` or the signer of its URL, and for nobody else. Bodies are
streamed both ways. The applications own nothing: they neither open nor close the client.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from http import HTTPStatus
from math import ceil
from typing import Any, Awaitable, Callable, Coroutine, Dict, Iterable, Iterator, List, MutableMapping, Optional, Tuple, Union
from urllib.parse import quote

from ._async_client import AsyncClient
from ._client import Client
from ._native import RequestChunks, WebRequest, request_handle  # type: ignore[import-not-found]
from ._storage import AsyncHttpStream, HttpStream
from .exceptions import Error

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

_log = logging.getLogger("townsquare.web")

# The bytes that are read from a WSGI server at a time.
_CHUNK = 64 << 10

# The characters that a path may contain unescaped (RFC 3986, 3.3).
_SAFE = "/~!$&'()*+,;=:@"


def asgi(client: Union[Client, AsyncClient], *, prefix: str = "") -> Callable[..., Coroutine[Any, Any, None]]:
    """Returns an ASGI 3 application with discovery, the directory page, files, events and health.

    It answers `{prefix}/api/miniapp-discovery`, `{prefix}/directory`, `{prefix}/files/BUCKET/PATH`, `{prefix}/events` and
    `{prefix}/health`. Run it with uvicorn, hypercorn or granian, or mount it in Starlette and FastAPI: `app.mount("/town", townsquare.asgi(client))`.

    A request acts for the bearer of its header `Authorization` or the signer of its URL; without them it is anonymous. The
    caller of `client` is ignored. The address of the peer is the client key of the limits: behind a proxy, let the server set it
    from the proxy's header. Bodies are streamed both ways. When a peer disconnects, its stream ends and its unfinished upload
    stores nothing. `/health` answers 200 while the database answers, else 503.

    The application owns nothing: it neither opens nor closes the client, and lifespan events change nothing. Needs asyncio.

    Args:
        client: The client that answers. It stays open as long as the server runs.
        prefix: The beginning of all paths as plain text, such as `/town`. A mount's own prefix (`root_path`) is added to it.

    Raises:
        TypeError: `client` is no client.
        ValueError: The prefix does not begin with a slash.
    """
    _require(client, (Client, AsyncClient))
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
            await _answer(client, prefix, scope, receive, send)

    return app


def wsgi(client: Client, *, prefix: str = "", max_event_streams: int = 4) -> Callable[..., Iterable[bytes]]:
    """Returns a WSGI application (PEP 3333) with discovery, the directory page, files, events and health; see
    `asgi`.

    Run it with gunicorn, or mount it in Flask: `app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/town": townsquare.wsgi(client)})`.
    A stream of events occupies a thread of the server until its peer disconnects: use the server's threads (not
    greenlets, which share one), or `asgi`. The server notices that a peer is gone with the next event or heartbeat. A body in
    chunks needs a server that marks its end (`wsgi.input_terminated`, as gunicorn); others get 411.

    Args:
        client: See `asgi`.
        prefix: See `asgi`.
        max_event_streams: The streams of events at the same time, of all peers together; a further one gets 503. Strangers can
            occupy so many threads for as long as they like: the server needs more.

    Raises:
        TypeError: `client` is no `Client`.
        ValueError: The prefix does not begin with a slash, or `max_event_streams` is negative.
    """
    _require(client, (Client,))
    prefix, places = _prefix(prefix), threading.Semaphore(max_event_streams)

    def app(environ: Dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = _answer_wsgi(client, prefix, environ)
        if isinstance(body, HttpStream) and ("content-type", "text/event-stream") in headers:
            if places.acquire(blocking=False):
                body = _EventStream(body, places)
            else:
                body.close()
                status, texts, text = _refused(503, "Too many streams of events", "GET", {"retry-after": "5"})
                headers, body = list(texts.items()), [text]
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return body

    return app


def _require(client: object, types: Tuple[type, ...]) -> None:
    if not isinstance(client, types):
        names = " or an ".join(each.__name__ for each in types)
        raise TypeError(f"client is a {names}, not {type(client).__name__}: open it before the application is made")


class _EventStream:
    """A stream of events that gives its place back at its end."""

    def __init__(self, stream: HttpStream, places: threading.Semaphore) -> None:
        self._stream: Optional[HttpStream] = stream
        self._places = places

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._stream is None:
            raise StopIteration
        return next(self._stream)

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            try:
                stream.close()
            finally:
                self._places.release()

    # A server that does not call `close` drops the stream.
    __del__ = close


def request_client(client: Union[Client, AsyncClient], peer: Optional[str]) -> AsyncClient:
    """Returns a handle for the requests of a peer, by its address, with the limits of one client."""
    handle: AsyncClient = request_handle(client, peer)
    return handle


def _prefix(prefix: str) -> str:
    if prefix and not prefix.startswith("/"):
        raise ValueError(f"prefix begins with a slash, or is empty: {prefix!r}")
    return quote(prefix.rstrip("/"), safe=_SAFE)


def failed(error: Error, method: str) -> Tuple[int, Dict[str, str], bytes]:
    """The answer to a request that failed: its status, headers and body.

    The reason at the end of the message is for the developer, unless the request is malformed.
    """
    if error.status < 500:
        headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
        if error.retry_after:
            headers["retry-after"] = str(ceil(error.retry_after))
        is_shown = error.status == 400 or not error.reason
        message = error.message if is_shown else error.message.removesuffix(f": {error.reason}")
        return _refused(error.status, message, method, headers)
    # The message may name what no stranger should know.
    _log.error("a request failed: %s", error)
    if error.status in (503, 507):
        return _refused(error.status, "Service unavailable", method, {"retry-after": "1"})
    return _refused(error.status, "Internal server error", method)


def _refused(status: int, message: str, method: str, headers: Dict[str, str] = {}) -> Tuple[int, Dict[str, str], bytes]:
    body = json.dumps({"success": False, "error": message}).encode()
    headers = {"content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff", **headers}
    return status, {**headers, "content-length": str(len(body))}, b"" if method == "HEAD" else body


async def _lifespan(receive: _Receive, send: _Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _answer(client: Union[Client, AsyncClient], prefix: str, scope: _Message, receive: _Receive, send: _Send) -> None:
    try:
        request = WebRequest.of_scope(client, prefix, scope)
        status, headers, body = await (_answer_body(request, receive) if request.reads_body else request.answer())
    except Error as error:
        status, texts, body = failed(error, scope["method"])
        headers = [(name.encode(), value.encode()) for name, value in texts.items()]
    start = {"type": "http.response.start", "status": status, "headers": headers}
    if isinstance(body, bytes):
        await send(start)
        await send({"type": "http.response.body", "body": body})
        return
    try:
        # The peer may be gone already: then `send` raises.
        await send(start)
        # An error goes to the server, which cuts the connection, so that the peer does not take the part for the whole.
        await _stream(body, receive, send)
    finally:
        await body.close()


async def _answer_body(request: WebRequest, receive: _Receive) -> Tuple[int, List[Tuple[bytes, bytes]], Union[bytes, AsyncHttpStream]]:
    """The answer to a request with a body."""
    message = await receive()
    answer: Tuple[int, List[Tuple[bytes, bytes]], Union[bytes, AsyncHttpStream]]
    if message["type"] != "http.disconnect" and not message.get("more_body", False):
        answer = await request.answer(message.get("body", b""))
        return answer
    chunks = request.chunks()
    feed = asyncio.ensure_future(_feed(chunks, message, receive))
    try:
        answer = await request.answer(chunks)
    finally:
        # The request may be answered, as with 401, while the peer sends more.
        feed.cancel()
        (failure,) = await asyncio.gather(feed, return_exceptions=True)
    if isinstance(failure, Exception):
        # Of `receive`: a middleware refuses the request.
        raise failure
    return answer


async def _feed(chunks: RequestChunks, message: _Message, receive: _Receive) -> None:
    try:
        while message["type"] != "http.disconnect":
            body = message.get("body", b"")
            if body and not await chunks.push(body):
                return
            if not message.get("more_body", False):
                chunks.finish()
                return
            message = await receive()
    finally:
        chunks.cut()


async def _stream(stream: AsyncHttpStream, receive: _Receive, send: _Send) -> None:
    """Sends a body until it ends or the peer disconnects."""
    sending = asyncio.ensure_future(_send_all(stream, send))
    watching = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait([sending, watching], return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        # Ends the iteration, also while it waits for the next event.
        await stream.close()
        if not sending.done():
            sending.cancel()
        await asyncio.gather(sending, watching, return_exceptions=True)
    if not sending.cancelled() and sending.exception() is not None:
        raise sending.exception()  # type: ignore[misc]


async def _send_all(stream: AsyncHttpStream, send: _Send) -> None:
    async for chunk in stream:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        # Lets the other task see that the peer is gone: a chunk in memory waits for nothing.
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


async def _disconnected(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer_wsgi(client: Client, prefix: str, environ: Dict[str, Any]) -> Tuple[int, List[Tuple[str, str]], Iterable[bytes]]:
    try:
        return _route_wsgi(WebRequest.of_environ(client, prefix, environ), environ)
    except Error as error:
        status, headers, body = failed(error, environ["REQUEST_METHOD"])
        return status, list(headers.items()), [body]


def _route_wsgi(request: WebRequest, environ: Dict[str, Any]) -> Tuple[int, List[Tuple[str, str]], Iterable[bytes]]:
    if not request.reads_body:
        status, headers, body = request.answer()
    elif _has_unknown_end(environ):
        status, texts, body = _refused(411, "The server does not mark the end of a body in chunks", request.method)
        headers = list(texts.items())
    elif request.method == "POST":
        status, headers, body = request.answer(_small_body(environ))
    else:
        # Another thread answers while this one reads the chunks.
        chunks = request.chunks()
        request.answer_chunks(chunks)
        try:
            if all(chunks.push(chunk) for chunk in _request_body(environ)):
                chunks.finish()
        except (OSError, ValueError):
            pass  # The body is not complete, which the answer says.
        finally:
            chunks.cut()
        stream: HttpStream = chunks.response()
        status, headers, body = stream.status, list(stream.headers.items()), stream
    return status, headers, [body] if isinstance(body, bytes) else body


def _small_body(environ: Dict[str, Any]) -> bytes:
    """The body of a POST, which the directory alone reads: not much more than it takes, so that it can refuse a larger one.

    A body that ends early is returned as far as it came.
    """
    body = b""
    try:
        for chunk in _request_body(environ):
            body += chunk
            if len(body) > _CHUNK:
                break
    except (OSError, ValueError):
        pass
    return body


def _request_body(environ: Dict[str, Any]) -> Iterator[bytes]:
    """The body in chunks. Raises if it ends before its length."""
    # A server that ends the body itself lets it be read without a length (chunked requests).
    length = environ.get("CONTENT_LENGTH", "")
    rest = int(length) if length.isdecimal() else None
    if rest is None and not environ.get("wsgi.input_terminated"):
        return
    while rest is None or rest > 0:
        chunk = environ["wsgi.input"].read(_CHUNK if rest is None else min(_CHUNK, rest))
        if not chunk:
            if rest is not None:
                raise OSError("the request ended before its length")
            return
        rest = None if rest is None else rest - len(chunk)
        yield chunk


def _has_unknown_end(environ: Dict[str, Any]) -> bool:
    """Whether a body in chunks would read as an empty one."""
    return "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower() and not environ.get("wsgi.input_terminated")
