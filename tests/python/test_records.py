"""Records as dataclasses: fields, copies, pickle, JSON, and the packages that take dataclasses."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import json
import pickle
import re
import sys
import tracemalloc
import typing
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, Optional
from uuid import UUID, uuid4

import pytest

import townsquare
from townsquare import Client, Space
from townsquare._records import types_of

from conftest import body, frame, package

# The names that the annotations of the stubs use.
NAMES = {"Literal": Literal, "Optional": Optional, "UUID": UUID, "datetime": datetime, "Any": Any, "_Json": Any}

CONFIGS = ("brand_config", "assets_config", "community_config", "fidgets_config")


def finding(client: Client, data_dir: Path) -> townsquare.Finding:
    """A finding: other users have rights on the data folder, for a moment."""
    data_dir.chmod(0o755)
    found = client.check()
    data_dir.chmod(0o700)
    return found[0]


@pytest.fixture
def records(client: Client, service: Client, data_dir: Path, tmp_path: Path) -> dict[str, Any]:
    """One record of each class that the library returns, by the name of its class."""
    user = client.auth.sign_up("ann@town.example", "correct horse")
    space = service.spaces.create_space("Harbor", owner_id=user.id, is_public=True)
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"zone": ["UTC", 1, None]})
    public = service.spaces.get_public_spaces()[0]
    app = client.discovery.search_mini_apps("chess")[0]
    session = client.auth.create_session("ann@town.example", "correct horse")
    with service.realtime.changes(table="spaces") as changes:
        service.spaces.update_space(space.id, name="Quay")
        change = changes.next(20)
    configs: dict[str, Any] = dict.fromkeys(CONFIGS, {"a": [1]})
    values = next(iter(service.export_rows(["spaces"]))).values
    report = service.import_rows("spaces", [{**values, "name": "Pier"}], dry_run=True)
    plan = Client.plan_migrations(data_dir)
    found = [
        user,
        session,
        service.auth.sessions_of(user.id)[0],
        service.auth.import_credentials([]),
        space,
        service.spaces.get_space_with_fidgets(space.id),
        public,
        public.owner,
        fidget,
        app,
        app.author,
        app.engagement,
        app.highlights("chess")[0],
        client.discovery.suggest_mini_apps("ches")[0],
        client.discovery.categories()[0],
        client.discovery.stats(),
        client.discovery.handle("GET", "/api/miniapp-discovery?limit=1"),
        service.storage.upload("assets", "a", b"1", metadata={"k": "v"}),
        service.storage.repair(),
        service.move_to(data_dir=tmp_path / "moved"),
        next(iter(service.export_rows(["users"]))),
        report,
        report.problems[0],
        plan,
        plan.migrations[0],
        service.communities.save_community_config("town", **configs),
        service.communities.save_community_domain("town", "town.example", "custom"),
        service.communities.register_space(space.id, "Harbor", "navPage"),
        change,
        service.realtime.stats(),
        finding(client, data_dir),
    ]
    return {type(record).__name__: record for record in found}


def stub_classes() -> dict[str, ast.ClassDef]:
    """The record classes of the stubs: those that are decorated as dataclasses."""
    files = Path(townsquare.__file__).parent.glob("*.pyi")
    classes = [each for file in files for each in ast.parse(file.read_text()).body if isinstance(each, ast.ClassDef)]
    return {each.name: each for each in classes if "dataclass" in map(ast.unparse, [d.func for d in each.decorator_list if isinstance(d, ast.Call)])}


def stub_types(name: str) -> dict[str, Any]:
    """The types of the fields that the stub declares."""
    stub = stub_classes()[name]
    bases = [stub_types(base.id) for base in stub.bases if isinstance(base, ast.Name) and base.id != "_Record"]
    types: dict[str, Any] = {field: kind for base in bases for field, kind in base.items()}
    literals = {"_EventType": "'INSERT', 'UPDATE', 'DELETE'", "_DomainType": "'blank_subdomain', 'custom'"}
    literals["_SpaceType"] = "'profile', 'token', 'proposal', 'channel', 'navPage'"
    for line in stub.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            written = ast.unparse(line.annotation).removeprefix("Final[").removesuffix("]")
            for alias, values in literals.items():
                written = written.replace(f"{alias} | Literal['other']", f"Literal[{values}, 'other']").replace(alias, f"Literal[{values}]")
            written += "]" * (written.count("[") - written.count("]"))
            types[line.target.id] = eval(written, {**NAMES, **vars(townsquare)})
    return types


def names_in_repr(record: Any) -> list[str]:
    """The names of the fields that the `repr` of a record shows with their values, whole or cut; or with `<secret>`."""
    text, found = repr(record), []
    position = len(type(record).__name__) + 1
    for name in type(record).__match_args__:
        value = repr(getattr(record, name))
        shown = [f"{name}={each}" for each in (value, value[:200] + "…", "<secret>") if text.startswith(f"{name}={each}", position)]
        if shown:
            found.append(name)
            position += len(shown[0]) + len(", ")
    assert position == len(text) + 1, text
    return found


def test_every_record_has_the_fields_of_its_stub(records: dict[str, Any]) -> None:
    assert set(records) == set(stub_classes())
    for name, record in records.items():
        expected = stub_types(name)
        assert list(type(record).__match_args__) == list(expected), name
        assert list(inspect.signature(type(record)).parameters) == list(expected)
        assert types_of(type(record)) == {field.name: field.type for field in dataclasses.fields(record)} == expected, name
        assert set(typing.get_type_hints(type(record))) == set(expected)
        compared = [field.name for field in dataclasses.fields(record) if field.compare]
        assert compared == list(expected) and names_in_repr(record) == compared, name


def test_every_record_is_copied_pickled_and_replaced(records: dict[str, Any]) -> None:
    assert all(map(dataclasses.is_dataclass, records.values())) and all(map(dataclasses.is_dataclass, map(type, records.values())))
    for record in records.values():
        fields = {name: getattr(record, name) for name in type(record).__match_args__}
        copies = [pickle.loads(pickle.dumps(record, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
        copies += [dataclasses.replace(record), record.__replace__(), type(record)(**fields), type(record)(*fields.values())]
        copies += [copy.copy(record), copy.deepcopy(record), copy.deepcopy(copies[0])]
        for copied in copies:
            assert type(copied) is type(record) and copied == record and not copied != record
            assert (hash(copied), repr(copied)) == (hash(record), repr(record))
            assert copied.to_dict() == record.to_dict() and copied.to_json() == record.to_json()
            assert dataclasses.asdict(copied) == dataclasses.asdict(record)
        first = next(iter(fields))
        other = dataclasses.replace(record, **{first: "other"})
        assert sys.version_info < (3, 13) or copy.replace(record, **{first: "other"}) == other
        assert other != record and getattr(other, first) == "other" and getattr(record, first) == fields[first]
        with pytest.raises(AttributeError):
            setattr(other, first, "x")


def test_json_has_text_for_times_ids_and_bytes(records: dict[str, Any]) -> None:
    space, app = records["Space"], records["MiniApp"]
    shown = json.loads(space.to_json())
    assert shown["id"] == str(space.id) and datetime.fromisoformat(shown["created_at"].replace("Z", "+00:00")) == space.created_at
    assert json.loads(records["HttpResponse"].to_json())["status"] == 200
    assert json.loads(app.to_json()) == app.to_dict() and json.loads(records["Change"].to_json()) == records["Change"].to_dict()
    assert json.loads(records["Session"].to_json())["user"]["id"] == str(records["User"].id)


def test_the_attributes_of_a_made_record_are_used(records: dict[str, Any], service: Client) -> None:
    app = dataclasses.replace(records["MiniApp"], name="Lighthouse", tags=["lamp"], author=None, description=None, last_fetched=datetime(2026, 1, 2, tzinfo=timezone.utc))
    assert [found.field for found in app.highlights("lighthouse")] == ["name"] and app.highlights("lamp")[0].text == "lamp"
    shown = app.to_dict()
    assert (shown["name"], shown["lastFetched"]) == ("Lighthouse", "2026-01-02T00:00:00Z") and not {"author", "description"} & set(shown)
    assert list(shown) == [key for key in records["MiniApp"].to_dict() if key not in ("author", "description")]
    # A record from elsewhere is a position in a list, as the library's own.
    public, fidget = pickle.loads(pickle.dumps((records["PublicSpace"], records["Fidget"])))
    assert service.spaces.get_public_spaces(after=public) == []
    assert service.fidgets.get_space_fidgets(fidget.space_id, after=fidget) == []
    assert service.spaces.list_spaces(after=dataclasses.replace(records["Space"], id=UUID(int=0)))
    with pytest.raises(TypeError, match="after"):
        service.spaces.get_public_spaces(after=dataclasses.replace(public, id=7))


def test_a_copy_of_a_made_record_shares_no_lists(records: dict[str, Any]) -> None:
    app = dataclasses.replace(records["MiniApp"], tags=["a"])
    copied = copy.deepcopy(app)
    app.tags.append("b")
    assert copied.tags == ["a"] and app.tags == ["a", "b"] and copy.copy(app) is app


def test_wrong_fields_are_named() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'email'"):
        townsquare.Owner(uuid4())  # type: ignore[call-arg]
    owner = townsquare.Owner(uuid4(), None)
    values: dict[str, Any] = {"mail": "x"}
    for wrong in (lambda: dataclasses.replace(owner, **values), lambda: owner.__replace__(mail="x")):
        with pytest.raises(TypeError, match="unexpected keyword argument 'mail'"):
            wrong()  # type: ignore[no-untyped-call]
    with pytest.raises(TypeError):
        dataclasses.asdict(townsquare.Owner)  # type: ignore[call-overload]


def test_a_class_of_a_program_may_inherit_from_space(records: dict[str, Any]) -> None:
    class Place(Space):
        pass

    place = Place(**dataclasses.asdict(records["Space"]))
    assert [field.name for field in dataclasses.fields(place)] == list(Space.__match_args__)
    assert repr(place).startswith("Place(id=") and place != records["Space"] and dataclasses.replace(place) == place


def test_match_takes_fields_by_position() -> None:
    assert townsquare.Owner.__match_args__ == ("id", "email")
    assert townsquare.Facet.__match_args__ == ("name", "count")


def listed(client: Client, service: Client) -> dict[str, Sequence[Any]]:
    """A list of rows of each kind that has one."""
    ids = [client.auth.sign_up(f"{name}@town.example", "correct horse").id for name in ("ann", "ben")]
    spaces = [service.spaces.create_space("Harbor", owner_id=owner, is_public=True) for owner in (ids[0], None, ids[1])]
    service.fidgets.create_fidget(spaces[0].id, "clock", config={"zone": "UTC"})
    service.storage.upload("assets", "a", b"123")
    return {
        "apps": client.discovery.get_trending_mini_apps(),
        "public": client.spaces.get_public_spaces(),
        "with fidgets": service.spaces.get_user_spaces(ids[0]),
        "spaces": service.spaces.list_spaces(),
        "fidgets": service.fidgets.get_space_fidgets(spaces[0].id),
        "files": client.storage.list("assets"),
        "users": service.auth.list_users(),
        "facets": client.discovery.categories(),
        "suggestions": client.discovery.suggest_mini_apps("ches"),
    }


def test_pandas_takes_every_list(client: Client, service: Client) -> None:
    pandas = package("pandas")
    frames = {name: pandas.DataFrame(rows) for name, rows in listed(client, service).items()}
    assert all(len(frame) for frame in frames.values())
    public, files = frames["public"], frames["files"]
    assert str(public.dtypes["created_at"]) == "datetime64[us, UTC]" and public.dtypes["is_public"] == bool
    assert files.dtypes["size"] == "int64" and list(files["size"]) == [3] and frames["facets"].dtypes["count"] == "int64"
    assert list(public["name"]) == ["Harbor"] * 3 and public["owner"][0]["email"] == "ben@town.example"
    assert str(frames["apps"].dtypes["name"]) in ("str", "object") and "Harbor Chess" in set(frames["apps"]["name"])


def test_polars_takes_every_list(client: Client, service: Client) -> None:
    polars = package("polars")
    rows = listed(client, service)
    # polars stores no ids in lists of records, so the fidgets of spaces go through JSON.
    rows["with fidgets"] = [json.loads(space.to_json()) for space in rows["with fidgets"]]
    schemas = {name: polars.DataFrame(each).schema for name, each in rows.items()}
    utc = polars.Datetime("us", "UTC")
    assert {schemas["public"]["created_at"], schemas["apps"]["first_seen"], schemas["files"]["updated_at"]} == {utc}
    assert (schemas["public"]["name"], schemas["public"]["is_public"]) == (polars.String, polars.Boolean)
    # Nobody has given a description: the column is one of text all the same.
    assert schemas["spaces"]["description"] == polars.String and schemas["files"]["size"] == polars.Int64
    assert schemas["apps"]["tags"] == polars.List(polars.String)
    assert schemas["apps"]["engagement"] == polars.Struct({"follower_count": polars.Int64, "trending_rank": polars.Int64})


def test_a_list_of_apps_is_an_arrow_table(client: Client, tmp_path: Path) -> None:
    pyarrow = package("pyarrow")
    with Client.open(":memory:", catalog_url="sample:") as sample:
        apps = sample.discovery.get_trending_mini_apps()
        by_python = pickle.loads(pickle.dumps(apps))
    table = pyarrow.table(apps)
    assert table.column_names == list(townsquare.MiniApp.__match_args__) and table.num_rows == len(apps) > 30
    # Every value is that of the attribute, and a record that Python code made gives the same ones.
    assert table.to_pylist() == [dataclasses.asdict(app) for app in apps]
    assert pyarrow.table(by_python) == table
    assert str(table.schema.field("first_seen").type) == "timestamp[us, tz=UTC]" and not table.schema.field("id").nullable
    empty = pyarrow.table(apps[:0])
    assert empty.num_rows == 0 and empty.schema == table.schema
    without_author = townsquare.MiniApps([dataclasses.replace(apps[0], author=None, category=None), apps[1]])
    first = pyarrow.table(without_author).to_pylist()[0]
    assert (first["author"], first["category"], first["name"]) == (None, None, apps[0].name)
    # The table outlives the list and the client.
    client.close()
    del apps, by_python
    assert table.filter(pyarrow.compute.equal(table["name"], "Harbor Chess")).num_rows == 1


def test_an_arrow_table_makes_no_object_for_each_row(tmp_path: Path) -> None:
    pyarrow = package("pyarrow")
    peaks = []
    for count in (40, 2_000):
        file = tmp_path / f"{count}.json"
        file.write_bytes(body([frame(f"App {number}") for number in range(count)]))
        with Client.open(":memory:", catalog_url=file.as_uri()) as client:
            apps = client.discovery.get_trending_mini_apps(limit=min(count, 1_000))
            apps += client.discovery.get_trending_mini_apps(limit=1_000, offset=1_000)
            assert pyarrow.table(apps).num_rows == count
            tracemalloc.start()
            table = pyarrow.table(apps)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert table.num_rows == count
    # The figure counts what Python allocates: an object for each row would take 16 bytes or more.
    assert peaks[1] < peaks[0] + 4_096, peaks


def test_polars_and_duckdb_take_a_list_of_apps(client: Client) -> None:
    polars, duckdb = package("polars"), package("duckdb")
    apps = client.discovery.get_trending_mini_apps()
    assert polars.from_arrow(apps).struct.field("name").to_list() == [app.name for app in apps]
    assert polars.DataFrame(apps)["id"].to_list() == [app.id for app in apps]
    rows = duckdb.sql("select engagement.trending_rank, author.username, tags from apps order by 1").fetchall()
    assert rows == [(app.engagement.trending_rank, app.author and app.author.username, app.tags) for app in apps]


def test_other_values_are_no_arrow_table(client: Client) -> None:
    (app, *_) = client.discovery.get_trending_mini_apps()
    wrong_rank: Any = "x"
    changes: list[tuple[dict[str, Any], str]] = [
        ({"name": 7}, r"^apps\[1\]\.name: .*int"),
        ({"engagement": townsquare.Engagement(1, wrong_rank)}, r"^apps\[1\]\.engagement\.trending_rank: "),
        ({"author": "ada"}, "'str' object has no attribute"),
        ({"tags": None}, "'tags' is declared as non-nullable"),
    ]
    for change, text in changes:
        with pytest.raises((TypeError, AttributeError, ValueError), match=text):
            townsquare.MiniApps([app, dataclasses.replace(app, **change)]).__arrow_c_stream__()
    with pytest.raises(TypeError, match=r"^apps\[1\]: expected a MiniApp, not int"):
        townsquare.MiniApps([app, 1]).__arrow_c_stream__()  # type: ignore[list-item]


def test_a_list_of_apps_has_the_methods_of_a_list(client: Client) -> None:
    apps = client.discovery.get_trending_mini_apps()
    assert apps == list(apps) and list(apps) == apps and apps[:2] == list(apps)[:2] and type(apps[:2]) is townsquare.MiniApps
    assert apps[-1] in apps and apps.index(apps[1]) == 1 and [*reversed(apps)] == list(apps)[::-1] and bool(apps)
    more = apps + client.discovery.search_mini_apps("quiz")
    more.sort(key=lambda app: app.name)
    assert len(more) == len(apps) + 1 and more[0].name == "Harbor Chess" and apps.total == len(apps)


def test_pydantic_validates_and_serialises_records(records: dict[str, Any]) -> None:
    pydantic = package("pydantic")
    for name, record in records.items():
        adapter = pydantic.TypeAdapter(type(record))
        assert adapter.validate_python(record) is record
        text = adapter.dump_json(record)
        assert adapter.validate_json(text) == record, name
        fields = dataclasses.asdict(record)
        assert adapter.validate_python(fields) == record and adapter.dump_python(record) == fields, name
        schema = adapter.json_schema(mode="serialization")
        assert list(schema["properties"]) == schema["required"] == list(fields) and schema["title"] == name
    adapter = pydantic.TypeAdapter(list[townsquare.PublicSpace])
    rows = adapter.dump_python([records["PublicSpace"]], mode="json")
    assert rows[0]["owner"]["email"] == "ann@town.example" and rows[0]["created_at"].endswith("Z")
    for wrong, where in (({**rows[0], "id": "x"}, (0, "id")), ({**rows[0], "owner": {"id": rows[0]["id"]}}, (0, "owner", "email"))):
        with pytest.raises(pydantic.ValidationError) as caught:
            adapter.validate_python([wrong])
        assert [error["loc"] for error in caught.value.errors()] == [where]


def test_pydantic_takes_a_list_of_apps(client: Client) -> None:
    pydantic = package("pydantic")
    apps = client.discovery.get_trending_mini_apps()
    adapter = pydantic.TypeAdapter(townsquare.MiniApps)
    taken = adapter.validate_python(apps)
    assert type(taken) is townsquare.MiniApps and taken == apps
    assert adapter.validate_json(adapter.dump_json(apps)) == apps
    assert adapter.json_schema()["items"] == {"$ref": "#/$defs/MiniApp"}
    assert pydantic.TypeAdapter(list[townsquare.MiniApp]).validate_python(apps) == list(apps)
    with pytest.raises(pydantic.ValidationError):
        adapter.validate_python([1])


def test_fastapi_returns_records_and_describes_them(client: Client, service: Client) -> None:
    fastapi, testing = package("fastapi"), package("fastapi.testclient")
    ann = client.auth.sign_up("ann@town.example", "correct horse")
    space = service.spaces.create_space("Harbor", owner_id=ann.id, is_public=True)
    app = fastapi.FastAPI()

    @app.get("/spaces", response_model=list[townsquare.PublicSpace])  # type: ignore[untyped-decorator]
    def spaces() -> Any:
        return client.spaces.get_public_spaces()

    @app.post("/owners", response_model=townsquare.Owner)  # type: ignore[untyped-decorator]
    def owners(owner: townsquare.Owner) -> townsquare.Owner:
        assert type(owner) is townsquare.Owner
        return owner

    owners.__annotations__["owner"] = townsquare.Owner
    with testing.TestClient(app) as http:
        (row,) = http.get("/spaces").json()
        assert (row["id"], row["owner"]) == (str(space.id), {"id": str(ann.id), "email": "ann@town.example"})
        assert http.post("/owners", json=row["owner"]).json() == row["owner"]
        refused = http.post("/owners", json={"id": "x", "email": None})
        assert refused.status_code == 422 and refused.json()["detail"][0]["loc"] == ["body", "id"]
        schemas = http.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["PublicSpace"]["properties"]["id"] == {"type": "string", "format": "uuid", "title": "Id", "description": "Primary key."}
    assert schemas["PublicSpace"]["properties"]["owner"]["anyOf"][0] == {"$ref": "#/components/schemas/Owner"}
    assert set(schemas) >= {"PublicSpace", "Owner"} and "PublicSpace-Input" not in schemas


def test_rich_prints_the_fields_of_every_record(records: dict[str, Any]) -> None:
    pretty = package("rich.pretty")
    for name, record in records.items():
        fields = list(type(record).__match_args__)
        assert [field for field, _ in record.__rich_repr__()] == fields
        lines = pretty.pretty_repr(record, max_width=20, max_depth=1).splitlines()
        shown = [line[4:].partition("=")[0] for line in lines if re.match(r"    \w+=", line)]
        assert (lines[0], lines[-1]) == (f"{name}(", ")") and shown == fields, name
    session = records["Session"]
    text = pretty.pretty_repr(session)
    assert "access_token=<secret>" in text and "ann@town.example" in text
    assert session.access_token not in text and session.refresh_token not in text
    space = dataclasses.replace(records["Space"], name="Quay")
    assert "name='Quay'" in pretty.pretty_repr([space])
