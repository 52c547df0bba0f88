-- Passwords, sessions, failed sign-ins and identity keys (SPEC 5, DESIGN 8). No secret is stored in plain text:
-- passwords are Argon2id hashes; tokens, and the addresses of failed sign-ins, are SHA-256 hashes in hex.

CREATE TABLE townsquare_credentials (
    user_id       TEXT PRIMARY KEY NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- A PHC string, which contains the parameters of the hash.
    password_hash TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    -- A signed URL of the user is valid for one generation. A new password, a recovery and a global sign-out raise it.
    url_generation INTEGER NOT NULL DEFAULT 0
);
-- Password hashes that another system made. A refused sign-in asks for the highest cost of a bcrypt hash, to take as long as
-- one for a user who has such a hash.
CREATE INDEX townsquare_credentials_bcrypt_cost ON townsquare_credentials (substr(password_hash, 5, 2))
    WHERE substr(password_hash, 2, 1) = '2';

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
    spent_at     TEXT NOT NULL,
    -- The new tokens are made from the spent one and this random text, so that a refresh whose reply was lost can be repeated.
    -- NULL: the tokens cannot be made again.
    nonce        TEXT
) WITHOUT ROWID;
CREATE INDEX townsquare_spent_tokens_session_id ON townsquare_spent_tokens (session_id);
CREATE INDEX townsquare_spent_tokens_spent_at ON townsquare_spent_tokens (spent_at);

-- Failed password checks, which decay: `decayed_at` is the time up to which the count has decayed. A key is the hash of an
-- address, whether or not it has an account, of a user's id, or of the word for all sign-ups. Addresses are hashed, because
-- users may type their password into the address field.
CREATE TABLE townsquare_failures (
    key_hash   TEXT PRIMARY KEY NOT NULL,
    failures   INTEGER NOT NULL,
    decayed_at TEXT NOT NULL,
    last_at    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_failures_last_at ON townsquare_failures (last_at);

-- Identity keys (Ed25519 public keys in hex) that users have linked by an identity claim.
CREATE TABLE townsquare_identities (
    public_key TEXT PRIMARY KEY NOT NULL,
    user_id    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    linked_at  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_identities_user_id ON townsquare_identities (user_id);

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

-- The clients from which users have signed in. A key is a hash of the client and the address of the user.
CREATE TABLE townsquare_known_clients (
    key_hash TEXT PRIMARY KEY NOT NULL,
    user_id  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    last_at  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_known_clients_user_id ON townsquare_known_clients (user_id);
CREATE INDEX townsquare_known_clients_last_at ON townsquare_known_clients (last_at);
