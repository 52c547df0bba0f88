"""The fixtures for pytest, in a run of pytest of their own, and the clock of tests."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from importlib.metadata import distributions
from pathlib import Path

import pytest

import townsquare
from townsquare import AuthError, InvalidInputError, RateLimitedError
from townsquare.testing import ManualClock, open_with_clock

SITE = Path(townsquare.__file__).parent.parent

TESTS = """
from datetime import timedelta
import asyncio, pytest, townsquare

def test_a_client(townsquare_client, tmp_path):
    assert isinstance(townsquare_client, townsquare.Client)
    assert len(townsquare_client.discovery.search_mini_apps("chess")) > 0
    service = townsquare_client.as_service()
    first, second = (service.spaces.create_space(name, is_public=True) for name in ("Harbor", "Quay"))
    assert first.created_at < second.created_at
    assert [space.name for space in townsquare_client.spaces.get_public_spaces()] == ["Quay", "Harbor"]

def test_each_test_has_its_own(townsquare_client):
    assert townsquare_client.spaces.get_public_spaces() == []

def test_a_clock(townsquare_client, townsquare_clock):
    townsquare_client.auth.sign_up("ann@town.example", "correct horse")
    session = townsquare_client.auth.create_session("ann@town.example", "correct horse")
    townsquare_client.as_user(session.access_token).spaces.create_space("Harbor")
    townsquare_clock.advance(timedelta(hours=2))
    with pytest.raises(townsquare.AuthError):
        townsquare_client.as_user(session.access_token).spaces.create_space("Harbor")

def test_coroutines(townsquare_client, townsquare_async_client):
    async def create():
        townsquare_client.auth.sign_up("ann@town.example", "correct horse")
        await townsquare_async_client.auth.sign_in("ann@town.example", "correct horse")
        return await townsquare_async_client.spaces.create_space("Harbor", is_public=True)

    assert isinstance(townsquare_async_client, townsquare.AsyncClient)
    space = asyncio.run(create())
    assert townsquare_client.spaces.get_space(space.id).name == "Harbor"

class TestOptions:
    @pytest.fixture
    def townsquare_options(self):
        return {"max_owner_spaces": 1}

    def test_options(self, townsquare_client):
        townsquare_client.auth.sign_up("ann@town.example", "correct horse")
        townsquare_client.auth.sign_in("ann@town.example", "correct horse")
        townsquare_client.spaces.create_space("Harbor")
        with pytest.raises(townsquare.QuotaExceededError):
            townsquare_client.spaces.create_space("Quay")
"""


def is_installed() -> bool:
    """Whether the package has its metadata beside it, as an installed wheel has."""
    return any(each.metadata["Name"] == "townsquare" for each in distributions(path=[str(SITE)]))


def test_the_fixtures_work(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(TESTS)
    # An installed package needs no option: pytest finds its entry point.
    plugin = [] if is_installed() else ["-p", "townsquare.pytest_plugin"]
    environment = {**os.environ, "PYTHONPATH": str(SITE), "TOWNSQUARE_DATABASE_URL": "postgres://nowhere.example/x"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, str(tmp_path)]
    child = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert child.returncode == 0 and "5 passed" in child.stdout, child.stdout + child.stderr
    assert [file.name for file in tmp_path.iterdir() if not file.name.startswith("__")] == ["test_sample.py"]


def test_the_wheel_names_the_plugin() -> None:
    project = Path(__file__).parents[2] / "python" / "pyproject.toml"
    assert '[project.entry-points.pytest11]\ntownsquare = "townsquare.pytest_plugin"\n' in project.read_text()


def test_a_manual_clock_moves_when_the_test_moves_it() -> None:
    clock = ManualClock(datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))))
    assert clock.now == datetime(2026, 1, 1, 23, tzinfo=timezone.utc) and "2026-01-01T23:00:00Z" in repr(clock)
    with open_with_clock(clock, ":memory:", catalog_api_key="") as client:
        service = client.as_service()
        first, second = service.spaces.create_space("Harbor"), service.spaces.create_space("Quay")
        assert first.created_at == second.created_at == clock.now
        clock.advance(1.5)
        assert service.spaces.create_space("Later").created_at - first.created_at == timedelta(seconds=1.5)
        # A lockout ends by the clock.
        client.auth.sign_up("ann@town.example", "correct horse")
        for _ in range(10):
            with pytest.raises(AuthError):
                client.auth.sign_in("ann@town.example", "wrong horse")
        with pytest.raises(RateLimitedError) as caught:
            client.auth.sign_in("ann@town.example", "correct horse")
        clock.set(clock.now + timedelta(seconds=caught.value.retry_after + 1))
        assert client.auth.sign_in("ann@town.example", "correct horse")
        clock.set(datetime(2020, 1, 1, tzinfo=timezone.utc))
        assert service.spaces.create_space("Earlier").created_at.year == 2020
    assert abs(ManualClock().now - datetime.now(timezone.utc)) < timedelta(minutes=1)


def test_wrong_times_are_refused_by_name() -> None:
    clock = ManualClock()
    for wrong in (-1, timedelta(seconds=-1), float("nan")):
        with pytest.raises(InvalidInputError, match="^by is a number of seconds from 0"):
            clock.advance(wrong)
    for name in ("text", 5, datetime(2026, 1, 1)):
        with pytest.raises(TypeError, match="^now: expected an aware datetime"):
            clock.set(name)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="^now: expected an aware datetime"):
            ManualClock(name)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^clock: "):
        open_with_clock(5, ":memory:")  # type: ignore[arg-type]
    with pytest.raises(townsquare.ConfigError, match="colour"):
        open_with_clock(clock, ":memory:", colour="red")  # type: ignore[call-arg]
