-- Passwords, sessions, failed sign-ins and identity keys (SPEC 5, DESIGN 8). No secret is stored in plain text:
-- passwords are Argon2id hashes; tokens, and the addresses of failed sign-ins, are SHA-256 hashes in hex.

CREATE TABLE townsquare.credentials (
    user_id       UUID PRIMARY KEY REFERENCES public.users (id) ON DELETE CASCADE,
    -- A PHC string, which contains the parameters of the hash.
    password_hash TEXT NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL
);

-- The sessions that have not ended. Every call of a signed-in user looks its row up by the hash of the access token.
CREATE TABLE townsquare.sessions (
    access_hash        TEXT PRIMARY KEY,
    id                 UUID NOT NULL UNIQUE,
    user_id            UUID NOT NULL REFERENCES public.users (id) ON DELETE CASCADE,
    refresh_hash       TEXT NOT NULL UNIQUE,
    created_at         TIMESTAMPTZ NOT NULL,
    access_expires_at  TIMESTAMPTZ NOT NULL,
    refresh_expires_at TIMESTAMPTZ NOT NULL
);
CREATE INDEX sessions_user_id ON townsquare.sessions (user_id);
CREATE INDEX sessions_refresh_expires_at ON townsquare.sessions (refresh_expires_at);

-- Refresh tokens that were used. A second use means that the token was copied, and ends its session.
CREATE TABLE townsquare.spent_tokens (
    refresh_hash TEXT PRIMARY KEY,
    session_id   UUID NOT NULL REFERENCES townsquare.sessions (id) ON DELETE CASCADE,
    spent_at     TIMESTAMPTZ NOT NULL
);
CREATE INDEX spent_tokens_session_id ON townsquare.spent_tokens (session_id);
CREATE INDEX spent_tokens_spent_at ON townsquare.spent_tokens (spent_at);

-- Failed sign-ins per address, whether or not it has an account. Addresses are hashed, because users may type their
-- password into the address field.
CREATE TABLE townsquare.failures (
    address_hash TEXT PRIMARY KEY,
    failures     BIGINT NOT NULL,
    first_at     TIMESTAMPTZ NOT NULL,
    last_at      TIMESTAMPTZ NOT NULL
);
CREATE INDEX failures_last_at ON townsquare.failures (last_at);

-- Identity keys (Ed25519 public keys in hex) that users have linked by an identity claim.
CREATE TABLE townsquare.identities (
    public_key TEXT PRIMARY KEY,
    user_id    UUID NOT NULL REFERENCES public.users (id) ON DELETE CASCADE,
    linked_at  TIMESTAMPTZ NOT NULL
);
CREATE INDEX identities_user_id ON townsquare.identities (user_id);

-- The script that last created the policies. The library runs a new script when its policies change.
CREATE TABLE townsquare.policies (script TEXT NOT NULL);
INSERT INTO townsquare.policies VALUES ('');

-- The setting townsquare.caller holds the caller of a connection: a user's id, 'anonymous', or '' for the service.
CREATE FUNCTION townsquare.caller_id() RETURNS UUID LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN length(current_setting('townsquare.caller', true)) = 36
        THEN current_setting('townsquare.caller', true)::uuid END
$$;

CREATE FUNCTION townsquare.is_service() RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT COALESCE(pg_catalog.current_setting('townsquare.caller', true), '') OPERATOR(pg_catalog.=) ''
$$;

-- Returns true if the connection's caller is not a user, or is the user of the session in townsquare.session. Otherwise
-- raises TQ401. Every statement of the library with a policy evaluates this first.
CREATE FUNCTION townsquare.admitted() RETURNS BOOLEAN
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller UUID := townsquare.caller_id();
BEGIN
    IF caller IS NULL OR EXISTS (
        SELECT FROM townsquare.sessions
        WHERE access_hash = current_setting('townsquare.session', true) AND user_id = caller
    ) THEN
        RETURN true;
    END IF;
    RAISE EXCEPTION 'Session has ended' USING ERRCODE = 'TQ401';
END
$$;

-- Returns true if the user has linked one of the keys.
CREATE FUNCTION townsquare.holds_key(p_user_id UUID, p_keys TEXT[]) RETURNS BOOLEAN
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM townsquare.identities WHERE user_id = p_user_id AND public_key = ANY (p_keys))
$$;
