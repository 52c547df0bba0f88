"""Files, their records and signed files. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Literal, Optional, Protocol, Union, final, overload
from uuid import UUID

from typing_extensions import Buffer, Self, TypeAlias

from ._client import _Headers, _Id, _Json, _Path, _Record, _Seconds
from ._files import AsyncFileOpening, AsyncFileReader, AsyncFileWriter, FileReader, FileWriter
from ._opening import AsyncResponseOpening

_Progress: TypeAlias = Callable[[int, int], object]
_FileInfos: TypeAlias = list["FileInfo"]

class _Readable(Protocol):
    def read(self, size: int, /) -> Buffer: ...

class _AsyncReadable(Protocol):
    def read(self, size: int, /) -> Awaitable[Buffer]: ...

_Source: TypeAlias = Union[Buffer, Iterable[Buffer], _Readable]
_AsyncSource: TypeAlias = Union[AsyncIterable[Buffer], _AsyncReadable]
_Exc: TypeAlias = Union[type[BaseException], BaseException, TracebackType, None]

@final
class Storage:
    """Files: `Client.storage`.

    A file is bytes under a bucket and a path. Everybody reads the bucket `spaces`; a path in it starts with the id of a space,
    and the owner of this space writes the file. Everybody reads `assets`, and every user may add files. In the bucket `private`
    a path starts with the id or the linked identity key of a user, and only this user reads and writes the file. The option
    `buckets` declares others.

        client.storage.upload("assets", "cat.png", data).etag
        client.storage.download("assets", "cat.png", range=(0, 8))

    A path is Unicode text in the normal form NFC: segments joined by `/`, none empty, `.` or `..`, without control characters
    and backslashes; at most 1,024 bytes, a segment at most 255. A new path has at most 32 segments. Case matters.

    A failure has an HTTP status as its `status`, and its text ends with the reason.
    """

    def upload(
        self,
        bucket: str,
        path: str,
        data: _Source,
        *,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileInfo:
        """Stores a file. The bytes are durable when the call returns.

        Args:
            data: `bytes` are not copied. Any other object with the buffer protocol is. Or a file object opened in binary mode, or
                an iterable of such objects, as a generator: they are read in chunks, and memory does not grow with the file. An
                exception in them leaves the stored file as it was. With `AsyncClient` also async file objects and async iterables.
            cache_control: How long a cache may keep the file: 0 to 31,536,000 seconds.
            upsert: Whether an existing file is replaced.
            content_type: The media type; by default guessed from the name and the content.
            metadata: At most 64 names of letters, digits, hyphen and underscore, with their values; 8 KiB together.
            if_match: The etag that the file must have now, with or without quotes, or "" if there must be no file.
            verify: Whether the content must be a signed file that verifies.

        Raises:
            AlreadyExistsError: The file exists and `upsert` is false, or a folder has the path (status 409).
            ConflictError: The file is not of the version `if_match` (412).
            TooLargeError: The file is over `max_file_size`, or with `verify` over `max_verified_size` (413).
            QuotaExceededError: The caller would own more than `max_owner_bytes` (413) or `max_owner_files` (409).
            AuthError: The caller may not write there: anonymous (401), a user (403).
            NotFoundError: The bucket is unknown (404).
            InvalidInputError: The path or an option is malformed, or the signed file does not verify (400).
        """

    def upload_from(
        self,
        bucket: str,
        path: str,
        source: _Path,
        *,
        progress: Optional[_Progress] = None,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileInfo:
        """Stores the file `source` of the host, streamed: memory does not grow with the file.

        Args:
            progress: Called as `progress(done, total)` with the bytes that were read and the size. An exception in it ends the
                upload, leaves the stored file as it was, and is raised. With `AsyncClient` a library thread calls it.

        Other arguments and errors are those of `upload`. `InvalidInputError` also if `source` cannot be read, or is a file of a
        database that the process has open.
        """

    def download(self, bucket: str, path: str, *, range: Optional[tuple[int, Optional[int]]] = None) -> bytes:
        """Returns the bytes of a file.

        Args:
            range: `(start, end)` in bytes, without the end. An end that is None or beyond the file is the end of the file.

        Raises:
            NotFoundError: There is no such file, or the caller may not see it (404).
            InvalidInputError: The range starts after its end or beyond the file (400).
        """

    def download_to(self, bucket: str, path: str, target: _Path, *, progress: Optional[_Progress] = None) -> FileInfo:
        """Writes a file to `target` on the host, streamed. `target` is there, whole, when the call returns; else it is as before.

        A new file is for its owner only; an existing file keeps its permissions. If `target` is a symbolic link, the file that it
        names is replaced and the link stays.

        Args:
            progress: Called as `progress(done, total)` with the bytes that were written and the size. An exception in it ends
                the download, leaves `target` as it was, and is raised. With `AsyncClient` a library thread calls it.

        Raises the errors of `download`, and `InvalidInputError` if `target` cannot be written, or is a folder, a device, a pipe,
        or a symbolic link to one of these or to nothing.
        """

    def delete(self, bucket: str, path: str) -> None:
        """Removes a file. Also cancels an upload of the caller that ended with code 08007, so that it adds no file later.

        Raises:
            NotFoundError: There is no such file, or the caller may not see it (404).
            AuthError: The caller may see the file and not delete it: anonymous (401), a user (403).
        """

    def delete_prefix(self, bucket: str, prefix: str) -> int:
        """Deletes the files that `list` shows with this `prefix`, and returns how many. `""` is every path.

        Deletes 100 files at a time, in the order of their paths: all of them or, if the caller may not delete one of them, none
        of them. Then the call fails, and the files before these 100 are deleted. A file that is added meanwhile may stay.

        Raises:
            AuthError: The caller sees a file and may not delete it: anonymous (401), a user (403).
            NotFoundError: The bucket is unknown (404).
            InvalidInputError: The prefix is part of no path (400).
        """

    def secure_upload(
        self,
        bucket: str,
        path: str,
        data: Buffer,
        user_id: _Id,
        *,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileInfo:
        """Stores a file if the caller is the user `user_id`. The service may name any user.

        Raises:
            AuthError: The caller is somebody else; the message is `Unauthorized file upload`.

        Other arguments and errors are those of `upload`.
        """

    def exists(self, bucket: str, path: str) -> bool:
        """Returns whether the file exists and the caller may see it.

        Raises:
            NotFoundError: The bucket is unknown (404).
            InvalidInputError: The path is malformed (400).
        """

    def stat(self, bucket: str, path: str) -> FileInfo:
        """Returns what is known about a file.

        Raises:
            NotFoundError: There is no such file, or the caller may not see it (404).
        """

    def list(self, bucket: str, prefix: str = "", limit: int = 100, *, after: Optional[str] = None) -> _FileInfos:
        """Lists the files that the caller may see and that have a path with this `prefix`, in path order.

        In the bucket `spaces`, these are the files of own and of public spaces; the others can be read by their path.

        Args:
            prefix: May end within a segment: `"images/"`, `"images/ca"`.
            limit: 1 to 1,000.
            after: The last path of the page before.

        Raises:
            NotFoundError: The bucket is unknown (404).
            InvalidInputError: The prefix is part of no path, or the limit is out of range (400).
        """

    def iter(self, bucket: str, prefix: str = "", page_size: int = 100) -> Iterator[FileInfo]:
        """Iterates over the files that `list` shows with this `prefix`, in path order. Reads `page_size` at a time.

        `AsyncStorage` has an async iterator: `async for file in client.storage.iter("assets")`.

            newest = max(client.storage.iter("assets", "images/"), key=lambda file: file.updated_at)

        Raises:
            NotFoundError: The bucket is unknown (404).
            InvalidInputError: The prefix is part of no path, or the page size is not 1 to 1,000 (400).
        """

    def copy(self, bucket: str, source: str, target: str, *, upsert: bool = False) -> FileInfo:
        """Copies a file within its bucket. The copy keeps type, cache control and metadata; its owner is the caller.

        Errors are those of `download` for the source and of `upload` for the target.
        """

    def move(self, bucket: str, source: str, target: str, *, upsert: bool = False) -> FileInfo:
        """Moves a file within its bucket. The file keeps owner, type, cache control and metadata.

        Errors are those of `delete` for the source and of `upload` for the target.
        """

    @overload
    def open(self, bucket: str, path: str, mode: Literal["rb"] = "rb") -> FileReader:
        """Opens a file as a binary file object.

        "rb": reads one version of the file, with `seek`. "wb": the file is there, whole, when `close` returns; leaving the
        `with` block by an exception leaves the file as it was, and so does another user who signs in to the client meanwhile: then
        `close` raises AuthError. Options of `upload` are for "wb".

            with client.storage.open("private", f"{user_id}/homebase") as file:
                homebase = json.load(file)

        Errors are those of `download` and `upload`.
        """

    @overload
    def open(
        self,
        bucket: str,
        path: str,
        mode: Literal["wb"],
        *,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileWriter: ...

    def signed_url(
        self,
        bucket: str,
        path: str,
        *,
        expires_in: _Seconds = 3600,
        method: Literal["GET", "PUT"] = "GET",
        max_size: Optional[int] = None,
        content_type: Optional[str] = None,
    ) -> str:
        """Returns a target for `handle_file` that needs no session: `/BUCKET/PATH?…`.

        It acts for the caller. It ends after `expires_in` (seconds or a timedelta, at most 7 days) or up to a second later, when
        the caller loses the right, when the user gets a new password or signs out everywhere, or with `rotate_url_key`.

        Args:
            max_size: For PUT: the largest size of the file in bytes. By default `max_file_size` is the limit.
            content_type: For PUT: the type of the file. A request with another `Content-Type` is refused.

        Raises:
            NotFoundError, AuthError: The caller may not do it itself.
            InvalidInputError: The time is 0 or over 7 days, the method is unknown, or `max_size` or `content_type` is given
                for GET (400).
        """

    def rotate_url_key(self) -> None:
        """Ends every signed URL. A request that has begun goes on. For the service.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: The key is the option `url_signing_key` (400).
        """

    def handle_file(
        self, method: str, target: str, body: _Source = b"", headers: Optional[_Headers] = None
    ) -> HttpStream:
        """Answers an HTTP request for `/BUCKET/PATH`, for any web framework to mount: GET, HEAD, PUT and DELETE.

        It acts for the bearer of the header `Authorization`, or of a signed URL, and for nobody else: neither for the signed-in
        user of this client nor, on a handle of `as_service`, for the service. A refused request is a response, not an error.

        Args:
            target: Path and query as received: `"/assets/images/cat.png"`.
            body: The body of a PUT: what `upload` takes as `data`. An exception in it ends the request, which stores nothing.
            headers: The headers of the request, a mapping or pairs. Case of names does not matter.
        """

    def export_files(self, target: _Path, *, progress: Optional[_Progress] = None) -> int:
        """Writes every file to `TARGET/BUCKET/PATH` on the host and returns how many. For the service.

        Takes the files of every bucket that was ever declared.

        Args:
            target: A folder that is empty or does not exist.
            progress: Called as `progress(done, total)` with numbers of files. An exception in it ends the export and is raised.

        Raises:
            AuthError: The caller is not the service.
            InvalidInputError: `target` has files, or cannot be written (400).
            Error: The bytes of files are gone or of another size (500). The message names them; all others are exported.
        """

    def repair(self) -> RepairReport:
        """Finishes writes that a crash interrupted, and removes bytes and rows that belong to no file. For the service.

        Bytes that a killed writer staged are removed by the next `open`, if the store is a folder that no other client uses; else
        by `repair` when they are an hour old. Nothing is removed while the id in the store's `.townsquare/store` is not the id
        that the database has recorded.

        Raises:
            AuthError: The caller is not the service.
            ConfigError: The object store is not the one with the files of this database.
        """

@final
class AsyncStorage:
    """Files: `AsyncClient.storage`. Each method is the coroutine of the same method of `Storage`."""

    async def upload(
        self,
        bucket: str,
        path: str,
        data: Union[_Source, _AsyncSource],
        *,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileInfo:
        """See `Storage.upload`."""

    async def upload_from(
        self,
        bucket: str,
        path: str,
        source: _Path,
        *,
        progress: Optional[_Progress] = None,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileInfo:
        """See `Storage.upload_from`."""

    async def download(self, bucket: str, path: str, *, range: Optional[tuple[int, Optional[int]]] = None) -> bytes:
        """See `Storage.download`."""

    async def download_to(
        self, bucket: str, path: str, target: _Path, *, progress: Optional[_Progress] = None
    ) -> FileInfo:
        """See `Storage.download_to`."""

    async def delete(self, bucket: str, path: str) -> None:
        """See `Storage.delete`."""

    async def delete_prefix(self, bucket: str, prefix: str) -> int:
        """See `Storage.delete_prefix`."""

    async def secure_upload(
        self,
        bucket: str,
        path: str,
        data: Buffer,
        user_id: _Id,
        *,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> FileInfo:
        """See `Storage.secure_upload`."""

    async def exists(self, bucket: str, path: str) -> bool:
        """See `Storage.exists`."""

    async def stat(self, bucket: str, path: str) -> FileInfo:
        """See `Storage.stat`."""

    async def list(self, bucket: str, prefix: str = "", limit: int = 100, *, after: Optional[str] = None) -> _FileInfos:
        """See `Storage.list`."""

    def iter(self, bucket: str, prefix: str = "", page_size: int = 100) -> AsyncIterator[FileInfo]:
        """See `Storage.iter`."""

    async def copy(self, bucket: str, source: str, target: str, *, upsert: bool = False) -> FileInfo:
        """See `Storage.copy`."""

    async def move(self, bucket: str, source: str, target: str, *, upsert: bool = False) -> FileInfo:
        """See `Storage.move`."""

    @overload
    def open(self, bucket: str, path: str, mode: Literal["rb"] = "rb") -> AsyncFileOpening[AsyncFileReader]:
        """See `Storage.open`. `async with storage.open(…) as file`, or `file = await storage.open(…)`."""

    @overload
    def open(
        self,
        bucket: str,
        path: str,
        mode: Literal["wb"],
        *,
        cache_control: int = 3600,
        upsert: bool = True,
        content_type: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        if_match: Optional[str] = None,
        verify: bool = False,
    ) -> AsyncFileOpening[AsyncFileWriter]: ...

    async def signed_url(
        self,
        bucket: str,
        path: str,
        *,
        expires_in: _Seconds = 3600,
        method: Literal["GET", "PUT"] = "GET",
        max_size: Optional[int] = None,
        content_type: Optional[str] = None,
    ) -> str:
        """See `Storage.signed_url`."""

    async def rotate_url_key(self) -> None:
        """See `Storage.rotate_url_key`."""

    def handle_file(
        self, method: str, target: str, body: Union[_Source, _AsyncSource] = b"", headers: Optional[_Headers] = None
    ) -> AsyncResponseOpening:
        """See `Storage.handle_file`. `async with` the result, or await it for the response; it is a coroutine."""

    async def export_files(self, target: _Path, *, progress: Optional[_Progress] = None) -> int:
        """See `Storage.export_files`."""

    async def repair(self) -> RepairReport:
        """See `Storage.repair`."""

@final
@dataclass(frozen=True, eq=False)
class FileInfo(_Record):
    """What is known about a stored file."""

    bucket: Final[str]
    """The bucket: `spaces`, `private`, `assets`, or one of the option `buckets`."""
    path: Final[str]
    """The path in the bucket, without a leading slash."""
    size: Final[int]
    """The size in bytes."""
    content_type: Final[str]
    """The media type: `application/json`."""
    cache_control: Final[int]
    """How long a cache may keep the file, in seconds."""
    etag: Final[str]
    """The version: new with every write, also of the same bytes."""
    metadata: Final[dict[str, str]]
    """Names and values that the uploader gave."""
    owner_id: Final[Optional[UUID]]
    """The user who wrote the file; None for the service and for a user who was deleted."""
    updated_at: Final[datetime]
    """When the file was last written, UTC. It grows with every write of the path."""

@final
@dataclass(frozen=True, eq=False)
class RepairReport(_Record):
    """What `repair` did and found."""

    finished: Final[int]
    """The unfinished writes and deletes that were finished or undone, and the files of a remote store that got the version of
    their object.
    """
    orphans_removed: Final[int]
    """The objects without a row, and the abandoned staging files, that were removed."""
    rows_removed: Final[int]
    """The rows that were removed because their bytes had vanished."""
    mismatched: Final[list[str]]
    """`BUCKET/PATH` of each file with bytes of another size or version than its row says. They stay, and are never served."""

@final
class HttpStream(Iterator[bytes]):
    """A response with an iterator of bytes as its body. `close`, `with` or dropping it ends the stream."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> dict[str, str]:
        """Header names in lower case, with their values."""

    def close(self) -> None:
        """Ends the stream: no more bytes follow. A second call does nothing."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: _Exc) -> None: ...

@final
class AsyncHttpStream(AsyncIterator[bytes]):
    """A response with an async iterator of bytes as its body. `close`, `async with` or dropping it ends the stream."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> dict[str, str]:
        """Header names in lower case, with their values."""

    async def close(self) -> None:
        """See `HttpStream.close`."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> bytes: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: _Exc) -> None: ...

def sign_file(
    file_data: str,
    private_key: str,
    *,
    file_type: str = "json",
    file_name: Optional[str] = None,
    timestamp: Optional[datetime] = None,
) -> dict[str, Any]:
    """Makes a signed file: `{publicKey, fileData, fileType, isEncrypted, timestamp, fileName?, signature}`.

        json.dumps(townsquare.sign_file('{"a":1}', private_key))

    Args:
        private_key: The seed of an Ed25519 key in 64 hex digits.
        timestamp: By default now. Milliseconds are kept.

    Raises:
        InvalidInputError: The key is malformed.
    """

def verify_file(signed: Mapping[str, _Json]) -> bool:
    """Whether the signature of a signed file verifies. False for every other mapping."""

def encrypt_file(
    data: Buffer,
    private_key: str,
    *,
    file_type: str = "json",
    file_name: Optional[str] = None,
    timestamp: Optional[datetime] = None,
) -> dict[str, Any]:
    """Makes a signed file with `fileData` encrypted with the private key. Arguments and errors are those of `sign_file`."""

def decrypt_file(signed: Mapping[str, _Json], private_key: str) -> bytes:
    """Verifies a signed file and returns its decrypted data.

    Raises:
        InvalidInputError: The file does not verify, is not encrypted, or is of another key.
    """
