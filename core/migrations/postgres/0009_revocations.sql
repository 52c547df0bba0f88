-- A revocation ends the uploads of a user whose bytes are being installed: a new password, a recovery, a sign-out everywhere (each
-- raises url_generation), the deletion of the user, and another owner of the space. The intent of a new file is deleted. The
-- intent of a replaced file is marked, because the old bytes may be gone: it is finished if the object has the new bytes, and
-- else deleted.
ALTER TABLE townsquare.file_intents ADD COLUMN IF NOT EXISTS is_revoked BOOLEAN NOT NULL DEFAULT FALSE;

-- For users, their credentials, and spaces. The trigger of a space comes before the one that gives its uploads to the new owner
-- (0007), because triggers run in the order of their names.
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
        RETURNING bucket, path
    )
    INSERT INTO townsquare.file_outbox (bucket, path) SELECT bucket, path FROM dropped ON CONFLICT DO NOTHING;
    UPDATE townsquare.file_intents SET is_revoked = TRUE
        WHERE owner_id = owner AND moved_from IS NULL AND (space IS NULL OR (bucket = 'spaces' AND first_segment = space));
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN COALESCE(NEW, OLD);
END
$$;
DROP TRIGGER IF EXISTS townsquare_user_revoked ON townsquare.credentials;
CREATE TRIGGER townsquare_user_revoked AFTER UPDATE OF url_generation ON townsquare.credentials
    FOR EACH ROW WHEN (OLD.url_generation IS DISTINCT FROM NEW.url_generation) EXECUTE FUNCTION townsquare.revoke_uploads();
DROP TRIGGER IF EXISTS townsquare_space_given ON public.spaces;
CREATE TRIGGER townsquare_space_given AFTER UPDATE OF owner_id ON public.spaces
    FOR EACH ROW WHEN (OLD.owner_id IS DISTINCT FROM NEW.owner_id) EXECUTE FUNCTION townsquare.revoke_uploads();
DROP TRIGGER IF EXISTS townsquare_user_uploads ON public.users;
CREATE TRIGGER townsquare_user_uploads BEFORE DELETE ON public.users
    FOR EACH ROW EXECUTE FUNCTION townsquare.revoke_uploads();
