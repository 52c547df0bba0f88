"""Backup and restore: copies of rows and files, nothing overwritten (DESIGN 3)."""

from __future__ import annotations

from pathlib import Path

import pytest
import townsquare
from conftest import run
from townsquare import Client, ConfigError, InvalidInputError


def test_a_backup_is_restored_into_a_new_folder(service: Client, tmp_path: Path) -> None:
    space = service.spaces.create_space("Harbor", is_public=True)
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"a": [1, 2.5, None]})
    copy = tmp_path / "copy.db"
    assert service.backup(copy) is None  # type: ignore[func-returns-value]
    service.spaces.delete_space(space.id)
    assert Client.restore(str(copy), tmp_path / "restored") is None
    with Client.open(tmp_path / "restored") as restored:
        assert restored.spaces.get_space(space.id) == space
        assert restored.fidgets.get_space_fidgets(space.id) == [fidget]


def test_backup_and_restore_overwrite_nothing(service: Client, tmp_path: Path, data_dir: Path) -> None:
    copy = tmp_path / "copy.db"
    service.backup(copy)
    with pytest.raises(InvalidInputError, match="^Backup failed: .*copy.db exists") as caught:
        service.backup(copy)
    assert caught.value.operation == "backup"
    with pytest.raises(ConfigError, match="^Restore failed: .*townsquare.db exists"):
        Client.restore(copy, data_dir)


def test_a_backup_to_a_path_that_cannot_be_written_raises_config_error(service: Client, tmp_path: Path) -> None:
    for target in (tmp_path / "missing" / "copy.db", "", f"{tmp_path}/a\0b"):
        with pytest.raises(ConfigError, match="^Backup failed: ") as caught:
            service.backup(target)
        assert caught.value.operation == "backup"


def test_restore_refuses_a_file_that_is_not_a_backup(tmp_path: Path) -> None:
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"no database" * 1000)
    for source in (noise, tmp_path / "missing.db", tmp_path):
        with pytest.raises(townsquare.Error, match="^Restore failed: ") as caught:
            Client.restore(source, tmp_path / "restored")
        assert caught.value.operation == "restore"
    assert not (tmp_path / "restored").exists()
    with pytest.raises(TypeError):
        Client.restore(5, tmp_path)  # type: ignore[arg-type]


def test_async_methods_behave_like_blocking_ones(tmp_path: Path) -> None:
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


def test_a_backup_takes_files_along(client: Client, service: Client, tmp_path: Path) -> None:
    stored = {"small": b"small", "videos/large": bytes(range(256)) * 1_024}
    for path, data in stored.items():
        service.storage.upload("assets", path, data)
    client.backup(tmp_path / "copy.db")
    service.storage.upload("assets", "videos/large", b"later")
    Client.restore(tmp_path / "copy.db", tmp_path / "restored")
    with Client.open(tmp_path / "restored") as restored:
        assert {info.path: restored.storage.download("assets", info.path) for info in restored.storage.list("assets")} == stored
