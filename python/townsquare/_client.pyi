"""`Client` and `shared`. Import these names from `townsquare`; `AsyncClient` has the same conventions.

Conventions of all areas:

- Text is `str`, bytes are `bytes`, times are aware datetimes in UTC, lists are `list`. A time before the year 1
  reads as `datetime.min`.
- An id is a `uuid.UUID` or its text.
- JSON is `dict` with `str` keys, `list`, `str`, `int` of 64 bits, finite `float`, `bool` and None, nested at most 100 deep. It
  comes back equal. None for a whole column is SQL's NULL. A tuple comes back as a list, a scalar of numpy as a Python value.
- Headers of a request are a mapping, or pairs of names and values: text, or bytes as ASGI has them.
- An update keeps a column if its argument is missing (`...`) and clears it if the argument is None.
- A value of the right type that does not fit raises `InvalidInputError`; a value of a wrong type raises `TypeError`. Every
  other failure raises a class of `townsquare.exceptions`.
- A row that the caller may not see raises `NotFoundError`, as a missing row does.
- Any object may be used from any thread. A call that waits lets other threads run, and Ctrl-C interrupts it.

A client starts with an anonymous caller, who sees public rows. `auth.sign_in` makes the caller a user. `as_user` returns
a handle for each of many users, `as_service` one that bypasses every policy.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Optional, Union, final
from uuid import UUID

from typing_extensions import Never, Self, TypeAlias, Unpack

from ._auth import Auth
from ._communities import Communities
from ._discovery import Discovery
from ._realtime import Realtime
from ._reports import Finding, MigrationPlan, MoveReport, RowImportReport, TableRow
from ._reports import _Record as _Record
from ._spaces import Fidgets, Spaces
from ._storage import HttpStream, Storage, _Progress, _Source
from ._typed import OpenOptions

_Text: TypeAlias = Union[str, bytes]
_Headers: TypeAlias = Union[Mapping[str, str], Iterable[tuple[_Text, _Text]]]
_Id: TypeAlias = Union[UUID, str]
_Json: TypeAlias = Any
_Path: TypeAlias = Union[str, PathLike[str]]
_Seconds: TypeAlias = Union[float, timedelta]

__version__: str

def shared(data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]) -> Client:
    """Returns the process-wide client: the first call opens it, later calls return the same object.

    Takes the arguments of `Client.open`. A call without arguments accepts an open client with any options. After the client
    was closed, the next call opens another.

    Raises:
        ConfigError: The client is open with other options, or the parent process had it open at a fork: start workers before
            opening, or spawn them.
    """

@final
class Client:
    """One handle: a database, a catalog cache and a caller. Its methods block; `AsyncClient` is the twin for asyncio.

        with townsquare.Client.open("town") as client:
            apps = client.discovery.search_mini_apps("chess", limit=10)

    One client serves all threads. The end of the `with` block closes it, and so does dropping the last reference. A handle of
    `as_user` or `as_service` closes alone: the end of its `with` block ends that handle, and the client stays open. After a `fork`
    a client's methods raise `ClosedError` in the child process: start workers before opening, or spawn them.

    Do not open the database file with Python's `sqlite3` in the same process: two SQLite libraries in one process drop each
    other's file locks. The methods of the client may raise `UnavailableError` from then on, until it is opened again.
    """

    def __new__(cls, call_Client_open: Never, /) -> Self:
        """A client is opened by `Client.open`. A call of the class is an error: `TypeError` at run time."""

    @classmethod
    def open(
        cls,
        data_dir: Optional[_Path] = None,
        *,
        database_url: Optional[str] = None,
        storage_url: Optional[str] = None,
        catalog_url: Optional[_Path] = None,
        catalog_api_key: Optional[str] = None,
        refresh_interval: Optional[_Seconds] = 900,
        catalog_timeout: Optional[_Seconds] = 10,
        durability: Optional[Literal["full", "normal"]] = "full",
        persist_session: Optional[bool] = False,
        expose_owner_email: Optional[Union[Literal["always", "verified", "never"], bool]] = "always",
        adopt: Optional[bool] = False,
        migrate: Optional[bool] = True,
        connect_timeout: Optional[_Seconds] = 2,
        operation_timeout: Optional[_Seconds] = 30,
        max_connections: Optional[int] = 16,
        database_pooler: Optional[Literal["auto", "session", "transaction"]] = "auto",
        event_heartbeat: Optional[_Seconds] = 15,
        inline_file_limit: Optional[int] = None,
        max_file_size: Optional[int] = 52428800,
        buckets: Optional[Union[Mapping[str, Literal["public", "private"]], str]] = None,
        identity_audience: Optional[str] = None,
        change_retention: Optional[_Seconds] = None,
        change_retention_rows: Optional[int] = None,
        change_retention_bytes: Optional[int] = None,
        max_owner_bytes: Optional[int] = None,
        max_owner_files: Optional[int] = None,
        max_owner_spaces: Optional[int] = None,
        url_signing_key: Optional[str] = None,
        busy_timeout: Optional[_Seconds] = 10,
        idle_timeout: Optional[_Seconds] = 600,
        max_lifetime: Optional[_Seconds] = 1800,
        catalog_key_header: Optional[str] = "x-api-key",
        catalog_refresh_timeout: Optional[_Seconds] = 30,
        catalog_page_size: Optional[int] = 100,
        catalog_max_pages: Optional[int] = 100,
        catalog_max_page_bytes: Optional[int] = 33554432,
        catalog_tries: Optional[int] = 3,
        catalog_max_lists: Optional[int] = 20,
        catalog_format: Optional[Literal["neynar", "farcaster"]] = "neynar",
        max_staleness: Optional[_Seconds] = None,
        endpoint_refresh: Optional[bool] = True,
        endpoint_refresh_age: Optional[_Seconds] = 60,
        endpoint_lists: Optional[bool] = False,
        endpoint_origins: Optional[str] = "",
        max_text_size: Optional[int] = 1048576,
        max_name_size: Optional[int] = 1024,
        max_json_size: Optional[int] = 262144,
        max_bulk_rows: Optional[int] = 10000,
        sign_up_limit: Optional[int] = 0,
        claim_store: Optional[bool] = False,
        max_verified_size: Optional[int] = 1048576,
        max_space_fidgets: Optional[int] = 1000,
        database_replica_url: Optional[str] = None,
        database_replica_wait: Optional[_Seconds] = 1,
        database_replica_max_lag: Optional[_Seconds] = 10,
    ) -> Client:
        """Opens a client. Creates the folder, the database and its tables where they are missing.

        An option that is missing or None is read from the environment variable TOWNSQUARE_<NAME>, and else takes its default.
        Durations are seconds or timedeltas.

        Args:
            data_dir: Folder of the database; by default ./townsquare-data. ":memory:" for a client with nothing on the disk, which
                is gone when it closes. Or a URL of options, `townsquare:/srv/town?durability=normal`; an option of the URL may
                not be given again with another value.
            database_url: `sqlite:PATH`, `sqlite::memory:` or `postgres://…`; by default SQLite in `data_dir`.
            storage_url: Object store of large files: `file:///…`, `memory:///`, `s3://bucket/prefix`, `gs://…` or `az://…`; by
                default the folder `files` in `data_dir`.
            catalog_url: Base URL of the catalog; or a path or `file:///…` for a catalog file, or "sample:" for invented apps, which
                need no key.
            catalog_api_key: Key for the catalog; by default also $CATALOG_API_KEY. Without one (or with "") discovery is empty. A
                warning in the log says so once, except with "".
            refresh_interval: How long a fetched catalog is fresh.
            catalog_timeout: How long one request to the catalog may take.
            durability: "full": a commit survives power loss. "normal": a commit survives a crash of the process.
            persist_session: Whether a session survives a restart. It is stored in `data_dir`, in a file of mode 0600. For
                an app with one user. Processes with the same `data_dir` share the session.
            expose_owner_email: Owners of public spaces who show their addresses: "always" every one, "verified" those with a
                verified address (for servers), "never" none. True means "always", and False "never".
            adopt: Whether to take over a PostgreSQL database that has the tables but was not made by this library. Without it,
                such a database is refused with a list of the differences.
            migrate: Whether `open` may create or migrate the database. Without it, a database that needs that is refused unchanged.
            connect_timeout: How long one host of a PostgreSQL URL may take to accept a connection before the next is tried.
            operation_timeout: How long an operation on PostgreSQL may take.
            max_connections: Largest number of connections to PostgreSQL.
            database_replica_url: PostgreSQL: a streaming standby of `database_url`, to which some reads of anonymous callers
                and of the service go.
            database_replica_wait: How long a read waits until the replica has what the client has written.
            database_replica_max_lag: How old at most the answer of the replica may be.
            database_pooler: How the PostgreSQL server, or a pooler before it, shares connections; "auto" finds out.
            inline_file_limit: Bytes; files up to it are kept in the database. By default 65,536, with a `storage_url` 0.
            max_file_size: Largest size of a file, in bytes.
            buckets: Further buckets beside `spaces`, `private` and `assets`. Everybody may read a public one.
            url_signing_key: Key of signed URLs: at least 32 bytes of random text, the same for every client of the database. By
                default a key in the database, which no backup contains.
            event_heartbeat: Time between two comments of server-sent events.
            identity_audience: Name of the deployment that identity claims must be for; by default the database's incarnation id.
            change_retention: How long the change log keeps a change; by default a week. The log has up to four times its limits
                while a subscription of the process lags; then the subscription ends with `CursorExpiredError`.
            change_retention_rows: How many changes the log keeps; by default a million.
            change_retention_bytes: How many bytes the log keeps; by default 1 GiB.
            max_owner_bytes: Most bytes of files of one owner; beyond it `QuotaExceededError`. No limit by default.
            max_owner_files: Most files of one owner.
            max_owner_spaces: Most spaces of one owner.
            busy_timeout: How long a write to SQLite waits for another process's write lock.
            idle_timeout: After how long an idle connection to PostgreSQL is closed.
            max_lifetime: After how long a connection to PostgreSQL is replaced.
            catalog_key_header: Name of the HTTP header that carries the key.
            catalog_refresh_timeout: How long fetching one whole list may take.
            catalog_page_size: Rows of one page: 1 to 100.
            catalog_max_pages: Most pages of one list.
            catalog_max_page_bytes: Largest size of a page or of a catalog file, in bytes.
            catalog_tries: Attempts to fetch one page.
            catalog_max_lists: Most further lists: orders of other timeframes, and apps of networks.
            catalog_format: Format of an upstream API.
            max_staleness: Age of the catalog from which a read waits for a refresh. No limit by default.
            endpoint_refresh: Whether callers of the discovery endpoint may refresh the catalog.
            endpoint_refresh_age: Age below which such a refresh fetches nothing.
            endpoint_lists: Whether such callers may have further lists fetched.
            endpoint_origins: Origins whose pages may call the HTTP endpoints (CORS), separated by commas; `*` is every one.
            max_text_size: Largest text in a table, in bytes.
            max_name_size: Largest name in a table, in bytes.
            max_json_size: Largest JSON value in a table, in bytes.
            max_bulk_rows: Most rows that one call writes.
            sign_up_limit: New accounts in an hour; 0 is no limit.
            claim_store: Whether to take over an object store of another database. For one open.
            max_verified_size: Largest upload with `verify`, in bytes.
            max_space_fidgets: Most fidgets of a space, except the service's.

        The stub has no `**options`, so a misspelt option fails in mypy and pyright. At run time it raises `ConfigError`.

        Raises:
            ConfigError: An option is unknown or invalid (the message names it), or the database cannot be used.
        """

    def close(self) -> None:
        """Closes the client and ends its threads. Later calls raise `ClosedError`; a second `close` does nothing.

        It waits for callbacks that run, 10 seconds at most. A callback that takes longer ends after `close`.

        On a handle of `as_user` or `as_service` it closes that handle only and does not wait; calls that run complete.
        In a callback of the library it returns at once, and the client closes after the callback has returned. A write that waits
        for a PostgreSQL server raises `UnavailableError` (08007): it may happen.
        """

    @property
    def closed(self) -> bool:
        """Whether this handle or its client was closed, or belongs to the parent process."""

    def as_service(self) -> Client:
        """Returns a handle that bypasses row-level security, for trusted code. It closes alone."""

    def as_anonymous(self) -> Client:
        """Returns a handle that acts for nobody, whoever signs in on this client. It closes alone.

        A server answers requests without credentials on it.
        """

    def with_client_key(self, client_key: str) -> Client:
        """Returns this handle with limits for one client of a server: the address of the peer, or a device that proves its name.

        Sign-ins, password checks and the requests of `storage.handle_file` and `realtime.handle_events` count for the client
        first. One client has at most 64 streams of events and 16 uploads at the same time; beyond them the answer is 429. IPv6
        addresses with the same first 64 bits are one client. White space around the key, and the port of an address, do not
        count: `10.0.0.1:80` and `10.0.0.1` are one client. The handle has the caller of this one and closes with it; handles
        made from it have the same client key.
        """

    def read_position(self) -> str:
        """Returns the position of everything that this client has written, and of what this handle was told by `read_after`.

        A client of another process that is told this position reads all of it, also where a replica answers (option
        `database_replica_url`). All handles of one client read what any of them has written without it. A web server returns
        the position, a short text without secrets, with the response to a write, and the browser sends it with the next
        request. It is empty if nothing was written, and on SQLite.

        Raises:
            UnavailableError: The PostgreSQL server does not answer: it names the position after a write. The write is committed
                all the same.
        """

    def read_after(self, position: str) -> None:
        """Has later reads of this handle see what was written before `position`, which `read_position` returned.

        A read waits up to the option `database_replica_wait` until the replica has it, and is then answered by the server of
        `database_url`. Without replicas, and with an empty position, nothing changes. The position of another database is
        not an error: the server of `database_url` then answers the reads of this handle.

        Raises:
            InvalidInputError: The text is no position.
        """

    def as_user(self, access_token: str) -> Client:
        """Returns a handle that acts for the user of a session, for servers with many users. Its caller never changes.

        It closes alone: `with client.as_user(token) as user:` leaves the client open. Once the session has ended or expired, the handle's methods raise `AuthError`.

        Raises:
            AuthError: The session has ended, or its access token has expired (`unauthorized`).
        """

    def handle_request(
        self, method: str, target: str, body: _Source = b"", headers: Optional[_Headers] = None
    ) -> HttpStream:
        """Answers an HTTP request for any endpoint, for any web framework to mount. `asgi` and `wsgi` do so for you.

        `/api/miniapp-discovery` and below: `discovery.handle`. `/directory` and below: the directory as a page for people.
        `/files/BUCKET/PATH`: `storage.handle_file`. `/events`: `realtime.handle_events`. `/health`: 200 while the database
        answers, else 503. Other paths: 404.

        It acts for the bearer of the header `Authorization`, or of a signed URL, and for nobody else: neither for the signed-in
        user of this client nor, on a handle of `as_service`, for the service. A refused request is a response, not an error.

        Args:
            target: Path and query as received: `"/files/assets/images/cat.png"`.
            body: The body of a PUT or POST: what `storage.upload` takes as `data`. An exception in it ends the request, which
                stores nothing.
            headers: The headers of the request, a mapping or pairs. Case of names does not matter.

        Raises:
            ClosedError: The client or the handle is closed. (`/health` is answered with 503, a path of no endpoint with 404.)

        Example:
            >>> response = client.handle_request("GET", "/health")
            >>> response.status, b"".join(response)
            (200, b'{"status":"ok"}')
        """

    def check(self, *, full: bool = False) -> list[Finding]:
        """Returns what is wrong, or will be, the worst first; an empty list if all is well. Changes nothing.

        Checks the integrity of the database, migrations, policies, files against their rows, the object store, the change feed,
        room on the disks, the clock and the modes of files. Writers go on meanwhile; what they write or delete is no finding. At
        most 100 findings of a code are listed. The page check_guide.md of the sources lists the codes.

        A check is an operation of the host, not of a caller: every handle may call it, and findings name files and tables, also
        those that policies hide from the handle's caller. They contain no address, token or secret.

        Args:
            full: Reads every byte of the database and of the files, which takes as long as that takes. Without it, the check reads
                the rows of files and the names and sizes of their objects.

        Raises:
            ClosedError: The client or the handle is closed. Every other failure is a finding, such as `database_unreachable`.
        """

    def backup(self, target: _Path) -> None:
        """Writes a copy of the SQLite database and its files at one moment to the file `target` while other calls write.

        Small files are in the database. Large ones are copied to the folder `<target>.files`; those in a remote object store
        stay there.

        A backup is an operation of the host, not of a caller: every handle may make one, and the copy has every row and file, also
        rows and files that policies hide from the handle's caller. It contains password hashes and the hashes of session tokens.

        Raises:
            InvalidInputError: `target` or `<target>.files` exists, or the database is PostgreSQL: use its own tools.
            ConfigError: `target` cannot be written: its folder is missing or not writable, or the path is empty or has a NUL.
            UnavailableError: The disk is full.
            Error: The bytes of files are gone or of another size. The message names them, and there is no backup.
        """

    def metrics(self) -> dict[str, Any]:
        """Returns what the client has counted and measured since it was opened, by name: calls by operation and outcome, their times,
        the times of callbacks, queues, connections, and the state of the catalog and of the change feed.

        A metric has its `kind` (`counter`, `gauge` or `histogram`), its `unit` and its `samples`. A sample has its `labels` and a
        `value`, or, of a histogram, `count`, `sum` and `buckets`: pairs of an upper bound and how many values were at most as large.
        The book lists the metrics. Every handle returns the same. The figures are for the program: show them to no stranger.

        metrics = client.metrics()
        apps = metrics["townsquare_catalog_apps"]["samples"][0]["value"]

        Raises:
            ClosedError: The client is closed.
        """

    def metrics_text(self) -> str:
        """Returns `metrics()` in the text format of Prometheus, for an endpoint that it scrapes (`text/plain; version=0.0.4`).

        Raises:
            ClosedError: The client is closed.
        """

    @staticmethod
    def restore(source: _Path, data_dir: _Path) -> None:
        """Restores a copy made by `backup`, with its files, into a folder that no client has open. Creates the folder.

        Sessions of the backup, and its tokens of recovery and verification, stay valid in the restored database until they end.
        Signed URLs of the original are refused. Either everything is restored or nothing: after an error or a kill, call it again.
        After a kill, `open` of the folder raises `ConfigError` until then. While the call runs, `open` raises `UnavailableError`.

        Raises:
            UnavailableError: The disk is full.
            ConfigError: `source` is no such copy, is damaged or of a newer version, or the folder has a database or files.
        """

    def move_to(
        self,
        *,
        data_dir: Optional[_Path] = None,
        sessions: bool = True,
        follow: Optional[_Seconds] = None,
        progress: Optional[_Progress] = None,
        **options: Unpack[OpenOptions],
    ) -> MoveReport:
        """Copies everything into an empty database and file store, and compares every table and file with one moment of the source.

        Copied are rows, users with their password hashes, linked identities, sessions, files with versions, metadata and times,
        and the catalog. `data_dir`, `database_url`, `storage_url` and further options name the target, as `Client.open` takes them.
        The engines and the kinds of stores may differ. `sessions=False` leaves the sessions behind.

        `progress(done, total)` gets the rows and files that are copied and the number of all. An exception in it stops the move.
        A call that was stopped, that failed, or whose process was killed is continued by the same call. Until it is complete,
        no client opens the target, and one that has it open cannot write (25006).

        The source is only read; nobody else may write it meanwhile, unless the move follows it. `follow` lets others write: at the
        end their writes wait for the last copy and comparison, at most this long (in seconds, or a timedelta); then the source
        takes no writes any more (25006), so that none is lost. Choose less than the `busy_timeout` (SQLite) or `operation_timeout`
        (PostgreSQL) of the writers and of the source. `reopen_for_writes` allows writes again.

        The target refuses cursors and signed URLs of the source, and has another `identity_audience` by default. Sessions are valid
        in both databases, in each until they end there.

        A move is an operation of the host, not of a caller: every handle may move, and the target has every row and file, also
        those that policies hide from the handle's caller.

        Raises:
            ConfigError: The target has no place or is in memory, is the source, has rows or files, or has an unfinished move from
                another source. Then nothing is changed.
            ConflictError: The source was written during the comparison: the message names the tables. Or another call
                continues the move, or the changes of a source that is followed cannot be copied in the pause.
            Error: The bytes of a file are gone or of another version. The message names it.
        """

    def reopen_for_writes(self) -> bool:
        """Accepts writes again after a move that followed this database. Returns whether writes were refused.

        Call it if the target is given up: what is written from now on is in this database alone. A backup of a database that refuses
        writes refuses them, too, after its restore. Like a move, it is an operation of the host, not of a caller.
        """

    def check_move(
        self, *, data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]
    ) -> Literal["new", "empty", "unfinished"]:
        """Checks whether `move_to` would accept the target, and returns what it would find there. Writes nothing.

        `new`: there is no database yet, or it has no tables. `empty`: a database without rows, and a store without files.
        `unfinished`: a move from this source that `move_to` continues. The check looks at the target alone; `check` looks for faults
        of the source.

        Raises:
            ConfigError: `move_to` would refuse the target, with this error.
            UnavailableError: The database or the store of the target does not answer.
        """

    def export_rows(self, tables: Iterable[str] = ()) -> Iterator[TableRow]:
        """Iterates over every row of tables, as the database is at this moment; of all tables if none is named. For the service.

        The tables are `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces` and `fidgets`. A row comes
        after the rows that it references. Others may write meanwhile. A row has every column of its table. It has no password,
        token, session or identity key: `move_to` and `backup` copy accounts.

        An iterator that is not read to its end holds a read transaction of the database until it is dropped: drop it before the
        client closes. `AsyncClient` has an async iterator, which begins at its first row:
        `async for row in service.export_rows(["spaces"])`.

            for row in client.as_service().export_rows(["users", "spaces"]):
                print(row.table, row.values["id"])

        Raises:
            InvalidInputError: A table is unknown.
            AuthError: The caller is not the service.
            UnavailableError: The database does not answer.
        """

    def import_rows(self, table: str, rows: Iterable[Mapping[str, Any]], *, dry_run: bool = False) -> RowImportReport:
        """Inserts rows of a table with their ids and times, all or none, in one transaction. For the service.

        A row has the form of `TableRow.values`. A UUID and an aware datetime may stand for their text. A row that is there with the
        same values counts as unchanged, so a call may be repeated. An existing row is never changed. Values are checked as for a
        new row. No quota applies. A user who is imported has no password: see `set_password`, `import_credentials` and `recover`.

        `dry_run=True` inserts nothing: the report says what would happen, with a problem for each row that conflicts with existing
        rows. A row that is not valid is an error of the call, as without it.

            rows = [row.values for row in client.as_service().export_rows(["users"])]
            with townsquare.Client.open("copy") as copy:
                print(copy.as_service().import_rows("users", rows).inserted)

        Raises:
            FieldMissingError: A row lacks a column, or has None where the table requires a value.
            InvalidInputError: The table or a column is unknown, a value has another type or is refused as by a create, or two rows
                have one id. `row` is the index and `column` the column, if they are known. The other errors have both, too.
            TooLargeError: A value is over its limit, or there are more rows than `max_bulk_rows`.
            AlreadyExistsError: A row is there and differs, or another row has the value of a unique column.
            ReferenceMissingError: A row references none.
            AuthError: The caller is not the service.
        """

    @staticmethod
    def plan_migrations(data_dir: Optional[_Path] = None, **options: Unpack[OpenOptions]) -> MigrationPlan:
        """Lists the migrations of this library, and which of them a database lacks. Changes nothing, and creates no database.

        `data_dir` and the options name the database, as `Client.open` takes them. `Client.open` applies the missing migrations. The
        object store is not opened, and the option `migrate` has no effect.

        Raises:
            ConfigError: The file is no townsquare database, the database needs a newer version of the library, or another build of
                this version made it.
            UnavailableError: The server does not answer.
        """

    @property
    def discovery(self) -> Discovery:
        """The mini app directory."""

    @property
    def communities(self) -> Communities:
        """Communities: configurations, domains and registered spaces."""

    @property
    def spaces(self) -> Spaces:
        """Spaces."""

    @property
    def fidgets(self) -> Fidgets:
        """The fidgets of spaces."""

    @property
    def storage(self) -> Storage:
        """Files."""

    @property
    def realtime(self) -> Realtime:
        """Changes of rows, as they are committed."""

    @property
    def auth(self) -> Auth:
        """Accounts, sessions and sign-in."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: Union[type[BaseException], BaseException, TracebackType, None]) -> None: ...
