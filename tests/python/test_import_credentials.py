"""Passwords that another system hashed: `import_credentials` (DESIGN 3a)."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import townsquare
from conftest import add_user, run
from townsquare import AsyncClient, AuthError, Client, ImportReport, InvalidInputError, ReferenceMissingError, TooLargeError

EMAIL, PASSWORD = "ann@town.example", "correct horse"
BCRYPT = "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe"
"""The hash of `a`, from jBCrypt's tests."""
ARGON2 = "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc"
"""The hash of `password`, from the tests of the reference implementation."""


def test_imported_users_sign_in_with_their_passwords(client: Client, service: Client, data_dir: Path) -> None:
    ann, bob = add_user(data_dir, "Ann@Town.example"), add_user(data_dir, "bob@town.example")
    rows: list[dict[str, Any]] = [
        {"user_id": ann, "password_hash": BCRYPT},
        {"email": " BOB@town.example", "password_hash": ARGON2},
    ]
    report = service.auth.import_credentials(row for row in rows)
    assert (report.imported, report.unchanged) == (2, 0) and type(report) is ImportReport
    assert repr(report) == "ImportReport(imported=2, unchanged=0)" and report.to_dict() == {"imported": 2, "unchanged": 0}
    assert report == copy.copy(report) and hash(report) == hash(copy.copy(report))
    with pytest.raises(AuthError):
        client.auth.sign_in(EMAIL, "b")
    for _ in range(2):
        assert client.auth.sign_in(EMAIL, "a").user.id == ann
        assert client.auth.sign_in("bob@town.example", "password").user.id == bob
    again = service.auth.import_credentials([{"user_id": str(ann), "email": None, "password_hash": BCRYPT}])
    assert (again.imported, again.unchanged) == (0, 1)
    assert service.auth.import_credentials([]).imported == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"password_hash": BCRYPT}, "rows[1].user_id or email is required"),
        ({"email": "bob@town.example"}, "rows[1].password_hash is required"),
        ({"email": EMAIL, "user_id": uuid4(), "password_hash": BCRYPT}, "rows[1].user_id and email are given; one of them"),
        ({"email": "bob", "password_hash": BCRYPT}, "rows[1].email is not an e-mail address"),
        ({"email": "bob@town.example", "password_hash": "marked" + BCRYPT}, "rows[1].password_hash is neither a bcrypt hash"),
        ({"email": "bob@town.example", "password_hash": "marked\ud800"}, "rows[1].password_hash has half a surrogate pair"),
        ({"user_id": "marked" + BCRYPT, "password_hash": BCRYPT}, "rows[1].user_id is not a UUID"),
        ({"email": EMAIL, "password_hash": BCRYPT}, "rows[0] and rows[1] name the same user"),
        ({"email": EMAIL, "password_hash": BCRYPT, "salt": "marked"}, "rows[1] has unknown keys: 'salt'"),
    ],
)
def test_a_row_that_is_refused_is_named_and_imports_nothing(service: Client, data_dir: Path, row: Any, said: str) -> None:
    add_user(data_dir, EMAIL)
    rows = [{"email": EMAIL, "password_hash": BCRYPT}, row]
    with pytest.raises(InvalidInputError) as caught:
        service.auth.import_credentials(rows)
    assert str(caught.value).startswith(f"Import credentials failed: {said}") and caught.value.row == 1
    assert "marked" not in str(caught.value) and BCRYPT not in str(caught.value)
    with pytest.raises(AuthError):
        service.auth.sign_in(EMAIL, "a")


def test_an_unknown_user_imports_nothing(service: Client, data_dir: Path) -> None:
    add_user(data_dir, EMAIL)
    strangers: list[dict[str, Any]] = [{"user_id": uuid4()}, {"email": "nobody@town.example"}]
    for unknown in strangers:
        with pytest.raises(ReferenceMissingError) as caught:
            service.auth.import_credentials([{"email": EMAIL, "password_hash": BCRYPT}, {**unknown, "password_hash": BCRYPT}])
        assert (str(caught.value), caught.value.code) == ("Import credentials failed: Referenced record not found: users", "23503")
        assert caught.value.row == 1
    with pytest.raises(AuthError):
        service.auth.sign_in(EMAIL, "a")


def test_values_of_a_wrong_type_are_type_errors(service: Client) -> None:
    wrong: list[Any] = [None, 5, "rows", {"email": EMAIL}, [5], [EMAIL], [{"email": 5}], [{"email": EMAIL, "password_hash": b"x"}]]
    for rows in wrong:
        with pytest.raises(TypeError):
            service.auth.import_credentials(rows)


def test_callers_other_than_the_service_are_refused(client: Client, service: Client) -> None:
    rows = [{"email": EMAIL, "password_hash": BCRYPT}]
    client.auth.sign_up(EMAIL, PASSWORD)
    with pytest.raises(AuthError) as caught:
        client.auth.import_credentials(rows)
    assert caught.value.kind == "unauthorized"
    user = client.as_user(service.auth.sign_in(EMAIL, PASSWORD).access_token)
    for _ in range(2):
        with pytest.raises(AuthError) as caught:
            user.auth.import_credentials(rows)
        assert caught.value.kind == "forbidden"
        user.auth.sign_out()


def test_the_number_of_rows_is_limited(tmp_path: Path) -> None:
    with Client.open(tmp_path / "limited", max_bulk_rows=1) as client, pytest.raises(TooLargeError):
        client.as_service().auth.import_credentials([{"email": EMAIL, "password_hash": BCRYPT}] * 2)


def test_the_async_client_imports(data_dir: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(data_dir, catalog_api_key="") as client:
            add_user(data_dir, EMAIL)
            rows = [{"email": EMAIL, "password_hash": BCRYPT}]
            with pytest.raises(AuthError):
                await client.auth.import_credentials(rows)
            service = await client.as_service()
            assert (await service.auth.import_credentials(rows)).imported == 1
            assert (await client.auth.sign_in(EMAIL, "a")).user.email == EMAIL
            with pytest.raises(InvalidInputError):
                await service.auth.import_credentials([{}])

    run(main())
    assert townsquare.ImportReport is ImportReport
