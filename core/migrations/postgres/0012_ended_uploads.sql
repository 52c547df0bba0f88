-- The outbox names the staged bytes of an upload that ended before its object store answered. Without these bytes, a copy that the
-- store has not carried out yet finds nothing: it would leave an object without a row, or replace a newer one.
ALTER TABLE townsquare.file_outbox ADD COLUMN IF NOT EXISTS staged TEXT;

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
        DELETE FROM townsquare.file_intents WHERE bucket = 'spaces' AND first_segment = space RETURNING bucket, path, staged
    )
    INSERT INTO townsquare.file_outbox AS outbox (bucket, path, staged) SELECT bucket, path, staged FROM dropped
    ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(outbox.staged, excluded.staged);
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
            RETURNING bucket, path, staged
        )
        INSERT INTO townsquare.file_outbox AS outbox (bucket, path, staged) SELECT bucket, path, staged FROM dropped
        ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(outbox.staged, excluded.staged);
        DELETE FROM townsquare.files WHERE bucket = private_bucket AND path = segment;
        DELETE FROM townsquare.files
            WHERE bucket = private_bucket AND path >= segment || '/' AND path < segment || '0';
    END LOOP;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN OLD;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.revoke_uploads() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    timeout TEXT := current_setting('lock_timeout');
    owner UUID;
    locked UUID;
    space TEXT;
BEGIN
    IF TG_RELID = 'townsquare.credentials'::regclass THEN
        owner := NEW.user_id;
        locked := owner;
    ELSIF TG_RELID = 'public.users'::regclass THEN
        owner := OLD.id;
        locked := owner;
    ELSIF TG_RELID = 'public.spaces'::regclass THEN
        owner := OLD.owner_id;
        locked := OLD.id;
        -- `format` uses no cast.
        space := format('%s', OLD.id);
    ELSE
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    -- Uploads share this lock (`Transaction::lock_rights`), each for a moment. Every role can hold it, and nobody may keep a user
    -- from revoking rights.
    BEGIN
        PERFORM set_config('lock_timeout', '2s', true);
        PERFORM pg_advisory_xact_lock(townsquare.space_lock(locked));
    EXCEPTION WHEN lock_not_available THEN
        RAISE WARNING 'The uploads of % may not all end, because a lock is held', owner;
    END;
    PERFORM set_config('lock_timeout', timeout, true);
    WITH dropped AS (
        DELETE FROM townsquare.file_intents
        WHERE owner_id = owner AND base_etag = '' AND moved_from IS NULL
            AND (space IS NULL OR (bucket = 'spaces' AND first_segment = space))
        RETURNING bucket, path, staged
    )
    INSERT INTO townsquare.file_outbox AS outbox (bucket, path, staged) SELECT bucket, path, staged FROM dropped
    ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(outbox.staged, excluded.staged);
    UPDATE townsquare.file_intents SET is_revoked = TRUE
        WHERE owner_id = owner AND moved_from IS NULL AND (space IS NULL OR (bucket = 'spaces' AND first_segment = space));
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN COALESCE(NEW, OLD);
END
$$;
