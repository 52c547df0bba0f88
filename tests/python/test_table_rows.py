"""Rows of whole tables: the export, the import, and the plan of the migrations, in both clients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import run
from townsquare import (
    AlreadyExistsError,
    AsyncClient,
    AuthError,
    Client,
    ConfigError,
    FieldMissingError,
    InvalidInputError,
    MigrationPlan,
    ReferenceMissingError,
    RowImportReport,
    RowProblem,
    TableRow,
    TooLargeError,
)

TABLES = ["community_configs", "community_domains", "spaceRegistrations", "users", "spaces", "fidgets"]
HOSTILE = ["'; DROP TABLE spaces; --", '"quoted" $1 %s', "\\x00 \\'", "Ünï—🦀\n\r\t", "null", "[1,2]"]

Row = dict[str, Any]


def space_row(**changed: Any) -> Row:
    """A row of `spaces`."""
    time = "2026-01-02T03:04:05.123456Z"
    row = {"id": str(uuid4()), "name": "Harbor", "description": None, "owner_id": None, "is_public": True}
    return {**row, "created_at": time, "updated_at": time, **changed}


@pytest.fixture
def town(service: Client) -> Client:
    """The service of a town with rows in every table."""
    user = service.auth.sign_up("ann@town.example", "correct horse")
    for number, text in enumerate(HOSTILE):
        space = service.spaces.create_space(text, description=text, owner_id=user.id if number % 2 else None)
        service.fidgets.create_fidget(space.id, text, config={text: [text, None, 1.5, 2**64 - 1]}, position=[0] if number % 2 else None)
        configs: Row = dict.fromkeys(("brand_config", "assets_config", "community_config", "fidgets_config"), {text: number})
        service.communities.save_community_config(f"town-{number}", **configs)
        service.communities.save_community_domain(f"town-{number}", f"x{number}.example", "custom")
        service.communities.register_space(space.id, text, "profile", fid=number)
    return service


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Client]:
    """The service of an empty town."""
    with Client.open(tmp_path / "other") as client:
        yield client.as_service()


def test_every_table_is_exported_and_imported(town: Client, other: Client) -> None:
    rows = list(town.export_rows())
    assert {type(row) for row in rows} == {TableRow} and list(dict.fromkeys(row.table for row in rows)) == TABLES
    for table in TABLES:
        values = [row.values for row in rows if row.table == table]
        assert len(values) == (1 if table == "users" else len(HOSTILE))
        assert other.import_rows(table, values) == RowImportReport(len(values), 0, [])
        assert other.import_rows(table, iter(values)) == RowImportReport(0, len(values), [])
    assert list(other.export_rows(TABLES)) == rows
    space = town.spaces.list_spaces()[0]
    assert other.spaces.get_space(space.id) == space
    assert rows[0].to_dict() == {"table": "community_configs", "values": rows[0].values}


def test_an_export_is_of_one_moment_and_of_the_named_tables(town: Client) -> None:
    rows = town.export_rows(["spaces", "users", "spaces"])
    assert iter(rows) is rows
    town.spaces.create_space("late")
    tables = [row.table for row in rows]
    assert tables == ["users"] + ["spaces"] * len(HOSTILE)
    assert list(rows) == [] and list(town.export_rows(["fidgets"]))[0].values["config"] is not None
    assert len(list(town.export_rows(["spaces"]))) == len(HOSTILE) + 1


def test_a_dry_run_reports_every_problem_and_inserts_nothing(service: Client) -> None:
    known, missing = space_row(), str(uuid4())
    service.import_rows("spaces", [known])
    rows = [known, space_row(), {**known, "name": "Quay"}, space_row(owner_id=missing)]
    assert service.import_rows("spaces", rows[:2], dry_run=True) == RowImportReport(1, 1, [])
    report = service.import_rows("spaces", [rows[1], rows[2], rows[3]], dry_run=True)
    assert type(report.problems[0]) is RowProblem
    assert report.problems == [
        RowProblem(1, "differs", "name", None, None),
        RowProblem(2, "reference_missing", "owner_id", "users", missing),
    ]
    assert report.to_dict()["problems"][1]["value"] == missing
    assert len(service.spaces.list_spaces()) == 1


def test_a_fault_names_its_row_and_column_and_nothing_is_inserted(service: Client) -> None:
    known = space_row()
    service.import_rows("spaces", [known])
    faults: list[tuple[type[Exception], Any, str]] = [
        (AlreadyExistsError, {**known, "name": "Quay"}, "name"),
        (ReferenceMissingError, space_row(owner_id=str(uuid4())), "owner_id"),
        (FieldMissingError, space_row(name=None), "name"),
        (InvalidInputError, space_row(is_public="yes"), "is_public"),
        (InvalidInputError, space_row(created_at="yesterday"), "created_at"),
        (TooLargeError, space_row(description="x" * 2_000_000), "description"),
    ]
    for kind, row, column in faults:
        with pytest.raises(kind, match=r"^Import rows failed: ") as fault:
            service.import_rows("spaces", [space_row(), row])
        assert (fault.value.row, fault.value.column) == (1, column), column  # type: ignore[attr-defined]
    assert len(service.spaces.list_spaces()) == 1


def test_uuids_and_datetimes_are_imported(service: Client) -> None:
    space_id, created_at = uuid4(), datetime.now(timezone.utc)
    updated_at = created_at.astimezone(timezone(timedelta(hours=2)))
    row = space_row(id=space_id, created_at=created_at, updated_at=updated_at)
    assert service.import_rows("spaces", [row]) == RowImportReport(1, 0, [])
    space = service.spaces.get_space(space_id)
    assert (space.id, space.created_at, space.updated_at) == (space_id, created_at, updated_at)
    assert service.import_rows("spaces", [each.values for each in service.export_rows(["spaces"])]) == RowImportReport(0, 1, [])
    with pytest.raises(TypeError, match=r"^rows\[1\]\.created_at: expected an aware datetime, not a naive one$"):
        service.import_rows("spaces", [space_row(), space_row(created_at=datetime(2026, 1, 2))])
    assert len(service.spaces.list_spaces()) == 1


def test_malformed_rows_and_unknown_tables_are_refused(service: Client) -> None:
    unknown_value = r"^Import rows failed: rows\[1\]\.id has a value that JSON does not know: object$"
    with pytest.raises(InvalidInputError, match=unknown_value) as fault:
        service.import_rows("spaces", [space_row(), space_row(id=object())])
    assert fault.value.row == 1
    with pytest.raises(InvalidInputError, match=r"^Import rows failed: rows\[0\] has unknown keys: 7$"):
        service.import_rows("spaces", [{**space_row(), 7: 1}])  # type: ignore[dict-item]
    with pytest.raises(InvalidInputError, match=r"^Import rows failed: rows\[0\]\.colour: spaces has no column of this name$"):
        service.import_rows("spaces", [space_row(colour="red")])
    with pytest.raises(TypeError, match=r"rows\[0\] is a mapping, not int"):
        service.import_rows("spaces", [1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="rows"):
        service.import_rows("spaces", space_row())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tables"):
        service.export_rows("spaces")
    for call in (lambda: service.import_rows("sessions", []), lambda: service.export_rows(["spaces", "sessions"])):
        with pytest.raises(InvalidInputError, match="table is one of community_configs, .*, not \"sessions\""):
            call()


def test_more_rows_than_one_call_may_write_are_refused(tmp_path: Path) -> None:
    with Client.open(tmp_path / "small", max_bulk_rows=2) as client, pytest.raises(TooLargeError):
        client.as_service().import_rows("spaces", [space_row() for _ in range(3)])


def test_other_callers_are_refused(client: Client, service: Client) -> None:
    client.auth.sign_up("ann@town.example", "correct horse")
    client.auth.sign_in("ann@town.example", "correct horse")
    for other, kind in ((client, "forbidden"), (client.as_anonymous(), "unauthorized")):
        with pytest.raises(AuthError, match="^Export rows failed: .*permission denied for table users") as refused:
            other.export_rows(["spaces"])
        assert refused.value.kind == kind
        with pytest.raises(AuthError, match="^Import rows failed: .*permission denied for table users") as refused:
            other.import_rows("spaces", [space_row()], dry_run=True)
        assert refused.value.kind == kind
    assert service.spaces.list_spaces() == []


def test_a_forked_child_ends_no_export_of_its_parent(data_dir: Path) -> None:
    script = """
import os, sys, townsquare
with townsquare.Client.open(sys.argv[1]) as client:
    client = client.as_service()
    client.spaces.create_spaces([{"name": str(number)} for number in range(600)])
    rows = client.export_rows(["spaces"])
    next(rows)
    child = os.fork()
    if child == 0:
        try:
            next(rows)
        except townsquare.ClosedError:
            pass
        else:
            os._exit(1)
        del rows
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(1 + sum(1 for _ in rows))
    del rows
"""
    done = subprocess.run([sys.executable, "-c", script, str(data_dir)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "600\n"), done.stderr


def test_the_plan_says_what_a_database_lacks(client: Client, data_dir: Path, tmp_path: Path) -> None:
    plan = Client.plan_migrations(data_dir)
    assert type(plan) is MigrationPlan and (plan.is_new, plan.is_current) == (False, True)
    assert len(plan.migrations) > 1 and all(each.is_applied and each.name and each.about for each in plan.migrations)
    new = Client.plan_migrations(database_url=f"sqlite:{tmp_path / 'new.db'}")
    assert (new.is_new, new.is_current) == (True, False) and not (tmp_path / "new.db").exists()
    assert [each.name for each in new.migrations] == [each.name for each in plan.migrations]
    assert not any(each.is_applied for each in new.migrations)
    (tmp_path / "text.db").write_text("no database, but a text that is longer than a header")
    with pytest.raises(ConfigError, match="^Open failed: "):
        Client.plan_migrations(database_url=f"sqlite:{tmp_path / 'text.db'}")
    with pytest.raises(ConfigError, match="no_option"):
        Client.plan_migrations(data_dir, no_option=1)  # type: ignore[call-arg]


def test_async_rows_and_plan(data_dir: Path) -> None:
    async def body() -> None:
        async with AsyncClient.open(data_dir) as client:
            service = await client.as_service()
            row = space_row()
            assert await service.import_rows("spaces", [row], dry_run=True) == RowImportReport(1, 0, [])
            assert await service.import_rows("spaces", [row]) == RowImportReport(1, 0, [])
            found = [each async for each in service.export_rows(["spaces"])]
            assert found == [TableRow("spaces", row)]
            rows = service.export_rows()
            assert (await rows.__anext__()).table == "spaces"
            with pytest.raises(StopAsyncIteration):
                await rows.__anext__()
            with pytest.raises(AuthError):
                await client.export_rows().__anext__()
            with pytest.raises(InvalidInputError, match="table is one of"):
                await service.export_rows(["sessions"]).__anext__()
            with pytest.raises(AuthError):
                await client.import_rows("spaces", [])
            assert (await AsyncClient.plan_migrations(data_dir)).is_current

    run(body())
