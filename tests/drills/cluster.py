"""Three PostgreSQL servers under Patroni, with one etcd, on loopback: start, watch, break, repair, stop.

Patroni and etcd run as the user of PostgreSQL. Every process is ended by its number.
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from drill import Missing, find_postgres, psql, require_free, send, server_user, spawn, wait_for

SCOPE = "drill"
NAMES = ("n1", "n2", "n3")
KINDS = ("kill", "kill-postgres", "pause", "switchover")
ETCD_WAIT = 30
START_WAIT = 120
HEALTHY_WAIT = 180
STOP_WAIT = 20
LEADER_WAIT = 120
POLL = 0.05
"""Seconds between two questions to a node: so exact are the times of new leaders."""


def find_programs():
    """Finds the programs. Raises `Missing` with every one that is not there."""
    found, missing = {}, []
    for name, package in (("patroni", "patroni"), ("patronictl", "patroni"), ("etcd", "etcd-server")):
        found[name] = shutil.which(name)
        if not found[name]:
            missing.append(f"  {name}: apt-get install {package}")
    found["postgres"] = find_postgres(missing)
    if missing:
        raise Missing("The drill needs:\n" + "\n".join(missing))
    return found


class Cluster:
    """The cluster. `start` makes it; `stop` ends all its processes and may be called at any time, also twice."""

    def __init__(self, folder, password, port, settings, is_synchronous, say):
        self.programs = find_programs()
        self.folder = pathlib.Path(folder)
        self.password = password
        self.etcd_port = port
        self.nodes = [Node(self, name, port + 11 + index, port + 21 + index) for index, name in enumerate(NAMES)]
        self.settings = settings
        self.is_synchronous = is_synchronous
        self.say = say
        self.etcd = None

    def hosts(self):
        """The hosts of a database URL."""
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def start(self):
        """Starts etcd and Patroni, and waits until the cluster is healthy."""
        require_free([self.etcd_port, self.etcd_port + 1] + [port for node in self.nodes for port in (node.port, node.rest)])
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.etcd_port + 1))
        (self.folder / "nodes").mkdir()
        self.own(self.folder / "nodes")
        self.etcd = self.spawn(
            "etcd",
            [self.programs["etcd"], "--name=drill", f"--data-dir={self.folder}/nodes/etcd", "--log-level=warn"]
            + [f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"]
            + [f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=drill={peer}"],
        )
        wait_for(lambda: answers(f"{client}/health"), ETCD_WAIT, "etcd does not start", self.etcd)
        for node in self.nodes:
            node.write_config()
        self.nodes[0].start()
        wait_for(lambda: self.nodes[0].is_leader(), START_WAIT, "Patroni makes no leader", self.nodes[0].patroni)
        for node in self.nodes[1:]:
            node.start()
        self.wait_until_healthy()

    def spawn(self, name, command):
        """Starts a program with its output in a file of the folder."""
        return spawn(self.folder / f"{name}.log", command, PGPASSWORD=self.password)

    def own(self, path):
        """Gives a path to the user of the servers."""
        if user := server_user():
            shutil.chown(path, user, user)
        path.chmod(0o700 if path.is_dir() else 0o600)

    def leader(self):
        """The node that is the leader now, or None."""
        return next((node for node in self.nodes if node.is_leader()), None)

    def members(self):
        """The members as Patroni lists them, or an empty list."""
        for node in self.nodes:
            answer = node.get("/cluster")
            if answer and answer[0] == 200:
                return answer[1].get("members", [])
        return []

    def ill(self):
        """Why the cluster is not ready for a fault; None if it is."""
        members = self.members()
        roles = sorted(member.get("role", "?") for member in members)
        wanted = ["leader", "replica", "sync_standby"] if self.is_synchronous else ["leader", "replica", "replica"]
        if roles != wanted:
            return f"the roles are {roles}"
        if any(member.get("state") not in ("running", "streaming") for member in members):
            return f"the states are {[member.get('state') for member in members]}"
        if len({member.get("timeline") for member in members}) != 1:
            return "the timelines differ"
        if any(member.get("lag") not in (None, 0) and int(member.get("lag") or 0) > 16 << 20 for member in members):
            return "a standby is behind"
        streaming = self.sql("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'")
        return None if streaming == "2" else f"{streaming} standbys stream"

    def wait_until_healthy(self):
        """Waits until there is a leader and two standbys stream, one of them synchronously if commits wait for it."""
        wait_for(lambda: self.ill() is None, HEALTHY_WAIT, lambda: f"The cluster does not get healthy: {self.ill()}")

    def sql(self, statement, database="postgres", node=None, timeout=30):
        """Runs a statement by psql on the leader, or on `node`. Returns the text of the answer, or None if it failed."""
        node = node or self.leader()
        if node is None:
            return None
        return psql(self.programs["postgres"], node.port, self.password, statement, database, timeout)

    def inject(self, kind):
        """Breaks the leader. Returns its node and the monotonic time of the fault."""
        leader = self.leader()
        if leader is None:
            raise RuntimeError("The cluster has no leader to break.")
        if kind == "kill":
            leader.kill()
        elif kind == "kill-postgres":
            leader.kill_postgres()
        elif kind == "pause":
            leader.pause()
        else:
            candidates = [member["name"] for member in self.members() if member["role"] in ("sync_standby", "replica")]
            synchronous = [member["name"] for member in self.members() if member["role"] == "sync_standby"]
            at = time.monotonic()
            self.switch_over(leader.name, (synchronous or candidates)[0])
            return leader, at
        return leader, time.monotonic()

    def switch_over(self, leader, candidate):
        """Starts a planned change of the leader."""
        command = [self.programs["patronictl"], "-c", str(self.nodes[0].config), "switchover", SCOPE]
        self.spawn("patronictl", command + ["--leader", leader, "--candidate", candidate, "--force"])

    def cut_standbys(self):
        """Stops the processes of the leader that send its log to the standbys: what it commits from now on, it alone has."""
        for process in (self.sql("SELECT pid FROM pg_stat_replication") or "").split():
            send(int(process), signal.SIGSTOP)

    def watch(self, kind, broken):
        """Starts to watch for the new leader after a fault."""
        candidates = [node for node in self.nodes if kind == "kill-postgres" or node is not broken]
        return Watch(self, candidates)

    def stop(self):
        """Ends all processes: first as an operator would, then by force."""
        for node in self.nodes:
            node.resume_for_stop()
        for node in reversed(self.nodes):
            if node.patroni and node.patroni.poll() is None:
                node.patroni.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_WAIT
        for node in self.nodes:
            if node.patroni:
                try:
                    node.patroni.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    pass
            node.kill()
        if self.etcd:
            self.etcd.kill()
            self.etcd.wait()


class Node:
    """A PostgreSQL server and its Patroni."""

    def __init__(self, cluster, name, port, rest):
        self.cluster, self.name, self.port, self.rest = cluster, name, port, rest
        self.data = cluster.folder / "nodes" / name
        self.config = cluster.folder / "nodes" / f"{name}.json"
        self.patroni = None
        self.is_paused = False

    def write_config(self):
        """Writes Patroni's configuration. JSON is YAML."""
        cluster = self.cluster
        login = {"username": "postgres", "password": cluster.password}
        dynamic = {
            **cluster.settings,
            "maximum_lag_on_failover": 1 << 30,
            "synchronous_mode": cluster.is_synchronous,
            "synchronous_mode_strict": cluster.is_synchronous,
            "postgresql": {
                "use_pg_rewind": True,
                "use_slots": True,
                "parameters": {
                    "max_connections": 120,
                    "wal_keep_size": "512MB",
                    "shared_buffers": "64MB",
                    # By default a standby waits five seconds before it connects to the new leader, and all commits with it.
                    "wal_retrieve_retry_interval": "200ms",
                },
            },
        }
        config = {
            "scope": SCOPE,
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self.rest}", "connect_address": f"127.0.0.1:{self.rest}"},
            "etcd3": {"host": f"127.0.0.1:{cluster.etcd_port}"},
            "bootstrap": {"dcs": dynamic, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"]},
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self.data),
                "bin_dir": cluster.programs["postgres"],
                "pgpass": f"{self.data}.pgpass",
                "authentication": {"superuser": login, "replication": {**login, "username": "replicator"}},
                "parameters": {"unix_socket_directories": str(cluster.folder / "nodes")},
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256"]
                + ["host replication replicator 127.0.0.1/32 scram-sha-256"],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }
        self.config.write_text(json.dumps(config, indent=1))
        self.cluster.own(self.config)

    def start(self):
        """Starts Patroni, which starts PostgreSQL."""
        self.is_paused = False
        self.patroni = self.cluster.spawn(self.name, [self.cluster.programs["patroni"], str(self.config)])

    def get(self, path):
        """Asks Patroni. Returns the status and the answer, or None if it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.rest, timeout=2)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def is_leader(self):
        """Whether the node has the leader's lock, and its PostgreSQL accepts writes."""
        answer = not self.is_paused and self.get("/primary")
        return bool(answer) and answer[0] == 200 and (answer[1].get("role"), answer[1].get("state")) == ("master", "running")

    def postgres_processes(self):
        """The processes of PostgreSQL, the postmaster first."""
        try:
            postmaster = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return []
        # The file outlives a killed server, and its number may have gone to another program.
        if not is_at(postmaster, self.data):
            return []
        return [postmaster, *descendants(postmaster)]

    def processes(self):
        """The processes of Patroni and PostgreSQL."""
        patroni = [self.patroni.pid, *descendants(self.patroni.pid)] if self.patroni and self.patroni.poll() is None else []
        return list(dict.fromkeys(patroni + self.postgres_processes()))

    def kill(self):
        """Kills Patroni and PostgreSQL."""
        for process in self.processes():
            send(process, signal.SIGKILL)
        if self.patroni:
            self.patroni.wait()
        self.is_paused = False

    def kill_postgres(self):
        """Kills PostgreSQL alone."""
        for process in self.postgres_processes():
            send(process, signal.SIGKILL)

    def pause(self):
        """Stops Patroni and PostgreSQL where they are. Connections to them stay open and silent."""
        stopped = set()
        while more := [process for process in self.processes() if process not in stopped]:
            for process in more:
                send(process, signal.SIGSTOP)
            stopped.update(more)
        self.is_paused = True

    def resume_for_stop(self):
        """Kills a paused node: it must not go on as a leader."""
        if self.is_paused:
            self.kill()


class Watch:
    """Watches for the new leader, and for the first commit on it by plain SQL: what the cluster allows without the library."""

    def __init__(self, cluster, candidates):
        self.cluster = cluster
        self.leader = None
        self.leader_at = None
        self.commit_at = None
        self.found = threading.Event()
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self._look, args=(node,), daemon=True) for node in candidates]
        for thread in self.threads:
            thread.start()

    def _look(self, node):
        while not self.is_over.is_set():
            if not self.found.is_set() and node.is_leader():
                self.leader, self.leader_at = node, time.monotonic()
                self.found.set()
                while not self.is_over.is_set():
                    if self.cluster.sql("INSERT INTO probe DEFAULT VALUES", "control", node) is not None:
                        self.commit_at = time.monotonic()
                        return
                    time.sleep(POLL)
            time.sleep(POLL)

    def wait(self):
        """Waits for the new leader and for the first commit."""
        wait_for(lambda: self.commit_at is not None, LEADER_WAIT, "Patroni makes no new leader that commits")
        self.is_over.set()


def answers(url):
    """Whether the server of a URL answers with 200."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2) as response:
            return response.status == 200
    except (OSError, urllib.error.URLError):
        return False


def descendants(process):
    """The processes below a process, from /proc."""
    children = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = pathlib.Path(entry.path, "stat").read_text().rsplit(")", 1)[1].split()
            except (OSError, IndexError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [process]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def is_at(process, folder):
    """Whether a process works in a folder: a postmaster works in its data folder."""
    try:
        return os.readlink(f"/proc/{process}/cwd") == str(folder.resolve())
    except OSError:
        return False
