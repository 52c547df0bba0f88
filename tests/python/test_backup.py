"""Backup and restore from Python: whole copies under writers, and nothing overwritten."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import townsquare
from conftest import run
from townsquare import Client, ConfigError, InvalidInputError


def test_a_copy_is_put_back_into_a_folder_of_its_own(service: Client, tmp_path: Path) -> None:
    space = service.spaces.create_space("Harbor", is_public=True)
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"a": [1, 2.5, None]})
    copy = tmp_path / "copy.db"
    assert service.backup(copy) is None  # type: ignore[func-returns-value]
    service.spaces.delete_space(space.id)
    assert Client.restore(str(copy), tmp_path / "restored") is None
    with Client.open(tmp_path / "restored") as restored:
        assert restored.spaces.get_space(space.id) == space
        assert restored.fidgets.get_space_fidgets(space.id) == [fidget]


def test_a_copy_is_whole_while_writers_go_on(service: Client, tmp_path: Path) -> None:
    stop = threading.Event()
    failures: list[Exception] = []

    def write() -> None:
        while not stop.is_set():
            try:
                service.spaces.create_spaces([{"name": "pair"}, {"name": "pair", "is_public": True}])
            except Exception as error:
                failures.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        for number in range(3):
            service.backup(tmp_path / f"{number}.db")
    finally:
        stop.set()
        for writer in writers:
            writer.join(30)
    assert not failures
    for number in range(3):
        townsquare.Client.restore(tmp_path / f"{number}.db", tmp_path / str(number))
        Client.open(tmp_path / str(number)).close()


def test_nothing_is_overwritten(service: Client, tmp_path: Path, town: Path) -> None:
    copy = tmp_path / "copy.db"
    service.backup(copy)
    with pytest.raises(InvalidInputError, match="^Backup failed: .*copy.db exists") as caught:
        service.backup(copy)
    assert caught.value.operation == "backup"
    with pytest.raises(ConfigError, match="^Restore failed: .*townsquare.db exists"):
        Client.restore(copy, town)


def test_what_is_no_copy_is_refused(tmp_path: Path) -> None:
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"no database" * 1000)
    for source in (noise, tmp_path / "missing.db", tmp_path):
        with pytest.raises(townsquare.Error, match="^Restore failed: ") as caught:
            Client.restore(source, tmp_path / "restored")
        assert caught.value.operation == "restore"
    assert not (tmp_path / "restored").exists()
    with pytest.raises(TypeError):
        Client.restore(5, tmp_path)  # type: ignore[arg-type]


def test_the_same_through_coroutines(tmp_path: Path) -> None:
    async def main() -> None:
        async with await townsquare.AsyncClient.open(tmp_path / "data") as client:
            space = await (await client.as_service()).spaces.create_space("Harbor", is_public=True)
            await client.backup(tmp_path / "copy.db")
            with pytest.raises(InvalidInputError):
                await client.backup(tmp_path / "copy.db")
            await townsquare.AsyncClient.restore(tmp_path / "copy.db", tmp_path / "restored")
            with pytest.raises(ConfigError):
                await townsquare.AsyncClient.restore(tmp_path / "copy.db", tmp_path / "restored")
        async with await townsquare.AsyncClient.open(tmp_path / "restored") as restored:
            assert await restored.spaces.get_space(space.id) == space

    run(main())
