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
    PRIMARY KEY (generation, part)
);
CREATE INDEX catalog_parts_source ON townsquare.catalog_parts (source);

-- Leases: which process does a task that only one should do, and until when.
CREATE TABLE townsquare.leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TIMESTAMPTZ NOT NULL
);
