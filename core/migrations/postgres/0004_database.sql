-- What the library knows of the database itself.

-- One row.
CREATE TABLE townsquare.database (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    -- The incarnation id names this copy of the database; a restored copy gets another.
    incarnation TEXT NOT NULL,
    -- The key of signed URLs, in hex. A new key ends every URL.
    url_key     TEXT NOT NULL DEFAULT '',
    -- The id of the object store of large files, which is also in the store, so that another store is not taken for it. ''
    -- before the first large file.
    store_id    TEXT NOT NULL DEFAULT '',
    -- The key of the cursors' authentication and encryption.
    cursor_key  TEXT NOT NULL DEFAULT '',
    -- A copy of a database is noticed by its place: the system identifier of the server and the oid of the database. '' is
    -- unknown.
    place       TEXT NOT NULL DEFAULT '',
    -- Whether the object store is this database's own. A copy has the store of the original, and only reads it.
    owns_store  BOOLEAN NOT NULL DEFAULT TRUE
);
INSERT INTO townsquare.database (only_row, incarnation, url_key, cursor_key) VALUES (1,
    replace(gen_random_uuid()::text, '-', ''),
    replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''),
    replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));

-- The parts of the access rules (`policies.rs`): the script that created a part and a hash of what it created. A part that
-- differs is created again.
CREATE TABLE townsquare.policies (name TEXT PRIMARY KEY, script TEXT NOT NULL);
