"""Values at the edge of their types: times that Python has no datetime for, and text that is not Unicode."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import townsquare
from conftest import run_python
from townsquare import Client, ConfigError, InvalidInputError

LONE_SURROGATE = "\ud800"
FIRST = datetime.min.replace(tzinfo=timezone.utc)
LAST = datetime(9999, 12, 30, 22, 0, 0, 999999, tzinfo=timezone.utc)
SET_TIMES = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
database.execute("PRAGMA ignore_check_constraints = ON")
for id, time in zip(sys.argv[2::2], sys.argv[3::2]):
    database.execute("UPDATE spaces SET created_at = ? WHERE id = ?", (time, id))
database.commit()
"""


def test_a_time_that_python_cannot_hold_reads_as_the_nearest_datetime(service: Client, client: Client, data_dir: Path) -> None:
    stored = {
        "0000-05-06T00:00:00.000000Z": FIRST,
        "-000043-03-15T00:00:00.000000Z": FIRST,
        "-infinity": FIRST,
        "0001-01-01T00:00:00.000000Z": FIRST,
        "9999-12-31T23:59:59.999999Z": LAST,
        "infinity": LAST,
    }
    spaces = {service.spaces.create_space(time, is_public=True).id: time for time in stored}
    arguments = [text for id, time in spaces.items() for text in (str(id), time)]
    child = run_python(SET_TIMES, data_dir / "townsquare.db", *arguments)
    assert child.returncode == 0, child.stderr
    listed = client.spaces.get_public_spaces()
    assert {space.name: space.created_at for space in listed} == stored
    assert [space.to_dict()["created_at"] for space in listed] == [space.created_at for space in listed]
    assert listed._repr_html_().count("<tr") == len(stored) + 1


def test_text_that_is_not_unicode_is_invalid_input(client: Client) -> None:
    discovery: Any = client.discovery
    calls: list[Callable[[], object]] = [
        lambda: discovery.search_mini_apps(LONE_SURROGATE),
        lambda: discovery.get_trending_mini_apps(LONE_SURROGATE),
        lambda: client.storage.signed_url("assets", "x", method=LONE_SURROGATE),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert "half a surrogate pair, which is not Unicode" in str(caught.value) and caught.value.operation
    for method, target in (("GET", LONE_SURROGATE), (LONE_SURROGATE, "/")):
        response = client.discovery.handle(method, target)
        assert (response.status, response.headers["content-type"]) == (400, "application/json")


def test_an_option_that_is_not_unicode_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="^Open failed: Option catalog_url has half a surrogate pair"):
        Client.open(tmp_path / "data", catalog_url=LONE_SURROGATE)
    with pytest.raises(InvalidInputError, match="The name of an option has half a surrogate pair"):
        Client.open(tmp_path / "data", **{LONE_SURROGATE: "x"})  # type: ignore[arg-type]


def test_a_time_that_the_core_cannot_hold_is_invalid_input() -> None:
    late = datetime(9999, 12, 31, 12, tzinfo=timezone.utc)
    later = datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))
    for time in (late, later):
        with pytest.raises(InvalidInputError, match="^timestamp is a time from year 1 to .*, not datetime.datetime"):
            townsquare.identity_claim(uuid4(), "11" * 32, "town", timestamp=time)
        with pytest.raises(InvalidInputError, match="^timestamp is a time"):
            townsquare.sign_file("x", "11" * 32, timestamp=time)


def test_a_new_row_that_is_no_mapping_is_named(service: Client) -> None:
    space = service.spaces.create_space("Harbor")
    with pytest.raises(TypeError, match=r"^spaces\[1\] is a mapping, not int$"):
        service.spaces.create_spaces([{"name": "x"}, 5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"^fidgets\[0\] is a mapping, not str$"):
        service.fidgets.create_fidgets(space.id, ["x"])  # type: ignore[list-item]
    assert service.spaces.get_user_spaces(uuid4()) == []
