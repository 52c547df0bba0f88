"""Moving a database with its files into an empty place: progress, errors, resuming, both clients."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import townsquare
from conftest import run
from townsquare import AsyncClient, Client, ConfigError, ConflictError, Error, MoveReport


@pytest.fixture
def town(client: Client, service: Client) -> Client:
    """A client with a user, spaces and files on both sides of the limit of inline files."""
    client.auth.sign_up("ann@town.example", "correct horse")
    for number in range(3):
        service.spaces.create_space(f"Space {number}")
    service.storage.upload("assets", "small", b"small", metadata={"a": "b"})
    service.storage.upload("assets", "large", b"x" * 100_000)
    return client


def test_a_moved_town_has_everything(town: Client, tmp_path: Path) -> None:
    session = town.auth.create_session("ann@town.example", "correct horse")
    seen: list[tuple[int, int]] = []
    report = town.move_to(data_dir=tmp_path / "moved", progress=lambda done, total: seen.append((done, total)))
    assert isinstance(report, MoveReport)
    assert (report.files, report.bytes, report.resumed) == (2, 100_005, False)
    assert report.seconds >= 0 and report.rows["users"] == 1 and report.rows["spaces"] == 3 and report.rows["sessions"] == 1
    assert seen == sorted(seen) and seen[-1] == (sum(report.rows.values()) + 2,) * 2
    assert report.to_dict()["rows"] == report.rows
    with Client.open(tmp_path / "moved") as moved:
        assert moved.storage.download("assets", "large") == b"x" * 100_000
        assert moved.storage.stat("assets", "small") == town.storage.stat("assets", "small")
        with moved.as_user(session.access_token) as ann:
            assert ann.auth.get_session() is not None
        assert moved.auth.create_session("ann@town.example", "correct horse").user == session.user


def test_an_exception_in_progress_stops_the_move_and_a_later_call_resumes(town: Client, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > 2:
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        town.move_to(data_dir=tmp_path / "moved", progress=stop)
    with pytest.raises(ConfigError, match="^Open failed: .*unfinished move"):
        Client.open(tmp_path / "moved")
    assert town.move_to(data_dir=tmp_path / "moved").resumed
    with Client.open(tmp_path / "moved") as moved:
        assert moved.storage.download("assets", "small") == b"small"


def test_sessions_stay_behind(town: Client, tmp_path: Path) -> None:
    session = town.auth.create_session("ann@town.example", "correct horse")
    report = town.move_to(data_dir=tmp_path / "moved", sessions=False)
    assert "sessions" not in report.rows
    with Client.open(tmp_path / "moved") as moved, pytest.raises(townsquare.AuthError):
        moved.as_user(session.access_token)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "needs the option data_dir or database_url"),
        ({"data_dir": ":memory:"}, "in memory"),
        ({"data_dir": "moved", "storage_url": "memory:"}, "in memory"),
        ({"data_dir": "moved", "no_option": 1}, "no_option"),
    ],
)
def test_a_target_that_cannot_be_one_is_refused(town: Client, tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    for call in (town.move_to, town.check_move):
        with pytest.raises(ConfigError, match=f"^Move failed: .*{sentence}") as caught:
            call(**options)
        assert caught.value.operation == "move_to"
    assert not (tmp_path / "moved").exists()


def test_a_target_with_rows_is_refused(town: Client, tmp_path: Path, data_dir: Path) -> None:
    with Client.open(tmp_path / "other") as other:
        other.as_service().spaces.create_space("mine")
    for target, sentence in ((tmp_path / "other", "rows in spaces"), (data_dir, "another database than its source")):
        for call in (town.move_to, town.check_move):
            with pytest.raises(ConfigError, match=f"^Move failed: .*{sentence}"):
                call(data_dir=target)


def test_a_target_is_checked_and_not_changed(town: Client, tmp_path: Path) -> None:
    target = tmp_path / "moved"
    assert town.check_move(data_dir=target) == "new"
    assert not target.exists()
    Client.open(target).close()
    assert town.check_move(data_dir=str(target), max_owner_files=5) == "empty"

    def stop(done: int, total: int) -> None:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        town.move_to(data_dir=target, progress=stop)
    assert town.check_move(data_dir=target) == "unfinished"
    assert town.move_to(data_dir=target).resumed
    with pytest.raises(ConfigError, match="this one has rows in "):
        town.check_move(data_dir=target)
    town.close()
    with pytest.raises(townsquare.ClosedError, match="^Move failed: "):
        town.check_move(data_dir=tmp_path / "new")


def test_a_source_that_is_written_all_the_time_is_named(town: Client, service: Client, tmp_path: Path) -> None:
    numbers = iter(range(1_000, 0, -1))

    def write(done: int, total: int) -> None:
        if done == total:
            service.spaces.create_space("late", id=f"00000000-0000-4000-8000-{next(numbers):012}")

    with pytest.raises(ConflictError, match="^Move failed: .*in the tables .*spaces"):
        town.move_to(data_dir=tmp_path / "moved", progress=write)


def test_the_async_client_moves(town: Client, data_dir: Path, tmp_path: Path) -> None:
    town.close()

    async def move() -> None:
        async with AsyncClient.open(data_dir) as client:
            seen: list[int] = []
            assert await client.check_move(data_dir=tmp_path / "moved") == "new"
            report = await client.move_to(data_dir=tmp_path / "moved", progress=lambda done, total: seen.append(done))
            assert report.files == 2 and seen
            with pytest.raises(ConfigError):
                await client.move_to(data_dir=tmp_path / "moved")
            with pytest.raises(ConfigError):
                await client.check_move(data_dir=tmp_path / "moved")
        async with AsyncClient.open(tmp_path / "moved") as moved:
            assert await moved.storage.download("assets", "small") == b"small"

    run(move())


def test_a_move_follows_a_source_that_is_written(town: Client, service: Client, data_dir: Path, tmp_path: Path) -> None:
    written: list[UUID] = []

    def write() -> Error:
        for number in itertools.count():
            try:
                written.append(service.spaces.create_space(f"{number}").id)
            except Error as error:
                return error
        raise AssertionError

    with ThreadPoolExecutor(1) as pool:
        refusal = pool.submit(write)
        report = town.move_to(data_dir=tmp_path / "moved", follow=timedelta(seconds=10))
        error = refusal.result()
    assert isinstance(error, townsquare.UnavailableError) and error.code == "25006"
    assert "has moved to another place" in str(error) and not error.is_retryable
    with Client.open(tmp_path / "moved") as moved:
        found = {space.id for space in (moved.as_service().spaces.get_space(id) for id in written)}
        assert found == set(written) and report.rows["spaces"] == len(written) + 3
    assert [finding.code for finding in town.as_service().check()] == ["moved_away"]
    assert town.reopen_for_writes() is True
    assert town.reopen_for_writes() is False
    service.spaces.create_space("late")
    for follow in (-1, float("nan")):
        with pytest.raises(townsquare.InvalidInputError, match="follow is a number of seconds from 0"):
            town.move_to(data_dir=tmp_path / "other", follow=follow)
    with pytest.raises(ConflictError, match=r"in a pause of 0\.0 s"):
        town.move_to(data_dir=tmp_path / "other", follow=0)

    async def move() -> None:
        async with AsyncClient.open(data_dir) as client:
            assert (await client.move_to(data_dir=tmp_path / "other", follow=10)).resumed
            assert await client.reopen_for_writes()

    run(move())
