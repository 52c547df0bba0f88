"""Spaces, fidgets and their records. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Optional, Union, final
from uuid import UUID

from typing_extensions import TypeAlias, disjoint_base

from ._client import _Id, _Json, _Record
from ._typed import NewFidget, NewSpace
from .notebook import SpaceList

_Positions: TypeAlias = Union[Mapping[UUID, _Json], Mapping[str, _Json], Mapping[_Id, _Json]]

@final
class Spaces:
    """Spaces: `Client.spaces`. A space's owner may change it; every caller sees public spaces."""

    def create_space(
        self,
        name: str,
        *,
        description: Optional[str] = None,
        is_public: bool = False,
        owner_id: Optional[_Id] = None,
        id: Optional[_Id] = None,
    ) -> Space:
        """Inserts a space and returns it.

        Args:
            owner_id: The owner's id; by default the caller's. The service may name any user; its default is no owner.
            id: The space's id; by default a random one. With an id the call can be repeated: if the caller's space of this
                id has the same owner and content, the call returns that space. Only the service may take the id of a
                registered page, of a folder `spaces/<id>` that has files, or of a deleted space.

        Raises:
            FieldMissingError: The name is None.
            ReferenceMissingError: The owner does not exist.
            AlreadyExistsError: Another space has the id.
            AuthError: The caller is anonymous, names another owner, or takes the id of a page or of a deleted space.
            TooLargeError: A text is over `max_text_size`, or the name over `max_name_size`.
            QuotaExceededError: The caller would own more spaces than `max_owner_spaces` (status 409).
        """

    def create_spaces(self, spaces: Sequence[NewSpace]) -> list[Space]:
        """Inserts spaces in one transaction, all or none. Each row is a `NewSpace`: a dict of `create_space`'s arguments.

        Returns them in the same order, in which `created_at` increases.

        Raises:
            InvalidInputError: A mapping has an unknown key; the message names it.
            TooLargeError: There are more than `max_bulk_rows`.

        Also raises what `create_space` raises; the exception's `row` is the index of the mapping.
        """

    def get_space(self, id: _Id) -> Space:
        """Returns a space by its id.

        Raises:
            NotFoundError: The caller sees no such space.
        """

    def update_space(
        self, id: _Id, *, name: str = ..., description: Optional[str] = ..., is_public: bool = ...
    ) -> Space:
        """Changes the given columns of a space and returns it. None clears the description.

        Raises:
            NotFoundError: The caller may change no such space.
            FieldMissingError: The name is None.
            TooLargeError: A text is over `max_text_size`.
        """

    def delete_space(self, id: _Id) -> None:
        """Deletes a space with its fidgets and files.

        A space with more than 32 fidgets or 100 files is deleted in steps, so that others can write meanwhile. If the call fails,
        it may have deleted some of them; call again.

        Raises:
            NotFoundError: The caller may change no such space.
        """

    def list_spaces(self, limit: int = 100, *, after: Optional[Union[Space, _Id]] = None) -> list[Space]:
        """Returns a page of all spaces, by id. For the service.

        Args:
            limit: How many rows, 1 to 1,000.
            after: The last space of the page before, or its key; None for the first page.

        Returns:
            The rows, fewer if they take more than 64 MiB of memory. Only an empty page is the last one.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `limit` is out of range.
        """

    def set_owner(self, id: _Id, owner_id: _Id) -> Space:
        """Changes the owner of a space and of its files. For the service. The quota of the new owner is not checked here.

        Raises:
            AuthError: The caller is not the service.
            NotFoundError: The space does not exist.
            ReferenceMissingError: The user does not exist.
        """

    def get_user_spaces(self, user_id: _Id) -> SpaceList[SpaceWithFidgets]:
        """Lists the spaces of a user that the caller sees, with their fidgets, newest first.

        Raises:
            TooLargeError: They take more than 64 MiB of memory.
        """

    def get_public_spaces(
        self, limit: int = 20, offset: int = 0, *, after: Optional[Union[PublicSpace, _Id]] = None
    ) -> SpaceList[PublicSpace]:
        """Lists public spaces with their owners, newest first: rows `offset` to `offset + limit - 1`, or those after a space.

        Pages that each begin after the last space of the page before contain no space twice and leave none out, whatever
        is inserted or deleted meanwhile, and cost the same at any depth. The database reads and skips `offset` rows. A page has
        fewer spaces if they take more than 64 MiB of memory: only an empty page is the last one.

        Args:
            after: The last space of an earlier page; its position stays valid when it is deleted or unpublished. Or the id of
                a space that is public now.

        Raises:
            InvalidInputError: The limit is not 1 to 1,000, the offset is negative or comes with `after`, or the id names no
                public space.
        """

    def iter_public_spaces(self, page_size: int = 100) -> Iterator[PublicSpace]:
        """Iterates over all public spaces with their owners, newest first. Reads `page_size` at a time.

        Contains no space twice and leaves none out, whatever is inserted or deleted meanwhile. `AsyncSpaces` has an async
        iterator: `async for space in client.spaces.iter_public_spaces()`.

        Raises:
            InvalidInputError: The page size is not 1 to 1,000.
        """

    def get_space_with_fidgets(self, id: _Id, *, allow_empty: bool = False) -> SpaceWithFidgets:
        """Returns a space with its fidgets, oldest first.

        Args:
            allow_empty: Also return a space without fidgets (otherwise such a space is not found).

        Raises:
            NotFoundError: The caller sees no such space, or the space has no fidget and `allow_empty` is false.
            TooLargeError: The fidgets take more than 64 MiB of memory; `Fidgets.get_space_fidgets` returns pages.
        """

@final
class Fidgets:
    """The fidgets of spaces: `Client.fidgets`. Whoever sees a space sees its fidgets; its owner may change them."""

    def create_fidget(
        self, space_id: _Id, type: str, *, config: _Json = None, position: _Json = None, id: Optional[_Id] = None
    ) -> Fidget:
        """Inserts a fidget into a space and returns it.

        Args:
            id: The fidget's id; by default a random one. With an id the call can be repeated: if the space's fidget of this
                id has the same content, the call returns that fidget.

        Raises:
            FieldMissingError: The type is None.
            ReferenceMissingError: The space does not exist (for the service).
            AlreadyExistsError: Another fidget has the id.
            AuthError: The space is not the caller's.
            TooLargeError: The type is over `max_name_size`, or a JSON value over `max_json_size`.
            QuotaExceededError: The space would have more fidgets than `max_space_fidgets` (status 409), not for the service.
        """

    def create_fidgets(self, space_id: _Id, fidgets: Sequence[NewFidget]) -> list[Fidget]:
        """Inserts fidgets in one transaction, all or none. Each row is a `NewFidget`: a dict of `create_fidget`'s
        arguments but `space_id`.

        Returns them in the same order, in which `created_at` increases.

        Raises:
            InvalidInputError: A mapping has an unknown key; the message names it.
            TooLargeError: There are more than `max_bulk_rows`.

        Also raises what `create_fidget` raises; the exception's `row` is the index of the mapping.
        """

    def save_positions(self, space_id: _Id, positions: _Positions) -> list[Fidget]:
        """Saves positions by fidget id in one transaction, all or none. None clears a position.

        Returns the changed fidgets, oldest first.

        Raises:
            NotFoundError: The space is not the caller's, or an id names no fidget of that space.
        """

    def get_fidget(self, id: _Id) -> Fidget:
        """Returns a fidget by its id.

        Raises:
            NotFoundError: The caller sees no such fidget.
        """

    def update_fidget(
        self, id: _Id, *, type: str = ..., config: _Json = ..., position: _Json = ...
    ) -> Fidget:
        """Changes the given columns of a fidget and returns it. None clears `config` and `position`.

        Raises:
            NotFoundError: The caller may change no such fidget.
            FieldMissingError: The type is None.
        """

    def delete_fidget(self, id: _Id) -> None:
        """Deletes a fidget.

        Raises:
            NotFoundError: The caller may change no such fidget.
        """

    def get_space_fidgets(
        self, space_id: _Id, limit: Optional[int] = None, *, after: Optional[Union[Fidget, _Id]] = None
    ) -> list[Fidget]:
        """Lists the fidgets of a space, oldest first. Empty for a space that does not exist or that the caller does not see.

        With `limit` or `after` it returns a page. Pages that each begin after the last fidget of the page before contain no
        fidget twice and leave none out, whatever is inserted or deleted meanwhile. A page has fewer fidgets if they take more
        than 64 MiB of memory: only an empty page is the last one.

        Args:
            limit: The most fidgets of the page; 1,000 if only `after` is given.
            after: The last fidget of an earlier page, which may be deleted meanwhile; or the id of a fidget of the space.

        Raises:
            TooLargeError: All fidgets were asked for, and they take more than 64 MiB of memory.
            InvalidInputError: The limit is not 1 to 1,000, or the id names no fidget of the space.
        """

@final
class AsyncSpaces:
    """Spaces: `AsyncClient.spaces`. Each method is the coroutine of the same method of `Spaces`."""

    async def create_space(
        self,
        name: str,
        *,
        description: Optional[str] = None,
        is_public: bool = False,
        owner_id: Optional[_Id] = None,
        id: Optional[_Id] = None,
    ) -> Space:
        """See `Spaces.create_space`."""

    async def create_spaces(self, spaces: Sequence[NewSpace]) -> list[Space]:
        """See `Spaces.create_spaces`."""

    async def get_space(self, id: _Id) -> Space:
        """See `Spaces.get_space`."""

    async def update_space(
        self, id: _Id, *, name: str = ..., description: Optional[str] = ..., is_public: bool = ...
    ) -> Space:
        """See `Spaces.update_space`."""

    async def delete_space(self, id: _Id) -> None:
        """See `Spaces.delete_space`."""

    async def list_spaces(self, limit: int = 100, *, after: Optional[Union[Space, _Id]] = None) -> list[Space]:
        """See `Spaces.list_spaces`."""

    async def set_owner(self, id: _Id, owner_id: _Id) -> Space:
        """See `Spaces.set_owner`."""

    async def get_user_spaces(self, user_id: _Id) -> SpaceList[SpaceWithFidgets]:
        """See `Spaces.get_user_spaces`."""

    async def get_public_spaces(
        self, limit: int = 20, offset: int = 0, *, after: Optional[Union[PublicSpace, _Id]] = None
    ) -> SpaceList[PublicSpace]:
        """See `Spaces.get_public_spaces`."""

    def iter_public_spaces(self, page_size: int = 100) -> AsyncIterator[PublicSpace]:
        """See `Spaces.iter_public_spaces`."""

    async def get_space_with_fidgets(self, id: _Id, *, allow_empty: bool = False) -> SpaceWithFidgets:
        """See `Spaces.get_space_with_fidgets`."""

@final
class AsyncFidgets:
    """The fidgets of spaces: `AsyncClient.fidgets`. Each method is the coroutine of the same method of `Fidgets`."""

    async def create_fidget(
        self, space_id: _Id, type: str, *, config: _Json = None, position: _Json = None, id: Optional[_Id] = None
    ) -> Fidget:
        """See `Fidgets.create_fidget`."""

    async def create_fidgets(self, space_id: _Id, fidgets: Sequence[NewFidget]) -> list[Fidget]:
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

    async def get_space_fidgets(
        self, space_id: _Id, limit: Optional[int] = None, *, after: Optional[Union[Fidget, _Id]] = None
    ) -> list[Fidget]:
        """See `Fidgets.get_space_fidgets`."""

@disjoint_base
@dataclass(frozen=True, eq=False)
class Space(_Record):
    """A row of `spaces`."""

    id: Final[UUID]
    """Primary key."""
    name: Final[str]
    """Display name."""
    description: Final[Optional[str]]
    """Description."""
    owner_id: Final[Optional[UUID]]
    """The user who owns the space."""
    is_public: Final[bool]
    """Whether every caller sees the space."""
    created_at: Final[datetime]
    """When the row was inserted, UTC."""
    updated_at: Final[datetime]
    """When the row last changed, UTC. Never decreases."""

@final
@dataclass(frozen=True, eq=False)
class SpaceWithFidgets(Space):
    """A space with its fidgets."""

    fidgets: Final[list[Fidget]]
    """The space's fidgets, oldest first."""

@final
@dataclass(frozen=True, eq=False)
class PublicSpace(Space):
    """A public space with its owner."""

    owner: Final[Optional[Owner]]
    """The owner; None for a space without one."""

@final
@dataclass(frozen=True, eq=False)
class Owner(_Record):
    """The owner of a public space."""

    id: Final[UUID]
    """The user's id."""
    email: Final[Optional[str]]
    """The user's address; None when `expose_owner_email` is off."""

@final
@dataclass(frozen=True, eq=False)
class Fidget(_Record):
    """A row of `fidgets`: a widget placed in a space. Each read of a JSON attribute returns a new value."""

    id: Final[UUID]
    """Primary key."""
    space_id: Final[Optional[UUID]]
    """The space that holds the fidget."""
    type: Final[str]
    """The widget's type."""
    config: Final[_Json]
    """Settings, as JSON; None without any."""
    position: Final[_Json]
    """Position, as JSON; None without one."""
    created_at: Final[datetime]
    """When the row was inserted, UTC."""
    updated_at: Final[datetime]
    """When the row last changed, UTC. Never decreases."""
