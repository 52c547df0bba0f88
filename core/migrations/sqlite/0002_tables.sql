-- The public tables (SPEC 2.2 to 2.7). Uuids are text, timestamps are RFC 3339 text in UTC with microseconds, JSON is text
-- with a CHECK, and booleans are 0 or 1. So the sqlite3 shell shows every row as readable text, and its inserts get the
-- same defaults. CHECKs enforce the form of each uuid (lower-case text) and of each time (RFC 3339, UTC, with six decimal
-- places). `json_valid(NULL)` is 0 in SQLite before 3.41, so each JSON column allows NULL by name.

CREATE TABLE community_configs (
    id                         TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    community_id               VARCHAR(50) NOT NULL UNIQUE CHECK (length(community_id) <= 50),
    updated_at                 TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    brand_config               TEXT NOT NULL CHECK (json_valid(brand_config)),
    assets_config              TEXT NOT NULL CHECK (json_valid(assets_config)),
    community_config           TEXT NOT NULL CHECK (json_valid(community_config)),
    fidgets_config             TEXT NOT NULL CHECK (json_valid(fidgets_config)),
    navigation_config          TEXT CHECK (navigation_config IS NULL OR json_valid(navigation_config)),
    ui_config                  TEXT CHECK (ui_config IS NULL OR json_valid(ui_config)),
    -- A JSON list of texts, where PostgreSQL has TEXT[].
    admin_identity_public_keys TEXT CHECK (admin_identity_public_keys IS NULL OR json_type(admin_identity_public_keys) = 'array'),
    is_published               BOOLEAN DEFAULT 1 CHECK (is_published IN (0, 1)),
    custom_domain_authorized   BOOLEAN DEFAULT 0 CHECK (custom_domain_authorized IN (0, 1)),
    admin_email                TEXT,
    CHECK (id IS NULL OR (id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^-0-9a-f]*' AND length(replace(id, '-', '')) = 32)),
    CHECK (updated_at IS NULL OR (updated_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(updated_at, 1, 19), '+0 days') = replace(substr(updated_at, 1, 19), 'T', ' '), 0)))
);
CREATE INDEX community_configs_community_id_idx ON community_configs (community_id);
CREATE INDEX community_configs_is_published_idx ON community_configs (is_published) WHERE is_published = true;

CREATE TABLE community_domains (
    id           TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    community_id VARCHAR(50) NOT NULL CHECK (length(community_id) <= 50)
                 REFERENCES community_configs (community_id) ON DELETE CASCADE,
    domain       TEXT NOT NULL UNIQUE,
    domain_type  TEXT NOT NULL CHECK (domain_type IN ('blank_subdomain', 'custom')),
    created_at   TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at   TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    UNIQUE (community_id, domain_type),
    CHECK (id IS NULL OR (id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^-0-9a-f]*' AND length(replace(id, '-', '')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(created_at, 1, 19), '+0 days') = replace(substr(created_at, 1, 19), 'T', ' '), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(updated_at, 1, 19), '+0 days') = replace(substr(updated_at, 1, 19), 'T', ' '), 0)))
);

CREATE TABLE "spaceRegistrations" (
    "spaceId"           TEXT PRIMARY KEY NOT NULL CHECK (length("spaceId") = 36),
    fid                 INTEGER CHECK (fid BETWEEN -2147483648 AND 2147483647),
    "spaceName"         TEXT NOT NULL,
    "spaceType"         TEXT NOT NULL
        CHECK ("spaceType" IN ('profile', 'token', 'proposal', 'channel', 'navPage')),
    "identityPublicKey" TEXT,
    signature           TEXT,
    "timestamp"         TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    CHECK ("spaceId" IS NULL OR ("spaceId" GLOB '????????-????-????-????-????????????' AND "spaceId" NOT GLOB '*[^-0-9a-f]*' AND length(replace("spaceId", '-', '')) = 32)),
    CHECK ("timestamp" IS NULL OR ("timestamp" GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr("timestamp", 1, 19), '+0 days') = replace(substr("timestamp", 1, 19), 'T', ' '), 0)))
);

CREATE TABLE users (
    id         TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    email      TEXT NOT NULL UNIQUE,
    created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    CHECK (id IS NULL OR (id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^-0-9a-f]*' AND length(replace(id, '-', '')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(created_at, 1, 19), '+0 days') = replace(substr(created_at, 1, 19), 'T', ' '), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(updated_at, 1, 19), '+0 days') = replace(substr(updated_at, 1, 19), 'T', ' '), 0)))
);
-- Other programs may have stored addresses in mixed case. The library finds them by their lower case.
CREATE INDEX townsquare_users_lower_email ON users (lower(email));

CREATE TABLE spaces (
    id          TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    name        TEXT NOT NULL,
    description TEXT,
    owner_id    TEXT REFERENCES users (id) ON DELETE CASCADE,
    is_public   BOOLEAN DEFAULT 0 CHECK (is_public IN (0, 1)),
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    CHECK (id IS NULL OR (id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^-0-9a-f]*' AND length(replace(id, '-', '')) = 32)),
    CHECK (owner_id IS NULL OR (owner_id GLOB '????????-????-????-????-????????????' AND owner_id NOT GLOB '*[^-0-9a-f]*' AND length(replace(owner_id, '-', '')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(created_at, 1, 19), '+0 days') = replace(substr(created_at, 1, 19), 'T', ' '), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(updated_at, 1, 19), '+0 days') = replace(substr(updated_at, 1, 19), 'T', ' '), 0)))
);
CREATE INDEX spaces_owner_id_idx ON spaces (owner_id);
CREATE INDEX spaces_is_public_idx ON spaces (is_public) WHERE is_public = true;
CREATE INDEX spaces_owner_id_created_at_idx ON spaces (owner_id, created_at DESC);
CREATE INDEX spaces_is_public_created_at_idx ON spaces (is_public, created_at DESC) WHERE is_public = true;

CREATE TABLE fidgets (
    id         TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    space_id   TEXT REFERENCES spaces (id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    config     TEXT CHECK (config IS NULL OR json_valid(config)),
    position   TEXT CHECK (position IS NULL OR json_valid(position)),
    created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    CHECK (id IS NULL OR (id GLOB '????????-????-????-????-????????????' AND id NOT GLOB '*[^-0-9a-f]*' AND length(replace(id, '-', '')) = 32)),
    CHECK (space_id IS NULL OR (space_id GLOB '????????-????-????-????-????????????' AND space_id NOT GLOB '*[^-0-9a-f]*' AND length(replace(space_id, '-', '')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(created_at, 1, 19), '+0 days') = replace(substr(created_at, 1, 19), 'T', ' '), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB '????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z' AND coalesce(datetime(substr(updated_at, 1, 19), '+0 days') = replace(substr(updated_at, 1, 19), 'T', ' '), 0)))
);
CREATE INDEX fidgets_space_id_idx ON fidgets (space_id);
CREATE INDEX fidgets_space_id_type_idx ON fidgets (space_id, type);
