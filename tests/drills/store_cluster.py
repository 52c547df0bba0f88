"""Three Garage nodes with three copies of each object, a PostgreSQL server and the proxies, on loopback: start, break, repair, stop.

Every process is ended by its number.
"""

import hashlib
import hmac
import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from xml.etree import ElementTree

from drill import Missing, find_postgres, is_used, psql, require_free, send, server_user, spawn, wait_for

NODES = 3
BUCKET = "town"
REGION = "garage"
START_WAIT = 60
INSTALL = "cargo install garage --locked --version 2.5.0 --no-default-features --features bundled-libs,sqlite"


def find_clocks(lag):
    """What the store needs for a clock that is late. Raises `Missing` without libfaketime."""
    library = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), os.environ.get("LIBFAKETIME"))
    if library is None:
        raise Missing("The drill needs libfaketime: apt-get install libfaketime, or name the library in LIBFAKETIME")
    return str(library), lag


def find_programs(garage, needs_postgres):
    """Finds the programs. Raises `Missing` with every one that is not there."""
    found, missing = {"garage": shutil.which(garage or "garage")}, []
    if not found["garage"]:
        missing.append(f"  garage: {INSTALL}")
    if needs_postgres:
        found["postgres"] = find_postgres(missing)
    if missing:
        raise Missing("The drill needs:\n" + "\n".join(missing))
    return found


class Store:
    """The Garage cluster. `start` makes it; `stop` ends its processes and may be called at any time, also twice."""

    def __init__(self, folder, garage, port, rpc_timeout, clocks=None):
        """`clocks`: the library libfaketime, and by how many seconds it sets the clock of the second node back."""
        self.folder, self.garage, self.clocks = pathlib.Path(folder), garage, clocks
        self.rpc_timeout = rpc_timeout
        self.rpc_secret = secrets.token_hex(32)
        self.nodes = [Node(self, index, port + index, port + 4 + index) for index in range(NODES)]
        self.key = self.secret = None

    def start(self):
        """Starts the nodes, and makes the layout, the key and the bucket."""
        require_free([port for node in self.nodes for port in (node.port, node.rpc)])
        for node in self.nodes:
            node.write_config()
            node.start()
        for node in self.nodes:
            wait_for(node.accepts, START_WAIT, "Garage does not start", node.process)
        names = [self.command("node", "id", "-q", node=node).strip() for node in self.nodes]
        for name in names[1:]:
            self.command("node", "connect", name)
        wait_for(lambda: self.health()["connectedNodes"] == NODES, START_WAIT, "the nodes of Garage do not connect")
        for name in names:
            self.command("layout", "assign", name.split("@")[0], "-z", "drill", "-c", "10G")
        self.command("layout", "apply", "--version", "1")
        wait_for(self.is_healthy, START_WAIT, "Garage does not get healthy")
        key = self.ask("CreateKey", name="drill")
        self.key, self.secret = key["accessKeyId"], key["secretAccessKey"]
        self.command("bucket", "create", BUCKET)
        self.command("bucket", "allow", "--read", "--write", "--owner", BUCKET, "--key", self.key)

    def url(self, port):
        """The storage URL, with the endpoint at a port."""
        return (f"s3://{BUCKET}?endpoint=http://127.0.0.1:{port}&region={REGION}&access_key_id={self.key}"
                f"&secret_access_key={self.secret}")

    def command(self, *arguments, node=None):
        """Runs a command of Garage on a node, and returns its output."""
        command = [self.garage, "-c", str((node or self.nodes[0]).config), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"garage {arguments[0]} {arguments[1]} failed: {done.stderr.strip()[-300:]}")
        return done.stdout

    def ask(self, operation, **arguments):
        """Calls the administration of the first node."""
        return json.loads(self.command("json-api", operation, json.dumps(arguments or None)))

    def health(self):
        """What the first node knows of the others."""
        return self.ask("GetClusterHealth")

    def is_healthy(self):
        """Whether all nodes are connected and all parts of the data have their copies."""
        health = self.health()
        return health["status"] == "healthy" and health["storageNodesUp"] == NODES

    def usage(self):
        """How many objects and unfinished uploads the bucket has."""
        return self.ask("GetBucketInfo", globalAlias=BUCKET)

    def has(self, name):
        """Whether an object is there: a listing may name objects that are deleted, until the nodes have compared their tables."""
        try:
            self.request("HEAD", f"/{BUCKET}/{urllib.parse.quote(name)}", {})
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False
        return True

    def names(self):
        """The names that a listing gives."""
        names, more = [], {}
        while True:
            page = ElementTree.fromstring(self.request("GET", f"/{BUCKET}", {"list-type": "2", **more}))
            for element in page.iter():
                element.tag = element.tag.rpartition("}")[2]
            names += [name.text for name in page.iterfind("Contents/Key")]
            if page.findtext("IsTruncated") != "true":
                return names
            more = {"continuation-token": page.findtext("NextContinuationToken")}

    def request(self, method, path, query):
        """Sends a request to the first node, with the signature that S3 asks for (version 4)."""
        host, now = f"127.0.0.1:{self.nodes[0].port}", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        query = "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in sorted(query.items()))
        empty, names = hashlib.sha256(b"").hexdigest(), "host;x-amz-content-sha256;x-amz-date"
        headers = f"host:{host}\nx-amz-content-sha256:{empty}\nx-amz-date:{now}\n"
        request = hashlib.sha256(f"{method}\n{path}\n{query}\n{headers}\n{names}\n{empty}".encode()).hexdigest()
        scope, key = f"{now[:8]}/{REGION}/s3/aws4_request", f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.new(key, f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{request}".encode(), "sha256").hexdigest()
        authorization = f"AWS4-HMAC-SHA256 Credential={self.key}/{scope}, SignedHeaders={names}, Signature={signature}"
        asked = urllib.request.Request(f"http://{host}{path}?{query}", method=method, headers={
            "x-amz-date": now, "x-amz-content-sha256": empty, "Authorization": authorization,
        })
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=20) as answer:
            return answer.read()

    def stop(self):
        """Ends the nodes."""
        for node in self.nodes:
            node.kill()


class Node:
    """A node of Garage."""

    def __init__(self, store, index, port, rpc):
        self.store, self.name, self.port, self.rpc = store, f"g{index + 1}", port, rpc
        self.config = store.folder / f"{self.name}.toml"
        self.process = None

    def write_config(self):
        """Writes the configuration. Data is not flushed to the disk: the drill kills processes, not the machine."""
        folder = self.store.folder / self.name
        folder.mkdir()
        self.config.write_text(
            f'metadata_dir = "{folder}/meta"\ndata_dir = "{folder}/data"\ndb_engine = "sqlite"\nreplication_factor = {NODES}\n'
            f'rpc_bind_addr = "127.0.0.1:{self.rpc}"\nrpc_public_addr = "127.0.0.1:{self.rpc}"\n'
            f'rpc_secret = "{self.store.rpc_secret}"\nrpc_timeout_msec = {int(self.store.rpc_timeout * 1000)}\n'
            f'rpc_ping_timeout_msec = 2000\n[s3_api]\ns3_region = "{REGION}"\napi_bind_addr = "127.0.0.1:{self.port}"\n'
        )

    def start(self):
        """Starts the node."""
        environment = {**os.environ, "RUST_LOG": "garage=warn"}
        if self.store.clocks and self is self.store.nodes[1]:
            library, lag = self.store.clocks
            environment |= {"LD_PRELOAD": library, "FAKETIME": f"-{lag}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        with open(self.store.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [self.store.garage, "-c", str(self.config), "server"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment, start_new_session=True,
            )

    def accepts(self):
        """Whether the node accepts connections of clients and of other nodes."""
        return is_used(self.port) and is_used(self.rpc)

    def pause(self):
        """Stops the node where it is. Its connections stay open and silent."""
        send(self.process.pid, signal.SIGSTOP)

    def resume(self):
        """Lets the node go on."""
        send(self.process.pid, signal.SIGCONT)

    def kill(self):
        """Kills the node."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Proxy:
    """A proxy in front of the nodes; the first of `nodes` is the one that the endpoint names."""

    def __init__(self, folder, port, nodes, has_checks):
        require_free([port])
        command = [sys.executable, str(pathlib.Path(__file__).with_name("store_proxy.py")), str(port)]
        command += [",".join(str(node.port) for node in nodes)] + (["checks"] if has_checks else [])
        with open(pathlib.Path(folder) / f"proxy-{port}.log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        self.port = port
        if self.process.stdout.readline() != b"running\n":
            raise RuntimeError("a proxy does not start; see the logs, with --keep")

    def stop(self):
        """Ends the proxy."""
        self.process.kill()
        self.process.wait()


class Postgres:
    """A PostgreSQL server with an empty database."""

    def __init__(self, folder, programs, port):
        self.folder, self.programs, self.port = pathlib.Path(folder), programs, port
        self.password = secrets.token_hex(12)
        self.process = None

    def start(self):
        """Makes the server and the database."""
        require_free([self.port])
        data, password = self.folder / "postgres", self.folder / "postgres-password"
        data.mkdir()
        password.write_text(self.password)
        if user := server_user():
            shutil.chown(data, user, user)
            shutil.chown(password, user, user)
        initdb = ["initdb", "-D", str(data), "-U", "postgres", "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8"]
        if self.spawn([*initdb, "--locale=C.UTF-8"]).wait() != 0:
            raise RuntimeError("initdb failed; see postgres.log, with --keep")
        settings = ("listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=", "max_connections=120")
        self.process = self.spawn(["postgres", "-D", str(data), *(part for setting in settings for part in ("-c", setting))])
        wait_for(lambda: self.sql("SELECT 1"), START_WAIT, "PostgreSQL does not start", self.process)
        for statement in (f"CREATE ROLE town LOGIN CREATEROLE PASSWORD '{self.password}'", "CREATE DATABASE town OWNER town"):
            if not self.sql(statement):
                raise RuntimeError(f"This statement of the setup failed: {statement.split('PASSWORD')[0]}")

    def spawn(self, command):
        """Starts a program of PostgreSQL."""
        return spawn(self.folder / "postgres.log", [f"{self.programs}/{command[0]}", *command[1:]])

    def sql(self, statement):
        """Runs a statement as the superuser. Returns whether it succeeded."""
        return psql(self.programs, self.port, self.password, statement) is not None

    def url(self):
        """The database URL."""
        return f"postgres://town:{self.password}@127.0.0.1:{self.port}/town"

    def stop(self):
        """Ends the server."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
