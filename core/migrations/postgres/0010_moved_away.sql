-- One row since a move that followed its writers has left this database. Triggers then refuse writes.
CREATE TABLE townsquare.moved_away (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    -- The incarnation of the target.
    target   TEXT NOT NULL,
    moved_at TIMESTAMPTZ NOT NULL
);
