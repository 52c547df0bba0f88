"""Spaces: row operations, lists, records and refusals (SPEC 2.6, 4.5, 5.4, 7)."""

from __future__ import annotations

import asyncio
import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from conftest import ADVICE, add_user, run
from townsquare import AuthError, Client, FieldMissingError, InvalidInputError, NotFoundError, PublicSpace, Space, SpaceWithFidgets


def names(spaces: list[Any]) -> list[str]:
    return [space.name for space in spaces]


def test_a_space_is_inserted_and_returned(service: Client) -> None:
    space = service.spaces.create_space("Harbor", description="Boats 🚤", is_public=True)
    assert type(space) is Space and isinstance(space.id, UUID)
    assert (space.name, space.description, space.is_public, space.owner_id) == ("Harbor", "Boats 🚤", True, None)
    assert space.created_at == space.updated_at and space.created_at.tzinfo is timezone.utc
    assert abs((datetime.now(timezone.utc) - space.created_at).total_seconds()) < 60
    assert service.spaces.get_space(space.id) == service.spaces.get_space(str(space.id)) == space
    plain = service.spaces.create_space("Plain")
    assert (plain.description, plain.is_public) == (None, False)


def test_the_service_may_name_any_existing_owner(service: Client, data_dir: Path) -> None:
    ada = add_user(data_dir, "ada@town.example")
    assert service.spaces.create_space("Hers", owner_id=str(ada)).owner_id == ada
    with pytest.raises(townsquare.ReferenceMissingError) as caught:
        service.spaces.create_space("Nobody's", owner_id=uuid4())
    assert str(caught.value).startswith("Create space failed: Referenced record not found")
    assert (caught.value.code, caught.value.operation) == ("23503", "create_space")


def test_a_name_is_required(service: Client) -> None:
    for create in (
        lambda: service.spaces.create_space(None),  # type: ignore[arg-type]
        lambda: service.spaces.create_spaces([{"name": None}]),  # type: ignore[typeddict-item]
        lambda: service.spaces.create_spaces([{"description": "x"}]),  # type: ignore[typeddict-item]
    ):
        with pytest.raises(FieldMissingError, match="failed: Required field is missing: spaces.name$") as caught:
            create()
        assert caught.value.code == "23502"
    with pytest.raises(TypeError):
        service.spaces.create_space()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="name"):
        service.spaces.create_space(5)  # type: ignore[arg-type]


def test_create_spaces_inserts_all_in_order_or_none(service: Client, data_dir: Path) -> None:
    ada = add_user(data_dir, "ada@town.example")
    made = service.spaces.create_spaces([{"name": "one", "is_public": True}, {"name": "two", "owner_id": ada, "description": None}])
    assert [(space.name, space.is_public, space.owner_id) for space in made] == [("one", True, None), ("two", False, ada)]
    assert service.spaces.create_spaces([]) == []
    with pytest.raises(FieldMissingError, match="^Create spaces failed: "):
        service.spaces.create_spaces([{"name": "three", "is_public": True}, {"name": None}])  # type: ignore[typeddict-item]
    assert names(service.spaces.get_public_spaces()) == ["one"]


def test_unknown_keys_and_wrong_types_are_refused_by_name(service: Client) -> None:
    with pytest.raises(InvalidInputError, match=r"^Create spaces failed: spaces\[1\] has unknown keys: 'colour', 7$"):
        service.spaces.create_spaces([{"name": "a"}, {"name": "b", "colour": "red", 7: 1}])  # type: ignore[misc]
    with pytest.raises(InvalidInputError, match=r"spaces\[0\].owner_id is not a UUID: 'me'"):
        service.spaces.create_spaces([{"name": "a", "owner_id": "me"}])
    with pytest.raises(TypeError, match=r"spaces\[0\].name"):
        service.spaces.create_spaces([{"name": 5}])  # type: ignore[typeddict-item]
    for wrong in ({"name": "a"}, "name", b"name", [5], ["name"], 5, None):
        with pytest.raises(TypeError):
            service.spaces.create_spaces(wrong)  # type: ignore[arg-type]
    assert service.spaces.get_public_spaces() == []


@pytest.mark.parametrize("bad", ["", "5", "not-a-uuid", "x" * 5000, "\ud800", "5" * 31])
def test_a_bad_id_is_an_invalid_input_that_names_the_argument(service: Client, bad: str) -> None:
    spaces = service.spaces
    for operation, name, call in (
        ("Get space", "id", lambda: spaces.get_space(bad)),
        ("Update space", "id", lambda: spaces.update_space(bad, name="x")),
        ("Delete space", "id", lambda: spaces.delete_space(bad)),
        ("Get user spaces", "user_id", lambda: spaces.get_user_spaces(bad)),
        ("Get space with fidgets", "id", lambda: spaces.get_space_with_fidgets(bad)),
        ("Create space", "owner_id", lambda: spaces.create_space("x", owner_id=bad)),
    ):
        with pytest.raises(InvalidInputError) as caught:
            call()
        assert str(caught.value).startswith(f"{operation} failed: {name} is not a UUID: ")
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize("wrong", [5, None, b"x", 1.5, object()])
def test_an_id_of_another_type_is_a_type_error(service: Client, wrong: Any) -> None:
    with pytest.raises(TypeError, match="id"):
        service.spaces.get_space(wrong)


def test_missing_rows_fail_with_the_exact_sentences(service: Client) -> None:
    spaces, nowhere = service.spaces, uuid4()
    for sentence, call in (
        ("Get space failed: Record not found", lambda: spaces.get_space(nowhere)),
        ("Update space failed: Record not found", lambda: spaces.update_space(nowhere, name="x")),
        ("Update space failed: Record not found", lambda: spaces.update_space(nowhere)),
        ("Delete space failed: Record not found", lambda: spaces.delete_space(nowhere)),
        ("Get space with fidgets failed: Record not found", lambda: spaces.get_space_with_fidgets(nowhere)),
    ):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert str(caught.value) == sentence
        assert (caught.value.kind, caught.value.code) == ("not_found", None)
    assert spaces.get_user_spaces(nowhere) == []


def test_an_update_changes_only_the_given_columns(service: Client) -> None:
    space = service.spaces.create_space("Harbor", description="Boats", is_public=True)
    renamed = service.spaces.update_space(space.id, name="Haven")
    assert (renamed.name, renamed.description, renamed.is_public) == ("Haven", "Boats", True)
    assert renamed.updated_at > space.updated_at and renamed.created_at == space.created_at
    cleared = service.spaces.update_space(str(space.id), description=None, is_public=False)
    assert (cleared.name, cleared.description, cleared.is_public) == ("Haven", None, False)
    assert service.spaces.update_space(space.id) == cleared
    assert service.spaces.update_space(space.id, name=..., description=...) == cleared  # type: ignore[arg-type]
    with pytest.raises(FieldMissingError) as caught:
        service.spaces.update_space(space.id, name=None)  # type: ignore[arg-type]
    assert str(caught.value) == "Update space failed: Required field is missing: spaces.name"
    assert service.spaces.get_space(space.id) == cleared


def test_public_spaces_default_to_twenty_rows_newest_first_with_owners(service: Client, client: Client, data_dir: Path) -> None:
    ada = add_user(data_dir, "ada@town.example")
    for number in range(25):
        service.spaces.create_space(f"space {number}", is_public=True, owner_id=ada if number % 2 else None)
    service.spaces.create_space("hidden")
    page = client.spaces.get_public_spaces()
    assert isinstance(page, townsquare.SpaceList) and all(type(space) is PublicSpace for space in page)
    assert names(page) == [f"space {number}" for number in range(24, 4, -1)]
    assert names(client.spaces.get_public_spaces(10, 20)) == ["space 4", "space 3", "space 2", "space 1", "space 0"]
    assert names(client.spaces.get_public_spaces(limit=2, offset=1)) == ["space 23", "space 22"]
    assert client.spaces.get_public_spaces(5, 2**63 - 1) == []
    owner = page[1].owner
    assert owner is not None and (owner.id, owner.email) == (ada, "ada@town.example")
    assert page[0].owner is None and page[1].owner_id == ada


@pytest.mark.parametrize("limit, offset", [(0, 0), (1001, 0), (-1, 0), (10**30, 0), (20, -1), (20, 2**63), (20, 10**30)])
def test_a_limit_or_offset_out_of_range_is_an_invalid_input(client: Client, limit: int, offset: int) -> None:
    with pytest.raises(InvalidInputError) as caught:
        client.spaces.get_public_spaces(limit, offset)
    assert str(caught.value).startswith(f"Get public spaces failed: {'offset' if limit == 20 else 'limit'} is ")


def test_user_spaces_come_with_their_fidgets(service: Client, client: Client, data_dir: Path) -> None:
    ada = add_user(data_dir, "ada@town.example")
    empty = service.spaces.create_space("empty", owner_id=ada, is_public=True)
    full = service.spaces.create_space("full", owner_id=ada)
    fidgets = [service.fidgets.create_fidget(full.id, kind, config={"n": 1}) for kind in ("clock", "text")]
    spaces = service.spaces.get_user_spaces(str(ada))
    assert isinstance(spaces, townsquare.SpaceList) and all(type(space) is SpaceWithFidgets for space in spaces)
    assert [(space.id, space.fidgets) for space in spaces] == [(full.id, fidgets), (empty.id, [])]
    assert names(client.spaces.get_user_spaces(ada)) == ["empty"]
    one = service.spaces.get_space_with_fidgets(full.id)
    assert one == spaces[0] and one.fidgets == fidgets
    with pytest.raises(NotFoundError):
        service.spaces.get_space_with_fidgets(empty.id)


def test_an_anonymous_caller_reads_public_spaces_and_changes_none(service: Client, client: Client) -> None:
    hidden = service.spaces.create_space("hidden")
    shown = service.spaces.create_space("shown", is_public=True)
    assert client.spaces.get_space(shown.id) == shown
    for call in (
        lambda: client.spaces.get_space(hidden.id),
        lambda: client.spaces.update_space(hidden.id, name="mine"),
        lambda: client.spaces.update_space(shown.id, name="mine"),
        lambda: client.spaces.delete_space(shown.id),
    ):
        with pytest.raises(NotFoundError):
            call()
    for create, operation in (
        (lambda: client.spaces.create_space("mine"), "Create space"),
        (lambda: client.spaces.create_spaces([{"name": "mine"}]), "Create spaces"),
    ):
        with pytest.raises(AuthError) as caught:
            create()
        sentence = 'Database error: new row violates row-level security policy for table "spaces": ' + ADVICE
        assert str(caught.value) == f"{operation} failed: {sentence}"
        assert (caught.value.kind, caught.value.code) == ("forbidden", "42501") and isinstance(caught.value, PermissionError)
    assert service.spaces.get_space(shown.id) == shown


def test_expose_owner_email_hides_addresses(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data", expose_owner_email=False) as client:
        ada = add_user(tmp_path / "data", "ada@town.example")
        client.as_service().spaces.create_space("hers", owner_id=ada, is_public=True)
        (space,) = client.spaces.get_public_spaces()
        assert space.owner is not None and (space.owner.id, space.owner.email) == (ada, None)
        assert "ada@" not in client.spaces.get_public_spaces()._repr_html_()
    for exposed in (True, "always"):
        with Client.open(tmp_path / "data", expose_owner_email=exposed) as client:
            (space,) = client.spaces.get_public_spaces()
            assert space.owner is not None and space.owner.email == "ada@town.example"
    with Client.open(tmp_path / "data", expose_owner_email="verified") as client:
        for email in (None, "ada@town.example"):
            (space,) = client.spaces.get_public_spaces()
            assert space.owner is not None and space.owner.email == email
            client.auth.verify_email(client.as_service().auth.create_verification_token(ada))


def test_text_comes_back_equal_and_a_nul_is_refused(service: Client) -> None:
    for text in ("'; DROP TABLE spaces; --", "%_\\\"`", "עברית ‮ rtl", "🏙️" * 100, "", "x" * 1_000_000):
        name = text[:1000]
        space = service.spaces.create_space(name, description=text)
        assert (service.spaces.get_space(space.id).name, space.description) == (name, text)
    for bad in ("a\0b", "half \ud83d"):
        for refused in (
            lambda: service.spaces.create_space(bad),
            lambda: service.spaces.create_space("x", description=bad),
            lambda: service.spaces.update_space(uuid4(), name=bad),
        ):
            with pytest.raises(InvalidInputError, match="failed: (name|description) "):
                refused()  # type: ignore[no-untyped-call]


def test_records_are_frozen_and_compared_by_value(service: Client, data_dir: Path) -> None:
    ada = add_user(data_dir, "ada@town.example")
    space = service.spaces.create_space("Harbor", owner_id=ada, is_public=True)
    service.fidgets.create_fidget(space.id, "clock", config={"a": [1]})
    other = service.spaces.create_space("Other")
    same, full, public = service.spaces.get_space(space.id), service.spaces.get_space_with_fidgets(space.id), service.spaces.get_public_spaces()[0]
    assert space == same and not space != same and space is not same and hash(space) == hash(same)
    assert space != other and len({space, same, other}) == 2
    assert space != full and full != space and full != public and space != "Harbor" and space is not None
    assert full == service.spaces.get_space_with_fidgets(space.id) and hash(full) == hash(space)
    assert public == service.spaces.get_public_spaces()[0]
    assert issubclass(SpaceWithFidgets, Space) and issubclass(PublicSpace, Space) and full.name == "Harbor"
    for record in (space, full, public, public.owner):
        assert copy.copy(record) is record and copy.deepcopy(record) is record
        with pytest.raises(AttributeError):
            record.id = ada  # type: ignore[misc, union-attr]
    with pytest.raises(TypeError):
        space < same  # type: ignore[operator]
    inside = f"id={space.id!r}, name='Harbor', description={space.description!r}, owner_id={ada!r}, is_public=True"
    inside += f", created_at={space.created_at!r}, updated_at={space.updated_at!r}"
    assert repr(space) == f"Space({inside})"
    assert repr(full) == f"SpaceWithFidgets({inside}, fidgets={full.fidgets!r})"
    assert repr(public) == f"PublicSpace({inside}, owner=Owner(id={ada!r}, email='ada@town.example'))"
    columns = ["id", "name", "description", "owner_id", "is_public", "created_at", "updated_at"]
    assert space.to_dict() == {name: getattr(space, name) for name in columns}
    assert full.to_dict() == {**space.to_dict(), "fidgets": [full.fidgets[0].to_dict()]}
    assert public.to_dict() == {**space.to_dict(), "owner": {"id": ada, "email": "ada@town.example"}}


def test_a_notebook_table_escapes_text(service: Client, data_dir: Path) -> None:
    nasty = '<script>alert("x")</script>'
    ada = add_user(data_dir, f"{nasty}@town.example")
    space = service.spaces.create_space(nasty, description=nasty, owner_id=ada, is_public=True)
    for _ in range(6):
        service.fidgets.create_fidget(space.id, nasty)
    for spaces in (service.spaces.get_public_spaces(), service.spaces.get_user_spaces(ada)):
        page = spaces._repr_html_()
        assert "<script" not in page and 'alert("x")' not in page and "&lt;script&gt;" in page and page.count("<tr>") == 2
    assert "No spaces" in service.spaces.get_user_spaces(uuid4())._repr_html_()


def test_as_service_returns_another_handle_to_the_same_database(client: Client) -> None:
    service = client.as_service()
    assert type(service) is Client and service is not client
    assert service.spaces is service.spaces and service.spaces is not client.spaces
    space = service.spaces.create_space("seen", is_public=True)
    assert client.spaces.get_space(space.id) == space and service.as_service().spaces.get_space(space.id) == space
    client.close()
    assert service.closed
    with pytest.raises(townsquare.ClosedError, match="^Get space failed: The client is closed"):
        service.spaces.get_space(space.id)
    with pytest.raises(townsquare.ClosedError, match="^Get public spaces failed: "):
        client.spaces.get_public_spaces()


def test_a_handle_of_another_caller_closes_alone(client: Client) -> None:
    client.auth.sign_up("ann@town.example", "correct horse")
    session = client.as_service().auth.sign_in("ann@town.example", "correct horse")
    with client.as_user(session.access_token) as ann:
        space = ann.spaces.create_space("Harbor", is_public=True)
        of_ann = ann.as_service()
    with client.as_service() as service:
        assert service.spaces.get_space(space.id) == space
    service.close()
    assert ann.closed and service.closed
    assert not client.closed and not of_ann.closed
    for handle in (ann, service):
        for call in (
            lambda: handle.spaces.get_space(space.id),
            lambda: handle.spaces.create_space("x"),
            lambda: next(handle.spaces.iter_public_spaces()),
            lambda: handle.fidgets.get_space_fidgets(space.id),
            lambda: handle.communities.resolve_community("x.example"),
            lambda: handle.auth.get_session(),
            lambda: handle.discovery.get_trending_mini_apps(),
            lambda: handle.discovery.stats(),
            lambda: handle.as_user(session.access_token),
            lambda: handle.as_service(),
            lambda: handle.backup("copy.db"),
        ):
            with pytest.raises(townsquare.ClosedError, match="The handle is closed$"):
                call()
    with client.as_user(session.access_token) as again:
        again.spaces.create_space("Mill")
    assert of_ann.spaces.get_space(space.id) == space
    assert names(client.spaces.get_public_spaces()) == ["Harbor"]
    with pytest.raises(RuntimeError, match="mine"), client.as_service():
        raise RuntimeError("mine")
    assert not client.closed


def test_a_handle_may_be_closed_in_its_callback(client: Client) -> None:
    service, called = client.as_service(), threading.Event()

    def close(*_: object) -> None:
        service.close()
        called.set()

    service.auth.on_auth_state_change(close)
    assert called.wait(30) and service.closed and not client.closed


def test_pages_after_a_space(client: Client, service: Client) -> None:
    made = service.spaces.create_spaces([{"name": str(number), "is_public": True} for number in range(25)])
    everything = client.spaces.get_public_spaces(1000)
    assert {space.id for space in everything} == {space.id for space in made}
    page, seen = client.spaces.get_public_spaces(4), list[PublicSpace]()
    while page:
        seen += page
        service.spaces.create_space("newer", is_public=True)
        service.spaces.delete_space(page[-1].id)
        page = client.spaces.get_public_spaces(4, after=page[-1])
        assert isinstance(page, townsquare.SpaceList)
    assert seen == everything
    left = client.spaces.get_public_spaces(1000)
    for after in (left[2], left[2].id, str(left[2].id)):
        assert client.spaces.get_public_spaces(2, after=after) == left[3:5]
        assert client.spaces.get_public_spaces(2, 0, after=after) == left[3:5]
    assert client.spaces.get_public_spaces(after=None) == left[:20]


def test_what_is_no_position_is_refused(client: Client, service: Client) -> None:
    hidden = service.spaces.create_space("hidden")
    shown = service.spaces.create_space("shown", is_public=True)
    for after in (uuid4(), hidden.id):
        with pytest.raises(InvalidInputError, match=f"^Get public spaces failed: after names no public space: {after}$"):
            client.spaces.get_public_spaces(after=after)
    with pytest.raises(InvalidInputError, match="^Get public spaces failed: after and offset exclude each other$"):
        client.spaces.get_public_spaces(5, 1, after=shown.id)
    with pytest.raises(InvalidInputError, match="^Get public spaces failed: after is not a UUID: 'x'$"):
        client.spaces.get_public_spaces(after="x")
    for wrong in (1, hidden, [shown]):
        with pytest.raises(TypeError, match="expected a PublicSpace, a UUID or its text"):
            client.spaces.get_public_spaces(after=wrong)  # type: ignore[arg-type]
    for size in (0, 1001, -1, 2**70):
        with pytest.raises(InvalidInputError, match="^Get public spaces failed: (limit|page_size) is 1 to 1000, not "):
            next(iter(client.spaces.iter_public_spaces(size)))


def test_iterating_over_public_spaces(client: Client, service: Client) -> None:
    service.spaces.create_spaces([{"name": str(number), "is_public": True} for number in range(25)])
    everything = list(client.spaces.get_public_spaces(1000))
    for size in (1, 4, 5, 25, 1000):
        assert list(client.spaces.iter_public_spaces(size)) == everything
    assert list(client.spaces.iter_public_spaces()) == everything
    spaces = client.spaces.iter_public_spaces(4)
    assert iter(spaces) is spaces
    with ThreadPoolExecutor(4) as pool:
        shared = [each for part in pool.map(lambda _: list(spaces), range(4)) for each in part]
    assert sorted(shared, key=lambda space: space.id) == sorted(everything, key=lambda space: space.id)
    assert next(spaces, None) is None and next(spaces, None) is None
    with client.as_service() as handle:
        spaces = handle.spaces.iter_public_spaces(4)
        first = [next(spaces) for _ in range(4)]
    assert first == everything[:4]
    with pytest.raises(townsquare.ClosedError, match="^Get public spaces failed: The handle is closed"):
        next(spaces)
    assert next(spaces, None) is None


def test_an_async_client_pages_and_iterates(tmp_path: Path) -> None:
    async def main() -> None:
        async with await townsquare.AsyncClient.open(tmp_path / "data") as client:
            async with await client.as_service() as service:
                await service.spaces.create_spaces([{"name": str(number), "is_public": True} for number in range(25)])
            assert service.closed and not client.closed
            everything = await client.spaces.get_public_spaces(1000)
            assert await client.spaces.get_public_spaces(4, after=everything[6]) == everything[7:11]
            with pytest.raises(InvalidInputError, match="exclude each other"):
                await client.spaces.get_public_spaces(4, 1, after=everything[6])
            for size in (1, 4, 1000):
                assert [space async for space in client.spaces.iter_public_spaces(size)] == everything
            spaces = client.spaces.iter_public_spaces(3)
            assert spaces.__aiter__() is spaces
            together = await asyncio.gather(*(spaces.__anext__() for _ in range(10)))
            assert sorted(together, key=lambda space: space.id) == sorted(everything[:10], key=lambda space: space.id)
            assert [space async for space in spaces] == everything[10:]
            with pytest.raises(StopAsyncIteration):
                await spaces.__anext__()
            with pytest.raises(InvalidInputError, match="^Get public spaces failed: limit is 1 to 1000, not 0"):
                async for _ in client.spaces.iter_public_spaces(0):
                    pass

    asyncio.run(main())


def test_async_methods_behave_like_blocking_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with await townsquare.AsyncClient.open(tmp_path / "data") as client:
            service = await client.as_service()
            assert type(service) is townsquare.AsyncClient
            space = await service.spaces.create_space("Harbor", is_public=True)
            assert await client.spaces.get_space(str(space.id)) == space
            assert (await service.spaces.update_space(space.id, description="x")).description == "x"
            assert names(await client.spaces.get_public_spaces()) == ["Harbor"]
            await service.fidgets.create_fidget(space.id, "clock", config=[1])
            assert [each.config for each in (await client.spaces.get_space_with_fidgets(space.id)).fidgets] == [[1]]
            assert await client.spaces.get_user_spaces(uuid4()) == []
            refused = client.spaces.get_space("nonsense")
            with pytest.raises(InvalidInputError, match="^Get space failed: id is not a UUID"):
                await refused
            misspelt = service.spaces.create_spaces([{"nam": "x"}])  # type: ignore[typeddict-item,typeddict-unknown-key]
            with pytest.raises(InvalidInputError, match="'nam'"):
                await misspelt
            with pytest.raises(InvalidInputError, match="limit"):
                await client.spaces.get_public_spaces(0)
            await service.spaces.delete_space(space.id)
            with pytest.raises(NotFoundError):
                await client.spaces.get_space(space.id)
        with pytest.raises(townsquare.ClosedError):
            await client.spaces.get_public_spaces()

    run(main())
