-- The fetched catalog, for the fallback and for other processes (SPEC 1.3, DESIGN 6).
-- One header for each source; its records lie in parts, under the generation that the header names, so that a
-- large catalog can be written in short transactions and still changes hands in one.
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

-- Who of several processes does a piece of work that all would do, and until when the others leave it alone.
CREATE TABLE townsquare_leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TEXT NOT NULL
);
