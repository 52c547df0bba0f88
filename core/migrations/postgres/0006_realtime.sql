-- The change log (DESIGN 5): triggers write every change of a row, in the transaction of the change. `open` makes the triggers and
-- the functions of the log (`capture.sql`, `change_log.sql`). The triggers are disabled until a program first asks for the feed
-- (townsquare.set_capture), so that a database without subscribers pays nothing.

-- The ids of the entries.
CREATE SEQUENCE townsquare.changes_id;

-- Its value is the time, in seconds since 1970, until which a reader listens for notifications. A sequence, because its
-- value does not depend on a snapshot and costs no row version.
CREATE SEQUENCE townsquare.listening_until;

CREATE TABLE townsquare.changes (
    -- The value of townsquare.next_entry(). No default: whoever writes an entry must call the function.
    id          BIGINT PRIMARY KEY,
    transaction XID8 NOT NULL DEFAULT pg_current_xact_id(),
    at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    table_name  TEXT NOT NULL,
    -- insert, update, delete; visibility for a row that stays as it is while who may see it changes (only new_row has its
    -- image); session_started, session_rotated, session_ended.
    kind        TEXT NOT NULL,
    old_row     JSON,
    new_row     JSON,
    -- What the policy needs besides the row, as of the statement.
    old_context JSON,
    new_context JSON
);
-- Entries are short-lived, and compressing them costs more than it saves.
ALTER TABLE townsquare.changes ALTER COLUMN old_row SET STORAGE EXTERNAL, ALTER COLUMN new_row SET STORAGE EXTERNAL;

-- One row.
CREATE TABLE townsquare.feed (
    only_row           INTEGER PRIMARY KEY CHECK (only_row = 1),
    -- Whether the triggers write the log.
    is_on              BOOLEAN NOT NULL,
    -- The last entry that was pruned. Before any was, this migration stands in for it.
    pruned_to          BIGINT NOT NULL,
    pruned_transaction XID8 NOT NULL DEFAULT pg_current_xact_id(),
    pruned_at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- The size of the log: the bytes of the entries up to `counted_to`. Writers do not count; who prunes does.
    counted_to         BIGINT NOT NULL DEFAULT 0,
    counted_bytes      BIGINT NOT NULL DEFAULT 0
);
INSERT INTO townsquare.feed (only_row, is_on, pruned_to) VALUES (1, false, 0);

-- The spaces that a running transaction has deleted, for the triggers of the fidgets and files that are deleted with them.
CREATE UNLOGGED TABLE townsquare.deleted_spaces (
    transaction XID8 NOT NULL DEFAULT pg_current_xact_id(),
    id          UUID NOT NULL,
    owner_id    UUID,
    is_public   BOOLEAN,
    PRIMARY KEY (transaction, id)
);
