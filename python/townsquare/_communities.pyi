"""Communities and their records: import these names from `townsquare`, whose conventions `_native.pyi` tells."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, Optional, Union, final
from uuid import UUID

from typing_extensions import Self, TypeAlias

__all__ = [
    "AsyncCommunities",
    "Communities",
    "CommunityConfig",
    "CommunityDomain",
    "SpaceRegistration",
]

_DomainType: TypeAlias = Literal["blank_subdomain", "custom"]
_Id: TypeAlias = Union[UUID, str]
_Json: TypeAlias = Any
_SpaceType: TypeAlias = Literal["profile", "token", "proposal", "channel", "navPage"]

@final
class Communities:
    """Communities: `Client.communities`. The service writes; everyone reads what is published.

    What only the service may do raises `AuthError` for others, `unauthorized` for nobody and `forbidden` for a user.
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
        """Inserts a community's configuration, or updates the one with that id; the service only.

        What is not given stays as it is, or takes its default in a new row: published, without a domain of its own. The
        first four are required in a new row.

        Raises:
            FieldMissingError: one of the first four is missing or None.
            InvalidInputError: the id has more than 50 characters (22001).
        """

    def get_active_community_config(self, community_id: str) -> Optional[dict[str, Any]]:
        """`brand`, `assets`, `community`, `fidgets`, `navigation` and `ui` of a published community, else None."""

    def save_community_domain(self, community_id: str, domain: str, domain_type: _DomainType) -> CommunityDomain:
        """Sets a community's domain of a type, in place of the one it had; stored normalised; the service only.

        Raises:
            AlreadyExistsError: the domain is taken.
            ReferenceMissingError: there is no such community.
            InvalidInputError: another type (23514), or an empty domain.
        """

    def delete_community_domain(self, domain: str) -> None:
        """Takes a domain away; the service only. `NotFoundError` for one that nobody has."""

    def update_navigation(self, community_id: str, navigation_config: _Json) -> CommunityConfig:
        """Sets a community's navigation and nothing else of it; None clears it. `NotFoundError` without such a one."""

    def resolve_community(self, host: str) -> Optional[str]:
        """The community that answers at a host, as an HTTP `Host` header has it; None when nothing published does."""

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
        """Registers a space, once; the service or the space's owner.

        Raises:
            AlreadyExistsError: it is registered.
            FieldMissingError: there is no name.
            InvalidInputError: another type (23514), or a fid of more than 32 bits.
            AuthError: the space is not the caller's.
        """

    def get_space_registration(self, space_id: _Id) -> Optional[SpaceRegistration]:
        """The registration of a space; None for one that is not registered."""

@final
class AsyncCommunities:
    """Communities: `AsyncClient.communities`. See `Communities`."""

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

    async def get_space_registration(self, space_id: _Id) -> Optional[SpaceRegistration]:
        """See `Communities.get_space_registration`."""

@final
class CommunityConfig:
    """A row of `community_configs`."""

    @property
    def id(self) -> UUID:
        """Primary key."""
    @property
    def community_id(self) -> str:
        """The community, at most 50 characters."""
    @property
    def updated_at(self) -> datetime:
        """When it last changed, UTC; never goes back."""
    @property
    def brand_config(self) -> _Json:
        """Brand."""
    @property
    def assets_config(self) -> _Json:
        """Assets."""
    @property
    def community_config(self) -> _Json:
        """The community itself."""
    @property
    def fidgets_config(self) -> _Json:
        """Fidgets it offers."""
    @property
    def navigation_config(self) -> _Json:
        """Navigation; None without one."""
    @property
    def ui_config(self) -> _Json:
        """Look; None without one."""
    @property
    def admin_identity_public_keys(self) -> Optional[list[str]]:
        """Public keys whose holders may edit the navigation."""
    @property
    def is_published(self) -> bool:
        """Whether everyone may see it."""
    @property
    def custom_domain_authorized(self) -> bool:
        """Whether it may have a domain of its own."""
    @property
    def admin_email(self) -> Optional[str]:
        """Whom to write to."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class CommunityDomain:
    """A row of `community_domains`."""

    @property
    def id(self) -> UUID:
        """Primary key."""
    @property
    def community_id(self) -> str:
        """The community it leads to."""
    @property
    def domain(self) -> str:
        """The domain, normalised."""
    @property
    def domain_type(self) -> _DomainType:
        """Whether it is a subdomain or the community's own."""
    @property
    def created_at(self) -> datetime:
        """When it was made, UTC."""
    @property
    def updated_at(self) -> datetime:
        """When it last changed, UTC; never goes back."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class SpaceRegistration:
    """A row of `spaceRegistrations`."""

    @property
    def space_id(self) -> UUID:
        """The space; it need not exist any more."""
    @property
    def fid(self) -> Optional[int]:
        """Farcaster id."""
    @property
    def space_name(self) -> str:
        """The space's name."""
    @property
    def space_type(self) -> _SpaceType:
        """What kind of space it is."""
    @property
    def identity_public_key(self) -> Optional[str]:
        """The key it was registered with."""
    @property
    def signature(self) -> Optional[str]:
        """The registration's signature."""
    @property
    def timestamp(self) -> datetime:
        """When it was registered, UTC."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...
