"""Lists of the service (whole tables, identity keys), a new owner, spaces without fidgets, the anonymous handle: conversions and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from conftest import add_user, run
from townsquare import AsyncClient, AuthError, Client, InvalidInputError, NotFoundError, Space, SpaceWithFidgets, User, identity_claim

EMAIL, PASSWORD = "ann@town.example", "correct horse"


def test_lists_go_on_after_a_record_an_id_or_its_text(service: Client, data_dir: Path) -> None:
    ada = add_user(data_dir, "ada@town.example")
    ids = sorted(service.spaces.create_space(f"space {number}", owner_id=ada).id for number in range(3))
    first = service.spaces.list_spaces(1)
    assert type(first[0]) is Space and first[0].id == ids[0]
    for after in (first[0], first[0].id, str(first[0].id)):
        assert [space.id for space in service.spaces.list_spaces(after=after)] == ids[1:]
    assert service.spaces.list_spaces(after=ids[2]) == []
    users = service.auth.list_users()
    assert type(users[0]) is User and [user.id for user in users] == [ada]
    assert service.auth.list_users(after=users[0]) == []


def test_communities_are_listed(service: Client) -> None:
    required: dict[str, Any] = dict.fromkeys(("brand_config", "assets_config", "community_config", "fidgets_config"), {})
    config = service.communities.save_community_config("harbor", is_published=False, **required)
    domain = service.communities.save_community_domain("harbor", "harbor.example", "custom")
    registration = service.communities.register_space(uuid4(), "Harbor", "profile")
    assert service.communities.list_community_configs() == [config]
    assert service.communities.list_community_configs(after=config) == []
    assert service.communities.list_community_domains(10) == [domain]
    assert service.communities.list_community_domains(after=domain) == []
    assert service.communities.list_space_registrations() == [registration]
    assert service.communities.list_space_registrations(after=registration) == []


def test_lists_refuse_others_and_wrong_arguments(client: Client, service: Client) -> None:
    for call in (client.spaces.list_spaces, client.auth.list_users, client.communities.list_community_configs):
        with pytest.raises(AuthError, match="permission denied"):
            call()
    with pytest.raises(InvalidInputError, match="limit is 1 to 1000"):
        service.spaces.list_spaces(0)
    with pytest.raises(InvalidInputError, match="after is not a UUID"):
        service.spaces.list_spaces(after="somewhere")
    with pytest.raises(TypeError, match="after"):
        service.spaces.list_spaces(after=5)  # type: ignore[arg-type]


def test_a_space_gets_another_owner(service: Client, data_dir: Path) -> None:
    ada, bob = add_user(data_dir, "ada@town.example"), add_user(data_dir, "bob@town.example")
    space = service.spaces.create_space("Harbor", owner_id=ada)
    assert service.spaces.set_owner(space.id, str(bob)).owner_id == bob
    with pytest.raises(townsquare.ReferenceMissingError, match="^Set owner failed: Referenced record not found"):
        service.spaces.set_owner(space.id, UUID(int=0))


def test_get_space_with_fidgets_allows_an_empty_space(service: Client) -> None:
    space = service.spaces.create_space("bare")
    with pytest.raises(NotFoundError):
        service.spaces.get_space_with_fidgets(space.id)
    found = service.spaces.get_space_with_fidgets(space.id, allow_empty=True)
    assert type(found) is SpaceWithFidgets and (found.name, found.fidgets) == ("bare", [])


def test_an_anonymous_handle_stays_anonymous(client: Client) -> None:
    client.auth.sign_up("ada@town.example", "correct horse")
    anonymous = client.as_anonymous()
    client.auth.sign_in("ada@town.example", "correct horse")
    space = client.spaces.create_space("Harbor")
    with pytest.raises(NotFoundError):
        anonymous.spaces.get_space(space.id)
    anonymous.close()
    assert client.spaces.get_space(space.id) == space


def test_async_lists(data_dir: Path) -> None:
    async def body() -> None:
        async with await AsyncClient.open(data_dir) as client:
            service = await client.as_service()
            space = await service.spaces.create_space("Harbor")
            assert await service.spaces.list_spaces() == [space]
            assert await service.auth.list_users() == []
            assert (await service.spaces.get_space_with_fidgets(space.id, allow_empty=True)).fidgets == []
            with pytest.raises(NotFoundError):
                await (await client.as_anonymous()).spaces.get_space(space.id)

    run(body())


def test_the_service_lists_the_identity_keys_of_a_user(client: Client, service: Client) -> None:
    user = client.auth.sign_up(EMAIL, PASSWORD)
    client.auth.sign_in(EMAIL, PASSWORD)
    claims = [identity_claim(user.id, key, client.auth.identity_audience()) for key in ("02" * 32, "01" * 32)]
    for claim in claims:
        client.auth.link_identity(claim)
    keys = [claim["publicKey"] for claim in claims]
    assert service.auth.identities_of(user.id) == service.auth.identities_of(str(user.id)) == keys
    assert service.auth.identities_of(uuid4()) == []
    for other, kind in ((client, "forbidden"), (client.as_anonymous(), "unauthorized")):
        with pytest.raises(AuthError, match="^List identities failed: .*permission denied for table users") as refused:
            other.auth.identities_of(user.id)
        assert refused.value.kind == kind
    with pytest.raises(InvalidInputError, match="user_id is not a UUID"):
        service.auth.identities_of("ann")
    with pytest.raises(TypeError, match="user_id"):
        service.auth.identities_of(5)  # type: ignore[arg-type]


def test_async_identity_keys_of_a_user() -> None:
    async def body() -> None:
        async with AsyncClient.open(":memory:") as client:
            service = await client.as_service()
            user = await service.auth.sign_up(EMAIL, PASSWORD)
            await client.auth.sign_in(EMAIL, PASSWORD)
            claim = identity_claim(user.id, "01" * 32, await client.auth.identity_audience())
            await client.auth.link_identity(claim)
            assert await service.auth.identities_of(user.id) == [claim["publicKey"]]
            with pytest.raises(AuthError):
                await client.auth.identities_of(user.id)

    run(body())
