"""`asgi` and `wsgi` under real servers: discovery, files, events and health, and who a request acts for."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import townsquare
from conftest import package, wait_until
from servers import serving

PASSWORD = "correct horse"

# The server opens the client: a client does not survive a fork.
APP = """
import os, townsquare
client = townsquare.Client.open(os.environ["TOWN"], catalog_url="sample:", endpoint_origins="*")
client.as_service().realtime.start()
asgi = townsquare.asgi(client, prefix="/town")
wsgi = townsquare.wsgi(client, prefix="/town")
"""

SERVERS = {
    "uvicorn": ["-m", "uvicorn", "app:asgi", "--port", "{port}", "--log-level", "warning"],
    "uvicorn with 2 workers": ["-m", "uvicorn", "app:asgi", "--port", "{port}", "--log-level", "warning", "--workers", "2"],
    "hypercorn": ["-m", "hypercorn", "app:asgi", "--bind", "127.0.0.1:{port}"],
    "granian": ["-m", "granian", "--interface", "asgi", "app:asgi", "--port", "{port}"],
    "gunicorn": ["-m", "gunicorn", "app:wsgi", "--bind", "127.0.0.1:{port}", "--threads", "4", "--graceful-timeout", "1"],
}


@pytest.fixture(params=SERVERS)
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    """A server, and the headers of a signed-in user."""
    (tmp_path / "app.py").write_text(APP)
    data = tmp_path / "data"
    with townsquare.Client.open(data, catalog_api_key="") as client:
        client.auth.sign_up("ann@town.example", PASSWORD)
        token = client.auth.create_session("ann@town.example", PASSWORD).access_token
    with serving(SERVERS[request.param], tmp_path, "/town", TOWN=str(data)) as http:
        yield http, {"authorization": f"Bearer {token}"}


def test_every_server_answers_discovery_files_events_and_health(town: Any) -> None:
    http, ann = town
    assert http.get("/health").json() == {"status": "ok"}
    assert http.head("/health").content == b"" and http.post("/health").status_code == 405
    apps = http.get("/api/miniapp-discovery", params={"limit": 3})
    assert apps.status_code == 200 and len(apps.json()["apps"]) == 3
    assert http.get("/api/miniapp-discovery", headers={"if-none-match": apps.headers["etag"]}, params={"limit": 3}).status_code == 304
    assert http.get("/nothing").status_code == 404
    # Files: a stranger, a token that is not valid, the user; a body in chunks without a length.
    large = bytes(range(256)) * 8_192

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(large), 50_000):
            yield large[start : start + 50_000]

    assert http.put("/files/assets/a%20b", content=b"x").status_code == 401
    assert http.put("/files/assets/a%20b", content=b"x", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert http.put("/files/assets/a%20b", content=chunks(), headers=ann).status_code == 201
    got = http.get("/files/assets/a%20b")
    assert got.content == large and got.headers["content-length"] == str(len(large))
    assert http.get("/files/assets/a%20b", headers={"range": "bytes=1-3"}).content == large[1:4]
    assert http.head("/files/assets/a%20b").headers["content-length"] == str(len(large))
    assert http.put("/files/assets/a%20b", content=b"of a stranger").status_code == 401
    assert http.delete("/files/assets/a%20b").status_code == 401
    assert http.delete("/files/assets/a%20b", headers=ann).status_code == 204
    assert http.get("/files/assets/a%20b").status_code == 404
    # Events.
    assert http.post("/events?table=files").status_code == 405
    assert http.head("/events?table=files").status_code == 200
    preflight = {"origin": "https://a.example", "access-control-request-method": "GET"}
    assert http.options("/events?table=files", headers=preflight).status_code == 204
    assert http.get("/events?table=nothing").status_code == 404
    with http.stream("GET", "/events?table=files") as events:
        assert events.headers["content-type"] == "text/event-stream"
        lines = events.iter_lines()
        assert next(lines).startswith("id: ")
        assert http.put("/files/assets/b", content=b"x", headers=ann).status_code == 201
        assert any('"path":"b"' in line for line in lines if line.startswith("data: "))


def test_an_upload_that_is_cut_stores_nothing(town: Any) -> None:
    http, ann = town
    with socket.create_connection((http.base_url.host, http.base_url.port)) as peer:
        head = f"PUT /town/files/assets/cut HTTP/1.1\r\nHost: x\r\nAuthorization: {ann['authorization']}\r\nContent-Length: 1000000\r\n\r\n"
        peer.sendall(head.encode() + b"x" * 500_000)
    time.sleep(1)
    assert http.get("/files/assets/cut").status_code == 404


def scope(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [], **more}


def answer(app: Any, of: dict[str, Any], body: bytes = b"") -> tuple[int, bytes]:
    """The answer to a request, given to the application without a server."""
    sent: list[dict[str, Any]] = []
    received: list[bool] = []
    ended = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if not ended.is_set() and not received:
            received.append(True)
            return {"type": "http.request", "body": body}
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(of, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_paths_are_decoded_once_with_and_without_a_raw_path(client: townsquare.Client) -> None:
    service = client.as_service()
    for name in ("a%20b", "100%", "\u00e9"):
        service.storage.upload("assets", name, name.encode())
    app = townsquare.asgi(client, prefix="/town")
    assert answer(app, scope("/town/files/assets/a%20b")) == (200, b"a%20b")
    assert answer(app, scope("/town/files/assets/100%")) == (200, b"100%")
    assert answer(app, scope("", raw_path=b"/town/files/assets/a%2520b")) == (200, b"a%20b")
    assert answer(app, scope("", raw_path=b"/town/files/assets/%C3%A9")) == (200, "\u00e9".encode())
    assert answer(app, scope("", raw_path="/town/files/assets/\u00e9".encode())) == (200, "\u00e9".encode())
    # A mount: the path has its prefix (`root_path`).
    assert answer(app, scope("/api/town/files/assets/100%", root_path="/api")) == (200, b"100%")


def test_routes_do_not_depend_on_how_a_path_is_escaped(client: townsquare.Client) -> None:
    client.as_service().storage.upload("assets", "a b", b"x")
    app = townsquare.asgi(client, prefix="/town hall")
    for start in (b"/town%20hall", b"/%74own%20%68all", b"/town hall"):
        for path in (b"/%68ealth", b"/healt%68", b"/%66iles/assets/%61%20b", b"/f%69les/%61ssets/a%20b"):
            assert answer(app, scope("", raw_path=start + path))[0] == 200
        assert answer(app, scope("", raw_path=start + b"/%61pi/miniapp-discover%79"))[0] == 200
        assert answer(app, scope("", raw_path=start + b"/e%76ents", query_string=b"table=nothing"))[0] == 404
    assert answer(app, scope("/town hall/health"))[0] == 200
    # A mount: the server decodes `root_path`.
    mounted = scope("", raw_path=b"/%61pi%20x/town%20hall/%68ealth", root_path="/api x")
    assert answer(app, mounted)[0] == 200


def test_an_escaped_slash_separates_no_segments(client: townsquare.Client) -> None:
    service = client.as_service()
    service.storage.upload("assets", "a/b", b"x")
    app = townsquare.asgi(client, prefix="/town")
    assert answer(app, scope("", raw_path=b"/town/files/assets/a/b")) == (200, b"x")
    # The endpoint of files refuses it; the text of another escape stays that of the file's name.
    for escaped in (b"a%2fb", b"a%2Fb", b"%61%2Fb", b"100%", b"a%zz"):
        assert answer(app, scope("", raw_path=b"/town/files/assets/" + escaped))[0] == 400
    service.storage.upload("assets", "a%2Fb", b"y")
    assert answer(app, scope("", raw_path=b"/town/files/assets/a%252Fb")) == (200, b"y")
    for path in (b"/town%2Fhealth", b"/town/files%2Fassets/a/b", b"/town/%2Fhealth", b"/town/api%2Fminiapp-discovery"):
        assert answer(app, scope("", raw_path=path))[0] == 404


def test_an_upload_ends_with_an_error_of_the_server(client: townsquare.Client) -> None:
    client.auth.sign_up("ann@town.example", PASSWORD)
    token = client.auth.create_session("ann@town.example", PASSWORD).access_token
    of = scope("/files/assets/a", method="PUT", headers=[(b"authorization", f"Bearer {token}".encode())])

    async def receive() -> dict[str, Any]:
        raise RuntimeError("the body is too large")

    async def send(message: dict[str, Any]) -> None:
        raise AssertionError("nothing is sent")

    with pytest.raises(RuntimeError, match="too large"):
        asyncio.run(asyncio.wait_for(townsquare.asgi(client)(of, receive, send), 20))
    assert not client.storage.exists("assets", "a")


def test_a_download_stops_when_its_peer_disconnects(client: townsquare.Client) -> None:
    client.as_service().storage.upload("assets", "large", bytes(20_000_000))
    sent: list[int] = []

    async def receive() -> dict[str, Any]:
        while sum(sent) < 1_000_000:
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(len(message.get("body", b"")))

    asyncio.run(townsquare.asgi(client)(scope("/files/assets/large"), receive, send))
    assert 1_000_000 <= sum(sent) < 10_000_000


def test_one_method_answers_every_endpoint(client: townsquare.Client) -> None:
    service = client.as_service()
    service.storage.upload("assets", "a b", b"x")
    client.auth.sign_up("ann@town.example", PASSWORD)
    token = client.auth.create_session("ann@town.example", PASSWORD).access_token
    bearer = {"Authorization": f"Bearer {token}"}
    # A handle of the service acts for nobody.
    for target, status in [("/health", 200), ("/files/assets/a%20b", 200), ("/files/private/a", 404), ("/events?table=x", 404), ("/x", 404)]:
        assert service.handle_request("GET", target).status == status, target
    assert service.handle_request("PUT", "/files/assets/c", b"y").status == 401
    bodies: list[Any] = [b"chunk", io.BytesIO(b"chunk"), iter([b"chu", b"nk"])]
    for number, body in enumerate(bodies):
        assert client.handle_request("PUT", f"/files/assets/{number}", body, bearer).status == 201
        assert client.storage.download("assets", str(number)) == b"chunk"
    search = b'{"action": "search", "query": "chess"}'
    searches: list[Any] = [search, io.BytesIO(search), iter([search[:10], search[10:]])]
    for body in searches:
        found = client.handle_request("POST", "/api/miniapp-discovery", body)
        assert found.status == 200 and json.loads(b"".join(found))["success"]

    def broken() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        client.handle_request("PUT", "/files/assets/broken", broken(), bearer)
    assert not client.storage.exists("assets", "broken")

    async def main() -> None:
        async with townsquare.AsyncClient.open(data_dir=":memory:", catalog_url="sample:") as other:
            async with other.handle_request("GET", "/health") as response:
                assert (response.status, [chunk async for chunk in response]) == (200, [b'{"status":"ok"}'])
            assert (await other.handle_request("PUT", "/files/assets/x", io.BytesIO(b"x"))).status == 401

    asyncio.run(main())
    client.close()
    with pytest.raises(townsquare.ClosedError):
        client.handle_request("GET", "/files/assets/a")


def test_searches_are_posted_under_asgi_and_wsgi(client: townsquare.Client) -> None:
    search = b'{"action": "search", "query": "chess"}'
    large = json.dumps({"action": "search", "query": "x" * 70_000}).encode()
    for bodies, status in [([search], 200), ([search[:5], search[5:]], 200), ([large], 413), ([large[:60_000], large[60_000:]], 413), ([b""], 400)]:
        sent: list[dict[str, Any]] = []
        messages = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
        messages[-1]["more_body"] = False

        async def receive() -> dict[str, Any]:
            return messages.pop(0)

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(townsquare.asgi(client)(scope("/api/miniapp-discovery", method="POST", client=(None, 0)), receive, send))
        assert sent[0]["status"] == status
        whole, seen = b"".join(bodies), []
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/api/miniapp-discovery", "CONTENT_LENGTH": str(len(whole)), "wsgi.input": io.BytesIO(whole)}
        list(townsquare.wsgi(client)(environ, lambda text, headers: seen.append(text)))
        assert seen[0].startswith(str(status))


def test_a_query_is_read_as_utf_8_under_asgi_and_wsgi(client: townsquare.Client) -> None:
    raw = "category=\u00e9".encode()
    paths = [(scope("/api/miniapp-discovery", query_string=raw), raw.decode("latin-1")), (scope("/api/miniapp-discovery", query_string=b"category=%C3%A9"), "category=%C3%A9")]
    for of, query in paths:
        body = answer(townsquare.asgi(client), of)[1]
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/api/miniapp-discovery", "QUERY_STRING": query}
        assert b"".join(townsquare.wsgi(client)(environ, lambda status, headers: None)) == body
    with pytest.raises(ValueError, match="Latin-1"):
        townsquare.wsgi(client)({"REQUEST_METHOD": "GET", "PATH_INFO": "/\u2c2f"}, lambda status, headers: None)


def test_headers_that_come_twice_are_refused(client: townsquare.Client) -> None:
    client.as_service().storage.upload("assets", "a", b"x")
    headers = [(b"authorization", b"Bearer a"), (b"Authorization", b"Bearer b")]
    assert answer(townsquare.asgi(client), scope("/files/assets/a", headers=headers))[0] == 400


def test_the_address_of_a_peer_is_its_client_under_asgi(client: townsquare.Client) -> None:
    client.as_service().realtime.start()
    app, statuses = townsquare.asgi(client), []

    async def open_stream(address: str, ends: asyncio.Event) -> asyncio.Task[None]:
        started = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await ends.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                started.set()

        of = scope("/events", query_string=b"table=spaces", client=(address, 50_000 + len(statuses)))
        task = asyncio.create_task(app(of, receive, send))
        await started.wait()
        return task

    async def main() -> None:
        ends = asyncio.Event()
        tasks = [await open_stream("192.0.2.1", ends) for _ in range(65)]
        tasks.append(await open_stream("192.0.2.2", ends))
        ends.set()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(main(), 60))
    assert statuses == [200] * 64 + [429, 200]


def test_the_address_of_a_peer_is_its_client_under_wsgi(client: townsquare.Client) -> None:
    client.as_service().realtime.start()
    app, statuses = townsquare.wsgi(client, max_event_streams=100), []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/events", "QUERY_STRING": "table=spaces"}
    peers = ["192.0.2.1"] * 65 + ["192.0.2.2"]
    bodies = [app({**environ, "REMOTE_ADDR": peer}, lambda status, *_: statuses.append(int(status[:3]))) for peer in peers]
    assert statuses == [200] * 64 + [429, 200]
    for body in bodies:
        if close := getattr(body, "close", None):
            close()


def test_answers_to_head_have_no_body(client: townsquare.Client) -> None:
    app = townsquare.asgi(client)
    for path in ("/health", "/nothing", "/files/assets/none"):
        assert answer(app, scope(path, method="HEAD"))[1] == b""
    client.close()
    assert answer(app, scope("/health", method="HEAD")) == (503, b"")
    environ = {"REQUEST_METHOD": "HEAD", "PATH_INFO": "/files/assets/none"}
    assert b"".join(townsquare.wsgi(client)(environ, lambda status, headers: None)) == b""


def test_a_body_without_an_end_is_refused_under_wsgi(client: townsquare.Client) -> None:
    seen: list[str] = []
    environ = {"REQUEST_METHOD": "PUT", "PATH_INFO": "/files/assets/a", "HTTP_TRANSFER_ENCODING": "chunked"}
    body = townsquare.wsgi(client)(environ, lambda status, headers: seen.append(status))
    assert b"".join(body) and seen == ["411 Length Required"]


def test_other_scopes_are_named(client: townsquare.Client) -> None:
    with pytest.raises(ValueError, match="'webtransport'"):
        answer(townsquare.asgi(client), scope("/", type="webtransport"))


def test_health_does_not_depend_on_the_caller_of_the_client(client: townsquare.Client) -> None:
    client.auth.sign_up("ann@town.example", PASSWORD)
    session = client.auth.sign_in("ann@town.example", PASSWORD)
    client.as_service().auth.set_password(session.user.id, "another horse")
    assert answer(townsquare.asgi(client), scope("/health"))[0] == 200


def test_a_malformed_length_is_no_error_of_the_application(client: townsquare.Client) -> None:
    seen: list[str] = []
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/api/miniapp-discovery", "CONTENT_LENGTH": "abc"}
    body = townsquare.wsgi(client)(environ, lambda status, headers: seen.append(status))
    assert b"".join(body) and seen == ["400 Bad Request"]


def test_a_prefix_begins_with_a_slash(client: townsquare.Client) -> None:
    for make in (townsquare.asgi, townsquare.wsgi):
        with pytest.raises(ValueError, match="prefix"):
            make(client, prefix="town")


def test_mounted_in_fastapi_with_the_caller_of_a_request(client: townsquare.Client) -> None:
    fastapi, testing = package("fastapi"), package("fastapi.testclient")
    starlette = package("starlette.websockets")
    from townsquare.fastapi import caller

    client.auth.sign_up("ann@town.example", PASSWORD)
    token = client.auth.create_session("ann@town.example", PASSWORD).access_token
    app = fastapi.FastAPI()

    @app.post("/spaces")  # type: ignore[untyped-decorator]
    async def create(handle: Any = fastapi.Depends(caller(client))) -> dict[str, Any]:
        space = await handle.spaces.create_space("Harbor")
        return {"name": space.name, "owner": str(space.owner_id)}

    app.mount("/town", townsquare.asgi(client))
    with testing.TestClient(app) as http:
        made = http.post("/spaces", headers={"authorization": f"Bearer {token}"})
        assert made.status_code == 200 and made.json()["name"] == "Harbor"
        assert http.post("/spaces", headers={"authorization": "Bearer wrong"}).status_code == 401
        with pytest.raises(townsquare.AuthError):
            http.post("/spaces")
        assert http.get("/town/health").json() == {"status": "ok"}
        assert http.get("/town/files/assets/none").status_code == 404
        with pytest.raises(starlette.WebSocketDisconnect):
            http.websocket_connect("/town/events").__enter__()
    client.close()
    with testing.TestClient(app) as http:
        assert http.get("/town/health").status_code == 503
        assert http.get("/town/files/assets/none").status_code == 503


def test_errors_are_answered_in_routes_of_fastapi(client: townsquare.Client, caplog: pytest.LogCaptureFixture) -> None:
    fastapi, testing = package("fastapi"), package("fastapi.testclient")
    websockets = package("starlette.websockets")
    from townsquare.fastapi import answer_errors, caller

    opened: list[townsquare.Client] = []
    app = fastapi.FastAPI()
    answer_errors(app)
    # A client that is opened later.
    of_request = caller(lambda: opened[0])

    @app.get("/spaces/{id}")  # type: ignore[untyped-decorator]
    async def read(id: str, handle: Any = fastapi.Depends(of_request)) -> str:
        return str((await handle.spaces.get_space(id)).name)

    @app.get("/users")  # type: ignore[untyped-decorator]
    async def users(handle: Any = fastapi.Depends(of_request)) -> int:
        return len(await handle.auth.list_users())

    @app.get("/fails")  # type: ignore[untyped-decorator]
    async def fails() -> None:
        raise townsquare.UnavailableError("the disk of the host", status=503)

    async def socket(connection: Any, handle: Any = fastapi.Depends(of_request)) -> None:
        await connection.accept()
        await connection.send_json(len(await handle.spaces.get_public_spaces()))
        await handle.auth.list_users()

    async def failing(connection: Any) -> None:
        await connection.accept()
        raise townsquare.UnavailableError("the disk of the host", status=503)

    failing.__annotations__["connection"] = fastapi.WebSocket
    app.websocket("/fails")(failing)
    socket.__annotations__["connection"] = fastapi.WebSocket
    app.websocket("/socket")(socket)
    opened.append(client)
    space = client.as_service().spaces.create_space("Harbor", is_public=True)
    with testing.TestClient(app) as http:
        assert http.get(f"/spaces/{space.id}").json() == "Harbor"
        missing = http.get("/spaces/00000000-0000-0000-0000-000000000000")
        assert (missing.status_code, missing.json()) == (404, {"success": False, "error": "Record not found"})
        malformed = http.get("/spaces/x")
        assert (malformed.status_code, malformed.json()["error"]) == (400, "id is not a UUID: 'x'")
        # The advice for the developer is not for strangers.
        users = http.get("/users")
        assert (users.status_code, users.json()["error"]) == (401, "Database error: permission denied for table users")
        assert users.headers["www-authenticate"] == "Bearer"
        wrong = http.get(f"/spaces/{space.id}", headers={"authorization": "Bearer wrong"})
        assert (wrong.status_code, wrong.json()) == (401, {"success": False, "error": "The access token is not valid"})
        assert wrong.headers["www-authenticate"] == "Bearer"
        failed = http.get("/fails")
        assert (failed.status_code, failed.json()["error"], failed.headers["retry-after"]) == (503, "Service unavailable", "1")
        assert "the disk of the host" in caplog.text
        with http.websocket_connect("/socket") as connection:
            assert connection.receive_json() == 1
            with pytest.raises(websockets.WebSocketDisconnect) as closed:
                connection.receive_json()
            assert closed.value.code == 1008
        with pytest.raises(websockets.WebSocketDisconnect) as refused:
            http.websocket_connect("/socket", headers={"authorization": "Bearer wrong"}).__enter__()
        assert refused.value.status_code == 401 and refused.value.headers["www-authenticate"] == "Bearer"
        with pytest.raises(websockets.WebSocketDisconnect) as ended:
            with http.websocket_connect("/fails") as connection:
                connection.receive_json()
        assert ended.value.code == 1011


def test_wsgi_keeps_the_rules_of_its_specification(client: townsquare.Client) -> None:
    from wsgiref.util import setup_testing_defaults
    from wsgiref.validate import validator

    app = validator(townsquare.wsgi(client))
    for path, expected in (("/health", "200"), ("/files/assets/none", "404"), ("/elsewhere", "404")):
        environ: dict[str, Any] = {}
        setup_testing_defaults(environ)
        environ.update(PATH_INFO=path, QUERY_STRING="")
        seen: list[str] = []

        def start(status: str, headers: Any, exc_info: Any = None) -> Any:
            seen.append(status)
            return lambda data: None

        body = app(environ, start)
        assert b"".join(body) and seen[0].startswith(expected)
        body.close()  # type: ignore[attr-defined]


def test_a_missing_package_fails_where_no_test_may_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWNSQUARE_REQUIRE_ALL", "1")
    with pytest.raises(ImportError):
        package("townsquare_has_no_such_package")
    monkeypatch.delenv("TOWNSQUARE_REQUIRE_ALL")
    with pytest.raises(pytest.skip.Exception):
        package("townsquare_has_no_such_package")


FIGURES_APP = APP + """
async def app(scope, receive, send):
    if scope["type"] == "http" and scope["path"] == "/town/subscriptions":
        figure = str(client.as_service().realtime.stats().subscriptions).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": figure})
    else:
        await asgi(scope, receive, send)
"""


def test_the_subscription_of_a_stream_ends_when_its_peer_disconnects(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(FIGURES_APP)
    server = ["-m", "uvicorn", "app:app", "--port", "{port}", "--log-level", "warning"]
    with serving(server, tmp_path, "/town", TOWN=str(tmp_path / "data")) as http:

        def subscriptions() -> str:
            return str(http.get("/subscriptions").text)

        assert subscriptions() == "0"
        for _ in range(3):
            with http.stream("GET", "/events?table=files") as events, http.stream("GET", "/events?table=spaces") as others:
                lines = [stream.iter_lines() for stream in (events, others)]  # dropping one closes its connection
                assert all(next(each).startswith("id: ") for each in lines)
                assert subscriptions() == "2"
            wait_until(lambda: subscriptions() == "0")


def test_streams_of_events_leave_threads_to_other_requests_under_wsgi(client: townsquare.Client) -> None:
    client.realtime.start()
    app, statuses = townsquare.wsgi(client, max_event_streams=2), []

    def get(path: str, query: str = "") -> Any:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query}
        return app(environ, lambda status, headers: statuses.append(status))

    first, second = get("/events", "table=spaces"), get("/events", "table=spaces")
    assert next(iter(first)).startswith(b"id: ")
    refused = get("/events", "table=spaces")
    assert json.loads(b"".join(refused)) == {"success": False, "error": "Too many streams of events"}
    assert b"".join(get("/health"))
    first.close()
    first.close()
    third = get("/events", "table=spaces")
    # A server that does not call `close` drops the stream.
    del second
    gc.collect()
    fourth = get("/events", "table=spaces")
    get("/events", "table=spaces")
    assert [status[:3] for status in statuses] == ["200", "200", "503", "200", "200", "200", "503"]
    third.close()
    fourth.close()
    with pytest.raises(ValueError):
        townsquare.wsgi(client, max_event_streams=-1)


def test_a_peer_that_is_gone_before_the_answer_holds_no_stream_under_asgi(client: townsquare.Client) -> None:
    client.realtime.start()
    app = townsquare.asgi(client)
    events = scope("/events", query_string=b"table=spaces", client=("203.0.113.7", 1))
    held, statuses = [], []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def gone(message: Any) -> None:
        statuses.append(message["status"])
        raise OSError("the peer is gone")

    async def main() -> None:
        for _ in range(70):
            # One peer has 64 streams. The error holds the frames, and with them what they have.
            with pytest.raises(OSError) as caught:
                await app(events, receive, gone)
            held.append(caught)

    asyncio.run(main())
    assert statuses == [200] * 70


def test_an_application_is_made_of_a_client_alone(client: townsquare.Client) -> None:
    for make in (townsquare.asgi, townsquare.wsgi):
        for wrong in (None, "town", lambda: client):
            with pytest.raises(TypeError, match="client is a Client"):
                make(wrong)  # type: ignore[arg-type]
