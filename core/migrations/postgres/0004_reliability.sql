-- Reliability: versions that stay compatible, the incarnation id, leases with fencing tokens, and the tables of account
-- recovery.

-- The oldest schema version whose library works with this database: the largest of this column.
ALTER TABLE townsquare.migrations ADD COLUMN minimum_version BIGINT NOT NULL DEFAULT 4;

-- One row. The incarnation id names this copy of the database; a restored copy gets another.
CREATE TABLE townsquare.database (
    only_row    INTEGER PRIMARY KEY CHECK (only_row = 1),
    incarnation TEXT NOT NULL
);
INSERT INTO townsquare.database (only_row, incarnation) VALUES (1, replace(gen_random_uuid()::text, '-', ''));

-- The fencing token of a lease: it grows with every change of holder, so that a write of an earlier holder is refused.
ALTER TABLE townsquare.leases ADD COLUMN token BIGINT NOT NULL DEFAULT 0;

-- Failed password checks decay: `decayed_at` is the time up to which the count has decayed. A key is the hash of an address,
-- of a user's id, or of the word for all sign-ups.
ALTER TABLE townsquare.failures RENAME COLUMN address_hash TO key_hash;
ALTER TABLE townsquare.failures RENAME COLUMN first_at TO decayed_at;

-- The users who proved to receive mail at an address. A row counts while the user has that address.
CREATE TABLE townsquare.verified_emails (
    user_id     UUID PRIMARY KEY REFERENCES public.users (id) ON DELETE CASCADE,
    email       TEXT NOT NULL,
    verified_at TIMESTAMPTZ NOT NULL
);

-- Tokens for one use that the host mails: to recover an account or to verify an address. Only SHA-256 hashes are stored.
CREATE TABLE townsquare.mailed_tokens (
    token_hash TEXT PRIMARY KEY,
    purpose    TEXT NOT NULL CHECK (purpose IN ('recovery', 'verification')),
    user_id    UUID NOT NULL REFERENCES public.users (id) ON DELETE CASCADE,
    -- The address the token was made for; the token is void after a change of address.
    email      TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX mailed_tokens_user_id ON townsquare.mailed_tokens (user_id);
CREATE INDEX mailed_tokens_expires_at ON townsquare.mailed_tokens (expires_at);
