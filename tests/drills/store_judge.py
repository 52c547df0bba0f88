"""Compares what the processes of the load were told with the files: those that they read meanwhile, and those at the end.

A path has a history of writes, each with the file after it (or none), its begin, its end and its outcome. A read is right if it
finds the file of a write that had begun before the read ended, and that no acknowledged write has replaced: none that began
after the end of the former and ended before the read began. So a write with an unknown outcome may appear later, but not after
a newer one was acknowledged. A write with a definite failure must not appear.
"""

import collections
import json

from workload import OPERATION_TIMEOUT, SLACK

LIMIT = OPERATION_TIMEOUT + SLACK
"""Seconds: a call that takes longer is late."""
UNBOUNDED = ("export", "backup")
"""Calls that take as long as there are files."""
EXPECTED = ("unavailable", "conflict", "not_found")
"""The kinds of errors that a fault of the store, or another writer, may lead to."""
EXAMPLES = 5
UNKNOWN = "08007"


class Write:
    """A write of one or two paths."""

    def __init__(self, process, record):
        self.process, self.key, self.operation, self.changes, self.begin = (
            process, record["i"], record["op"], record["changes"], record["b"]
        )
        self.end, self.is_told, self.code, self.kind, self.etag, self.base, self.text = None, False, None, None, None, None, ""

    def finish(self, record):
        """Takes the outcome."""
        self.end, self.is_told, self.etag, self.base = record["e"], record["ok"], record["etag"], record["base"]
        self.code, self.kind, self.text = record.get("code"), record.get("kind"), record.get("text", "")

    def is_unknown(self):
        """Whether the write may have happened or not."""
        return not self.is_told and self.code == UNKNOWN

    def may_have_happened(self):
        """Whether the write may be seen."""
        return self.is_told or self.is_unknown()

    def __str__(self):
        outcome = "acknowledged" if self.is_told else f"{self.kind} {self.code or '-'}"
        return f"{self.operation} {self.key} of {self.changes}: {outcome}, {self.begin:.2f} to {self.end:.2f}"


class Records:
    """The logs of the processes."""

    def __init__(self):
        self.writes, self.reads, self.wrong, self.calls = [], [], [], []
        self.errors = collections.Counter()
        self.texts = {}

    def read(self, process, path, killed_at):
        """Reads the log of a process. What ran when it was killed has an unknown outcome."""
        running = {}
        with open(path, encoding="utf-8") as file:
            for line in file:
                if not line.endswith("\n"):
                    break
                record = json.loads(line)
                kind = record.pop("k")
                if kind == "begin":
                    running[record["i"]] = Write(process, record)
                elif kind == "end":
                    write = running.pop(record["i"])
                    write.finish(record)
                    self.writes.append(write)
                    self.calls.append((write.end - write.begin, write.operation, write.begin, write.end, process))
                    if not write.is_told:
                        self.count(write.operation, write.kind, write.code, write.text)
                elif kind == "read":
                    self.reads.append((record["path"], record["b"], record["e"], record["value"], process))
                elif kind == "call":
                    self.calls.append((record["e"] - record["b"], record["op"], record["b"], record["e"], process))
                elif kind == "error":
                    self.count(record["op"], record["kind"], record["code"], record["text"])
                elif kind == "wrong":
                    self.wrong.append({"process": process, **record})
        for write in running.values():
            write.end, write.code, write.kind = killed_at, UNKNOWN, "killed" if killed_at else "running"
            if killed_at is None:
                write.end = float("inf")
                self.wrong.append({"process": process, "what": "a write never ended", "t": write.begin, "write": write.key})
            self.writes.append(write)

    def count(self, operation, kind, code, text):
        """Counts an error, and keeps the text of the first."""
        name = f"{operation}: {kind} {code or '-'}"
        self.errors[name] += 1
        self.texts.setdefault(name, text)


class Judge:
    """Collects what is broken: a headline, how often, and examples with the time of each."""

    def __init__(self, records, pauses, name_time):
        """`pauses` are the spans in which a process of the load stood still: (process, begin, end)."""
        self.records, self.pauses, self.name_time = records, pauses, name_time
        self.broken, self.late = collections.defaultdict(list), []
        self.counts = collections.Counter()
        self.history = collections.defaultdict(list)
        for write in records.writes:
            for path in write.changes:
                self.history[path].append(write)

    def blame(self, headline, example, at=None):
        """Notes that a promise was broken."""
        self.broken[headline].append(f"{example}{'' if at is None else f' ({self.name_time(at)})'}")

    def run(self, final):
        """Judges everything. `final` has of each path at the end the begin and the end of the read, the file and its etag."""
        for record in self.records.wrong:
            fields = {key: value for key, value in record.items() if key not in ("what", "t")}
            self.blame(record["what"], fields, record.get("b") or record["t"])
        self.count_writes()
        for path, begin, end, value, process in self.records.reads:
            self.judge_read(path, begin, end, value, process)
        self.counts["reads of whole files"] = len(self.records.reads)
        for write in self.records.writes:
            if write.kind == "not_found" and write.operation in ("delete", "move"):
                source = next(path for path, value in write.changes.items() if value is None)
                self.judge_read(source, write.begin, write.end, None, write.process)
        self.judge_final(final)
        self.judge_moves(final)
        self.judge_swaps()
        self.judge_times()

    def count_writes(self):
        """Counts outcomes, and names errors that no fault explains."""
        for write in self.records.writes:
            if write.is_told:
                name = "acknowledged writes"
            elif write.kind == "killed":
                name = "writes of a process that was killed: unknown outcome"
            elif write.is_unknown():
                name = "failed writes: unknown outcome (08007)"
            else:
                name = f"failed writes: {write.kind}"
                if write.kind not in EXPECTED:
                    self.blame("errors that the fault does not explain", f"{write}: {write.text}", write.end)
            self.counts[name] += 1

    def judge_read(self, path, begin, end, value, process):
        """Whether a read may find this file, or no file."""
        writes = [write for write in self.history.get(path, ()) if write.begin < end]
        sources = [write for write in writes if write.changes[path] == value]
        possible = [write for write in sources if write.may_have_happened()]
        ends = [write.end for write in possible] + ([float("-inf")] if value is None else [])
        told = [write for write in writes if write.is_told and write.end < begin]
        if any(not any(write.begin > ended for write in told) for ended in ends):
            return
        example = f"{path} read by {process}, {begin:.2f} to {end:.2f}: {value}"
        newest = max(told, key=lambda write: write.begin, default=None)
        if value is not None and not sources:
            self.blame("files that nobody wrote", example, begin)
        elif not ends:
            self.blame("writes that were seen although they failed for certain", f"{example}; {sources[0]}", begin)
        elif value is None:
            self.blame("acknowledged files that were not found", f"{example}; {newest}", begin)
        else:
            self.blame("reads of an older file than the acknowledged one", f"{example}; {possible[0]}; {newest}", begin)

    def judge_final(self, final):
        """Each path at the end: the right file, with the version that its writer was told."""
        for path, (begin, end, value, etag) in final.items():
            if path not in self.history:
                self.blame("files that nobody wrote", path)
                continue
            self.judge_read(path, begin, end, value, "the drill at the end")
            told = [write.etag for write in self.history[path] if write.changes[path] == value and write.is_told]
            if value is not None and told and etag not in told:
                self.blame("files with another version than the acknowledged one", f"{path}: {etag}, not {told}")
            self.counts["files at the end" if value else "paths without a file at the end"] += 1
        last = collections.Counter()
        for path, writes in self.history.items():
            write = max(writes, key=lambda write: write.begin)
            if path in final and write.is_unknown():
                last["happened" if final[path][2] == write.changes[path] else "did not happen"] += 1
        for outcome, number in last.items():
            self.counts[f"paths whose last write is unknown: it {outcome}"] = number

    def judge_moves(self, final):
        """A move with an unknown outcome has happened, or has not: the file is at one of both paths."""
        for write in self.records.writes:
            if write.operation != "move" or not write.is_unknown():
                continue
            source, target = (next(path for path, value in write.changes.items() if (value is None) == gone) for gone in (True, False))
            has_copy = any(copy.is_told and copy.changes[source] for copy in self.history[source])
            is_deleted = any(later.changes[target] is None and later.may_have_happened() for later in self.history[target])
            places = sum(final[path][2] is not None for path in (source, target) if path in final)
            if places == 2 or (places == 0 and has_copy and not is_deleted):
                self.blame("moves that happened in part", f"{write}: the file is at {places} paths", write.end)
            self.counts[f"moves with an unknown outcome: {'deleted later' if places == 0 else 'whole'}"] += 1

    def judge_swaps(self):
        """Of the writes with one version in `if_match`, at most one is acknowledged."""
        bases = collections.defaultdict(list)
        for write in self.records.writes:
            if write.is_told and write.base is not None:
                bases[next(iter(write.changes)), write.base].append(write)
        self.counts["acknowledged writes with if_match"] = len(bases)
        for writes in bases.values():
            if len(writes) > 1:
                self.blame("updates that another one of the same version has lost", " and ".join(map(str, writes)), writes[0].end)

    def judge_times(self):
        """Calls that took longer than their deadline, without those of a process that stood still meanwhile."""
        self.longest = collections.Counter()
        for seconds, operation, begin, end, process in self.records.calls:
            stood_still = any(process == name and begin < until and end > since for name, since, until in self.pauses)
            if stood_still:
                continue
            self.longest[operation] = max(self.longest[operation], seconds)
            if seconds > LIMIT and operation not in UNBOUNDED:
                self.late.append(f"{operation} in {process}: {seconds:.1f} s ({self.name_time(begin)})")

    def report(self):
        """The text of the verdict."""
        lines = [f"  {number:>9,}  {name}" for name, number in sorted(self.counts.items())]
        lines += ["", "Errors of calls (operation: kind code), with the text of the first:"]
        lines += [f"  {number:>9,}  {name}: {self.records.texts[name]}" for name, number in self.records.errors.most_common(25)]
        slowest = self.longest.most_common(12)
        lines += ["", "Longest calls: " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in slowest), ""]
        for headline, examples in self.broken.items():
            lines.append(f"BROKEN: {headline}: {len(examples)}")
            lines += [f"    {example}" for example in examples[:EXAMPLES]]
        if self.late:
            lines.append(f"LATE: calls longer than {OPERATION_TIMEOUT} s and {SLACK} s: {len(self.late)}")
            lines += [f"    {example}" for example in self.late[:EXAMPLES]]
        return "\n".join(lines + ["" if self.broken else "Nothing was lost or torn."])
