"""Sign-in and its records: import these names from `townsquare`, whose conventions `_native.pyi` tells."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, Optional, Union, final
from uuid import UUID

from typing_extensions import Self, TypeAlias

__all__ = [
    "AsyncAuth",
    "Auth",
    "Session",
    "Subscription",
    "User",
    "identity_claim",
]

_Event: TypeAlias = Literal["INITIAL_SESSION", "SIGNED_IN", "SIGNED_OUT", "TOKEN_REFRESHED", "USER_UPDATED"]
_Id: TypeAlias = Union[UUID, str]
_Listener: TypeAlias = Callable[[_Event, Optional[Session]], object]

def identity_claim(user_id: _Id, private_key: str, *, timestamp: Optional[datetime] = None) -> dict[str, Any]:
    """A claim that a user holds an identity key, for `link_identity`: `{publicKey, userId, timestamp, signature}`.

    Args:
        private_key: The key's seed (Ed25519) in 64 hex digits. It is not kept, and never shown.
        timestamp: When the claim was made, an aware datetime; now by default. It counts for five minutes.

    Raises:
        InvalidInputError: the key is none, or the id no UUID.
    """

@final
class Auth:
    """Accounts and sessions: `Client.auth`.

    The client that was opened becomes the user who signs in. A handle made by `as_user` or `as_service` keeps its caller:
    there `sign_in` only makes a session, for a server to hand out.
    """

    def sign_up(self, email: str, password: str) -> User:
        """Makes an account and returns its user; signs nobody in. The address is kept trimmed and in lower case.

        Raises:
            AlreadyExistsError: the address has an account.
            InvalidInputError: it is no address, or the password is not 8 to 1,024 bytes long.
        """

    def sign_in(self, email: str, password: str) -> Session:
        """Signs in: the client acts as this user from here on, in every thread.

        Raises:
            AuthError: the address or the password is wrong (`unauthorized`); which of them, nobody is told.
            RateLimitedError: there were too many failures for the address; `retry_after` is the seconds to wait.
        """

    def sign_out(self) -> None:
        """Ends the session, for every handle and process that uses it. Nobody being signed in is fine."""

    def get_session(self) -> Optional[Session]:
        """The session, if there is one and it has not ended; an access token that is too old is refreshed first."""

    def refresh_session(self, refresh_token: Optional[str] = None) -> Session:
        """New tokens for this client's session or, for servers, for the one of that token. Both old tokens die.

        Raises:
            AuthError: nobody is signed in, or the token is none, expired or was used before; the last ends its session.
        """

    def set_session(self, refresh_token: str) -> Session:
        """Takes up a session kept elsewhere: the client acts as its user from here on, with new tokens.

        Raises:
            AuthError: as `refresh_session`.
            InvalidInputError: the handle's caller is fixed (`as_user`, `as_service`).
        """

    def update_user(self, *, current_password: str, email: str = ..., password: str = ...) -> User:
        """Changes what is given of the signed-in user, and ends all the user's other sessions.

        Without a change it only checks the password.

        Raises:
            AuthError: nobody is signed in, or the current password is wrong.
            RateLimitedError: as `sign_in`.
            AlreadyExistsError: the address has an account.
            InvalidInputError: the new address or password is none.
        """

    def delete_user(self, user_id: Optional[_Id] = None, *, current_password: Optional[str] = None) -> None:
        """Deletes a user with everything that belongs to it: spaces, fidgets, sessions. There is no way back.

        Oneself, with the current password; or, by the service, the one with that id.

        Raises:
            InvalidInputError: neither is given.
            AuthError: nobody is signed in, the password is wrong, or it is for the service to do.
            RateLimitedError: as `sign_in`.
            NotFoundError: there is no such user (to the service).
        """

    def link_identity(self, claim: Mapping[str, Any]) -> None:
        """Links an identity key to the signed-in user, by a claim of `identity_claim`. Once more is fine.

        Raises:
            AuthError: nobody is signed in, or the claim is forged, another user's, older than five minutes or from the future.
            AlreadyExistsError: another user has linked the key.
            InvalidInputError: it is no claim; a signed file is none.
        """

    def on_auth_state_change(self, callback: _Listener) -> Subscription:
        """Calls `callback(event, session)`: first INITIAL_SESSION with the session there is, then every event, in order.

        It is called on a thread of the library's, one call at a time, and may call the library, unsubscribe itself and take
        its time. What it raises goes to the logger `townsquare`, and the subscription goes on. A coroutine function is a
        `TypeError`; to reach an event loop, call `loop.call_soon_threadsafe` in it.

        It lasts until `Subscription.unsubscribe`, or until the client is closed or gone. A callback that refers to the client
        keeps it: end one of the two by hand.
        """

@final
class AsyncAuth:
    """Accounts and sessions: `AsyncClient.auth`. See `Auth`."""

    async def sign_up(self, email: str, password: str) -> User:
        """See `Auth.sign_up`."""

    async def sign_in(self, email: str, password: str) -> Session:
        """See `Auth.sign_in`."""

    async def sign_out(self) -> None:
        """See `Auth.sign_out`."""

    async def get_session(self) -> Optional[Session]:
        """See `Auth.get_session`."""

    async def refresh_session(self, refresh_token: Optional[str] = None) -> Session:
        """See `Auth.refresh_session`."""

    async def set_session(self, refresh_token: str) -> Session:
        """See `Auth.set_session`."""

    async def update_user(self, *, current_password: str, email: str = ..., password: str = ...) -> User:
        """See `Auth.update_user`."""

    async def delete_user(self, user_id: Optional[_Id] = None, *, current_password: Optional[str] = None) -> None:
        """See `Auth.delete_user`."""

    async def link_identity(self, claim: Mapping[str, Any]) -> None:
        """See `Auth.link_identity`."""

    async def on_auth_state_change(self, callback: _Listener) -> Subscription:
        """See `Auth.on_auth_state_change`: a plain function here too, called on a thread of the library's."""

@final
class User:
    """A row of `users`. Frozen."""

    @property
    def id(self) -> UUID:
        """Primary key."""
    @property
    def email(self) -> str:
        """The address, trimmed and in lower case."""
    @property
    def created_at(self) -> datetime:
        """When the user signed up, UTC."""
    @property
    def updated_at(self) -> datetime:
        """When the row last changed, UTC."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class Session:
    """What proves that somebody is signed in. Its tokens are secrets: they are attributes, but not in its `repr`. Frozen."""

    @property
    def access_token(self) -> str:
        """Shows who is calling, for an hour: `Client.as_user` takes it."""
    @property
    def refresh_token(self) -> str:
        """Gets the next pair of tokens, once, within 30 days; empty where only the access token is known (`as_user`)."""
    @property
    def expires_at(self) -> datetime:
        """When the access token ends, UTC."""
    @property
    def user(self) -> User:
        """Whose session it is."""
    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, tokens and all; the user as a dict."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...

@final
class Subscription:
    """A subscription to events. It lasts until `unsubscribe`, whatever becomes of this object."""

    def unsubscribe(self) -> None:
        """Ends it: after this the callback is not running and never runs again. Twice is fine.

        It waits for a callback under way; from inside the callback it does not, and no other call follows this one. In an
        event loop whose turn the callback may wait for, use `await asyncio.to_thread(subscription.unsubscribe)`.
        """
