-- The functions that the policies call. `open` creates them again when their source, owner or rights have changed.

-- Returns the user of the session whose access token has the hash in the setting townsquare.session; NULL without one.
-- Whoever may set the setting must know the hash: no other setting names a user.
CREATE OR REPLACE FUNCTION townsquare.caller_id() RETURNS UUID
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT user_id FROM townsquare.sessions WHERE access_hash = current_setting('townsquare.session', true));
END
$$;

-- Returns true unless the setting townsquare.caller says that the connection works for a caller. Only the policies of
-- the service role call it, so it grants nothing to the role of the callers. It names the schema of each function and
-- operator, so that the search path of the connection has no effect. (A pinned path would cost more than the function.)
CREATE OR REPLACE FUNCTION townsquare.is_service() RETURNS BOOLEAN LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT COALESCE(pg_catalog.current_setting('townsquare.caller', true), '') OPERATOR(pg_catalog.=) ''
$$;

-- Returns true if the connection's session is one of the user, or if the user is NULL. Otherwise raises TQ401. Every
-- statement of the library with a policy evaluates this first, with the user that the statement binds. The library sets
-- the session `vouched` where it vouches for the user of a statement itself: no policy accepts it.
CREATE OR REPLACE FUNCTION townsquare.admitted(p_user UUID) RETURNS BOOLEAN
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF p_user IS NULL OR current_setting('townsquare.session', true) = 'vouched' OR EXISTS (
        SELECT FROM townsquare.sessions
        WHERE access_hash = current_setting('townsquare.session', true) AND user_id = p_user
    ) THEN
        RETURN true;
    END IF;
    RAISE EXCEPTION 'Session has ended' USING ERRCODE = 'TQ401';
END
$$;

-- Returns true if the user has linked one of the keys.
CREATE OR REPLACE FUNCTION townsquare.holds_key(p_user_id UUID, p_keys TEXT[]) RETURNS BOOLEAN
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM townsquare.identities WHERE user_id = p_user_id AND public_key = ANY (p_keys))
$$;

-- Callers update only the navigation of a community, also where no grant limits the columns. The argument is the role of
-- the callers.
CREATE OR REPLACE FUNCTION townsquare.protect_columns() RETURNS TRIGGER
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (current_user = TG_ARGV[0] OR COALESCE(current_setting('townsquare.caller', true), '') <> '')
        AND to_jsonb(NEW) - '{navigation_config,updated_at}'::text[]
            IS DISTINCT FROM to_jsonb(OLD) - '{navigation_config,updated_at}'::text[]
    THEN
        RAISE EXCEPTION 'permission denied for table community_configs' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END
$$;

-- SPEC 4.3.
CREATE OR REPLACE FUNCTION public.get_active_community_config(p_community_id VARCHAR(50)) RETURNS JSONB
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'brand', brand_config,
        'assets', assets_config,
        'community', community_config,
        'fidgets', fidgets_config,
        'navigation', navigation_config,
        'ui', ui_config
    )
    FROM public.community_configs
    WHERE community_id = p_community_id AND is_published = true
    ORDER BY updated_at DESC
    LIMIT 1
$$;
