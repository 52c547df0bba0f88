"""`asgi` and `wsgi` within the applications of web frameworks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import townsquare
from conftest import package, run, run_python
from townsquare import Client

PASSWORD = "correct horse"


def bearer(client: Client) -> dict[str, str]:
    """The headers of a new user."""
    client.auth.sign_up("ann@town.example", PASSWORD)
    return {"authorization": f"Bearer {client.auth.create_session('ann@town.example', PASSWORD).access_token}"}


@pytest.mark.parametrize("root_path", ["", "/behind/a/proxy"])
@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_mounted_in_starlette(client: Client, root_path: str, prefix: str) -> None:
    applications, routing, testing = package("starlette.applications"), package("starlette.routing"), package("starlette.testclient")
    ann = bearer(client)
    inner = routing.Mount("/town", app=townsquare.asgi(client, prefix=prefix))
    app = applications.Starlette(routes=[routing.Mount("/api", routes=[inner])])
    with testing.TestClient(app, root_path=root_path) as http:
        # A server of ASGI puts `root_path` before the path.
        base = f"{root_path}/api/town{prefix}"
        assert http.get(f"{base}/health").json() == {"status": "ok"}
        assert http.put(f"{base}/files/assets/a%20b/100%25", content=b"x", headers=ann).status_code == 201
        assert http.get(f"{base}/files/assets/a%20b/100%25").content == b"x"
        assert http.put(f"{base}/files/assets/c", content=b"x").status_code == 401
        assert client.storage.list("assets")[0].path == "a b/100%"
        assert http.get(f"{base}/api/miniapp-discovery?limit=1").json()["success"]
        assert http.get(f"{base}/events?table=nothing").status_code in (404, 503)
        assert http.get(f"{root_path}/api/health").status_code == http.get(f"{root_path}/health").status_code == 404


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_mounted_behind_a_proxy_that_removes_its_prefix(client: Client, prefix: str) -> None:
    applications, testing = package("starlette.applications"), package("starlette.testclient")
    client.as_service().storage.upload("assets", "a b", b"x")
    app = applications.Starlette()
    app.mount("/town", townsquare.asgi(client, prefix=prefix))
    with testing.TestClient(app, root_path="/behind/a proxy") as http:
        for start in (f"/town{prefix}", f"/behind/a%20proxy/town{prefix}"):
            assert http.get(f"{start}/health").json() == {"status": "ok"}
            assert http.get(f"{start}/files/assets/a%20b").content == b"x"
            assert http.get(f"{start}/nothing").status_code == 404


DJANGO = """
import asyncio, json, sys
import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.test import Client as Browser
from django.urls import path
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.test import Client as Http
import townsquare

client = townsquare.Client.open(sys.argv[1], catalog_url="sample:")
service = client.as_service()
service.storage.upload("assets", "a", b"x")
settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="x")
django.setup()

def spaces(request):
    return JsonResponse([space.to_dict() for space in client.spaces.get_public_spaces()], safe=False)

urlpatterns = [path("spaces", spaces)]
service.spaces.create_space("Harbor", is_public=True)

# WSGI: the way that the documentation shows.
http = Http(DispatcherMiddleware(get_wsgi_application(), {"/town": townsquare.wsgi(client)}))
assert http.get("/spaces").json[0]["name"] == "Harbor"
assert http.get("/town/health").json == {"status": "ok"}
assert http.get("/town/files/assets/a").data == b"x" and http.put("/town/files/assets/a", data=b"y").status_code == 401
assert http.get("/town/nothing").status_code == 404 and http.get("/nothing").status_code == 404

# ASGI: one application chooses by the path.
town, rest = townsquare.asgi(client, prefix="/town"), get_asgi_application()

async def app(scope, receive, send):
    is_town = scope["type"] == "http" and scope["path"].startswith("/town/")
    await (town if is_town else rest)(scope, receive, send)

from asgiref.testing import ApplicationCommunicator

async def get(path):
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": path, "query_string": b"", "headers": []}
    communicator = ApplicationCommunicator(app, scope)
    await communicator.send_input({"type": "http.request", "body": b"", "more_body": False})
    start = await communicator.receive_output(10)
    body = b""
    while True:
        message = await communicator.receive_output(10)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await communicator.wait(10)
    return start["status"], body

async def main():
    assert json.loads((await get("/spaces"))[1])[0]["name"] == "Harbor"
    assert await get("/town/health") == (200, b'{"status":"ok"}')
    assert await get("/town/files/assets/a") == (200, b"x")
    assert (await get("/town/nothing"))[0] == (await get("/nothing"))[0] == 404

asyncio.run(main())
client.close()
print("done")
"""


def test_mounted_in_django_under_wsgi_and_asgi(tmp_path: Path) -> None:
    package("django"), package("flask"), package("asgiref")
    site = Path(townsquare.__file__).parent.parent
    child = run_python(f"import sys; sys.path[:0] = [{str(site)!r}]\n{DJANGO}", tmp_path / "data", timeout=120)
    assert child.stdout == "done\n", child.stderr


def test_asgiref_runs_the_application(client: Client) -> None:
    """What asgiref checks: the application is one of ASGI 3, its messages have the right form, and it ends by itself."""
    compatibility, testing = package("asgiref.compatibility"), package("asgiref.testing")
    client.realtime.start()
    app = townsquare.asgi(client)
    assert not compatibility.is_double_callable(app) and compatibility.guarantee_single_callable(app) is app

    async def main() -> None:
        def request(path: str) -> Any:
            scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": path, "query_string": b"table=files", "headers": []}
            return testing.ApplicationCommunicator(app, scope)

        health = request("/health")
        await health.send_input({"type": "http.request", "body": b"", "more_body": False})
        start, body = await health.receive_output(10), await health.receive_output(10)
        assert start["type"] == "http.response.start" and all(isinstance(part, bytes) for pair in start["headers"] for part in pair)
        assert json.loads(body["body"]) == {"status": "ok"} and await health.receive_nothing()
        await health.wait(10)
        # A stream of events goes on until its peer is gone, and then ends within a second.
        events = request("/events")
        await events.send_input({"type": "http.request", "body": b"", "more_body": False})
        assert (await events.receive_output(10))["status"] == 200
        assert (await events.receive_output(10))["body"].startswith(b"id: ")
        assert not events.future.done()
        await events.send_input({"type": "http.disconnect"})
        await events.wait(1)
        lifespan = testing.ApplicationCommunicator(app, {"type": "lifespan"})
        for event in ("startup", "shutdown"):
            await lifespan.send_input({"type": f"lifespan.{event}"})
            assert await lifespan.receive_output(10) == {"type": f"lifespan.{event}.complete"}
        await lifespan.wait(10)

    run(main())
