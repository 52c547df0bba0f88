"""Spaces and fidgets, and their records: import these names from `townsquare`, whose conventions `_native.pyi` tells."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Optional, Union, final
from uuid import UUID

from typing_extensions import Self, TypeAlias, disjoint_base

from .notebook import SpaceList

__all__ = [
    "AsyncFidgets",
    "AsyncSpaces",
    "Fidget",
    "Fidgets",
    "Owner",
    "PublicSpace",
    "Space",
    "SpaceWithFidgets",
    "Spaces",
]

_Id: TypeAlias = Union[UUID, str]
_Json: TypeAlias = Any
_Positions: TypeAlias = Union[Mapping[UUID, _Json], Mapping[str, _Json], Mapping[_Id, _Json]]

@final
class Spaces:
    """Spaces: `Client.spaces`. Their owners change them; everyone sees those that are public (SPEC 4.5, 5.4)."""

    def create_space(
        self,
        name: str,
        *,
        description: Optional[str] = None,
        is_public: bool = False,
        owner_id: Optional[_Id] = None,
    ) -> Space:
        """Inserts a space and returns it.

        Args:
            owner_id: Whose it is; the caller by default. The service may name anyone, or nobody.

        Raises:
            FieldMissingError: there is no name.
            ReferenceMissingError: there is no such owner.
            AuthError: it would not be the caller's own.
        """

    def create_spaces(self, spaces: Sequence[Mapping[str, Any]]) -> list[Space]:
        """Inserts spaces in one transaction, all or none: for each a mapping of `create_space`'s arguments.

        An unknown key is an `InvalidInputError` that names it. Otherwise raises what `create_space` does.
        """

    def get_space(self, id: _Id) -> Space:
        """One space by id; `NotFoundError` when there is none that the caller may see."""

    def update_space(
        self, id: _Id, *, name: str = ..., description: Optional[str] = ..., is_public: bool = ...
    ) -> Space:
        """Changes what is given, and nothing else, and returns the row. None clears a description.

        Raises:
            NotFoundError: there is no such space of the caller's.
            FieldMissingError: the name is None.
        """

    def delete_space(self, id: _Id) -> None:
        """Deletes a space and its fidgets; `NotFoundError` when there is no such space of the caller's."""

    def get_user_spaces(self, user_id: _Id) -> SpaceList[SpaceWithFidgets]:
        """A user's spaces that the caller may see, with their fidgets, newest first; a table in a notebook."""

    def get_public_spaces(self, limit: int = 20, offset: int = 0) -> SpaceList[PublicSpace]:
        """Public spaces with their owners, newest first: rows `offset` to `offset + limit - 1`.

        A table in a notebook. `InvalidInputError` for a limit that is not 1 to 1,000, or an offset below 0.
        """

    def get_space_with_fidgets(self, id: _Id) -> SpaceWithFidgets:
        """One space with its fidgets, oldest first; only a space that has a fidget matches, else `NotFoundError`."""

@final
class Fidgets:
    """The fidgets of spaces: `Client.fidgets`. Who may see a space sees its fidgets; its owner changes them."""

    def create_fidget(self, space_id: _Id, type: str, *, config: _Json = None, position: _Json = None) -> Fidget:
        """Places a fidget in a space and returns it.

        Raises:
            FieldMissingError: there is no type.
            ReferenceMissingError: there is no such space (to the service).
            AuthError: the space is not the caller's.
        """

    def create_fidgets(self, space_id: _Id, fidgets: Sequence[Mapping[str, Any]]) -> list[Fidget]:
        """Places fidgets in one transaction, all or none: for each a mapping of `create_fidget`'s other arguments.

        An unknown key is an `InvalidInputError` that names it. Otherwise raises what `create_fidget` does.
        """

    def save_positions(self, space_id: _Id, positions: _Positions) -> list[Fidget]:
        """Saves positions by fidget id (UUID or text) in one transaction, as after a drag; None takes a place away.

        Returns the fidgets named, oldest first. `NotFoundError` when one of them is not a fidget of that space, or the
        space is not the caller's: nothing changes.
        """

    def get_fidget(self, id: _Id) -> Fidget:
        """One fidget by id; `NotFoundError` when there is none that the caller may see."""

    def update_fidget(
        self, id: _Id, *, type: str = ..., config: _Json = ..., position: _Json = ...
    ) -> Fidget:
        """Changes what is given, and nothing else, and returns the row. None clears config and position.

        Raises:
            NotFoundError: there is no such fidget in a space of the caller's.
            FieldMissingError: the type is None.
        """

    def delete_fidget(self, id: _Id) -> None:
        """Takes a fidget out of its space; `NotFoundError` when there is no such one in a space of the caller's."""

    def get_space_fidgets(self, space_id: _Id) -> list[Fidget]:
        """The fidgets of a space, oldest first; none for a space that is missing or hidden."""

@final
class AsyncSpaces:
    """Spaces: `AsyncClient.spaces`. See `Spaces`."""

    async def create_space(
        self,
        name: str,
        *,
        description: Optional[str] = None,
        is_public: bool = False,
        owner_id: Optional[_Id] = None,
    ) -> Space:
        """See `Spaces.create_space`."""

    async def create_spaces(self, spaces: Sequence[Mapping[str, Any]]) -> list[Space]:
        """See `Spaces.create_spaces`."""

    async def get_space(self, id: _Id) -> Space:
        """See `Spaces.get_space`."""

    async def update_space(
        self, id: _Id, *, name: str = ..., description: Optional[str] = ..., is_public: bool = ...
    ) -> Space:
        """See `Spaces.update_space`."""

    async def delete_space(self, id: _Id) -> None:
        """See `Spaces.delete_space`."""

    async def get_user_spaces(self, user_id: _Id) -> SpaceList[SpaceWithFidgets]:
        """See `Spaces.get_user_spaces`."""

    async def get_public_spaces(self, limit: int = 20, offset: int = 0) -> SpaceList[PublicSpace]:
        """See `Spaces.get_public_spaces`."""

    async def get_space_with_fidgets(self, id: _Id) -> SpaceWithFidgets:
        """See `Spaces.get_space_with_fidgets`."""

@final
class AsyncFidgets:
    """The fidgets of spaces: `AsyncClient.fidgets`. See `Fidgets`."""

    async def create_fidget(self, space_id: _Id, type: str, *, config: _Json = None, position: _Json = None) -> Fidget:
        """See `Fidgets.create_fidget`."""

    async def create_fidgets(self, space_id: _Id, fidgets: Sequence[Mapping[str, Any]]) -> list[Fidget]:
        """See `Fidgets.create_fidgets`."""

    async def save_positions(self, space_id: _Id, positions: _Positions) -> list[Fidget]:
        """See `Fidgets.save_positions`."""

    async def get_fidget(self, id: _Id) -> Fidget:
        """See `Fidgets.get_fidget`."""

    async def update_fidget(
        self, id: _Id, *, type: str = ..., config: _Json = ..., position: _Json = ...
    ) -> Fidget:
        """See `Fidgets.update_fidget`."""

    async def delete_fidget(self, id: _Id) -> None:
        """See `Fidgets.delete_fidget`."""

    async def get_space_fidgets(self, space_id: _Id) -> list[Fidget]:
        """See `Fidgets.get_space_fidgets`."""

@disjoint_base
class Space:
    """A row of `spaces`. Frozen; two of them are equal when they are of one class and hold the same."""

    @property
    def id(self) -> UUID:
        """Primary key."""
    @property
    def name(self) -> str:
        """Display name."""
    @property
    def description(self) -> Optional[str]:
        """What it is about."""
    @property
    def owner_id(self) -> Optional[UUID]:
        """The user it belongs to."""
    @property
    def is_public(self) -> bool:
        """Whether everyone may see it."""
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
class SpaceWithFidgets(Space):
    """A space with its fidgets."""

    @property
    def fidgets(self) -> list[Fidget]:
        """Its fidgets, oldest first."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name; records within as dicts."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class PublicSpace(Space):
    """A public space with its owner."""

    @property
    def owner(self) -> Optional[Owner]:
        """Whose it is; None for a space without an owner."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name; records within as dicts."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class Owner:
    """The owner of a public space."""

    @property
    def id(self) -> UUID:
        """The user's id."""
    @property
    def email(self) -> Optional[str]:
        """The user's address; None when `expose_owner_email` is off."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class Fidget:
    """A row of `fidgets`: a widget placed in a space. Frozen: JSON attributes are new values at every look."""

    @property
    def id(self) -> UUID:
        """Primary key."""
    @property
    def space_id(self) -> Optional[UUID]:
        """The space it is in."""
    @property
    def type(self) -> str:
        """What kind of widget it is."""
    @property
    def config(self) -> _Json:
        """Its settings; None without any."""
    @property
    def position(self) -> _Json:
        """Where it is; None without a place."""
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
