"""Row-level security for each caller: anonymous, the owner, another user, the service (SPEC 5.4, DESIGN 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import townsquare
from townsquare import Client, Fidget, Space, User, identity_claim

KEY, OTHER_KEY = "01" * 32, "02" * 32
CALLERS = ["anonymous", "owner", "other", "service"]
CONFIG: dict[str, Any] = {"brand_config": {"name": "Town"}, "assets_config": [], "community_config": {}, "fidgets_config": {}}


class Fixture:
    """A handle for each caller, and a private and a public space of the owner, each with a fidget."""

    def __init__(self, client: Client) -> None:
        service = client.as_service()
        self.users: dict[str, User] = {}
        self.callers: dict[str, Client] = {"anonymous": client, "service": service}
        for name in ("owner", "other"):
            self.users[name] = service.auth.sign_up(f"{name}@town.example", "correct horse")
            session = service.auth.sign_in(f"{name}@town.example", "correct horse")
            self.callers[name] = client.as_user(session.access_token)
        owner = self.callers["owner"]
        self.private: Space = owner.spaces.create_space("private")
        self.public: Space = owner.spaces.create_space("public", is_public=True)
        self.private_fidget: Fidget = owner.fidgets.create_fidget(self.private.id, "clock")
        self.public_fidget: Fidget = owner.fidgets.create_fidget(self.public.id, "clock")

    def __getitem__(self, caller: str) -> Client:
        return self.callers[caller]


@pytest.fixture
def fixture(client: Client) -> Fixture:
    return Fixture(client)


def outcome(call: Callable[[], Any]) -> Any:
    """What `call` returns, or the attributes of its error."""
    try:
        return call()
    except townsquare.Error as error:
        return type(error), error.kind, str(error), error.code, error.status, error.is_retryable


def kind(call: Callable[[], Any]) -> str:
    """`ok`, or the kind of the error."""
    result = outcome(call)
    return str(result[1]) if isinstance(result, tuple) else "ok"


def row_policy(operation: str, table: str) -> tuple[Any, ...]:
    sentence = f'{operation} failed: Database error: new row violates row-level security policy for table "{table}"'
    return townsquare.AuthError, "forbidden", sentence, "42501", None, False


@pytest.mark.parametrize("caller", CALLERS)
def test_spaces_are_visible_to_their_owner_or_when_public(fixture: Fixture, caller: str) -> None:
    spaces, sees = fixture[caller].spaces, caller in ("owner", "service")
    assert spaces.get_space(fixture.public.id) == fixture.public
    assert spaces.get_space_with_fidgets(fixture.public.id).fidgets == [fixture.public_fidget]
    assert [space.id for space in spaces.get_public_spaces()] == [fixture.public.id]
    listed = {space.id for space in spaces.get_user_spaces(fixture.users["owner"].id)}
    assert listed == ({fixture.public.id, fixture.private.id} if sees else {fixture.public.id})
    for get in (spaces.get_space, spaces.get_space_with_fidgets):
        assert kind(lambda: get(fixture.private.id)) == ("ok" if sees else "not_found")


@pytest.mark.parametrize("caller", CALLERS)
def test_users_create_own_spaces_and_the_service_creates_any(fixture: Fixture, caller: str) -> None:
    spaces = fixture[caller].spaces
    refused = row_policy("Create space", "spaces")
    if caller == "anonymous":
        assert outcome(lambda: spaces.create_space("x")) == refused
    else:
        own = None if caller == "service" else fixture.users[caller].id
        assert spaces.create_space("x").owner_id == own
        assert spaces.create_space("x", owner_id=own).owner_id == own
    for owner in ("owner", "other"):
        may = caller in (owner, "service")
        result = outcome(lambda: spaces.create_space("x", owner_id=fixture.users[owner].id))
        assert result.owner_id == fixture.users[owner].id if may else result == refused
    both: list[dict[str, Any]] = [{"name": "a"}, {"name": "b", "owner_id": fixture.users["owner"].id}]
    assert kind(lambda: spaces.create_spaces(both)) == ("ok" if caller in ("owner", "service") else "forbidden")


@pytest.mark.parametrize("caller", CALLERS)
def test_only_owner_and_service_change_and_delete_spaces(fixture: Fixture, caller: str) -> None:
    spaces, expected = fixture[caller].spaces, "ok" if caller in ("owner", "service") else "not_found"
    for space in (fixture.private, fixture.public):
        assert kind(lambda: spaces.update_space(space.id)) == expected
        assert kind(lambda: spaces.update_space(space.id, name="renamed")) == expected
        assert fixture["service"].spaces.get_space(space.id).name == ("renamed" if expected == "ok" else space.name)
        assert kind(lambda: spaces.delete_space(space.id)) == expected
        assert kind(lambda: fixture["service"].spaces.get_space(space.id)) == ("not_found" if expected == "ok" else "ok")


@pytest.mark.parametrize("caller", CALLERS)
def test_fidgets_are_visible_where_their_space_is(fixture: Fixture, caller: str) -> None:
    fidgets, sees = fixture[caller].fidgets, caller in ("owner", "service")
    assert fidgets.get_fidget(fixture.public_fidget.id) == fixture.public_fidget
    assert fidgets.get_space_fidgets(fixture.public.id) == [fixture.public_fidget]
    assert kind(lambda: fidgets.get_fidget(fixture.private_fidget.id)) == ("ok" if sees else "not_found")
    assert fidgets.get_space_fidgets(fixture.private.id) == ([fixture.private_fidget] if sees else [])
    assert fidgets.get_space_fidgets(uuid4()) == []


@pytest.mark.parametrize("caller", CALLERS)
def test_only_the_spaces_owner_and_the_service_write_fidgets(fixture: Fixture, caller: str) -> None:
    fidgets, may = fixture[caller].fidgets, caller in ("owner", "service")
    for space, fidget in ((fixture.private, fixture.private_fidget), (fixture.public, fixture.public_fidget)):
        created = outcome(lambda: fidgets.create_fidget(space.id, "text"))
        assert isinstance(created, Fidget) if may else created == row_policy("Create fidget", "fidgets")
        assert kind(lambda: fidgets.create_fidgets(space.id, [{"type": "text"}])) == ("ok" if may else "forbidden")
        expected = "ok" if may else "not_found"
        assert kind(lambda: fidgets.save_positions(space.id, {fidget.id: {"x": 1}})) == expected
        assert kind(lambda: fidgets.update_fidget(fidget.id, config={"a": 1})) == expected
        now = fixture["service"].fidgets.get_fidget(fidget.id)
        assert (now.position, now.config) == (({"x": 1}, {"a": 1}) if may else (None, None))
        assert kind(lambda: fidgets.delete_fidget(fidget.id)) == expected


@pytest.mark.parametrize("caller", ["anonymous", "other"])
def test_a_hidden_row_fails_like_a_missing_one(fixture: Fixture, caller: str) -> None:
    spaces, fidgets, nowhere = fixture[caller].spaces, fixture[caller].fidgets, uuid4()
    for call in (
        lambda id: spaces.get_space(id),
        lambda id: spaces.get_space_with_fidgets(id),
        lambda id: spaces.update_space(id, name="x"),
        lambda id: spaces.update_space(id),
        lambda id: spaces.delete_space(id),
        lambda id: fidgets.get_space_fidgets(id),
        lambda id: fidgets.create_fidget(id, "text"),
    ):
        assert outcome(lambda: call(fixture.private.id)) == outcome(lambda: call(nowhere))
    for call in (
        lambda id: fidgets.get_fidget(id),
        lambda id: fidgets.update_fidget(id, type="x"),
        lambda id: fidgets.delete_fidget(id),
        lambda id: fidgets.save_positions(fixture.private.id, {id: None}),
    ):
        assert outcome(lambda: call(fixture.private_fidget.id)) == outcome(lambda: call(nowhere))
    missing = (townsquare.NotFoundError, "not_found", "Get space failed: Record not found", None, None, False)
    assert outcome(lambda: spaces.get_space(fixture.private.id)) == missing


@pytest.mark.parametrize("caller", CALLERS)
def test_users_appear_as_owners_and_delete_only_themselves(fixture: Fixture, caller: str) -> None:
    owner = fixture[caller].spaces.get_public_spaces()[0].owner
    assert owner is not None and (owner.id, owner.email) == (fixture.users["owner"].id, "owner@town.example")
    stranger = fixture["service"].auth.sign_up("stranger@town.example", "correct horse")
    sentence = "Delete user failed: Database error: permission denied for table users"
    refusal = (townsquare.AuthError, "unauthorized" if caller == "anonymous" else "forbidden", sentence, "42501", None, False)
    result = outcome(lambda: fixture[caller].auth.delete_user(stranger.id))
    assert result is None if caller == "service" else result == refusal
    update = outcome(lambda: fixture[caller].auth.update_user(current_password="correct horse", email=f"new-{caller}@town.example"))
    if caller in fixture.users:
        assert (update.id, update.email) == (fixture.users[caller].id, f"new-{caller}@town.example")
        fixture[caller].auth.delete_user(current_password="correct horse")
        assert kind(lambda: fixture[caller].spaces.get_public_spaces()) == "unauthorized"
    else:
        assert update[1:3] == ("unauthorized", "Update user failed: Nobody is signed in")


@pytest.mark.parametrize("caller", CALLERS)
def test_every_caller_reads_communities_and_only_the_service_writes_them(fixture: Fixture, caller: str) -> None:
    service, communities, may = fixture["service"].communities, fixture[caller].communities, caller == "service"
    service.save_community_config("town", **CONFIG)
    service.save_community_domain("town", "town.example", "custom")
    active = communities.get_active_community_config("town")
    assert active is not None and active["brand"] == {"name": "Town"}
    assert communities.resolve_community("town.example") == "town"
    denied = "unauthorized" if caller == "anonymous" else "forbidden"
    for operation, table, call in (
        ("Save community config", "community_configs", lambda: communities.save_community_config("town", **CONFIG)),
        ("Save community config", "community_configs", lambda: communities.save_community_config("new", **CONFIG)),
        ("Save community domain", "community_domains", lambda: communities.save_community_domain("town", "a.example", "custom")),
        ("Delete community domain", "community_domains", lambda: communities.delete_community_domain("a.example")),
    ):
        result = outcome(call)
        if not may:
            sentence = f"{operation} failed: Database error: permission denied for table {table}"
            assert result == (townsquare.AuthError, denied, sentence, "42501", None, False)
    assert communities.resolve_community("town.example") == (None if may else "town")
    service.save_community_config("town", is_published=False)
    assert communities.get_active_community_config("town") is None


@pytest.mark.parametrize("caller", CALLERS)
def test_only_owner_and_service_register_a_space(fixture: Fixture, caller: str) -> None:
    communities, may = fixture[caller].communities, caller in ("owner", "service")
    for space in (fixture.private, fixture.public):
        made = outcome(lambda: communities.register_space(space.id, "Harbor", "profile"))
        if may:
            assert communities.get_space_registration(space.id) == made
        else:
            assert made == row_policy("Register space", "spaceRegistrations")
            registered = fixture["service"].communities.register_space(space.id, "Harbor", "profile")
            assert communities.get_space_registration(space.id) == registered
    missing = kind(lambda: communities.register_space(uuid4(), "Harbor", "profile"))
    assert missing == ("ok" if caller == "service" else "forbidden")


def test_a_linked_admin_key_permits_update_navigation_only(fixture: Fixture) -> None:
    service, key = fixture["service"].communities, identity_claim(uuid4(), KEY, "nowhere")["publicKey"]
    before = service.save_community_config("town", admin_identity_public_keys=[key], **CONFIG)
    service.save_community_config("elsewhere", admin_identity_public_keys=["ab" * 32], **CONFIG)
    owner, other = fixture["owner"], fixture["other"]
    sentence = "Update navigation failed: Database error: permission denied for table community_configs"
    refused = (townsquare.AuthError, "forbidden", sentence, "42501", None, False)
    assert outcome(lambda: owner.communities.update_navigation("town", ["home"])) == refused
    owner.auth.link_identity(identity_claim(fixture.users["owner"].id, KEY, owner.auth.identity_audience()))
    other.auth.link_identity(identity_claim(fixture.users["other"].id, OTHER_KEY, owner.auth.identity_audience()))
    after = owner.communities.update_navigation("town", ["home"])
    assert after.navigation_config == ["home"] and after.updated_at > before.updated_at
    changed = {name for name, value in after.to_dict().items() if value != before.to_dict()[name]}
    # The keys are the service's to read.
    assert changed == {"navigation_config", "updated_at", "admin_identity_public_keys"}
    assert after.admin_identity_public_keys is None
    for handle, community in ((other, "town"), (owner, "elsewhere"), (other, "nowhere")):
        assert outcome(lambda: handle.communities.update_navigation(community, [])) == refused
    assert kind(lambda: fixture["anonymous"].communities.update_navigation("town", [])) == "unauthorized"
    assert kind(lambda: owner.communities.save_community_config("town", ui_config={})) == "forbidden"
    now = service.save_community_config("town")
    assert (now.navigation_config, now.admin_identity_public_keys) == (["home"], [key])
