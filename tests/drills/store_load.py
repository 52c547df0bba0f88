"""One process of the load of `store.py`: writers and readers of files on one client.

Each thread logs what it knows as lines of JSON: a write at its begin and at its end, what a read has found, each error. A write
without an end was running when its process was killed. Times are of the monotonic clock, which all processes of the machine
share. `store_judge.py` compares the logs with the files. Every file names its writer in its first line, with a digest of the
rest, so each read shows whether the file is whole. The line `quiet` on the input
ends the threads, and `end` the client and the process, which also ends when the input ends.
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import sys
import threading
import time

import townsquare
from workload import Log, end_threads, guarded, keep_writing

BUCKET = "assets"
SMALL, MIDDLE, LARGE = 20_000, 200 << 10, 10 << 20
INLINE_LIMIT = 65_536
LARGE_PATHS = 4
KEPT = 40
"""How many of its files a writer keeps."""
JOIN_WAIT = 150


def content(writer, number, size):
    """The bytes of a file: a line that names the writer, the number, the size and the digest, then random bytes."""
    body = random.Random(f"{writer} {number}").randbytes(size)
    return f"{writer} {number} {size} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def token(data):
    """Who wrote these bytes, as `[writer, number]`. None if they are not those of one write."""
    try:
        line, body = data.split(b"\n", 1)
        writer, number, size, digest = line.decode().split(" ")
    except ValueError:
        return None
    is_whole = len(body) == int(size) and hashlib.sha256(body).hexdigest() == digest
    return [writer, int(number)] if is_whole else None


class Load:
    """What the threads of the process share."""

    def __init__(self, plan):
        self.plan, self.name = plan, plan["name"]
        self.log = Log(plan["log"])
        self.is_quiet = threading.Event()
        self.lock = threading.Lock()
        self.count = 0
        self.kept = {}
        """Files of this process that are there and stay as they are for now: path -> (size, token)."""
        self.client = townsquare.Client.open(
            plan["data"], database_url=plan["url"], storage_url=plan["storage"], inline_file_limit=INLINE_LIMIT, catalog_api_key="",
        )
        self.files = self.client.as_service().storage

    def begin(self, operation, changes):
        """Logs the begin of a write. `changes` has the token of each path after it, None for no file. Returns its id."""
        with self.lock:
            self.count += 1
            key = f"{self.name}-{self.count}"
        self.log.write("begin", i=key, op=operation, changes=changes, b=time.monotonic())
        return key

    def write(self, operation, changes, function, *arguments, **options):
        """Makes a write and logs it. Returns the result, or the error."""
        key = self.begin(operation, changes)
        failure, result = None, None
        base = options.get("if_match")
        try:
            result = function(BUCKET, *arguments, **options)
        except townsquare.Error as error:
            failure = error
        about = {"etag": getattr(result, "etag", None), "base": base}
        if failure is not None:
            about.update(code=failure.code, kind=failure.kind, text=str(failure)[:300])
        self.log.write("end", i=key, e=time.monotonic(), ok=failure is None, **about)
        return result if failure is None else failure

    def read(self, operation, path, function, *arguments, **options):
        """Makes a read that finds a file or not. Logs the error. Returns the begin, the end, the result and whether it is known."""
        begin, result, is_known = time.monotonic(), None, True
        try:
            result = function(*arguments, **options)
        except townsquare.Error as error:
            is_known = error.kind == "not_found"
            if not is_known:
                about = {"kind": error.kind, "code": error.code, "text": str(error)[:300]}
                self.log.write("error", op=operation, path=path, b=begin, e=time.monotonic(), **about)
        end = time.monotonic()
        self.log.write("call", op=operation, b=begin, e=end)
        return begin, end, result, is_known

    def download(self, path):
        """Downloads a whole file, and logs what it found."""
        begin, end, data, is_known = self.read("download", path, self.files.download, BUCKET, path)
        if is_known:
            self.found(path, begin, end, data)

    def found(self, path, begin, end, data):
        """Logs what a read of a whole file has found."""
        found = None if data is None else token(data)
        if data is not None and found is None:
            self.wrong("a read gave torn bytes", path=path, b=begin, size=len(data), head=repr(data[:100]))
            return
        self.log.write("read", path=path, b=begin, e=end, value=found)

    def wrong(self, what, **fields):
        """Logs a broken promise."""
        self.log.write("wrong", what=what, t=time.monotonic(), **fields)


def is_failure(result):
    """Whether a write has failed."""
    return isinstance(result, townsquare.Error)


def upload(load, writer, number, path, size, **options):
    """Writes a file. The source of large files is an iterator, so that the library sends them in parts as they come."""
    data = content(writer, number, size)
    source = data if size < LARGE else (data[at:at + (1 << 20)] for at in range(0, len(data), 1 << 20))
    metadata = {"w": writer, "n": str(number)}
    return load.write("upload", {path: [writer, number]}, load.files.upload, path, source, metadata=metadata, **options)


def write_new(load, writer, number, size):
    """A new file; an old one is deleted. Sometimes a file that may or may not be there is deleted: then it must not appear."""
    path = f"drill/{writer}/{number:06}"
    made = upload(load, writer, number, path, size)
    if not is_failure(made):
        load.kept[path] = (size, writer, number)
    elif made.code == "08007" and number % 2:
        load.write("delete", {path: None}, load.files.delete, path)
    old = f"drill/{writer}/{number - KEPT:06}"
    if load.kept.pop(old, None):
        load.write("delete", {old: None}, load.files.delete, old)


def write_small(load, writer, number):
    """A new file in the database."""
    write_new(load, writer, number, 1 + number * 997 % SMALL)


def write_middle(load, writer, number):
    """A new file in the store, in one request."""
    write_new(load, writer, number, MIDDLE)


def write_large(load, writer, number):
    """A file in parts, over an older one of this process."""
    upload(load, writer, number, f"drill/{writer}/{number % LARGE_PATHS}", LARGE)
    load.is_quiet.wait(1)


def write_shared(load, writer, number):
    """A path that all processes overwrite, by turns in the database and in the store."""
    upload(load, writer, number, "drill/shared/current", LARGE if number % 12 == 0 else MIDDLE if number % 2 else SMALL)


def swap_shared(load, writer, number):
    """A path that all processes overwrite, each only the version that it has read: no update may be lost."""
    path = "drill/shared/swapped"
    _, _, found, is_known = load.read("stat", path, load.files.stat, BUCKET, path)
    if is_known:
        size = MIDDLE if number % 3 else SMALL
        upload(load, writer, number, path, size, if_match=found.etag if found else "")


def juggle(load, writer, number):
    """Uploads, copies, renames and deletes."""
    first, second, third = (f"drill/{writer}/{step}/{number:06}" for step in ("first", "copy", "renamed"))
    size, made = (MIDDLE, SMALL, MIDDLE)[number % 3], [writer, number]
    if is_failure(upload(load, writer, number, first, size)):
        return
    if not is_failure(load.write("copy", {second: made}, load.files.copy, first, second)):
        moved = load.write("move", {second: None, third: made}, load.files.move, second, third)
        if is_failure(moved) and moved.kind == "not_found":
            load.wrong("an acknowledged copy was not found", path=second)
    load.write("delete", {first: None}, load.files.delete, first)
    old = f"drill/{writer}/renamed/{number - KEPT // 2:06}"
    load.write("delete", {old: None}, load.files.delete, old)


WRITERS = {
    "small": write_small, "middle": write_middle, "large": write_large, "shared": write_shared, "swap": swap_shared,
    "juggle": juggle,
}


def pick(load, chosen):
    """One of the files that are there, by preference a new one. None if there is none."""
    files = list(load.kept.items())
    return chosen.choice(files[-5:] if chosen.random() < 0.7 else files) if files else None


def read_files(load):
    """Reads files that this process was told are written, whole and in ranges, and the ones that are overwritten."""
    chosen, turn = random.Random(load.name), 0
    while not load.is_quiet.wait(load.plan["pause"]):
        turn += 1
        if turn % 3 == 0:
            load.download(chosen.choice(("drill/shared/current", "drill/shared/swapped")))
        elif turn % 10 == 1:
            load.download(f"drill/{load.name}-large/{chosen.randrange(LARGE_PATHS)}")
        elif file := pick(load, chosen):
            load.download(file[0])


def read_ranges(load):
    """Reads ranges, also of the large files through a reader that seeks."""
    chosen = random.Random(f"{load.name} ranges")
    while not load.is_quiet.wait(load.plan["pause"] * 2):
        file = pick(load, chosen)
        if file is None:
            continue
        path, (size, writer, number) = file
        start = chosen.randrange(size)
        end = start + chosen.randrange(1, 70_000)
        begin, _, data, _ = load.read("range", path, load.files.download, BUCKET, path, range=(start, end))
        if data is not None and data != content(writer, number, size)[start:end]:
            load.wrong("a range has other bytes", path=path, b=begin, start=start, end=end)


def list_files(load):
    """Lists the newest files: those that this process was told are written must be there."""
    while not load.is_quiet.wait(load.plan["pause"] * 5):
        for kind in ("small", "middle"):
            prefix = f"drill/{load.name}-{kind}/"
            expected = {path: value for path, value in list(load.kept.items()) if path.startswith(prefix)}
            begin, _, found, is_known = load.read("list", prefix, load.files.list, BUCKET, prefix, 1000)
            if is_known and (missing := expected.keys() & load.kept.keys() - {info.path for info in found}):
                load.wrong("an acknowledged file is not in the list", paths=sorted(missing)[:3], b=begin)


def export(load):
    """Writes all files out from time to time, or makes a backup where the database is SQLite. Each file must be whole."""
    folder = pathlib.Path(load.plan["data"]).with_name(f"export-{load.name}")
    while not load.is_quiet.wait(load.plan["export"]):
        begin, _, _, is_done = load.read("export", "", load.files.export_files, folder / "files")
        for path in (folder / "files").rglob("*") if is_done else ():
            if path.is_file() and token(path.read_bytes()) is None:
                load.wrong("an export has torn bytes", path=str(path.relative_to(folder)), b=begin)
        if load.plan["url"] is None:
            load.read("backup", "", load.client.backup, folder / "backup.db")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()


READERS = (read_files, read_ranges, list_files)


def main():
    """Runs the load of the plan that the first argument names."""
    with open(sys.argv[1], encoding="utf-8") as file:
        load = Load(json.load(file))

    working = [guarded(load, kind, keep_writing, load, f"{load.name}-{kind}", function) for kind, function in WRITERS.items()]
    working += [guarded(load, function.__name__, function, load) for function in READERS]
    if load.plan["export"]:
        pathlib.Path(load.plan["data"]).with_name(f"export-{load.name}").mkdir()
        working.append(guarded(load, "export", export, load))
    for thread in working:
        thread.start()
    print("running", flush=True)
    for line in sys.stdin:
        if line.strip() == "quiet":
            end_threads(load, working, JOIN_WAIT)
        elif line.strip() == "end":
            load.client.close()
            print("ended", flush=True)
            break
    # Not by returning: a call that hangs must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
