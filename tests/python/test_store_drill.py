"""The verdict of the drill of a distributed store (tests/drills/store_judge.py), on histories that are written here by hand."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any, Optional

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "drills"))
store_judge = importlib.import_module("store_judge")
store_load = importlib.import_module("store_load")

Line = dict[str, Any]

OLD, NEW = ["a0-shared", 1], ["b0-shared", 1]


def begin(key: str, at: float, operation: str = "upload", **changes: Any) -> Line:
    """The line of a write's begin. The name of a keyword is a path."""
    return {"k": "begin", "i": key, "op": operation, "changes": changes, "b": at}


def end(key: str, at: float, **fields: Any) -> Line:
    """The line of a write's end."""
    return {"k": "end", "i": key, "e": at, "ok": not fields.get("kind"), "etag": fields.get("etag", key), "base": None, **fields}


def read(path: str, since: float, until: float, value: Optional[list[Any]]) -> Line:
    """The line of a read."""
    return {"k": "read", "path": path, "b": since, "e": until, "value": value}


def verdict(folder: Path, lines: list[Line], final: Optional[dict[str, Any]] = None, killed_at: Optional[float] = None) -> list[str]:
    """The headlines of the verdict."""
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    records = store_judge.Records()
    records.read("a0", log, killed_at)
    judge = store_judge.Judge(records, [], lambda at: f"{at} s")
    judge.run(final or {})
    return sorted(judge.broken) + ["late"] * len(judge.late)


TWO_WRITES = [begin("1", 1, p=OLD), end("1", 2), begin("2", 3, p=NEW), end("2", 4)]
FAILED: Line = {"kind": "unavailable", "code": None}
UNKNOWN: Line = {"kind": "unavailable", "code": "08007"}
MOVE = [
    begin("1", 1, p=OLD), end("1", 2), begin("2", 3, "copy", q=OLD), end("2", 4), begin("3", 5, "move", q=None, r=OLD),
    end("3", 6, **UNKNOWN),
]
NOT_FOUND = "acknowledged files that were not found"
SEEN = "writes that were seen although they failed for certain"


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        ([*TWO_WRITES, read("p", 5, 6, NEW)], []),
        ([*TWO_WRITES, read("p", 3.5, 6, OLD)], []),
        ([*TWO_WRITES, read("p", 5, 6, OLD)], ["reads of an older file than the acknowledged one"]),
        ([*TWO_WRITES, read("p", 5, 6, None)], [NOT_FOUND]),
        ([*TWO_WRITES, read("p", 5, 6, ["b0-shared", 7])], ["files that nobody wrote"]),
        ([begin("1", 1, p=OLD), end("1", 2, **FAILED), read("p", 3, 4, None)], []),
        ([begin("1", 1, p=OLD), end("1", 2, **FAILED), read("p", 3, 4, OLD)], [SEEN]),
        ([begin("1", 1, p=OLD), end("1", 2, **UNKNOWN), read("p", 3, 4, None), read("p", 5, 6, OLD)], []),
        (
            [begin("1", 1, p=OLD), end("1", 2, **UNKNOWN), begin("2", 3, p=NEW), end("2", 4), read("p", 5, 6, OLD)],
            ["reads of an older file than the acknowledged one"],
        ),
        ([begin("1", 1, p=OLD), end("1", 2, kind="internal", code=None)], ["errors that the fault does not explain"]),
        ([begin("1", 1, p=OLD), end("1", 40)], ["late"]),
        ([begin("1", 1, p=OLD), end("1", 2), begin("2", 3, "delete", p=None), end("2", 4, kind="not_found", code=None)], [NOT_FOUND]),
        ([{"k": "wrong", "what": "a read gave torn bytes", "t": 1}], ["a read gave torn bytes"]),
        ([begin("1", 1, p=OLD)], ["a write never ended"]),
    ],
)
def test_a_history_has_this_verdict(tmp_path: Path, lines: list[Line], broken: list[str]) -> None:
    assert verdict(tmp_path, lines) == broken


@pytest.mark.parametrize(
    ("at_source", "at_target", "broken"),
    [
        (OLD, None, []),
        (None, OLD, []),
        (OLD, OLD, ["moves that happened in part"]),
        (None, None, ["moves that happened in part"]),
    ],
)
def test_a_move_with_an_unknown_outcome_is_whole(tmp_path: Path, at_source: Any, at_target: Any, broken: list[str]) -> None:
    final = {"q": (7, 8, at_source, "2"), "r": (7, 8, at_target, "3")}
    assert verdict(tmp_path, MOVE, final) == broken


def test_two_updates_of_one_version_are_named(tmp_path: Path) -> None:
    lines = [begin("1", 1, p=OLD), end("1", 2, base="v"), begin("2", 3, p=NEW), end("2", 4, base="v")]
    assert verdict(tmp_path, lines) == ["updates that another one of the same version has lost"]


def test_the_file_at_the_end_has_the_acknowledged_version(tmp_path: Path) -> None:
    assert verdict(tmp_path, TWO_WRITES, {"p": (5, 6, NEW, "2")}) == []
    assert verdict(tmp_path, TWO_WRITES, {"p": (5, 6, NEW, "1")}) == ["files with another version than the acknowledged one"]


def test_a_write_that_ran_when_its_process_was_killed_may_be_there_or_not(tmp_path: Path) -> None:
    for value in (OLD, None):
        assert verdict(tmp_path, [begin("1", 1, p=OLD), read("p", 4, 5, value)], killed_at=3) == []


def test_bytes_of_two_writes_are_torn() -> None:
    first, second = (store_load.content("a0-small", number, 500) for number in (1, 2))
    assert store_load.token(first) == ["a0-small", 1]
    assert store_load.token(first[:300] + second[300:]) is None
    assert store_load.token(first[:-1]) is None
