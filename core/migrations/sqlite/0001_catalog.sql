-- The stored catalog: the fallback if the upstream fails, and shared by all processes on this database (SPEC 1.3,
-- DESIGN 6). One header row per source. Its records lie in parts, under the generation that the header names: the
-- parts of a large catalog are written in short transactions, and the header row replaces the whole catalog in one.
CREATE TABLE townsquare_catalog (
    source     TEXT PRIMARY KEY,
    generation TEXT NOT NULL,
    parts      INTEGER NOT NULL,
    fetched_at TEXT NOT NULL,
    header     TEXT NOT NULL CHECK (json_valid(header))
);

CREATE TABLE townsquare_catalog_parts (
    generation TEXT NOT NULL,
    part       INTEGER NOT NULL,
    source     TEXT NOT NULL,
    records    TEXT NOT NULL CHECK (json_valid(records)),
    -- When the part was written: tells the parts of a save that never ended from the parts of a running one.
    written_at TEXT,
    PRIMARY KEY (generation, part)
);
CREATE INDEX townsquare_catalog_parts_source ON townsquare_catalog_parts (source);

-- The lists of the catalog, shared by all processes on this database (DESIGN 6). One row for each list of a source: its copy,
-- and until when no process fetches it again after a failure. The list `''` is the main one; its copy is in
-- townsquare_catalog and townsquare_catalog_parts.
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

-- Leases: which process does a task that only one should do, and until when.
CREATE TABLE townsquare_leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TEXT NOT NULL,
    -- The fencing token grows with every change of holder, so that a write of an earlier holder is refused.
    token      INTEGER NOT NULL DEFAULT 0
);
