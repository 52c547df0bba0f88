"""Auth event listeners: order of events, unsubscribe, threads, logging, fork and exit (SPEC 5.3, 6.4)."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import queue
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import ENABLE_CTRL_C, run, run_python, wait_until
from townsquare import AsyncClient, AuthError, Client, ClosedError, Session, Subscription

EMAIL, PASSWORD = "ann@town.example", "correct horse"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


class Recorder:
    """A listener that queues its events."""

    def __init__(self) -> None:
        self.queue: queue.Queue[tuple[str, Optional[Session]]] = queue.Queue()

    def __call__(self, event: str, session: Optional[Session]) -> None:
        self.queue.put((event, session))

    def next(self) -> tuple[str, Optional[Session]]:
        return self.queue.get(timeout=20)

    def names(self, count: int) -> list[str]:
        return [self.next()[0] for _ in range(count)]


def test_events_arrive_in_order_with_their_session(client: Client) -> None:
    heard = Recorder()
    subscription = client.auth.on_auth_state_change(heard)
    assert type(subscription) is Subscription and repr(subscription) == "<townsquare.Subscription>"
    assert heard.next() == ("INITIAL_SESSION", None)
    client.auth.sign_up(EMAIL, PASSWORD)
    session = client.auth.sign_in(EMAIL, PASSWORD)
    assert heard.next() == ("SIGNED_IN", session)
    renewed = client.auth.refresh_session()
    assert heard.next() == ("TOKEN_REFRESHED", renewed)
    user = client.auth.update_user(current_password=PASSWORD, password="another password")
    event, updated = heard.next()
    assert event == "USER_UPDATED" and updated is not None and updated.user == user
    client.auth.sign_out()
    assert heard.next() == ("SIGNED_OUT", None)
    client.auth.sign_out()
    late = Recorder()
    client.auth.on_auth_state_change(late)
    assert late.next() == ("INITIAL_SESSION", None)
    assert heard.queue.empty(), "a second sign_out sends no event"


def test_the_initial_event_has_the_current_session(client: Client) -> None:
    client.auth.sign_up(EMAIL, PASSWORD)
    session = client.auth.sign_in(EMAIL, PASSWORD)
    heard = Recorder()
    client.auth.on_auth_state_change(heard)
    assert heard.next() == ("INITIAL_SESSION", session)


def test_a_session_that_ends_elsewhere_is_told_once(client: Client) -> None:
    user = client.auth.sign_up(EMAIL, PASSWORD)
    session = client.auth.sign_in(EMAIL, PASSWORD)
    heard, of_handle = Recorder(), Recorder()
    client.auth.on_auth_state_change(heard)
    handle = client.as_user(session.access_token)
    handle.auth.on_auth_state_change(of_handle)
    assert heard.names(1) == of_handle.names(1) == ["INITIAL_SESSION"]
    client.as_service().auth.end_sessions(user.id)
    for caller, recorder in [(client, heard), (handle, of_handle)]:
        for _ in range(2):
            with pytest.raises(AuthError, match="Session has ended"):
                caller.spaces.get_public_spaces()
        assert recorder.next() == ("SIGNED_OUT", None)
        assert caller.auth.get_session() is None
    client.spaces.get_public_spaces()
    client.auth.sign_in(EMAIL, PASSWORD)
    assert heard.names(1) == ["SIGNED_IN"], "nothing was told twice"
    assert of_handle.queue.empty()


def test_a_subscription_outlives_its_object_until_unsubscribe(client: Client) -> None:
    client.auth.sign_up(EMAIL, PASSWORD)
    heard, other = Recorder(), Recorder()
    client.auth.on_auth_state_change(other)
    subscription = client.auth.on_auth_state_change(heard)
    gc.collect()
    client.auth.sign_in(EMAIL, PASSWORD)
    assert heard.names(2) == other.names(2) == ["INITIAL_SESSION", "SIGNED_IN"]
    subscription.unsubscribe()
    subscription.unsubscribe()
    client.auth.sign_out()
    assert other.next() == ("SIGNED_OUT", None)
    assert heard.queue.empty()


def test_unsubscribe_waits_for_the_callback_while_other_threads_run(client: Client) -> None:
    inside, release, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(event: str, session: Optional[Session]) -> None:
        inside.set()
        assert release.wait(20)
        ended.set()

    subscription = client.auth.on_auth_state_change(slow)
    assert inside.wait(20)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(subscription.unsubscribe)
        assert not ended.is_set() and not waiting.done()
        release.set()
        waiting.result(20)
        assert ended.is_set()


def test_a_callback_may_unsubscribe_itself(client: Client) -> None:
    heard: list[str] = []
    given: queue.Queue[Subscription] = queue.Queue()

    def once(event: str, session: Optional[Session]) -> None:
        given.get(timeout=20).unsubscribe()
        heard.append(event)

    given.put(client.auth.on_auth_state_change(once))
    other = Recorder()
    client.auth.on_auth_state_change(other)
    client.auth.sign_up(EMAIL, PASSWORD)
    client.auth.sign_in(EMAIL, PASSWORD)
    assert other.names(2) == ["INITIAL_SESSION", "SIGNED_IN"]
    wait_until(lambda: heard)
    assert heard == ["INITIAL_SESSION"]


def test_a_callback_may_unsubscribe_itself_after_it_drops_a_coroutine(client: Client, tmp_path: Path) -> None:
    other = run(AsyncClient.open(tmp_path / "other"))
    given: queue.Queue[Subscription] = queue.Queue()
    unsubscribed = threading.Event()

    def once(event: str, session: Optional[Session]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            coroutine = other.discovery.stats()
            del coroutine  # Nothing awaited it: dropping it attaches to the interpreter again.
        given.get(timeout=20).unsubscribe()
        unsubscribed.set()

    given.put(client.auth.on_auth_state_change(once))
    assert unsubscribed.wait(20)
    run(other.close())


def test_many_concurrent_callbacks_may_call_the_library(client: Client) -> None:
    count = 24
    together, heard = threading.Barrier(count), Recorder()

    def busy(number: int, event: str, session: Optional[Session]) -> None:
        together.wait(20)
        client.auth.sign_up(f"user{number}@town.example", PASSWORD)
        client.spaces.get_public_spaces()
        heard(f"{number}", session)

    for number in range(count):
        client.auth.on_auth_state_change(functools.partial(busy, number))
    assert sorted(heard.names(count), key=int) == [str(number) for number in range(count)]


def test_exceptions_in_callbacks_are_logged_and_the_subscription_goes_on(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    heard = Recorder()

    def broken(event: str, session: Optional[Session]) -> None:
        heard(event, session)
        raise SystemExit(3) if event == "SIGNED_IN" else ZeroDivisionError(event)

    client.auth.on_auth_state_change(broken)
    client.auth.sign_up(EMAIL, PASSWORD)
    client.auth.sign_in(EMAIL, PASSWORD)
    client.auth.sign_out()
    assert heard.names(3) == ["INITIAL_SESSION", "SIGNED_IN", "SIGNED_OUT"]
    wait_until(lambda: len(caplog.records) == 3)
    for record, kind in zip(caplog.records, (ZeroDivisionError, SystemExit, ZeroDivisionError)):
        assert (record.name, record.levelno) == ("townsquare", logging.ERROR)
        assert record.getMessage() == "A callback of on_auth_state_change raised"
        assert record.exc_info is not None and record.exc_info[0] is kind and record.exc_info[2] is not None
    assert "in broken" in caplog.text


def test_an_exception_that_cannot_be_logged_goes_to_unraisablehook(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    heard = Recorder()

    def broken(event: str, session: Optional[Session]) -> None:
        heard(event, session)
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(logging, "getLogger", lambda name: 1 / 0)
        client.auth.on_auth_state_change(broken)
        wait_until(lambda: unraisable)
    client.auth.sign_up(EMAIL, PASSWORD)
    client.auth.sign_in(EMAIL, PASSWORD)
    assert heard.names(2) == ["INITIAL_SESSION", "SIGNED_IN"]


def test_a_coroutine_function_is_refused(client: Client) -> None:
    async def callback(event: str, session: Optional[Session]) -> None: ...

    for refused in (callback, functools.partial(callback)):
        with pytest.raises(TypeError, match="^callback: expected a plain function, not a coroutine function"):
            client.auth.on_auth_state_change(refused)
    with pytest.raises(TypeError, match="expected a function, not NoneType"):
        client.auth.on_auth_state_change(None)  # type: ignore[arg-type]


def test_a_callback_may_close_the_client(tmp_path: Path) -> None:
    client, closed = Client.open(tmp_path / "data"), threading.Event()

    def close(event: str, session: Optional[Session]) -> None:
        client.close()
        closed.set()

    client.auth.on_auth_state_change(close)
    # A close that waited for its own callback would give up after ten seconds.
    assert closed.wait(9.5) and client.closed
    client.close()


def test_close_releases_callbacks(tmp_path: Path) -> None:
    heard = Recorder()
    reference = weakref.ref(heard)
    with Client.open(tmp_path / "data") as client:
        client.auth.on_auth_state_change(heard)
        heard.next()
        del heard
        gc.collect()
        assert reference() is not None

    def is_released() -> bool:
        client.closed  # noqa: B018 - any call frees the objects that other threads have dropped
        gc.collect()
        return reference() is None

    wait_until(is_released)


def test_a_plain_function_can_hand_events_to_the_event_loop(tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            events: asyncio.Queue[str] = asyncio.Queue()
            loop, threads = asyncio.get_running_loop(), set[int]()

            def hand_over(event: str, session: Optional[Session]) -> None:
                threads.add(threading.get_ident())
                loop.call_soon_threadsafe(events.put_nowait, event)

            subscription = await client.auth.on_auth_state_change(hand_over)
            assert type(subscription) is Subscription
            await client.auth.sign_up(EMAIL, PASSWORD)
            await client.auth.sign_in(EMAIL, PASSWORD)
            assert [await events.get(), await events.get()] == ["INITIAL_SESSION", "SIGNED_IN"]
            await asyncio.to_thread(subscription.unsubscribe)
            await client.auth.sign_out()
            assert events.empty() and threading.get_ident() not in threads

    run(main())


def test_other_threads_run_during_sign_in(client: Client) -> None:
    client.auth.sign_up(EMAIL, PASSWORD)
    turns, ended = 0, threading.Event()

    def sign_in_again_and_again() -> None:
        for _ in range(5):
            client.auth.sign_in(EMAIL, PASSWORD)
        ended.set()

    thread = threading.Thread(target=sign_in_again_and_again)
    thread.start()
    while not ended.is_set():
        turns += 1
        ended.wait(0.001)
    thread.join()
    assert turns > 5


UNSUBSCRIBING = ENABLE_CTRL_C + """
import signal, sys, threading, townsquare
client, inside, release = townsquare.Client.open(sys.argv[1]), threading.Event(), threading.Event()
def stuck(event, session):
    inside.set()
    release.wait(60)
subscription = client.auth.on_auth_state_change(stuck)
inside.wait(20)
try:
    threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,)).start()
    subscription.unsubscribe()
except KeyboardInterrupt:
    print("interrupted")
release.set()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no POSIX signals")
def test_ctrl_c_interrupts_unsubscribe(tmp_path: Path) -> None:
    child = run_python(UNSUBSCRIBING, tmp_path)
    assert (child.returncode, child.stdout, child.stderr) == (0, "interrupted\n", "")


EXITING = """
import sys, threading, time, townsquare
client, inside = townsquare.Client.open(sys.argv[1]), threading.Event()
def callback(event, session):
    inside.set()
    while sys.argv[2] == "runs":
        pass
    while sys.argv[2] == "sleeps":
        time.sleep(0.01)
    while sys.argv[2] == "calls":
        client.auth.sign_up(f"{time.monotonic()}@town.example", "correct horse")
subscription = client.auth.on_auth_state_change(callback)
inside.wait(20)
"""


@pytest.mark.parametrize("what", ["is idle", "runs", "sleeps", "calls"])
def test_the_interpreter_exits_whatever_a_callback_does(tmp_path: Path, what: str) -> None:
    child = run_python(EXITING, tmp_path, what)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


FORKING = """
import os, sys, townsquare
client = townsquare.Client.open(sys.argv[1])
client.auth.sign_up("ann@town.example", "correct horse")
session = client.auth.sign_in("ann@town.example", "correct horse")
handle = client.as_user(session.access_token)
heard = []
subscription = client.auth.on_auth_state_change(lambda event, session: heard.append(event))
child = os.fork()
if child == 0:
    refused = 0
    for call in (
        lambda: client.auth.sign_in("ann@town.example", "correct horse"),
        lambda: client.auth.get_session(),
        lambda: handle.auth.get_session(),
        lambda: client.as_user(session.access_token),
        lambda: client.auth.on_auth_state_change(print),
        lambda: subscription.unsubscribe(),
    ):
        try:
            call()
        except townsquare.ClosedError as error:
            refused += "fork" in str(error)
    del client, handle, subscription
    os._exit(refused)
_, status = os.waitpid(child, 0)
assert os.WEXITSTATUS(status) == 6, status
client.auth.sign_out()
subscription.unsubscribe()
client.close()
assert set(heard) <= {"INITIAL_SESSION", "SIGNED_OUT"}, heard
"""


@needs_fork
def test_after_a_fork_auth_is_refused_in_the_child(tmp_path: Path) -> None:
    child = run_python(FORKING, tmp_path)
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")


def test_a_closed_client_refuses_a_listener(client: Client) -> None:
    client.close()
    with pytest.raises(ClosedError):
        client.auth.on_auth_state_change(print)
