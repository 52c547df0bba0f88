#!/usr/bin/env python3
"""Runs processes of an older commit beside processes of this one on one database, under load.

An older process makes the database and writes. A newer one opens it, which migrates it, while the older one writes. A second older
process opens the migrated database. All of them write and follow the change feed. At the end each acknowledged write must be there,
each process must have got each space that was acknowledged since it opened once, and the check of both builds must find no error.
`README.md` beside this file says more.
"""

import argparse
import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = pathlib.Path(__file__).with_name("older_build") / "main.rs"
DELAY = 1
"""Seconds after which a line of a process has certainly been read."""
MANIFEST = """
[package]
name = "older-build"
version = "0.0.0"
edition = "2024"

[[bin]]
name = "older-build"
path = "{source}"

[dependencies]
townsquare = {{ path = "{core}", features = ["postgres"] }}

[workspace]
"""


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the older commit, whose migrations are the first ones of this one")
    parser.add_argument("--seconds", type=float, default=10, help="of each step (default 10)")
    parser.add_argument("--database", help="the URL of a new PostgreSQL database; by default a SQLite file")
    parser.add_argument("--target", type=pathlib.Path, default=ROOT / "target" / "older-build", help="the folder of the builds")
    return parser.parse_args()


def build(core, folder, target):
    """Compiles the program with the library in `core`, and returns its path."""
    folder.mkdir()
    (folder / "Cargo.toml").write_text(MANIFEST.format(source=SOURCE, core=core))
    # The same versions of the dependencies as the library has.
    shutil.copy(core.parent / "Cargo.lock", folder)
    subprocess.run(["cargo", "build", "--manifest-path", folder / "Cargo.toml", "--target-dir", target], check=True)
    program = folder / "older-build"
    shutil.copy(target / "debug" / "older-build", program)
    return program


class Process:
    """A process that writes and follows the feed. Appends what it says to `events`, with the time and its name."""

    def __init__(self, name, program, place, events):
        self.name, self.is_open = name, threading.Event()
        command = [program, "work", *place, name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, args=[events])
        self.reader.start()

    def read(self, events):
        """Runs until the process ends."""
        for line in self.process.stdout:
            events.append((time.monotonic(), self.name, line.strip()))
            if line == "OPEN\n":
                self.is_open.set()

    def wait_until_open(self):
        """Waits until the process has the database."""
        if not self.is_open.wait(60):
            sys.exit(f"{self.name} does not open the database")

    def is_whole(self):
        """Ends the process, and returns whether it came to its end."""
        self.process.stdin.close()
        self.reader.join()
        return self.process.wait() == 0


def complaints_of_feed(name, events):
    """What the feed of the process `name` lacks or repeats."""
    opened = min(when for when, of, line in events if of == name and line == "OPEN")
    seen = collections.Counter(line.split()[1] for _, of, line in events if of == name and line.startswith("SEEN "))
    acknowledged = {line.split()[1] for when, _, line in events if line.startswith("SPACE ") and when > opened + DELAY}
    missing = [space for space in acknowledged if space not in seen]
    return [f"{name} missed {space}" for space in missing] + [
        f"{name} got {space} {count} times" for space, count in seen.items() if count > 1
    ]


def complaints_of_check(name, program, place, writes):
    """What the build `name` does not find, and what its check finds."""
    lines = "\n".join(writes) + "\n"
    done = subprocess.run([program, "check", *place], input=lines, stdout=subprocess.PIPE, text=True, check=False)
    said = done.stdout.splitlines()
    if done.returncode != 0 or said[-1:] != ["END"]:
        said.append("the check failed")
    return [f"{name}: {line}" for line in said if line != "END"]


def run(options, folder):
    """Runs the drill in a folder, and returns the broken promises."""
    older_tree = folder / "older"
    subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", older_tree, options.commit], check=True)
    try:
        older = build(older_tree / "core", folder / "build-older", options.target)
    finally:
        subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", older_tree], check=True)
    newer = build(ROOT / "core", folder / "build-newer", options.target)
    if older.read_bytes() == newer.read_bytes():
        sys.exit("both programs are the same build")
    data = folder / "data"
    data.mkdir()
    place = [options.database or f"sqlite:{data / 'townsquare.db'}", str(data)]
    events, processes = [], []
    for name, program in [("older", older), ("newer", newer), ("older-again", older)]:
        processes.append(Process(name, program, place, events))
        processes[-1].wait_until_open()
        time.sleep(options.seconds)
    # Ends the writers of all of them before the first feed is quiet.
    for process in processes:
        process.process.stdin.close()
    complaints = [f"{process.name} failed" for process in processes if not process.is_whole()]
    writes = [line for _, _, line in events if line.startswith(("SPACE ", "FILE "))]
    for process in processes:
        complaints += complaints_of_feed(process.name, events)
        count = sum(of == process.name and line.startswith(("SPACE ", "FILE ")) for _, of, line in events)
        print(f"{process.name}: {count} writes acknowledged")
        if count == 0:
            complaints.append(f"{process.name} wrote nothing")
    for name, program in [("older", older), ("newer", newer)]:
        complaints += complaints_of_check(name, program, place, writes)
    return complaints


def main():
    """Runs the drill and prints its verdict."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="townsquare-older-") as folder:
        complaints = run(options, pathlib.Path(folder))
    for complaint in complaints[:50]:
        print(complaint)
    print(f"{len(complaints)} promises were broken" if complaints else "all promises were kept")
    return 1 if complaints else 0


if __name__ == "__main__":
    os.environ.pop("CATALOG_API_KEY", None)
    sys.exit(main())
