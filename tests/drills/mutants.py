#!/usr/bin/env python3
"""Tries mutants of the library: small changes of its code, each of which should make a test fail.

`cargo mutants` lists them. `mutants/main.rs` puts all of them into a copy of the source, each behind a condition, so that one build has
all. Each test runs once alone, without a mutant, and notes which mutants its code passes. Then each mutant is switched on, and the tests
that pass it run until one fails. `README.md` beside this file says more.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = pathlib.Path(__file__).with_name("mutants") / "main.rs"
MANIFEST = f"""
[package]
name = "mutants"
version = "0.0.0"
edition = "2024"

[[bin]]
name = "mutants"
path = "{SOURCE}"

[dependencies]
proc-macro2 = {{ version = "1", features = ["span-locations"] }}
serde_json = "1"
syn = {{ version = "2", features = ["full", "visit"] }}

[workspace]
"""
SWITCH = """
/// Whether the mutant is the one of the variable `MUTANT`. Notes in the file `MUTANTS_PASSED` that the code was passed.
#[allow(warnings, clippy::all)]
pub(crate) fn mutant(id: u32) -> bool {
    use std::{io::Write as _, sync::{OnceLock, atomic::{AtomicBool, Ordering}}};
    static ACTIVE: OnceLock<(u32, Option<std::ffi::OsString>)> = OnceLock::new();
    static PASSED: [AtomicBool; 16384] = [const { AtomicBool::new(false) }; 16384];
    let (active, file) = ACTIVE.get_or_init(|| {
        (std::env::var("MUTANT").map_or(0, |id| id.parse().expect("a number")), std::env::var_os("MUTANTS_PASSED"))
    });
    if let Some(file) = file && !PASSED[id as usize].swap(true, Ordering::Relaxed) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        file.and_then(|mut file| file.write_all(format!("{id}\\n").as_bytes())).expect("a file");
    }
    *active == id
}
"""
NOT_RUN = ("book", "c", "examples", "features", "python", "tidy")
"""Modules of the tests that build something, or that read the source."""
FIRST_TESTS = (1.5, 6, 20, 60)
"""After so many seconds of tests the next ones run in another process: most mutants fail in the first one."""


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="files and folders of the source, such as core/src/policy core/src/policy.rs")
    parser.add_argument("--seconds", type=float, default=60, help="of tests that a mutant has to survive (default 60)")
    parser.add_argument("--tests", default="", help="only tests with this text in their name")
    parser.add_argument("--processes", type=int, default=2, help="at the same time (default 2)")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target" / "mutants", help="of the copy and the results")
    return parser.parse_args()


class Server:
    """A PostgreSQL server that all processes of tests use."""

    def __init__(self):
        self.binaries = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        self.folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        if self.user:
            shutil.chown(self.folder, "postgres")
        data = ["-D", self.folder / "data"]
        options = ["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"]
        self.run("initdb", *data, *options)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = ["listen_addresses=127.0.0.1", "wal_level=logical", "max_connections=500", "fsync=off", "jit=off"]
        settings = [word for setting in settings for word in ("-c", setting)]
        command = [*self.user, self.binaries / "postgres", *data, "-p", str(self.port), "-k", self.folder, *settings]
        # The tests read this log.
        with open(self.folder / "log", "w") as log:
            self.process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log, start_new_session=True)
        roles = "CREATE ROLE app LOGIN CREATEROLE; CREATE ROLE owner_only LOGIN"
        psql = ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-qc", roles]
        while subprocess.run(psql, capture_output=True).returncode != 0:
            assert self.process.poll() is None, "PostgreSQL starts"
            time.sleep(0.1)

    def address(self):
        """The value of the variable by which the tests find the server."""
        return f"{self.port}:{self.folder}"

    def run(self, program, *words):
        subprocess.run([*self.user, self.binaries / program, *words], cwd="/", check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        self.run("pg_ctl", "stop", "-m", "immediate", "-D", self.folder / "data")
        shutil.rmtree(self.folder)


class Build:
    """The copy of the source with all mutants, and its test programs."""

    def __init__(self, options):
        self.folder, self.source = options.folder, options.folder / "source"
        self.target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", options.folder / "target"))
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "Cargo.toml").write_text(MANIFEST)
        subprocess.run(["cargo", "build", "--release"], cwd=self.folder, check=True, env=self.environment({}))
        files = [word for path in options.paths for word in ("-f", path if path.endswith(".rs") else f"{path}/**")]
        listing = ["cargo", "mutants", "--list", "--json", *files]
        listed = json.loads(subprocess.run(listing, cwd=ROOT, check=True, capture_output=True).stdout)
        # The simulation is a test.
        self.mutants = [mutant for mutant in listed if not re.search(r"/simulation|tests\.rs$", mutant["file"])]
        (self.folder / "list.json").write_text(json.dumps(self.mutants))
        self.skipped = set()
        while not self.compiles():
            print(f"{len(self.skipped)} mutants do not compile", flush=True)
        self.programs = self.build_tests()

    def environment(self, more):
        """Variables of cargo and of the tests."""
        own = {"CARGO_TARGET_DIR": str(self.target), "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "false"}
        tests = {"TOWNSQUARE_REQUIRE_ALL": "1", "RUST_BACKTRACE": "0", "RUST_TEST_THREADS": "4"}
        # The harness has `--fail-fast` only then.
        return {**os.environ, **own, **tests, "RUSTC_BOOTSTRAP": "1", **more}

    def name(self, mutant_id):
        return self.mutants[mutant_id - 1]["name"]

    def compiles(self):
        """Puts the mutants into a new copy of the source. Returns false, and leaves mutants out, if some do not compile."""
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
        shutil.rmtree(self.source, ignore_errors=True)
        for file in filter(None, files):
            copy = self.source / os.fsdecode(file)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / os.fsdecode(file), copy)
        (self.folder / "skipped").write_text("".join(f"{mutant_id}\n" for mutant_id in sorted(self.skipped)))
        command = [self.target / "release" / "mutants", self.folder / "list.json", self.source, self.folder / "skipped"]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.placed = [int(number) for number in re.findall(r"^placed (\d+)$", report, re.M)]
        root = self.source / "core" / "src" / "lib.rs"
        root.write_text(root.read_text() + SWITCH)
        command = ["cargo", "check", "-p", "townsquare", "--lib", "--all-features", "--message-format=json"]
        check = subprocess.run(command, cwd=self.source, env=self.environment({}), capture_output=True, text=True)
        messages = [json.loads(line).get("message") for line in check.stdout.splitlines()]
        errors = [message for message in messages if message and message["level"] == "error" and message["spans"]]
        faulty = set().union(*map(self.faulty, errors))
        assert check.returncode == 0 or faulty - self.skipped, check.stderr
        self.skipped |= faulty
        return check.returncode == 0

    def faulty(self, error):
        """The mutants that an error of the compiler is about."""
        found = set()
        for span in filter(lambda span: span["is_primary"], error["spans"]):
            lines = (self.source / span["file_name"]).read_text().split("\n")
            start, end = span["line_start"] - 1, span["line_end"]
            if (error["code"] or {}).get("code") == "E0004":
                # A match lacks an arm. One of its next arms has a condition.
                arms = re.findall(r"^if !crate::mutant\((\d+)\)", "\n".join(lines[start : start + 40]), re.M)[:1]
                found.update(map(int, arms))
                continue
            while start > 0 and not any("crate::mutant(" in line for line in lines[start:end]):
                start, end = start - 1, start
            found.update(int(number) for line in lines[start:end] for number in re.findall(r"crate::mutant\((\d+)\)", line))
        return found

    def build_tests(self):
        """Returns the programs with the unit tests and with the tests of the public API."""
        command = ["cargo", "test", "--no-run", "-p", "townsquare", "-p", "townsquare-tests", "--lib", "--test", "it"]
        command.append("--message-format=json")
        built = subprocess.run(command, cwd=self.source, env=self.environment({}), check=True, stdout=subprocess.PIPE, text=True)
        artifacts = [json.loads(line) for line in built.stdout.splitlines()]
        programs = {artifact["target"]["name"]: artifact["executable"] for artifact in artifacts if artifact.get("executable")}
        for name in ("townsquare", "it"):
            # A later build would replace it.
            shutil.copy(programs[name], self.folder / name)
        return {"townsquare": self.source / "core", "it": self.source / "tests"}

    def tests(self, text):
        """The tests as pairs of program and name."""
        for program, folder in self.programs.items():
            command = [self.folder / program, "--list"]
            listed = subprocess.run(command, cwd=folder, env=self.environment({}), check=True, capture_output=True, text=True)
            for name in re.findall(r"^(\S+): test$", listed.stdout, re.M):
                if text in name and not (program == "it" and name.split("::")[0] in NOT_RUN):
                    yield program, name

    def run(self, program, names, variables, limit):
        """Runs tests. Returns the exit code, `None` if they take longer than the limit, with the output and the seconds."""
        command = [self.folder / program, "--exact", "-Zunstable-options", "--fail-fast", *names]
        start, options = time.monotonic(), {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
        process = subprocess.Popen(
            command, cwd=self.programs[program], env=self.environment(variables), stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
        try:
            output, code = process.communicate(timeout=limit)[0], process.returncode
        except subprocess.TimeoutExpired:
            code = None
        # Also the children of the tests.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if code is None:
            output = process.communicate()[0]
        return code, output, time.monotonic() - start


def passed_by(build, server, options):
    """Runs each test alone. Returns for each one that succeeds its seconds and the mutants that it passes."""
    known, lock = {}, threading.Lock()

    def run(test):
        with tempfile.NamedTemporaryFile() as passed:
            variables = {"TOWNSQUARE_TEST_POSTGRES": server, "MUTANTS_PASSED": passed.name}
            code, _, seconds = build.run(test[0], [test[1]], variables, 120)
            with lock:
                if code == 0:
                    known[test] = seconds, {int(line) for line in open(passed.name)}
                else:
                    print(f"left out, because it fails alone: {test[1]}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(run, build.tests(options.tests)))
    return known


def batches(mutant, name, known, seconds):
    """The tests that pass a mutant: those of its area first, then those that are quick and pass few others."""
    area = name.split("/")[2].split(":")[0].removesuffix(".rs")
    tests = [test for test, (_, passed) in known.items() if mutant in passed]
    tests.sort(key=lambda test: (f"{area}::" not in test[1], known[test][0] * (1 + len(known[test][1]) / 150)))
    total, batch, limits = 0, [], list(FIRST_TESTS)
    for test in tests:
        if total > seconds:
            break
        batch.append(test)
        total += known[test][0]
        if limits and total > limits[0]:
            yield batch
            batch, limits = [], limits[1:]
    yield batch


def verdict(build, server, mutant, known, options):
    """What became of a mutant, with the test that failed or how many it survived."""
    ran = 0
    for batch in batches(mutant, build.name(mutant), known, options.seconds):
        for program in build.programs:
            tests = [test for test in batch if test[0] == program]
            if not tests:
                continue
            limit = 10 + 3 * sum(known[test][0] for test in tests)
            variables = {"TOWNSQUARE_TEST_POSTGRES": server, "MUTANT": str(mutant)}
            code, output, _ = build.run(program, [test[1] for test in tests], variables, limit)
            ran += len(tests)
            if code != 0:
                failed = re.findall(r"^test (\S+) \.\.\. FAILED", output, re.M)
                return ("hangs" if code is None else "killed"), ", ".join(failed)
    tests = sum(mutant in passed for _, passed in known.values())
    return ("survived" if ran else "not passed"), f"{ran} of {tests} tests that pass it"


def main():
    options = arguments()
    build, server = Build(options), Server()
    try:
        known = passed_by(build, server.address(), options)
        print(f"{len(known)} tests pass {len(set().union(*(passed for _, passed in known.values())))} mutants", flush=True)
        counts, results = collections.Counter(), options.folder / "results.txt"
        with open(results, "w") as out, concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
            judged = pool.map(lambda mutant: verdict(build, server.address(), mutant, known, options), build.placed)
            for mutant, (outcome, detail) in zip(build.placed, judged):
                counts[outcome] += 1
                line = f"{outcome}: {build.name(mutant)}: {detail}"
                print(line, file=out, flush=True)
                if outcome in ("survived", "not passed"):
                    print(line, flush=True)
        left_out = set(range(1, len(build.mutants) + 1)) - set(build.placed) - build.skipped
        print(f"{dict(counts)}; {len(build.skipped)} do not compile; to be tried by hand:")
        for mutant in sorted(left_out):
            print(f"  {build.name(mutant)}")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
