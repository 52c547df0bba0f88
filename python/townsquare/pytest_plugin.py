"""Fixtures for pytest, which loads them where townsquare is installed.

    def test_a_space_is_public(townsquare_client):
        service = townsquare_client.as_service()
        service.spaces.create_space("Harbor", is_public=True)
        assert [space.name for space in townsquare_client.spaces.get_public_spaces()] == ["Harbor"]

    def test_a_session_expires(townsquare_client, townsquare_clock):
        townsquare_client.auth.sign_up("ann@town.example", "correct horse")
        session = townsquare_client.auth.create_session("ann@town.example", "correct horse")
        townsquare_clock.advance(timedelta(hours=2))
        with pytest.raises(townsquare.AuthError):
            townsquare_client.as_user(session.access_token).spaces.create_space("Harbor")
"""

from __future__ import annotations

import os
from typing import Iterator

import pytest

from ._async_client import AsyncClient
from ._client import Client
from ._typed import OpenOptions
from ._web import request_client
from .testing import ManualClock, open_with_clock


@pytest.fixture
def townsquare_options() -> OpenOptions:
    """Further options of `townsquare_client`. A project may define this fixture anew."""
    return {}


@pytest.fixture
def townsquare_clock() -> ManualClock:
    """The time of `townsquare_client` in the tests that ask for it. It stands still until the test moves it."""
    return ManualClock()


@pytest.fixture
def townsquare_client(request: pytest.FixtureRequest, townsquare_options: OpenOptions) -> Iterator[Client]:
    """An anonymous client with nothing on the disk and the sample catalog. The variables TOWNSQUARE_* do not count."""
    options: OpenOptions = {"catalog_url": "sample:", **townsquare_options}
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("TOWNSQUARE_")]:
            environment.delenv(name)
        if "townsquare_clock" in request.fixturenames:
            client = open_with_clock(request.getfixturevalue("townsquare_clock"), ":memory:", **options)
        else:
            client = Client.open(":memory:", **options)
    with client:
        yield client


@pytest.fixture
def townsquare_async_client(townsquare_client: Client) -> AsyncClient:
    """`townsquare_client` for tests of asyncio: the same client, with methods that return coroutines."""
    return request_client(townsquare_client, None)
