"""`exists`, `iter` and `delete_prefix`: values, errors, and what strangers may not do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import townsquare
from conftest import remote_options
from townsquare import Client, NotFoundError


@pytest.fixture(params=["local", "memory", "remote"])
def town(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    """A client on SQLite and a folder, in memory, and on PostgreSQL and S3."""
    data_dir = ":memory:" if request.param == "memory" else str(tmp_path / "town")
    client = Client.open(data_dir, **(remote_options() if request.param == "remote" else {}))
    request.addfinalizer(client.close)
    return client


def of_user(town: Client, name: str) -> Client:
    service = town.as_service()
    service.auth.sign_up(f"{name}@town.example", "correct horse")
    return town.as_user(service.auth.create_session(f"{name}@town.example", "correct horse").access_token)


def test_a_prefix_is_deleted_and_files_exist_or_not(town: Client) -> None:
    ann = of_user(town, "ann").storage
    for path in ("old/a", "old/b", "older"):
        ann.upload("assets", path, b"x" * 100_000)
    assert ann.exists("assets", "old/a") is True and ann.exists("assets", "old") is False
    assert ann.delete_prefix("assets", "old/") == 2 and ann.delete_prefix("assets", "old/") == 0
    assert [file.path for file in ann.iter("assets")] == ["older"] and ann.exists("assets", "old/a") is False
    assert ann.delete_prefix("assets", "") == 1


def test_iterating_reads_pages(town: Client) -> None:
    service = town.as_service().storage
    for number in range(25):
        service.upload("assets", f"a/{number:02}", b"x")
    service.upload("assets", "b", b"x")
    everything = service.list("assets", limit=1_000)
    for size in (1, 5, 25, 1_000):
        assert list(town.storage.iter("assets", page_size=size)) == everything
    assert list(town.storage.iter("assets", "a/", 7)) == everything[:25]
    files = town.storage.iter("assets")
    assert iter(files) is files and next(files) == everything[0]


def test_strangers_delete_nothing(town: Client) -> None:
    ann, bob = of_user(town, "ann"), of_user(town, "bob")
    ann.storage.upload("assets", "shared/a", b"x")
    bob.storage.upload("assets", "shared/b", b"x")
    user = ann.auth.get_session()
    assert user is not None
    ann.storage.upload("private", f"{user.user.id}/diary", b"x")
    for caller, status in ((ann, 403), (bob, 403), (town, 401)):
        with pytest.raises(townsquare.AuthError, match="^Delete files failed: ") as refused:
            caller.storage.delete_prefix("assets", "shared/")
        assert refused.value.status == status
    for caller in (bob, town):
        assert caller.storage.delete_prefix("private", "") == 0 and not list(caller.storage.iter("private"))
        assert not caller.storage.exists("private", f"{user.user.id}/diary")
    assert ann.storage.exists("private", f"{user.user.id}/diary")
    assert town.as_service().storage.delete_prefix("assets", "shared/") == 2


def test_bad_arguments(town: Client) -> None:
    storage = town.as_service().storage
    for call in (
        lambda: storage.exists("elsewhere", "a"),
        lambda: storage.delete_prefix("elsewhere", ""),
        lambda: next(storage.iter("elsewhere")),
    ):
        with pytest.raises(NotFoundError):
            call()
    for refused in (
        lambda: storage.exists("assets", "a/"),
        lambda: storage.delete_prefix("assets", ".."),
        lambda: next(storage.iter("assets", "/")),
        lambda: next(storage.iter("assets", page_size=0)),
        lambda: next(storage.iter("assets", page_size=1_001)),
    ):
        with pytest.raises(townsquare.InvalidInputError):
            refused()
    with pytest.raises(TypeError):
        storage.delete_prefix("assets")  # type: ignore[call-arg]


def test_the_async_client_has_the_same_methods() -> None:
    async def main() -> None:
        async with townsquare.AsyncClient.open(":memory:") as client:
            storage = (await client.as_service()).storage
            for number in range(5):
                await storage.upload("assets", f"a/{number}", b"x")
            assert [file.path async for file in storage.iter("assets", "a/", 2)] == [f"a/{number}" for number in range(5)]
            assert await storage.exists("assets", "a/0") and await storage.delete_prefix("assets", "a/") == 5
            assert not await storage.exists("assets", "a/0")
            with pytest.raises(townsquare.AuthError):
                await storage.upload("assets", "b", b"x")
                await client.storage.delete_prefix("assets", "b")

    asyncio.run(main())
