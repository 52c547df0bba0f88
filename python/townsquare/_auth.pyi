"""Accounts, sessions and identity keys. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Optional, Union, final
from uuid import UUID

from typing_extensions import TypeAlias

from ._client import _Id, _Record
from ._typed import NewCredential

_Event: TypeAlias = Literal["INITIAL_SESSION", "SIGNED_IN", "SIGNED_OUT", "TOKEN_REFRESHED", "USER_UPDATED"]
_SignOutScope: TypeAlias = Literal["local", "others", "global"]
_Listener: TypeAlias = Callable[[_Event, Optional[Session]], object]

def identity_claim(user_id: _Id, private_key: str, audience: str, *, timestamp: Optional[datetime] = None) -> dict[str, Any]:
    """Signs a claim that a user holds an identity key, for `link_identity`.

    The claim is `{publicKey, userId, audience, timestamp, signature}`.

    Args:
        private_key: The Ed25519 seed, as 64 hex digits. The library neither stores nor shows it.
        audience: The deployment that the claim is for: its `client.auth.identity_audience()`.
        timestamp: An aware datetime; by default the current time. The claim is valid from one minute before it until
            five minutes after it.

    Raises:
        InvalidInputError: The key is not 64 hex digits, or the id is not a UUID.
    """

@final
class Auth:
    """Accounts and sessions: `Client.auth`.

    After `sign_in` an opened client acts as the user. A handle of `as_user` or `as_service` keeps its caller: there `sign_in`
    creates a session and returns it, for a server to send to the user.
    """

    def sign_up(self, email: str, password: str) -> User:
        """Creates an account and returns its user. Does not sign in. Stores the address trimmed and in lower case.

        Raises:
            AlreadyExistsError: The address has an account.
            InvalidInputError: The address is malformed, or the password is not 8 to 1,024 bytes long.
            RateLimitedError: More accounts than `sign_up_limit` were created within an hour, or too many calls wait to hash
                a password; `retry_after` is the wait in seconds.
        """

    def sign_in(self, email: str, password: str, *, client_key: Optional[str] = None) -> Session:
        """Signs in. The client acts as this user from then on, in every thread.

        `client_key` is the address of the peer or the device, for limits: a client may have 50 failures, before the failures of
        the address count, and 8 password checks at the same time. One failure is forgotten every minute. A client from which the
        user has signed in within 180 days is not kept waiting by the failures of others. See also `Client.with_client_key`.

        Raises:
            AuthError: The address or the password is wrong (`unauthorized`). The error does not say which.
            RateLimitedError: The client or the address had too many failures, or too many calls wait to hash a password;
                `retry_after` is the wait in seconds.
        """

    def create_session(self, email: str, password: str, *, client_key: Optional[str] = None) -> Session:
        """Creates a session, for a server that sends it to the user of a request. The client's own caller stays.

        Raises:
            AuthError: The address or the password is wrong (`unauthorized`). The error does not say which.
            RateLimitedError: As for `sign_in`.
        """

    def sign_out(self, scope: _SignOutScope = "local") -> None:
        """Ends this session in every handle and process, the user's other sessions, or all of them.

        Does nothing without a session.

        Raises:
            AuthError: The scope is not "local" and the session has ended. Then no session ends.
        """

    def get_session(self) -> Optional[Session]:
        """Returns the session, or None without one and for one that has ended. Refreshes an expired access token first."""

    def refresh_session(self, refresh_token: Optional[str] = None) -> Session:
        """Returns new tokens for this client's session or, for servers, for the session of `refresh_token`.

        Both old tokens become invalid.

        Raises:
            AuthError: There is no session, or the token is unknown, expired or already used. A used token ends its session,
                but for 10 s it gives the same new tokens, so that a call can be repeated if its reply was lost.
        """

    def set_session(self, refresh_token: str) -> Session:
        """Makes the session of a refresh token this client's session, with new tokens.

        Raises:
            AuthError: As `refresh_session`.
            InvalidInputError: The handle comes from `as_user` or `as_service`, so its caller is fixed.
        """

    def update_user(self, *, current_password: str, email: str = ..., password: str = ...) -> User:
        """Changes the signed-in user's address or password, and ends the user's other sessions.

        Without a change it only checks the password. A new password also replaces both tokens of this session: `get_session`
        returns the new ones. A new address voids mailed tokens and the verification of the old one.

        Raises:
            AuthError: There is no session, or the current password is wrong.
            RateLimitedError: There were too many wrong passwords in sessions of this user. Failed sign-ins do not count.
            AlreadyExistsError: The address has an account.
            InvalidInputError: The new address or password is malformed.
        """

    def delete_user(self, user_id: Optional[_Id] = None, *, current_password: Optional[str] = None) -> None:
        """Deletes a user with all spaces, fidgets and sessions of the user. Cannot be undone.

        A user deletes the own account, by the current password. The service deletes any user, by `user_id`. The change log keeps
        only the keys of the deleted rows.

        If the user has more than 100 spaces, 32 fidgets or 100 files, most of them are deleted in steps before, so that others can
        write meanwhile. If the call fails, it may have deleted some of them; call again.

        Raises:
            InvalidInputError: Both arguments are missing.
            AuthError: There is no session, the password is wrong, or only the service may delete that user.
            RateLimitedError: As `sign_in`.
            NotFoundError: The user does not exist (for the service).
            UnavailableError: The user writes so much meanwhile that the deletion does not end (503). Call again.
        """

    def link_identity(self, claim: Mapping[str, Any]) -> None:
        """Links an identity key to the signed-in user. `identity_claim` makes the claim. A second call does nothing.

        Raises:
            AuthError: There is no session, or the claim is forged, another user's, for another audience, older than five
                minutes or more than a minute in the future.
            AlreadyExistsError: Another user has linked the key.
            InvalidInputError: The mapping is not a claim. A signed file is not one.
            QuotaExceededError: The user has linked 100 other keys (status 409).
        """

    def unlink_identity(self, public_key: str) -> None:
        """Removes an identity key from the signed-in user. Its rights end at once.

        Raises:
            AuthError: There is no session.
            NotFoundError: The user has not linked the key.
        """

    def identities(self) -> list[str]:
        """Returns the linked public keys of the signed-in user, in hex, the oldest link first.

        Raises:
            AuthError: There is no session.
        """

    def identities_of(self, user_id: _Id) -> list[str]:
        """Returns the identity keys of a user, in hex, in the order in which they were linked. For the service.

        A user that does not exist has none.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `user_id` is not a UUID.
        """

    def sessions_of(self, user_id: _Id) -> list[SessionInfo]:
        """Returns the sessions of a user that have not ended, the latest first. For the service.

        A user that does not exist has none. No session is listed with its tokens.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `user_id` is not a UUID.
        """

    def end_session(self, user_id: _Id, session_id: _Id) -> None:
        """Ends a session of a user, by its id in `sessions_of`. For the service.

        Its tokens are refused from then on, and its streams end. An upload of a large file completes once its
        bytes are staged; others store nothing.

        Raises:
            AuthError: The caller is not the service.
            NotFoundError: The user has no such session.
            InvalidInputError: An id is not a UUID.
        """

    def end_sessions(self, user_id: _Id) -> int:
        """Ends every session of a user, and the user's signed URLs. Returns the number of sessions. For the service.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `user_id` is not a UUID.
        """

    def identity_audience(self) -> str:
        """Returns the audience that identity claims must be for.

        It is the option `identity_audience`, by default the incarnation id of the database, which `Client.restore` changes.
        """

    def create_recovery_token(self, email: str) -> Optional[str]:
        """Makes a token with which the user with this address can `recover` the account. For the service.

        The program mails the token to the stored address, `find_user(email).email`, never to `email`: two spellings of one
        address may be two mailboxes. It works once, within an hour, while the user has this address and password. None for an
        unknown address: give the same answer then, and limit how many mails you send to an address.

        Raises:
            AuthError: The caller is not the service.
        """

    def recover(self, recovery_token: str, new_password: str) -> Session:
        """Sets a new password by a recovery token, ends all sessions of the user, and signs in as `sign_in` does.

        Raises:
            AuthError: The token is unknown, used, expired or void.
            InvalidInputError: The password is not 8 to 1,024 bytes long. The token stays valid.
            RateLimitedError: Too many calls wait to hash a password.
        """

    def create_verification_token(self, user_id: _Id) -> str:
        """Makes a token with which a user proves that they receive mail at the present address. For the service.

        The program mails the token. It works once, within a day, while the user has this address.

        Raises:
            AuthError: The caller is not the service.
            NotFoundError: The user does not exist.
        """

    def verify_email(self, verification_token: str) -> User:
        """Sets `email_verified_at` of the user of a verification token, and returns the user. Signs nobody in.

        Raises:
            AuthError: The token is unknown, used, expired or void.
        """

    def list_users(self, limit: int = 100, *, after: Optional[Union[User, _Id]] = None) -> list[User]:
        """Returns a page of all users, by id. For the service.

        Args:
            limit: How many rows, 1 to 1,000.
            after: The last user of the page before, or its key; None for the first page.

        Returns:
            The rows, fewer if they take more than 64 MiB of memory. Only an empty page is the last one.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `limit` is out of range.
        """

    def find_user(self, email: str) -> Optional[User]:
        """Returns the user with an address, in any case, or None. For the service.

        Raises:
            AuthError: The caller is not the service.
        """

    def set_password(self, user_id: _Id, password: str) -> None:
        """Sets a user's password and ends all sessions of the user. For the service.

        Raises:
            AuthError: The caller is not the service.
            NotFoundError: The user does not exist.
            InvalidInputError: The password is not 8 to 1,024 bytes long.
            RateLimitedError: Too many calls wait to hash a password.
        """

    def import_credentials(self, rows: Iterable[Union[NewCredential, Mapping[str, Union[str, UUID, None]]]]) -> ImportReport:
        """Gives existing users the passwords that another system hashed, all or none. For the service.

        Each row has `password_hash`, and `user_id` or `email`. A hash is bcrypt (`$2a$`, `$2b$` and `$2y$`, costs 4 to 14) or
        Argon2 in PHC format (up to 256 MiB, and 1 GiB over all passes). A user who has a password keeps it, so a call can be
        repeated. The first sign-in replaces a bcrypt hash by Argon2id. The lengths of new passwords do not bind imported ones.

            rows = [{"email": "ann@town.example", "password_hash": "$2a$10$…"}]
            client.as_service().auth.import_credentials(rows)

        Raises:
            InvalidInputError: A hash is malformed or costs too much to check, a row does not name its user by either id or
                address, or two rows name one user. `row` is the index; no message shows a hash.
            ReferenceMissingError: No user has the id or the address; `row` is the index.
            TooLargeError: There are more rows than `max_bulk_rows`.
            AuthError: The caller is not the service.
        """

    def on_auth_state_change(self, callback: _Listener) -> Subscription:
        """Calls `callback(event, session)` once with INITIAL_SESSION and the current session, then for every event, in order.

        A library thread calls it, one call at a time. It may block, call the library and unsubscribe itself. An exception in
        it goes to the logger `townsquare`, and the subscription continues. A coroutine function raises `TypeError`; call
        `loop.call_soon_threadsafe` in a plain function to reach an event loop. At most 1,024 events wait for the callback;
        one that falls further behind misses the oldest of them, and always gets the last one.

        If the session ends elsewhere, SIGNED_OUT comes once: when a call or the refresh by the library finds the session gone. A
        handle without calls learns it at its next refresh, within an hour.

        The subscription lasts until `Subscription.unsubscribe`, or until the client is closed or dropped. A callback that
        refers to the client keeps it open: close the client or unsubscribe.
        """

@final
class AsyncAuth:
    """Accounts and sessions: `AsyncClient.auth`. Each method is the coroutine of the same method of `Auth`."""

    async def sign_up(self, email: str, password: str) -> User:
        """See `Auth.sign_up`."""

    async def sign_in(self, email: str, password: str, *, client_key: Optional[str] = None) -> Session:
        """See `Auth.sign_in`."""

    async def create_session(self, email: str, password: str, *, client_key: Optional[str] = None) -> Session:
        """See `Auth.create_session`."""

    async def sign_out(self, scope: _SignOutScope = "local") -> None:
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

    async def unlink_identity(self, public_key: str) -> None:
        """See `Auth.unlink_identity`."""

    async def identities(self) -> list[str]:
        """See `Auth.identities`."""

    async def identities_of(self, user_id: _Id) -> list[str]:
        """See `Auth.identities_of`."""

    async def sessions_of(self, user_id: _Id) -> list[SessionInfo]:
        """See `Auth.sessions_of`."""

    async def end_session(self, user_id: _Id, session_id: _Id) -> None:
        """See `Auth.end_session`."""

    async def end_sessions(self, user_id: _Id) -> int:
        """See `Auth.end_sessions`."""

    async def identity_audience(self) -> str:
        """See `Auth.identity_audience`."""

    async def create_recovery_token(self, email: str) -> Optional[str]:
        """See `Auth.create_recovery_token`."""

    async def recover(self, recovery_token: str, new_password: str) -> Session:
        """See `Auth.recover`."""

    async def create_verification_token(self, user_id: _Id) -> str:
        """See `Auth.create_verification_token`."""

    async def verify_email(self, verification_token: str) -> User:
        """See `Auth.verify_email`."""

    async def list_users(self, limit: int = 100, *, after: Optional[Union[User, _Id]] = None) -> list[User]:
        """See `Auth.list_users`."""

    async def find_user(self, email: str) -> Optional[User]:
        """See `Auth.find_user`."""

    async def set_password(self, user_id: _Id, password: str) -> None:
        """See `Auth.set_password`."""

    async def import_credentials(self, rows: Iterable[Union[NewCredential, Mapping[str, Union[str, UUID, None]]]]) -> ImportReport:
        """See `Auth.import_credentials`."""

    async def on_auth_state_change(self, callback: _Listener) -> Subscription:
        """See `Auth.on_auth_state_change`."""

@final
@dataclass(frozen=True, eq=False)
class User(_Record):
    """A row of `users`."""

    id: Final[UUID]
    """Primary key."""
    email: Final[str]
    """The address, trimmed and in lower case, unless another program stored it."""
    created_at: Final[datetime]
    """When the user signed up, UTC."""
    updated_at: Final[datetime]
    """When the row last changed, UTC."""
    email_verified_at: Final[Optional[datetime]]
    """When the user proved that they receive mail at the address, UTC; None before, and after a change of the address."""

@final
@dataclass(frozen=True, eq=False)
class ImportReport(_Record):
    """What `import_credentials` did."""

    imported: Final[int]
    """The users who had no password and have the imported one."""
    unchanged: Final[int]
    """The users who had a password, which stays."""

@final
@dataclass(frozen=True, eq=False)
class Session(_Record):
    """A user's session. Its tokens are secrets: they are attributes and in `to_dict()`, but not in `repr`."""

    access_token: Final[str]
    """Proves the user's identity for one hour: `Client.as_user` takes it."""
    refresh_token: Final[str]
    """Gets the next pair of tokens, once, within 30 days. Empty for a handle of `as_user`."""
    expires_at: Final[datetime]
    """When the access token expires, UTC."""
    user: Final[User]
    """The signed-in user."""

@final
@dataclass(frozen=True, eq=False)
class SessionInfo(_Record):
    """A session of a user, as `sessions_of` lists it: without tokens."""

    id: Final[UUID]
    """The id of the session. A refresh replaces the tokens and keeps the id."""
    created_at: Final[datetime]
    """When the user signed in, UTC."""
    refreshed_at: Final[datetime]
    """When the session got its present tokens, UTC: at sign-in, or at the last refresh."""
    expires_at: Final[datetime]
    """When the session ends unless it is refreshed before, UTC."""

@final
class Subscription:
    """A subscription to events. It lasts until `unsubscribe`, even if this object is dropped."""

    def unsubscribe(self) -> None:
        """Ends the subscription: once this returns, the callback is not running and never runs again.

        Waits for a running callback, and for its calls with the events of sessions and of the catalog that happened before. Inside
        any callback of the library it does not wait: no further call starts, and one that runs ends. A second call changes
        nothing. In an event loop that the callback may wait for, use `await asyncio.to_thread(subscription.unsubscribe)`.
        """
