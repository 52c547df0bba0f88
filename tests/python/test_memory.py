"""A client with nothing on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import townsquare


@pytest.mark.parametrize("options", [{"data_dir": ":memory:"}, {"data_dir": "townsquare::memory:"}, {"database_url": "sqlite::memory:"}])
def test_nothing_appears_in_the_working_folder(options: dict[str, str], tmp_path: Path) -> None:
    with townsquare.Client.open(**options) as client, townsquare.Client.open(**options) as other:  # type: ignore[arg-type]
        client.auth.sign_up("ann@town.example", "correct horse")
        client.auth.sign_in("ann@town.example", "correct horse")
        space = client.spaces.create_space("Harbor", is_public=True)
        with client.realtime.changes(table="spaces") as changes:
            client.spaces.update_space(space.id, name="Mill")
            change = changes.next(20)
            assert change is not None and change.new is not None and change.new["name"] == "Mill"
        client.storage.upload("assets", "large", b"x" * 100_000)
        assert client.storage.download("assets", "large") == b"x" * 100_000
        assert other.spaces.get_public_spaces() == [] and not other.storage.exists("assets", "large")
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_what_needs_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(townsquare.ConfigError, match="persist_session"):
        townsquare.Client.open(":memory:", persist_session=True)
    with townsquare.Client.open(":memory:") as client:
        client.storage  # the database and the store are open
        client.backup(tmp_path / "copy.db")
    with pytest.raises(townsquare.ConfigError, match="not into memory"):
        townsquare.Client.restore(tmp_path / "copy.db", ":memory:")
    townsquare.Client.restore(tmp_path / "copy.db", tmp_path / "restored")
