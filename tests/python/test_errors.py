"""The exceptions: base classes, attributes and pickling (SPEC 7)."""

from __future__ import annotations

import builtins
import pickle

import pytest
import townsquare
from townsquare import exceptions

BUILTIN_BASES = {
    "ConfigError": ValueError,
    "InvalidInputError": ValueError,
    "NotFoundError": LookupError,
    "AlreadyExistsError": None,
    "ConflictError": None,
    "CursorExpiredError": LookupError,
    "ReferenceMissingError": None,
    "FieldMissingError": ValueError,
    "AuthError": PermissionError,
    "RateLimitedError": None,
    "TooLargeError": None,
    "QuotaExceededError": None,
    "UnavailableError": ConnectionError,
    "ClosedError": None,
}
KINDS = set(
    "already_exists reference_missing field_missing table_missing not_found invalid_input unauthorized forbidden "
    "rate_limited too_large unavailable closed config internal conflict cursor_expired cancelled quota_exceeded".split()
)


def test_every_kind_has_its_exception_class() -> None:
    assert {each.__name__ for each in exceptions.ALL} == {"Error", *BUILTIN_BASES} == set(exceptions.__all__)
    assert set(exceptions.BY_KIND) == KINDS
    assert all(getattr(townsquare, each.__name__) is each for each in exceptions.ALL)


@pytest.mark.parametrize("error", exceptions.ALL, ids=lambda error: error.__name__)
def test_every_error_has_its_builtin_base_class(error: type[townsquare.Error]) -> None:
    assert issubclass(error, townsquare.Error) and error.__module__ == "townsquare"
    expected = BUILTIN_BASES.get(error.__name__)
    for builtin in (ValueError, LookupError, PermissionError, ConnectionError):
        assert issubclass(error, builtin) == (builtin is expected)
    assert not hasattr(builtins, error.__name__)


@pytest.mark.parametrize("error", exceptions.ALL, ids=lambda error: error.__name__)
def test_every_error_survives_pickling(error: type[townsquare.Error]) -> None:
    raised = error(
        "Update space failed: It is so", kind="internal", message="It is so", operation="update_space", code="23505",
        status=409, is_retryable=True, retry_after=1.5, row=3, column="name",
    )  # fmt: skip
    for each in (raised, pickle.loads(pickle.dumps(raised))):
        assert type(each) is error and str(each) == "Update space failed: It is so"
        assert (each.kind, each.message, each.operation) == ("internal", "It is so", "update_space")
        assert (each.code, each.status, each.is_retryable, each.retry_after) == ("23505", 409, True, 1.5)
        assert (each.row, each.column) == (3, "name")


def test_an_error_can_be_made_from_a_sentence_alone() -> None:
    error = townsquare.NotFoundError("gone")
    assert (str(error), error.message, error.code, error.status, error.operation) == ("gone", "gone", None, None, None)
    assert townsquare.RateLimitedError("slow down").retry_after == 0.0


def test_errors_of_the_core_keep_their_attributes(client: townsquare.Client) -> None:
    with pytest.raises(townsquare.Error) as caught:
        client.discovery.search_mini_apps("chess", 0)
    error = caught.value
    assert type(error) is townsquare.InvalidInputError
    assert str(error) == f"Search mini apps failed: {error.message}"
    assert (error.kind, error.operation, error.is_retryable) == ("invalid_input", "search_mini_apps", False)
    assert (error.code, error.status, error.retry_after) == (None, None, None)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
