-- The change log (SPEC 6, DESIGN 5): triggers, which `open` makes (`capture.sql`), write every change of a row in the transaction of
-- the change. Nothing is written before a client first asks for the feed, which sets `is_on`. An image maps the columns to JSON
-- values: JSON columns as JSON, booleans as 0 and 1. A context is what the select policy needs besides the row, as of the statement.

-- One row.
CREATE TABLE townsquare_feed (
    only_row  INTEGER PRIMARY KEY CHECK (only_row = 1),
    is_on     INTEGER NOT NULL DEFAULT 0 CHECK (is_on IN (0, 1)),
    -- The id of the last entry that was pruned. A reader that is not past it has missed entries.
    pruned_id INTEGER NOT NULL DEFAULT 0,
    -- The tag of that entry; a random number before any was pruned.
    pruned_tag INTEGER NOT NULL DEFAULT 0,
    -- The size of the log: the bytes of the entries up to `counted_id`. Writers do not count; who prunes does.
    counted_id INTEGER NOT NULL DEFAULT 0,
    counted_bytes INTEGER NOT NULL DEFAULT 0
);
INSERT INTO townsquare_feed (only_row, pruned_tag) VALUES (1, random());

-- AUTOINCREMENT: an id is never used again, also when every entry has been pruned.
CREATE TABLE townsquare_changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name  TEXT NOT NULL,
    -- insert, update, delete, visibility, session_started, session_ended, session_rotated
    kind        TEXT NOT NULL,
    old         TEXT,
    -- For kind visibility both the old and the new image, which are equal.
    new         TEXT,
    old_context TEXT,
    new_context TEXT,
    at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    -- A cursor proves its history: it names the entry that it stands on by this tag, which no entry of another history has. The
    -- last commits can be lost with the power; other changes then get their ids.
    tag         INTEGER NOT NULL DEFAULT (random())
);

-- The spaces that are being deleted. A cascade deletes a fidget after its space; the fidget's trigger finds the space here.
CREATE TABLE townsquare_deleted_spaces (
    id        TEXT PRIMARY KEY NOT NULL,
    owner_id  TEXT,
    is_public INTEGER
) WITHOUT ROWID;

-- The sessions of the users that are being deleted. They end after everything else that is deleted with the user, so that
-- the user's subscriptions get it.
CREATE TABLE townsquare_ending_sessions (
    id      TEXT PRIMARY KEY NOT NULL,
    user_id TEXT NOT NULL
) WITHOUT ROWID;
