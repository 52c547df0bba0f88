"""Starts web servers as child processes."""

from __future__ import annotations

import os
import random
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
    """Returns a port that is free now. It is below those that Linux gives to a program that binds port 0."""
    while True:
        port = random.randrange(10_001, 32_768)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def answers(server: subprocess.Popen[bytes], http: Any) -> bool:
    """Waits until a server answers `/health`. Returns false if it has ended: another process may have bound its port."""
    httpx = package("httpx")
    deadline = time.monotonic() + 60
    while server.poll() is None:
        try:
            http.get("/health")
            return True
        except httpx.TransportError:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.1)
    return False


@contextmanager
def serving(command: list[str], folder: Path, prefix: str = "", **environment: str) -> Iterator[Any]:
    """Runs `python COMMAND` with its `{port}` in a folder. Gives a client of HTTP, once the server answers `PREFIX/health`."""
    httpx = package("httpx")
    site = str(Path(townsquare.__file__).parent.parent)
    environment = {"PYTHONPATH": f"{folder}{os.pathsep}{site}", "PATH": "/usr/bin:/bin", **environment}
    for _ in range(3):
        port = free_port()
        server = subprocess.Popen([sys.executable, *(part.format(port=port) for part in command)], cwd=folder, env=environment)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}{prefix}", timeout=20) as http:
                if answers(server, http):
                    yield http
                    return
        finally:
            server.terminate()
            server.wait(30)
    raise AssertionError("the server does not start")
