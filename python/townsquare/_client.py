"""`Client`, `AsyncClient` and `shared`. The stub file beside this module documents them."""

from ._native import (
    AsyncClient,
    Client,
    Finding,
    MigrationPlan,
    MoveReport,
    PlannedMigration,
    RowImportReport,
    RowProblem,
    TableRow,
    __version__,
    shared,
)
