"""What may befall a database, as Python hears of it (SPEC 7): the same kinds and SQLSTATEs as in Rust."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
import townsquare
from townsquare import Client

IN_SQLITE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
for statement in sys.argv[2:]:
    print(database.execute(statement).fetchall())
database.commit()
"""


def run(program: str, *arguments: object) -> str:
    """What a Python of its own prints: it may be limited, and two SQLite libraries in one process drop each other's locks."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout.strip()


def test_a_dropped_table_is_named_so(service: Client, client: Client, town: Path) -> None:
    space = service.spaces.create_space("Harbor")
    run(IN_SQLITE, town / "townsquare.db", "DROP TABLE fidgets", "DROP TABLE spaces")
    for call, prefix in (
        (lambda: service.spaces.get_space(space.id), "Get space"),
        (lambda: service.spaces.create_space("x"), "Create space"),
        (lambda: client.spaces.get_public_spaces(), "Get public spaces"),
        (lambda: client.fidgets.get_fidget(uuid4()), "Get fidget"),
    ):
        with pytest.raises(townsquare.Error) as caught:
            call()
        assert str(caught.value) == f"{prefix} failed: Database table not found"
        assert (type(caught.value), caught.value.kind, caught.value.code) == (townsquare.Error, "table_missing", "42P01")


def test_what_a_suite_leaves_behind_is_sound(service: Client, client: Client, town: Path) -> None:
    space = service.spaces.create_space("Harbor")
    service.fidgets.create_fidget(space.id, "clock")
    service.spaces.delete_space(space.id)
    client.close()
    assert run(IN_SQLITE, town / "townsquare.db", "PRAGMA integrity_check", "PRAGMA foreign_key_check") == "[('ok',)]\n[]"


FILLING = """
import resource, sys, townsquare
with townsquare.Client.open(sys.argv[1]) as client:
    service = client.as_service()
    space = service.spaces.create_space("Harbor")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, resource.RLIM_INFINITY))
    try:
        while True:
            service.spaces.create_space("large", description="x" * 100_000)
    except townsquare.UnavailableError as error:
        assert str(error).startswith("Create space failed: Database error: "), error
        print(error.kind, error.code, error.is_retryable)
    assert service.spaces.get_space(space.id) == space
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system limits no file sizes")
def test_a_file_that_may_not_grow_is_unavailable_and_reads_go_on(tmp_path: Path) -> None:
    assert run(FILLING, tmp_path / "small") == "unavailable 58030 True"


OPENING = """
import os, sys, townsquare
if os.geteuid() == 0:
    os.setuid(65534)  # nothing is read-only to root
try:
    townsquare.Client.open(sys.argv[1])
except townsquare.ConfigError as error:
    assert str(error).startswith("Open failed: Cannot use ") and "townsquare.db" in str(error), error
    print(error.code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no modes of files")
def test_a_read_only_file_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    Client.open(folder).close()
    for closed in (*folder.iterdir(), folder):
        closed.chmod(0o555)
    for above in tmp_path.parents:
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    assert run(OPENING, folder) in ("25006", "58030")
    folder.chmod(0o755)
