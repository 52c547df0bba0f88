"""The file objects of `Storage.open`. Import their names from `townsquare`.

Invariants: a read returns as many bytes as were asked for, unless the file ends. A writer changes its file in `close` and not
before; a writer that is discarded, or dropped without `close`, leaves nothing.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any, AsyncGenerator, Awaitable, Generator, Generic, Iterator, List, Optional, Tuple, TypeVar, Union

if TYPE_CHECKING:
    from typing import BinaryIO

    from typing_extensions import Buffer, Self

    from ._storage import FileInfo

    class _RawIO(io.RawIOBase, BinaryIO):  # type: ignore[misc]
        pass

else:
    _RawIO = io.RawIOBase

__all__ = ["AsyncFileOpening", "AsyncFileReader", "AsyncFileWriter", "FileReader", "FileWriter"]


class FileReader(_RawIO):
    """A stored file that is open for reading: a binary file object, seekable. `Storage.open` returns it.

    It gives one version of the file from beginning to end, also while others overwrite or delete the file. It reads ahead, so
    it needs no `io.BufferedReader`; `io.TextIOWrapper(file)` reads it as text.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def name(self) -> str:
        """`BUCKET/PATH`."""
        return f"{self.info.bucket}/{self.info.path}"

    @property
    def mode(self) -> str:
        """"rb"."""
        return "rb"

    @property
    def info(self) -> FileInfo:
        """What is known about the version that the object reads."""
        info: FileInfo = self._handle.info
        return info

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: Optional[int] = -1, /) -> bytes:
        """Reads `size` bytes, fewer at the end of the file; all that are left if `size` is negative or None."""
        _refuse_closed(self)
        data: bytes = self._handle.read(None if size is None or size < 0 else size)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        with memoryview(buffer).cast("B") as view:
            data = self.read(len(view))
            view[: len(data)] = data
        return len(data)

    def peek(self, size: int = 0, /) -> bytes:
        """Returns bytes from the position on without moving it: at least one, unless the file ends."""
        _refuse_closed(self)
        data: bytes = self._handle.peek()
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        _refuse_closed(self)
        position: int = self._handle.seek(offset, whence)
        return position

    def tell(self) -> int:
        _refuse_closed(self)
        position: int = self._handle.tell()
        return position

    def write(self, data: Buffer, /) -> int:
        raise io.UnsupportedOperation("not writable")

    def close(self) -> None:
        if not self.closed:
            try:
                self._handle.close()
            finally:
                super().close()

    def __enter__(self) -> Self:
        _refuse_closed(self)
        return self

    def __repr__(self) -> str:
        return f"<townsquare.FileReader {self.name!r}>"


class FileWriter(_RawIO):
    """A stored file that is open for writing: a binary file object. `Storage.open` returns it.

    The file is there, whole and durable, when `close` returns. `discard`, an exception that leaves the `with` block, and
    dropping the object leave the file as it was.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._info: Optional[FileInfo] = None

    @property
    def mode(self) -> str:
        """"wb"."""
        return "wb"

    @property
    def info(self) -> Optional[FileInfo]:
        """What is known about the file that `close` stored; None before."""
        return self._info

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        """Appends all bytes of `data` and returns how many."""
        _refuse_closed(self)
        size: int = self._handle.write(data)
        return size

    def readinto(self, buffer: Buffer, /) -> int:
        raise io.UnsupportedOperation("not readable")

    def read(self, size: Optional[int] = -1, /) -> bytes:
        raise io.UnsupportedOperation("not readable")

    def readall(self) -> bytes:
        return self.read()

    def tell(self) -> int:
        _refuse_closed(self)
        position: int = self._handle.tell()
        return position

    def close(self) -> None:
        """Stores the file. A second call does nothing.

        Raises:
            Error: The file is not stored, for the same reasons as in `Storage.upload`.
        """
        if not self.closed:
            try:
                self._info = self._handle.finish()
            finally:
                super().close()

    def discard(self) -> None:
        """Closes the object and leaves the file as it was. Does nothing after `close`."""
        if not self.closed:
            try:
                self._handle.discard()
            finally:
                super().close()

    def __enter__(self) -> Self:
        _refuse_closed(self)
        return self

    def __exit__(self, exc_type: Optional[type[BaseException]], *exc: object) -> None:
        if exc_type is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Without this method the base class would call `close`, which stores the file.
        if not self.closed:
            warnings.warn(f"unclosed file {self!r} is discarded", ResourceWarning, stacklevel=2, source=self)
            super().close()

    def __repr__(self) -> str:
        return f"<townsquare.FileWriter {'closed' if self.closed else 'open'}>"


class AsyncFileReader:
    """A stored file that is open for reading, for asyncio. `AsyncStorage.open` gives it.

    It gives one version of the file from beginning to end. `async for` iterates over lines.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._is_closed = False

    @property
    def info(self) -> FileInfo:
        """What is known about the version that the object reads."""
        info: FileInfo = self._handle.info
        return info

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    async def read(self, size: Optional[int] = -1, /) -> bytes:
        """Reads `size` bytes, fewer at the end of the file; all that are left if `size` is negative or None."""
        _refuse_closed(self)
        data: bytes = await self._handle.read(None if size is None or size < 0 else size)
        return data

    async def readinto(self, buffer: Buffer, /) -> int:
        """Reads into a buffer until it is full or the file ends, and returns the number of bytes."""
        with memoryview(buffer).cast("B") as view:
            data = await self.read(len(view))
            view[: len(data)] = data
        return len(data)

    async def readline(self) -> bytes:
        """Reads to the end of the line, newline included; nothing at the end of the file."""
        _refuse_closed(self)
        line = b""
        while not line.endswith(b"\n"):
            ahead: bytes = await self._handle.peek()
            if not ahead:
                break
            line += await self.read(ahead.find(b"\n") + 1 or len(ahead))
        return line

    async def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves the position, as `io.IOBase.seek` does, and returns it."""
        _refuse_closed(self)
        position: int = self._handle.seek(offset, whence)
        return position

    async def tell(self) -> int:
        """Returns the position."""
        _refuse_closed(self)
        position: int = self._handle.tell()
        return position

    async def close(self) -> None:
        """Ends reading. A second call does nothing."""
        if not self._is_closed:
            self._is_closed = True
            await self._handle.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    async def __aenter__(self) -> Self:
        _refuse_closed(self)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<townsquare.AsyncFileReader {f'{self.info.bucket}/{self.info.path}'!r}>"


class AsyncFileWriter:
    """A stored file that is open for writing, for asyncio. `AsyncStorage.open` gives it. See `FileWriter`."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._is_closed = False
        self._info: Optional[FileInfo] = None

    @property
    def info(self) -> Optional[FileInfo]:
        """What is known about the file that `close` stored; None before."""
        return self._info

    @property
    def closed(self) -> bool:
        """Whether `close` or `discard` was called."""
        return self._is_closed

    async def write(self, data: Buffer, /) -> int:
        """Appends all bytes of `data` and returns how many. A cancelled write discards the file."""
        _refuse_closed(self)
        size: int = await self._handle.write(data)
        return size

    async def tell(self) -> int:
        """Returns the number of bytes that were written."""
        _refuse_closed(self)
        position: int = self._handle.tell()
        return position

    async def close(self) -> None:
        """Stores the file. A second call does nothing.

        Raises:
            Error: The file is not stored, for the same reasons as in `Storage.upload`.
        """
        if not self._is_closed:
            self._is_closed = True
            self._info = await self._handle.finish()

    async def discard(self) -> None:
        """Closes the object and leaves the file as it was. Does nothing after `close`."""
        if not self._is_closed:
            self._is_closed = True
            await self._handle.discard()

    async def __aenter__(self) -> Self:
        _refuse_closed(self)
        return self

    async def __aexit__(self, exc_type: Optional[type[BaseException]], *exc: object) -> None:
        if exc_type is None:
            await self.close()
        else:
            await self.discard()

    def __del__(self) -> None:
        if not self._is_closed:
            warnings.warn(f"unclosed file {self!r} is discarded", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        return f"<townsquare.AsyncFileWriter {'closed' if self._is_closed else 'open'}>"


_File = TypeVar("_File", AsyncFileReader, AsyncFileWriter)


class AsyncFileOpening(Generic[_File]):
    """What `AsyncStorage.open` returns: `async with` it, or await it for the file object."""

    def __init__(self, opening: Awaitable[_File]) -> None:
        self._opening: Awaitable[_File] = opening
        self._file: Optional[_File] = None

    def __await__(self) -> Generator[Any, Any, _File]:
        return self._opening.__await__()

    async def __aenter__(self) -> _File:
        self._file = await self._opening
        return self._file

    async def __aexit__(self, exc_type: Optional[type[BaseException]], *exc: object) -> None:
        if self._file is not None:
            await self._file.__aexit__(exc_type, *exc)


def _refuse_closed(file: Union[FileReader, FileWriter, AsyncFileReader, AsyncFileWriter]) -> None:
    if file.closed:
        raise ValueError("I/O operation on closed file")


_Pairs = List[Tuple[str, str]]

# The bytes that are read from a file object at a time.
_CHUNK = 256 << 10


def _chunks(data: Any, name: str) -> Iterator[Any]:
    """The chunks of a file object or an iterable of bytes."""
    if hasattr(data, "read"):
        return iter(lambda: data.read(_CHUNK), b"")
    if hasattr(data, "__iter__"):
        return iter(data)
    raise TypeError(f"{name}: expected bytes, a file object or an iterable of bytes, not {type(data).__name__}")


async def _async_chunks(data: Any) -> AsyncGenerator[Any, None]:
    """The chunks of a file object, blocking or not, or of an iterable or async iterable of bytes."""
    if hasattr(data, "read"):
        while (chunk := await _read(data)) != b"":
            yield chunk
    elif hasattr(data, "__aiter__"):
        async for chunk in data:
            yield chunk
    else:
        for chunk in data:
            yield chunk


async def _read(file: Any) -> Any:
    import asyncio
    import inspect

    if inspect.iscoroutinefunction(file.read):
        return await file.read(_CHUNK)
    # A blocking file object would block the event loop.
    return await asyncio.get_running_loop().run_in_executor(None, file.read, _CHUNK)


def upload_chunks(storage: Any, bucket: str, path: str, data: Any, options: Optional[dict[str, Any]]) -> Any:
    """`Storage.upload` of a file object or an iterable. An exception of theirs leaves the stored file as it was."""
    chunks = _chunks(data, "data")
    with storage.open(bucket, path, "wb", **(options or {})) as file:
        for chunk in chunks:
            file.write(chunk)
    return file.info


async def upload_chunks_async(storage: Any, bucket: str, path: str, data: Any, options: Optional[dict[str, Any]]) -> Any:
    """`AsyncStorage.upload` of a file object, an iterable or an async iterable."""
    chunks = _async_chunks(data)
    try:
        async with storage.open(bucket, path, "wb", **(options or {})) as file:
            async for chunk in chunks:
                await file.write(chunk)
    finally:
        await chunks.aclose()
    return file.info


def handle_chunks(answer: Any, request: Any, method: str, target: str, body: Any, headers: _Pairs) -> Any:
    """`Storage.handle_file` or `Client.handle_request`, which is `answer`, with a file object or an iterable as the body.

    An exception of theirs ends the request.
    """
    chunks = _chunks(body, "body")
    if method not in ("PUT", "POST"):
        return answer(method, target, b"", headers)
    # A thread of the library stores the chunks that this one reads.
    request.start(method, target, headers)
    try:
        if all(request.push(chunk) for chunk in chunks):
            request.finish()
    finally:
        request.cut()
    return request.response()


async def handle_chunks_async(answer: Any, request: Any, method: str, target: str, body: Any, headers: _Pairs) -> Any:
    """The same for `AsyncClient`. The body may be an async iterable, too."""
    import asyncio

    if method not in ("PUT", "POST"):
        return await answer(method, target, b"", headers)
    async def feed() -> None:
        chunks = _async_chunks(body)
        try:
            async for chunk in chunks:
                if not await request.push(chunk):
                    return
            request.finish()
        finally:
            request.cut()
            await chunks.aclose()

    feeding = asyncio.ensure_future(feed())
    try:
        response = await answer(method, target, request, headers)
    finally:
        # The request may be answered, as with 401, while the source has more.
        feeding.cancel()
        (failure,) = await asyncio.gather(feeding, return_exceptions=True)
    if isinstance(failure, Exception):
        await response.close()
        raise failure
    return response
