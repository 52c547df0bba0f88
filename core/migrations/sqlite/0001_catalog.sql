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
    PRIMARY KEY (generation, part)
);
CREATE INDEX townsquare_catalog_parts_source ON townsquare_catalog_parts (source);

-- Leases: which process does a task that only one should do, and until when.
CREATE TABLE townsquare_leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TEXT NOT NULL
);
