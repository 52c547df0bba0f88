"""The programs of the book in Python print what the book says, and their types are right."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import townsquare
from conftest import add_user

WORKSPACE = Path(__file__).parents[2]
EXAMPLES = WORKSPACE / "docs" / "examples"
PROGRAMS = sorted(file.stem for file in (EXAMPLES / "python").glob("*.py"))
OUTPUT = {"async_start": "start"}
"""Programs that print what another one prints."""
HASH = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"


def test_every_area_has_a_program() -> None:
    assert {"start", "discovery", "tables", "sign_in", "files", "changes", "endpoints", "errors", "backup", "move"} < set(PROGRAMS)


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program of the book in a folder."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / "python" / f"{name}.py")]
    environment = {each: value for each, value in os.environ.items() if not each.startswith("TOWNSQUARE_")}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder, env=environment)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_the_book_says(name: str, tmp_path: Path) -> None:
    if name == "check":
        townsquare.Client.open(tmp_path / "town").close()
    child = run(name, tmp_path)
    assert child.returncode == 0, child.stderr
    assert child.stdout == (EXAMPLES / "output" / f"{OUTPUT.get(name, name)}.txt").read_text(encoding="utf-8")


def test_the_check_makes_no_database(tmp_path: Path) -> None:
    child = run("check", tmp_path)
    assert child.returncode == 1
    assert child.stderr.startswith("town/townsquare.db: Open failed: ")
    assert list(tmp_path.iterdir()) == []


def test_the_check_ends_with_1_if_there_are_errors(tmp_path: Path) -> None:
    town = tmp_path / "town"
    with townsquare.Client.open(town) as client:
        client.as_service().storage.upload("assets", "large", b"x" * 100_000)
    (town / "files" / "assets" / "large").unlink()
    child = run("check", tmp_path)
    assert (child.returncode, child.stdout) == (1, "town/townsquare.db: errors: 1\n")
    assert child.stderr.startswith("error file_missing ")


def test_the_programs_pass_mypy(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(EXAMPLES / "python")]
    environment = {**os.environ, "MYPYPATH": str(Path(townsquare.__file__).parents[1])}
    child = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment)
    assert child.returncode == 0, child.stdout + child.stderr


def test_the_recipe_of_the_guide_imports_passwords(client: townsquare.Client, data_dir: Path) -> None:
    guide = (WORKSPACE / "core" / "src" / "postgres_guide.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    user = add_user(data_dir, "ann@town.example")
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE hashes (user_id TEXT, password_hash TEXT)")
        connection.execute("INSERT INTO hashes VALUES (?, ?)", (str(user), HASH))
        names: dict[str, Any] = {"client": client, "connection": connection, "QUERY": "SELECT * FROM hashes"}
        exec(compile(recipe, "postgres_guide.md", "exec"), names)
    found = client.as_service().auth.import_credentials([{"user_id": user, "password_hash": HASH}])
    assert (found.imported, found.unchanged) == (0, 1)


def chapter(name: str) -> str:
    return (WORKSPACE / "docs" / "src" / f"{name}.md").read_text(encoding="utf-8")


RECORDS = {
    "spaces": townsquare.Space,
    "fidgets": townsquare.Fidget,
    "users": townsquare.User,
    "community_configs": townsquare.CommunityConfig,
    "community_domains": townsquare.CommunityDomain,
    "spaceRegistrations": townsquare.SpaceRegistration,
    "files": townsquare.FileInfo,
}


def test_the_chapter_of_columns_has_the_fields_of_the_records() -> None:
    sections = chapter("columns").split("\n## ")[1:]
    assert [section.partition("\n")[0] for section in sections] == list(RECORDS)
    for section, record in zip(sections, RECORDS.values()):
        rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
        # `spaceId` of the table is `space_id` of the record.
        columns = [re.sub("([A-Z])", r"_\1", row[0].strip("| `")).lower() for row in rows]
        assert columns == [field.name for field in dataclasses.fields(record)]
        may_be_missing = [row[1].endswith(", may be missing") for row in rows]
        is_optional = [field.type is Any or type(None) in get_args(field.type) for field in dataclasses.fields(record)]
        assert all(optional for missing, optional in zip(may_be_missing, is_optional) if missing)


def test_the_chapter_of_http_has_every_path_and_parameter_of_the_directory() -> None:
    with townsquare.Client.open(":memory:", catalog_url="sample:") as client:

        def get(below: str) -> Any:
            return json.loads(b"".join(client.handle_request("GET", f"/api/miniapp-discovery{below}")))

        paths = get("/openapi.json")["paths"]
        apps = get("?limit=1")["apps"]
    section = chapter("http").partition("## The directory")[2].partition("\n## ")[0]
    for path, operations in paths.items():
        below = path.removeprefix("/api/miniapp-discovery") or ", nothing more"
        (row,) = [line for line in section.splitlines() if re.match(rf"\| GET,? ?`?{re.escape(below.lstrip(', '))}`? \|", line)]
        names = {parameter["name"] for parameter in operations["get"].get("parameters", []) if parameter["in"] == "query"}
        assert names == set(re.findall("`([a-zA-Z]+)`", row.split(" | ")[1])), row
    (shown,) = re.findall(r"^```json\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    shown = json.loads(shown)
    assert shown.keys() == apps[0].keys()
    assert all(shown[part].keys() <= apps[0][part].keys() for part in ("author", "engagement", "metadata"))


def test_the_chapter_of_http_has_the_events(client: townsquare.Client) -> None:
    client.realtime.start()
    events = iter(client.handle_request("GET", "/events?table=spaces"))
    assert re.fullmatch(rb"id: [0-9a-f]+\n\n", next(events))
    space = client.as_service().spaces.create_space("Harbor", is_public=True)
    next(events)
    client.as_service().spaces.update_space(space.id, name="Quay")
    kind, cursor, data = next(events).decode().strip().splitlines()
    (shown,) = re.findall(r"^```text\n(id: .*?)^```$", chapter("http"), re.MULTILINE | re.DOTALL)
    first, change, end = shown.strip().split("\n\n")
    assert first.startswith("id: ")
    assert change.splitlines()[0] == kind == "event: change"
    assert cursor.startswith("id: ")
    change_data = json.loads(change.splitlines()[2].removeprefix("data: ").replace(",…", ""))
    assert change_data.keys() == json.loads(data.removeprefix("data: ")).keys()
    assert end.startswith("event: end\ndata: ")


def test_the_catalog_file_of_the_chapter_of_discovery_has_two_apps(tmp_path: Path) -> None:
    (catalog,) = re.findall(r"^```json\n(.*?)^```$", chapter("discovery"), re.MULTILINE | re.DOTALL)
    (tmp_path / "apps.json").write_text(catalog, encoding="utf-8")
    with townsquare.Client.open(":memory:", catalog_url=str(tmp_path / "apps.json")) as client:
        apps = client.discovery.get_trending_mini_apps("24h", 20)
        assert [(app.name, app.networks) for app in apps][1] == ("Quiz", ["base"])
        assert (len(apps), client.discovery.stats().skipped) == (2, 0)


@pytest.mark.parametrize("table", RECORDS)
def test_the_filters_of_the_chapter_of_changes_are_valid(client: townsquare.Client, table: Any) -> None:
    rows = [line for line in chapter("changes").splitlines() if line.startswith("| `") and "=" in line]
    examples = [each for line in rows for each in re.findall("`([a-z_]+=[^`]+)`", line)]
    assert len(examples) == 6
    columns = {field.name for field in dataclasses.fields(RECORDS[table])}
    for example in examples:
        if example.partition("=")[0] in columns:
            client.realtime.changes(table=table, filter=example).close()
