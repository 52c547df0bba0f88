"""What the drills share: the run of a drill, the processes of its load, and PostgreSQL's programs.

PostgreSQL refuses to run as root: a drill that root starts runs the servers as the user `postgres`; any other user runs them as itself.
"""

import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Missing(Exception):
    """A program, a port or a right that the drill needs. The text says what to install."""


class Process:
    """A process of the load, and what its writers were told so far."""

    program = "workload.py"

    def __init__(self, plan, folder):
        path = folder / f"plan-{plan['name']}.json"
        path.write_text(json.dumps(plan))
        self.name, self.log = plan["name"], folder / f"log-{plan['name']}.jsonl"
        self.log.touch()
        self.tail = open(self.log, encoding="utf-8")
        self.rest = ""
        self.acknowledged = {}
        self.errors = open(folder / f"output-{self.name}.log", "wb")
        command = [sys.executable, str(pathlib.Path(__file__).with_name(self.program)), str(path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True
        )

    def expect(self, line):
        """Waits for a line of the process."""
        got = self.process.stdout.readline().strip()
        if got != line:
            raise RuntimeError(f"The process {self.name} of the load has failed ({got!r}); see output-{self.name}.log, with --keep")

    def say(self, line):
        """Sends a line to the process."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def follow(self):
        """Reads on in the log, and notes each record."""
        text = self.rest + self.tail.read()
        *lines, self.rest = text.split("\n")
        for line in lines:
            self.note(line)

    def note(self, line):
        """Notes the time of an acknowledged write, for its writer."""
        if line.startswith('{"k":"write"'):
            record = json.loads(line)
            times = self.acknowledged.setdefault(record["w"], [])
            if record["ok"]:
                times.append(record["e"])

    def first_after(self, at):
        """The first acknowledged write after a time, of each writer; None for a writer without one."""
        return {writer: next((time for time in times if time > at), None) for writer, times in self.acknowledged.items()}

    def forget(self):
        """Forgets the times of earlier rounds."""
        for times in self.acknowledged.values():
            times.clear()

    def kill(self):
        """Ends the process at once."""
        self.process.kill()
        self.process.wait()


def run(options, name, make, about):
    """Makes a drill and runs it. Returns the exit code. `name` is of its folder; `about` is printed first, after the version.

    `make(options, folder)` returns a drill: `prepare`, `round` for each number, `finish`, which returns the verdict, `table`, `is_late`
    and `stop`.
    """
    try:
        import townsquare
    except ImportError:
        say(f"MISSING: the package townsquare for {sys.executable}. Install it: pip install ./python")
        return 3

    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"townsquare-{name}-"))
    # The servers may run as another user, and have a folder of their own in it.
    folder.chmod(0o711)
    drill = None
    try:
        drill = make(options, folder)
        say(f"townsquare {townsquare.__version__}, {options.rounds} faults, seed {options.seed}, {about}")
        drill.prepare()
        for number in range(1, options.rounds + 1):
            drill.round(number)
        verdict = drill.finish()
        say("\n" + drill.table() + "\n\n" + verdict.report())
        return 1 if verdict.broken else 2 if drill.is_late(verdict) else 0
    except Missing as missing:
        say(f"MISSING: {missing}")
        return 3
    except KeyboardInterrupt:
        say("Interrupted: ending the servers")
        return 130
    finally:
        # A second Ctrl-C must not leave servers behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if drill:
            drill.stop()
        if options.keep:
            say(f"The folder is {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def say(text):
    """Prints a line at once."""
    print(text, flush=True)


def seconds(value):
    """A time for the table."""
    return "  never" if value is None else f"{value:6.2f}s"


def next_kind(drill, number):
    """The kind of a fault: each kind once, in a random order, and then again."""
    kinds = drill.options.kinds
    if (number - 1) % len(kinds) == 0:
        drill.order = drill.random.sample(kinds, len(kinds))
    return drill.order[(number - 1) % len(kinds)]


def find_postgres(missing):
    """The folder of PostgreSQL's programs. Adds to `missing` what is not there."""
    binaries = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    postgres = binaries[-1] if binaries else shutil.which("postgres")
    if not postgres:
        missing.append("  postgres: apt-get install postgresql")
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            missing.append("  the user postgres: apt-get install postgresql, or start the drill as another user than root")
    return str(pathlib.Path(postgres).resolve().parent) if postgres else None


def server_user():
    """The user of the servers. None for the user of the drill."""
    return "postgres" if os.geteuid() == 0 else None


def spawn(log, command, **environment):
    """Starts a program as the user of the servers, with its output in a file."""
    user = server_user()
    become = {"user": user, "group": user, "extra_groups": []} if user else {}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", **environment}
    with open(log, "ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", env=environment, start_new_session=True, **become,
        )


def psql(programs, port, password, statement, database="postgres", timeout=30):
    """Runs a statement as the superuser. Returns the text of the answer, or None if it failed."""
    url = f"host=127.0.0.1 port={port} user=postgres dbname={database} connect_timeout=2"
    command = [f"{programs}/psql", url, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement]
    environment = {**os.environ, "PGPASSWORD": password}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def is_used(port):
    """Whether somebody listens at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def require_free(ports):
    """Raises `Missing` if a port is in use."""
    for port in filter(is_used, ports):
        raise Missing(f"Port {port} is in use. Choose others by --port, or end the program that listens there.")


def wait_for(is_reached, limit, complaint, process=None):
    """Waits until `is_reached()`. Raises with the complaint after `limit` seconds, or when the process has ended."""
    deadline = time.monotonic() + limit
    while not is_reached():
        has_ended = process is not None and process.poll() is not None
        if has_ended or time.monotonic() > deadline:
            text = complaint() if callable(complaint) else complaint
            raise RuntimeError(f"{text} ({'it has ended' if has_ended else f'{limit} s'}); see the logs, with --keep")
        time.sleep(0.1)


def send(process, number):
    """Sends a signal to a process that may have ended."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass
