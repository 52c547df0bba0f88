"""The exceptions of the library: the base class :class:`Error` and a subclass for each kind of failure.

Invariant: ``str(error)`` is a sentence for the user, and every other fact about the failure is an attribute, so no program
has to parse the sentence. The classes are written in Python, so that pickling, ``help()`` and tracebacks work as for any
other exception. The extension module finds them through :data:`BY_KIND`.

=====================  ===========================================  ====================================
class                  ``kind``                                     also a
=====================  ===========================================  ====================================
`ConfigError`          ``config``                                   `ValueError`
`InvalidInputError`    ``invalid_input``                            `ValueError`
`NotFoundError`        ``not_found``                                `LookupError`
`AlreadyExistsError`   ``already_exists``
`ConflictError`        ``conflict``
`ReferenceMissingError`  ``reference_missing``
`FieldMissingError`    ``field_missing``                            `ValueError`
`AuthError`            ``unauthorized``, ``forbidden``              `PermissionError`
`RateLimitedError`     ``rate_limited``
`TooLargeError`        ``too_large``
`UnavailableError`     ``unavailable``                              `ConnectionError`
`ClosedError`          ``closed``
`CursorExpiredError`   ``cursor_expired``                           `LookupError`
`QuotaExceededError`   ``quota_exceeded``
`Error` itself         ``table_missing``, ``cancelled``, ``internal``
=====================  ===========================================  ====================================

Every error has a ``status``, the HTTP status that fits, and an ``explanation`` of what to do about it. An argument of the
wrong type raises `TypeError`, and the text starts with the argument's name.
"""

from __future__ import annotations

from typing import Optional

__all__ = [
    "AlreadyExistsError",
    "AuthError",
    "ClosedError",
    "ConfigError",
    "ConflictError",
    "CursorExpiredError",
    "Error",
    "FieldMissingError",
    "InvalidInputError",
    "NotFoundError",
    "QuotaExceededError",
    "RateLimitedError",
    "ReferenceMissingError",
    "TooLargeError",
    "UnavailableError",
]


class Error(Exception):
    """The base class of the library's exceptions.

    ``str(error)`` is a sentence that starts with the operation: ``"Refresh mini apps failed: The catalog answered 503"``.
    """

    kind: str
    """The kind of failure: ``already_exists``, ``reference_missing``, ``field_missing``, ``table_missing``,
    ``not_found``, ``invalid_input``, ``unauthorized``, ``forbidden``, ``rate_limited``, ``too_large``,
    ``unavailable``, ``closed``, ``config``, ``internal``, ``conflict``, ``cursor_expired``, ``cancelled`` or
    ``quota_exceeded``."""
    code: Optional[str]
    """The SQLSTATE of a database error: ``"23505"``. None for other failures."""
    status: int
    """The HTTP status that fits: ``404`` for a missing row or file, ``503`` for a database that does not answer."""
    explanation: Optional[str]
    """What to do about it, in a sentence. None for an error that the library did not raise."""
    reason: Optional[str]
    """The end of the message, after its colon: ``"spaces.name"``. It is for the developer: a server that shows errors to
    strangers shows neither it nor the message. None if there is none."""
    operation: Optional[str]
    """The method that failed: ``"search_mini_apps"``. None outside an operation."""
    message: str
    """The sentence without the operation. A colon and the reason may end it: ``"Required field is missing: spaces.name"``."""
    is_retryable: bool
    """Whether the same call with the same arguments may succeed later, and does no harm if this one took effect. False for a
    write with an unknown outcome (``code`` is ``"08007"``), unless the call was idempotent, and for a write to a database that
    has moved to another place (``"25006"``)."""
    retry_after: Optional[float]
    """Seconds to wait before the next attempt. None if unknown."""
    row: Optional[int]
    """The index of the mapping that failed, in `create_spaces` and `create_fidgets`. None for other failures."""
    column: Optional[str]
    """The column without a value (`FieldMissingError`), that refers to a missing row (`ReferenceMissingError` on
    PostgreSQL), or that cannot be read (``code`` is ``XX001``)."""

    def __init__(
        self,
        sentence: str = "",
        *,
        kind: str = "internal",
        message: Optional[str] = None,
        operation: Optional[str] = None,
        code: Optional[str] = None,
        status: int = 500,
        explanation: Optional[str] = None,
        reason: Optional[str] = None,
        is_retryable: bool = False,
        retry_after: Optional[float] = None,
        row: Optional[int] = None,
        column: Optional[str] = None,
    ) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.message = sentence if message is None else message
        self.operation = operation
        self.code = code
        self.status = status
        self.explanation = explanation
        self.reason = reason
        self.is_retryable = is_retryable
        self.retry_after = retry_after
        self.row = row
        self.column = column


class ConfigError(Error, ValueError):
    """The configuration is wrong; the message names the option."""


class InvalidInputError(Error, ValueError):
    """An argument is malformed or out of range."""


class NotFoundError(Error, LookupError):
    """The row or file does not exist, or the caller may not see it."""


class AlreadyExistsError(Error):
    """A unique value exists already (``code`` is ``23505``), or a file or folder has the path (``status`` is 409)."""


class ConflictError(Error):
    """The file has another version than ``if_match`` names: somebody else has written it since (``status`` is 412)."""


class CursorExpiredError(Error, LookupError):
    """The feed no longer keeps what follows the cursor, or the cursor is of another incarnation or history of the database."""


class ReferenceMissingError(Error):
    """A referenced row does not exist (``code`` is ``23503``). ``column`` names the column if the database says which one:
    PostgreSQL does, SQLite does not."""


class FieldMissingError(Error, ValueError):
    """A required field has no value (``code`` is ``23502``); ``column`` names it."""


class AuthError(Error, PermissionError):
    """``kind`` is ``unauthorized`` (anonymous caller or wrong credentials) or ``forbidden`` (a policy denies the call)."""


class RateLimitedError(Error):
    """There were too many attempts; ``retry_after`` is the wait in seconds."""

    retry_after: float

    def __init__(self, sentence: str = "", *, retry_after: Optional[float] = None, **details: object) -> None:
        super().__init__(sentence, retry_after=retry_after or 0.0, **details)  # type: ignore[arg-type]


class TooLargeError(Error):
    """A text, a JSON value, a list of rows, a file or a body is over its size limit; the message names it."""


class QuotaExceededError(Error):
    """The caller would have more than ``max_owner_bytes`` (``status`` is 413), ``max_owner_files``, ``max_owner_spaces`` or
    ``max_space_fidgets`` (409) allows, or more than 100 identity keys (409)."""


class UnavailableError(Error, ConnectionError):
    """The database or the catalog does not respond. A later attempt may succeed; see ``is_retryable``."""


class ClosedError(Error):
    """The client or this handle of it was closed, or the parent process opened it before a fork."""


BY_KIND: dict[str, type[Error]] = {
    "already_exists": AlreadyExistsError,
    "reference_missing": ReferenceMissingError,
    "field_missing": FieldMissingError,
    "table_missing": Error,
    "not_found": NotFoundError,
    "invalid_input": InvalidInputError,
    "unauthorized": AuthError,
    "forbidden": AuthError,
    "rate_limited": RateLimitedError,
    "too_large": TooLargeError,
    "unavailable": UnavailableError,
    "closed": ClosedError,
    "config": ConfigError,
    "internal": Error,
    "conflict": ConflictError,
    "cursor_expired": CursorExpiredError,
    "cancelled": Error,
    "quota_exceeded": QuotaExceededError,
}
"""The exception class of each kind of the core."""

ALL: tuple[type[Error], ...] = (Error, *dict.fromkeys(each for each in BY_KIND.values() if each is not Error))
"""Every exception class, the base class first."""


class ArgumentTypeError(TypeError):
    """The error that the extension module raises for an argument of another type. Programs see a plain `TypeError`."""

    _is_named = False

    def add_note(self, note: str) -> None:
        """PyO3 adds the note ``while processing 'name'`` on every version of Python. The name becomes the start of the text."""
        if self._is_named:
            super().add_note(note)
        else:
            self._is_named = True
            self.args = (f"{note.split(chr(39))[1]}: {self}",)

    def __reduce__(self) -> tuple[type[TypeError], tuple[object, ...]]:
        return TypeError, self.args


ArgumentTypeError.__name__ = ArgumentTypeError.__qualname__ = "TypeError"
ArgumentTypeError.__module__ = "builtins"

for _class in ALL:
    # Tracebacks show the public name, `townsquare.NotFoundError`.
    _class.__module__ = "townsquare"
del _class
