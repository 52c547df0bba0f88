-- Reliability: forms enforced by CHECKs, versions that stay compatible, the incarnation id, leases with fencing tokens,
-- and the tables of account recovery.

-- The CHECKs change in the stored schema alone, so no row is rewritten. `json_valid(NULL)` is 0 in SQLite before 3.41, so
-- each JSON column allows NULL by name. Uuids are lower-case text; times are RFC 3339, UTC, with six decimal places. The
-- new CHECKs replace the closing parenthesis of each table, so columns that somebody added stay.
PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(replace(replace(sql, 'CHECK (json_valid(navigation_config))',
        'CHECK (navigation_config IS NULL OR json_valid(navigation_config))'), 'CHECK (json_valid(ui_config))',
        'CHECK (ui_config IS NULL OR json_valid(ui_config))'), 'CHECK (json_type(admin_identity_public_keys) = ''array'')',
        'CHECK (admin_identity_public_keys IS NULL OR json_type(admin_identity_public_keys) = ''array'')') WHERE type = 'table' AND name = 'community_configs';
UPDATE sqlite_schema SET sql = rtrim(substr(sql, 1, length(sql) - 1), char(10, 13, 32)) || ',
    CHECK (id IS NULL OR (id GLOB ''????????-????-????-????-????????????'' AND id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(id, ''-'', '''')) = 32)),
    CHECK (updated_at IS NULL OR (updated_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(updated_at, 1, 19), ''+0 days'') = replace(substr(updated_at, 1, 19), ''T'', '' ''), 0)))
)'
    WHERE type = 'table' AND name = 'community_configs';

UPDATE sqlite_schema SET sql = rtrim(substr(sql, 1, length(sql) - 1), char(10, 13, 32)) || ',
    CHECK (id IS NULL OR (id GLOB ''????????-????-????-????-????????????'' AND id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(id, ''-'', '''')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(created_at, 1, 19), ''+0 days'') = replace(substr(created_at, 1, 19), ''T'', '' ''), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(updated_at, 1, 19), ''+0 days'') = replace(substr(updated_at, 1, 19), ''T'', '' ''), 0)))
)'
    WHERE type = 'table' AND name = 'community_domains';

UPDATE sqlite_schema SET sql = rtrim(substr(sql, 1, length(sql) - 1), char(10, 13, 32)) || ',
    CHECK ("spaceId" IS NULL OR ("spaceId" GLOB ''????????-????-????-????-????????????'' AND "spaceId" NOT GLOB ''*[^-0-9a-f]*'' AND length(replace("spaceId", ''-'', '''')) = 32)),
    CHECK ("timestamp" IS NULL OR ("timestamp" GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr("timestamp", 1, 19), ''+0 days'') = replace(substr("timestamp", 1, 19), ''T'', '' ''), 0)))
)'
    WHERE type = 'table' AND name = 'spaceRegistrations';

UPDATE sqlite_schema SET sql = rtrim(substr(sql, 1, length(sql) - 1), char(10, 13, 32)) || ',
    CHECK (id IS NULL OR (id GLOB ''????????-????-????-????-????????????'' AND id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(id, ''-'', '''')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(created_at, 1, 19), ''+0 days'') = replace(substr(created_at, 1, 19), ''T'', '' ''), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(updated_at, 1, 19), ''+0 days'') = replace(substr(updated_at, 1, 19), ''T'', '' ''), 0)))
)'
    WHERE type = 'table' AND name = 'users';

UPDATE sqlite_schema SET sql = rtrim(substr(sql, 1, length(sql) - 1), char(10, 13, 32)) || ',
    CHECK (id IS NULL OR (id GLOB ''????????-????-????-????-????????????'' AND id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(id, ''-'', '''')) = 32)),
    CHECK (owner_id IS NULL OR (owner_id GLOB ''????????-????-????-????-????????????'' AND owner_id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(owner_id, ''-'', '''')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(created_at, 1, 19), ''+0 days'') = replace(substr(created_at, 1, 19), ''T'', '' ''), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(updated_at, 1, 19), ''+0 days'') = replace(substr(updated_at, 1, 19), ''T'', '' ''), 0)))
)'
    WHERE type = 'table' AND name = 'spaces';

UPDATE sqlite_schema SET sql = replace(replace(sql, 'CHECK (json_valid(config))',
        'CHECK (config IS NULL OR json_valid(config))'), 'CHECK (json_valid(position))',
        'CHECK (position IS NULL OR json_valid(position))') WHERE type = 'table' AND name = 'fidgets';
UPDATE sqlite_schema SET sql = rtrim(substr(sql, 1, length(sql) - 1), char(10, 13, 32)) || ',
    CHECK (id IS NULL OR (id GLOB ''????????-????-????-????-????????????'' AND id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(id, ''-'', '''')) = 32)),
    CHECK (space_id IS NULL OR (space_id GLOB ''????????-????-????-????-????????????'' AND space_id NOT GLOB ''*[^-0-9a-f]*'' AND length(replace(space_id, ''-'', '''')) = 32)),
    CHECK (created_at IS NULL OR (created_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(created_at, 1, 19), ''+0 days'') = replace(substr(created_at, 1, 19), ''T'', '' ''), 0))),
    CHECK (updated_at IS NULL OR (updated_at GLOB ''????-??-??T??:??:??.[0-9][0-9][0-9][0-9][0-9][0-9]Z'' AND coalesce(datetime(substr(updated_at, 1, 19), ''+0 days'') = replace(substr(updated_at, 1, 19), ''T'', '' ''), 0)))
)'
    WHERE type = 'table' AND name = 'fidgets';

PRAGMA writable_schema = RESET;

-- The oldest schema version whose library works with this database: the largest of this column.
ALTER TABLE townsquare_migrations ADD COLUMN minimum_version INTEGER NOT NULL DEFAULT 4;

-- One row. The incarnation id names this copy of the database; `restore` changes it.
CREATE TABLE townsquare_database (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    incarnation TEXT NOT NULL
);
INSERT INTO townsquare_database (only_row, incarnation) VALUES (1, lower(hex(randomblob(16))));

-- The fencing token of a lease: it grows with every change of holder, so that a write of an earlier holder is refused.
ALTER TABLE townsquare_leases ADD COLUMN token INTEGER NOT NULL DEFAULT 0;

-- Failed password checks decay: `decayed_at` is the time up to which the count has decayed. A key is the hash of an address,
-- of a user's id, or of the word for all sign-ups.
ALTER TABLE townsquare_failures RENAME COLUMN address_hash TO key_hash;
ALTER TABLE townsquare_failures RENAME COLUMN first_at TO decayed_at;

-- The users who proved to receive mail at an address. A row counts while the user has that address.
CREATE TABLE townsquare_verified_emails (
    user_id     TEXT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    email       TEXT NOT NULL,
    verified_at TEXT NOT NULL
) WITHOUT ROWID;

-- Tokens for one use that the host mails: to recover an account or to verify an address. Only SHA-256 hashes are stored.
CREATE TABLE townsquare_mailed_tokens (
    token_hash TEXT PRIMARY KEY NOT NULL,
    purpose    TEXT NOT NULL CHECK (purpose IN ('recovery', 'verification')),
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- The address the token was made for; the token is void after a change of address.
    email      TEXT NOT NULL,
    expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_mailed_tokens_user_id ON townsquare_mailed_tokens (user_id);
CREATE INDEX townsquare_mailed_tokens_expires_at ON townsquare_mailed_tokens (expires_at);
