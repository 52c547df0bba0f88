"""The documentation that programmers meet: docstrings at run time, and the examples in docstrings and READMEs."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union

import pytest
import townsquare
import townsquare.testing

from conftest import FRAMES, body

WORKSPACE = Path(__file__).parents[2]
PASSWORD = "correct horse"
KEY = "11" * 32
HASH = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"
"""A password hash of bcrypt."""

Documented = Union[ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef]


def stub_docstrings() -> dict[str, str]:
    """The docstrings of the stubs by `CLASS`, `CLASS.METHOD` and `FUNCTION`: the first one of an overloaded method."""
    found: dict[str, str] = {}

    def add(name: str, item: Documented) -> None:
        text = ast.get_docstring(item)
        if text is not None:
            found.setdefault(name, text)

    for file in Path(townsquare.__file__).parent.glob("*.pyi"):
        for item in ast.parse(file.read_text()).body:
            if isinstance(item, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                add(item.name, item)
            if isinstance(item, ast.ClassDef):
                for member in item.body:
                    if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)):
                        add(f"{item.name}.{member.name}", member)
    return found


STUBS = stub_docstrings()


def indented_blocks(text: str) -> list[str]:
    """The paragraphs of a docstring that are indented as a whole, which are code."""
    blocks = re.findall(r"(?:^|\n)\n((?:(?:    .*)?\n)*    .*)(?=\n\n|\n*$)", text)
    return [inspect.cleandoc(block) for block in blocks]


def test_the_docstrings_at_run_time_are_those_of_the_stubs() -> None:
    compared = 0
    for name, text in STUBS.items():
        if name.startswith("_") or name.endswith(".__new__"):
            continue  # the stubs' own base class; pydoc shows the class for `__new__`
        item: Any = townsquare if hasattr(townsquare, name.split(".")[0]) else townsquare.testing
        for part in name.split("."):
            item = getattr(item, part)
        # The twins of asyncio have the docstring of the blocking method.
        link = re.match(r"See `([\w.]+)`", text)
        blocking = name.removeprefix("Async") if "." in name else name
        assert inspect.getdoc(item) in (text, STUBS.get(link[1] if link else blocking)), name
        compared += 1
    assert compared > 280
    for method in (townsquare.Spaces.create_space, townsquare.AsyncSpaces.create_space):
        assert "Args:\n    owner_id: The owner's id" in (inspect.getdoc(method) or "")
        assert "Raises:\n    FieldMissingError: " in (inspect.getdoc(method) or "")
        assert str(inspect.signature(method)) == "(self, /, name, *, description=None, is_public=False, owner_id=None, id=None)"
    assert townsquare.Space.to_dict.__doc__ == STUBS["_Record.to_dict"]


def test_every_record_and_method_at_run_time_has_a_docstring() -> None:
    for name in townsquare.__all__:
        item = getattr(townsquare, name)
        assert name == "__version__" or inspect.getdoc(item), name
        if inspect.isclass(item) and item.__module__ == "townsquare":
            members = {each: member for each, member in vars(item).items() if not each.startswith("_")}
            assert [each for each, member in members.items() if not inspect.getdoc(member)] == [], name


def test_dir_lists_the_public_names() -> None:
    assert dir(townsquare) == sorted(townsquare.__all__)
    assert len(dir(townsquare)) == len(set(dir(townsquare)))
    for name in dir(townsquare):
        assert getattr(townsquare, name) is not None and (name == "__version__" or not name.startswith("_"))
    assert not {"_records", "notebook", "exceptions", "TYPE_CHECKING"} & set(dir(townsquare))
