"""File objects, streamed transfers, progress, interruption and fork (SPEC 4.4, DESIGN 7)."""

from __future__ import annotations

import asyncio
import csv
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import townsquare
from conftest import ENABLE_CTRL_C, run, run_python, wait_until
from townsquare import AsyncClient, Client, FileInfo, FileReader, Storage

MIB = 1 << 20
LARGE = bytes(range(256)) * 1_024 + b"end"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.fixture(params=["small", "large"])
def data(request: pytest.FixtureRequest) -> bytes:
    """Bytes that are kept in the database, and bytes that are kept in the object store."""
    return b"0123456789" if request.param == "small" else LARGE


@pytest.fixture
def files(client: Client) -> Storage:
    return client.as_service().storage


def objects(folder: Path) -> list[str]:
    """The files below the object store's folder: with the staged ones, without the lock files, the place and the id of the store."""
    paths = [path.relative_to(folder).as_posix() for path in (folder / "files").rglob("*") if path.is_file()]
    own = ("files/.townsquare/locks/", "files/.townsquare/clients", "files/.townsquare/place", "files/.townsquare/store")
    return sorted(path for path in paths if not path.startswith(own))


# Reading


def test_a_reader_is_a_seekable_raw_file(files: Storage, data: bytes) -> None:
    info = files.upload("assets", "a", data)
    with files.open("assets", "a") as file:
        assert isinstance(file, io.RawIOBase) and isinstance(file, FileReader) and file.info == info
        assert (file.readable(), file.writable(), file.seekable(), file.closed) == (True, False, True, False)
        assert file.read(3) == data[:3] and file.tell() == 3
        assert file.seek(-4, io.SEEK_END) == len(data) - 4 and file.read(100) == data[-4:] and file.read(1) == b""
        assert file.seek(2) == 2 and file.seek(2, io.SEEK_CUR) == 4 and file.read() == data[4:] and file.read() == b""
        assert file.seek(10 * len(data)) == 10 * len(data) and file.read(5) == b""
        buffer = bytearray(6)
        assert file.seek(1) == 1 and file.readinto(buffer) == 6 and bytes(buffer) == data[1:7]
        assert file.readinto(bytearray()) == 0
        assert file.seek(-3, io.SEEK_END) == len(data) - 3 and file.readinto(buffer) == 3 and buffer[:3] == data[-3:]
        for wrong in ((-1, 0), (-len(data) - 1, 2), (0, 9)):
            with pytest.raises(OSError):
                file.seek(*wrong)
        refused: list[Callable[[], Any]] = [lambda: file.write(b"x"), file.fileno, lambda: file.truncate(3)]
        for call in refused:
            with pytest.raises(io.UnsupportedOperation):
                call()
    file.close()
    assert file.closed
    closed: list[Callable[[], Any]] = [file.read, file.tell, lambda: file.seek(0), file.__enter__, lambda: next(file)]
    for call in closed:
        with pytest.raises(ValueError, match="closed"):
            call()


def test_large_reads_and_small_ones_give_the_same_bytes(files: Storage) -> None:
    content = os.urandom(3 * MIB + 17)
    files.upload("assets", "a", content)
    with files.open("assets", "a") as file:
        for size in (1, 7, 4_096, 65_536, 262_144, 262_145, MIB, 10 * MIB):
            start = file.seek(size)
            assert file.read(size) == content[start : start + size]
        file.seek(0)
        assert b"".join(iter(lambda: file.read(100_001), b"")) == content


def test_the_standard_library_reads_from_a_reader(files: Storage, tmp_path: Path) -> None:
    files.upload("assets", "json", json.dumps({"a": [1, "é"]}).encode())
    with files.open("assets", "json") as file:
        assert json.load(file) == {"a": [1, "é"]}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("one.txt", "one")
        zipped.writestr("large", os.urandom(400_000))
    files.upload("assets", "zip", archive.getvalue())
    with files.open("assets", "zip") as file, zipfile.ZipFile(file) as zipped:
        assert zipped.testzip() is None and zipped.read("one.txt") == b"one"
    with files.open("assets", "json") as file:
        assert not zipfile.is_zipfile(file)
    with files.open("assets", "zip") as file, open(tmp_path / "copy", "wb") as target:
        shutil.copyfileobj(file, target)
    assert (tmp_path / "copy").read_bytes() == archive.getvalue()
    files.upload("assets", "csv", "name,size\nharbör,5\n".encode() * 20_000)
    with files.open("assets", "csv") as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        rows = list(csv.reader(text))
    assert len(rows) == 40_000 and rows[-1] == ["harbör", "5"] and file.closed
    with io.BufferedReader(files.open("assets", "csv"), 1_000) as buffered:
        assert buffered.peek(4)[:4] == b"name" and buffered.readline() == b"name,size\n" and buffered.seek(5) == 5
        assert buffered.read(4) == b"size"


def test_lines_are_read_as_from_other_files(files: Storage) -> None:
    content = b"a\n\nb" + b"c" * 300_000 + b"\nlast"
    files.upload("assets", "a", content)
    with files.open("assets", "a") as file:
        assert list(file) == io.BytesIO(content).readlines()
        file.seek(0)
        assert file.readline(1) == b"a" and file.readline() == b"\n" and file.peek()[:1] == b"\n" and file.tell() == 2


def test_a_reader_keeps_its_version(files: Storage, data: bytes) -> None:
    files.upload("assets", "a", data)
    with files.open("assets", "a") as file:
        assert file.read(2) == data[:2]
        files.upload("assets", "a", b"other bytes" * 50_000)
        assert file.read(2) == data[2:4]
        files.delete("assets", "a")
        assert file.read() == data[4:]


def test_threads_may_share_a_reader(files: Storage) -> None:
    content = b"".join(number.to_bytes(4, "big") for number in range(100_000))
    files.upload("assets", "a", content)
    seen: list[bytes] = []
    with files.open("assets", "a") as file:

        def work() -> None:
            while part := file.read(4_000):
                seen.append(part)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert b"".join(sorted(seen)) == content


# Writing


def test_a_written_file_is_there_when_close_returns(files: Storage, data: bytes, data_dir: Path) -> None:
    old = files.upload("assets", "a", b"old")
    with files.open("assets", "a", "wb", content_type="text/plain", metadata={"k": "v"}) as file:
        assert (file.readable(), file.writable(), file.seekable()) == (False, True, False)
        half = len(data) // 2
        assert file.write(data[:half]) == half and file.write(memoryview(bytearray(data[half:]))) == len(data) - half
        assert file.tell() == len(data) and file.info is None
        file.flush()
        assert files.stat("assets", "a") == old
        for refused in (lambda: file.read(1), lambda: file.seek(0)):
            with pytest.raises(io.UnsupportedOperation):
                refused()
    info = files.stat("assets", "a")
    assert file.closed and file.info is not None and file.info == info
    assert (info.content_type, info.metadata) == ("text/plain", {"k": "v"})
    assert files.download("assets", "a") == data
    file.close()
    file.discard()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")
    assert objects(data_dir) == (["files/assets/a"] if len(data) > 65_536 else [])


def test_the_standard_library_writes_to_a_writer(files: Storage) -> None:
    with files.open("assets", "zip", "wb") as file, zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("one.txt", "one")
        zipped.writestr("large", bytes(400_000))
    with files.open("assets", "zip") as stored, zipfile.ZipFile(stored) as zipped:
        assert zipped.testzip() is None and len(zipped.read("large")) == 400_000
    with files.open("assets", "copy", "wb") as target, files.open("assets", "zip") as source:
        shutil.copyfileobj(source, target)
    assert files.download("assets", "copy") == files.download("assets", "zip")
    with io.TextIOWrapper(io.BufferedWriter(files.open("assets", "text", "wb")), "utf-8") as text:
        for number in range(20_000):
            print("line", number, file=text)
    assert files.download("assets", "text").splitlines()[-1] == b"line 19999"


@pytest.mark.parametrize("how", ["exception", "discard", "drop"])
def test_a_writer_that_is_not_closed_leaves_nothing(files: Storage, data: bytes, data_dir: Path, how: str) -> None:
    files.upload("assets", "a", b"old")
    file = files.open("assets", "a", "wb")
    file.write(data)
    if how == "exception":
        with pytest.raises(ZeroDivisionError), file:
            1 / 0
    elif how == "discard":
        file.discard()
    else:
        with pytest.warns(ResourceWarning, match="unclosed"):
            del file
            gc.collect()
    assert files.download("assets", "a") == b"old" and [info.path for info in files.list("assets")] == ["a"]
    wait_until(lambda: objects(data_dir) == [])


def test_a_failing_close_raises_and_leaves_the_old_file(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data", max_file_size=300_000) as client:
        files = client.as_service().storage
        files.upload("assets", "a", b"old")
        with pytest.raises(townsquare.TooLargeError, match="^Upload failed: File too large: the limit is ") as caught:
            with files.open("assets", "a", "wb") as file:
                for _ in range(5):
                    file.write(bytes(100_000))
        assert caught.value.status == 413 and file.closed
        first = files.open("assets", "a", "wb", if_match=files.stat("assets", "a").etag)
        first.write(b"first")
        files.upload("assets", "a", b"second")
        with pytest.raises(townsquare.ConflictError):
            first.close()
        assert first.closed and files.download("assets", "a") == b"second"
        wait_until(lambda: objects(tmp_path / "data") == [])


# Transfers


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of 10 MiB."""
    path = tmp_path / "source"
    path.write_bytes(os.urandom(MIB) * 10)
    return path


def test_transfers_report_progress(files: Storage, source: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    transfers: list[Callable[[], FileInfo]] = [
        lambda: files.upload_from("assets", "a", source, progress=progress, content_type="text/plain"),
        lambda: files.download_to("assets", "a", str(tmp_path / "target"), progress=progress),
    ]
    for transfer in transfers:
        seen.clear()
        info = transfer()
        assert (info.size, info.content_type) == (10 * MIB, "text/plain")
        assert seen[-1] == (10 * MIB, 10 * MIB) and len(seen) > 2
        assert seen == sorted(seen) and {total for _, total in seen} == {10 * MIB}
    assert (tmp_path / "target").read_bytes() == source.read_bytes() == files.download("assets", "a")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


class Stop(BaseException):
    pass


@pytest.mark.parametrize("call", ["first", "last"])
@pytest.mark.parametrize("size", [10, 10 * MIB])
def test_an_exception_in_the_callback_ends_the_transfer(files: Storage, tmp_path: Path, data_dir: Path, call: str, size: int) -> None:
    def progress(done: int, total: int) -> None:
        if call == "first" or done == total:
            raise Stop(done)

    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(size))
    target.write_bytes(b"old")
    files.upload("assets", "a", b"old")
    with pytest.raises(Stop):
        files.upload_from("assets", "a", source, progress=progress)
    wait_until(lambda: objects(data_dir) == [])
    assert files.download("assets", "a") == b"old"
    files.upload_from("assets", "b", source)
    with pytest.raises(Stop):
        files.download_to("assets", "b", target, progress=progress)
    wait_until(lambda: [path for path in tmp_path.iterdir() if path.name.startswith(".")] == [])
    assert target.read_bytes() == b"old"
    with pytest.raises(Stop):
        files.export_files(tmp_path / "out", progress=progress)
    assert files.repair().orphans_removed == 0


def test_a_callback_may_call_the_library(files: Storage, source: Path) -> None:
    files.upload_from("assets", "a", source, progress=lambda done, total: files.upload("assets", "done", b"%d" % done))
    assert files.download("assets", "done") == b"%d" % (10 * MIB)
    with pytest.raises(TypeError, match="coroutine"):

        async def wrong(done: int, total: int) -> None: ...

        files.upload_from("assets", "a", source, progress=wrong)


def test_a_source_or_target_that_cannot_be_used_is_refused(files: Storage, tmp_path: Path, source: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, source / "below"):
        with pytest.raises(townsquare.InvalidInputError, match="^Upload failed: Invalid file or request: ") as caught:
            files.upload_from("assets", "a", path)
        assert caught.value.status == 400 and str(path) in str(caught.value)
    files.upload("assets", "a", b"x")
    for path in (tmp_path / "missing" / "x", source / "below"):
        with pytest.raises(townsquare.InvalidInputError, match="^Download failed: Invalid file or request: "):
            files.download_to("assets", "a", path)


CTRL_C = f"""{ENABLE_CTRL_C}
import os, sys, townsquare
client = townsquare.Client.open(sys.argv[1], max_file_size=1 << 30)
files = client.as_service().storage
files.upload("assets", "kept", b"old")
def progress(done, total):
    if done < 64 << 20:
        print(done, total, flush=True)
try:
    files.upload_from("assets", "kept", sys.argv[2], progress=progress if sys.argv[3] == "callback" else None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("completed", flush=True)
except KeyboardInterrupt:
    names = [info.path for info in files.list("assets")]
    # The signal may have ended a print in the middle of its line.
    print()
    print("interrupted", names, files.download("assets", "kept"), client.closed, flush=True)
client.close()
"""


@pytest.mark.parametrize("how", ["callback", "no callback"])
def test_ctrl_c_stops_an_upload_and_leaves_nothing(tmp_path: Path, how: str) -> None:
    source = tmp_path / "source"
    with open(source, "wb") as file:
        file.truncate(200 * MIB)
    command = [sys.executable, "-c", CTRL_C, str(tmp_path / "data"), str(source), how]

    def is_staged() -> bool:
        return any("staging" in path for path in objects(tmp_path / "data"))

    # On a loaded machine an upload may end before the signal.
    for _ in range(20):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: is_staged() or child.poll() is not None)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
            child.wait()
        assert (child.returncode, err) == (0, "")
        if out.splitlines()[-1] != "completed":
            break
        shutil.rmtree(tmp_path / "data")
    assert out.splitlines()[-1] == "interrupted ['kept'] b'old' False"
    assert objects(tmp_path / "data") == []


# asyncio


def test_async_files_read_and_write(tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            files = (await client.as_service()).storage
            for data in (b"one\ntwo\n", LARGE):
                async with files.open("assets", "a", "wb", cache_control=5) as writer:
                    assert await writer.write(data[:3]) == 3 and await writer.write(data[3:]) == len(data) - 3
                    assert await writer.tell() == len(data)
                assert writer.closed and writer.info is not None and writer.info.cache_control == 5
                async with files.open("assets", "a") as reader:
                    assert reader.info == writer.info
                    assert await reader.read(4) == data[:4] and await reader.tell() == 4
                    assert await reader.seek(0) == 0 and [line async for line in reader] == io.BytesIO(data).readlines()
                    buffer = bytearray(3)
                    assert await reader.seek(-2, 2) == len(data) - 2 and await reader.readinto(buffer) == 2
                assert reader.closed
                with pytest.raises(ValueError, match="closed"):
                    await reader.read()
            reader = await files.open("assets", "a")
            assert len(await reader.read()) == len(LARGE)
            await reader.close()
            with pytest.raises(ZeroDivisionError):
                async with files.open("assets", "a", "wb") as writer:
                    await writer.write(b"lost")
                    1 / 0
            assert len(await files.download("assets", "a")) == len(LARGE)
            with pytest.raises(townsquare.NotFoundError):
                async with files.open("assets", "missing"):
                    pass
            async with await files.handle_file("GET", "/assets/a") as stream:
                assert stream.status == 200 and b"".join([chunk async for chunk in stream]) == LARGE

    run(main())


def test_cancelling_a_task_stops_its_upload(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "data"
    with open(source, "wb") as file:
        file.truncate(500 * MIB)

    async def cancelled(task: asyncio.Task[Any]) -> None:
        while not [path for path in objects(folder) if "staging" in path]:
            assert not task.done(), task
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while objects(folder):
            await asyncio.sleep(0.005)

    async def main() -> None:
        async with await AsyncClient.open(folder, max_file_size=1 << 30) as client:
            files = (await client.as_service()).storage
            await cancelled(asyncio.ensure_future(files.upload_from("assets", "a", source)))
            await cancelled(asyncio.ensure_future(files.upload_from("assets", "a", source, progress=lambda done, total: None)))

            async def write() -> None:
                async with files.open("assets", "a", "wb") as writer:
                    await writer.write(bytes(20 * MIB))
                    await asyncio.sleep(60)

            await cancelled(asyncio.ensure_future(write()))
            assert await files.list("assets") == []

    run(main(), 60)


def test_progress_of_an_async_transfer_does_not_block_the_event_loop(tmp_path: Path, source: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            files = (await client.as_service()).storage
            begun, gate, threads = threading.Event(), threading.Event(), set()

            def progress(done: int, total: int) -> None:
                threads.add(threading.current_thread())
                begun.set()
                assert gate.wait(20)

            task = asyncio.ensure_future(files.upload_from("assets", "a", source, progress=progress))
            while not begun.is_set():
                await asyncio.sleep(0.005)
            assert await files.list("assets") == [] and not task.done()
            gate.set()
            assert (await task).size == 10 * MIB and threading.current_thread() not in threads

            def failing(done: int, total: int) -> None:
                raise Stop

            with pytest.raises(Stop):
                await files.upload_from("assets", "b", source, progress=failing)
            with pytest.raises(Stop):
                await files.download_to("assets", "a", tmp_path / "target", progress=failing)
            assert not (tmp_path / "target").exists() and len(await files.list("assets")) == 1

    run(main())


# Streams of responses


def test_a_response_is_an_iterator_of_bytes(client: Client, files: Storage, data: bytes) -> None:
    files.upload("assets", "a", data)
    stream = client.storage.handle_file("GET", "/assets/a")
    assert iter(stream) is stream and (stream.status, stream.headers["content-length"]) == (200, str(len(data)))
    assert repr(stream) == "<townsquare.HttpStream 200>"
    assert b"".join(stream) == data and list(stream) == []
    with client.storage.handle_file("GET", "/assets/a") as closed:
        closed.close()
        assert list(closed) == [] and closed.status == 200
    dropped = client.storage.handle_file("GET", "/assets/a")
    next(dropped)
    del dropped


def test_headers_are_a_mapping_of_strings(client: Client) -> None:
    for wrong in ({"range": 5}, {5: "x"}, ["range"], "range"):
        with pytest.raises(TypeError):
            client.storage.handle_file("GET", "/assets/a", b"", wrong)  # type: ignore[arg-type]


# Fork and closing


FORKING = """
import gc, os, sys, townsquare
client = townsquare.Client.open(sys.argv[1])
files = client.as_service().storage
files.upload("assets", "a", bytes(300_000))
reader, writer = files.open("assets", "a"), files.open("assets", "b", "wb")
stream = client.storage.handle_file("GET", "/assets/a")
reader.read(10), writer.write(bytes(300_000))

def refused(call):
    try:
        call()
    except townsquare.ClosedError as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError("not refused")

child = os.fork()
if child == 0:
    code = 1
    try:
        for call in (
            lambda: files.list("assets"), lambda: files.upload("assets", "c", b""), lambda: reader.read(300_000),
            lambda: writer.write(b"x"), lambda: next(stream), lambda: files.open("assets", "a"),
            lambda: files.upload_from("assets", "c", sys.argv[0] or "x", progress=print),
        ):
            refused(call)
        reader.close(), stream.close(), writer.discard()
        del reader, writer, stream, files, client
        gc.collect()
        code = 0
    finally:
        sys.stderr.flush()
        if code:
            import traceback
            traceback.print_exc()
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
assert len(reader.read()) == 299_990 and len(b"".join(stream)) == 300_000
writer.close()
assert len(files.download("assets", "b")) == 300_000
client.close()
"""


@needs_fork
def test_after_a_fork_the_child_is_refused_and_removes_nothing(tmp_path: Path) -> None:
    child = run_python(FORKING, tmp_path / "data", timeout=120)
    assert (child.returncode, child.stderr) == (0, "")


def test_a_writer_stores_nothing_for_another_user(client: Client, service: Client, data: bytes) -> None:
    for email in ("ann@town.example", "bob@town.example"):
        service.auth.sign_up(email, "correct horse")
    client.auth.sign_in("ann@town.example", "correct horse")
    writer = client.storage.open("assets", "a", "wb")
    writer.write(data)
    client.auth.sign_in("bob@town.example", "correct horse")
    with pytest.raises(townsquare.AuthError) as refused:
        writer.close()
    assert refused.value.status == 401
    assert not service.storage.exists("assets", "a")


def test_open_files_of_a_closed_client_are_refused(tmp_path: Path) -> None:
    client = Client.open(tmp_path / "data")
    files = client.as_service().storage
    writer = files.open("assets", "a", "wb")
    writer.write(LARGE)
    files.upload("assets", "b", b"bytes")
    reader = files.open("assets", "b")
    client.close()
    for call in (lambda: files.stat("assets", "a"), reader.read, writer.close):
        with pytest.raises(townsquare.ClosedError):
            call()
    with Client.open(tmp_path / "data") as again:
        assert [file.path for file in again.as_service().storage.list("assets")] == ["b"]
    wait_until(lambda: objects(tmp_path / "data") == [])


READING = """
import sys, threading, time, townsquare
service, inside = townsquare.Client.open(sys.argv[1]).as_service(), threading.Event()
def endless(item):
    while True:
        inside.set()
        time.sleep(0.001)
        yield item
class File:
    def read(self, size):
        inside.set()
        time.sleep(0.001)
        return b"x" * 100
calls = {
    "an iterator": lambda: service.storage.upload("assets", "images/a", endless(b"x")),
    "a file object": lambda: service.storage.upload("assets", "images/a", File()),
    "a body": lambda: service.storage.handle_file("PUT", "/assets/images/a", endless(b"x"), {}),
    "rows": lambda: service.spaces.create_spaces(endless({"name": "x"})),
    "credentials": lambda: service.auth.import_credentials(endless({"email": "a@b", "password_hash": "x"})),
    "headers": lambda: service.storage.handle_file("GET", "/assets/x", b"", endless(("a", "b"))),
}
threading.Thread(target=calls[sys.argv[2]], daemon=True).start()
inside.wait(20)
time.sleep(0.1)
"""


@pytest.mark.parametrize("what", ["an iterator", "a file object", "a body", "rows", "credentials", "headers"])
def test_the_interpreter_exits_while_a_thread_reads_an_argument(tmp_path: Path, what: str) -> None:
    child = run_python(READING, tmp_path / "data", what)
    assert (child.returncode, child.stderr) == (0, "")
