"""Fidgets: row operations, positions and refusals (SPEC 2.7)."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from conftest import ADVICE, run
from pathlib import Path
from townsquare import AuthError, Client, FieldMissingError, Fidget, InvalidInputError, NotFoundError, Space


@pytest.fixture
def space(service: Client) -> Space:
    return service.spaces.create_space("Harbor", is_public=True)


def test_a_fidget_is_inserted_and_returned(service: Client, space: Space) -> None:
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"zone": "UTC"}, position=[1, 2])
    assert type(fidget) is Fidget and isinstance(fidget.id, UUID)
    assert (fidget.space_id, fidget.type, fidget.config, fidget.position) == (space.id, "clock", {"zone": "UTC"}, [1, 2])
    assert service.fidgets.get_fidget(str(fidget.id)) == fidget
    bare = service.fidgets.create_fidget(str(space.id), type="text")
    assert (bare.config, bare.position) == (None, None)
    assert service.fidgets.get_space_fidgets(space.id) == [fidget, bare]
    assert service.fidgets.get_space_fidgets(uuid4()) == []


def test_the_fidgets_of_a_space_are_read_in_pages(service: Client, space: Space) -> None:
    made = service.fidgets.create_fidgets(space.id, [{"type": str(number)} for number in range(7)])
    pages = [service.fidgets.get_space_fidgets(space.id, 3)]
    while pages[-1]:
        service.fidgets.delete_fidget(pages[-1][-1].id)
        pages.append(service.fidgets.get_space_fidgets(space.id, limit=3, after=pages[-1][-1]))
    assert [len(page) for page in pages] == [3, 3, 1, 0] and sum(pages, []) == made
    assert service.fidgets.get_space_fidgets(space.id, after=made[1].id) == made[3:5]
    for limit in (0, 1_001, -1, 2**40):
        with pytest.raises(InvalidInputError, match="limit is 1 to 1000"):
            service.fidgets.get_space_fidgets(space.id, limit)
    with pytest.raises(InvalidInputError, match="after names no fidget of the space"):
        service.fidgets.get_space_fidgets(space.id, after=uuid4())
    with pytest.raises(TypeError, match="expected a Fidget, a UUID or its text"):
        service.fidgets.get_space_fidgets(space.id, after=space)  # type: ignore[arg-type]


def test_a_type_and_a_space_are_required(service: Client, space: Space) -> None:
    for create in (
        lambda: service.fidgets.create_fidget(space.id, None),  # type: ignore[arg-type]
        lambda: service.fidgets.create_fidgets(space.id, [{"config": {}}]),  # type: ignore[typeddict-item]
    ):
        with pytest.raises(FieldMissingError, match="^Create fidgets? failed: Required field is missing: fidgets.type$"):
            create()
    with pytest.raises(townsquare.ReferenceMissingError) as caught:
        service.fidgets.create_fidget(uuid4(), "clock")
    assert str(caught.value).startswith("Create fidget failed: Referenced record not found")


def test_create_fidgets_inserts_all_in_order_or_none(service: Client, space: Space) -> None:
    made = service.fidgets.create_fidgets(space.id, [{"type": "a", "config": 1}, {"type": "b", "position": {"x": 0.5}}])
    assert [(each.type, each.config, each.position) for each in made] == [("a", 1, None), ("b", None, {"x": 0.5})]
    with pytest.raises(FieldMissingError, match="^Create fidgets failed: "):
        service.fidgets.create_fidgets(space.id, [{"type": "c"}, {"type": None}])  # type: ignore[typeddict-item]
    with pytest.raises(InvalidInputError, match=r"^Create fidgets failed: fidgets\[0\] has unknown keys: 'space_id'$"):
        service.fidgets.create_fidgets(space.id, [{"type": "c", "space_id": space.id}])  # type: ignore[typeddict-unknown-key]
    with pytest.raises(InvalidInputError, match=r"fidgets\[1\].config has a number that is not finite"):
        service.fidgets.create_fidgets(space.id, [{"type": "c"}, {"type": "d", "config": float("nan")}])
    for wrong in ({"type": "c"}, "c", [["type", "c"]], None):
        with pytest.raises(TypeError):
            service.fidgets.create_fidgets(space.id, wrong)  # type: ignore[arg-type]
    assert len(service.fidgets.get_space_fidgets(space.id)) == 2


def test_save_positions_saves_all_or_none(service: Client, space: Space) -> None:
    one, two = service.fidgets.create_fidgets(space.id, [{"type": "a"}, {"type": "b", "position": 1}])
    moved = service.fidgets.save_positions(space.id, {two.id: None, one.id: {"x": 1, "y": 2}})
    assert [(each.id, each.position) for each in moved] == [(one.id, {"x": 1, "y": 2}), (two.id, None)]
    assert all(after.updated_at > before.updated_at for before, after in zip((one, two), moved))
    assert [each.position for each in service.fidgets.save_positions(str(space.id), {str(one.id): 5})] == [5]
    assert service.fidgets.save_positions(space.id, {}) == []
    other = service.fidgets.create_fidget(service.spaces.create_space("Other").id, "c")
    with pytest.raises(NotFoundError) as caught:
        service.fidgets.save_positions(space.id, {one.id: 9, other.id: 9})
    assert str(caught.value) == "Save positions failed: Record not found"
    assert [each.position for each in service.fidgets.get_space_fidgets(space.id)] == [5, None]
    with pytest.raises(InvalidInputError, match="A key of positions is not a UUID: 'x'"):
        service.fidgets.save_positions(space.id, {"x": 1})
    with pytest.raises(InvalidInputError, match="twice"):
        service.fidgets.save_positions(space.id, {one.id: 1, str(one.id): 2})  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=rf"positions\[{one.id}\] has a value that JSON does not know: set"):
        service.fidgets.save_positions(space.id, {one.id: {1}})
    for wrong in ([(one.id, 1)], "x", 5, {5: 1}):
        with pytest.raises(TypeError):
            service.fidgets.save_positions(space.id, wrong)  # type: ignore[arg-type]


def test_an_update_changes_only_the_given_columns(service: Client, space: Space) -> None:
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"a": 1}, position={"x": 1})
    turned = service.fidgets.update_fidget(fidget.id, type="text")
    assert (turned.type, turned.config, turned.position) == ("text", {"a": 1}, {"x": 1})
    cleared = service.fidgets.update_fidget(str(fidget.id), config=None, position=[])
    assert (cleared.type, cleared.config, cleared.position) == ("text", None, [])
    assert service.fidgets.update_fidget(fidget.id) == cleared
    with pytest.raises(FieldMissingError, match="^Update fidget failed: Required field is missing: fidgets.type$"):
        service.fidgets.update_fidget(fidget.id, type=None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="^Update fidget failed: config "):
        service.fidgets.update_fidget(fidget.id, config={1: 2})


@pytest.mark.parametrize("bad", ["", "nonsense", "\udfff"])
def test_a_bad_id_is_an_invalid_input_that_names_the_argument(service: Client, bad: str) -> None:
    fidgets = service.fidgets
    calls: list[tuple[str, Any]] = [
        ("Create fidget failed: space_id", lambda: fidgets.create_fidget(bad, "a")),
        ("Create fidgets failed: space_id", lambda: fidgets.create_fidgets(bad, [])),
        ("Save positions failed: space_id", lambda: fidgets.save_positions(bad, {})),
        ("Get fidget failed: id", lambda: fidgets.get_fidget(bad)),
        ("Update fidget failed: id", lambda: fidgets.update_fidget(bad)),
        ("Delete fidget failed: id", lambda: fidgets.delete_fidget(bad)),
        ("Get space fidgets failed: space_id", lambda: fidgets.get_space_fidgets(bad)),
    ]
    for sentence, call in calls:
        with pytest.raises(InvalidInputError, match=f"^{sentence} is not a UUID: "):
            call()


def test_an_anonymous_caller_reads_fidgets_of_public_spaces_and_changes_none(service: Client, client: Client, space: Space) -> None:
    hidden = service.fidgets.create_fidget(service.spaces.create_space("hidden").id, "a")
    shown = service.fidgets.create_fidget(space.id, "b")
    assert client.fidgets.get_fidget(shown.id) == shown
    assert client.fidgets.get_space_fidgets(space.id) == [shown]
    assert hidden.space_id is not None and client.fidgets.get_space_fidgets(hidden.space_id) == []
    missing: list[Any] = [
        lambda: client.fidgets.get_fidget(hidden.id),
        lambda: client.fidgets.update_fidget(shown.id, type="c"),
        lambda: client.fidgets.delete_fidget(shown.id),
        lambda: client.fidgets.save_positions(space.id, {shown.id: 1}),
    ]
    for call in missing:
        with pytest.raises(NotFoundError, match="failed: Record not found$"):
            call()
    with pytest.raises(AuthError) as caught:
        client.fidgets.create_fidget(space.id, "c")
    sentence = 'Create fidget failed: Database error: new row violates row-level security policy for table "fidgets": ' + ADVICE
    assert (str(caught.value), caught.value.code) == (sentence, "42501")
    assert service.fidgets.delete_fidget(shown.id) is None  # type: ignore[func-returns-value]
    with pytest.raises(NotFoundError, match="^Delete fidget failed: Record not found$"):
        service.fidgets.delete_fidget(shown.id)


def test_a_record_and_its_json_are_frozen(service: Client, space: Space) -> None:
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"a": [1]})
    fidget.config["a"].append(2)
    assert fidget.config == {"a": [1]}
    same = service.fidgets.get_fidget(fidget.id)
    assert fidget == same and hash(fidget) == hash(same) and copy.deepcopy(fidget) is fidget
    assert fidget != service.fidgets.update_fidget(fidget.id, config={"a": [1.5]})
    assert repr(fidget).startswith(f"Fidget(id={fidget.id!r}, space_id={space.id!r}, type='clock', config=")
    assert repr(fidget).endswith(f"created_at={fidget.created_at!r}, updated_at={fidget.updated_at!r})")
    columns = ["id", "space_id", "type", "config", "position", "created_at", "updated_at"]
    assert fidget.to_dict() == {name: getattr(fidget, name) for name in columns}
    with pytest.raises(AttributeError):
        fidget.config = {}  # type: ignore[misc]


def test_async_methods_behave_like_blocking_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with await townsquare.AsyncClient.open(tmp_path / "data") as client:
            service = await client.as_service()
            space = await service.spaces.create_space("Harbor")
            one, two = await service.fidgets.create_fidgets(space.id, [{"type": "a"}, {"type": "b"}])
            assert len(await service.fidgets.save_positions(space.id, {one.id: 1, two.id: 2})) == 2
            assert [each.position for each in await service.fidgets.get_space_fidgets(space.id)] == [1, 2]
            assert (await service.fidgets.update_fidget(one.id, config=[])).config == []
            assert (await service.fidgets.get_fidget(one.id)).position == 1
            refused = service.fidgets.create_fidget(space.id, "c", config=float("inf"))
            with pytest.raises(InvalidInputError, match="^Create fidget failed: config "):
                await refused
            await service.fidgets.delete_fidget(one.id)
            with pytest.raises(NotFoundError):
                await service.fidgets.get_fidget(one.id)

    run(main())
