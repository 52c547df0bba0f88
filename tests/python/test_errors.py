"""The exceptions: base classes, attributes and pickling (SPEC 7)."""

from __future__ import annotations

import builtins
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

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
        status=409, explanation="Do so.", reason="name", is_retryable=True, retry_after=1.5, row=3, column="name",
    )  # fmt: skip
    for each in (raised, pickle.loads(pickle.dumps(raised))):
        assert type(each) is error and str(each) == "Update space failed: It is so"
        assert (each.kind, each.message, each.operation) == ("internal", "It is so", "update_space")
        assert (each.code, each.status, each.is_retryable, each.retry_after) == ("23505", 409, True, 1.5)
        assert (each.row, each.column, each.explanation, each.reason) == (3, "name", "Do so.", "name")


def test_an_error_can_be_made_from_a_sentence_alone() -> None:
    error = townsquare.NotFoundError("gone")
    assert (str(error), error.message, error.code, error.status, error.operation) == ("gone", "gone", None, 500, None)
    assert townsquare.RateLimitedError("slow down").retry_after == 0.0


def test_errors_of_the_core_keep_their_attributes(client: townsquare.Client) -> None:
    with pytest.raises(townsquare.Error) as caught:
        client.discovery.search_mini_apps("chess", 0)
    error = caught.value
    assert type(error) is townsquare.InvalidInputError
    assert str(error) == f"Search mini apps failed: {error.message}"
    assert (error.kind, error.operation, error.is_retryable) == ("invalid_input", "search_mini_apps", False)
    assert (error.code, error.status, error.retry_after) == (None, 400, None)
    assert error.explanation == "Correct the argument as the message says."
    assert error.reason is None or error.message.endswith(f": {error.reason}")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_errors_name_what_is_wrong(client: townsquare.Client, tmp_path: Path) -> None:
    storage = client.as_service().storage
    with pytest.raises(townsquare.NotFoundError, match='there is no bucket "pictures"'):
        storage.upload("pictures", "a.png", b"")
    with pytest.raises(townsquare.InvalidInputError, match=f"the source {tmp_path}/none cannot be read: No such file"):
        storage.upload_from("assets", "a.png", tmp_path / "none")
    with pytest.raises(townsquare.ConfigError, match="Did you mean catalog_url?"):
        townsquare.Client.open(":memory:", **cast("Any", {"catalog_ulr": "sample:"}))
    with pytest.raises(townsquare.AuthError) as refused:
        client.storage.repair()
    assert refused.value.explanation == "Use as_service(): this is work of the program itself, which no user may do."


def test_the_text_ends_with_the_reason(client: townsquare.Client) -> None:
    with pytest.raises(townsquare.InvalidInputError) as caught:
        client.as_service().storage.upload("assets", "a//b", b"")
    assert str(caught.value) == "Upload failed: Invalid file or request: segment 2 of the path is empty"
    assert caught.value.message == "Invalid file or request: segment 2 of the path is empty"
    assert caught.value.status == 400 and caught.value.__cause__ is None


def test_a_space_without_fidgets_is_explained(client: townsquare.Client) -> None:
    service = client.as_service()
    space = service.spaces.create_space("Chess")
    with pytest.raises(townsquare.NotFoundError) as caught:
        service.spaces.get_space_with_fidgets(space.id)
    assert str(caught.value) == "Get space with fidgets failed: Record not found" and caught.value.status == 404
    assert caught.value.explanation and "allow_empty" in caught.value.explanation
    with pytest.raises(townsquare.AuthError) as refused:
        client.spaces.create_space("mine")
    assert "as_service()" in str(refused.value) and "as_service()" in (refused.value.explanation or "")


def test_a_type_error_names_its_argument(client: townsquare.Client) -> None:
    spaces, storage, discovery = (cast("Any", area) for area in (client.spaces, client.storage, client.discovery))
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: spaces.get_space(5), "id: expected a UUID or its text, not int"),
        (lambda: spaces.create_space(5), "name: expected a string, not int"),
        (lambda: spaces.create_space("x", is_public="yes"), "is_public: expected True or False, not str"),
        (lambda: spaces.create_spaces([{"name": 5}]), "spaces[0].name: expected a string, not int"),
        (lambda: spaces.get_public_spaces("many"), "limit: expected an integer, not str"),
        (lambda: spaces.list_spaces(after=5), "after: expected a record of the list, a UUID or its text, not int"),
        (lambda: spaces.get_space_with_fidgets(uuid4(), allow_empty=1), "allow_empty: expected True or False, not int"),
        (lambda: discovery.search_mini_apps(b"x"), "query: expected a string, not bytes"),
        (lambda: discovery.get_new_mini_apps(networks="base"), "networks: expected a list of strings, not a string; write ['base']"),
        (lambda: storage.upload("assets", "a", "text"), "data: expected bytes, a file object or an iterable of bytes, not str"),
        (lambda: storage.upload("assets", "a", b"", upsert=1), "upsert: expected True or False, not int"),
        (lambda: storage.download_to("assets", "a", 5), "target: expected a path, not int"),
        (lambda: townsquare.AsyncClient.open(5), "data_dir: expected a path, not int"),  # type: ignore[arg-type]
        (lambda: client.realtime.subscribe("x", 5, table="spaces"), "callback: expected a function, not int"),  # type: ignore[arg-type]
    ]
    for call, text in calls:
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == text
        assert not getattr(caught.value, "__notes__", None)
        line = traceback.format_exception_only(caught.type, caught.value)[-1]
        assert line == f"TypeError: {text}\n"
        again = pickle.loads(pickle.dumps(caught.value))
        assert type(again) is TypeError and str(again) == text


def test_no_error_has_the_name_of_an_internal_class(client: townsquare.Client) -> None:
    areas = [client, client.discovery, client.communities, client.spaces, client.fidgets, client.storage, client.auth, client.realtime]
    for area in areas:
        assert "Methods" not in f"{area!r} {type(area).__mro__}"
        for name in (name for name in dir(type(area)) if not name.startswith("_")):
            assert "Methods" not in getattr(getattr(type(area), name), "__qualname__", "")
    with pytest.raises(TypeError, match=r"^Spaces.create_space\(\) missing 1 required positional argument"):
        client.spaces.create_space()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Storage.stat\(\) got an unexpected keyword argument"):
        client.storage.stat("assets", "a", colour=1)  # type: ignore[call-arg]


def test_a_repr_shows_all_fields_and_cuts_long_json(client: townsquare.Client) -> None:
    service = client.as_service()
    space = service.spaces.create_space("Chess", description="d" * 1_000)
    fidget = service.fidgets.create_fidget(space.id, "clock", config={"text": "x" * 1_000})
    for record in (space, fidget):
        shown = repr(record)
        assert all(f"{name}=" in shown for name in record.to_dict()) and "…" in shown and len(shown) < 1_000
