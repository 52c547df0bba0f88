"""The signatures of all methods, with their defaults (SPEC 3 to 5), the same for both clients."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import townsquare

COLUMNS = (
    "brand_config assets_config community_config fidgets_config navigation_config ui_config "
    "admin_identity_public_keys is_published custom_domain_authorized admin_email"
).split()
UPLOAD = "cache_control=3600, upsert=True, content_type=None, metadata=None, if_match=None, verify=False"
SIGN = "file_type='json', file_name=None, timestamp=None"
SIGNATURES = {
    "Auth": {
        "sign_up": "(email, password)",
        "sign_in": "(email, password, *, client_key=None)",
        "create_session": "(email, password, *, client_key=None)",
        "sign_out": "(scope='local')",
        "unlink_identity": "(public_key)",
        "identities": "()",
        "identities_of": "(user_id)",
        "sessions_of": "(user_id)",
        "end_session": "(user_id, session_id)",
        "end_sessions": "(user_id)",
        "identity_audience": "()",
        "create_recovery_token": "(email)",
        "recover": "(recovery_token, new_password)",
        "create_verification_token": "(user_id)",
        "verify_email": "(verification_token)",
        "find_user": "(email)",
        "set_password": "(user_id, password)",
        "import_credentials": "(rows)",
        "get_session": "()",
        "refresh_session": "(refresh_token=None)",
        "set_session": "(refresh_token)",
        "update_user": "(*, current_password, email=Ellipsis, password=Ellipsis)",
        "delete_user": "(user_id=None, *, current_password=None)",
        "link_identity": "(claim)",
        "on_auth_state_change": "(callback)",
    },
    "Client": {
        "backup": "(target)",
        "check": "(*, full=False)",
        "move_to": "(*, data_dir=None, sessions=True, follow=None, progress=None, **options)",
        "check_move": "(*, data_dir=None, **options)",
        "export_rows": "(tables=())",
        "import_rows": "(table, rows, *, dry_run=False)",
        "plan_migrations": "(data_dir=None, **options)",
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
        "get_trending_mini_apps": (
            "(timeframe='24h', limit=50, *, offset=0, categories=None, networks=None, collapse=False)"
        ),
        "get_mini_apps_by_category": "(categories, limit=50, *, offset=0, networks=None, collapse=False)",
        "search_mini_apps": "(query, limit=50, *, offset=0, categories=None, networks=None, collapse=False)",
        "get_new_mini_apps": "(limit=50, *, offset=0, categories=None, networks=None, collapse=False)",
        "get_similar_mini_apps": "(id, limit=10)",
        "get_mini_app": "(id)",
        "suggest_mini_apps": "(text, limit=8)",
        "categories": "(*, networks=None)",
        "networks": "(*, categories=None)",
        "on_catalog_change": "(callback)",
        "refresh": "(*, force=False)",
        "stats": "()",
        "handle": "(method, target, body=b'', headers=None)",
    },
    "Fidgets": {
        "create_fidget": "(space_id, type, *, config=None, position=None, id=None)",
        "create_fidgets": "(space_id, fidgets)",
        "save_positions": "(space_id, positions)",
        "get_fidget": "(id)",
        "update_fidget": "(id, *, type=Ellipsis, config=Ellipsis, position=Ellipsis)",
        "delete_fidget": "(id)",
        "get_space_fidgets": "(space_id, limit=None, *, after=None)",
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
        "get_space_with_fidgets": "(id, *, allow_empty=False)",
    },
    "Storage": {
        "upload": f"(bucket, path, data, *, {UPLOAD})",
        "upload_from": f"(bucket, path, source, *, progress=None, {UPLOAD})",
        "download": "(bucket, path, *, range=None)",
        "download_to": "(bucket, path, target, *, progress=None)",
        "delete": "(bucket, path)",
        "secure_upload": f"(bucket, path, data, user_id, *, {UPLOAD})",
        "delete_prefix": "(bucket, prefix)",
        "exists": "(bucket, path)",
        "iter": "(bucket, prefix='', page_size=100)",
        "stat": "(bucket, path)",
        "list": "(bucket, prefix='', limit=100, *, after=None)",
        "copy": "(bucket, source, target, *, upsert=False)",
        "move": "(bucket, source, target, *, upsert=False)",
        "open": f"(bucket, path, mode='rb', *, {UPLOAD})",
        "signed_url": "(bucket, path, *, expires_in=3600, method='GET', max_size=None, content_type=None)",
        "rotate_url_key": "()",
        "handle_file": "(method, target, body=b'', headers=None)",
        "export_files": "(target, *, progress=None)",
        "repair": "()",
    },
    "Realtime": {
        "subscribe": (
            "(channel, callback, *, table, event='*', filter=None, schema='public', since=None, until=None, on_close=None)"
        ),
        "changes": "(*, table, event='*', filter=None, since=None, until=None)",
        "live": "(*, table, filter=None)",
    },
}
FUNCTIONS = {
    "identity_claim": "(user_id, private_key, audience, *, timestamp=None)",
    "sign_file": f"(file_data, private_key, *, {SIGN})",
    "verify_file": "(signed)",
    "encrypt_file": f"(data, private_key, *, {SIGN})",
    "decrypt_file": "(signed, private_key)",
}


@pytest.mark.parametrize("area", SIGNATURES)
def test_signatures_show_the_defaults(area: str) -> None:
    for name, signature in SIGNATURES[area].items():
        for owner in (getattr(townsquare, area), getattr(townsquare, f"Async{area}")):
            shown = str(inspect.signature(getattr(owner, name)))
            assert shown.replace("(self, /, ", "(").replace("(self, /)", "()").replace("(self, ", "(") == signature, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_signatures_of_functions_show_the_defaults(name: str) -> None:
    assert str(inspect.signature(getattr(townsquare, name))) == FUNCTIONS[name]


def test_the_signature_of_open_shows_the_defaults() -> None:
    for client in (townsquare.Client, townsquare.AsyncClient):
        parameters = inspect.signature(client.open).parameters
        defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
        expected = {
            "data_dir": None,
            "database_url": None,
            "storage_url": None,
            "catalog_url": None,
            "catalog_api_key": None,
            "refresh_interval": 900,
            "catalog_timeout": 10,
            "durability": "full",
            "persist_session": False,
            "expose_owner_email": "always",
            "adopt": False,
            "migrate": True,
            "connect_timeout": 2,
            "operation_timeout": 30,
            "max_connections": 16,
            "database_pooler": "auto",
            "event_heartbeat": 15,
            "inline_file_limit": None,
            "max_file_size": 50 * 1024 * 1024,
            "buckets": None,
            "identity_audience": None,
            "change_retention": None,
            "change_retention_rows": None,
            "change_retention_bytes": None,
            "max_owner_bytes": None,
            "max_owner_files": None,
            "max_owner_spaces": None,
            "url_signing_key": None,
        }
        assert {name: defaults[name] for name in expected} == expected


def test_open_and_shared_name_every_option() -> None:
    table = Path(__file__).parent.parent / "options.txt"
    names = {line.split("|")[0] for line in table.read_text(encoding="utf-8").splitlines()}
    assert set(inspect.signature(townsquare.Client.open).parameters) == names
    assert set(townsquare.OpenOptions.__annotations__) == names - {"data_dir"}
