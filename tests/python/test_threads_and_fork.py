"""Threads, signals, fork and interpreter exit: a blocked call blocks no other thread, and no exit hangs."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import townsquare
from conftest import ENABLE_CTRL_C, Upstream, remote_options, run_python, wait_until
from townsquare import Client, ClosedError, UnavailableError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


def test_other_threads_run_during_a_waiting_call(tmp_path: Path, upstream: Upstream) -> None:
    with Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k") as client, ThreadPoolExecutor(4) as pool:
        upstream.hold()
        waiting = [pool.submit(client.discovery.get_trending_mini_apps, "24h", 1) for _ in range(4)]
        # The upstream runs in this process: a request shows that the waiting call has released the GIL.
        wait_until(lambda: upstream.requests)
        assert not any(each.done() for each in waiting)
        upstream.release()
        assert [len(each.result(30)) for each in waiting] == [1, 1, 1, 1]
    assert len(upstream.requests) == 1


def test_many_threads_use_one_client(client: Client) -> None:
    expected = client.discovery.search_mini_apps("chess")

    def work(_: int) -> bool:
        return all(client.discovery.search_mini_apps("chess") == expected for _ in range(200))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


def test_close_on_another_thread_ends_a_waiting_call(tmp_path: Path, upstream: Upstream) -> None:
    client = Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k")
    upstream.hold()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.discovery.get_trending_mini_apps)
        wait_until(lambda: upstream.requests)
        client.close()
        with pytest.raises(ClosedError):
            waiting.result(30)


@pytest.mark.parametrize("is_remote", [False, True], ids=["embedded", "remote"])
def test_calls_beside_close_raise_closed_error_or_are_in_doubt(tmp_path: Path, is_remote: bool) -> None:
    options = remote_options() if is_remote else {}
    with Client.open(tmp_path / "data", **options) as first:
        first.auth.sign_up("ann@town.example", "correct horse")
        session = first.auth.create_session("ann@town.example", "correct horse")
        space = first.as_user(session.access_token).spaces.create_space("Harbor", is_public=True)
    headers = {"authorization": f"Bearer {session.access_token}"}

    def repeat(call: Callable[[], object]) -> BaseException:
        while True:
            try:
                call()
            except BaseException as error:  # A panic is no `Exception`.
                return error

    def is_expected(error: BaseException) -> bool:
        # The server may commit a write that it has, although the client closes.
        is_in_doubt = is_remote and isinstance(error, UnavailableError) and error.code == "08007"
        return is_in_doubt or isinstance(error, ClosedError)

    for _ in range(3):
        client = Client.open(tmp_path / "data", **options)
        ann = client.as_user(session.access_token)
        calls: list[Callable[[], object]] = [
            lambda: client.spaces.get_space(space.id),
            lambda: ann.spaces.update_space(space.id, name="Pier"),
            lambda: client.storage.handle_file("PUT", "/assets/a", b"x" * 100_000, headers),
            lambda: client.auth.create_session("ann@town.example", "correct horse"),
        ]
        with ThreadPoolExecutor(8) as pool:
            ended = [pool.submit(repeat, call) for call in calls * 2]
            threading.Event().wait(0.1)
            client.close()
            errors = [each.result(30) for each in ended]
        assert all(map(is_expected, errors)), errors


def test_dropping_a_client_during_a_refresh_does_not_hang(tmp_path: Path, upstream: Upstream) -> None:
    upstream.hold()
    client = Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k")
    thread = threading.Thread(target=client.discovery.get_trending_mini_apps, daemon=True)
    thread.start()
    wait_until(lambda: upstream.requests)
    del client
    gc.collect()
    upstream.release()
    thread.join(30)
    assert not thread.is_alive()


def test_ctrl_c_interrupts_a_waiting_call(tmp_path: Path, upstream: Upstream) -> None:
    upstream.hold()
    program = f"""{ENABLE_CTRL_C}
import townsquare
client = townsquare.Client.open({str(tmp_path / "data")!r}, catalog_url={upstream.url!r}, catalog_api_key="k")
try:
    client.discovery.get_trending_mini_apps()
except KeyboardInterrupt:
    print("interrupted", client.closed, flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: upstream.requests)
        child.send_signal(signal.SIGINT)
        # The upstream answers nobody before the test ends.
        out, err = child.communicate(timeout=60)
        assert (out, err) == ("interrupted False\n", "")
    finally:
        child.kill()


def start_python(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Starts a program in a Python process of its own, with pipes."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def read_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


LOCKING = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
database.execute("ROLLBACK")
"""

WRITING = f"""{ENABLE_CTRL_C}
import sys, townsquare
client = townsquare.Client.open(sys.argv[1], catalog_api_key="", busy_timeout=60)
service = client.as_service()
try:
    print("waits", flush=True)
    service.spaces.create_space("waiting")
except KeyboardInterrupt:
    print("interrupted", client.closed, flush=True)
sys.stdin.readline()
print(service.spaces.create_space("after").name)
client.close()
"""


def test_ctrl_c_interrupts_a_write_that_waits_for_a_lock(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    Client.open(folder, catalog_api_key="").close()
    lock = start_python(LOCKING, folder / "townsquare.db")
    children = [lock]
    try:
        assert read_line(lock) == "locked\n"
        child = start_python(WRITING, folder)
        children.append(child)
        assert read_line(child) == "waits\n"
        child.send_signal(signal.SIGINT)
        assert read_line(child) == "interrupted False\n"
        assert lock.communicate("end\n", timeout=60) == ("", "")
        assert child.communicate("go on\n", timeout=60) == ("after\n", "")
    finally:
        for each in children:
            each.kill()


HANDLING = """
import signal, sys, threading, townsquare
client = townsquare.Client.open(sys.argv[1], catalog_url=sys.argv[2], catalog_api_key="k")
service = client.as_service()

def handler(number, frame):
    # A handler may call the library while the main thread waits in it.
    space = service.spaces.create_space("by a handler")
    is_main = threading.current_thread() is threading.main_thread()
    print("handled", signal.Signals(number).name, is_main, service.spaces.get_space(space.id) == space, flush=True)

signal.signal(signal.SIGUSR1, handler)
signal.signal(signal.SIGTERM, handler)
print(len(client.discovery.get_trending_mini_apps()), flush=True)
client.close()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal on this system")
def test_a_signal_handler_runs_in_the_main_thread_during_a_waiting_call(tmp_path: Path, upstream: Upstream) -> None:
    upstream.hold()
    child = start_python(HANDLING, tmp_path / "data", upstream.url)
    try:
        wait_until(lambda: upstream.requests)
        for number in (signal.SIGUSR1, signal.SIGTERM):
            child.send_signal(number)
            assert read_line(child) == f"handled {number.name} True True\n"
        upstream.release()
        assert child.communicate(timeout=60) == ("4\n", "") and child.returncode == 0
    finally:
        child.kill()


def test_the_interpreter_exits_while_a_daemon_thread_waits(tmp_path: Path, upstream: Upstream) -> None:
    upstream.hold()
    program = f"""
import threading, time, townsquare, sys
client = townsquare.Client.open({str(tmp_path / "data")!r}, catalog_url={upstream.url!r}, catalog_api_key="k")
for _ in range(4):
    threading.Thread(target=client.discovery.get_trending_mini_apps, daemon=True).start()
sys.stdin.readline()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: upstream.requests)
        out, err = child.communicate("end\n", timeout=30)
        assert (child.returncode, err) == (0, "")
    finally:
        child.kill()


FORKING = """
import gc, os, sys, asyncio, townsquare
folder, catalog = sys.argv[1:]
client = townsquare.Client.open(folder + "/data", catalog_url=catalog)
shared = townsquare.shared(folder + "/shared", catalog_url=catalog)
aclient = asyncio.run(townsquare.AsyncClient.open(folder + "/async", catalog_url=catalog))
asyncio.run(aclient.discovery.refresh())
apps = client.discovery.get_trending_mini_apps()
service = client.as_service()
service.spaces.create_space("kept", is_public=True)

service_spaces = client.spaces.iter_public_spaces(1)
next(service_spaces)

def refused(call, expected=townsquare.ClosedError, text="fork"):
    try:
        call()
    except expected as error:
        assert text in str(error), error
    else:
        raise AssertionError("not refused")

child = os.fork()
if child == 0:
    code = 1
    try:
        refused(client.discovery.stats)
        refused(client.discovery.get_trending_mini_apps)
        refused(client.discovery.refresh)
        refused(client.as_service)
        refused(client.spaces.get_public_spaces)
        refused(lambda: service.spaces.create_space("lost"))
        refused(lambda: asyncio.run(aclient.spaces.get_public_spaces()))
        refused(townsquare.shared, townsquare.ConfigError, "start workers before opening, or spawn")
        refused(lambda: townsquare.shared(folder + "/shared"), townsquare.ConfigError, "start workers before opening, or spawn")
        refused(lambda: next(service_spaces))
        refused(lambda: asyncio.run(aclient.discovery.refresh()))
        assert client.closed and aclient.closed and shared.closed
        client.close()
        assert apps[0].name == "Harbor Chess"
        # A child of a process with an open database opens no other one either: it has copies of locks without their threads.
        words = "start workers before opening, or spawn"
        refused(lambda: townsquare.Client.open(folder + "/child", catalog_url=catalog), townsquare.ConfigError, words)
        refused(lambda: asyncio.run(townsquare.AsyncClient.open(folder + "/child")), townsquare.ConfigError, words)
        del client, aclient, shared, service
        gc.collect()
        code = 0
    finally:
        sys.stderr.flush()
        if code:
            import traceback
            traceback.print_exc()
            os._exit(code)
    sys.exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert len(client.discovery.get_trending_mini_apps()) == 4
assert [space.name for space in client.spaces.get_public_spaces()] == ["kept"]
assert townsquare.shared() is shared
shared.close()
client.close()
asyncio.run(aclient.close())
# A shared client that was closed before the fork stands in no child's way.
child = os.fork()
if child == 0:
    with townsquare.shared(folder + "/shared") as own:
        code = 0 if own.spaces.get_public_spaces() == [] and not own.closed else 1
    os._exit(code)
assert os.waitpid(child, 0)[1] == 0
"""


@needs_fork
def test_after_a_fork_the_child_is_refused_and_the_parent_continues(tmp_path: Path, catalog: str) -> None:
    child = run_python(FORKING, tmp_path, catalog, timeout=120)
    assert (child.returncode, child.stderr) == (0, "")


def test_many_threads_write_and_read_one_database(service: Client) -> None:
    space = service.spaces.create_space("Harbor", is_public=True)

    def work(number: int) -> bool:
        fidget = service.fidgets.create_fidget(space.id, "clock", config={"n": number})
        one_by_one = all(service.fidgets.get_fidget(fidget.id) == fidget for _ in range(20))
        return one_by_one and fidget in service.fidgets.get_space_fidgets(space.id)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert sorted(each.config["n"] for each in service.fidgets.get_space_fidgets(space.id)) == list(range(64))
    assert [len(each.fidgets) for each in [service.spaces.get_space_with_fidgets(space.id)]] == [64]


WAITING = """
import os, signal, sys, townsquare
client = townsquare.Client.open(sys.argv[1], catalog_url=sys.argv[2])
client.discovery.search_mini_apps("chess")
client.auth.sign_up("ada@town.example", "correct horse")
subscription = client.auth.on_auth_state_change(lambda event, session: None)
signal.alarm(60)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
for _ in range(20):
    os.kill(os.getpid(), signal.SIGTERM)
    assert signal.sigwait([signal.SIGTERM]) == signal.SIGTERM
client.close()
print("alive")
"""


@pytest.mark.skipif(not hasattr(signal, "sigwait"), reason="no signal masks on this system")
def test_a_program_that_masks_a_signal_after_open_receives_it(tmp_path: Path, catalog: str) -> None:
    child = run_python(WAITING, tmp_path / "data", catalog)
    assert (child.returncode, child.stdout, child.stderr) == (0, "alive\n", "")


LIMITED = """
import asyncio, gc, os, resource, sys, tempfile, time, townsquare
if os.geteuid() == 0:
    os.setuid(54_322)  # a user without other processes; the limit does not bind root
folder = tempfile.mkdtemp()

def threads():
    return len(os.listdir("/proc/self/task"))

async def use_async():
    async with await townsquare.AsyncClient.open(folder + "/town") as client:
        await client.as_service()
before = threads()
hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
outcomes = []
for more in range(15):
    resource.setrlimit(resource.RLIMIT_NPROC, (before + more, hard))
    for use in (lambda: townsquare.Client.open(folder + "/town").close(), lambda: asyncio.run(use_async())):
        try:
            use()
            outcomes.append("works")
        except townsquare.UnavailableError as error:
            assert "thread" in str(error), error
            outcomes.append("refused")
    while threads() > before:
        gc.collect()  # the traceback of an error may hold a client in a cycle
        time.sleep(0.005)
print(outcomes[0], outcomes[1], outcomes[-2], outcomes[-1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root may become another user")
def test_open_with_too_few_threads_is_unavailable(tmp_path: Path) -> None:
    child = run_python(LIMITED, timeout=120)
    assert (child.stdout, child.stderr) == ("refused refused works works\n", "")


PANICKING = """
import townsquare
from townsquare import _native
townsquare.Client.open(":memory:").close()
if not hasattr(_native, "_panic"):
    print("release build")
else:
    try:
        _native._panic()
    except BaseException as error:
        print(type(error).__name__, error)
"""


def test_a_panic_is_one_record_of_the_log() -> None:
    child = run_python(PANICKING)
    if child.stdout == "release build\n":
        pytest.skip("the extension module is a release build")
    assert (child.returncode, child.stdout) == (0, "PanicException on purpose\n")
    # A program that configures no logging gets Python's handler of last resort, which writes the message to stderr.
    assert child.stderr.startswith("the library panicked: on purpose place=") and child.stderr.count("\n") == 1
