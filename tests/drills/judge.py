"""Compares what the processes of the load were told with what the database has, and with what each subscriber got."""

import collections
import concurrent.futures
import json
import random

import townsquare
from workload import MARKER, OPERATION_TIMEOUT, SLACK, content, values

REPEATED = ("updates", "rewrite")
"""Writers that write the same row or file again and again."""
UNORDERED = "arrivals"
"""The writer with calls that run at the same time: their commits have no known order."""
EXAMPLES = 5
REPLAYS = 40


class Records:
    """The logs of the processes."""

    def __init__(self, paths):
        self.writes = {}
        """(writer, number) of each write: (operation, row or path, is acknowledged, code, begin, end)."""
        self.chains = collections.defaultdict(list)
        """(process, subscription): its chains in order."""
        self.wrong, self.errors, self.long, self.ends = [], collections.Counter(), [], collections.Counter()
        self.longest = collections.Counter()
        self.skipped = 0
        for process, path in paths:
            self.read(process, path)

    def read(self, process, path):
        """Reads the log of a process."""
        with open(path, encoding="utf-8") as file:
            for record in map(json.loads, file):
                kind = record.pop("k")
                if kind == "write":
                    fields = ("op", "id", "ok", "code", "b", "e")
                    self.writes[record["w"], record["n"]] = tuple(record[field] for field in fields)
                elif kind == "chain":
                    self.chains[process, record["s"]].append(Chain(record["b"], record["e"]))
                elif kind == "change":
                    change = (record["w"], record["n"], record["id"], record["ev"], record["t"], record["cu"])
                    self.chains[process, record["s"]][record["c"] - 1].changes.append(change)
                elif kind == "ended":
                    self.ends[record["kind"]] += 1
                    if record["kind"] == "cursor_expired":
                        chain = self.chains[process, record["s"]][record["c"] - 1]
                        chain.is_refused, chain.refused_at, chain.refused = True, record["t"], record["cu"]
                elif kind == "wrong":
                    self.wrong.append({"process": process, **record})
                elif kind == "error":
                    self.errors[f"{record['op']}: {record['kind']} {record['code'] or '-'}"] += 1
                elif kind == "long":
                    self.long.append((record["e"] - record["b"], record["op"], record["b"], process))
                elif kind == "longest":
                    for operation, seconds in record["calls"].items():
                        self.longest[operation] = max(self.longest[operation], seconds)
                elif kind == "skipped":
                    self.skipped += 1


class Chain:
    """The changes that a subscription got since a fresh cursor, over any number of continuations."""

    def __init__(self, begin, end):
        self.begin, self.end = begin, end
        self.changes = []
        self.is_refused, self.refused_at, self.refused = False, None, None


class Stored:
    """What the database has at the end, read through the library: each row and file as writer, number and key."""

    def __init__(self, client, spaces):
        service = client.as_service()
        self.fidgets = {}
        """Key of a row: (process, writer, number, part)."""
        self.wrong = []
        for process, space in spaces.items():
            page = service.fidgets.get_space_fidgets(space, 1000)
            while page:
                for row in page:
                    config = dict(row.config or {})
                    part = config.pop("part", 0)
                    if config.get("w") == MARKER or "n" not in config:
                        continue
                    if config != values(config["w"], config["n"]):
                        self.wrong.append(f"the row {row.id} has the content {row.config}")
                    self.fidgets[str(row.id)] = (process, config["w"], config["n"], part)
                page = service.fidgets.get_space_fidgets(space, 1000, after=page[-1])
        self.spaces = {}
        page = service.spaces.list_spaces(1000)
        while page:
            for row in page:
                writer, _, number = row.name.rpartition(" ")
                if writer and writer != MARKER:
                    self.spaces[str(row.id)] = (writer, int(number))
            page = service.spaces.list_spaces(1000, after=page[-1])
        self.files = {}
        infos = [info for info in service.storage.iter("assets", "drill/", 1000) if info.metadata.get("w") != MARKER]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for info, is_right in zip(infos, pool.map(lambda info: self.is_right(service, info), infos)):
                if not is_right:
                    self.wrong.append(f"the file {info.path} has not the bytes of its metadata {info.metadata}")
                self.files[info.path] = (info.metadata["w"], int(info.metadata["n"]))

    @staticmethod
    def is_right(service, info):
        """Whether a file has the bytes that its metadata name."""
        try:
            data = service.storage.download("assets", info.path)
        except townsquare.Error:
            return False
        return data == content(info.metadata["w"], int(info.metadata["n"]))

    def table(self, name, process):
        """The rows that a subscription sees, as (writer, number, key), without those that are written again."""
        if name == "spaces":
            rows = {(writer, number, key) for key, (writer, number) in self.spaces.items()}
        elif name == "files":
            rows = {(writer, number, key) for key, (writer, number) in self.files.items()}
        else:
            rows = {
                (writer, number, key)
                for key, (owner, writer, number, _part) in self.fidgets.items()
                if name == "fidgets" or owner == process
            }
        return {row for row in rows if not is_repeated(row[0])}


def is_repeated(writer):
    """Whether the writer writes the same row or file again."""
    return writer.endswith(REPEATED)


class Judge:
    """Collects what is broken: a headline, how often, and examples with the time of each."""

    def __init__(self, records, stored, losses, name_time):
        """`losses` are spans in which acknowledged commits may be lost: none with synchronous replication."""
        self.records, self.stored, self.losses, self.name_time = records, stored, losses, name_time
        self.broken = collections.defaultdict(list)
        self.counts = collections.Counter()
        self.surprises = []
        """Writes that are there although their error was not 08007."""

    def blame(self, headline, example, at=None):
        """Notes that a promise was broken."""
        self.broken[headline].append(f"{example}{'' if at is None else f' ({self.name_time(at)})'}")

    def may_be_lost(self, begin, end):
        """Whether a write of this time may be lost."""
        return any(begin < until and end > since for since, until in self.losses)

    def run(self):
        """Judges everything. Returns whether all promises were kept."""
        for text in self.stored.wrong:
            self.blame("rows or files with a wrong content", text)
        for record in self.records.wrong:
            at = record.get("b") or record.get("t")
            if "acknowledged" in record["what"] and self.may_be_lost(at - 60, at):
                self.counts["reads that missed a row which a failover lost"] += 1
            else:
                self.blame(record["what"], {key: value for key, value in record.items() if key != "what"}, at)
        self.judge_writes()
        for (process, name), chains in self.records.chains.items():
            self.judge_subscription(process, name, chains)
        for seconds, operation, begin, process in self.records.long:
            if seconds > OPERATION_TIMEOUT + SLACK:
                self.blame("calls longer than their deadline", f"{operation} in {process}: {seconds:.1f} s", begin)
        return not self.broken

    def judge_writes(self):
        """Looks for each write."""
        rows = collections.Counter((writer, number) for _, writer, number, _ in self.stored.fidgets.values())
        parts = collections.Counter(value[1:] for value in self.stored.fidgets.values())
        for (writer, number, part), times in parts.items():
            if times > 1:
                self.blame("writes that happened twice", f"{writer} {number} part {part}: {times} times")
        rows.update(self.stored.spaces.values())
        rows.update(self.stored.files.values())
        latest = {writer: number for writer, number in rows if is_repeated(writer)}
        for (writer, number), (operation, key, is_told, code, begin, end) in self.records.writes.items():
            expected = 5 if operation == "create_fidgets" else 1
            found = expected if is_repeated(writer) and latest.get(writer, 0) >= number else rows[writer, number]
            self.counts["acknowledged writes" if is_told else "failed writes"] += 1
            if not is_told:
                name = "not there" if found == 0 else "there or replaced" if is_repeated(writer) else "there"
                self.counts[f"failed writes, {'unknown outcome (08007)' if code == '08007' else 'other errors'}: {name}"] += 1
                if found and code != "08007" and not is_repeated(writer):
                    self.surprises.append(f"{operation} {writer} {number} failed with {code}, and is there ({self.name_time(end)})")
            if found not in (0, expected):
                self.blame("writes that happened in part", f"{writer} {number}: {found} of {expected} rows", begin)
            elif is_told and found == 0:
                if self.may_be_lost(begin, end):
                    self.counts["acknowledged writes lost by the failovers"] += 1
                else:
                    self.blame("acknowledged writes lost", f"{operation} {writer} {number}, {key}", end)

    def judge_subscription(self, process, name, chains):
        """Compares the chains of a subscription with the rows."""
        rows, writes = self.stored.table(name, process), self.records.writes
        writers = {"spaces": ("spaces",), "files": ("small", "large", "rewrite")}
        writers = writers.get(name, ("rows", "plain", "many", "updates", "arrivals"))
        again = {
            (writer, number, key)
            for (writer, number), (_, key, is_told, _, begin, end) in writes.items()
            if is_repeated(writer) and writer.endswith(writers) and is_told and not self.may_be_lost(begin, end)
            and (name != "own-fidgets" or writer.startswith(f"{process}-"))
        }
        committed = rows | again
        label = f"{name} in {process}"
        for index, chain in enumerate(chains):
            self.judge_chain(label, chain, committed, index == len(chains) - 1)
        self.counts["changes delivered"] += sum(len(chain.changes) for chain in chains)
        self.counts["subscriptions"] += 1
        self.counts["cursors refused (cursor_expired)"] += sum(chain.is_refused for chain in chains)

    def judge_chain(self, label, chain, committed, is_last):
        """Compares one chain with what is committed."""
        writes, newest, seen = self.records.writes, {}, set()
        has_marker = False
        for writer, number, key, event, at, _cursor in chain.changes:
            has_marker |= writer == MARKER
            write = writes.get((writer, number))
            if write is None:
                continue
            example = f"{label}: {event} {writer} {number}, {key}"
            _, _, is_told, _, begin, end = write
            # A lost commit of a large file may be made again: its upload was noted before, and its bytes are in the folder.
            is_told = is_told and not self.may_be_lost(begin, end)
            if event == "DELETE":
                self.blame("changes that nobody made", example, at)
            if (writer, number, key) in seen:
                self.blame("changes delivered twice", example, at)
            seen.add((writer, number, key))
            if is_told and end < chain.begin:
                self.blame("changes older than the cursor", example, at)
            if is_told and not writer.endswith(UNORDERED):
                if newest.get(writer, 0) > number:
                    self.blame("changes out of order", f"{example} after {newest[writer]}", at)
                newest[writer] = max(newest.get(writer, 0), number)
            is_unknown = is_repeated(writer) and not is_told
            if (writer, number, key) not in committed and not is_unknown:
                self.counts["changes delivered and then lost"] += 1
                if not chain.is_refused:
                    self.blame("changes of lost commits in a subscription that was not refused", example, at)
        if is_last and not has_marker:
            last = chain.changes[-1][4] if chain.changes else chain.end
            self.blame("subscriptions that stopped delivering", f"{label}: the last change", last)
        for writer, number, key in committed - seen:
            write = writes.get((writer, number))
            if write is None or write[4] <= chain.end:
                continue
            if (is_last and has_marker) or newest.get(writer, 0) > number:
                self.blame("changes lost", f"{label}: {writer} {number}, {key}", write[5])

    def judge_cursors(self, client):
        """Uses stored cursors again: those on lost commits must be refused, and others must give every later change once."""
        service = client.as_service()
        lost, kept = [], []
        for (process, name), chains in self.records.chains.items():
            if name not in ("fidgets", "files"):
                continue
            committed = self.stored.table(name, process)
            for chain in chains:
                for writer, number, key, _event, at, cursor in chain.changes:
                    if (writer, number) in self.records.writes and not is_repeated(writer):
                        is_lost = (writer, number, key) not in committed
                        (lost if is_lost else kept).append((name, committed, at, cursor, f"{writer} {number}"))
        chosen = random.Random(0)
        for is_lost, cursors in ((True, lost), (False, kept)):
            for name, committed, at, cursor, text in chosen.sample(cursors, min(len(cursors), REPLAYS)):
                try:
                    stream = service.realtime.changes(table=name, since=cursor, until=service.realtime.cursor())
                    keys = collections.Counter(replayed_key(name, change) for change in stream if change.event_type == "INSERT")
                except townsquare.CursorExpiredError:
                    self.counts[f"stored cursors {'on lost commits' if is_lost else 'on kept commits'}: refused"] += 1
                    if not is_lost and not self.losses:
                        self.blame("stored cursors refused although nothing was lost", f"{name} after {text}", at)
                    continue
                self.counts[f"stored cursors {'on lost commits' if is_lost else 'on kept commits'}: accepted"] += 1
                if is_lost:
                    self.blame("cursors on lost commits that were accepted", f"{name} after {text}", at)
                    continue
                due = {
                    key for writer, number, key in committed
                    if (write := self.records.writes.get((writer, number))) and write[4] > at
                }
                if missing := due - keys.keys():
                    self.blame("changes lost by a stored cursor", f"{name} after {text}: {len(missing)} of {len(due)}", at)
                if any(times > 1 for times in keys.values()):
                    self.blame("changes delivered twice by a stored cursor", f"{name} after {text}", at)

    def report(self):
        """The text of the verdict."""
        lines = [f"  {number:>9,}  {name}" for name, number in sorted(self.counts.items())]
        lines += [f"  {self.records.skipped:>9,}  arriving writes not begun, because 100 were running"]
        lines += ["", "Errors of calls (operation: kind code):"]
        lines += [f"  {number:>9,}  {name}" for name, number in self.records.errors.most_common(25)]
        slowest = self.records.longest.most_common(12)
        lines += ["", "Longest calls: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in slowest), ""]
        lines += [f"NOTE: {text}" for text in self.surprises[:EXAMPLES]]
        for headline, examples in self.broken.items():
            lines.append(f"BROKEN: {headline}: {len(examples)}")
            lines += [f"    {example}" for example in examples[:EXAMPLES]]
        return "\n".join(lines + ["" if self.broken else "All promises were kept."])


def replayed_key(table, change):
    """The key of a replayed change; `new` is the row as the service sees it."""
    row = change.new or change.old
    return row["path" if table == "files" else "id"]
