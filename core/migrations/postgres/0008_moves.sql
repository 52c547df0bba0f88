-- One row while a move into this database is unfinished (`Client::move_to`). `open` then refuses the database.
CREATE TABLE townsquare.unfinished_move (
    only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
    -- The incarnation of the source. A repeated call with the same source continues.
    source     TEXT NOT NULL,
    -- A random id of the call that writes. A later call takes over, and the writes of the earlier one fail.
    holder     TEXT NOT NULL,
    -- The table that is copied, and the key of its last copied row, as JSON. '' before the first page.
    progress   TEXT NOT NULL DEFAULT '',
    started_at TIMESTAMPTZ NOT NULL
);
