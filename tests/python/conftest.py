"""Fixtures and functions of all tests: a catalog in the upstream's format, a loopback upstream, child processes, deadlines.

Invariant: no test opens a connection beyond this machine, reads the caller's environment variables or sleeps, except to poll
with a deadline.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
import townsquare

T = TypeVar("T")

ADVICE = "sign in as a user who may do this, or use as_service()"
"""The end of the text of a refusal by a policy."""

SERVICE_ADVICE = "use as_service(): this is for the service alone"
"""The end of the text of a refusal by an operation that is for the service alone."""


def frame(name: str, *, host: str | None = None, category: str | None = "games", followers: int = 10, **manifest: Any) -> dict[str, Any]:
    """A row of the catalog as the upstream sends it."""
    host = host or f"{name.lower().replace(' ', '-')}.example"
    return {
        "version": "next",
        "image": f"https://{host}/image.png",
        "frames_url": f"https://{host}",
        "title": "Open",
        "manifest": {
            "miniapp": {
                "version": "1",
                "name": name,
                "home_url": f"https://{host}",
                "icon_url": f"https://{host}/icon.png",
                "primary_category": category,
                "required_chains": ["eip155:8453"],
                "tags": ["sample"],
                **manifest,
            }
        },
        "author": {"fid": 7, "username": "ada", "follower_count": followers, "score": 0.5},
    }


FRAMES = [
    frame("Harbor Chess", tagline="One move a day", tags=["chess", "board"]),
    frame("Lantern Quiz"),
    frame("Tidepool", category="social", required_chains=["eip155:10"]),
    frame("Slow Chess Club", category="social"),
    {"version": "next", "image": "", "frames_url": "javascript:alert(1)"},
]
"""Four mini apps and one malformed row."""


def body(frames: list[dict[str, Any]]) -> bytes:
    """A response body of the upstream."""
    return json.dumps({"frames": frames, "next": {"cursor": None}}).encode()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("CATALOG_API_KEY", "TOWNSQUARE_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)


def package(name: str) -> Any:
    """Imports one of the packages that tests use the library with. Skips the test without it, or fails if
    `TOWNSQUARE_REQUIRE_ALL=1` says that a test may not be skipped."""
    if os.environ.get("TOWNSQUARE_REQUIRE_ALL") == "1":
        return importlib.import_module(name)
    return pytest.importorskip(name, reason="this version of Python has no such package")


_DATABASES = os.environ.get("TOWNSQUARE_TEST_DATABASE_URLS", "").split()
_STORAGE = os.environ.get("TOWNSQUARE_TEST_STORAGE_URL", "")


def remote_options() -> dict[str, Any]:
    """The options of a client on an empty PostgreSQL database and an empty S3 store. Skips the test without them."""
    if not _DATABASES:
        pytest.skip("no PostgreSQL: run the suite by `cargo test`")
    return {"database_url": _DATABASES.pop(), "storage_url": _STORAGE.replace("PREFIX", uuid4().hex)}


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    """The URL of a catalog file."""
    file = tmp_path / "catalog.json"
    file.write_bytes(body(FRAMES))
    return file.as_uri()


@pytest.fixture
def client(tmp_path: Path, catalog: str) -> Iterator[townsquare.Client]:
    with townsquare.Client.open(tmp_path / "data", catalog_url=catalog) as client:
        yield client


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The data folder of `client` and `service`."""
    return tmp_path / "data"


@pytest.fixture
def service(client: townsquare.Client) -> townsquare.Client:
    """A handle to the database of `client` that bypasses every policy."""
    return client.as_service()


def add_user(folder: Path, email: str) -> UUID:
    """Inserts a row into `users` with Python's own `sqlite3`, as other tools do, and returns its id.

    In a child process: two SQLite libraries in one process drop each other's file locks.
    """
    program = (
        "import sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1], timeout=20)\n"
        "with database:\n"
        "    rows = database.execute('INSERT INTO users (email) VALUES (?) RETURNING id', sys.argv[2:]).fetchall()\n"
        "print(rows[0][0])\n"
    )
    child = run_python(program, folder / "townsquare.db", email)
    assert child.returncode == 0, child.stderr
    return UUID(child.stdout.strip())


ENABLE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""The first line of a program that is sent SIGINT. A shell script's background jobs ignore SIGINT, and so do their children."""


def run_python(program: str, *arguments: object, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs a program in a Python process of its own. `-W ignore` hides the warning of newer Pythons about `fork`."""
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout)


class Upstream:
    """A catalog server on the loopback interface. Requests wait while `gate` is cleared."""

    def __init__(self) -> None:
        self.status = 200
        self.frames = FRAMES
        self.requests: list[tuple[str, str | None]] = []
        self.gate = threading.Event()
        self.gate.set()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                upstream.requests.append((self.path, self.headers.get("x-api-key")))
                upstream.gate.wait(30)
                answer = body(upstream.frames) if upstream.status == 200 else b'{"message": "no"}'
                self.send_response(upstream.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    pass  # the client has closed the connection

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def hold(self) -> None:
        self.gate.clear()

    def release(self) -> None:
        self.gate.set()

    def stop(self) -> None:
        self.release()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    yield upstream
    upstream.stop()


def wait_until(condition: Callable[[], T], seconds: float = 20) -> T:
    """Polls `condition` until it is true and returns its value. Fails after the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < deadline, f"the condition was not true within {seconds} s"
        time.sleep(0.005)


def run(coroutine: Coroutine[Any, Any, T], seconds: float = 30) -> T:
    """Runs a coroutine in a new event loop, with a deadline."""

    async def bounded() -> T:
        return await asyncio.wait_for(coroutine, seconds)

    return asyncio.run(bounded())
