-- Trigger functions that run with the rights of the service, and the clients from which users have signed in.
--
-- A trigger function runs for the table that its trigger is on. Each function below first refuses every table but its own,
-- before it evaluates a column of the row: a column of another table may have a type with a cast of its owner, and a cast
-- to text or to JSON would then run that owner's code with the rights of the service. `open` revokes EXECUTE on every
-- function of the schema from PUBLIC, so that only the service can create such a trigger.

CREATE OR REPLACE FUNCTION townsquare.file_left_store() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    IF TG_RELID <> 'townsquare.files'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    INSERT INTO townsquare.file_outbox (bucket, path) VALUES (OLD.bucket, OLD.path) ON CONFLICT DO NOTHING;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.lock_space_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM pg_advisory_xact_lock(townsquare.space_lock(OLD.id));
    RETURN OLD;
END
$$;

-- '0' is the character after '/'.
CREATE OR REPLACE FUNCTION townsquare.delete_space_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    space TEXT;
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    -- `format` uses no cast.
    space := format('%s', OLD.id);
    PERFORM set_config('townsquare.caller', '', true);
    WITH dropped AS (
        DELETE FROM townsquare.file_intents WHERE bucket = 'spaces' AND first_segment = space RETURNING bucket, path
    )
    INSERT INTO townsquare.file_outbox (bucket, path) SELECT bucket, path FROM dropped ON CONFLICT DO NOTHING;
    DELETE FROM townsquare.files WHERE bucket = 'spaces' AND path = space;
    DELETE FROM townsquare.files WHERE bucket = 'spaces' AND path >= space || '/' AND path < space || '0';
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.delete_user_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    own TEXT[];
    private_bucket TEXT;
    segment TEXT;
BEGIN
    IF TG_RELID <> 'public.users'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    own := (SELECT array_agg(segments.segment) FROM (SELECT format('%s', OLD.id) UNION ALL
        SELECT public_key FROM townsquare.identities WHERE user_id = OLD.id) AS segments (segment));
    PERFORM set_config('townsquare.caller', '', true);
    FOR private_bucket, segment IN
        SELECT name, keys.key FROM townsquare.buckets, unnest(own) AS keys (key) WHERE access = 'private' ORDER BY 1, 2
    LOOP
        PERFORM pg_advisory_xact_lock(townsquare.path_lock(private_bucket, segment));
        WITH dropped AS (
            DELETE FROM townsquare.file_intents WHERE bucket = private_bucket AND first_segment = segment
            RETURNING bucket, path
        )
        INSERT INTO townsquare.file_outbox (bucket, path) SELECT bucket, path FROM dropped ON CONFLICT DO NOTHING;
        DELETE FROM townsquare.files WHERE bucket = private_bucket AND path = segment;
        DELETE FROM townsquare.files
            WHERE bucket = private_bucket AND path >= segment || '/' AND path < segment || '0';
    END LOOP;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN OLD;
END
$$;

-- capture_row and capture_updated_space pin no search path (0006_realtime), so they name the schema of each function, type
-- and operator.

CREATE OR REPLACE FUNCTION townsquare.capture_row() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_RELID OPERATOR(pg_catalog.<>) ALL (ARRAY['public.spaces', 'public.users', 'public.community_configs',
        'public.community_domains', 'public."spaceRegistrations"']::pg_catalog.regclass[])
    THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row)
        VALUES (TG_TABLE_NAME, pg_catalog.lower(TG_OP COLLATE pg_catalog."C"),
            pg_catalog.row_to_json(OLD), pg_catalog.row_to_json(NEW));
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.capture_updated_space() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_RELID OPERATOR(pg_catalog.<>) 'public.spaces'::pg_catalog.regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF (OLD.is_public IS TRUE) OPERATOR(pg_catalog.<>) (NEW.is_public IS TRUE)
        OR (OLD.owner_id IS NULL) OPERATOR(pg_catalog.<>) (NEW.owner_id IS NULL)
        OR OLD.owner_id OPERATOR(pg_catalog.<>) NEW.owner_id
    THEN
        PERFORM townsquare.capture_visibility(NEW.id,
            pg_catalog.json_build_object('owner_id', OLD.owner_id, 'is_public', OLD.is_public),
            pg_catalog.json_build_object('owner_id', NEW.owner_id, 'is_public', NEW.is_public));
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row)
        VALUES (TG_TABLE_NAME, 'update', pg_catalog.row_to_json(OLD), pg_catalog.row_to_json(NEW));
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.keep_deleted_space() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    INSERT INTO townsquare.deleted_spaces (id, owner_id, is_public) VALUES (OLD.id, OLD.owner_id, OLD.is_public)
        ON CONFLICT (transaction, id) DO UPDATE
        SET owner_id = excluded.owner_id, is_public = excluded.is_public;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.capture_fidget() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    old_context JSON;
    new_context JSON;
BEGIN
    IF TG_RELID <> 'public.fidgets'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', '', true);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        old_context := townsquare.space_context(OLD.space_id);
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.space_id IS NOT DISTINCT FROM OLD.space_id THEN
        new_context := old_context;
    ELSIF TG_OP <> 'DELETE' THEN
        new_context := townsquare.space_context(NEW.space_id);
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row, old_context, new_context)
        VALUES (TG_TABLE_NAME, lower(TG_OP), row_to_json(OLD), row_to_json(NEW), old_context, new_context);
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', caller, true);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.capture_deleted_fidgets() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    IF TG_RELID <> 'public.fidgets'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    INSERT INTO townsquare.changes (table_name, kind, old_row, old_context)
        SELECT 'fidgets', 'delete', fidget.image, space.context
        FROM (
            SELECT row_to_json(deleted) AS image, deleted.space_id, row_number() OVER () AS place FROM deleted
        ) AS fidget
        LEFT JOIN (
            SELECT found.space_id, townsquare.space_context(found.space_id) AS context
            FROM (SELECT DISTINCT deleted.space_id FROM deleted) AS found
        ) AS space ON space.space_id = fidget.space_id
        ORDER BY fidget.place;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;

-- Who links an identity key gains the private files under it, and who unlinks it loses them. '0' is the character after '/'.
CREATE OR REPLACE FUNCTION townsquare.capture_identity() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    key TEXT;
    file townsquare.files;
BEGIN
    IF TG_RELID <> 'townsquare.identities'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    key := CASE WHEN TG_OP = 'INSERT' THEN NEW.public_key ELSE OLD.public_key END;
    -- Waits for the transactions that write files under the key, and keeps others out until this one ends.
    PERFORM pg_advisory_xact_lock((29811::bigint << 48) | (hashtextextended(key, 0) & 255));
    PERFORM set_config('townsquare.caller', '', true);
    FOR file IN SELECT files.* FROM townsquare.buckets JOIN townsquare.files ON files.bucket = buckets.name
        WHERE buckets.access = 'private' AND files.first_segment = key
            AND files.path >= key AND files.path < key || '0' ORDER BY files.bucket, files.path
    LOOP
        INSERT INTO townsquare.changes (table_name, kind, new_row, old_context, new_context)
            VALUES ('files', 'visibility', townsquare.file_image(file),
                json_build_object('access', file.access, 'first_segment', key, 'holder',
                    CASE WHEN TG_OP = 'DELETE' THEN OLD.user_id END),
                json_build_object('access', file.access, 'first_segment', key, 'holder',
                    CASE WHEN TG_OP = 'INSERT' THEN NEW.user_id END));
    END LOOP;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.capture_session() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> 'townsquare.sessions'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF TG_OP = 'DELETE' THEN
        INSERT INTO townsquare.changes (table_name, kind, old_row)
            VALUES ('users', 'session_ended', json_build_object('session_id', OLD.id, 'user_id', OLD.user_id));
    ELSE
        INSERT INTO townsquare.changes (table_name, kind, new_row)
            VALUES ('users', CASE TG_OP WHEN 'INSERT' THEN 'session_started' ELSE 'session_rotated' END,
                json_build_object('session_id', NEW.id, 'user_id', NEW.user_id));
    END IF;
    RETURN NULL;
END
$$;

-- TRUNCATE fires no trigger for its rows.
CREATE OR REPLACE FUNCTION townsquare.capture_truncate() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    image JSON;
BEGIN
    IF TG_RELID <> ALL (ARRAY['public.spaces', 'public.fidgets', 'public.users', 'public.community_configs',
        'public.community_domains', 'public."spaceRegistrations"', 'townsquare.files', 'townsquare.sessions']::regclass[])
    THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    IF TG_TABLE_NAME = 'sessions' THEN
        INSERT INTO townsquare.changes (table_name, kind, old_row)
            SELECT 'users', 'session_ended', json_build_object('session_id', id, 'user_id', user_id)
            FROM townsquare.sessions;
    ELSIF TG_TABLE_NAME = 'files' THEN
        INSERT INTO townsquare.changes (table_name, kind, old_row, old_context)
            SELECT 'files', 'delete', townsquare.file_image(files), townsquare.file_context(files) FROM townsquare.files;
    ELSE
        FOR image IN EXECUTE format('SELECT row_to_json(t) FROM %I.%I AS t', TG_TABLE_SCHEMA, TG_TABLE_NAME) LOOP
            INSERT INTO townsquare.changes (table_name, kind, old_row, old_context)
                VALUES (TG_TABLE_NAME, 'delete', image,
                    CASE WHEN TG_TABLE_NAME = 'fidgets' THEN townsquare.space_context((image ->> 'space_id')::uuid) END);
        END LOOP;
    END IF;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;

-- The clients from which users have signed in. A key is a hash of the client and the address of the user.
CREATE TABLE townsquare.known_clients (
    key_hash TEXT PRIMARY KEY,
    user_id  UUID NOT NULL REFERENCES public.users (id) ON DELETE CASCADE,
    last_at  TIMESTAMPTZ NOT NULL
);
CREATE INDEX known_clients_user_id ON townsquare.known_clients (user_id);
CREATE INDEX known_clients_last_at ON townsquare.known_clients (last_at);
