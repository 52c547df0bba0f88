-- Files (SPEC 2.8, 4.4): a row for each file, the bytes of small files, and what keeps the object store of the large ones in
-- agreement with the rows. Libraries before this version do not know these tables and need not: the triggers do their part.

-- The key of signed URLs, in hex. A new key ends every URL.
ALTER TABLE townsquare.database ADD COLUMN url_key TEXT NOT NULL DEFAULT '';
UPDATE townsquare.database SET url_key = replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');

-- The buckets with the rule of who may do what in them.
CREATE TABLE townsquare.buckets (
    name   TEXT COLLATE "C" PRIMARY KEY,
    access TEXT NOT NULL CHECK (access IN ('spaces', 'private', 'public')),
    CHECK ((name = 'spaces') = (access = 'spaces')),
    CHECK (name <> 'private' OR access = 'private'),
    CHECK (name <> 'assets' OR access = 'public')
);
INSERT INTO townsquare.buckets (name, access) VALUES ('spaces', 'spaces'), ('private', 'private'), ('assets', 'public');

-- Paths compare by their bytes.
CREATE TABLE townsquare.files (
    bucket        TEXT COLLATE "C" NOT NULL,
    path          TEXT COLLATE "C" NOT NULL,
    -- That of the bucket, for the policies.
    access        TEXT NOT NULL CHECK (access IN ('spaces', 'private', 'public')),
    -- The first segment of the path, if the access is `spaces` and the segment is a uuid.
    space_id      UUID,
    first_segment TEXT COLLATE "C" NOT NULL,
    owner_id      UUID REFERENCES public.users (id) ON DELETE SET NULL,
    size          BIGINT NOT NULL CHECK (size >= 0),
    content_type  TEXT NOT NULL,
    cache_control BIGINT NOT NULL,
    -- New with every write.
    etag          TEXT NOT NULL,
    metadata      JSONB NOT NULL DEFAULT '{}',
    -- BLAKE3 of the object in hex; NULL for an inline file.
    digest        TEXT,
    -- Whether the bytes are in `townsquare.file_contents`; else they are in the object store.
    is_inline     BOOLEAN NOT NULL,
    updated_at    TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (bucket, path),
    CHECK ((bucket = 'spaces') = (access = 'spaces')),
    CHECK (bucket <> 'private' OR access = 'private'),
    CHECK (bucket <> 'assets' OR access = 'public')
);
CREATE INDEX files_owner_id ON townsquare.files (owner_id) WHERE owner_id IS NOT NULL;

-- The bytes of small files.
CREATE TABLE townsquare.file_contents (
    bucket  TEXT COLLATE "C" NOT NULL,
    path    TEXT COLLATE "C" NOT NULL,
    content BYTEA NOT NULL,
    PRIMARY KEY (bucket, path),
    FOREIGN KEY (bucket, path) REFERENCES townsquare.files (bucket, path) ON DELETE CASCADE ON UPDATE CASCADE
);
-- The content is seldom compressible, and compressing it costs more than it saves.
ALTER TABLE townsquare.file_contents ALTER COLUMN content SET STORAGE EXTERNAL;

-- The objects that are being written: each row becomes the row of the file when its bytes are in the object store.
CREATE TABLE townsquare.file_intents (
    bucket        TEXT COLLATE "C" NOT NULL,
    path          TEXT COLLATE "C" NOT NULL,
    access        TEXT NOT NULL,
    space_id      UUID,
    first_segment TEXT COLLATE "C" NOT NULL,
    owner_id      UUID,
    size          BIGINT NOT NULL,
    content_type  TEXT NOT NULL,
    cache_control BIGINT NOT NULL,
    etag          TEXT NOT NULL,
    metadata      JSONB NOT NULL,
    digest        TEXT NOT NULL,
    -- The name of the staged bytes.
    staged        TEXT NOT NULL,
    -- The version that the file had before; '' for none.
    base_etag     TEXT NOT NULL,
    -- For a move: the source and its version.
    moved_from    TEXT COLLATE "C",
    moved_etag    TEXT,
    created_at    TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (bucket, path)
);

-- The objects that no row needs any more.
CREATE TABLE townsquare.file_outbox (
    bucket TEXT COLLATE "C" NOT NULL,
    path   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, path)
);

-- The key of the advisory lock of a path or of a folder.
CREATE FUNCTION townsquare.path_lock(p_bucket TEXT, p_path TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT hashtextextended(p_bucket || '/' || p_path, 8391166530414211)
$$;

-- The trigger functions act for the service, whoever deletes the row: they set townsquare.caller to '' (see
-- townsquare.is_service) until they return.
CREATE FUNCTION townsquare.file_left_store() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    PERFORM set_config('townsquare.caller', '', true);
    INSERT INTO townsquare.file_outbox (bucket, path) VALUES (OLD.bucket, OLD.path) ON CONFLICT DO NOTHING;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER townsquare_file_deleted AFTER DELETE ON townsquare.files
    FOR EACH ROW WHEN (NOT OLD.is_inline) EXECUTE FUNCTION townsquare.file_left_store();
CREATE TRIGGER townsquare_file_became_inline AFTER UPDATE OF is_inline ON townsquare.files
    FOR EACH ROW WHEN (NEW.is_inline AND NOT OLD.is_inline) EXECUTE FUNCTION townsquare.file_left_store();

-- The key of the advisory lock of the files of a space. A hash with few values, because a deletion of many spaces holds the
-- locks of all of them, and the server has memory for a limited number. (A lock of the row would be without limit, but a
-- deletion that waits for one does not keep later writers out, so it could wait forever.)
CREATE FUNCTION townsquare.space_lock(p_space UUID) RETURNS BIGINT LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT (29812::bigint << 48) | (hashtextextended(p_space::text, 0) & 1023)
$$;

-- Waits for the transactions that write files of the space, and keeps others out until the space is deleted. A deletion at
-- READ COMMITTED, the default, then sees their files.
CREATE FUNCTION townsquare.lock_space_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(townsquare.space_lock(OLD.id));
    RETURN OLD;
END
$$;
CREATE TRIGGER townsquare_lock_space_files BEFORE DELETE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.lock_space_files();

-- '0' is the character after '/'.
CREATE FUNCTION townsquare.delete_space_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    space TEXT := OLD.id::text;
BEGIN
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
CREATE TRIGGER townsquare_space_files AFTER DELETE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.delete_space_files();

-- BEFORE, because the identity keys are deleted with the user.
CREATE FUNCTION townsquare.delete_user_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    own TEXT[] := (SELECT array_agg(segment) FROM (SELECT OLD.id::text UNION ALL
        SELECT public_key FROM townsquare.identities WHERE user_id = OLD.id) AS segments (segment));
    private_bucket TEXT;
    segment TEXT;
BEGIN
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
CREATE TRIGGER townsquare_user_files BEFORE DELETE ON public.users
    FOR EACH ROW EXECUTE FUNCTION townsquare.delete_user_files();
