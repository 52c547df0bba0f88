-- The stored catalog: the fallback if the upstream fails, and shared by all processes on this database (SPEC 1.3,
-- DESIGN 6). One header row per source. Its records lie in parts, under the generation that the header names: the
-- parts of a large catalog are written in short transactions, and the header row replaces the whole catalog in one.
CREATE TABLE townsquare.catalog (
    source     TEXT PRIMARY KEY,
    generation TEXT NOT NULL,
    parts      BIGINT NOT NULL,
    fetched_at TIMESTAMPTZ NOT NULL,
    -- TEXT, not JSONB: it is only read whole, and its text must not change.
    header     TEXT NOT NULL
);

CREATE TABLE townsquare.catalog_parts (
    generation TEXT NOT NULL,
    part       BIGINT NOT NULL,
    source     TEXT NOT NULL,
    records    TEXT NOT NULL,
    -- When the part was written: tells the parts of a save that never ended from the parts of a running one.
    written_at TIMESTAMPTZ,
    PRIMARY KEY (generation, part)
);
CREATE INDEX catalog_parts_source ON townsquare.catalog_parts (source);

-- The lists of the catalog, shared by all processes on this database (DESIGN 6). One row for each list of a source: its copy,
-- and until when no process fetches it again after a failure. The list `''` is the main one; its copy is in
-- townsquare.catalog and townsquare.catalog_parts.
CREATE TABLE townsquare.catalog_lists (
    source     TEXT NOT NULL,
    list       TEXT NOT NULL,
    fetched_at TIMESTAMPTZ,
    -- TEXT, not JSONB: it is only read whole.
    content    TEXT,
    failures   BIGINT NOT NULL DEFAULT 0,
    retry_at   TIMESTAMPTZ,
    error      TEXT,
    PRIMARY KEY (source, list)
);

-- Leases: which process does a task that only one should do, and until when.
CREATE TABLE townsquare.leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TIMESTAMPTZ NOT NULL,
    -- The fencing token grows with every change of holder, so that a write of an earlier holder is refused.
    token      BIGINT NOT NULL DEFAULT 0
);
