-- Sign-in (SPEC 5): what proves who somebody is. Nothing here is a secret as it stands: passwords are Argon2id, tokens
-- and addresses SHA-256, in hex.

CREATE TABLE townsquare.credentials (
    user_id       UUID PRIMARY KEY REFERENCES public.users (id) ON DELETE CASCADE,
    -- A PHC string: it names its own parameters.
    password_hash TEXT NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL
);

-- A session that stands. Every call of a signed-in user looks its row up by the hash of the access token.
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

-- Refresh tokens that were used: one that comes back was copied, and ends its session.
CREATE TABLE townsquare.spent_tokens (
    refresh_hash TEXT PRIMARY KEY,
    session_id   UUID NOT NULL REFERENCES townsquare.sessions (id) ON DELETE CASCADE,
    spent_at     TIMESTAMPTZ NOT NULL
);
CREATE INDEX spent_tokens_session_id ON townsquare.spent_tokens (session_id);
CREATE INDEX spent_tokens_spent_at ON townsquare.spent_tokens (spent_at);

-- Failed sign-ins by address, known or not: as a hash, for people type passwords into the wrong field.
CREATE TABLE townsquare.failures (
    address_hash TEXT PRIMARY KEY,
    failures     BIGINT NOT NULL,
    first_at     TIMESTAMPTZ NOT NULL,
    last_at      TIMESTAMPTZ NOT NULL
);
CREATE INDEX failures_last_at ON townsquare.failures (last_at);

-- Identity keys (Ed25519, in hex) that users have proved to hold.
CREATE TABLE townsquare.identities (
    public_key TEXT PRIMARY KEY,
    user_id    UUID NOT NULL REFERENCES public.users (id) ON DELETE CASCADE,
    linked_at  TIMESTAMPTZ NOT NULL
);
CREATE INDEX identities_user_id ON townsquare.identities (user_id);

-- What the policies were last made from; the library makes them anew when its rules change.
CREATE TABLE townsquare.policies (script TEXT NOT NULL);
INSERT INTO townsquare.policies VALUES ('');

-- The setting townsquare.caller says for whom a connection works: a user's id, 'anonymous', or nothing for the service.
CREATE FUNCTION townsquare.caller_id() RETURNS UUID LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN length(current_setting('townsquare.caller', true)) = 36
        THEN current_setting('townsquare.caller', true)::uuid END
$$;

CREATE FUNCTION townsquare.is_service() RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT COALESCE(current_setting('townsquare.caller', true), '') = ''
$$;

-- Whether the user for whom a connection works has the session that it names: the library's statements ask this before
-- anything else, and a session that was ended ends them with an error.
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

-- Whether a user has linked one of these keys.
CREATE FUNCTION townsquare.holds_key(p_user_id UUID, p_keys TEXT[]) RETURNS BOOLEAN
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM townsquare.identities WHERE user_id = p_user_id AND public_key = ANY (p_keys))
$$;
