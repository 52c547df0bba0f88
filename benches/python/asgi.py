"""Measures `townsquare.asgi` under uvicorn: requests a second, beside Starlette answering the same body and headers as a constant.

    pip install uvicorn starlette httptools uvloop
    python benches/python/asgi.py [--rounds N] [--seconds S] [--connections N] [--loop uvloop --http httptools]

wrk (Debian's package) sends the requests on one thread. Both servers run during the whole bench and get load in turns. The figure
to read is the ratio: how many times as long a request takes as its constant. The second ratio is that of the processor time of the
server's main thread, which other programs on the machine hardly change. Build with `maturin develop --profile dist`; figures of a
debug build mean nothing. Linux only.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

PATHS = {
    "discovery, the default page": "/api/miniapp-discovery",
    "a file of 4 KiB": "/files/assets/bench",
    "health": "/health",
}

# The headers that uvicorn adds.
SERVER_HEADERS = {"date", "server", "connection"}


def town() -> Callable[..., Coroutine[Any, Any, None]]:
    """The application of the library, with a public file."""
    import townsquare

    client = townsquare.Client.open(os.environ["BENCH_TOWN"], catalog_url="sample:")
    client.as_service().storage.upload("assets", "bench", bytes(range(256)) * 16)
    return townsquare.asgi(client)


def constant() -> Callable[..., Coroutine[Any, Any, None]]:
    """Starlette with the headers and bodies that the library answers."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    def route(path: str) -> Route:
        with urllib.request.urlopen(os.environ["BENCH_BASE"] + path) as response:
            body, headers = response.read(), {name: value for name, value in response.headers.items() if name.lower() not in SERVER_HEADERS}

        async def answer(request: Request) -> Response:
            return Response(body, headers=headers)

        return Route(path, answer)

    return Starlette(routes=[route(path) for path in PATHS.values()])


def started(factory: str, options: list[str], **environment: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server of one of the functions above, and its base URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    here = Path(__file__)
    command = [sys.executable, "-m", "uvicorn", "--factory", f"{here.stem}:{factory}", "--app-dir", str(here.parent)]
    command += ["--port", str(port), "--log-level", "warning", "--no-access-log", *options]
    server = subprocess.Popen(command, env={**os.environ, **environment})
    base = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(base + "/health").close()
            return server, base
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("a server does not start") from None
            time.sleep(0.1)


def main_thread(pid: int) -> float:
    """Seconds of processor time that the main thread of a process has had."""
    fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server: subprocess.Popen[bytes], url: str, connections: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and microseconds of the server's main thread for each."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:.0f}s", url]
    before = main_thread(server.pid)
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    busy = main_thread(server.pid) - before
    rate, count = (re.search(pattern, printed) for pattern in (r"Requests/sec:\s+([\d.]+)", r"(\d+) requests in"))
    if rate is None or count is None or "Non-2xx" in printed:
        raise SystemExit(printed)
    return float(rate[1]), busy / int(count[1]) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--loop", default="asyncio")
    parser.add_argument("--http", default="h11")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install wrk")
    options = ["--loop", arguments.loop, "--http", arguments.http]
    servers = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            servers.append(started("town", options, BENCH_TOWN=folder))
            servers.append(started("constant", options, BENCH_BASE=servers[0][1]))
            print(f"uvicorn with {arguments.loop} and {arguments.http}, {arguments.connections} connections; medians of {arguments.rounds} rounds")
            print(f"{'':30} {'requests a second':>24} {'us of the main thread':>28}")
            print(f"{'':30} {'library':>8} {'constant':>8} {'ratio':>6} {'library':>12} {'constant':>8} {'ratio':>6}")
            for name, path in PATHS.items():
                rounds: dict[str, list[tuple[float, float]]] = {base: [] for _, base in servers}
                for round in range(arguments.rounds):
                    for server, base in servers if round % 2 == 0 else servers[::-1]:
                        rounds[base].append(load(server, base + path, arguments.connections, arguments.seconds))
                (rate, busy), (most, least) = ([statistics.median(each) for each in zip(*of)] for of in rounds.values())
                print(f"{name:30} {rate:8.0f} {most:8.0f} {most / rate:6.2f} {busy:12.0f} {least:8.0f} {busy / least:6.2f}")
        finally:
            for server, _ in servers:
                server.terminate()
                server.wait(30)


if __name__ == "__main__":
    main()
