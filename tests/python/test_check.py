"""The check of a client: findings as records, with both clients (what a check finds is tested in Rust)."""

from __future__ import annotations

from pathlib import Path

import pytest
import townsquare
from conftest import run
from townsquare import Client, ClosedError, Finding

LARGE = bytes(70_000)


def plant_an_orphan(data_dir: Path) -> None:
    (data_dir / "files" / "assets" / "stray").write_bytes(b"of nobody")


def test_a_healthy_client_has_no_findings(client: Client, service: Client) -> None:
    service.storage.upload("assets", "large", LARGE)
    assert client.check() == [] and service.check(full=True) == []


def test_a_finding_is_a_record(client: Client, service: Client, data_dir: Path) -> None:
    service.storage.upload("assets", "large", LARGE)
    plant_an_orphan(data_dir)
    [found] = client.check()
    assert isinstance(found, Finding) and (found.code, found.severity) == ("orphan_object", "warning")
    assert found.message == "The object assets/stray belongs to no file." and "repair()" in found.advice
    assert found.to_dict() == {name: getattr(found, name) for name in ("code", "severity", "message", "advice")}
    assert client.check() == [found] and "orphan_object" in repr(found)


def test_full_reads_the_bytes(client: Client, service: Client, data_dir: Path) -> None:
    service.storage.upload("assets", "large", LARGE)
    with open(data_dir / "files" / "assets" / "large", "r+b") as file:
        file.write(b"x")
    assert client.check(full=False) == []
    assert [found.code for found in client.check(full=True)] == ["file_digest_differs"]


def test_full_is_a_flag_by_name(client: Client) -> None:
    with pytest.raises(TypeError):
        client.check(True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="full"):
        client.check(full="yes")  # type: ignore[arg-type]


def test_a_closed_client_is_not_checked(tmp_path: Path) -> None:
    client = Client.open(tmp_path / "town")
    client.close()
    with pytest.raises(ClosedError, match="^Check failed: The client is closed") as caught:
        client.check()
    assert caught.value.operation == "check"


def test_check_is_a_coroutine_of_the_async_client(tmp_path: Path) -> None:
    async def program() -> list[Finding]:
        async with townsquare.AsyncClient.open(tmp_path / "town") as client:
            assert await client.check() == []
            await (await client.as_service()).storage.upload("assets", "large", LARGE)
            plant_an_orphan(tmp_path / "town")
            return await client.check(full=True)

    assert [found.code for found in run(program())] == ["orphan_object"]
