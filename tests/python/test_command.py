"""The command of the package, `python -m townsquare`: it is the program `townsquare`, whose own tests are those of cli/tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import townsquare
from conftest import wait_until
from townsquare import Client

SAMPLE = ["--set", "catalog_url=sample:"]


def start(*arguments: str, folder: Path, **options: int) -> subprocess.Popen[str]:
    """Starts the command in a folder, without options from the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOWNSQUARE_")}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    if os.name != "nt":
        # A background job of a script ignores SIGINT, and so would its children.
        pipes["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen([sys.executable, "-m", "townsquare", *arguments], cwd=folder, env=environment, text=True, **pipes)


def run(*arguments: str, folder: Path) -> tuple[int, str, str]:
    """The exit code, the standard output and the standard error of the command."""
    process = start(*arguments, folder=folder)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def catches_sigterm(pid: int) -> bool:
    """Whether a process has a handler of SIGTERM: the command has one, and Python has none."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & (1 << (signal.SIGTERM - 1)))


def test_the_command_says_its_version_and_its_usage(tmp_path: Path) -> None:
    assert run("--version", folder=tmp_path) == (0, f"townsquare {townsquare.__version__}\n", "")
    code, out, err = run("--help", folder=tmp_path)
    assert (code, err) == (0, "") and "Usage: townsquare" in out and "130  interrupted" in out
    code, out, err = run("serch", folder=tmp_path)
    assert (code, out) == (2, "") and "search" in err


def test_data_is_on_the_output_and_a_failure_has_two_lines_and_a_code(tmp_path: Path) -> None:
    code, out, err = run("search", "harbour ches", "--json", *SAMPLE, folder=tmp_path)
    assert (code, err) == (0, "")
    assert json.loads(out)["apps"][0]["name"] == "Harbor Chess"
    code, out, err = run("check", "--data-dir", "a\u0308-missing", folder=tmp_path)
    assert (code, out) == (4, "")
    assert [line.split(":")[0] for line in err.splitlines()] == ["townsquare", "try"]


def test_the_command_and_a_client_use_one_database(tmp_path: Path) -> None:
    with Client.open(tmp_path / "town") as client:
        client.auth.sign_up("ann@town.example", "correct horse")
        code, out, err = run("users", "list", "--json", "--data-dir", "town", folder=tmp_path)
        assert code == 0, err
        assert [user["email"] for user in json.loads(out)["users"]] == ["ann@town.example"]
        code, out, err = run("-v", "check", "--full", "--data-dir", "town", folder=tmp_path)
        assert (code, err.count("Traceback")) == (0, 0), err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals, and /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_serve_cleanly_and_another_command_at_once(tmp_path: Path, number: signal.Signals) -> None:
    serve = start("serve", "--listen", "127.0.0.1:0", "--data-dir", "town", *SAMPLE, folder=tmp_path)
    assert serve.stdout is not None
    line = serve.stdout.readline()
    url = next(word for word in line.split() if word.startswith("http://"))
    with urllib.request.urlopen(url.rstrip("/") + "/health", timeout=30) as response:
        assert json.load(response) == {"status": "ok"}
    serve.send_signal(number)
    _, err = serve.communicate(timeout=60)
    assert (serve.returncode, "Traceback" in err) == (0, False), err

    add = start("users", "add", "ann@town.example", "--data-dir", "town", folder=tmp_path, stdin=subprocess.PIPE)
    # It waits for a password, and receives the signals from before then on.
    wait_until(lambda: catches_sigterm(add.pid))
    add.send_signal(number)
    _, err = add.communicate(timeout=60)
    assert (add.returncode, "Traceback" in err) == (130, False), err


def test_a_closed_pipe_is_no_failure(tmp_path: Path) -> None:
    trending = start("trending", "--limit", "40", *SAMPLE, folder=tmp_path)
    assert trending.stdout is not None and trending.stderr is not None
    trending.stdout.close()
    assert (trending.stderr.read(), trending.wait(timeout=60)) == ("", 0)
