-- What the library knows of the database itself: one row.
CREATE TABLE townsquare_database (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    -- The incarnation id names this copy of the database; `restore` changes it.
    incarnation TEXT NOT NULL,
    -- The key of signed URLs, in hex. A new key ends every URL.
    url_key     TEXT NOT NULL DEFAULT '',
    -- The id of the object store of large files, which is also in the store, so that another store is not taken for it. ''
    -- before the first large file, and in a restored copy.
    store_id    TEXT NOT NULL DEFAULT '',
    -- The key of the cursors' authentication and encryption. A restored copy gets another.
    cursor_key  TEXT NOT NULL DEFAULT '',
    -- A copy of a database is noticed by its place: the number of the file and the time of its creation. '' is unknown.
    place       TEXT NOT NULL DEFAULT '',
    -- Whether the object store is this database's own. A copy has the store of the original, and only reads it.
    owns_store  INTEGER NOT NULL DEFAULT TRUE CHECK (owns_store IN (0, 1))
);
INSERT INTO townsquare_database (only_row, incarnation, url_key, cursor_key)
    VALUES (1, lower(hex(randomblob(16))), lower(hex(randomblob(32))), lower(hex(randomblob(32))));
