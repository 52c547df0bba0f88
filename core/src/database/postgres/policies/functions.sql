-- The functions that the policies call. `open` creates them again when their source, owner or rights have changed.

-- Returns the user of the session whose access token has the hash in the setting townsquare.session; NULL without one.
-- Setting it requires the hash. No other setting names a user. NULL at an isolation level with one snapshot for the transaction,
-- which would show a session and its rights after their end.
CREATE OR REPLACE FUNCTION townsquare.caller_id() RETURNS UUID
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN NULL;
    END IF;
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
-- statement of the library with a policy evaluates this first, with the user that the statement binds. The session
-- is `vouched` if the library authenticated the user itself (a signed URL); no policy accepts it.
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

-- Raises TQ401 unless the signed URLs of a user have this generation. A new password, a recovery, a global sign-out and the deletion of
-- the user wait until this transaction ends. For the service, which writes for the signer of a URL.
CREATE OR REPLACE FUNCTION townsquare.vouched(p_user UUID, p_generation BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM townsquare.credentials WHERE user_id = p_user AND url_generation = p_generation FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'Session has ended' USING ERRCODE = 'TQ401';
    END IF;
    RETURN true;
END
$$;

-- Returns true if the user has linked one of the keys.
CREATE OR REPLACE FUNCTION townsquare.holds_key(p_user_id UUID, p_keys TEXT[]) RETURNS BOOLEAN
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM townsquare.identities WHERE user_id = p_user_id AND public_key = ANY (p_keys))
$$;

-- Counts what a user owns, for quotas: spaces, files and the bytes of files, with the files that are being written. A file that
-- is being written counts with what it adds to the file that it replaces; a move adds nothing. Waits for the transactions that
-- have counted for the same user, and keeps others out until this one ends: a transaction that writes, counts, and fails beyond
-- a limit cannot exceed it together with another one. A caller may count only their own rows; the service may count all.
CREATE OR REPLACE FUNCTION townsquare.owner_usage(p_owner UUID, OUT spaces BIGINT, OUT files BIGINT, OUT bytes BIGINT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    IF p_owner IS DISTINCT FROM townsquare.caller_id()
        AND NOT (current_setting('role') = 'none' AND pg_has_role(session_user, current_user, 'USAGE'))
    THEN
        RAISE EXCEPTION 'permission denied for function owner_usage' USING ERRCODE = '42501';
    END IF;
    PERFORM pg_advisory_xact_lock((29813::bigint << 48) | (hashtextextended(p_owner::pg_catalog.text, 0) & 281474976710655));
    -- For the service: a file can lie where its owner may no longer read it.
    PERFORM set_config('townsquare.caller', '', true);
    SELECT count(*) INTO spaces FROM public.spaces WHERE owner_id = p_owner;
    SELECT COALESCE(sum(of_file.files), 0), COALESCE(sum(of_file.bytes), 0) INTO files, bytes FROM (
        SELECT 1 AS files, file.size AS bytes FROM townsquare.files AS file WHERE file.owner_id = p_owner
        UNION ALL SELECT CASE WHEN old.size IS NULL THEN 1 ELSE 0 END, GREATEST(intent.size - COALESCE(old.size, 0), 0)
        FROM townsquare.file_intents AS intent LEFT JOIN townsquare.files AS old
            ON old.bucket = intent.bucket AND old.path = intent.path AND old.owner_id = intent.owner_id
        WHERE intent.owner_id = p_owner AND intent.moved_from IS NULL) AS of_file;
    PERFORM set_config('townsquare.caller', caller, true);
END
$$;

-- Counts the fidgets of a space, for the quota, up to a number. Waits for the transactions that have counted for the same space,
-- and keeps others out until this one ends, like owner_usage. It acts for the service (see townsquare.is_service), because the
-- policy of fidgets would ask for the space of each one. A caller may count only in their own spaces; the service in all.
CREATE OR REPLACE FUNCTION townsquare.space_fidgets(p_space UUID, p_most BIGINT, OUT fidgets BIGINT)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    PERFORM set_config('townsquare.caller', '', true);
    IF NOT EXISTS (SELECT FROM public.spaces WHERE id = p_space AND owner_id = townsquare.caller_id())
        AND NOT (current_setting('role') = 'none' AND pg_has_role(session_user, current_user, 'USAGE'))
    THEN
        RAISE EXCEPTION 'permission denied for function space_fidgets' USING ERRCODE = '42501';
    END IF;
    PERFORM pg_advisory_xact_lock(
        (29813::bigint << 48) | (hashtextextended('fidgets ' || p_space::pg_catalog.text, 0) & 281474976710655));
    SELECT count(*) INTO fidgets FROM (SELECT FROM public.fidgets WHERE space_id = p_space LIMIT p_most) AS one;
    PERFORM set_config('townsquare.caller', caller, true);
END
$$;

-- Returns true if a space has the id, or if a new space may have it: it is not registered, no file is in its folder,
-- and no deleted space had it. (With the id of a space that exists, the insert fails by the key.) It waits for a running
-- deletion, and is volatile, so it sees what the deletion left. A transaction with an older snapshot does not see that:
-- there, no id is claimable. It acts for the service (see townsquare.is_service). '0' is the character after '/'.
CREATE OR REPLACE FUNCTION townsquare.is_claimable(p_id UUID) RETURNS BOOLEAN
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    segment TEXT COLLATE "C" := p_id::text;
    found BOOLEAN;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(townsquare.space_lock(p_id));
    PERFORM set_config('townsquare.caller', '', true);
    found := EXISTS (SELECT FROM public.spaces WHERE id = p_id) OR NOT (
        EXISTS (SELECT FROM public."spaceRegistrations" WHERE "spaceId" = p_id)
        OR EXISTS (SELECT FROM townsquare.former_spaces WHERE id = p_id)
        OR EXISTS (SELECT FROM townsquare.files
            WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' AND first_segment = segment)
        OR EXISTS (SELECT FROM townsquare.file_intents
            WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' AND first_segment = segment)
    );
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN found;
END
$$;

-- Returns true if an address is another one in lower case. The planner puts the body in place of a call. The first comparison finds
-- the rows in the index townsquare_users_address (see 0011_addresses). It also takes letters of another form for equal, such as those
-- of full width, so the second one decides. lower() in an ICU collation does what the library does with an address.
DO $body$ BEGIN
    IF (SELECT collisdeterministic FROM pg_catalog.pg_collation WHERE oid = 'townsquare.address'::regcollation) THEN
        CREATE OR REPLACE FUNCTION townsquare.has_address(p_email TEXT, p_address TEXT) RETURNS BOOLEAN
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT pg_catalog.lower(p_email) OPERATOR(pg_catalog.=) p_address
        $$;
    ELSE
        CREATE OR REPLACE FUNCTION townsquare.has_address(p_email TEXT, p_address TEXT) RETURNS BOOLEAN
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT p_email OPERATOR(pg_catalog.=) p_address COLLATE townsquare.address
                AND pg_catalog.lower(p_email COLLATE townsquare.address) COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) p_address
        $$;
    END IF;
END $body$;

-- Callers update only the navigation of a community, also where no grant limits the columns. The argument is the role of
-- the callers.
CREATE OR REPLACE FUNCTION townsquare.protect_columns() RETURNS TRIGGER
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A login may have the rights of the callers' role without SET ROLE. The owner of the schema, which has them too, is the service.
    IF (current_user = TG_ARGV[0] OR COALESCE(current_setting('townsquare.caller', true), '') <> ''
            OR EXISTS (SELECT FROM pg_roles WHERE rolname = TG_ARGV[0] AND pg_has_role(oid, 'USAGE'))
                AND NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'townsquare'), 'USAGE'))
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

-- Refuses an update that charges another owner: it would fill the owner's quota. Policies cannot say so: they do not see the old row,
-- and a move leaves the owner. The argument is the role of the callers.
CREATE OR REPLACE FUNCTION townsquare.protect_owner() RETURNS TRIGGER
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- A login may have the rights of the callers' role without SET ROLE. The owner of the schema, which has them too, is the service.
    IF (current_user = TG_ARGV[0] OR COALESCE(current_setting('townsquare.caller', true), '') <> ''
            OR EXISTS (SELECT FROM pg_roles WHERE rolname = TG_ARGV[0] AND pg_has_role(oid, 'USAGE'))
                AND NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'townsquare'), 'USAGE'))
        AND NEW.owner_id IS DISTINCT FROM townsquare.caller_id()
    THEN
        RAISE EXCEPTION 'permission denied for table files' USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END
$$;

-- Refuses the writes of everybody but a move into this database, whose transactions say so in its mark. A move makes the triggers.
-- The callers may not read the mark.
CREATE OR REPLACE FUNCTION townsquare.refuse_during_move() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_SCHEMA NOT IN ('public', 'townsquare') THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF EXISTS (SELECT FROM townsquare.unfinished_move WHERE holder NOT LIKE 'writes %') THEN
        RAISE EXCEPTION 'a move into this database runs, so nobody else writes it; open it again when the move is complete'
            USING ERRCODE = '25006';
    END IF;
    RETURN NULL;
END
$$;

-- Refuses every write after a move that followed its source, which makes the triggers.
CREATE OR REPLACE FUNCTION townsquare.refuse_after_move() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_SCHEMA NOT IN ('public', 'townsquare') THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    -- A transaction with an older snapshot does not see the mark.
    IF current_setting('transaction_isolation') <> 'read committed' OR EXISTS (SELECT FROM townsquare.moved_away) THEN
        RAISE EXCEPTION 'the database has moved to another place and takes no further writes; open that place'
            USING ERRCODE = '25006';
    END IF;
    RETURN NULL;
END
$$;
