"""Measures discovery from Python: microseconds a call, the minimum and the median of many runs.

    python benches/python/discovery.py [--catalog URL] [--runs N]

The minimum is the cost; the distance to the median shows the noise of the machine. The same run measures lower bounds: a C
function with a keyword argument and a copy of a list; and a peer: the same result as dicts parsed from JSON. Build with
`maturin develop --release`; figures of a debug build mean nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import townsquare

SAMPLE = Path(__file__).parents[2] / "core" / "samples" / "catalog.json"


def measure(call: Callable[[], object], runs: int) -> tuple[float, float]:
    """Minimum and median in microseconds a call. One run takes about 10 ms."""
    calls, took = 1, 0.0
    while took < 0.01:
        calls *= 2
        took = timed(call, calls)
    each = [timed(call, calls) / calls * 1e6 for _ in range(runs)]
    return min(each), statistics.median(each)


def timed(call: Callable[[], object], calls: int) -> float:
    """Seconds that this many calls take."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--catalog", default=SAMPLE.as_uri(), help="file:// or http(s):// URL of a catalog")
    parser.add_argument("--runs", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, townsquare.Client.open(folder, catalog_url=arguments.catalog) as client:
        discovery = client.discovery
        apps = discovery.get_trending_mini_apps(limit=20)
        text = json.dumps([app.to_dict() for app in apps])
        print(f"{client.discovery.stats().total} apps, lists of {len(apps)}; microseconds a call: minimum, median")
        for name, call in {
            "get_trending_mini_apps(limit=20)": lambda: discovery.get_trending_mini_apps(limit=20),
            "get_trending_mini_apps(limit=1)": lambda: discovery.get_trending_mini_apps(limit=1),
            "the same 20, each name read": lambda: [app.name for app in discovery.get_trending_mini_apps(limit=20)],
            "search_mini_apps('chess', 20)": lambda: discovery.search_mini_apps("chess", 20),
            "stats()": discovery.stats,
            "floor: dict(limit=20)": lambda: dict(limit=20),
            "floor: copy of a list of 20": lambda: list(apps),
            "peer: 20 dicts from JSON text": lambda: json.loads(text),
        }.items():
            minimum, median = measure(call, arguments.runs)
            print(f"{name:36} {minimum:8.2f} {median:8.2f}")


if __name__ == "__main__":
    main()
