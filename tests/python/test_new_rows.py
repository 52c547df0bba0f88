"""New rows: given ids, order, errors that name row and column, and size limits (DESIGN 3)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from townsquare import AlreadyExistsError, AsyncClient, Client, FieldMissingError, InvalidInputError, TooLargeError


def test_a_create_with_an_id_can_be_repeated(service: Client) -> None:
    id = uuid4()
    space = service.spaces.create_space("Chess", description="Openings", is_public=True, id=id)
    assert space.id == id
    assert service.spaces.create_space("Chess", description="Openings", is_public=True, id=str(id)) == space
    assert service.spaces.create_spaces([{"name": "Go"}, {"name": "Chess", "description": "Openings", "is_public": True, "id": id}])[1] == space
    with pytest.raises(AlreadyExistsError, match="^Create space failed: Record already exists: spaces.id$") as caught:
        service.spaces.create_space("Chess", id=id)
    assert (caught.value.code, caught.value.row, caught.value.column) == ("23505", None, None)
    config = {"speed": 1e16, "n": [2**64 - 1, -(2**63), 0.1, None]}
    fidget = service.fidgets.create_fidget(space.id, "clock", config=config, position=[1], id=id)
    assert fidget.id == id
    assert service.fidgets.create_fidget(space.id, "clock", config=config, position=[1], id=id) == fidget
    assert service.fidgets.create_fidgets(space.id, [{"type": "clock", "config": config, "position": [1], "id": str(id)}]) == [fidget]
    with pytest.raises(AlreadyExistsError):
        service.fidgets.create_fidget(space.id, "clock", config=config, position=[2], id=id)


def test_an_id_that_is_no_uuid_is_refused(service: Client) -> None:
    with pytest.raises(InvalidInputError, match="^Create space failed: id is not a UUID: 'x'$"):
        service.spaces.create_space("Chess", id="x")
    with pytest.raises(InvalidInputError, match=r"^Create spaces failed: spaces\[1\].id is not a UUID: 'x'$") as caught:
        service.spaces.create_spaces([{"name": "a"}, {"name": "b", "id": "x"}])
    assert caught.value.row == 1
    with pytest.raises(TypeError, match="id"):
        service.spaces.create_space("Chess", id=5)  # type: ignore[arg-type]


def test_the_async_client_takes_ids_and_keeps_the_order(tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "town", catalog_api_key="") as client:
            service, id = await client.as_service(), UUID(int=7)
            space = await service.spaces.create_space("Chess", id=id)
            assert await service.spaces.create_space("Chess", id=id) == space
            fidget = await service.fidgets.create_fidget(id, "clock", id=id)
            assert await service.fidgets.create_fidget(id, "clock", id=id) == fidget
            await service.fidgets.create_fidgets(id, [{"type": str(n)} for n in range(200)])
            fidgets = await service.fidgets.get_space_fidgets(id)
            assert [fidget.type for fidget in fidgets[1:]] == [str(n) for n in range(200)]

    asyncio.run(main())


def test_an_error_names_the_row_and_the_column(service: Client) -> None:
    space = service.spaces.create_space("Chess")
    with pytest.raises(FieldMissingError, match="^Create spaces failed: Required field is missing: spaces.name$") as caught:
        service.spaces.create_spaces([{"name": "a"}, {"name": "b"}, {"description": "no name"}])  # type: ignore[typeddict-item]
    assert (caught.value.row, caught.value.column) == (2, "name")
    with pytest.raises(FieldMissingError) as caught:
        service.fidgets.create_fidget(space.id, None)  # type: ignore[arg-type]
    assert (caught.value.row, caught.value.column) == (None, "type")
    refused: list[tuple[Any, str]] = [
        ({"type": "a\0"}, r"fidgets\[1\].type contains a NUL character"),
        ({"type": "a", "config": float("nan")}, r"fidgets\[1\].config has a number that is not finite"),
        ({"type": "a", "position": 2**64}, r"fidgets\[1\].position has an integer of more than 64 bits"),
        ({"type": "a", "colour": "red"}, r"fidgets\[1\] has unknown keys: 'colour'"),
    ]
    for row, message in refused:
        with pytest.raises(InvalidInputError, match=f"^Create fidgets failed: {message}$") as refusal:
            service.fidgets.create_fidgets(space.id, [{"type": "good"}, row])
        assert (refusal.value.row, refusal.value.column) == (1, None)
    assert service.fidgets.get_space_fidgets(space.id) == []


def test_a_flag_cannot_be_none(service: Client) -> None:
    space = service.spaces.create_space("Chess", is_public=True)
    calls: list[Any] = [
        lambda: service.spaces.create_space("x", is_public=None),  # type: ignore[arg-type]
        lambda: service.spaces.update_space(space.id, name="x", is_public=None),  # type: ignore[arg-type]
        lambda: service.communities.save_community_config("town", is_published=None),  # type: ignore[arg-type]
        lambda: service.communities.save_community_config("town", custom_domain_authorized=None),  # type: ignore[arg-type]
    ]
    for call, name in zip(calls, ("is_public", "is_public", "is_published", "custom_domain_authorized")):
        with pytest.raises(FieldMissingError, match=f": {name}$") as caught:
            call()
        assert (caught.value.code, caught.value.column) == ("23502", name)
    with pytest.raises(FieldMissingError, match=": is_public$") as caught:
        service.spaces.create_spaces([{"name": "x"}, {"name": "x", "is_public": None}])  # type: ignore[typeddict-item]
    assert caught.value.row == 1
    assert service.spaces.get_space(space.id) == space
    assert service.spaces.update_space(space.id, is_public=...).is_public  # type: ignore[arg-type]


def test_fidgets_of_a_space_are_limited_by_an_option(tmp_path: Path) -> None:
    with Client.open(tmp_path / "town", catalog_api_key="", max_space_fidgets=2) as client:
        client.auth.sign_up("ann@town.example", "correct horse")
        client.auth.sign_in("ann@town.example", "correct horse")
        space = client.spaces.create_space("town")
        client.fidgets.create_fidgets(space.id, [{"type": "a"}] * 2)
        with pytest.raises(townsquare.QuotaExceededError, match="the limit is the option max_space_fidgets") as caught:
            client.fidgets.create_fidget(space.id, "b")
        assert (caught.value.kind, caught.value.status) == ("quota_exceeded", 409)
        client.as_service().fidgets.create_fidget(space.id, "b")


def test_sizes_are_limited_by_options(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_text_size": 10, "max_json_size": 20, "max_bulk_rows": 2}
    with Client.open(tmp_path / "town", catalog_api_key="", **options) as client:
        service = client.as_service()
        space = service.spaces.create_space("x" * 10)
        calls: list[tuple[Any, str]] = [
            (lambda: service.spaces.create_space("x" * 11), "name has 11 bytes; the limit, option max_text_size, is 10"),
            (lambda: service.fidgets.create_fidget(space.id, "a", config=["x" * 17]), "config has 21 bytes of JSON"),
            (lambda: service.spaces.create_spaces([{"name": "a"}] * 3), "spaces has 3 rows"),
        ]
        for call, message in calls:
            with pytest.raises(TooLargeError, match=message) as caught:
                call()
            assert caught.value.kind == "too_large"
        assert len(service.fidgets.create_fidgets(space.id, [{"type": "a", "config": ["x" * 16]}] * 2)) == 2
    with pytest.raises(townsquare.ConfigError, match="max_text_size"):
        Client.open(tmp_path / "town", max_text_size=0)


class Rows(Sequence[Any]):
    """Rows of which only the number may be asked."""

    def __len__(self) -> int:
        return 10_001

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("an item was touched")


class Positions(Mapping[Any, Any]):
    """Positions of which only the number may be asked."""

    def __len__(self) -> int:
        return 10_001

    def __iter__(self) -> Any:
        raise AssertionError("a key was touched")

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("a position was touched")


def test_too_many_rows_are_refused_by_their_number(service: Client) -> None:
    space = service.spaces.create_space("Square")
    calls: list[tuple[Any, str]] = [
        (lambda: service.spaces.create_spaces(Rows()), "Create spaces failed: spaces has"),
        (lambda: service.fidgets.create_fidgets(space.id, Rows()), "Create fidgets failed: fidgets has"),
        (lambda: service.fidgets.save_positions(space.id, Positions()), "Save positions failed: positions has"),
        (lambda: service.auth.import_credentials(Rows()), "Import credentials failed: rows has"),
        # An iterator that has no end.
        (lambda: service.auth.import_credentials(itertools.repeat({"email": "a"})), "Import credentials failed: rows has"),
    ]
    for call, start in calls:
        with pytest.raises(TooLargeError) as caught:
            call()
        assert str(caught.value) == f"{start} 10001 rows; the limit, option max_bulk_rows, is 10000"
        assert caught.value.row is None


def test_an_error_of_a_length_is_raised(service: Client) -> None:
    class Broken(Rows):
        def __len__(self) -> int:
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        service.spaces.create_spaces(Broken())
