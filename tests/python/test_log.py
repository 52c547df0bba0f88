"""The log: warnings of the library are records of the logger `townsquare` (DESIGN 3)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import run_python, wait_until
from townsquare import Client

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")


def records_of(caplog: pytest.LogCaptureFixture, level: int) -> list[logging.LogRecord]:
    return [each for each in caplog.records if each.name.startswith("townsquare") and each.levelno == level]


def shared_folder(folder: Path) -> Path:
    """A folder that every user of the machine may read, of which `open` warns."""
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def test_a_warning_is_one_record_of_the_logger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = shared_folder(tmp_path / "shared%s")
    Client.open(folder).close()
    wait_until(lambda: records_of(caplog, logging.WARNING))
    [record] = records_of(caplog, logging.WARNING)
    assert record.name.startswith("townsquare.") and "::" not in record.name
    assert "other users of this machine may read the database" in record.getMessage()
    assert f"path={folder}" in record.getMessage()


def test_a_private_folder_gives_no_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    Client.open(tmp_path / "mine").close()
    Client.open(shared_folder(tmp_path / "open")).close()
    wait_until(lambda: records_of(caplog, logging.WARNING))
    assert all(f"path={tmp_path / 'mine'}" not in record.getMessage() for record in records_of(caplog, logging.WARNING))


READER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN")
print(database.execute("SELECT count(*) FROM spaces").fetchone(), flush=True)
sys.stdin.read()
"""


def test_debug_records_arrive_if_the_logger_takes_them_when_the_client_opens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def close_while_another_process_reads(folder: Path) -> None:
        client = Client.open(folder)
        command = [sys.executable, "-c", READER, str(folder / "townsquare.db")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            assert reader.stdout and reader.stdin and reader.stdout.readline()
            client.as_service().spaces.create_space("Harbor")
            client.close()
            reader.stdin.close()

    close_while_another_process_reads(tmp_path / "quiet")
    with caplog.at_level(logging.DEBUG, logger="townsquare"):
        close_while_another_process_reads(tmp_path / "verbose")
        wait_until(lambda: records_of(caplog, logging.DEBUG))
    kept = [record for record in records_of(caplog, logging.DEBUG) if "write-ahead log stays" in record.getMessage()]
    assert len(kept) == 1


LOGGING = """
import logging, os, sys, townsquare
logging.basicConfig(format="%(levelname)s %(name)s %(message)s", stream=sys.stdout)
"""


def test_a_record_is_logged_before_the_interpreter_exits(tmp_path: Path) -> None:
    child = run_python(f"{LOGGING}client = townsquare.Client.open(sys.argv[1])", shared_folder(tmp_path / "shared"))
    assert (child.returncode, child.stderr) == (0, "")
    assert child.stdout.startswith("WARNING townsquare.") and child.stdout.count("\n") == 1


def test_a_forked_process_logs_its_own_records(tmp_path: Path) -> None:
    program = f"""{LOGGING}
townsquare.Client.open(sys.argv[1]).close()
child = os.fork()
if child == 0:
    townsquare.Client.open(sys.argv[2]).close()
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
"""
    folders = [shared_folder(tmp_path / "parent"), shared_folder(tmp_path / "child")]
    child = run_python(program, *folders)
    assert (child.returncode, child.stderr) == (0, "")
    lines = child.stdout.splitlines()
    assert [sum(str(folder) in line for line in lines) for folder in folders] == [1, 1], lines


def test_a_handler_may_call_the_library_and_raise(tmp_path: Path) -> None:
    program = f"""{LOGGING}
class Handler(logging.Handler):
    def emit(self, record):
        townsquare.Client.open(sys.argv[2]).close()
        print("handled", flush=True)
        raise LookupError("by the handler")
sys.unraisablehook = lambda unraisable: print(repr(unraisable.exc_value), flush=True)
logging.getLogger("townsquare").addHandler(Handler())
townsquare.Client.open(sys.argv[1]).close()
"""
    child = run_python(program, shared_folder(tmp_path / "shared"), tmp_path / "private")
    assert (child.returncode, child.stderr) == (0, "")
    assert child.stdout.splitlines()[-2:] == ["handled", "LookupError('by the handler')"]


def test_the_end_of_the_program_waits_for_a_handler_that_calls_the_library(tmp_path: Path) -> None:
    """`logging` waits at the end for the handler's lock, so the handler's call must return."""
    program = f"""{LOGGING}
import time
class Handler(logging.Handler):
    def emit(self, record):
        time.sleep(0.5)
        townsquare.Client.open(sys.argv[2]).close()
        print("handled", flush=True)
logging.getLogger("townsquare").addHandler(Handler())
townsquare.Client.open(sys.argv[1]).close()
"""
    child = run_python(program, shared_folder(tmp_path / "shared"), tmp_path / "private")
    assert (child.returncode, child.stderr) == (0, "")
    assert "handled" in child.stdout.splitlines()
