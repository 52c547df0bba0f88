#!/usr/bin/env python3
"""A failover drill: breaks the leader of a Patroni cluster again and again under load, and counts what is lost.

`README.md` beside this file says what it needs, what it judges and what was measured. Begin reading here: `main` runs the
drill, `cluster.py` has the servers and the faults, `workload.py` the load, `judge.py` the verdict, `drill.py` what the drills share.
"""

import argparse
import os
import random
import secrets
import statistics
import sys
import time

import drill
from cluster import KINDS, Cluster
from drill import Process, say, seconds

PAUSE_LIMIT = 12
LEADER_LIMIT = 1
BACK_WAIT = 90
QUIET_WAIT = 200
PARTITION = 1.5
"""Seconds before a lossy fault in which the standbys get nothing."""


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8, help="how many faults (default 8)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of which kinds (default {','.join(KINDS)})")
    parser.add_argument("--lossy", action="store_true", help="asynchronous replication, and commits that are lost by each kill")
    parser.add_argument("--seed", type=int, default=None, help="of the order of the faults and of the waits")
    parser.add_argument("--ttl", type=int, default=7, help="Patroni's ttl in seconds (default 7)")
    parser.add_argument("--loop-wait", type=int, default=1, help="Patroni's loop_wait (default 1)")
    parser.add_argument("--retry-timeout", type=int, default=3, help="Patroni's retry_timeout (default 3)")
    parser.add_argument("--hold", type=float, default=None, help="kill a paused leader so many seconds after the fault; "
                        "by default when all writers are back")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between two calls of a writer (default 0.1)")
    parser.add_argument("--port", type=int, default=25400, help="first of the 24 ports (default 25400)")
    parser.add_argument("--keep", action="store_true", help="keep the folder with data and logs")
    options = parser.parse_args()
    options.kinds = options.kinds.split(",")
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"unknown kinds of faults: {', '.join(sorted(unknown))}")
    if options.loop_wait + 2 * options.retry_timeout > options.ttl:
        parser.error("Patroni wants loop_wait + 2 * retry_timeout <= ttl")
    if options.lossy:
        options.kinds = ["kill"]
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    return options


class Drill:
    """One run."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        password = secrets.token_hex(12)
        settings = {"ttl": options.ttl, "loop_wait": options.loop_wait, "retry_timeout": options.retry_timeout}
        self.cluster = Cluster(folder, password, options.port, settings, not options.lossy, say)
        self.password = password
        self.processes, self.rounds, self.losses = [], [], []
        self.spaces = {}

    def open(self, name):
        """Opens a client with the options of the load."""
        import townsquare

        return townsquare.Client.open(
            self.folder / f"data-{name}", database_url=self.url(), storage_url=self.storage(), inline_file_limit=65_536,
            max_space_fidgets=10_000_000, catalog_api_key="",
        )

    def url(self):
        """The database URL with all hosts, as docs/src/postgres.md recommends."""
        return f"postgres://town:{self.password}@{self.cluster.hosts()}/town"

    def storage(self):
        """The shared folder of large files."""
        return f"file://{self.folder}/files"

    def prepare(self):
        """Starts the cluster, makes the database, the users and the spaces, and starts the load."""
        say("Starting etcd, three PostgreSQL servers and Patroni")
        self.cluster.start()
        for statement in (
            f"CREATE ROLE town LOGIN CREATEROLE PASSWORD '{self.password}'", "CREATE DATABASE town OWNER town",
            "CREATE DATABASE control",
        ):
            self.must(statement)
        self.must("CREATE TABLE probe (at timestamptz DEFAULT clock_timestamp())", "control")
        (self.folder / "files").mkdir()
        plans = []
        with self.open("setup") as client:
            client.as_service().realtime.start()
            for name in ("a", "b"):
                email = f"{name}@town.example"
                user = client.auth.sign_up(email, self.password)
                space = client.as_service().spaces.create_space(f"{name}", owner_id=user.id)
                updated = client.as_service().fidgets.create_fidget(space.id, "drill", config={"w": "setup"})
                self.spaces[name] = str(space.id)
                plans.append({
                    "name": name, "url": self.url(), "storage": self.storage(), "email": email, "password": self.password,
                    "space": str(space.id), "updated": str(updated.id), "pause": self.options.pause,
                    "log": str(self.folder / f"log-{name}.jsonl"), "data": str(self.folder / f"data-{name}"),
                })
        for plan in plans:
            self.processes.append(Process(plan, self.folder))
        for process in self.processes:
            process.expect("running")

    def must(self, statement, database="postgres"):
        """Runs a statement of the setup."""
        if self.cluster.sql(statement, database) is None:
            raise RuntimeError(f"This statement of the setup failed: {statement.split('PASSWORD')[0]}")

    def round(self, number):
        """Breaks the leader once, and waits until everybody works again."""
        kind = drill.next_kind(self, number)
        time.sleep(self.random.uniform(2, 4))
        for process in self.processes:
            process.follow()
            process.forget()
        if self.options.lossy:
            since = time.monotonic()
            self.cluster.cut_standbys()
            time.sleep(PARTITION)
        broken, at = self.cluster.inject(kind)
        watch = self.cluster.watch(kind, broken)
        watch.wait()
        if self.options.lossy:
            self.losses.append((since, at + 0.5))
        # An acknowledgement that was on its way at the fault is no sign of the new leader.
        since = max(at, watch.leader_at - 0.3) if kind == "switchover" else at + 0.3
        killed = kind != "pause" or self.options.hold is None
        backs, is_back = {}, False
        while not is_back and time.monotonic() < at + BACK_WAIT:
            time.sleep(0.2)
            backs = {}
            for process in self.processes:
                process.follow()
                backs.update(process.first_after(since))
            is_back = bool(backs) and None not in backs.values()
            if not killed and time.monotonic() > at + self.options.hold:
                broken.kill()
                killed = True
        if kind in ("kill", "pause"):
            # A paused leader is killed and never resumed, as a watchdog would do.
            broken.kill()
            broken.start()
        first = [
            min((at for writer, at in backs.items() if at and writer.startswith(f"{process.name}-")), default=None)
            for process in self.processes
        ]
        row = Row(number, kind, at, watch.leader_at - at, watch.commit_at - at,
                  None if None in first else max(first) - at, max(backs.values()) - at if is_back else None)
        self.rounds.append(row)
        late = "" if is_back else f"; not back: {', '.join(writer for writer, at in backs.items() if at is None)}"
        say(f"{number:>4}  {kind:<14} {broken.name} -> {watch.leader.name}  {row.text()}{late}")
        self.cluster.wait_until_healthy()

    def finish(self):
        """Ends the load: first the writers, then the subscribers, which wait for the markers."""
        say("Ending the load")
        for process in self.processes:
            process.say("quiet")
        for process in self.processes:
            process.expect("quiet")
        with self.open("setup") as client:
            service = client.as_service()
            for space in self.spaces.values():
                service.fidgets.create_fidget(space, "drill", config={"w": "marker", "n": 0})
            service.storage.upload("assets", "drill/marker", b"marker", metadata={"w": "marker", "n": "0"})
            service.spaces.create_space("marker 0", is_public=True)
            for process in self.processes:
                process.say("drain")
            for process in self.processes:
                process.expect("drained")
            say("Judging")
            import judge

            records = judge.Records([(process.name, process.log) for process in self.processes])
            verdict = judge.Judge(records, judge.Stored(client, self.spaces), self.losses, self.name_time)
            verdict.run()
            verdict.judge_cursors(client)
            for finding in client.check(full=True):
                if finding.severity == "error" and not self.options.lossy:
                    verdict.blame("findings of check", f"{finding.code}: {finding.message}")
                verdict.counts[f"findings of check: {finding.severity} {finding.code}"] += 1
        return verdict

    def name_time(self, at):
        """Names a time by the fault before it."""
        before = [row for row in self.rounds if row.at <= at]
        if not before:
            return "before the first fault"
        return f"{at - before[-1].at:.1f} s after fault {before[-1].number}, {before[-1].kind}"

    def table(self):
        """The table of times."""
        return table(self.rounds)

    def is_late(self, _verdict):
        """Whether writes came back late."""
        return any(not row.has_met_the_goal() for row in self.rounds)

    def stop(self):
        """Ends everything that runs."""
        for process in self.processes:
            process.kill()
        self.cluster.stop()


class Row:
    """The times of one fault, in seconds after it."""

    def __init__(self, number, kind, at, leader, commit, first, everyone):
        self.number, self.kind, self.at = number, kind, at
        self.leader, self.commit, self.first, self.everyone = leader, commit, first, everyone

    def text(self):
        """One line."""
        return (f"leader {seconds(self.leader)}  plain commit {seconds(self.commit)}  first write {seconds(self.first)}  "
                f"every writer {seconds(self.everyone)}")

    def has_met_the_goal(self):
        """Whether writes were back in time."""
        if self.first is None:
            return False
        # The library cannot commit before the cluster can: with synchronous replication that needs a standby, too.
        return self.first <= PAUSE_LIMIT if self.kind == "pause" else self.first - max(self.leader, self.commit) <= LEADER_LIMIT


def table(rounds):
    """The table of times."""
    lines = [f"{'kind':<14} {'faults':>6}  {'new leader':>15}  {'plain commit':>15}  {'first write':>15}  "
             f"{'write - leader':>15}  {'write - commit':>15}  {'every writer':>15}  {'late':>4}"]
    for kind in KINDS:
        rows = [row for row in rounds if row.kind == kind]
        if not rows:
            continue
        columns = []
        for value in (
            lambda row: row.leader, lambda row: row.commit, lambda row: row.first,
            lambda row: row.first and row.first - row.leader, lambda row: row.first and row.first - row.commit,
            lambda row: row.everyone,
        ):
            known = [value(row) for row in rows if value(row) is not None]
            columns.append(f"{statistics.median(known):6.2f} {max(known):6.2f}" if known else "never")
        late = sum(not row.has_met_the_goal() for row in rows)
        lines.append(f"{kind:<14} {len(rows):>6}  " + "  ".join(f"{column:>15}" for column in columns) + f"  {late:>4}")
    lines.append("Seconds: median and maximum. Plain commit: by psql on the new leader, without the library. First write: of the")
    lines.append(f"slower process. Late: later than {PAUSE_LIMIT} s after a pause, or {LEADER_LIMIT} s after plain SQL can commit.")
    return "\n".join(lines)


def main():
    """Runs the drill. Returns the exit code."""
    options = arguments()
    about = (f"ttl {options.ttl}, loop_wait {options.loop_wait}, retry_timeout {options.retry_timeout}, "
             f"{'asynchronous' if options.lossy else 'synchronous'}")
    return drill.run(options, "drill", Drill, about)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
