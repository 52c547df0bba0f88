"""Database faults: the exceptions have the kinds and SQLSTATEs of the Rust errors (SPEC 7)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from uuid import uuid4

import pytest
import townsquare
from conftest import run_python
from townsquare import Client

IN_SQLITE = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
for statement in sys.argv[2:]:
    print(database.execute(statement).fetchall())
database.commit()
"""


def output(program: str, *arguments: object) -> str:
    """What a child process prints. A child may be limited, and may use another SQLite library without harm to file locks."""
    child = run_python(program, *arguments)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


def test_a_dropped_table_is_table_missing(service: Client, client: Client, data_dir: Path) -> None:
    space = service.spaces.create_space("Harbor")
    output(IN_SQLITE, data_dir / "townsquare.db", "DROP TABLE fidgets", "DROP TABLE spaces")
    for call, prefix in (
        (lambda: service.spaces.get_space(space.id), "Get space"),
        (lambda: service.spaces.create_space("x"), "Create space"),
        (lambda: client.spaces.get_public_spaces(), "Get public spaces"),
        (lambda: client.fidgets.get_fidget(uuid4()), "Get fidget"),
    ):
        with pytest.raises(townsquare.Error) as caught:
            call()
        assert str(caught.value).startswith(f"{prefix} failed: Database table not found: ")
        assert (type(caught.value), caught.value.kind, caught.value.code) == (townsquare.Error, "table_missing", "42P01")


def test_a_closed_database_passes_its_integrity_check(service: Client, client: Client, data_dir: Path) -> None:
    space = service.spaces.create_space("Harbor")
    service.fidgets.create_fidget(space.id, "clock")
    service.spaces.delete_space(space.id)
    client.close()
    assert output(IN_SQLITE, data_dir / "townsquare.db", "PRAGMA integrity_check", "PRAGMA foreign_key_check") == "[('ok',)]\n[]"


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


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no RLIMIT_FSIZE")
def test_a_full_disk_is_unavailable_for_writes_and_reads_go_on(tmp_path: Path) -> None:
    assert output(FILLING, tmp_path / "small") == "unavailable 58030 True"


OPENING = """
import os, sys, townsquare
if os.geteuid() == 0:
    os.setuid(65534)  # root may write read-only files
try:
    townsquare.Client.open(sys.argv[1])
except townsquare.ConfigError as error:
    assert str(error).startswith("Open failed: Cannot use ") and "townsquare.db" in str(error), error
    print(error.code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_read_only_database_is_a_config_error_that_names_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    Client.open(folder).close()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555)
    for above in tmp_path.parents:
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    assert output(OPENING, folder) in ("25006", "58030")
    folder.chmod(0o755)


WRITING = """
import os, sys, townsquare
if os.geteuid() == 0:
    os.setuid(65534)  # root may write read-only files
with townsquare.Client.open(sys.argv[1]) as client:
    service = client.as_service()
    try:
        service.spaces.create_space("x")
    except townsquare.UnavailableError as error:
        print(error.kind, error.code, error.is_retryable, len(service.spaces.get_public_spaces()))
        assert error.explanation.startswith("Check that this process may write to the database file")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")
def test_a_write_to_a_read_only_file_is_unavailable_and_reads_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "readable"
    with Client.open(folder) as client:
        client.as_service().spaces.create_space("Harbor", is_public=True)
    (folder / "townsquare.db").chmod(0o444)
    # `close` leaves it as room for a full disk, and only its owner can open it.
    (folder / "townsquare.db-shm").unlink(missing_ok=True)
    folder.chmod(0o777)
    for above in tmp_path.parents:
        if above.stat().st_uid == os.geteuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
    tmp_path.chmod(0o755)
    assert output(WRITING, folder) == "unavailable 25006 True 1"
