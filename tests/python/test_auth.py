"""Accounts, sessions, identity keys and secrets (SPEC 5.3, 7, DESIGN 4 and 8)."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import stat
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from conftest import SERVICE_ADVICE, run
from townsquare import AlreadyExistsError, AuthError, Client, InvalidInputError, Session, User, identity_claim

EMAIL, PASSWORD = "ann@town.example", "correct horse"
KEY, OTHER_KEY = "01" * 32, "02" * 32
AUDIENCE = "town.example"


def signed_in(client: Client, email: str = EMAIL, password: str = PASSWORD) -> Session:
    client.auth.sign_up(email, password)
    return client.auth.sign_in(email, password)


def claim_for(client: Client, user_id: UUID, key: str, **timestamp: Any) -> dict[str, Any]:
    """A claim for this client's database."""
    return identity_claim(user_id, key, client.auth.identity_audience(), **timestamp)


def sentence(call: Any) -> tuple[str, str]:
    """The kind and the sentence of the error that `call` raises."""
    with pytest.raises(townsquare.Error) as caught:
        call()
    return caught.value.kind, str(caught.value)


def test_sign_up_creates_a_user_and_no_session(client: Client) -> None:
    user = client.auth.sign_up("  Ann@Town.Example\n", PASSWORD)
    assert type(user) is User and isinstance(user.id, UUID) and user.email == EMAIL
    assert user.created_at == user.updated_at and user.created_at.tzinfo is timezone.utc
    times = f"created_at={user.created_at!r}, updated_at={user.updated_at!r}, email_verified_at=None"
    assert repr(user) == f"User(id={user.id!r}, email='{EMAIL}', {times})"
    assert user == copy.deepcopy(user) and hash(user) == hash(copy.copy(user))
    assert list(user.to_dict()) == ["id", "email", "created_at", "updated_at", "email_verified_at"]
    assert client.auth.get_session() is None
    with pytest.raises(AlreadyExistsError) as caught:
        client.auth.sign_up("ANN@town.example", "another password")
    assert (str(caught.value), caught.value.code) == ("Sign up failed: Record already exists: users.email", "23505")


@pytest.mark.parametrize("email", ["", "ann", "@town.example", "ann@", "a b@town.example", "ann\0@town.example", "\ud800@town.example"])
def test_a_malformed_address_is_an_invalid_input(client: Client, email: str) -> None:
    kind, said = sentence(lambda: client.auth.sign_up(email, PASSWORD))
    assert kind == "invalid_input" and said.startswith("Sign up failed: email ")


@pytest.mark.parametrize("password", ["1234567", "x" * 1025, "\ud800" * 8])
def test_a_malformed_password_is_an_invalid_input_that_does_not_show_it(client: Client, password: str) -> None:
    kind, said = sentence(lambda: client.auth.sign_up(EMAIL, password))
    assert kind == "invalid_input" and said.startswith("Sign up failed: password ") and password not in said


@pytest.mark.parametrize("wrong", [None, 5, b"ann@town.example", ["x"]])
def test_arguments_of_a_wrong_type_are_type_errors(client: Client, wrong: Any) -> None:
    auth = client.auth
    for call in (
        lambda: auth.sign_up(wrong, PASSWORD),
        lambda: auth.sign_up(EMAIL, wrong),
        lambda: auth.sign_in(EMAIL, wrong),
        lambda: auth.set_session(wrong),
        lambda: auth.update_user(current_password=wrong),
        lambda: auth.link_identity(wrong),
        lambda: auth.on_auth_state_change(wrong),
        lambda: client.as_user(wrong),
        lambda: identity_claim(wrong, KEY, AUDIENCE),
        lambda: identity_claim(uuid4(), wrong, AUDIENCE),
        lambda: identity_claim(uuid4(), KEY, wrong),
        lambda: auth.unlink_identity(wrong),
        lambda: auth.recover("token", wrong),
        lambda: auth.verify_email(wrong),
        lambda: auth.find_user(wrong),
        lambda: auth.create_recovery_token(wrong),
        lambda: auth.create_verification_token(wrong),
        lambda: auth.set_password(uuid4(), wrong),
    ):
        with pytest.raises(TypeError):
            call()


def test_a_client_acts_as_the_signed_in_user(client: Client, service: Client) -> None:
    session = signed_in(client)
    assert type(session) is Session and session.user.email == EMAIL
    left = session.expires_at - datetime.now(timezone.utc)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    assert client.auth.get_session() == session
    space = client.spaces.create_space("Harbor")
    assert space.owner_id == session.user.id
    assert client.auth.sign_out() is None  # type: ignore[func-returns-value]
    assert client.auth.get_session() is None
    assert sentence(lambda: client.spaces.get_space(space.id)) == ("not_found", "Get space failed: Record not found")
    assert service.spaces.get_space(space.id) == space
    client.auth.sign_out()


def test_a_wrong_password_and_an_unknown_address_fail_alike(client: Client) -> None:
    client.auth.sign_up(EMAIL, PASSWORD)
    for email, password in ((EMAIL, "wrong password"), ("bob@town.example", PASSWORD), (EMAIL, "")):
        with pytest.raises(AuthError) as caught:
            client.auth.sign_in(email, password)
        assert str(caught.value) == "Sign in failed: Invalid login credentials"
        assert isinstance(caught.value, PermissionError)
        assert (caught.value.kind, caught.value.code, caught.value.operation) == ("unauthorized", None, "sign_in")


def test_an_address_is_rate_limited_after_ten_failures(client: Client) -> None:
    client.auth.sign_up(EMAIL, PASSWORD)
    for email in (EMAIL, "stranger@town.example"):
        for _ in range(10):
            with pytest.raises(AuthError):
                client.auth.sign_in(email, "wrong password")
        with pytest.raises(townsquare.RateLimitedError) as caught:
            client.auth.sign_in(email, PASSWORD)
        error = caught.value
        assert isinstance(error.retry_after, float) and 20 < error.retry_after <= 30
        assert (error.kind, error.is_retryable) == ("rate_limited", True)
        assert str(error).startswith("Sign in failed: Too many failed attempts; try again in ")


def test_refresh_returns_the_session_that_the_handle_has_from_now_on(client: Client) -> None:
    old = signed_in(client)
    new = client.auth.refresh_session()
    assert (new.user, client.auth.get_session()) == (old.user, new)
    assert sentence(lambda: client.as_user(old.access_token)) == ("unauthorized", "Act as user failed: Session has ended")
    third = client.auth.refresh_session(new.refresh_token)
    assert client.auth.get_session() == third
    client.auth.refresh_session(third.refresh_token)
    expected = ("unauthorized", "Refresh session failed: Session has ended")
    assert sentence(lambda: client.auth.refresh_session(new.refresh_token)) == expected
    assert client.auth.get_session() is None
    assert sentence(client.auth.refresh_session) == ("unauthorized", "Refresh session failed: Nobody is signed in")


def test_set_session_restores_a_session_from_its_refresh_token(client: Client, tmp_path: Path) -> None:
    session = signed_in(client)
    with Client.open(tmp_path / "data") as other:
        taken = other.auth.set_session(session.refresh_token)
        assert taken.user == session.user and other.spaces.create_space("mine").owner_id == session.user.id
        expected = ("unauthorized", "Set session failed: Session has ended")
        assert sentence(lambda: other.auth.set_session("tsr_unheard-of")) == expected
        kind, said = sentence(lambda: other.as_service().auth.set_session(taken.refresh_token))
        assert kind == "invalid_input" and said.startswith("Set session failed: This handle has a fixed caller")


def test_as_user_returns_a_handle_for_each_user(client: Client, service: Client) -> None:
    handles = {}
    for number in range(8):
        email = f"user{number}@town.example"
        user = service.auth.sign_up(email, PASSWORD)
        handles[user.id] = client.as_user(service.auth.sign_in(email, PASSWORD).access_token)
    assert service.auth.get_session() is None and client.auth.get_session() is None
    spaces = {owner: handle.spaces.create_space("mine") for owner, handle in handles.items()}
    for owner, handle in handles.items():
        held = handle.auth.get_session()
        assert held is not None and (held.user.id, held.refresh_token) == (owner, "")
        assert [space.id for each in handles for space in handle.spaces.get_user_spaces(each)] == [spaces[owner].id]
    ended = next(iter(handles.values()))
    ended.auth.sign_out()
    expected = ("unauthorized", "Get public spaces failed: Session has ended")
    assert sentence(lambda: ended.spaces.get_public_spaces()) == expected
    assert sum(not handle.closed for handle in handles.values()) == 8


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_a_persisted_session_survives_reopening_until_sign_out(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Client.open(data, persist_session=True) as client:
        session = signed_in(client)
    file = data / "session.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Client.open(data) as client:
        assert client.auth.get_session() is None
    with Client.open(data, persist_session=True) as client:
        assert client.auth.get_session() == session
        assert client.spaces.create_space("mine").owner_id == session.user.id
        client.auth.sign_out()
        assert not file.exists()
    with Client.open(data, persist_session=True) as client:
        assert client.auth.get_session() is None


def test_update_user_returns_the_changed_user(client: Client, service: Client) -> None:
    session = signed_in(client)
    assert client.auth.update_user(current_password=PASSWORD) == session.user
    changed = client.auth.update_user(current_password=PASSWORD, password="another password")
    assert changed.id == session.user.id and changed.updated_at > session.user.updated_at
    moved = client.auth.update_user(current_password="another password", email=" Ann@New.Example ")
    assert moved.email == "ann@new.example"
    assert service.auth.sign_in("ann@new.example", "another password").user == moved


def test_update_user_requires_the_current_password(client: Client, service: Client) -> None:
    update = client.auth.update_user
    assert sentence(lambda: update(current_password=PASSWORD, password="another password")) == (
        "unauthorized", "Update user failed: Nobody is signed in",
    )  # fmt: skip
    signed_in(client)
    service.auth.sign_up("bob@town.example", PASSWORD)
    expected = ("unauthorized", "Update user failed: Invalid login credentials")
    assert sentence(lambda: update(current_password="wrong password", password="another password")) == expected
    assert sentence(lambda: update(current_password="wrong password")) == expected
    taken = ("already_exists", "Update user failed: Record already exists: users.email")
    assert sentence(lambda: update(current_password=PASSWORD, email="bob@town.example")) == taken
    for changes in ({"email": None}, {"password": None}, {"email": "bob"}, {"password": "short"}):
        with pytest.raises(InvalidInputError, match=f"^Update user failed: {next(iter(changes))} is "):
            update(current_password=PASSWORD, **changes)
    with pytest.raises(TypeError):
        update(PASSWORD)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        update(password="another password")  # type: ignore[call-arg]


def test_a_user_is_deleted_by_its_password(client: Client) -> None:
    session = signed_in(client)
    kind, said = sentence(lambda: client.auth.delete_user())
    assert kind == "invalid_input" and said.startswith("Delete user failed: current_password is required")
    refused = ("forbidden", f"Delete user failed: Database error: permission denied for table users: {SERVICE_ADVICE}")
    assert sentence(lambda: client.auth.delete_user(session.user.id)) == refused
    assert sentence(lambda: client.auth.delete_user(uuid4(), current_password=PASSWORD)) == refused
    for call in (
        lambda: client.auth.delete_user(current_password="wrong password"),
        lambda: client.auth.delete_user(session.user.id, current_password="wrong password"),
    ):
        assert sentence(call) == ("unauthorized", "Delete user failed: Invalid login credentials")
    client.auth.delete_user(str(session.user.id), current_password=PASSWORD)
    assert client.auth.get_session() is None


def test_the_service_deletes_any_user(client: Client, service: Client) -> None:
    user = signed_in(client).user
    assert sentence(lambda: Client.open("other").auth.delete_user(user.id)) == (
        "unauthorized", f"Delete user failed: Database error: permission denied for table users: {SERVICE_ADVICE}",
    )  # fmt: skip
    service.auth.delete_user(user.id)
    assert client.auth.get_session() is None
    assert sentence(lambda: service.auth.delete_user(user.id)) == ("not_found", "Delete user failed: Record not found")
    assert sentence(lambda: service.auth.delete_user("x"))[0] == "invalid_input"
    signed_in(client, "bob@town.example")
    client.auth.delete_user(current_password=PASSWORD)
    assert client.auth.get_session() is None


def test_an_identity_claim_names_user_key_audience_and_time() -> None:
    user, made = uuid4(), datetime(2026, 3, 1, 11, 0, tzinfo=timezone(timedelta(hours=1)))
    claim = identity_claim(user, KEY, AUDIENCE, timestamp=made)
    assert sorted(claim) == ["audience", "publicKey", "signature", "timestamp", "userId"]
    assert (claim["userId"], claim["audience"], claim["timestamp"]) == (str(user), AUDIENCE, "2026-03-01T10:00:00.000Z")
    assert (len(claim["publicKey"]), len(claim["signature"])) == (64, 128)
    assert claim == identity_claim(str(user), KEY, AUDIENCE, timestamp=made.astimezone(timezone.utc))
    for key in ("5" * 63, "secret key", ""):
        assert sentence(lambda: identity_claim(user, key, AUDIENCE)) == ("invalid_input", "A private key is 64 hex digits")
    assert sentence(lambda: identity_claim("x", KEY, AUDIENCE))[1] == "user_id is not a UUID: 'x'"
    for wrong in (datetime(2026, 3, 1), 5, "2026-03-01"):
        with pytest.raises(TypeError, match="aware datetime"):
            identity_claim(user, KEY, AUDIENCE, timestamp=wrong)  # type: ignore[arg-type]


def test_a_user_links_a_key_by_an_own_claim(client: Client, service: Client) -> None:
    user = signed_in(client).user
    assert client.auth.link_identity(claim_for(client, user.id, KEY)) is None  # type: ignore[func-returns-value]
    client.auth.link_identity(MappingProxyType(claim_for(client, user.id, KEY)))
    bob = service.auth.sign_up("bob@town.example", PASSWORD)
    other = client.as_user(service.auth.sign_in("bob@town.example", PASSWORD).access_token)
    taken = ("already_exists", "Link identity failed: Record already exists: identities.public_key")
    assert sentence(lambda: other.auth.link_identity(claim_for(client, bob.id, KEY))) == taken
    assert sentence(lambda: other.auth.link_identity(claim_for(client, user.id, OTHER_KEY)))[0] == "unauthorized"
    other.auth.link_identity(claim_for(client, bob.id, OTHER_KEY))


def test_a_forged_old_or_malformed_claim_is_refused(client: Client, service: Client) -> None:
    user = signed_in(client).user
    good, now = claim_for(client, user.id, KEY), datetime.now(timezone.utc)
    stranger = claim_for(client, user.id, OTHER_KEY)
    for bad in (
        {**good, "publicKey": stranger["publicKey"]},
        {**good, "signature": stranger["signature"]},
        {**good, "timestamp": now.isoformat()},
        claim_for(client, uuid4(), KEY),
        claim_for(client, user.id, KEY, timestamp=now - timedelta(minutes=6)),
        claim_for(client, user.id, KEY, timestamp=now + timedelta(minutes=2)),
        identity_claim(user.id, KEY, "elsewhere"),
    ):
        kind, said = sentence(lambda: client.auth.link_identity(bad))
        assert kind == "unauthorized" and said.startswith("Link identity failed: The identity claim"), bad
    signed_file = {
        "publicKey": "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664", "fileData": '{"a":1}',
        "fileType": "json", "isEncrypted": False, "timestamp": "2024-01-15T10:30:00.000Z",
        "signature": "7872a955678d07afa6754d61262dbd37c53bd2488d70d69bc8158166ca2533ae"
        "894816d89276d872ee05bd11c7cbbcff204cc5cea5a08318652c04eac9e5ad04",
    }  # fmt: skip
    for malformed in (signed_file, {}, {**good, "more": 1}, {**good, "userId": 5}, {**good, "userId": float("nan")},
                      {name: value for name, value in good.items() if name != "audience"}):  # fmt: skip
        assert sentence(lambda: client.auth.link_identity(malformed))[0] == "invalid_input", malformed
    client.auth.sign_out()
    refused = ("unauthorized", "Link identity failed: Nobody is signed in")
    assert sentence(lambda: client.auth.link_identity(good)) == refused
    assert sentence(lambda: service.auth.link_identity(good)) == refused


def test_identities_are_listed_and_unlinked(client: Client, service: Client) -> None:
    assert sentence(client.auth.identities) == ("unauthorized", "List identities failed: Nobody is signed in")
    assert sentence(lambda: client.auth.unlink_identity(KEY)) == ("unauthorized", "Unlink identity failed: Nobody is signed in")
    user = signed_in(client).user
    assert client.auth.identities() == []
    claims = [claim_for(client, user.id, key) for key in (KEY, OTHER_KEY)]
    for claim in claims:
        client.auth.link_identity(claim)
    keys = [claim["publicKey"] for claim in claims]
    assert client.auth.identities() == keys
    assert client.auth.unlink_identity(keys[0]) is None  # type: ignore[func-returns-value]
    assert client.auth.identities() == keys[1:]
    for missing in (keys[0], "", "x'; DROP TABLE users; --", "\0"):
        assert sentence(lambda: client.auth.unlink_identity(missing)) == ("not_found", "Unlink identity failed: Record not found")


def test_identity_audience_is_an_option_and_by_default_an_id_of_the_database(client: Client, tmp_path: Path) -> None:
    assert client.auth.identity_audience() == client.as_service().auth.identity_audience() != ""
    with Client.open(tmp_path / "other", identity_audience=AUDIENCE) as other:
        assert other.auth.identity_audience() == AUDIENCE
        user = signed_in(other).user
        other.auth.link_identity(identity_claim(user.id, KEY, AUDIENCE))
        refused = ("unauthorized", "Link identity failed: The identity claim is for another audience")
        assert sentence(lambda: other.auth.link_identity(claim_for(client, user.id, OTHER_KEY))) == refused


def test_sign_out_ends_the_sessions_of_its_scope(client: Client, service: Client) -> None:
    assert client.auth.sign_out("others") is None  # type: ignore[func-returns-value]
    signed_in(client)
    first, second = (client.as_user(service.auth.sign_in(EMAIL, PASSWORD).access_token) for _ in range(2))
    first.auth.sign_out("local")
    assert second.auth.get_session() is not None
    client.auth.sign_out(scope="others")
    assert second.auth.get_session() is None and client.auth.get_session() is not None
    third = client.as_user(service.auth.sign_in(EMAIL, PASSWORD).access_token)
    client.auth.sign_out("global")
    assert third.auth.get_session() is None and client.auth.get_session() is None
    kind, said = sentence(lambda: client.auth.sign_out("everywhere"))  # type: ignore[arg-type]
    assert (kind, said) == ("invalid_input", "Sign out failed: scope is 'local', 'others' or 'global'")


def test_a_known_client_signs_in_while_its_address_is_locked(client: Client, service: Client) -> None:
    service.auth.sign_up(EMAIL, PASSWORD)
    session = client.auth.create_session(EMAIL, PASSWORD, client_key="phone")
    assert session.user.email == EMAIL and client.auth.get_session() is None
    for guess in range(10):
        with pytest.raises(AuthError):
            client.auth.create_session(EMAIL, "wrong password", client_key=f"2001:db8::{guess}")
    for create_session in (client.auth.create_session, service.auth.create_session):
        with pytest.raises(townsquare.RateLimitedError):
            create_session(EMAIL, PASSWORD)
    with pytest.raises(townsquare.RateLimitedError):
        client.auth.sign_in(EMAIL, PASSWORD, client_key="new phone")
    assert client.auth.sign_in(EMAIL, PASSWORD, client_key="phone").user.email == EMAIL


def test_a_flood_of_sign_ins_does_not_refuse_a_known_client(data_dir: Path) -> None:
    async def flood() -> None:
        async with await townsquare.AsyncClient.open(data_dir) as client:
            for email in (EMAIL, "mallory@town.example"):
                await client.auth.sign_up(email, PASSWORD)
            phone = await client.with_client_key("192.0.2.1")
            await phone.auth.create_session(EMAIL, PASSWORD)
            peers = [await client.with_client_key(f"client {number}") for number in range(300)]
            calls = [asyncio.ensure_future(peer.auth.create_session("mallory@town.example", PASSWORD)) for peer in peers]
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
            assert any(isinstance(call.exception(), townsquare.RateLimitedError) for call in done)
            signing_in = asyncio.ensure_future(phone.auth.create_session(EMAIL, PASSWORD))
            await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            assert (await signing_in).user.email == EMAIL

    asyncio.run(flood())


def test_a_client_has_a_limited_number_of_streams(client: Client, service: Client) -> None:
    service.realtime.start()
    peer = client.with_client_key("192.0.2.1")
    streams = [peer.realtime.handle_events("/events?table=spaces") for _ in range(64)]
    assert {stream.status for stream in streams} == {200}
    refused = peer.realtime.handle_events("/events?table=spaces")
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert client.with_client_key("192.0.2.2").realtime.handle_events("/events?table=spaces").status == 200
    streams.pop().close()
    assert peer.realtime.handle_events("/events?table=spaces").status == 200


def test_a_recovery_token_sets_a_password_once(client: Client, service: Client) -> None:
    user = signed_in(client).user
    token = service.auth.create_recovery_token(" ANN@town.example")
    assert token is not None and token.startswith("tsrecover_")
    assert service.auth.create_recovery_token("nobody@town.example") is None
    assert sentence(lambda: client.auth.recover(token, "short"))[0] == "invalid_input"
    other = client.as_user(service.auth.sign_in(EMAIL, PASSWORD).access_token)
    session = client.auth.recover(token, "another password")
    assert session.user.id == user.id and client.auth.get_session() == session
    assert other.auth.get_session() is None
    refused = ("unauthorized", "Recover failed: The recovery token is not valid")
    for used in (token, "", "tsrecover_", "x' OR 1=1 --", "\0"):
        assert sentence(lambda: client.auth.recover(used, "another password")) == refused
    assert sentence(lambda: service.auth.sign_in(EMAIL, PASSWORD))[0] == "unauthorized"


def test_a_verification_token_verifies_an_address_once(client: Client, service: Client) -> None:
    user = signed_in(client).user
    assert user.email_verified_at is None
    token = service.auth.create_verification_token(user.id)
    verified = client.auth.verify_email(token).email_verified_at
    assert verified is not None and verified.tzinfo is timezone.utc
    held = client.auth.get_session()
    assert held is not None and held.user.email_verified_at == verified
    refused = ("unauthorized", "Verify email failed: The verification token is not valid")
    assert sentence(lambda: client.auth.verify_email(token)) == refused
    assert sentence(lambda: service.auth.create_verification_token(uuid4()))[0] == "not_found"
    assert client.auth.update_user(current_password=PASSWORD, email="ann@new.example").email_verified_at is None


def test_only_the_service_finds_users_sets_passwords_and_makes_tokens(client: Client, service: Client) -> None:
    user = client.auth.sign_up(EMAIL, PASSWORD)
    calls: dict[str, Callable[[townsquare.Auth], Any]] = {
        "Find user": lambda auth: auth.find_user(EMAIL),
        "Set password": lambda auth: auth.set_password(user.id, "another password"),
        "Create recovery token": lambda auth: auth.create_recovery_token(EMAIL),
        "Create verification token": lambda auth: auth.create_verification_token(user.id),
        "Import credentials": lambda auth: auth.import_credentials([]),
    }
    for words, call in calls.items():
        expected = f"{words} failed: Database error: permission denied for table users: {SERVICE_ADVICE}"
        assert sentence(lambda: call(client.auth)) == ("unauthorized", expected)
    client.auth.sign_in(EMAIL, PASSWORD)
    for words, call in calls.items():
        assert sentence(lambda: call(client.auth))[0] == "forbidden", words
    assert service.auth.find_user("ANN@town.example ") == user
    assert service.auth.find_user("nobody@town.example") is None and service.auth.find_user("x' OR 1=1") is None
    service.auth.set_password(str(user.id), "another password")
    assert client.auth.get_session() is None
    assert service.auth.sign_in(EMAIL, "another password").user.id == user.id
    assert sentence(lambda: service.auth.set_password(uuid4(), "another password"))[0] == "not_found"


def test_a_new_password_replaces_the_tokens_of_the_session(client: Client, service: Client) -> None:
    old = signed_in(client)
    client.auth.update_user(current_password=PASSWORD, password="another password")
    new = client.auth.get_session()
    assert new is not None and {old.access_token, old.refresh_token}.isdisjoint({new.access_token, new.refresh_token})
    assert sentence(lambda: client.as_user(old.access_token))[0] == "unauthorized"
    assert client.spaces.create_space("mine").owner_id == old.user.id


def test_sign_up_limit_counts_accounts_per_hour(tmp_path: Path) -> None:
    with Client.open(tmp_path / "limited", sign_up_limit=2) as client:
        client.auth.sign_up("a@town.example", PASSWORD)
        client.auth.sign_up("b@town.example", PASSWORD)
        with pytest.raises(townsquare.RateLimitedError, match="^Sign up failed: Too many sign-ups; try again in ") as caught:
            client.auth.sign_up("c@town.example", PASSWORD)
        assert 1700 < caught.value.retry_after <= 1800


def test_passwords_keys_and_tokens_are_never_shown(client: Client, service: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret, key = "swordfish-marked", "abcdef01" * 8
    user = client.auth.sign_up(EMAIL, secret)
    session = client.auth.sign_in(EMAIL, secret)
    as_user = client.as_user(session.access_token)
    renewed = client.auth.refresh_session()
    tokens = [token for each in (session, renewed) for token in (each.access_token, each.refresh_token)]
    assert all(len(token) > 60 for token in tokens)
    shown = [f"{each!r} {each}" for each in (user, session, renewed, client, as_user, client.auth, client.auth.get_session())]

    def log_and_fail(event: str, session: Any) -> None:
        raise RuntimeError(f"{event} {session}")

    subscription = client.auth.on_auth_state_change(log_and_fail)
    failing: list[Any] = [
        lambda: client.auth.sign_up(EMAIL, secret),
        lambda: client.auth.sign_in("bob@town.example", secret),
        lambda: client.auth.sign_up("bob", secret),
        lambda: client.auth.update_user(current_password="x" + secret, password=secret),
        lambda: client.auth.update_user(current_password=secret, email="no address"),
        lambda: client.auth.delete_user(current_password="x" + secret),
        lambda: client.as_user(session.access_token),
        lambda: as_user.spaces.get_public_spaces(),
        lambda: client.auth.set_session(renewed.access_token),
        lambda: service.auth.refresh_session(session.access_token),
        lambda: identity_claim(user.id, key + "z", AUDIENCE),
        lambda: client.auth.link_identity({"publicKey": secret}),
    ]
    for call in failing:
        with pytest.raises(townsquare.Error) as caught:
            call()
        error = caught.value
        shown += [repr(error), str(error), repr(error.args), repr(vars(error))]
        shown += ["".join(traceback.TracebackException.from_exception(error).format())]
    subscription.unsubscribe()
    shown += [record.getMessage() + str(record.exc_info) + str(record.exc_text) for record in caplog.records] + [caplog.text]
    for text in shown:
        assert secret not in text and key not in text
        assert not any(token in text for token in tokens)
    assert session.to_dict()["access_token"] == session.access_token
    assert session.to_dict()["user"] == user.to_dict()


def test_sessions_are_records(client: Client) -> None:
    session = signed_in(client)
    shown = f"access_token=<secret>, refresh_token=<secret>, expires_at={session.expires_at!r}, user={session.user!r}"
    assert repr(session) == f"Session({shown})"
    assert session == copy.copy(session) and hash(session) == hash(copy.deepcopy(session))
    assert session != client.auth.refresh_session()
    with pytest.raises(AttributeError):
        session.access_token = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        Session()  # type: ignore[call-arg]


def test_a_closed_client_refuses_sign_in(client: Client) -> None:
    session = signed_in(client)
    client.close()
    for call in (
        lambda: client.auth.sign_in(EMAIL, PASSWORD),
        lambda: client.auth.sign_up("bob@town.example", PASSWORD),
        lambda: client.auth.get_session(),
        lambda: client.auth.sign_out(),
        lambda: client.as_user(session.access_token),
        lambda: client.auth.on_auth_state_change(print),
    ):
        assert sentence(call)[0] == "closed"


def test_async_methods_behave_like_blocking_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with await townsquare.AsyncClient.open(tmp_path / "data", persist_session=True) as client:
            user = await client.auth.sign_up(EMAIL, PASSWORD)
            wrong = client.auth.sign_in(EMAIL, "wrong password")
            with pytest.raises(AuthError, match="^Sign in failed: Invalid login credentials$"):
                await wrong
            session = await client.auth.sign_in(EMAIL, PASSWORD)
            handle = await client.as_user(session.access_token)
            assert type(handle) is townsquare.AsyncClient and type(handle.auth) is townsquare.AsyncAuth
            assert (await handle.spaces.create_space("mine")).owner_id == user.id
            assert await client.auth.get_session() == session
            audience = await client.auth.identity_audience()
            await client.auth.link_identity(identity_claim(user.id, KEY, audience))
            changed = await client.auth.update_user(current_password=PASSWORD, password="another password")
            session = await client.auth.refresh_session()
            assert session.user == changed
            service = await client.as_service()
            session = await service.auth.refresh_session(session.refresh_token)
            session = await client.auth.set_session(session.refresh_token)
            assert (await client.auth.get_session()) == session
            await client.auth.sign_out()
            assert await client.auth.get_session() is None
            await service.auth.delete_user(user.id)
            gone = client.auth.sign_in(EMAIL, "another password")
            with pytest.raises(AuthError):
                await gone

    run(main())


def test_a_handle_with_an_access_token_alone_cannot_refresh(client: Client) -> None:
    client.auth.sign_up("ann@town.example", "correct horse")
    session = client.auth.create_session("ann@town.example", "correct horse")
    with client.as_user(session.access_token) as user:
        with pytest.raises(AuthError, match="knows only the access token"):
            user.auth.refresh_session()
        user.spaces.create_space("Harbor")
