"""Reads on a standby that has stopped to follow (option `database_replica_url`): what a client reads there, and after a position."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import townsquare
from conftest import package, wait_until

_PAIR = os.environ.get("TOWNSQUARE_TEST_REPLICA", "").split()


@pytest.fixture
def writer() -> Iterator[townsquare.Client]:
    """A client without a replica, of a database with a public space, `old`."""
    if not _PAIR:
        pytest.skip("no PostgreSQL: run the suite by `cargo test`")
    with townsquare.Client.open(database_url=_PAIR[0]) as client:
        service = client.as_service()
        space = service.spaces.create_space("old", is_public=True)
        yield client
        service.spaces.delete_space(space.id)


@pytest.fixture
def reader(writer: townsquare.Client) -> Iterator[townsquare.Client]:
    """A client that reads on the standby. The standby follows no longer: the space is `new` on the primary alone."""
    options: dict[str, Any] = {"database_replica_wait": 0.001, "database_replica_max_lag": 3600}
    with townsquare.Client.open(database_url=_PAIR[0], database_replica_url=_PAIR[1], **options) as client:

        def is_answered_by_the_replica() -> bool:
            client.as_anonymous().spaces.get_public_spaces()
            return 'townsquare_replica_reads_total{answered_by="replica"} 0' not in client.metrics_text()

        wait_until(is_answered_by_the_replica)
        _command(writer, "pause")
        writer.as_service().spaces.update_space(_space(writer).id, name="new")
        yield client
    _command(writer, "resume")


def _command(writer: townsquare.Client, name: str) -> None:
    """Has the standby pause or resume."""
    service = writer.as_service()
    space = service.spaces.create_space(name)
    wait_until(lambda: service.spaces.get_space(space.id).name == "done")
    service.spaces.delete_space(space.id)


def _space(client: townsquare.Client) -> townsquare.PublicSpace:
    (space,) = client.spaces.get_public_spaces()
    return space


def test_a_client_reads_what_it_has_written(reader: townsquare.Client) -> None:
    reader.as_service().spaces.update_space(_space(reader.as_anonymous()).id, name="newer")
    assert _space(reader.as_anonymous()).name == "newer"


def test_a_position_lets_another_client_read_what_was_written(writer: townsquare.Client, reader: townsquare.Client) -> None:
    told = reader.as_anonymous()
    told.read_after(writer.read_position())
    assert _space(told).name == "new"
    other = reader.as_anonymous()
    with pytest.raises(townsquare.InvalidInputError):
        other.read_after("1-1-'; DROP TABLE spaces; --")
    assert _space(other).name == "old"


def test_routes_of_fastapi_read_after_the_position_in_the_header(writer: townsquare.Client, reader: townsquare.Client) -> None:
    fastapi, testing = package("fastapi"), package("fastapi.testclient")
    from townsquare.fastapi import POSITION_HEADER, caller

    app = fastapi.FastAPI()

    @app.get("/name")  # type: ignore[untyped-decorator]
    async def name(handle: Any = fastapi.Depends(caller(reader))) -> str:
        (space,) = await handle.spaces.get_public_spaces()
        return str(space.name)

    with testing.TestClient(app) as http:
        assert http.get("/name").json() == "old"
        assert http.get("/name", headers={POSITION_HEADER: writer.read_position()}).json() == "new"
        assert http.get("/name", headers={POSITION_HEADER: ""}).json() == "old"
        assert http.get("/name", headers={POSITION_HEADER: "yesterday"}).status_code == 400
        both = {POSITION_HEADER: writer.read_position(), "authorization": "Bearer wrong"}
        assert http.get("/name", headers=both).status_code == 401
