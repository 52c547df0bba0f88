"""Records of checks, moves, exports, imports and migrations. Import these names from `townsquare`; `_client.pyi` states the conventions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Optional, final

from typing_extensions import Self

class _Record:
    """What all records have in common: they are frozen dataclasses, equal when class and values are equal.

    `dataclasses.fields`, `asdict`, `replace` and `copy.replace`, `pickle` and `match` work on them, and so do
    `pandas.DataFrame(rows)` and `polars.DataFrame(rows)` on lists of them. rich prints their fields. pydantic validates and
    serialises them, so a FastAPI endpoint may take and return them. A record that Python code makes, by `replace` or by calling the class, holds the values
    as they are given.
    """

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, records in them as dicts."""
    def to_json(self) -> str:
        """`to_dict()` as JSON text: times in RFC 3339, ids as text, bytes in Base64."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __rich_repr__(self) -> Iterator[tuple[str, Any]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object) -> Self: ...
    def __replace__(self, **changes: Any) -> Self: ...
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any: ...

@final
@dataclass(frozen=True, eq=False)
class Finding(_Record):
    """Something that is wrong, or will be, as `Client.check` found it."""

    code: Final[str]
    """The kind of fault, such as `file_missing`: stable and documented."""
    severity: Final[Literal["error", "warning", "note"]]
    """How bad it is: broken; works and will not for long, or wastes room or time; unusual and works."""
    message: Final[str]
    """A sentence that names the file, the table or the part."""
    advice: Final[str]
    """What to do about it."""

@final
@dataclass(frozen=True, eq=False)
class MoveReport(_Record):
    """What `move_to` has copied, as it was verified at its end. A resumed move counts what the calls before have copied, too."""

    rows: Final[dict[str, int]]
    """The number of rows by table. The tables of the library itself have no prefix: `credentials`, `identities`, `sessions`, …."""
    files: Final[int]
    """The number of files."""
    bytes: Final[int]
    """The bytes of the files."""
    seconds: Final[float]
    """How long the call took, in seconds."""
    resumed: Final[bool]
    """Whether the call continued a move that an earlier call had begun."""

@final
@dataclass(frozen=True, eq=False)
class TableRow(_Record):
    """A row of `export_rows`."""

    table: Final[str]
    """The name of the table."""
    values: Final[dict[str, Any]]
    """The values by column: ids and times as text (times in RFC 3339), JSON columns as the JSON that they hold. NULL is None. A JSON
    column that is NULL is left out, because None in it is the JSON value."""

@final
@dataclass(frozen=True, eq=False)
class RowImportReport(_Record):
    """What `import_rows` did; with `dry_run`, what it would do."""

    inserted: Final[int]
    """The rows that were inserted."""
    unchanged: Final[int]
    """The existing rows with the same values."""
    problems: Final[list[RowProblem]]
    """The rows that conflict with existing rows, in order: one problem for each. Empty without `dry_run`: the first problem is
    raised then."""

@final
@dataclass(frozen=True, eq=False)
class RowProblem(_Record):
    """Why `import_rows` cannot import a row."""

    row: Final[int]
    """The index of the row in the call."""
    kind: Final[str]
    """`differs`: there is a row with the key, and it has another value in the column. `taken`: another row has the value of the
    column, which is unique. `reference_missing`: the row that the column references is not there."""
    column: Final[str]
    """The column: the first that differs, the one with the taken value, or the reference."""
    table: Final[Optional[str]]
    """For `reference_missing`, the table of the missing row."""
    value: Final[Optional[str]]
    """For `reference_missing`, the value that no row of `table` has."""

@final
@dataclass(frozen=True, eq=False)
class MigrationPlan(_Record):
    """What `Client.open` would do to a database."""

    migrations: Final[list[PlannedMigration]]
    """Every migration that this version of the library knows, in the order in which they are applied."""
    is_new: Final[bool]
    """Whether there is no database yet, or one without the tables of the library."""
    is_current: Final[bool]
    """Whether `Client.open` changes nothing. False also if only triggers, policies or roles are not those of this version."""

@final
@dataclass(frozen=True, eq=False)
class PlannedMigration(_Record):
    """A migration of the library."""

    name: Final[str]
    """The name, such as `0005_files`."""
    about: Final[str]
    """What the migration does."""
    is_applied: Final[bool]
    """Whether the database has it."""
