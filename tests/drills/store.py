#!/usr/bin/env python3
"""A drill of files on a distributed store: breaks nodes of a Garage cluster under load, and looks for each file.

`README.md` beside this file says what it needs, what it judges and what was measured. Begin reading here: `main` runs the
drill, `store_cluster.py` has the servers, `store_proxy.py` the way to them, `store_load.py` the load, `store_judge.py` the verdict,
`drill.py` what the drills share.
"""

import argparse
import json
import os
import random
import signal
import statistics
import sys
import time

import drill
from drill import say, seconds, wait_for
from store_cluster import INSTALL, Postgres, Proxy, Store, find_clocks, find_programs

KINDS = ("kill-named", "kill-other", "pause-named", "pause-other", "pause-all", "pause-writer", "kill-writer")
PAUSE_ALL = 10
"""Seconds for which all nodes stand still."""
PAUSE_WRITER = 20
"""Longer than the lease of a path, so another process takes over what the writer has begun."""
BACK_WAIT = 120
RECOVERY_WAIT = 180
STAGED = (".townsquare/staging/", ".townsquare/held/")
IN_FLIGHT = 10
"""How many uploads a process that is killed may leave staged bytes of."""
UPLOADS = ("small", "middle", "large", "shared", "swap")


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--garage", default=None, help=f"the program garage; by default the one in PATH: {INSTALL}")
    parser.add_argument("--database", choices=("postgres", "sqlite"), default="postgres",
                        help="where the rows are; with sqlite there is one process of the load, which also makes backups")
    parser.add_argument("--rounds", type=int, default=7, help="how many faults (default 7)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of which kinds (default {','.join(KINDS)})")
    parser.add_argument("--seed", type=int, default=None, help="of the order of the faults and of their times")
    parser.add_argument("--no-checks", action="store_true", help="the proxies ask no node whether it is well: a paused one is used on")
    parser.add_argument("--rpc-timeout", type=float, default=3, help="seconds after which a node of Garage gives up another "
                        "(default 3; Garage's own default is 300)")
    parser.add_argument("--clock-lag", type=float, default=0, help="seconds by which the clock of the second node is late (default 0; "
                        "needs libfaketime)")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two calls of a writer (default 0.2)")
    parser.add_argument("--export", type=float, default=40, help="seconds between two exports or backups of all files; 0 for none "
                        "(default 40)")
    parser.add_argument("--port", type=int, default=25500, help="first of the 12 ports (default 25500)")
    parser.add_argument("--keep", action="store_true", help="keep the folder with data and logs")
    options = parser.parse_args()
    options.kinds = options.kinds.split(",")
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"unknown kinds of faults: {', '.join(sorted(unknown))}")
    if options.database == "sqlite":
        options.kinds = [kind for kind in options.kinds if kind != "pause-writer"]
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    return options


class Process(drill.Process):
    """A process of the load, and which uploads to the store it was told are done."""

    program = "store_load.py"

    def __init__(self, plan, folder):
        super().__init__(plan, folder)
        self.plan, self.operations, self.killed_at = plan, {}, None

    def note(self, line):
        """Notes the time of an acknowledged upload, for its writer."""
        if not line.startswith(('{"k":"begin"', '{"k":"end"')):
            return
        record = json.loads(line)
        if record["k"] == "begin" and record["op"] == "upload":
            (_, (writer, _)), = record["changes"].items()
            self.operations[record["i"]] = writer
        elif record["k"] == "end" and record["ok"] and record["i"] in self.operations:
            self.acknowledged.setdefault(self.operations[record["i"]], []).append(record["e"])

    def first_after(self, at):
        """The first acknowledged upload after a time, of each writer; None for a writer without one."""
        writers = [f"{self.name}-{kind}" for kind in UPLOADS]
        return {writer: next((time for time in self.acknowledged.get(writer, []) if time > at), None) for writer in writers}


class Drill:
    """One run."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        programs = find_programs(options.garage, options.database == "postgres")
        (folder / "store").mkdir()
        clocks = find_clocks(options.clock_lag) if options.clock_lag else None
        self.store = Store(folder / "store", programs["garage"], options.port, options.rpc_timeout, clocks)
        self.postgres = Postgres(folder, programs["postgres"], options.port + 10) if options.database == "postgres" else None
        self.proxies, self.processes, self.past, self.rounds, self.pauses = [], [], [], [], []

    def open(self, name="judge"):
        """Opens a client with the options of the load."""
        import townsquare
        from store_load import INLINE_LIMIT

        return townsquare.Client.open(
            self.data(name), database_url=self.database(), storage_url=self.store.url(self.proxies[0].port),
            inline_file_limit=INLINE_LIMIT, catalog_api_key="",
        )

    def data(self, name):
        """The folder of a client: with SQLite the one of all clients."""
        return self.folder / (f"data-{name}" if self.postgres else "data")

    def database(self):
        """The database URL, None for SQLite."""
        return self.postgres and self.postgres.url()

    def prepare(self):
        """Starts the servers, and the load."""
        say("Starting three nodes of Garage" + (" and PostgreSQL" if self.postgres else ""))
        self.store.start()
        if self.postgres:
            self.postgres.start()
        nodes = self.store.nodes
        # The third node is the first choice of nobody.
        for index in range(2 if self.postgres else 1):
            order = nodes[index:] + nodes[:index]
            self.proxies.append(Proxy(self.folder, self.options.port + 8 + index, order, not self.options.no_checks))
        self.open("setup").close()
        for index, proxy in enumerate(self.proxies):
            self.start_load(index, 0, proxy)

    def start_load(self, index, generation, proxy):
        """Starts a process of the load."""
        name = f"{'ab'[index]}{generation}"
        plan = {
            "name": name, "index": index, "generation": generation, "url": self.database(), "storage": self.store.url(proxy.port),
            "pause": self.options.pause, "export": self.options.export if index == 0 else 0,
            "log": str(self.folder / f"log-{name}.jsonl"), "data": str(self.data(name)),
        }
        self.processes.insert(index, Process(plan, self.folder))
        self.processes[index].expect("running")

    def round(self, number):
        """Breaks something once, and waits until everybody works again."""
        kind = drill.next_kind(self, number)
        time.sleep(self.random.uniform(3, 6))
        at = time.monotonic()
        what = self.inject(kind)
        ended = time.monotonic()
        row = {"number": number, "kind": kind, "at": at, "ended": ended}
        self.rounds.append(row)
        backs = {}
        while (not backs or None in backs.values()) and time.monotonic() < ended + BACK_WAIT:
            time.sleep(0.2)
            for process in self.processes:
                process.follow()
                backs.update(process.first_after(ended))
        known = [back for back in backs.values() if back is not None]
        row["first"] = min(known) - ended if known else None
        row["everyone"] = max(known) - ended if len(known) == len(backs) else None
        missing = [writer for writer, back in backs.items() if back is None]
        late = f"; not back: {', '.join(missing)}" if missing else ""
        say(f"{number:>4}  {kind:<13} {what:<24} {ended - at:5.1f}s  first write {seconds(row['first'])}  "
            f"every writer {seconds(row['everyone'])}{late}")
        wait_for(self.store.is_healthy, BACK_WAIT, "Garage does not get healthy again")

    def inject(self, kind):
        """Does the damage and ends it. Returns what it was."""
        action, _, target = kind.partition("-")
        if target == "writer":
            return self.break_writer(action)
        nodes = self.store.nodes
        broken = nodes if target == "all" else [nodes[2] if target == "other" else self.random.choice(nodes[:len(self.proxies)])]
        lasts = PAUSE_ALL if target == "all" else self.random.uniform(3, 8 if action == "kill" else 25)
        for node in broken:
            node.kill() if action == "kill" else node.pause()
        time.sleep(lasts)
        for node in broken:
            node.start() if action == "kill" else node.resume()
        for node in broken:
            wait_for(node.accepts, BACK_WAIT, "a node of Garage does not come back", node.process)
        return ", ".join(node.name for node in broken)

    def break_writer(self, action):
        """Stops a process of the load for longer than its leases, or kills it and starts another."""
        process = self.random.choice(self.processes)
        at = time.monotonic()
        if action == "pause":
            process.process.send_signal(signal.SIGSTOP)
            time.sleep(PAUSE_WRITER)
            process.process.send_signal(signal.SIGCONT)
            self.pauses.append((process.name, at, time.monotonic()))
            return f"process {process.name}"
        process.kill()
        process.killed_at = time.monotonic()
        self.processes.remove(process)
        self.past.append(process)
        self.start_load(process.plan["index"], process.plan["generation"] + 1, self.proxies[process.plan["index"]])
        return f"process {process.name}"

    def finish(self):
        """Ends the writers, waits until the store is in order, and judges."""
        from store_judge import Judge, Records

        say("Ending the load")
        for process in self.processes:
            process.say("quiet")
        for process in self.processes:
            process.expect("quiet")
        with self.open() as client:
            began = time.monotonic()
            findings, left = self.settle(client, began)
            records = Records()
            for process in self.past + self.processes:
                records.read(process.name, process.log, process.killed_at)
            verdict = Judge(records, self.pauses, self.name_time)
            say("Judging")
            verdict.run(self.read_files(client, verdict))
        for process in self.processes:
            process.say("end")
            process.expect("ended")
        for finding in findings:
            if finding.severity == "error" or finding.code == "orphan_object":
                verdict.blame("findings of check after the time of recovery", f"{finding.code}: {finding.message}")
            verdict.counts[f"findings of check: {finding.severity} {finding.code}"] += 1
        verdict.counts["unfinished uploads in parts in the store"] = self.store.usage()["unfinishedMultipartUploads"]
        staged = [name for name in left if name.startswith(STAGED)]
        for folder in STAGED:
            verdict.counts[f"objects in {folder} after the time of recovery"] = sum(name.startswith(folder) for name in staged)
        for name in left:
            if name not in staged or not self.past or sum(name.startswith(STAGED[0]) for name in staged) > IN_FLIGHT * len(self.past):
                verdict.blame("objects without a row after the time of recovery", name)
        for row in self.rounds:
            if row["everyone"] is None:
                verdict.blame("writers that were not back", f"fault {row['number']}, {row['kind']}: after {BACK_WAIT} s")
        return verdict

    def settle(self, client, began):
        """Waits until check finds no fault and the store has no object without a row, or until the time of recovery is over."""
        from store_load import INLINE_LIMIT

        while True:
            findings = client.check(full=True)
            infos = client.as_service().storage.iter("assets", "", 1000)
            rows = {f"assets/{info.path}" for info in infos if info.size > INLINE_LIMIT} | {".townsquare/store"}
            listed = set(self.store.names())
            left = [name for name in sorted(listed - rows) if self.store.has(name)]
            # What a killed process has staged stays for an hour, and what it held for an export for seven days.
            waits = [name for name in left if not self.past or not name.startswith(STAGED)]
            is_right = not waits and not any(f.severity == "error" or f.code == "orphan_object" for f in findings)
            if is_right or time.monotonic() > began + RECOVERY_WAIT:
                say(f"{'In order' if is_right else 'NOT in order'} {time.monotonic() - began:.1f} s after the last write: {len(rows)} "
                    f"objects of files, {len(left)} others, {len(listed - rows) - len(left)} that are listed and deleted")
                return findings, left
            time.sleep(3)

    def read_files(self, client, verdict):
        """Reads every path that was ever written, and every file that is there."""
        import townsquare
        from store_load import token

        storage, final = client.as_service().storage, {}
        infos = {info.path: info for info in storage.iter("assets", "", 1000)}
        for path in sorted(infos.keys() | verdict.history.keys()):
            begin, value = time.monotonic(), None
            try:
                data = storage.download("assets", path)
                value = token(data)
                if value is None:
                    verdict.blame("files that are torn at the end", path)
                    continue
                if path in infos and infos[path].metadata != {"w": value[0], "n": str(value[1])}:
                    verdict.blame("files with the metadata of another version", f"{path}: {value}, {infos[path].metadata}")
                if path not in infos:
                    verdict.blame("files that are not in the list", path)
            except townsquare.Error as error:
                if error.kind != "not_found" or path in infos:
                    verdict.blame("files that cannot be read at the end", f"{path}: {error}")
                    continue
            final[path] = (begin, time.monotonic(), value, infos[path].etag if path in infos else None)
        return final

    def name_time(self, at):
        """Names a time by the fault before it."""
        before = [row for row in self.rounds if row["at"] <= at]
        if not before:
            return "before the first fault"
        return f"{at - before[-1]['at']:.1f} s after fault {before[-1]['number']}, {before[-1]['kind']}"

    def table(self):
        """The table of times."""
        return table(self.rounds)

    def is_late(self, verdict):
        """Whether calls took too long."""
        return bool(verdict.late)

    def stop(self):
        """Ends everything that runs."""
        for process in self.processes:
            process.kill()
        for each in [*self.proxies, self.store, *([self.postgres] if self.postgres else [])]:
            each.stop()


def table(rounds):
    """The table of times."""
    lines = [f"{'kind':<13} {'faults':>6}  {'first write':>15}  {'every writer':>15}"]
    for kind in KINDS:
        rows = [row for row in rounds if row["kind"] == kind]
        columns = []
        for name in ("first", "everyone"):
            known = [row[name] for row in rows if row[name] is not None]
            columns.append(f"{statistics.median(known):6.2f} {max(known):6.2f}" if known else "never")
        if rows:
            lines.append(f"{kind:<13} {len(rows):>6}  " + "  ".join(f"{column:>15}" for column in columns))
    return "\n".join(lines + ["Seconds after the end of the fault: median and maximum."])


def main():
    """Runs the drill. Returns the exit code."""
    options = arguments()
    about = (f"{options.database}, proxies {'without' if options.no_checks else 'with'} checks, rpc_timeout {options.rpc_timeout:g}, "
             f"clock_lag {options.clock_lag:g}")
    return drill.run(options, "store", Drill, about)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
