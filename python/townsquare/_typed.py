"""The types of arguments that are dicts: new rows of the calls that insert many, and the options of `shared`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from os import PathLike
from typing import Any, Literal, Optional, TypedDict, Union
from uuid import UUID

__all__ = ["NewCredential", "NewFidget", "NewSpace", "OpenOptions"]

_Seconds = Union[float, timedelta]


class _NewSpaceName(TypedDict):
    name: str


class NewSpace(_NewSpaceName, total=False):
    """A space for `Spaces.create_spaces`: the arguments of `create_space`. Only `name` is required."""

    description: Optional[str]
    is_public: bool
    owner_id: Union[UUID, str, None]
    id: Union[UUID, str, None]


class _NewFidgetType(TypedDict):
    type: str


class NewFidget(_NewFidgetType, total=False):
    """A fidget for `Fidgets.create_fidgets`: the arguments of `create_fidget`. Only `type` is required."""

    config: Any
    position: Any
    id: Union[UUID, str, None]


class _CredentialHash(TypedDict):
    password_hash: str


class NewCredential(_CredentialHash, total=False):
    """A login for `Auth.import_credentials`: the hash of a password, and either `user_id` or `email`."""

    user_id: Union[UUID, str, None]
    email: Optional[str]


class OpenOptions(TypedDict, total=False):
    """The options of `Client.open`, which documents them, for `shared`. None is an option that is not given."""

    database_url: Optional[str]
    storage_url: Optional[str]
    catalog_url: Optional[Union[str, PathLike[str]]]
    catalog_api_key: Optional[str]
    refresh_interval: Optional[_Seconds]
    catalog_timeout: Optional[_Seconds]
    durability: Optional[Literal["full", "normal"]]
    persist_session: Optional[bool]
    expose_owner_email: Optional[Union[Literal["always", "verified", "never"], bool]]
    adopt: Optional[bool]
    migrate: Optional[bool]
    connect_timeout: Optional[_Seconds]
    operation_timeout: Optional[_Seconds]
    max_connections: Optional[int]
    database_pooler: Optional[Literal["auto", "session", "transaction"]]
    event_heartbeat: Optional[_Seconds]
    inline_file_limit: Optional[int]
    max_file_size: Optional[int]
    buckets: Optional[Union[Mapping[str, Literal["public", "private"]], str]]
    identity_audience: Optional[str]
    change_retention: Optional[_Seconds]
    change_retention_rows: Optional[int]
    change_retention_bytes: Optional[int]
    max_owner_bytes: Optional[int]
    max_owner_files: Optional[int]
    max_owner_spaces: Optional[int]
    url_signing_key: Optional[str]
    busy_timeout: Optional[_Seconds]
    idle_timeout: Optional[_Seconds]
    max_lifetime: Optional[_Seconds]
    catalog_key_header: Optional[str]
    catalog_refresh_timeout: Optional[_Seconds]
    catalog_page_size: Optional[int]
    catalog_max_pages: Optional[int]
    catalog_max_page_bytes: Optional[int]
    catalog_tries: Optional[int]
    catalog_max_lists: Optional[int]
    catalog_format: Optional[Literal["neynar", "farcaster"]]
    max_staleness: Optional[_Seconds]
    endpoint_refresh: Optional[bool]
    endpoint_refresh_age: Optional[_Seconds]
    endpoint_lists: Optional[bool]
    endpoint_origins: Optional[str]
    max_text_size: Optional[int]
    max_name_size: Optional[int]
    max_json_size: Optional[int]
    max_bulk_rows: Optional[int]
    sign_up_limit: Optional[int]
    claim_store: Optional[bool]
    max_verified_size: Optional[int]
    max_space_fidgets: Optional[int]
    database_replica_url: Optional[str]
    database_replica_wait: Optional[_Seconds]
    database_replica_max_lag: Optional[_Seconds]
