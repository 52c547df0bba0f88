-- The policies of files compare the access of the row, and the service acts on what a row says. So the access is that of a bucket of
-- the database, and an intent is one that can become a file. Libraries before this version write such rows only.

ALTER TABLE townsquare.buckets ADD CONSTRAINT buckets_name_access UNIQUE (name, access);

-- Other programs may have written files into buckets that nobody declared. Such a file stays if a bucket can have the name, and
-- is deleted otherwise: no library reads it.
INSERT INTO townsquare.buckets (name, access)
    SELECT bucket, min(access) FROM townsquare.files AS files
    WHERE bucket ~ '^[a-z0-9_-]{1,63}$' AND NOT EXISTS (SELECT FROM townsquare.buckets WHERE name = files.bucket)
    GROUP BY bucket;
DELETE FROM townsquare.files AS files WHERE NOT EXISTS (SELECT FROM townsquare.buckets WHERE name = files.bucket);
UPDATE townsquare.files AS files SET access = buckets.access FROM townsquare.buckets AS buckets
    WHERE buckets.name = files.bucket AND buckets.access <> files.access;
WITH dropped AS (
    DELETE FROM townsquare.file_intents AS intents WHERE size < 0 OR NOT EXISTS (
        SELECT FROM townsquare.buckets WHERE name = intents.bucket AND access = intents.access)
    RETURNING bucket, path
)
INSERT INTO townsquare.file_outbox (bucket, path) SELECT bucket, path FROM dropped ON CONFLICT DO NOTHING;
DELETE FROM townsquare.file_outbox AS outbox
    WHERE NOT EXISTS (SELECT FROM townsquare.buckets WHERE name = outbox.bucket);

ALTER TABLE townsquare.files ADD CONSTRAINT files_bucket
    FOREIGN KEY (bucket, access) REFERENCES townsquare.buckets (name, access) ON UPDATE CASCADE;
ALTER TABLE townsquare.file_intents
    ADD CONSTRAINT file_intents_bucket
        FOREIGN KEY (bucket, access) REFERENCES townsquare.buckets (name, access) ON UPDATE CASCADE,
    ADD CONSTRAINT file_intents_size CHECK (size >= 0);

-- Switches the triggers of the library's own tables only. A trigger of the same name on a temporary table of another session
-- would make the function fail.
CREATE OR REPLACE FUNCTION townsquare.set_capture(p_is_on BOOLEAN) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    captured TEXT;
    change TEXT := CASE WHEN p_is_on THEN 'ENABLE' ELSE 'DISABLE' END;
BEGIN
    LOCK TABLE public.users, public.spaces, public.fidgets, public.community_configs, public.community_domains,
        public."spaceRegistrations", townsquare.files, townsquare.identities, townsquare.sessions
        IN SHARE ROW EXCLUSIVE MODE;
    IF p_is_on = (SELECT is_on FROM townsquare.feed) THEN
        RETURN;
    END IF;
    FOR captured IN SELECT format('%s %s TRIGGER %I', tgrelid::regclass, change, tgname) FROM pg_trigger
        WHERE tgname LIKE 'townsquare\_capture%' AND tgrelid = ANY (ARRAY['public.users', 'public.spaces', 'public.fidgets',
            'public.community_configs', 'public.community_domains', 'public."spaceRegistrations"', 'townsquare.files',
            'townsquare.identities', 'townsquare.sessions']::regclass[])
    LOOP
        EXECUTE 'ALTER TABLE ' || captured;
    END LOOP;
    UPDATE townsquare.feed SET is_on = p_is_on;
END
$$;
