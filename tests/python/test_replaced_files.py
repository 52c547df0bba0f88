"""A database that Python's own sqlite3 opens, or whose files are removed, while a client of this process has it open."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from uuid import UUID

import pytest
import townsquare
from conftest import wait_until


def stored(data_dir: Path) -> list[UUID]:
    """The ids of the spaces in the database file."""
    connection = sqlite3.connect(data_dir / "townsquare.db")
    try:
        return [UUID(id) for (id,) in connection.execute("SELECT id FROM spaces ORDER BY created_at, id")]
    finally:
        connection.close()


def write(service: townsquare.Client, count: int) -> list[UUID]:
    """The ids of the spaces that were created; a create may fail as unavailable only."""
    created = []
    for _ in range(count):
        try:
            created.append(service.spaces.create_space("x").id)
        except townsquare.UnavailableError as error:
            assert "was removed or replaced while it was open" in str(error)
    return created


def test_no_write_is_lost_after_sqlite3_of_this_process_closed_the_database(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    client = townsquare.Client.open(data_dir)
    service = client.as_service()
    created = write(service, 1)
    assert len(created) == 1
    # Closing it drops the locks of this process and removes the write-ahead log.
    assert stored(data_dir) == created
    assert not (data_dir / "townsquare.db-wal").exists()
    created += write(service, 50)
    client.close()
    assert stored(data_dir) == created

    with townsquare.Client.open(data_dir) as again:
        created += write(again.as_service(), 1)
    assert stored(data_dir) == created


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_client_whose_file_was_removed_writes_and_reads_no_more(tmp_path: Path, suffix: str) -> None:
    with townsquare.Client.open(tmp_path / "data") as client:
        service = client.as_service()
        space = service.spaces.create_space("x")
        (tmp_path / "data" / f"townsquare.db{suffix}").unlink()
        with pytest.raises(townsquare.UnavailableError, match="was removed or replaced") as refused:
            service.spaces.create_space("y")
        assert refused.value.code == "58030"

        def fails() -> bool:
            try:
                service.spaces.get_space(space.id)
            except townsquare.UnavailableError:
                return True
            return False

        wait_until(fails)
