-- Passwords, sessions, failed sign-ins and identity keys (SPEC 5, DESIGN 8). No secret is stored in plain text:
-- passwords are Argon2id hashes; tokens, and the addresses of failed sign-ins, are SHA-256 hashes in hex.

CREATE TABLE townsquare_credentials (
    user_id       TEXT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- A PHC string, which contains the parameters of the hash.
    password_hash TEXT NOT NULL,
    updated_at    TEXT NOT NULL
);

-- The sessions that have not ended. Every call of a signed-in user looks its row up by the hash of the access token.
CREATE TABLE townsquare_sessions (
    access_hash        TEXT PRIMARY KEY NOT NULL,
    id                 TEXT NOT NULL UNIQUE,
    user_id            TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    refresh_hash       TEXT NOT NULL UNIQUE,
    created_at         TEXT NOT NULL,
    access_expires_at  TEXT NOT NULL,
    refresh_expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_sessions_user_id ON townsquare_sessions (user_id);
CREATE INDEX townsquare_sessions_refresh_expires_at ON townsquare_sessions (refresh_expires_at);

-- Refresh tokens that were used. A second use means that the token was copied, and ends its session.
CREATE TABLE townsquare_spent_tokens (
    refresh_hash TEXT PRIMARY KEY NOT NULL,
    session_id   TEXT NOT NULL REFERENCES townsquare_sessions (id) ON DELETE CASCADE,
    spent_at     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_spent_tokens_session_id ON townsquare_spent_tokens (session_id);
CREATE INDEX townsquare_spent_tokens_spent_at ON townsquare_spent_tokens (spent_at);

-- Failed sign-ins per address, whether or not it has an account. Addresses are hashed, because users may type their
-- password into the address field.
CREATE TABLE townsquare_failures (
    address_hash TEXT PRIMARY KEY NOT NULL,
    failures     INTEGER NOT NULL,
    first_at     TEXT NOT NULL,
    last_at      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_failures_last_at ON townsquare_failures (last_at);

-- Identity keys (Ed25519 public keys in hex) that users have linked by an identity claim.
CREATE TABLE townsquare_identities (
    public_key TEXT PRIMARY KEY NOT NULL,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    linked_at  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_identities_user_id ON townsquare_identities (user_id);
