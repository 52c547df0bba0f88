"""Communities and their records. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Optional, Union, final
from uuid import UUID

from typing_extensions import TypeAlias

from ._client import _Id, _Json, _Record

_DomainType: TypeAlias = Literal["blank_subdomain", "custom"]
_SpaceType: TypeAlias = Literal["profile", "token", "proposal", "channel", "navPage"]

@final
class Communities:
    """Communities: `Client.communities`. Every caller reads published configurations.

    A method that only the service may call raises `AuthError` for other callers: `unauthorized` for an anonymous caller,
    `forbidden` for a user.
    """

    def save_community_config(
        self,
        community_id: str,
        *,
        brand_config: _Json = ...,
        assets_config: _Json = ...,
        community_config: _Json = ...,
        fidgets_config: _Json = ...,
        navigation_config: _Json = ...,
        ui_config: _Json = ...,
        admin_identity_public_keys: Optional[Sequence[str]] = ...,
        is_published: bool = ...,
        custom_domain_authorized: bool = ...,
        admin_email: Optional[str] = ...,
    ) -> CommunityConfig:
        """Inserts a community's configuration, or updates the given columns of it. Only for the service.

        A new row needs the first four columns. It is published and has no custom domain, unless the arguments say otherwise.

        Raises:
            FieldMissingError: One of the first four columns is None, or missing in a new row.
            InvalidInputError: The id is empty, or has more than 50 characters (code 22001).
        """

    def get_active_community_config(self, community_id: str) -> Optional[dict[str, Any]]:
        """Returns a published community's `brand`, `assets`, `community`, `fidgets`, `navigation` and `ui`, or None."""

    def save_community_domain(self, community_id: str, domain: str, domain_type: _DomainType) -> CommunityDomain:
        """Sets a community's domain of a type and replaces its earlier one. Stores it normalised. Only for the service.

        Raises:
            AlreadyExistsError: Another community has the domain.
            ReferenceMissingError: The community does not exist.
            InvalidInputError: The type is unknown (code 23514), or the domain is empty.
        """

    def delete_community_domain(self, domain: str) -> None:
        """Deletes a domain. Only for the service.

        A row with exactly this text comes first, then the normal form: a row that another program wrote may have another form.

        Raises:
            NotFoundError: No community has the domain.
        """

    def update_navigation(self, community_id: str, navigation_config: _Json) -> CommunityConfig:
        """Sets a community's navigation and no other column. None clears it.

        For the service, and for a user who linked one of the community's `admin_identity_public_keys`. The user gets the
        configuration without what only the service reads: without keys and address, and with `custom_domain_authorized` False.

        Raises:
            NotFoundError: The community does not exist (for the service).
            AuthError: The caller is another user or anonymous.
        """

    def resolve_community(self, host: str) -> Optional[str]:
        """Returns the id of the published community at a host (a `Host` header, with or without port), or None."""

    def register_space(
        self,
        space_id: _Id,
        space_name: str,
        space_type: _SpaceType,
        *,
        fid: Optional[int] = None,
        identity_public_key: Optional[str] = None,
        signature: Optional[str] = None,
    ) -> SpaceRegistration:
        """Registers a space. For the service and the space's owner.

        Readers take `fid`, `identity_public_key` and `signature` for proven. So a user may name only a linked identity key; `fid`
        and `signature` are for the service, which checks them before it stores them.

        Raises:
            AlreadyExistsError: The space is registered.
            FieldMissingError: The name is None.
            InvalidInputError: The type is unknown (code 23514), or the fid has more than 32 bits.
            AuthError: The space is not the caller's.
        """

    def list_community_configs(self, limit: int = 100, *, after: Optional[Union[CommunityConfig, _Id]] = None) -> list[CommunityConfig]:
        """Returns a page of community configurations, published or not, by id. For the service.

        Args:
            limit: How many rows, 1 to 1,000.
            after: The last configuration of the page before, or its key; None for the first page.

        Returns:
            The rows, fewer if they take more than 64 MiB of memory. Only an empty page is the last one.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `limit` is out of range.
        """

    def list_community_domains(self, limit: int = 100, *, after: Optional[Union[CommunityDomain, _Id]] = None) -> list[CommunityDomain]:
        """Returns a page of domains of communities, by id. For the service.

        Args:
            limit: How many rows, 1 to 1,000.
            after: The last domain of the page before, or its key; None for the first page.

        Returns:
            The rows, fewer if they take more than 64 MiB of memory. Only an empty page is the last one.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `limit` is out of range.
        """

    def list_space_registrations(self, limit: int = 100, *, after: Optional[Union[SpaceRegistration, _Id]] = None) -> list[SpaceRegistration]:
        """Returns a page of registrations, by the id of the space. For the service.

        Args:
            limit: How many rows, 1 to 1,000.
            after: The last registration of the page before, or its key; None for the first page.

        Returns:
            The rows, fewer if they take more than 64 MiB of memory. Only an empty page is the last one.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `limit` is out of range.
        """

    def get_space_registration(self, space_id: _Id) -> Optional[SpaceRegistration]:
        """Returns the registration of a space, or None."""

@final
class AsyncCommunities:
    """Communities: `AsyncClient.communities`. Each method is the coroutine of the same method of `Communities`."""

    async def save_community_config(
        self,
        community_id: str,
        *,
        brand_config: _Json = ...,
        assets_config: _Json = ...,
        community_config: _Json = ...,
        fidgets_config: _Json = ...,
        navigation_config: _Json = ...,
        ui_config: _Json = ...,
        admin_identity_public_keys: Optional[Sequence[str]] = ...,
        is_published: bool = ...,
        custom_domain_authorized: bool = ...,
        admin_email: Optional[str] = ...,
    ) -> CommunityConfig:
        """See `Communities.save_community_config`."""

    async def get_active_community_config(self, community_id: str) -> Optional[dict[str, Any]]:
        """See `Communities.get_active_community_config`."""

    async def save_community_domain(self, community_id: str, domain: str, domain_type: _DomainType) -> CommunityDomain:
        """See `Communities.save_community_domain`."""

    async def delete_community_domain(self, domain: str) -> None:
        """See `Communities.delete_community_domain`."""

    async def update_navigation(self, community_id: str, navigation_config: _Json) -> CommunityConfig:
        """See `Communities.update_navigation`."""

    async def resolve_community(self, host: str) -> Optional[str]:
        """See `Communities.resolve_community`."""

    async def register_space(
        self,
        space_id: _Id,
        space_name: str,
        space_type: _SpaceType,
        *,
        fid: Optional[int] = None,
        identity_public_key: Optional[str] = None,
        signature: Optional[str] = None,
    ) -> SpaceRegistration:
        """See `Communities.register_space`."""

    async def list_community_configs(self, limit: int = 100, *, after: Optional[Union[CommunityConfig, _Id]] = None) -> list[CommunityConfig]:
        """See `Communities.list_community_configs`."""

    async def list_community_domains(self, limit: int = 100, *, after: Optional[Union[CommunityDomain, _Id]] = None) -> list[CommunityDomain]:
        """See `Communities.list_community_domains`."""

    async def list_space_registrations(self, limit: int = 100, *, after: Optional[Union[SpaceRegistration, _Id]] = None) -> list[SpaceRegistration]:
        """See `Communities.list_space_registrations`."""

    async def get_space_registration(self, space_id: _Id) -> Optional[SpaceRegistration]:
        """See `Communities.get_space_registration`."""

@final
@dataclass(frozen=True, eq=False)
class CommunityConfig(_Record):
    """A row of `community_configs`. Each read of a JSON attribute returns a new value."""

    id: Final[UUID]
    """Primary key."""
    community_id: Final[str]
    """The community's id, 1 to 50 characters."""
    updated_at: Final[datetime]
    """When the row last changed, UTC. Never decreases."""
    brand_config: Final[_Json]
    """Brand, as JSON."""
    assets_config: Final[_Json]
    """Assets, as JSON."""
    community_config: Final[_Json]
    """The community itself, as JSON."""
    fidgets_config: Final[_Json]
    """The fidgets that the community offers, as JSON."""
    navigation_config: Final[_Json]
    """Navigation, as JSON; None without one."""
    ui_config: Final[_Json]
    """Appearance, as JSON; None without one."""
    admin_identity_public_keys: Final[Optional[list[str]]]
    """Public keys of users who may change the navigation."""
    is_published: Final[bool]
    """Whether every caller may read the configuration."""
    custom_domain_authorized: Final[bool]
    """Whether the community may have a custom domain."""
    admin_email: Final[Optional[str]]
    """The administrator's address."""

@final
@dataclass(frozen=True, eq=False)
class CommunityDomain(_Record):
    """A row of `community_domains`."""

    id: Final[UUID]
    """Primary key."""
    community_id: Final[str]
    """The community that answers at the domain."""
    domain: Final[str]
    """The domain, normalised."""
    domain_type: Final[_DomainType | Literal["other"]]
    """Whether the domain is a subdomain of the service's or a custom one."""
    created_at: Final[datetime]
    """When the row was inserted, UTC."""
    updated_at: Final[datetime]
    """When the row last changed, UTC. Never decreases."""

@final
@dataclass(frozen=True, eq=False)
class SpaceRegistration(_Record):
    """A row of `spaceRegistrations`."""

    space_id: Final[UUID]
    """The space's id. The space may have been deleted."""
    fid: Final[Optional[int]]
    """Farcaster id."""
    space_name: Final[str]
    """The space's name."""
    space_type: Final[_SpaceType | Literal["other"]]
    """The space's type."""
    identity_public_key: Final[Optional[str]]
    """The public key that signed the registration."""
    signature: Final[Optional[str]]
    """The registration's signature."""
    timestamp: Final[datetime]
    """When the space was registered, UTC."""
