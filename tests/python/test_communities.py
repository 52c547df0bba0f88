"""Communities: configurations, domains, registrations and refusals (SPEC 2.2 to 2.4, 4.3, 7, 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from conftest import ADVICE, SERVICE_ADVICE, run
from townsquare import AuthError, Client, CommunityConfig, FieldMissingError, InvalidInputError, NotFoundError

REQUIRED: dict[str, Any] = {
    "brand_config": {"name": "Town"},
    "assets_config": [],
    "community_config": {"a": 1},
    "fidgets_config": {"on": ["clock"]},
}


def save(service: Client, community_id: str = "town", **given: Any) -> CommunityConfig:
    return service.communities.save_community_config(community_id, **{**REQUIRED, **given})


def test_a_new_configuration_takes_the_defaults_of_the_table(service: Client) -> None:
    config = save(service)
    assert type(config) is CommunityConfig and isinstance(config.id, UUID) and config.community_id == "town"
    assert {name: getattr(config, name) for name in REQUIRED} == REQUIRED
    assert (config.navigation_config, config.ui_config, config.admin_identity_public_keys) == (None, None, None)
    assert (config.is_published, config.custom_domain_authorized, config.admin_email) == (True, False, None)
    assert repr(config).startswith(f"CommunityConfig(id={config.id!r}, community_id='town', updated_at=")
    assert config == config and hash(config) == hash(config) and config.to_dict()["fidgets_config"] == {"on": ["clock"]}
    assert len(config.to_dict()) == 13


def test_missing_columns_are_kept_and_none_clears(service: Client) -> None:
    first = save(service, navigation_config=["home"], admin_identity_public_keys=("k1", "k2"), admin_email="a@b.example")
    assert first.admin_identity_public_keys == ["k1", "k2"]
    second = service.communities.save_community_config("town", ui_config={"dark": True}, is_published=False)
    assert (second.id, second.ui_config, second.is_published) == (first.id, {"dark": True}, False)
    assert (second.navigation_config, second.admin_identity_public_keys) == (["home"], ["k1", "k2"])
    assert second.brand_config == first.brand_config and second.updated_at > first.updated_at
    third = service.communities.save_community_config(
        "town", navigation_config=None, admin_identity_public_keys=None, admin_email=None, custom_domain_authorized=True
    )
    assert (third.navigation_config, third.admin_identity_public_keys, third.admin_email) == (None, None, None)
    assert third.custom_domain_authorized and third.ui_config == {"dark": True}
    assert service.communities.save_community_config("town") == third
    with pytest.raises(FieldMissingError) as caught:
        service.communities.save_community_config("town", brand_config=None)
    assert str(caught.value) == "Save community config failed: Required field is missing: community_configs.brand_config"
    with pytest.raises(FieldMissingError):
        service.communities.save_community_config("new", brand_config={})


def test_invalid_columns_are_refused_by_name(service: Client) -> None:
    for name in ("brand_config", "assets_config", "community_config", "fidgets_config", "navigation_config", "ui_config"):
        with pytest.raises(InvalidInputError, match=f"^Save community config failed: {name} has a number"):
            save(service, "town", **{name: [float("nan")]})
    with pytest.raises(InvalidInputError, match="^Update navigation failed: navigation_config has a key"):
        service.communities.update_navigation("town", {1: 1})
    for wrong in ("k1", b"k1", 5, [5], {"k": 1}):
        with pytest.raises(TypeError, match="admin_identity_public_keys"):
            save(service, admin_identity_public_keys=wrong)
    with pytest.raises(InvalidInputError, match="admin_identity_public_keys"):
        save(service, admin_identity_public_keys=["a\0"])
    with pytest.raises(TypeError, match="is_published"):
        save(service, is_published="yes")
    assert save(service, "é" * 50).community_id == "é" * 50
    with pytest.raises(InvalidInputError) as caught:
        save(service, "a" * 51)
    sentence = "Save community config failed: Database error: value too long for type character varying(50)"
    assert (str(caught.value), caught.value.code) == (sentence, "22001")


def test_only_published_configurations_are_active(service: Client, client: Client) -> None:
    assert client.communities.get_active_community_config("town") is None
    save(service, ui_config={"dark": True})
    expected: dict[str, Any] = {
        "brand": {"name": "Town"}, "assets": [], "community": {"a": 1}, "fidgets": {"on": ["clock"]},
        "navigation": None, "ui": {"dark": True},
    }  # fmt: skip
    assert client.communities.get_active_community_config("town") == expected
    save(service, is_published=False)
    for handle in (client, service):
        assert handle.communities.get_active_community_config("town") is None


def test_domains_are_normalised_unique_and_resolved(service: Client, client: Client) -> None:
    save(service)
    save(service, "other")
    domain = service.communities.save_community_domain("town", " HTTPS://www.Town.Example:8443/a ", "custom")
    assert (domain.community_id, domain.domain, domain.domain_type) == ("town", "town.example", "custom")
    assert domain.to_dict()["domain"] == "town.example" and isinstance(domain.id, UUID)
    times = f"created_at={domain.created_at!r}, updated_at={domain.updated_at!r}"
    assert repr(domain) == f"CommunityDomain(id={domain.id!r}, community_id='town', domain='town.example', domain_type='custom', {times})"
    assert client.communities.resolve_community("www.town.example:80") == "town"
    assert client.communities.resolve_community("nowhere.example") is None
    with pytest.raises(townsquare.AlreadyExistsError) as caught:
        service.communities.save_community_domain("other", "town.example", "custom")
    assert str(caught.value) == "Save community domain failed: Record already exists: community_domains.domain"
    assert caught.value.code == "23505"
    replaced = service.communities.save_community_domain("town", "new.example", "custom")
    assert replaced.id == domain.id and client.communities.resolve_community("town.example") is None
    with pytest.raises(townsquare.ReferenceMissingError, match="failed: Referenced record not found"):
        service.communities.save_community_domain("nobody", "x.example", "custom")
    with pytest.raises(InvalidInputError, match="domain is empty"):
        service.communities.save_community_domain("town", " ", "custom")
    with pytest.raises(InvalidInputError, match="^Save community domain failed: Database error: ") as bad:
        service.communities.save_community_domain("town", "x.example", "subdomain")  # type: ignore[arg-type]
    assert bad.value.code == "23514" and bad.value.operation == "save_community_domain"
    assert service.communities.delete_community_domain("NEW.example") is None  # type: ignore[func-returns-value]
    with pytest.raises(NotFoundError, match="^Delete community domain failed: Record not found$"):
        service.communities.delete_community_domain("new.example")


def test_update_navigation_changes_no_other_column(service: Client) -> None:
    first = save(service)
    second = service.communities.update_navigation("town", [{"href": "/"}])
    assert second.navigation_config == [{"href": "/"}] and second.brand_config == first.brand_config
    assert service.communities.update_navigation("town", None).navigation_config is None
    with pytest.raises(NotFoundError, match="^Update navigation failed: Record not found$"):
        service.communities.update_navigation("nowhere", {})


def test_a_space_is_registered_once_with_one_of_five_types(service: Client, client: Client) -> None:
    for space_type in ("profile", "token", "proposal", "channel", "navPage"):
        space_id = uuid4()
        made = service.communities.register_space(space_id, "Harbor", space_type, fid=7, signature="s")
        assert (made.space_id, made.space_name, made.space_type, made.fid) == (space_id, "Harbor", space_type, 7)
        assert (made.identity_public_key, made.signature) == (None, "s")
        assert client.communities.get_space_registration(str(space_id)) == made
    assert client.communities.get_space_registration(uuid4()) is None
    assert repr(made).startswith(f"SpaceRegistration(space_id={space_id!r}, fid=7, space_name='Harbor', space_type='navPage', ")
    assert list(made.to_dict()) == ["space_id", "fid", "space_name", "space_type", "identity_public_key", "signature", "timestamp"]
    with pytest.raises(townsquare.AlreadyExistsError, match="^Register space failed: Record already exists: spaceRegistrations.spaceId$"):
        service.communities.register_space(space_id, "Harbor", "profile")
    with pytest.raises(InvalidInputError, match="^Register space failed: Database error: ") as caught:
        service.communities.register_space(uuid4(), "Harbor", "castle")  # type: ignore[arg-type]
    assert caught.value.code == "23514"
    with pytest.raises(FieldMissingError):
        service.communities.register_space(uuid4(), None, "profile")  # type: ignore[arg-type]
    for fid in (2**31, -(2**31) - 1, 10**30):
        with pytest.raises(InvalidInputError, match="^Register space failed: fid is -2147483648 to 2147483647, not "):
            service.communities.register_space(uuid4(), "Harbor", "profile", fid=fid)
    with pytest.raises(InvalidInputError, match="^Get space registration failed: space_id is not a UUID: 'x'"):
        client.communities.get_space_registration("x")


def test_anonymous_writes_are_refused(service: Client, client: Client) -> None:
    save(service)
    space = service.spaces.create_space("shown", is_public=True)
    calls: list[tuple[str, str, Any]] = [
        ("Save community config", "community_configs", lambda: save(client)),
        ("Update navigation", "community_configs", lambda: client.communities.update_navigation("town", {})),
        ("Save community domain", "community_domains", lambda: client.communities.save_community_domain("town", "x.example", "custom")),
        ("Delete community domain", "community_domains", lambda: client.communities.delete_community_domain("x.example")),
    ]
    for operation, table, call in calls:
        with pytest.raises(AuthError) as caught:
            call()
        advice = ADVICE if operation == "Update navigation" else SERVICE_ADVICE
        assert str(caught.value) == f"{operation} failed: Database error: permission denied for table {table}: {advice}"
        assert (caught.value.kind, caught.value.code) == ("unauthorized", "42501")
    with pytest.raises(AuthError, match='policy for table "spaceRegistrations": sign in'):
        client.communities.register_space(space.id, "mine", "profile")


def test_async_methods_behave_like_blocking_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with await townsquare.AsyncClient.open(tmp_path / "data") as client:
            service = await client.as_service()
            await service.communities.save_community_config("town", **REQUIRED)
            await service.communities.save_community_domain("town", "town.example", "blank_subdomain")
            assert await client.communities.resolve_community("town.example") == "town"
            active = await client.communities.get_active_community_config("town")
            assert active is not None and active["brand"] == {"name": "Town"}
            assert (await service.communities.update_navigation("town", [1])).navigation_config == [1]
            space_id = uuid4()
            made = await service.communities.register_space(space_id, "Harbor", "token")
            assert await client.communities.get_space_registration(space_id) == made
            await service.communities.delete_community_domain("town.example")
            refused = client.communities.save_community_config("town")
            with pytest.raises(AuthError):
                await refused

    run(main())
