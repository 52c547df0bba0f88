"""One process of the load: writers, uploaders, readers and subscribers on one client. `failover.py` starts two.

Each thread writes what it knows as a line of JSON to the log of the process: a write with its begin, its end and its outcome,
each change that a subscription delivers, each error, each call that took long. Times are of the monotonic clock, which all
processes of the machine share. The judge compares the logs with the database.

The process obeys lines on its standard input: `quiet` ends writers and readers, `drain` ends the subscribers after the
markers. It also ends when the input ends, so it does not outlive the drill.
"""

import json
import os
import random
import sys
import threading
import time
import uuid

import townsquare

OPERATION_TIMEOUT = 30
"""The default of the option `operation_timeout`: no call may take longer."""
SLACK = 3
"""Seconds that a busy machine may add."""
LONG = 1
"""Calls longer than this are logged."""
ARRIVAL_PAUSE = 0.1
MOST_ARRIVALS = 100
DRAIN_WAIT = 60
JOIN_WAIT = 3 * OPERATION_TIMEOUT
MARKER = "marker"


def content(key, number):
    """The bytes of a file: small ones for the database, large ones for the folder. Anyone can make them again."""
    made = random.Random(f"{key} {number}")
    is_large = key.endswith("large") or key.endswith("rewrite") and number % 2
    return made.randbytes(made.randrange(70_000, 300_000) if is_large else made.randrange(1, 20_000))


class Log:
    """The log of the process: a line of JSON for each thing."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1, encoding="utf-8")
        self.lock = threading.Lock()

    def write(self, kind, /, **fields):
        """Writes one line."""
        line = json.dumps({"k": kind, **fields}, separators=(",", ":"))
        with self.lock:
            self.file.write(line + "\n")


class Load:
    """What the threads of the process share."""

    def __init__(self, plan):
        self.plan = plan
        self.name = plan["name"]
        self.log = Log(plan["log"])
        self.is_quiet = threading.Event()
        self.drain_by = None
        self.calls = {}
        self.longest = {}
        self.client = townsquare.Client.open(
            plan["data"], database_url=plan["url"], storage_url=plan["storage"], inline_file_limit=65_536,
            max_space_fidgets=10_000_000, catalog_api_key="",
        )
        self.service = self.client.as_service()
        self.anonymous = self.client.as_anonymous()
        self.session_lock = threading.Lock()
        self.user = None
        self.renew(None)
        # The last acknowledged row and file: (id or path, key, number). Readers must find them.
        self.last_row = None
        self.last_file = None

    def renew(self, old):
        """Signs the user in again after the handle `old` was refused."""
        with self.session_lock:
            if self.user is old:
                session = self.client.auth.create_session(self.plan["email"], self.plan["password"])
                self.user = self.client.as_user(session.access_token)

    def call(self, operation, function, *arguments, **options):
        """Makes a call and watches how long it takes. Returns the result, the error or None, the begin and the end."""
        begin = time.monotonic()
        self.calls[threading.get_ident()] = (operation, begin)
        user, result, failure = self.user, None, None
        try:
            result = function(*arguments, **options)
        except townsquare.Error as error:
            failure = error
        end = time.monotonic()
        del self.calls[threading.get_ident()]
        self.longest[operation] = max(self.longest.get(operation, 0), end - begin)
        if end - begin > LONG + options.get("timeout", 0):
            self.log.write("long", op=operation, b=begin, e=end, ok=failure is None)
        if failure is not None:
            about = {"kind": failure.kind, "code": failure.code, "text": str(failure)[:300]}
            self.log.write("error", op=operation, b=begin, e=end, **about)
            if failure.kind == "unauthorized":
                try:
                    self.renew(user)
                except townsquare.Error as error:
                    self.log.write("error", op="renew", b=end, e=time.monotonic(), kind=error.kind, code=error.code, text=str(error))
        return result, failure, begin, end

    def wrong(self, what, **fields):
        """Logs a broken promise."""
        self.log.write("wrong", what=what, t=time.monotonic(), **fields)


def write(load, operation, writer, number, key, function, *arguments, **options):
    """Makes a write and logs its outcome. Returns the result, or None after an error."""
    result, failure, begin, end = load.call(operation, function, *arguments, **options)
    fields = {"ok": failure is None, "code": getattr(failure, "code", None), "kind": getattr(failure, "kind", None)}
    load.log.write("write", op=operation, w=writer, n=number, id=key, b=begin, e=end, **fields)
    return result


def values(writer, number):
    """The content of a row: who wrote it, and a text."""
    return {"w": writer, "n": number, "text": f"{writer} {number} " * 8}


def write_fidgets(load, writer, number):
    """A row with an id of its own, so the library may repeat the call."""
    key = uuid.uuid4()
    row = write(load, "create_fidget", writer, number, str(key), load.user.fidgets.create_fidget, load.plan["space"], "drill",
                config=values(writer, number), id=key)
    if row is not None:
        load.last_row = (row.id, writer, number)


def write_without_ids(load, writer, number):
    """A row with an id of the library: the call must not be repeated after an unknown outcome."""
    write(load, "create_fidget", writer, number, None, load.user.fidgets.create_fidget, load.plan["space"], "drill",
          config=values(writer, number))


def write_many(load, writer, number):
    """Five rows: all or none."""
    rows = [{"type": "drill", "config": {**values(writer, number), "part": part}} for part in range(5)]
    write(load, "create_fidgets", writer, number, None, load.service.fidgets.create_fidgets, load.plan["space"], rows)


def write_spaces(load, writer, number):
    """A public space, which strangers see."""
    key = uuid.uuid4()
    write(load, "create_space", writer, number, str(key), load.service.spaces.create_space, f"{writer} {number}",
          is_public=True, id=key)


def update_row(load, writer, number):
    """A newer content of the same row."""
    write(load, "update_fidget", writer, number, load.plan["updated"], load.user.fidgets.update_fidget, load.plan["updated"],
          config=values(writer, number))


def upload(load, writer, number):
    """A new file."""
    path = f"drill/{writer}/{number}"
    made = write(load, "upload", writer, number, path, load.user.storage.upload, "assets", path, content(writer, number),
                 metadata={"w": writer, "n": str(number)})
    if made is not None:
        load.last_file = (path, writer, number)


def upload_again(load, writer, number):
    """A newer content of the same file, by turns small and large."""
    path = f"drill/{writer}/current"
    write(load, "upload", writer, number, path, load.user.storage.upload, "assets", path, content(writer, number),
          metadata={"w": writer, "n": str(number)})


WRITERS = {
    "rows": write_fidgets,
    "plain": write_without_ids,
    "many": write_many,
    "spaces": write_spaces,
    "updates": update_row,
    "small": upload,
    "large": upload,
    "rewrite": upload_again,
}


def keep_writing(load, writer, function):
    """Writes one thing after another: the next number after success and failure alike."""
    number = 0
    while not load.is_quiet.wait(load.plan["pause"]):
        number += 1
        function(load, writer, number)


def let_writes_arrive(load, writer):
    """Begins a write in each tenth of a second, whether earlier ones are done or not: as requests arrive at a server."""
    number, running = 0, []
    while not load.is_quiet.wait(ARRIVAL_PAUSE):
        running = [thread for thread in running if thread.is_alive()]
        if len(running) >= MOST_ARRIVALS:
            load.log.write("skipped")
            continue
        number += 1
        running.append(threading.Thread(target=write_fidgets, args=(load, writer, number), daemon=True))
        running[-1].start()
    for thread in running:
        thread.join(JOIN_WAIT)


def read_rows(load, _):
    """Reads the row that was acknowledged last: it must be there."""
    while not load.is_quiet.wait(load.plan["pause"]):
        if load.last_row is None:
            continue
        key, writer, number = load.last_row
        row, failure, begin, _end = load.call("get_fidget", load.user.fidgets.get_fidget, key)
        if row is not None and row.config != values(writer, number):
            load.wrong("a read gave another content", id=str(key), w=writer, n=number, b=begin)
        if failure is not None and failure.kind == "not_found":
            load.wrong("an acknowledged row was not found", id=str(key), w=writer, n=number, b=begin)


def read_pages(load, _):
    """Reads pages."""
    while not load.is_quiet.wait(load.plan["pause"] * 4):
        load.call("get_space_fidgets", load.user.fidgets.get_space_fidgets, load.plan["space"], 50)
        load.call("get_public_spaces", load.anonymous.spaces.get_public_spaces, 20)


def read_files(load, _):
    """Reads the file that was acknowledged last, and the file that changes: each whole."""
    while not load.is_quiet.wait(load.plan["pause"] * 2):
        if load.last_file is not None:
            path, writer, number = load.last_file
            data, failure, begin, _end = load.call("download", load.anonymous.storage.download, "assets", path)
            if data is not None and data != content(writer, number):
                load.wrong("a download gave other bytes", path=path, b=begin)
            if failure is not None and failure.kind == "not_found":
                load.wrong("an acknowledged file was not found", path=path, b=begin)


READERS = {"read-rows": read_rows, "read-pages": read_pages, "read-files": read_files}


class Subscriber:
    """One subscription, continued from its last cursor after each end. A refused cursor begins a new chain.

    The log has for each chain where it began and how it ended. Within a chain the changes must be complete.
    """

    def __init__(self, load, name, table, handle, row_filter=None):
        self.load, self.name, self.table, self.handle, self.filter = load, name, table, handle, row_filter
        self.chain = 0
        self.cursor = None
        self.has_marker = False

    def run(self):
        """Delivers until the marker has come, or the drill ends."""
        while not self.is_over():
            if self.cursor is None and not self.begin_chain():
                time.sleep(0.1)
                continue
            opened, failure, _, _ = self.load.call(
                "changes", self.handle().realtime.changes, table=self.table, filter=self.filter, since=self.cursor
            )
            if failure is None:
                with opened as stream:
                    failure = self.deliver(stream)
            if failure is not None:
                self.end(failure)

    def is_over(self):
        """Whether there is nothing to wait for any more."""
        return self.has_marker or (self.load.drain_by is not None and time.monotonic() > self.load.drain_by)

    def begin_chain(self):
        """Takes the cursor of now."""
        cursor, _, begin, end = self.load.call("cursor", self.handle().realtime.cursor)
        if cursor is None:
            return False
        self.chain += 1
        self.cursor = cursor
        self.load.log.write("chain", s=self.name, c=self.chain, b=begin, e=end)
        return True

    def deliver(self, stream):
        """Takes changes until the stream ends. Returns the error that ended it."""
        while not self.is_over():
            change, failure, _, _ = self.load.call("next", stream.next, timeout=1)
            if failure is not None:
                return failure
            if change is not None:
                self.take(change)
        return None

    def take(self, change):
        """Logs a change."""
        self.cursor = change.cursor
        row = change.new or change.old or {}
        about = row.get("config") or row.get("metadata") or {}
        if self.table == "spaces":
            about = dict(zip(("w", "n"), row.get("name", "").rsplit(" ", 1)))
        key = row.get("path") if self.table == "files" else row.get("id")
        if about.get("w") == MARKER:
            self.has_marker = True
        self.load.log.write(
            "change", s=self.name, c=self.chain, ev=change.event_type, id=key, w=about.get("w"), n=int(about.get("n") or 0),
            t=time.monotonic(), cu=change.cursor,
        )

    def end(self, failure):
        """Logs the end of a subscription, and decides how it goes on."""
        is_refused = failure.kind == "cursor_expired"
        about = {"kind": failure.kind, "code": failure.code, "text": str(failure)[:300]}
        self.load.log.write("ended", s=self.name, c=self.chain, t=time.monotonic(), cu=self.cursor, **about)
        if is_refused:
            self.cursor = None
        elif failure.kind not in ("unavailable", "unauthorized"):
            self.load.wrong("a subscription ended with an undocumented error", s=self.name, **about)
            self.cursor = None
        else:
            time.sleep(0.05)


class CallbackSubscriber(Subscriber):
    """The same with a callback: the library calls `take`."""

    def run(self):
        while not self.is_over():
            if self.cursor is None and not self.begin_chain():
                time.sleep(0.1)
                continue
            ended, reason = threading.Event(), []

            def on_close(error, ended=ended, reason=reason):
                reason.append(error)
                ended.set()

            subscription, failure, _, _ = self.load.call(
                "subscribe", self.handle().realtime.subscribe, self.name, self.take,
                table=self.table, filter=self.filter, since=self.cursor, on_close=on_close,
            )
            if failure is None:
                while not ended.wait(0.2) and not self.is_over():
                    pass
                subscription.unsubscribe()
                failure = reason[0] if reason else None
            if failure is not None:
                self.end(failure)


def subscribers(load):
    """The subscriptions of the process: by the service, by a user with a filter, and by a stranger."""
    own = f"space_id=eq.{load.plan['space']}"
    return [
        Subscriber(load, "fidgets", "fidgets", lambda: load.service),
        Subscriber(load, "own-fidgets", "fidgets", lambda: load.user, own),
        Subscriber(load, "files", "files", lambda: load.service),
        CallbackSubscriber(load, "spaces", "spaces", lambda: load.anonymous),
    ]


def watch_for_stuck_calls(load):
    """Logs each call that runs on after its deadline."""
    told = set()
    while True:
        time.sleep(1)
        for thread, call in list(load.calls.items()):
            if time.monotonic() - call[1] > OPERATION_TIMEOUT + SLACK and call not in told:
                told.add(call)
                load.wrong("a call runs on after its deadline", op=call[0], b=call[1], thread=thread)


def guarded(load, name, function, *arguments):
    """A thread that logs why it has failed: it hides what it finds otherwise."""
    def run():
        try:
            function(*arguments)
        except BaseException as error:
            load.wrong("a thread of the drill failed", thread=name, text=repr(error))
            raise

    return threading.Thread(target=run, name=name, daemon=True)


def end_threads(load, threads, limit):
    """Has writers and readers end. Tells the drill when they have, or when `limit` seconds for each are over."""
    load.is_quiet.set()
    for thread in threads:
        thread.join(limit)
        if thread.is_alive():
            load.wrong("a thread does not end", thread=thread.name)
    print("quiet", flush=True)


def main():
    """Runs the load of the plan that the first argument names."""
    with open(sys.argv[1], encoding="utf-8") as file:
        load = Load(json.load(file))

    listening = [guarded(load, subscriber.name, subscriber.run) for subscriber in subscribers(load)]
    working = [guarded(load, kind, keep_writing, load, f"{load.name}-{kind}", WRITERS[kind]) for kind in WRITERS]
    working.append(guarded(load, "arrivals", let_writes_arrive, load, f"{load.name}-arrivals"))
    working += [guarded(load, kind, READERS[kind], load, kind) for kind in READERS]
    guarded(load, "watch", watch_for_stuck_calls, load).start()
    for thread in listening:
        thread.start()
    time.sleep(1)
    for thread in working:
        thread.start()
    print("running", flush=True)
    for line in sys.stdin:
        if line.strip() == "quiet":
            end_threads(load, working, JOIN_WAIT)
        elif line.strip() == "drain":
            load.drain_by = time.monotonic() + DRAIN_WAIT
            for thread in listening:
                thread.join(DRAIN_WAIT + OPERATION_TIMEOUT)
                if thread.is_alive():
                    load.wrong("a subscriber does not end", thread=thread.name)
            load.log.write("longest", calls=load.longest)
            print("drained", flush=True)
            break
    # Not by returning: a call that hangs must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
