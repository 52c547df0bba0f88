"""The time from the return of a write to the entry of a Python callback, with one writer on SQLite.

    python benches/python/realtime.py [--writes N]

The floor is a Python thread that waits in a queue and is woken. Microseconds, the median and the 99th percentile. Build with
`maturin develop --release`; figures of a debug build mean nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from queue import SimpleQueue

import townsquare


def report(name: str, taken: list[int]) -> None:
    taken.sort()
    p50, p99 = (taken[(len(taken) - 1) * share // 100] / 1_000 for share in (50, 99))
    print(f"{name:48} p50 {p50:7.1f}  p99 {p99:7.1f}  ({len(taken)})")


def callbacks(writes: int) -> list[int]:
    entered: SimpleQueue[int] = SimpleQueue()
    taken = []
    with tempfile.TemporaryDirectory() as folder, townsquare.Client.open(folder) as client:
        service = client.as_service()
        service.realtime.subscribe("latency", lambda _: entered.put(time.perf_counter_ns()), table="spaces")
        for _ in range(writes):
            service.spaces.create_space("A space")
            returned = time.perf_counter_ns()
            taken.append(max(0, entered.get(timeout=30) - returned))
    return taken


def wake_ups(writes: int) -> list[int]:
    sent: SimpleQueue[int] = SimpleQueue()
    entered: SimpleQueue[int] = SimpleQueue()

    def wait() -> None:
        while sent.get():
            entered.put(time.perf_counter_ns())

    waiting = threading.Thread(target=wait)
    waiting.start()
    taken = []
    for _ in range(writes):
        time.sleep(0.000_2)  # The other thread falls asleep meanwhile, as during a commit.
        start = time.perf_counter_ns()
        sent.put(start)
        taken.append(entered.get(timeout=30) - start)
    sent.put(0)
    waiting.join()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writes", type=int, default=3_000)
    writes = parser.parse_args().writes
    report("SQLite: commit returned to callback entered", callbacks(writes))
    report("floor: a thread that waits in a queue is woken", wake_ups(writes))


if __name__ == "__main__":
    main()
