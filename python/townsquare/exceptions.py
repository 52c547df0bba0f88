"""What the library raises: one base, :class:`Error`, and a class for each kind that a program branches on.

Invariant: ``str(error)`` is the whole sentence a user may be shown, and everything else about a failure is an attribute;
nobody needs to read the sentence to know what happened. Written in Python, so that pickling, ``help()`` and tracebacks
behave as they do for any other exception; the extension module makes them through :data:`BY_KIND`.

=====================  ===========================================  ====================================
class                  ``kind``                                     also a
=====================  ===========================================  ====================================
`ConfigError`          ``config``                                   `ValueError`
`InvalidInputError`    ``invalid_input``                            `ValueError`
`NotFoundError`        ``not_found``                                `LookupError`
`AlreadyExistsError`   ``already_exists``
`ReferenceMissingError`  ``reference_missing``
`FieldMissingError`    ``field_missing``                            `ValueError`
`AuthError`            ``unauthorized``, ``forbidden``              `PermissionError`
`RateLimitedError`     ``rate_limited``
`TooLargeError`        ``too_large``
`UnavailableError`     ``unavailable``                              `ConnectionError`
`ClosedError`          ``closed``
`Error` itself         ``table_missing``, ``internal``
=====================  ===========================================  ====================================

An argument of the wrong *type* (a number where text belongs, a string where a list of strings belongs) is a `TypeError`,
as everywhere in Python.
"""

from __future__ import annotations

from typing import Optional

__all__ = [
    "AlreadyExistsError",
    "AuthError",
    "ClosedError",
    "ConfigError",
    "Error",
    "FieldMissingError",
    "InvalidInputError",
    "NotFoundError",
    "RateLimitedError",
    "ReferenceMissingError",
    "TooLargeError",
    "UnavailableError",
]


class Error(Exception):
    """The base of everything this library raises.

    ``str(error)`` is the sentence for people, with the operation in front:
    ``"Refresh mini apps failed: The catalog answered 503"``.
    """

    kind: str
    """What a program branches on: ``already_exists``, ``reference_missing``, ``field_missing``, ``table_missing``,
    ``not_found``, ``invalid_input``, ``unauthorized``, ``forbidden``, ``rate_limited``, ``too_large``,
    ``unavailable``, ``closed``, ``config`` or ``internal``."""
    code: Optional[str]
    """The SQLSTATE, for a failure that has one: ``"23505"``."""
    status: Optional[int]
    """The file store's status, for a failure of files: ``413``."""
    operation: Optional[str]
    """The method that failed: ``"search_mini_apps"``; None before there was one."""
    message: str
    """The sentence without the operation in front."""
    is_retryable: bool
    """Whether the same call may succeed later, its arguments unchanged."""
    retry_after: Optional[float]
    """Seconds to wait before another try, where that is known."""

    def __init__(
        self,
        sentence: str = "",
        *,
        kind: str = "internal",
        message: Optional[str] = None,
        operation: Optional[str] = None,
        code: Optional[str] = None,
        status: Optional[int] = None,
        is_retryable: bool = False,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.message = sentence if message is None else message
        self.operation = operation
        self.code = code
        self.status = status
        self.is_retryable = is_retryable
        self.retry_after = retry_after


class ConfigError(Error, ValueError):
    """The configuration is wrong; the message names the option."""


class InvalidInputError(Error, ValueError):
    """An argument is malformed or out of range."""


class NotFoundError(Error, LookupError):
    """The row or file does not exist, or the caller may not know that it does."""


class AlreadyExistsError(Error):
    """A unique value is taken (``code`` is ``23505``)."""


class ReferenceMissingError(Error):
    """A referenced row does not exist (``code`` is ``23503``)."""


class FieldMissingError(Error, ValueError):
    """A required field has no value (``code`` is ``23502``)."""


class AuthError(Error, PermissionError):
    """Unauthorized (nobody, or wrong credentials) or forbidden (a policy says no); ``kind`` tells which."""


class RateLimitedError(Error):
    """Too many attempts; ``retry_after`` says when to come back."""

    retry_after: float

    def __init__(self, sentence: str = "", *, retry_after: Optional[float] = None, **details: object) -> None:
        super().__init__(sentence, retry_after=retry_after or 0.0, **details)  # type: ignore[arg-type]


class TooLargeError(Error):
    """A file or body is over its size limit."""


class UnavailableError(Error, ConnectionError):
    """An outside system does not answer, or there is nothing to answer from. Worth another try."""


class ClosedError(Error):
    """The client was closed, or belongs to another process (a fork)."""


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
}
"""Every kind of the core, with the class it is raised as."""

ALL: tuple[type[Error], ...] = (Error, *dict.fromkeys(each for each in BY_KIND.values() if each is not Error))
"""Every class of this module, the base first."""

for _class in ALL:
    # One public address: what a traceback shows is what one imports.
    _class.__module__ = "townsquare"
del _class
