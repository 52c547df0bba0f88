"""Records of checks, moves, exports, imports and migrations. The stub file beside this module documents them."""

from ._native import Finding, MigrationPlan, MoveReport, PlannedMigration, RowImportReport, RowProblem, TableRow
