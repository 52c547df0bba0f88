"""The signatures of all methods, with their defaults (SPEC 3 to 5), the same for both clients."""

from __future__ import annotations

import inspect

import pytest
import townsquare

COLUMNS = (
    "brand_config assets_config community_config fidgets_config navigation_config ui_config "
    "admin_identity_public_keys is_published custom_domain_authorized admin_email"
).split()
SIGNATURES = {
    "Auth": {
        "sign_up": "(email, password)",
        "sign_in": "(email, password)",
        "sign_out": "(scope='local')",
        "unlink_identity": "(public_key)",
        "identities": "()",
        "identity_audience": "()",
        "create_recovery_token": "(email)",
        "recover": "(recovery_token, new_password)",
        "create_verification_token": "(user_id)",
        "verify_email": "(verification_token)",
        "find_user": "(email)",
        "set_password": "(user_id, password)",
        "get_session": "()",
        "refresh_session": "(refresh_token=None)",
        "set_session": "(refresh_token)",
        "update_user": "(*, current_password, email=Ellipsis, password=Ellipsis)",
        "delete_user": "(user_id=None, *, current_password=None)",
        "link_identity": "(claim)",
        "on_auth_state_change": "(callback)",
    },
    "Communities": {
        "save_community_config": f"(community_id, *, {', '.join(f'{name}=Ellipsis' for name in COLUMNS)})",
        "get_active_community_config": "(community_id)",
        "save_community_domain": "(community_id, domain, domain_type)",
        "delete_community_domain": "(domain)",
        "update_navigation": "(community_id, navigation_config)",
        "resolve_community": "(host)",
        "register_space": "(space_id, space_name, space_type, *, fid=None, identity_public_key=None, signature=None)",
        "get_space_registration": "(space_id)",
    },
    "Discovery": {
        "get_trending_mini_apps": "(timeframe='24h', limit=50, *, categories=None, networks=None)",
        "get_mini_apps_by_category": "(categories, limit=50, *, networks=None)",
        "search_mini_apps": "(query, limit=50, *, categories=None, networks=None)",
        "refresh": "(*, force=False)",
        "stats": "()",
        "handle": "(method, target, body=b'')",
    },
    "Fidgets": {
        "create_fidget": "(space_id, type, *, config=None, position=None, id=None)",
        "create_fidgets": "(space_id, fidgets)",
        "save_positions": "(space_id, positions)",
        "get_fidget": "(id)",
        "update_fidget": "(id, *, type=Ellipsis, config=Ellipsis, position=Ellipsis)",
        "delete_fidget": "(id)",
        "get_space_fidgets": "(space_id)",
    },
    "Spaces": {
        "create_space": "(name, *, description=None, is_public=False, owner_id=None, id=None)",
        "create_spaces": "(spaces)",
        "get_space": "(id)",
        "update_space": "(id, *, name=Ellipsis, description=Ellipsis, is_public=Ellipsis)",
        "delete_space": "(id)",
        "get_user_spaces": "(user_id)",
        "get_public_spaces": "(limit=20, offset=0, *, after=None)",
        "iter_public_spaces": "(page_size=100)",
        "get_space_with_fidgets": "(id)",
    },
}


@pytest.mark.parametrize("area", SIGNATURES)
def test_signatures_show_the_defaults(area: str) -> None:
    for name, signature in SIGNATURES[area].items():
        for owner in (getattr(townsquare, area), getattr(townsquare, f"Async{area}")):
            shown = str(inspect.signature(getattr(owner, name)))
            assert shown.replace("(self, /, ", "(").replace("(self, /)", "()").replace("(self, ", "(") == signature, name


def test_the_signature_of_identity_claim_shows_the_defaults() -> None:
    assert str(inspect.signature(townsquare.identity_claim)) == "(user_id, private_key, audience, *, timestamp=None)"


def test_the_signature_of_open_shows_the_defaults() -> None:
    for client in (townsquare.Client, townsquare.AsyncClient):
        parameters = inspect.signature(client.open).parameters
        assert {name: each.default for name, each in parameters.items() if each.default is not each.empty} == {
            "data_dir": None,
            "database_url": None,
            "catalog_url": None,
            "catalog_api_key": None,
            "refresh_interval": 900,
            "catalog_timeout": 10,
            "durability": "full",
            "persist_session": False,
            "expose_owner_email": True,
        }
