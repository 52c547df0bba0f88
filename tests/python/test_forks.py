"""Databases and `fork`: what a child may open, what is refused, and that no acknowledged write is lost."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest
import townsquare
from conftest import remote_options, run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

IN_CHILD = """
import os, signal, sys, traceback, townsquare

def in_child(body):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        code = 1
        try:
            body()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, status

def write(folder, name):
    with townsquare.Client.open(folder, catalog_api_key="") as client:
        client.as_service().spaces.create_space(name, is_public=True)

def refused(call, kind, words):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("not refused")
"""
"""Functions of the programs below. A child that hangs is killed by SIGALRM."""

OPEN_AT_THE_FORK = (
    IN_CHILD
    + """
folder = sys.argv[1]
town, shared_folder = folder + "/town", folder + "/shared"
in_child(lambda: write(town, "by a worker from before"))
client = townsquare.Client.open(town, catalog_api_key="")
shared = townsquare.shared(shared_folder, catalog_api_key="")
service = client.as_service()
service.spaces.create_space("by the parent", is_public=True)

def child():
    refused(lambda: townsquare.Client.open(town, catalog_api_key=""), townsquare.ConfigError, "start workers before opening")
    refused(lambda: townsquare.Client.open(town, catalog_api_key=""), townsquare.ConfigError, "spawn")
    refused(lambda: townsquare.Client.open(None, database_url=f"sqlite:{town}/townsquare.db"), townsquare.ConfigError, "spawn")
    refused(townsquare.shared, townsquare.ConfigError, "start workers before opening")
    refused(lambda: service.spaces.create_space("lost"), townsquare.ClosedError, "start workers before opening")
    refused(client.spaces.get_public_spaces, townsquare.ClosedError, "spawn")

in_child(child)
service.spaces.create_space("by the parent, again", is_public=True)
assert len(client.spaces.get_public_spaces()) == 3
client.close()
shared.close()

def child_after_close():
    write(town, "by a child after close")
    townsquare.shared(shared_folder, catalog_api_key="").close()

in_child(child_after_close)
with townsquare.Client.open(town, catalog_api_key="") as client:
    assert len(client.spaces.get_public_spaces()) == 4
"""
)


def test_a_child_cannot_open_a_file_that_was_open_at_the_fork(tmp_path: Path) -> None:
    child = run_python(OPEN_AT_THE_FORK, tmp_path, timeout=120)
    assert (child.returncode, child.stderr) == (0, "")


ANY_ENGINE = (
    IN_CHILD
    + """
import json
folder = sys.argv[1]
options = {"data_dir": folder + "/town", **json.loads(sys.argv[2])}
client = townsquare.Client.open(catalog_api_key="", **options)

def child():
    for other in ({"data_dir": ":memory:"}, {"data_dir": folder + "/other"}, options):
        refused(lambda: townsquare.Client.open(catalog_api_key="", **other), townsquare.ConfigError, "spawn")
    client.close()
    refused(lambda: townsquare.Client.open(":memory:"), townsquare.ConfigError, "spawn")

in_child(child)
client.close()
in_child(lambda: write(folder + "/other", "after close"))
"""
)


@pytest.mark.parametrize("engine", ["sqlite", "memory", "postgres"])
def test_a_child_opens_no_client_while_one_was_open_at_the_fork(tmp_path: Path, engine: str) -> None:
    options = {"sqlite": dict, "memory": lambda: {"data_dir": ":memory:"}, "postgres": remote_options}[engine]()
    child = run_python(ANY_ENGINE, tmp_path, json.dumps(options), timeout=120)
    assert (child.returncode, child.stderr) == (0, "")


def write_one_space(folder: str) -> int:
    with townsquare.Client.open(folder, catalog_api_key="") as client:
        client.as_service().spaces.create_space("by a spawned worker", is_public=True)
        return len(client.spaces.get_public_spaces())


def test_a_spawned_worker_opens_the_file_of_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "town"
    with townsquare.Client.open(folder, catalog_api_key="") as client:
        client.as_service().spaces.create_space("by the parent", is_public=True)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            counts = pool.map_async(write_one_space, [str(folder)] * 4).get(120)
        assert max(counts) == 5
        assert len(client.spaces.get_public_spaces()) == 5


WORKERS = (
    IN_CHILD
    + """
import random, time
folder, seed = sys.argv[1:]

def work(number):
    client = townsquare.Client.open(folder, catalog_api_key="")
    service = client.as_service()
    count = 0
    while True:
        name = f"{number}-{count}"
        service.spaces.create_space(name)
        os.write(1, f"ACK {name}\\n".encode())
        count += 1

randomly = random.Random(seed)
workers = []
for number in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            work(f"{seed}-{number}")
        finally:
            traceback.print_exc()
            os._exit(1)
    workers.append(child)
# The parent opens after the fork and writes beside its workers.
with townsquare.Client.open(folder, catalog_api_key="") as client:
    service = client.as_service()
    for count, worker in enumerate(randomly.sample(workers, len(workers))):
        until = time.monotonic() + randomly.uniform(0.0, 0.3)
        while time.monotonic() < until:
            name = f"{seed}-parent-{count}-{time.monotonic_ns()}"
            service.spaces.create_space(name)
            os.write(1, f"ACK {name}\\n".encode())
        os.kill(worker, signal.SIGKILL)
        assert os.waitpid(worker, 0)[1] == signal.SIGKILL, "a worker failed by itself"
"""
)

CHECK = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
for name, in database.execute("SELECT name FROM spaces"):
    print(name)
"""


def test_killed_forked_workers_lose_no_acknowledged_write(tmp_path: Path) -> None:
    folder = tmp_path / "town"
    acknowledged: set[str] = set()
    for seed in range(5):
        run = run_python(WORKERS, folder, seed, timeout=120)
        assert (run.returncode, run.stderr) == (0, ""), f"seed {seed}"
        acknowledged.update(line.removeprefix("ACK ") for line in run.stdout.splitlines())
        # Python's SQLite reads the file in a process of its own.
        check = run_python(CHECK, folder / "townsquare.db")
        assert check.returncode == 0, check.stderr
        found = check.stdout.split()
        assert len(found) == len(set(found))
        lost = acknowledged - set(found)
        assert not lost, f"seed {seed}: {sorted(lost)[:5]}"
    assert len(acknowledged) > 50


COMMITTING = """
import pathlib, sys, townsquare

def switches():
    for task in pathlib.Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == "townsquare-writ":
            lines = (task / "status").read_text().splitlines()
            return int(next(line for line in lines if line.startswith("voluntary_ctxt")).split()[1])

with townsquare.Client.open(sys.argv[1], catalog_api_key="") as client:
    service = client.as_service()
    space = service.spaces.create_space("x")
    before = switches()
    for number in range(150):
        service.spaces.create_space("x")
        service.spaces.update_space(space.id, name=str(number))
    print(switches() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="no /proc")
def test_a_client_commits_on_the_calling_thread(tmp_path: Path) -> None:
    child = run_python(COMMITTING, tmp_path / "town")
    assert child.returncode == 0, child.stderr
    # The writer thread sleeps through 300 writes.
    assert int(child.stdout) < 75
