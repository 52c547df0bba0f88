"""The documentation that programmers meet: docstrings at run time, and the examples in docstrings and READMEs."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from pathlib import Path
from typing import Annotated, Any, Union

import pytest
import townsquare
import townsquare.testing

from conftest import package, run

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


def examples(text: str) -> list[str]:
    """The paragraphs of a docstring that are indented as a whole: its code."""
    paragraphs = text.split("\n\n")
    return [textwrap.dedent(each) for each in paragraphs if all(line.startswith("    ") for line in each.splitlines())]


def python_blocks(readme: Path) -> list[str]:
    """The Python code of a README."""
    return re.findall(r"^```python\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL)


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


@pytest.fixture
def prepared(client: townsquare.Client) -> dict[str, Any]:
    """The names that examples of docstrings use, and the rows and files that they read."""
    user = client.auth.sign_up("ann@town.example", PASSWORD)
    client.auth.sign_in("ann@town.example", PASSWORD)
    client.as_service().realtime.start()
    client.as_service().storage.upload("assets", "images/a", b"1")
    client.storage.upload("private", f"{user.id}/homebase", b'{"theme": "dark"}')
    space = client.spaces.create_space("Harbor", is_public=True)
    names = {"client": client, "space": space, "user_id": user.id, "data": b"content of a picture", "private_key": KEY}
    return {"townsquare": townsquare, "json": json, **names}


DOCSTRINGS = {name: text for name, text in {"townsquare": townsquare.__doc__ or "", **STUBS}.items() if examples(text)}


def test_many_docstrings_have_an_example() -> None:
    assert {"townsquare", "Client", "AsyncClient", "Auth.import_credentials", "Realtime", "Storage", "Storage.open"} < set(DOCSTRINGS)


@pytest.mark.parametrize("name", DOCSTRINGS)
def test_the_example_of_a_docstring_runs(name: str, prepared: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "harbor.png").write_bytes(b"a picture")
    for example in examples(DOCSTRINGS[name]):
        code = compile(example.replace("$2a$10$…", HASH), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if (awaiting := eval(code, prepared)) is not None:
            run(awaiting)
    if name == "Storage.open":
        assert prepared["homebase"] == {"theme": "dark"}
    if name == "Storage.iter":
        assert prepared["newest"].path == "images/a"


@pytest.mark.parametrize(("readme", "lines"), [("README.md", 23), ("python/README.md", 21)])
def test_the_first_example_of_a_readme_prints(readme: str, lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(python_blocks(WORKSPACE / readme)[0], readme, "exec"), {})
    printed = capsys.readouterr().out
    assert printed.count("https://") == 20 and len(printed.splitlines()) == lines


def test_the_recipe_for_fastapi_searches(client: townsquare.Client) -> None:
    fastapi, testing = package("fastapi"), package("fastapi.testclient")
    (recipe,) = [block for block in python_blocks(WORKSPACE / "python/README.md") if "answer_errors" in block]
    app = fastapi.FastAPI()
    names = {"app": app, "client": client, "townsquare": townsquare, "Annotated": Annotated, "Depends": fastapi.Depends}
    exec(compile(recipe, "python/README.md", "exec", dont_inherit=True), names)
    with testing.TestClient(app) as http:
        found = http.get("/search", params={"text": "chess"}).json()
    assert found and [app["name"] for app in found] == [app.name for app in client.discovery.search_mini_apps("chess")]


def test_the_recipe_for_servers_answers_users_and_strangers(client: townsquare.Client) -> None:
    (recipe,) = [block for block in python_blocks(WORKSPACE / "python/README.md") if "def sign_in" in block]
    names: dict[str, Any] = {"client": client}
    exec(compile(recipe, "python/README.md", "exec"), names)
    ann = client.auth.sign_up("ann@town.example", PASSWORD)
    client.as_service().spaces.create_space("Harbor", is_public=True, owner_id=ann.id)
    session = names["sign_in"]("203.0.113.7", "ann@town.example", PASSWORD)
    assert session.user.id == ann.id and client.auth.get_session() is None
    for token in (session.access_token, None):
        assert [space.name for space in names["answer"]("203.0.113.7", token)] == ["Harbor"]
    with pytest.raises(townsquare.AuthError):
        names["answer"]("203.0.113.7", "wrong")
    assert not client.closed
