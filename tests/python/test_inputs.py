"""Input as Python has it: tuples and numpy in JSON, headers, etags, ranges, and the sources of an upload."""

from __future__ import annotations

import array
import asyncio
import io
import mmap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import townsquare
from conftest import package, run
from townsquare import AsyncClient, Client, ConflictError, InvalidInputError, Storage

DATA = bytes(range(256)) * 4_096


@pytest.fixture
def files(service: Client) -> Storage:
    return service.storage


def test_a_tuple_in_json_comes_back_as_a_list(service: Client) -> None:
    class Point(NamedTuple):
        x: int
        y: int

    space = service.spaces.create_space("Harbor")
    value = {"a": (1, ("b", None)), "c": [Point(1, 2)], "d": ()}
    fidget = service.fidgets.create_fidget(space.id, "x", config=value, position=(1, 2))
    assert fidget.config == {"a": [1, ["b", None]], "c": [[1, 2]], "d": []} and fidget.position == [1, 2]
    deep: Any = 1
    for _ in range(101):
        deep = (deep,)
    for wrong, text in (((1, {2}), "has a value that JSON does not know: set"), (deep, "is JSON nested deeper than 100")):
        with pytest.raises(InvalidInputError, match=f"config {text}"):
            service.fidgets.create_fidget(space.id, "x", config=wrong)


def test_numpy_scalars_are_json_values_and_integers(service: Client) -> None:
    numpy = package("numpy")
    space = service.spaces.create_space("Harbor", is_public=numpy.bool_(True))
    value = {
        "ints": [numpy.int8(-1), numpy.uint64(2**64 - 1), numpy.int64(-(2**63))],
        "floats": (numpy.float64(0.1), numpy.float32(0.5), numpy.float16(2)),
        "others": [numpy.bool_(True), numpy.str_("text")],
        numpy.str_("key"): 1,
    }
    config = service.fidgets.create_fidget(space.id, "x", config=value).config
    assert config == {"ints": [-1, 2**64 - 1, -(2**63)], "floats": [0.1, 0.5, 2.0], "others": [True, "text"], "key": 1}
    assert [type(each) for each in config["others"]] == [bool, str] and type(config["ints"][0]) is int
    assert len(service.spaces.list_spaces(numpy.int32(1))) == 1 and space.is_public
    refused = {
        "datetime64": numpy.datetime64("2026-01-01"),
        "complex": numpy.complex128(1j),
        "ndarray": numpy.array([1, 2]),
        "longdouble": numpy.longdouble(1),
    }
    for name, wrong in refused.items():
        with pytest.raises(InvalidInputError, match="config has a value that JSON does not know"):
            service.fidgets.create_fidget(space.id, name, config={"a": wrong})
    for wrong in (numpy.float64("nan"), numpy.float32("inf")):
        with pytest.raises(InvalidInputError, match="config has a number that is not finite"):
            service.fidgets.create_fidget(space.id, "x", config=[wrong])


class Message:
    """Headers as `http.client` has them: no mapping, but with `items`."""

    def items(self) -> Iterator[tuple[str, str]]:
        return iter([("Range", "bytes=1-2")])


@pytest.mark.parametrize(
    "headers",
    [{"range": "bytes=1-2"}, [("Range", "bytes=1-2")], (["range", "bytes=1-2"],), [(b"range", b"bytes=1-2")], {"range": "bytes=1-2"}.items(), Message()],
    ids=lambda value: type(value).__name__,
)
def test_headers_are_a_mapping_or_pairs(client: Client, files: Storage, headers: Any) -> None:
    files.upload("assets", "a", b"0123")
    with client.storage.handle_file("GET", "/assets/a", b"", headers) as response:
        assert (response.status, b"".join(response)) == (206, b"12")
    with client.realtime.handle_events("/events?table=nothing", headers) as events:
        assert events.status in (404, 503)
    assert client.discovery.handle("GET", "/api/miniapp-discovery", b"", headers).status == 200


def test_pairs_keep_a_header_that_comes_twice(client: Client, files: Storage) -> None:
    files.upload("assets", "a", b"0123")
    assert client.storage.handle_file("GET", "/assets/a", b"", [("Authorization", "Bearer a")] * 2).status == 400
    etag = files.stat("assets", "a").etag
    twice = [("if-none-match", '"other"'), ("if-none-match", f'"{etag}"')]
    assert client.storage.handle_file("GET", "/assets/a", b"", twice).status == 304


@pytest.mark.parametrize("headers", [5, "range", b"range", ["range"], [("range",)], [("a", "b", "c")], [("a", 1)], {"a": None}, [None]], ids=repr)
def test_other_headers_are_refused_by_name(client: Client, headers: Any) -> None:
    calls = (
        lambda: client.storage.handle_file("GET", "/assets/a", b"", headers),
        lambda: client.realtime.handle_events("/events?table=files", headers),
        lambda: client.discovery.handle("GET", "/", b"", headers),
    )
    for call in calls:
        with pytest.raises(TypeError, match="^headers: expected "):
            call()


def test_an_etag_may_have_quotes(files: Storage) -> None:
    info = files.upload("assets", "a", b"1")
    info = files.upload("assets", "a", b"2", if_match=f'"{info.etag}"')
    with pytest.raises(ConflictError):
        files.upload("assets", "a", b"3", if_match='"other"')
    # A weak etag never matches (RFC 9110, 13.1.1).
    with pytest.raises(ConflictError):
        files.upload("assets", "a", b"3", if_match=f'W/"{info.etag}"')
    with pytest.raises(ConflictError):
        files.upload("assets", "a", b"3", if_match='""')
    assert files.download("assets", "a") == b"2" and files.upload("assets", "b", b"1", if_match="").size == 1


def test_a_range_without_an_end_goes_to_the_end(files: Storage) -> None:
    for name, data in (("small", DATA[:10]), ("large", DATA)):
        files.upload("assets", name, data)
        assert files.download("assets", name, range=(5, None)) == data[5:]
        assert files.download("assets", name, range=(len(data), None)) == b""
        with pytest.raises(InvalidInputError):
            files.download("assets", name, range=(len(data) + 1, None))
    for wrong in (5, (1, 2, 3), (None, 5), ("a", None), (1.5, None), "ab"):
        with pytest.raises(TypeError, match=r"^range: expected two positions \(start, end\), not "):
            files.download("assets", "small", range=wrong)  # type: ignore[arg-type]


def chunks() -> Iterator[bytes]:
    for start in range(0, len(DATA), 100_000):
        yield DATA[start : start + 100_000]


class ShortReads(io.RawIOBase):
    """A file object that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, size: int = -1, /) -> bytes:
        found, self.data = self.data[:70_000], self.data[70_000:]
        return found


def test_an_upload_reads_file_objects_and_iterables(files: Storage, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(DATA)
    files.upload("assets", "stored", DATA)
    with (tmp_path / "source").open("rb") as file, files.open("assets", "stored") as stored, (tmp_path / "source").open("rb") as mapped:
        sources: dict[str, Any] = {
            "file": file,
            "stored": stored,
            "memory": io.BytesIO(DATA),
            "short reads": ShortReads(DATA),
            "generator": chunks(),
            "list": [bytearray(DATA[:7]), memoryview(DATA)[7:], b""],
            "mmap": mmap.mmap(mapped.fileno(), 0, access=mmap.ACCESS_READ),
            "array": array.array("B", DATA),
        }
        for name, source in sources.items():
            info = files.upload("assets", f"from/{name}", source, metadata={"from": "source"}, cache_control=5)
            assert (info.size, info.metadata, info.cache_control) == (len(DATA), {"from": "source"}, 5), name
            assert files.download("assets", f"from/{name}") == DATA, name
    assert files.upload("assets", "empty", iter(())).size == 0


def test_an_upload_that_its_source_ends_changes_nothing(files: Storage) -> None:
    files.upload("assets", "a", b"old")

    def broken() -> Iterator[bytes]:
        yield DATA
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        files.upload("assets", "a", broken())
    wrong: list[Any] = [io.StringIO("text"), [b"1", "2"], [1], (b"1", None)]
    for source in wrong:
        with pytest.raises(TypeError, match="^data: expected bytes, not "):
            files.upload("assets", "a", source)
    with pytest.raises(townsquare.AlreadyExistsError) as caught:
        files.upload("assets", "a", chunks(), upsert=False)
    assert str(caught.value).startswith("Upload failed: ")
    with pytest.raises(InvalidInputError, match="^Upload failed: "):
        files.upload("assets", "../a", chunks())
    with pytest.raises(TypeError, match="unexpected keyword argument 'upsrt'"):
        files.upload("assets", "a", chunks(), upsrt=False)  # type: ignore[call-arg]
    assert files.download("assets", "a") == b"old" and len(files.list("assets")) == 1


@pytest.mark.parametrize("source", ["text", 5, None, {"a": b"1"}, object()], ids=repr)
def test_other_sources_are_refused_by_name(files: Storage, source: Any) -> None:
    with pytest.raises(TypeError, match="^data: expected bytes, a file object or an iterable of bytes, not "):
        files.upload("assets", "a", source)
    assert not files.exists("assets", "a")


def test_a_blocking_client_reads_no_async_generator(files: Storage) -> None:
    async def source() -> AsyncIterator[bytes]:
        yield b"1"

    with pytest.raises(TypeError, match="^data: expected bytes, a file object or an iterable of bytes, not async_generator"):
        files.upload("assets", "a", source())  # type: ignore[arg-type]


class AsyncFile:
    """A file object as `aiofiles` and Starlette's `UploadFile` are."""

    def __init__(self) -> None:
        self.file = io.BytesIO(DATA)

    async def read(self, size: int = -1, /) -> bytes:
        await asyncio.sleep(0)
        return self.file.read(size)


async def generator() -> AsyncIterator[bytes]:
    for chunk in chunks():
        await asyncio.sleep(0)
        yield chunk


async def broken() -> AsyncIterator[bytes]:
    yield DATA
    raise OSError("the peer is gone")


def test_an_async_client_reads_async_sources_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient.open(tmp_path / "data", catalog_api_key="") as client:
            files = (await client.as_service()).storage
            await files.upload("assets", "stored", DATA)
            async with files.open("assets", "stored") as stored:
                sources: dict[str, Any] = {"async": generator(), "file": AsyncFile(), "stored": stored, "generator": chunks(), "blocking": io.BytesIO(DATA), "bytes": DATA}
                for name, source in sources.items():
                    assert (await files.upload("assets", name, source)).size == len(DATA)
                    assert await files.download("assets", name) == DATA, name
            with pytest.raises(OSError, match="the peer is gone"):
                await files.upload("assets", "cut", broken())
            with pytest.raises(TypeError, match="^data: expected bytes, not str"):
                await files.upload("assets", "cut", io.StringIO("text"))  # type: ignore[arg-type]
            endless = asyncio.ensure_future(files.upload("assets", "cut", forever()))
            await asyncio.sleep(0.05)
            endless.cancel()
            with pytest.raises(asyncio.CancelledError):
                await endless
            assert not await files.exists("assets", "cut")

    async def forever() -> AsyncIterator[bytes]:
        while True:
            yield b"1"
            await asyncio.sleep(0.01)

    run(main())


def test_async_with_takes_a_response_with_and_without_await(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncClient.open(tmp_path / "data", catalog_api_key="") as client:
            files, realtime = (await client.as_service()).storage, (await client.as_service()).realtime
            await files.upload("assets", "a", DATA)
            await realtime.start()
            async with files.handle_file("GET", "/assets/a") as response:
                assert response.status == 200 and b"".join([chunk async for chunk in response]) == DATA
            async with await files.handle_file("GET", "/assets/a") as response:
                assert await anext_of(response) == DATA[: len(await anext_of(await files.handle_file("GET", "/assets/a")))]
            assert [chunk async for chunk in response] == []  # closed by the end of the block
            async with realtime.handle_events("/events?table=files") as events:
                assert events.status == 200 and (await anext_of(events)).startswith(b"id: ")
            assert [chunk async for chunk in events] == []
            both = await asyncio.gather(files.handle_file("GET", "/assets/a"), asyncio.create_task(files.handle_file("HEAD", "/assets/a")))
            assert [each.status for each in both] == [200, 200]
            with pytest.raises(TypeError, match="^headers: "):
                files.handle_file("GET", "/assets/a", b"", 5)  # type: ignore[arg-type]

    async def anext_of(response: townsquare.AsyncHttpStream) -> bytes:
        return await response.__anext__()

    run(main())


def test_a_request_has_a_body_of_chunks(client: Client) -> None:
    client.auth.sign_up("ann@town.example", "correct horse")
    ann = {"authorization": f"Bearer {client.auth.create_session('ann@town.example', 'correct horse').access_token}"}
    files = client.storage
    sources: dict[str, Any] = {"generator": chunks(), "file": io.BytesIO(DATA), "list": [DATA[:7], b"", bytearray(DATA[7:])]}
    for name, source in sources.items():
        with files.handle_file("PUT", f"/assets/{name}", source, ann) as response:
            assert response.status == 201, name
        assert files.download("assets", name) == DATA, name

    def broken() -> Iterator[bytes]:
        yield DATA
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        files.handle_file("PUT", "/assets/cut", broken(), ann)
    with pytest.raises(TypeError, match="expected bytes, not str"):
        files.handle_file("PUT", "/assets/cut", io.StringIO("text"), ann)  # type: ignore[arg-type]
    assert files.handle_file("PUT", "/assets/cut", chunks()).status == 401
    assert files.handle_file("GET", "/assets/file", chunks(), [("range", "bytes=0-1")]).status == 206
    for wrong in ("text", 5, None, {"a": b"1"}):
        with pytest.raises(TypeError, match="^body: expected bytes, a file object or an iterable of bytes, not "):
            files.handle_file("PUT", "/assets/cut", wrong, ann)  # type: ignore[arg-type]
    assert not files.exists("assets", "cut")


def test_a_request_has_an_async_body(tmp_path: Path) -> None:
    ended: list[bool] = []

    async def endless(begun: asyncio.Event) -> AsyncIterator[bytes]:
        try:
            yield b"1"
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> None:
        async with AsyncClient.open(tmp_path / "data", catalog_api_key="") as client:
            await client.auth.sign_up("ann@town.example", "correct horse")
            session = await client.auth.create_session("ann@town.example", "correct horse")
            ann, files = {"authorization": f"Bearer {session.access_token}"}, client.storage
            for name, source in (("generator", generator()), ("file", AsyncFile()), ("blocking", io.BytesIO(DATA))):
                async with files.handle_file("PUT", f"/assets/{name}", source, ann) as response:
                    assert response.status == 201, name
                assert await files.download("assets", name) == DATA, name
            with pytest.raises(OSError, match="the peer is gone"):
                await files.handle_file("PUT", "/assets/cut", broken(), ann)
            # A refusal does not wait for the source.
            assert (await files.handle_file("PUT", "/assets/cut", endless(asyncio.Event()))).status == 401
            begun = asyncio.Event()
            waiting = asyncio.ensure_future(files.handle_file("PUT", "/assets/cut", endless(begun), ann))
            await asyncio.wait_for(begun.wait(), 20)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert ended and not await files.exists("assets", "cut")

    run(main())
