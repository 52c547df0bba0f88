"""What one durable write costs a Python program, beside the standard library's sqlite3 with the same durability.

    python benches/python/durable_writes.py [--rounds N] [--writes N]

Both sides write to a database that the library created, with `synchronous=FULL`, one row a transaction, and read the row
back by `RETURNING`. sqlite3 runs in a process of its own, because two SQLite libraries in one process drop each other's
file locks. The sides take turns; a figure is the median of all writes, in microseconds, and `ratio` is townsquare's over
sqlite3's. Build with `maturin develop --release`: a debug build measures nothing.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

COLUMNS = "id, name, description, owner_id, is_public, created_at, updated_at"


def times(write: Callable[[int], object], writes: int) -> list[float]:
    """Microseconds of each of `writes` calls."""
    result = []
    for number in range(writes):
        start = time.perf_counter_ns()
        write(number)
        result.append((time.perf_counter_ns() - start) / 1_000)
    return result


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def peer(file: str, writes: int) -> None:
    """Writes with sqlite3 and prints the times as JSON."""
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = ON")
    insert = f"INSERT INTO spaces ({COLUMNS}) VALUES (?, ?, NULL, NULL, 0, ?, ?) RETURNING {COLUMNS}"
    update = f"UPDATE spaces SET description = ?, updated_at = ? WHERE id = ? RETURNING {COLUMNS}"
    space = str(uuid.uuid4())
    database.execute(insert, (space, "A space", now(), now())).fetchall()

    def create(_: int) -> object:
        return database.execute(insert, (str(uuid.uuid4()), "A space", now(), now())).fetchall()

    def change(number: int) -> object:
        return database.execute(update, (f"text {number}", now(), space)).fetchall()

    print(json.dumps({"create_space": times(create, writes), "update_space": times(change, writes)}))
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--writes", type=int, default=500)
    parser.add_argument("--peer", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        peer(arguments.peer, arguments.writes)
        return
    import townsquare

    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours", Path(folder) / "theirs"
        townsquare.Client.open(theirs).close()
        command = [sys.executable, __file__, "--writes", str(arguments.writes), "--peer", str(theirs / "townsquare.db")]
        found: dict[str, dict[str, list[float]]] = {"townsquare": {}, "sqlite3": {}}
        with townsquare.Client.open(ours) as client:
            spaces = client.as_service().spaces
            space = spaces.create_space("A space").id
            for _ in range(arguments.rounds):
                rounds = {
                    "create_space": times(lambda _: spaces.create_space("A space"), arguments.writes),
                    "update_space": times(lambda n: spaces.update_space(space, description=f"text {n}"), arguments.writes),
                }
                for name, values in rounds.items():
                    found["townsquare"].setdefault(name, []).extend(values)
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                for name, values in json.loads(output).items():
                    found["sqlite3"].setdefault(name, []).extend(values)
    for name in ("create_space", "update_space"):
        townsquare_us, sqlite3_us = (statistics.median(found[side][name]) for side in ("townsquare", "sqlite3"))
        print(f"{name:14} townsquare {townsquare_us:7.1f}  sqlite3 {sqlite3_us:7.1f}  ratio {townsquare_us / sqlite3_us:.2f}")


if __name__ == "__main__":
    main()
