-- The public tables (SPEC 2.2 to 2.7). Uuids are text, timestamps are RFC 3339 text in UTC with microseconds, JSON is text
-- with a CHECK, and booleans are 0 or 1. So the sqlite3 shell shows every row as readable text, and its inserts get the
-- same defaults.

CREATE TABLE community_configs (
    id                         TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    community_id               VARCHAR(50) NOT NULL UNIQUE CHECK (length(community_id) <= 50),
    updated_at                 TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    brand_config               TEXT NOT NULL CHECK (json_valid(brand_config)),
    assets_config              TEXT NOT NULL CHECK (json_valid(assets_config)),
    community_config           TEXT NOT NULL CHECK (json_valid(community_config)),
    fidgets_config             TEXT NOT NULL CHECK (json_valid(fidgets_config)),
    navigation_config          TEXT CHECK (json_valid(navigation_config)),
    ui_config                  TEXT CHECK (json_valid(ui_config)),
    -- A JSON list of texts, where PostgreSQL has TEXT[].
    admin_identity_public_keys TEXT CHECK (json_type(admin_identity_public_keys) = 'array'),
    is_published               BOOLEAN DEFAULT 1 CHECK (is_published IN (0, 1)),
    custom_domain_authorized   BOOLEAN DEFAULT 0 CHECK (custom_domain_authorized IN (0, 1)),
    admin_email                TEXT
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
    UNIQUE (community_id, domain_type)
);

CREATE TABLE "spaceRegistrations" (
    "spaceId"           TEXT PRIMARY KEY NOT NULL CHECK (length("spaceId") = 36),
    fid                 INTEGER CHECK (fid BETWEEN -2147483648 AND 2147483647),
    "spaceName"         TEXT NOT NULL,
    "spaceType"         TEXT NOT NULL
        CHECK ("spaceType" IN ('profile', 'token', 'proposal', 'channel', 'navPage')),
    "identityPublicKey" TEXT,
    signature           TEXT,
    "timestamp"         TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
);

CREATE TABLE users (
    id         TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    email      TEXT NOT NULL UNIQUE,
    created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
);

CREATE TABLE spaces (
    id          TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    name        TEXT NOT NULL,
    description TEXT,
    owner_id    TEXT REFERENCES users (id) ON DELETE CASCADE,
    is_public   BOOLEAN DEFAULT 0 CHECK (is_public IN (0, 1)),
    created_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at  TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
);
CREATE INDEX spaces_owner_id_idx ON spaces (owner_id);
CREATE INDEX spaces_is_public_idx ON spaces (is_public) WHERE is_public = true;
CREATE INDEX spaces_owner_id_created_at_idx ON spaces (owner_id, created_at DESC);
CREATE INDEX spaces_is_public_created_at_idx ON spaces (is_public, created_at DESC) WHERE is_public = true;

CREATE TABLE fidgets (
    id         TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))) NOT NULL CHECK (length(id) = 36),
    space_id   TEXT REFERENCES spaces (id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    config     TEXT CHECK (json_valid(config)),
    position   TEXT CHECK (json_valid(position)),
    created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    updated_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
);
CREATE INDEX fidgets_space_id_idx ON fidgets (space_id);
CREATE INDEX fidgets_space_id_type_idx ON fidgets (space_id, type);
