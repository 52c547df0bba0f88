"""The programs of the book in Python print what the book says, and their types are right."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    assert {"start", "discovery", "tables", "sign_in", "files", "changes", "endpoints"} < set(PROGRAMS)


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
