"""Starts web servers as child processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import townsquare
from conftest import package


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(command: list[str], folder: Path, prefix: str = "", **environment: str) -> Iterator[Any]:
    """Runs `python COMMAND` with its `{port}` in a folder. Gives a client of HTTP, once the server answers `PREFIX/health`."""
    httpx = package("httpx")
    port = free_port()
    site = str(Path(townsquare.__file__).parent.parent)
    environment = {"PYTHONPATH": f"{folder}{os.pathsep}{site}", "PATH": "/usr/bin:/bin", **environment}
    server = subprocess.Popen([sys.executable, *(part.format(port=port) for part in command)], cwd=folder, env=environment)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}{prefix}", timeout=20) as http:
            deadline = time.monotonic() + 60
            while True:
                try:
                    http.get("/health")
                    break
                except httpx.TransportError:
                    assert server.poll() is None and time.monotonic() < deadline, "the server does not start"
                    time.sleep(0.1)
            yield http
    finally:
        server.terminate()
        server.wait(30)
