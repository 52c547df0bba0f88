-- The fetched catalog, for the fallback and for other processes (SPEC 1.3, DESIGN 6).
-- One header for each source; its records lie in parts, under the generation that the header names, so that a
-- large catalog can be written in short transactions and still changes hands in one.
CREATE TABLE townsquare.catalog (
    source     TEXT PRIMARY KEY,
    generation TEXT NOT NULL,
    parts      BIGINT NOT NULL,
    fetched_at TIMESTAMPTZ NOT NULL,
    -- Text, not JSONB: it is read whole and must come back as it went in.
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

-- Who of several processes does a piece of work that all would do, and until when the others leave it alone.
CREATE TABLE townsquare.leases (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    held_until TIMESTAMPTZ NOT NULL
);
