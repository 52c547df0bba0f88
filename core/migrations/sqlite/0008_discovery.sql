-- The lists of the catalog, shared by all processes on this database (DESIGN 6).

-- One row for each list of a source: its copy, and until when no process fetches it again after a failure. The list `''` is
-- the main one; its copy is in townsquare_catalog and townsquare_catalog_parts.
CREATE TABLE townsquare_catalog_lists (
    source     TEXT NOT NULL,
    list       TEXT NOT NULL,
    fetched_at TEXT,
    content    TEXT CHECK (content IS NULL OR json_valid(content)),
    failures   INTEGER NOT NULL DEFAULT 0,
    retry_at   TEXT,
    error      TEXT,
    PRIMARY KEY (source, list)
) WITHOUT ROWID;

-- When a part was written, so that the parts of a save that never ended can be told from those of a running one. NULL in
-- the rows of older libraries.
ALTER TABLE townsquare_catalog_parts ADD COLUMN written_at TEXT;
