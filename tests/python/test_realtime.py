"""Changes of rows: order, replay, policies, streams, unsubscribe, fork and exit (SPEC 6, DESIGN 5)."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import logging
import os
import queue
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import run, run_python, wait_until
from townsquare import (
    AsyncClient,
    Change,
    Client,
    ClosedError,
    CursorExpiredError,
    Error,
    InvalidInputError,
    Subscription,
    UnavailableError,
)

EMAIL, PASSWORD = "ann@town.example", "correct horse"
EVENTS = int(os.environ.get("TOWNSQUARE_TEST_EVENTS", "2000"))
"""How many changes the tests of memory deliver; a million shows that it is flat."""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


class Recorder:
    """A callback that queues its changes."""

    def __init__(self) -> None:
        self.queue: queue.Queue[Change] = queue.Queue()

    def __call__(self, change: Change) -> None:
        self.queue.put(change)

    def next(self) -> Change:
        return self.queue.get(timeout=20)


def brief(change: Change) -> tuple[str, Optional[str], Optional[str]]:
    """The event with the names before and after."""
    return (change.event_type, (change.old or {}).get("name"), (change.new or {}).get("name"))


def test_changes_arrive_in_the_order_of_the_commits(service: Client) -> None:
    heard = Recorder()
    subscription = service.realtime.subscribe("all", heard, table="spaces")
    assert type(subscription) is Subscription
    space = service.spaces.create_space("Harbor")
    service.spaces.update_space(space.id, name="Quay")
    service.spaces.delete_space(space.id)
    changes = [heard.next() for _ in range(3)]
    assert [brief(change) for change in changes] == [
        ("INSERT", None, "Harbor"),
        ("UPDATE", "Harbor", "Quay"),
        ("DELETE", "Quay", None),
    ]
    first = changes[0]
    assert (first.schema, first.table, first.old) == ("public", "spaces", None)
    assert first.new is not None and first.new["id"] == str(space.id)
    assert first.commit_timestamp.tzinfo is not None
    subscription.unsubscribe()
    service.spaces.create_space("Later")
    assert heard.queue.empty()


def test_a_change_becomes_json_by_the_names_of_spec_6(service: Client) -> None:
    with service.realtime.changes(table="fidgets") as changes:
        space = service.spaces.create_space("Harbor")
        service.fidgets.create_fidget(space.id, "clock", config={"zone": ["UTC", 1, None]})
        change = changes.next(20)
    assert change is not None
    payload = change.to_dict()
    assert sorted(payload) == ["commit_timestamp", "cursor", "eventType", "new", "old", "schema", "table"]
    assert payload["eventType"] == "INSERT" and payload["new"]["config"] == {"zone": ["UTC", 1, None]}
    assert json.loads(json.dumps(payload)) == payload
    assert change.new == payload["new"] and change.cursor == payload["cursor"]
    assert "UTC" in repr(change) and change == change and hash(change) == hash(change)


def test_the_two_subscriptions_of_spec_6(service: Client) -> None:
    harbor, other = service.spaces.create_space("Harbor"), service.spaces.create_space("Other")
    spaces, fidgets = Recorder(), Recorder()
    service.realtime.on_space_changes(harbor.id, spaces)
    service.realtime.on_fidget_changes(str(harbor.id), fidgets)
    service.spaces.update_space(other.id, name="Not this one")
    service.fidgets.create_fidget(other.id, "clock")
    service.fidgets.create_fidget(harbor.id, "tides")
    service.spaces.update_space(harbor.id, name="Quay")
    assert brief(spaces.next()) == ("UPDATE", "Harbor", "Quay")
    change = fidgets.next()
    assert change.new is not None and change.new["type"] == "tides"
    assert spaces.queue.empty() and fidgets.queue.empty()


def test_events_and_filters_select(service: Client) -> None:
    changes = service.realtime.changes(table="spaces", event="UPDATE", filter='name=in.("a,b",c)&is_public=is.true')
    for name in ["a,b", "c", "d"]:
        space = service.spaces.create_space("new", is_public=name != "c")
        service.spaces.update_space(space.id, name=name)
        service.spaces.update_space(space.id, description="again")
    change = changes.next(20)
    assert change is not None and change.new is not None and change.new["description"] == "again"
    assert changes.next(0) is None, "INSERT into the view is no UPDATE"


@pytest.mark.parametrize(
    "arguments",
    [
        {"table": "secrets"},
        {"table": "spaces", "filter": "colour=eq.red"},
        {"table": "spaces", "filter": "id=eq.harbor"},
        {"table": "spaces", "event": "TRUNCATE"},
        {"table": "spaces", "schema": "private"},
        {"table": "spaces", "since": "yesterday"},
        {"table": "spaces", "until": "tomorrow"},
        {"table": "spaces", "until": "\ud800"},
        {"table": "spaces", "filter": "\ud800"},
    ],
)
def test_a_bad_subscription_is_refused(client: Client, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        client.realtime.subscribe("bad", print, **arguments)
    assert refused.value.operation == "subscribe" and str(refused.value).startswith("Subscribe failed: ")


def test_arguments_of_another_type_raise_type_error(client: Client) -> None:
    bad: Any = 7
    with pytest.raises(TypeError):
        client.realtime.subscribe("bad", bad, table="spaces")
    with pytest.raises(TypeError):
        client.realtime.changes(table=bad)
    with pytest.raises(TypeError):
        client.realtime.subscribe("bad", print, table="spaces", on_close=bad)


def test_a_cursor_replays_after_a_restart(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data") as client:
        service = client.as_service()
        cursor = service.realtime.cursor()
        service.spaces.create_space("one")
        with service.realtime.changes(table="spaces", since=cursor) as changes:
            first = next(changes)
        service.spaces.create_space("two")
    with Client.open(tmp_path / "data") as client:
        service = client.as_service()
        changes = service.realtime.changes(table="spaces", since=first.cursor)
        service.spaces.create_space("three")
        assert [brief(next(changes))[2] for _ in range(2)] == ["two", "three"]
        assert changes.next(0) is None


def test_a_cursor_of_another_database_is_expired(tmp_path: Path, service: Client) -> None:
    with Client.open(tmp_path / "other") as other:
        cursor = other.as_service().realtime.cursor()
    for name in ("since", "until"):
        arguments: dict[str, Any] = {name: cursor}
        with pytest.raises(CursorExpiredError) as expired:
            service.realtime.changes(table="spaces", **arguments)
        assert expired.value.kind == "cursor_expired" and isinstance(expired.value, LookupError)


def test_a_request_ends_at_its_cursor(service: Client) -> None:
    start = service.realtime.cursor()
    for name in ("one", "two"):
        service.spaces.create_space(name)
    end = service.realtime.cursor()
    service.spaces.create_space("three")
    assert [brief(change)[2] for change in service.realtime.changes(table="spaces", since=start, until=end)] == ["one", "two"]
    assert list(service.realtime.changes(table="spaces", until=end)) == []
    heard, closed = Recorder(), queue.Queue[Optional[Exception]]()
    service.realtime.subscribe("past", heard, table="spaces", since=start, until=end, on_close=closed.put)
    assert [brief(heard.next())[2] for _ in range(2)] == ["one", "two"]
    assert closed.get(timeout=20) is None and heard.queue.empty()


def test_an_async_request_ends_at_its_cursor() -> None:
    async def main() -> None:
        async with AsyncClient.open(":memory:") as client:
            service = await client.as_service()
            start = await service.realtime.cursor()
            await service.spaces.create_space("one")
            end = await service.realtime.cursor()
            await service.spaces.create_space("two")
            changes = await service.realtime.changes(table="spaces", since=start, until=end)
            assert [brief(change)[2] async for change in changes] == ["one"]
            with pytest.raises(InvalidInputError):
                await service.realtime.changes(table="spaces", until="tomorrow")

    run(main())


def test_each_caller_gets_what_it_may_see(client: Client, service: Client) -> None:
    client.auth.sign_up(EMAIL, PASSWORD)
    session = client.as_service().auth.sign_in(EMAIL, PASSWORD)
    owner = client.as_user(session.access_token)
    owned, anonymous = owner.realtime.changes(table="spaces"), client.realtime.changes(table="spaces")
    space = owner.spaces.create_space("Draft")
    owner.spaces.update_space(space.id, is_public=True)
    owner.spaces.update_space(space.id, is_public=False)
    assert [next(owned).event_type for _ in range(3)] == ["INSERT", "UPDATE", "UPDATE"]
    seen = [next(anonymous) for _ in range(2)]
    assert [change.event_type for change in seen] == ["INSERT", "DELETE"]
    assert seen[1].old == {"id": str(space.id)}, "nothing but the key of a hidden row"
    assert anonymous.next(0) is None


def test_a_live_query_has_the_rows_and_what_follows(service: Client) -> None:
    service.spaces.create_space("one")
    service.spaces.create_space("other")
    live = service.realtime.live(table="spaces", filter="name=like.o_e")
    assert [row["name"] for row in live.rows] == ["one"] and live.rows is live.rows
    service.spaces.create_space("ode")
    assert brief(next(live)) == ("INSERT", None, "ode")
    live.close()
    assert list(live) == []


def test_next_waits_until_its_deadline(client: Client) -> None:
    changes = client.realtime.changes(table="spaces")
    before = time.monotonic()
    assert changes.next(0.05) is None
    assert time.monotonic() - before >= 0.05
    with pytest.raises(InvalidInputError):
        changes.next(-1)


def test_close_ends_a_stream_that_waits_on_another_thread(client: Client) -> None:
    changes = client.realtime.changes(table="spaces")
    received: list[list[Change]] = []
    waiting = threading.Thread(target=lambda: received.append(list(changes)))
    waiting.start()
    changes.close()
    changes.close()
    waiting.join(20)
    assert received == [[]] and changes.next() is None


def test_closing_the_client_ends_streams_and_tells_subscriptions(tmp_path: Path) -> None:
    ends: queue.Queue[Optional[Error]] = queue.Queue()
    client = Client.open(tmp_path / "data")
    changes = client.realtime.changes(table="spaces")
    client.realtime.subscribe("all", print, table="spaces", on_close=ends.put)
    client.close()
    assert ends.get(timeout=20) is None and ends.empty()
    assert list(changes) == []
    with pytest.raises(ClosedError):
        client.realtime.cursor()


def test_on_close_is_told_once_after_unsubscribe(service: Client) -> None:
    ends: list[Optional[Error]] = []
    subscription = service.realtime.subscribe("all", print, table="spaces", on_close=ends.append)
    subscription.unsubscribe()
    subscription.unsubscribe()
    assert ends == [None]


def test_callbacks_may_call_raise_and_unsubscribe(service: Client, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    own: queue.Queue[Subscription] = queue.Queue()

    def callback(change: Change) -> None:
        service.realtime.stats()
        if brief(change)[2] == "two":
            own.get(timeout=20).unsubscribe()
            done.set()
        raise RuntimeError("on purpose")

    own.put(service.realtime.subscribe("all", callback, table="spaces"))
    with caplog.at_level(logging.ERROR, logger="townsquare"):
        for name in ["one", "two", "three"]:
            service.spaces.create_space(name)
        assert done.wait(20)
        wait_until(lambda: len(caplog.records) >= 2)
    assert [record.getMessage() for record in caplog.records] == ["A callback of subscribe raised"] * 2


def test_two_callbacks_that_unsubscribe_each_other_end(service: Client) -> None:
    both_run, subscriptions = threading.Barrier(2), [queue.Queue[Subscription](), queue.Queue[Subscription]()]
    ends: queue.Queue[Optional[Error]] = queue.Queue()

    def callback(other: int, change: Change) -> None:
        subscription = subscriptions[other].get(timeout=20)
        both_run.wait(20)
        subscription.unsubscribe()

    for number in range(2):
        subscribe = functools.partial(service.realtime.subscribe, table="spaces", on_close=ends.put)
        subscriptions[number].put(subscribe("pair", functools.partial(callback, 1 - number)))
    service.spaces.create_space("Harbor")
    assert [ends.get(timeout=20) for _ in range(2)] == [None, None]


def test_unsubscribe_waits_for_the_running_callback(service: Client) -> None:
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def callback(change: Change) -> None:
        started.set()
        release.wait(20)
        ended.set()

    subscription = service.realtime.subscribe("slow", callback, table="spaces")
    service.spaces.create_space("Harbor")
    assert started.wait(20)
    threading.Timer(0.05, release.set).start()
    subscription.unsubscribe()
    assert ended.is_set()


def test_a_callback_is_released_after_unsubscribe(service: Client) -> None:
    heard = Recorder()
    reference = weakref.ref(heard)
    subscription = service.realtime.subscribe("all", heard, table="spaces")
    del heard
    gc.collect()
    assert reference() is not None
    subscription.unsubscribe()
    wait_until(lambda: gc.collect() >= 0 and reference() is None)


def test_a_dropped_stream_ends(service: Client) -> None:
    changes = service.realtime.changes(table="spaces")
    assert service.realtime.stats().subscriptions == 1
    del changes
    gc.collect()
    assert service.realtime.stats().subscriptions == 0


def test_stats_tell_what_is_retained(service: Client) -> None:
    service.realtime.cursor()
    service.spaces.create_space("Harbor")
    stats = service.realtime.stats()
    assert stats.retained >= 1 and stats.oldest is not None and stats.lag_seconds >= 0
    assert set(stats.to_dict()) == {"subscriptions", "retained", "oldest", "lag_seconds"}


def test_an_async_client_iterates_and_loses_nothing_when_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            service = await client.as_service()
            cursor = await service.realtime.cursor()
            async with await service.realtime.changes(table="spaces", since=cursor) as changes:
                received: list[Optional[Change]] = []
                for number in range(20):
                    waiting = asyncio.ensure_future(changes.next())
                    await asyncio.sleep(0)
                    if not waiting.cancel():
                        received.append(await waiting)
                    await service.spaces.create_space(str(number))
                received += [change async for change in limited(changes, 20 - len(received))]
                names = [brief(change)[2] for change in received if change is not None]
                assert names == [str(number) for number in range(20)]
                assert await changes.next(0) is None
            live = await service.realtime.live(table="spaces")
            assert len(live.rows) == 20
            await live.close()
            assert [change async for change in live] == []
            heard = Recorder()
            subscription = await service.realtime.subscribe("all", heard, table="spaces")
            await service.spaces.create_space("callback")
            assert brief(await asyncio.to_thread(heard.next))[2] == "callback"
            await asyncio.to_thread(subscription.unsubscribe)

    run(main())


async def limited(changes: Any, count: int) -> Any:
    for _ in range(count):
        yield await changes.__anext__()


def test_a_request_does_not_switch_the_change_log_on(service: Client) -> None:
    with service.realtime.handle_events("/events?table=spaces") as refused:
        assert refused.status == 503
    service.realtime.start()
    ended: "queue.Queue[Any]" = queue.Queue()
    service.realtime.subscribe("all", lambda _: None, table="spaces", on_close=ended.put)
    service.realtime.stop()
    reason = ended.get(timeout=20)
    assert isinstance(reason, UnavailableError) and "switched off" in str(reason)
    with service.realtime.handle_events("/events?table=spaces") as refused:
        assert refused.status == 503


def test_server_sent_events_resume_after_a_cut(service: Client) -> None:
    service.realtime.start()
    with service.realtime.handle_events("/events?table=spaces", {"authorization": "Bearer wrong"}) as refused:
        assert refused.status == 401 and json.loads(b"".join(refused))["success"] is False
    for target, status in [("/events?table=secrets", 404), ("/events", 400), ("/events?table=spaces&filter=x", 400)]:
        assert service.realtime.handle_events(target).status == status
    stream = service.realtime.handle_events("/events?table=spaces&filter=name=like.*arbor")
    assert stream.status == 200 and stream.headers["content-type"] == "text/event-stream"
    cursor = next(stream).decode().removeprefix("id: ").strip()
    stream.close()
    service.spaces.create_space("Harbor", is_public=True)
    service.spaces.create_space("Arbor of nobody")
    with service.realtime.handle_events("/events?table=spaces&filter=name=like.*arbor", {"last-event-id": cursor}) as events:
        assert next(events).decode() == f"id: {cursor}\n\n"
        lines = next(events).decode().splitlines()
    assert lines[0] == "event: change" and lines[1].startswith("id: ")
    assert json.loads(lines[2].removeprefix("data: "))["new"]["name"] == "Harbor"


def test_server_sent_events_of_a_bearer_end_with_a_reason(service: Client) -> None:
    service.realtime.start()
    service.auth.sign_up("ann@town.example", "correct horse")
    session = service.auth.sign_in("ann@town.example", "correct horse")
    with service.realtime.handle_events("/events?table=spaces", {"authorization": f"Bearer {session.access_token}"}) as events:
        assert events.status == 200
        service.auth.refresh_session(session.refresh_token)
        service.spaces.create_space("Harbor", is_public=True)
        text = b"".join(events).decode()
    event, data = text.rstrip().splitlines()[-2:]
    assert "Harbor" not in text and event == "event: end"
    assert json.loads(data.removeprefix("data: ")) == {"status": 401, "error": "Session has ended"}


def assert_memory_stays_flat(program: str, folder: Path) -> None:
    """Runs a program that reads `EVENTS` changes and prints its memory in KiB after a quarter of them and at the end."""
    child = run_python(program, folder / "data", EVENTS, timeout=60 + EVENTS / 1_000)
    assert child.returncode == 0, child.stderr
    early, late = map(int, child.stdout.split())
    assert late < early + 64 * 1_024, f"{early} KiB grew to {late} KiB"


def test_many_changes_pass_in_flat_memory(tmp_path: Path) -> None:
    program = (
        "import resource, sys, threading, townsquare\n"
        "count = int(sys.argv[2])\n"
        "client = townsquare.Client.open(sys.argv[1], durability='normal')\n"
        "service = client.as_service()\n"
        "seen, done = [0], threading.Event()\n"
        "def callback(change):\n"
        "    seen[0] += 1\n"
        "    if seen[0] == count: done.set()\n"
        "subscription = service.realtime.subscribe('all', callback, table='spaces')\n"
        "stream = service.realtime.changes(table='spaces')\n"
        "batch = 500\n"
        "peak = []\n"
        "for start in range(0, count, batch):\n"
        "    service.spaces.create_spaces([{'name': str(start + i)} for i in range(batch)])\n"
        "    for i in range(batch):\n"
        "        assert next(stream).new['name'] == str(start + i)\n"
        "    peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "assert done.wait(60)\n"
        "client.close()\n"
        "print(peak[len(peak) // 4], peak[-1])\n"
    )
    assert_memory_stays_flat(program, tmp_path)


def test_many_changes_pass_an_async_for_in_flat_memory(tmp_path: Path) -> None:
    program = (
        "import asyncio, resource, sys, townsquare\n"
        "count, batch = int(sys.argv[2]), 500\n"
        "async def write(service):\n"
        "    for start in range(0, count, batch):\n"
        "        await service.spaces.create_spaces([{'name': str(start + i)} for i in range(batch)])\n"
        "async def main():\n"
        "    async with await townsquare.AsyncClient.open(sys.argv[1], durability='normal') as client:\n"
        "        service = await client.as_service()\n"
        "        changes = await service.realtime.changes(table='spaces')\n"
        "        writing = asyncio.ensure_future(write(service))\n"
        "        seen, peak = 0, []\n"
        "        async for change in changes:\n"
        "            assert change.new['name'] == str(seen)\n"
        "            seen += 1\n"
        "            if seen % batch == 0:\n"
        "                peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "            if seen == count:\n"
        "                break\n"
        "        await writing\n"
        "    print(peak[len(peak) // 4], peak[-1])\n"
        "asyncio.run(main())\n"
    )
    assert_memory_stays_flat(program, tmp_path)


def test_callbacks_run_while_garbage_is_collected(service: Client) -> None:
    """Destructors that the collector runs end subscriptions and streams while other callbacks run."""
    stop, ended = threading.Event(), queue.Queue[Optional[Error]]()

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.stream = service.realtime.changes(table="fidgets")
            self.subscription = service.realtime.subscribe("cycle", Recorder(), table="spaces", on_close=ended.put)

        def __del__(self) -> None:
            self.subscription.unsubscribe()

    def collect() -> None:
        while not stop.is_set():
            gc.collect()

    heard = Recorder()

    def hear(change: Change) -> None:
        Cycle()
        gc.collect(0)
        heard(change)

    service.realtime.subscribe("all", hear, table="spaces")
    collecting = threading.Thread(target=collect)
    collecting.start()
    try:
        for number in range(20):
            service.spaces.create_space(str(number))
        names = [brief(heard.next())[2] for _ in range(20)]
    finally:
        stop.set()
        collecting.join(20)
    assert names == [str(number) for number in range(20)]
    gc.collect()
    assert [ended.get(timeout=20) for _ in range(20)] == [None] * 20
    wait_until(lambda: service.realtime.stats().subscriptions == 1)


@pytest.mark.parametrize("what", ["pass", "threading.Event().wait()", "raise SystemExit", "client.close()"])
def test_the_interpreter_exits_with_live_subscriptions(tmp_path: Path, what: str) -> None:
    program = (
        "import sys, threading, townsquare\n"
        "client = townsquare.Client.open(sys.argv[1])\n"
        "service = client.as_service()\n"
        "started = threading.Event()\n"
        "def callback(change):\n"
        "    started.set()\n"
        f"    {what}\n"
        "service.realtime.subscribe('all', callback, table='spaces')\n"
        "stream = service.realtime.changes(table='spaces')\n"
        "threading.Thread(target=lambda: list(stream), daemon=True).start()\n"
        "service.spaces.create_space('Harbor')\n"
        "assert started.wait(20)\n"
    )
    child = run_python(program, tmp_path / "data")
    assert child.returncode == 0, child.stderr


@needs_fork
def test_after_a_fork_subscriptions_are_refused_in_the_child(tmp_path: Path) -> None:
    program = (
        "import os, sys, townsquare\n"
        "client = townsquare.Client.open(sys.argv[1])\n"
        "service = client.as_service()\n"
        "heard = []\n"
        "subscription = service.realtime.subscribe('all', heard.append, table='spaces')\n"
        "stream = service.realtime.changes(table='spaces')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    refused = 0\n"
        "    for call in (service.realtime.cursor, subscription.unsubscribe, stream.next, lambda: next(stream)):\n"
        "        try: call()\n"
        "        except townsquare.ClosedError: refused += 1\n"
        "    stream.close()\n"
        "    del stream, subscription, service, client\n"
        "    os._exit(refused)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4\n"
        "service.spaces.create_space('Harbor')\n"
        "assert next(stream).new['name'] == 'Harbor'\n"
        "client.close()\n"
    )
    child = run_python(program, tmp_path / "data")
    assert child.returncode == 0, child.stderr
