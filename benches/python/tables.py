"""Measures table operations from Python: microseconds a call, the minimum and the median of many runs.

    python benches/python/tables.py [--spaces N] [--runs N]

The peer of `get_space` is the standard library's sqlite3 on the same row of the same file: one prepared statement, and the row
as a frozen dataclass, with texts only and with the same ids and times as a record. It runs in a child process, because two
SQLite libraries in one process drop each other's file locks. The minimum is the cost; the distance to the median shows the noise
of the machine. Build with `maturin develop --release`; figures of a debug build mean nothing.
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from discovery import measure

COLUMNS = "id, name, description, owner_id, is_public, created_at, updated_at"


@dataclass(frozen=True)
class Row:
    """A row as a program without the library would represent it."""

    id: Any
    name: str
    description: str | None
    owner_id: Any
    is_public: bool
    created_at: Any
    updated_at: Any


def show(name: str, call: Callable[[], object], runs: int) -> None:
    """Measures a call and prints its line."""
    minimum, median = measure(call, runs)
    print(f"{name:48} {minimum:8.2f} {median:8.2f}", flush=True)


def peer(file: str, space: str, runs: int) -> None:
    """Measures the standard library's sqlite3. The child process runs this."""
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)
    statement = f"SELECT {COLUMNS} FROM spaces WHERE id = ? AND is_public = 1"

    def fetch() -> Row:
        return Row(*database.execute(statement, (space,)).fetchone())

    def fetch_typed() -> Row:
        id, name, description, owner, public, created, updated = database.execute(statement, (space,)).fetchone()
        moments = [datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (created, updated)]
        return Row(UUID(id), name, description, owner and UUID(owner), bool(public), *moments)

    page = f"SELECT {COLUMNS} FROM spaces WHERE is_public = true ORDER BY created_at DESC, id LIMIT 20"
    show("peer: sqlite3, one row, a tuple", lambda: database.execute(statement, (space,)).fetchone(), runs)
    show("peer: sqlite3, one row, a dataclass of texts", fetch, runs)
    show("peer: sqlite3, one row, a dataclass of types", fetch_typed, runs)
    show("peer: sqlite3, 20 rows, dataclasses of texts", lambda: [Row(*row) for row in database.execute(page)], runs)
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spaces", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--peer", nargs=2, metavar=("FILE", "SPACE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        peer(*arguments.peer, arguments.runs)
        return
    import townsquare

    with tempfile.TemporaryDirectory() as folder, townsquare.Client.open(folder, durability="normal") as client:
        service = client.as_service()
        rows = [{"name": f"space {n}", "description": "What it is about", "is_public": True} for n in range(1_000)]
        for _ in range(max(1, arguments.spaces // 1_000)):
            space = service.spaces.create_spaces(rows)[500]
        config = {"list": list(range(50)), "deep": {"a": {"b": ["text", 1.5, None, True]}}}
        fidget = service.fidgets.create_fidget(space.id, "clock", config=config)
        text, spaces = str(space.id), client.spaces
        print(f"{arguments.spaces} spaces; microseconds a call: minimum, median")
        show("get_space(text)", lambda: spaces.get_space(text), arguments.runs)
        show("get_space(UUID)", lambda: spaces.get_space(space.id), arguments.runs)
        show("get_space(text), by the service", lambda: service.spaces.get_space(text), arguments.runs)
        show("get_space(text).to_dict(), every attribute read", lambda: spaces.get_space(text).to_dict(), arguments.runs)
        command = [sys.executable, str(Path(__file__)), "--runs", str(arguments.runs), "--peer"]
        subprocess.run([*command, str(Path(folder) / "townsquare.db"), text], check=True)
        show("get_public_spaces(20)", lambda: spaces.get_public_spaces(20), arguments.runs)
        show("get_fidget(id).config, 60 values", lambda: client.fidgets.get_fidget(fidget.id).config, arguments.runs)
        show("update_fidget(id, config=60 values), normal", lambda: service.fidgets.update_fidget(fidget.id, config=config), 10)


if __name__ == "__main__":
    main()
