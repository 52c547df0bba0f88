"""The sessions of a user, as the service lists and ends them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any, Callable
from uuid import uuid4

import pytest
from conftest import run
from townsquare import AsyncClient, AuthError, Client, InvalidInputError, NotFoundError, Session, SessionInfo

EMAIL, PASSWORD = "ann@town.example", "correct horse"


def refused(client: Client, session: Session) -> bool:
    """Whether the library refuses a session's access token."""
    try:
        client.as_user(session.access_token).close()
    except AuthError:
        return True
    return False


def test_the_service_lists_the_sessions_of_a_user(service: Client) -> None:
    user = service.auth.sign_up(EMAIL, PASSWORD)
    assert service.auth.sessions_of(user.id) == service.auth.sessions_of(uuid4()) == []
    service.auth.create_session(EMAIL, PASSWORD)
    (first,) = service.auth.sessions_of(user.id)
    session = service.auth.create_session(EMAIL, PASSWORD)
    sessions = service.auth.sessions_of(str(user.id))
    assert len(sessions) == 2 and sessions[1] == first and type(first) is SessionInfo
    latest = sessions[0]
    assert list(latest.to_dict()) == ["id", "created_at", "refreshed_at", "expires_at"]
    assert first.created_at <= latest.created_at <= datetime.now(timezone.utc)
    assert abs(latest.refreshed_at - latest.created_at) < timedelta(seconds=1)
    assert latest.expires_at > session.expires_at
    text = repr(sessions) + latest.to_json()
    assert session.access_token not in text and session.refresh_token not in text


def test_the_service_ends_one_session_and_all(service: Client) -> None:
    user, other = service.auth.sign_up(EMAIL, PASSWORD), service.auth.sign_up("bob@town.example", PASSWORD)
    first = service.auth.create_session(EMAIL, PASSWORD)
    latest, third = service.auth.create_session(EMAIL, PASSWORD), service.auth.create_session("bob@town.example", PASSWORD)
    ended = service.auth.sessions_of(user.id)[0]
    for user_id, session_id in ((other.id, ended.id), (user.id, uuid4())):
        with pytest.raises(NotFoundError, match="^End session failed: Record not found"):
            service.auth.end_session(user_id, session_id)
    assert not refused(service, latest)
    assert service.auth.end_session(user.id, str(ended.id)) is None  # type: ignore[func-returns-value]
    assert refused(service, latest) and not refused(service, first)
    with pytest.raises(NotFoundError):
        service.auth.end_session(user.id, ended.id)
    service.auth.create_session(EMAIL, PASSWORD)
    assert service.auth.end_sessions(user.id) == 2
    assert service.auth.end_sessions(user.id) == service.auth.end_sessions(uuid4()) == 0
    assert service.auth.sessions_of(user.id) == []
    assert refused(service, first) and not refused(service, third)


def test_other_callers_and_wrong_ids_are_refused(client: Client, service: Client) -> None:
    user = client.auth.sign_up(EMAIL, PASSWORD)
    client.auth.sign_up("bob@town.example", PASSWORD)
    session = client.auth.sign_in(EMAIL, PASSWORD)
    stranger = client.as_user(service.auth.create_session("bob@town.example", PASSWORD).access_token)
    known = service.auth.sessions_of(user.id)[0].id
    for other, kind in ((client, "forbidden"), (stranger, "forbidden"), (client.as_anonymous(), "unauthorized")):
        calls: list[tuple[str, Callable[[], Any]]] = [
            ("List sessions", lambda: other.auth.sessions_of(user.id)),
            ("End session", lambda: other.auth.end_session(user.id, known)),
            ("End sessions", lambda: other.auth.end_sessions(user.id)),
        ]
        for name, call in calls:
            with pytest.raises(AuthError, match=f"^{name} failed: .*permission denied for table users") as denied:
                call()
            assert denied.value.kind == kind
    assert not refused(client, session)
    for wrong in (service.auth.sessions_of, service.auth.end_sessions):
        with pytest.raises(InvalidInputError, match="user_id is not a UUID"):
            wrong("ann")
        with pytest.raises(TypeError, match="user_id"):
            wrong(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="session_id is not a UUID"):
        service.auth.end_session(user.id, "first")


def test_async_sessions_of_a_user() -> None:
    async def body() -> None:
        async with AsyncClient.open(":memory:") as client:
            service = await client.as_service()
            user = await service.auth.sign_up(EMAIL, PASSWORD)
            await client.auth.sign_in(EMAIL, PASSWORD)
            await service.auth.create_session(EMAIL, PASSWORD)
            latest, first = await service.auth.sessions_of(user.id)
            await service.auth.end_session(user.id, latest.id)
            assert await service.auth.sessions_of(user.id) == [first]
            with pytest.raises(AuthError):
                await client.auth.end_sessions(user.id)
            assert await service.auth.end_sessions(user.id) == 1
            assert await client.auth.get_session() is None

    run(body())
