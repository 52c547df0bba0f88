"""Row-level security for each caller: anonymous, the owner, another user, the service (SPEC 5.4, DESIGN 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import townsquare
from conftest import ADVICE
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
def test_only_owner_and_service_change_and_delete_spaces(fixture: Fixture, caller: str) -> None:
    spaces, expected = fixture[caller].spaces, "ok" if caller in ("owner", "service") else "not_found"
    for space in (fixture.private, fixture.public):
        assert kind(lambda: spaces.update_space(space.id)) == expected
        assert kind(lambda: spaces.update_space(space.id, name="renamed")) == expected
        assert fixture["service"].spaces.get_space(space.id).name == ("renamed" if expected == "ok" else space.name)
        assert kind(lambda: spaces.delete_space(space.id)) == expected
        assert kind(lambda: fixture["service"].spaces.get_space(space.id)) == ("not_found" if expected == "ok" else "ok")


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
    missing = (townsquare.NotFoundError, "not_found", "Get space failed: Record not found", None, 404, False)
    assert outcome(lambda: spaces.get_space(fixture.private.id)) == missing


def test_a_linked_admin_key_permits_update_navigation_only(fixture: Fixture) -> None:
    service, key = fixture["service"].communities, identity_claim(uuid4(), KEY, "nowhere")["publicKey"]
    before = service.save_community_config("town", admin_identity_public_keys=[key], **CONFIG)
    service.save_community_config("elsewhere", admin_identity_public_keys=["ab" * 32], **CONFIG)
    owner, other = fixture["owner"], fixture["other"]
    sentence = f"Update navigation failed: Database error: permission denied for table community_configs: {ADVICE}"
    refused = (townsquare.AuthError, "forbidden", sentence, "42501", 403, False)
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
