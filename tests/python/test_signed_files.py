"""Signed files: the functions and `upload(verify=True)` (UPSTREAM 3)."""

from __future__ import annotations

import json
from collections import UserDict
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import townsquare
from townsquare import Client, decrypt_file, encrypt_file, sign_file, verify_file

KEY = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
PUBLIC_KEY = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664"
OTHER_KEY = "02" * 32
TIME = datetime(2024, 1, 15, 10, 30, tzinfo=timezone.utc)
SIGNATURE = (
    "7872a955678d07afa6754d61262dbd37c53bd2488d70d69bc8158166ca2533ae"
    "894816d89276d872ee05bd11c7cbbcff204cc5cea5a08318652c04eac9e5ad04"
)


def test_a_signed_file_equals_the_published_vector() -> None:
    signed = sign_file('{"a":1}', KEY, timestamp=TIME)
    assert signed == {
        "publicKey": PUBLIC_KEY,
        "fileData": '{"a":1}',
        "fileType": "json",
        "isEncrypted": False,
        "timestamp": "2024-01-15T10:30:00.000Z",
        "signature": SIGNATURE,
    }
    assert verify_file(signed) and verify_file(UserDict(signed))


def test_options_become_members_and_the_time_defaults_to_now() -> None:
    signed = sign_file("x", KEY, file_type="text", file_name="Café 🏠", timestamp=TIME.astimezone(timezone(timedelta(hours=5))))
    assert (signed["fileType"], signed["fileName"], signed["timestamp"]) == ("text", "Café 🏠", "2024-01-15T10:30:00.000Z")
    now = datetime.fromisoformat(sign_file("x", KEY)["timestamp"].replace("Z", "+00:00"))
    assert abs(datetime.now(timezone.utc) - now) < timedelta(minutes=5)


@pytest.mark.parametrize("member", ["publicKey", "fileData", "fileType", "isEncrypted", "timestamp", "signature"])
def test_a_changed_or_missing_member_does_not_verify(member: str) -> None:
    signed = sign_file('{"a":1}', KEY)
    text = str(signed[member])
    changed: dict[str, Any] = {**signed, member: ("1" if text[0] == "0" else "0") + text[1:]}
    assert not verify_file(changed) and not verify_file({**signed, "more": 1})
    del changed[member]
    assert not verify_file(changed)


def test_other_mappings_do_not_verify() -> None:
    for other in ({}, {"publicKey": "nounspace", "fileData": "{}", "signature": "not applicable"}, {"publicKey": 1, "x": float("nan")}):
        assert verify_file(other) is False
    with pytest.raises(TypeError):
        verify_file(b"{}")  # type: ignore[arg-type]


def test_encrypted_data_comes_back_and_needs_its_key() -> None:
    for data in (b"", b"\x00\xff" * 5_000, "Café".encode()):
        signed = encrypt_file(data, KEY, file_name="homebase", timestamp=TIME)
        assert signed["isEncrypted"] is True and signed["fileName"] == "homebase" and verify_file(signed)
        assert decrypt_file(signed, KEY) == data
        with pytest.raises(townsquare.InvalidInputError):
            decrypt_file(signed, OTHER_KEY)
    assert decrypt_file(encrypt_file(memoryview(bytearray(b"abc")), KEY), KEY) == b"abc"
    assert encrypt_file(b"x", KEY, timestamp=TIME) != encrypt_file(b"x", KEY, timestamp=TIME)


def test_data_that_was_changed_is_not_decrypted() -> None:
    signed = encrypt_file(b"secret", KEY)
    for other in ({**signed, "fileName": "x"}, {**signed, "fileData": "00" * 60}, sign_file("plain", KEY), {}):
        with pytest.raises(townsquare.InvalidInputError) as caught:
            decrypt_file(other, KEY)
        assert KEY not in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "01" * 31, "zz" * 32, "01" * 33])
def test_a_malformed_key_is_refused_and_not_shown(key: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: sign_file("x", key),
        lambda: encrypt_file(b"x", key),
        lambda: decrypt_file(encrypt_file(b"x", KEY), key),
    ]
    for call in calls:
        with pytest.raises(townsquare.InvalidInputError) as caught:
            call()
        assert not key or key not in str(caught.value)


def test_arguments_of_a_wrong_type_raise_type_error() -> None:
    wrong: Any = 5
    for call in (
        lambda: sign_file(wrong, KEY),
        lambda: sign_file("x", wrong),
        lambda: sign_file("x", KEY, timestamp=datetime(2024, 1, 15)),
        lambda: encrypt_file(wrong, KEY),
        lambda: decrypt_file(wrong, KEY),
    ):
        with pytest.raises(TypeError):
            call()


def test_upload_with_verify_accepts_only_files_that_verify(service: Client) -> None:
    signed = sign_file('{"a":1}', KEY)
    good = json.dumps(signed).encode()
    service.storage.upload("spaces", "town/tabs/Home", good, verify=True)
    for bad in (json.dumps({**signed, "fileData": "{}"}).encode(), b"{}", b"no json", b"[]", b"\xff"):
        with pytest.raises(townsquare.InvalidInputError) as caught:
            service.storage.upload("spaces", "town/tabs/Home", bad, verify=True)
        assert caught.value.status == 400
        assert service.storage.download("spaces", "town/tabs/Home") == good
        service.storage.upload("spaces", "town/tabs/Other", bad)
