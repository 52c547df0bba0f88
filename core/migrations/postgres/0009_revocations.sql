-- An upload whose bytes are being installed ends with the rights of its user: with a new generation (a new password, a recovery, a
-- sign-out everywhere), and with a new owner of the space. A new file is dropped. The bytes of a file that is replaced may be gone
-- already, so that upload is marked: it is finished if the object store has installed its bytes, and else dropped.
ALTER TABLE townsquare.file_intents ADD COLUMN is_revoked BOOLEAN NOT NULL DEFAULT FALSE;

CREATE FUNCTION townsquare.revoke_uploads() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    IF TG_RELID <> 'townsquare.credentials'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    WITH dropped AS (
        DELETE FROM townsquare.file_intents
        WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL RETURNING bucket, path
    )
    INSERT INTO townsquare.file_outbox (bucket, path) SELECT bucket, path FROM dropped ON CONFLICT DO NOTHING;
    UPDATE townsquare.file_intents SET is_revoked = TRUE WHERE owner_id = NEW.user_id AND moved_from IS NULL;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER townsquare_user_revoked AFTER UPDATE OF url_generation ON townsquare.credentials
    FOR EACH ROW WHEN (OLD.url_generation IS DISTINCT FROM NEW.url_generation) EXECUTE FUNCTION townsquare.revoke_uploads();

CREATE FUNCTION townsquare.revoke_uploads_of_space() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    space TEXT;
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    -- `format` uses no cast.
    space := format('%s', NEW.id);
    PERFORM set_config('townsquare.caller', '', true);
    WITH dropped AS (
        DELETE FROM townsquare.file_intents
        WHERE bucket = 'spaces' AND first_segment = space AND owner_id IS NOT NULL AND base_etag = '' AND moved_from IS NULL
        RETURNING bucket, path
    )
    INSERT INTO townsquare.file_outbox (bucket, path) SELECT bucket, path FROM dropped ON CONFLICT DO NOTHING;
    UPDATE townsquare.file_intents SET is_revoked = TRUE
        WHERE bucket = 'spaces' AND first_segment = space AND owner_id IS NOT NULL AND moved_from IS NULL;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER townsquare_space_taken AFTER UPDATE OF owner_id ON public.spaces
    FOR EACH ROW WHEN (OLD.owner_id IS DISTINCT FROM NEW.owner_id) EXECUTE FUNCTION townsquare.revoke_uploads_of_space();
