-- Files (SPEC 2.8, 4.4): a row for each file, the bytes of small files, and what keeps the object store of the large ones in
-- agreement with the rows.

-- The buckets with the rule of who may do what in them.
CREATE TABLE townsquare.buckets (
    name   TEXT COLLATE "C" PRIMARY KEY,
    access TEXT NOT NULL CHECK (access IN ('spaces', 'private', 'public')),
    CHECK ((name = 'spaces') = (access = 'spaces')),
    CHECK (name <> 'private' OR access = 'private'),
    CHECK (name <> 'assets' OR access = 'public'),
    -- For the foreign keys of files: the policies compare the access of the row.
    CONSTRAINT buckets_name_access UNIQUE (name, access)
);
INSERT INTO townsquare.buckets (name, access) VALUES ('spaces', 'spaces'), ('private', 'private'), ('assets', 'public');

-- Paths compare by their bytes.
CREATE TABLE townsquare.files (
    bucket        TEXT COLLATE "C" NOT NULL,
    path          TEXT COLLATE "C" NOT NULL,
    -- The access of the bucket, for the policies.
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
    CHECK (bucket <> 'assets' OR access = 'public'),
    -- The policies compare the space and the first segment, so both must agree with the path: a caller who writes rows by SQL
    -- could else put a file of the own space at the path of another.
    CONSTRAINT files_place CHECK (first_segment = split_part(path, '/', 1)
        AND (space_id IS NULL OR (access = 'spaces' AND space_id::text = first_segment))),
    CONSTRAINT files_bucket FOREIGN KEY (bucket, access) REFERENCES townsquare.buckets (name, access) ON UPDATE CASCADE
);
-- Quotas read the sizes of an owner's files from the index.
CREATE INDEX files_owner_id ON townsquare.files (owner_id) INCLUDE (size) WHERE owner_id IS NOT NULL;
-- The large files, which are few beside the small ones.
CREATE INDEX files_objects ON townsquare.files (bucket, path) WHERE NOT is_inline;

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
    PRIMARY KEY (bucket, path),
    -- An intent is one that can become a file.
    CONSTRAINT file_intents_place CHECK (first_segment = split_part(path, '/', 1)
        AND (space_id IS NULL OR (access = 'spaces' AND space_id::text = first_segment))),
    CONSTRAINT file_intents_bucket
        FOREIGN KEY (bucket, access) REFERENCES townsquare.buckets (name, access) ON UPDATE CASCADE,
    CONSTRAINT file_intents_size CHECK (size >= 0)
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

-- A trigger function runs for the table that its trigger is on. Each function below first refuses every table but its own,
-- before it evaluates a column of the row: a column of another table may have a type with a cast of its owner, and a cast to
-- text or to JSON would then run that owner's code with the rights of the service. `open` revokes EXECUTE on every function of
-- the schema from PUBLIC, so that only the service can create such a trigger.
--
-- The functions act for the service, whoever deletes the row: they set townsquare.caller to '' (see townsquare.is_service)
-- until they return.

CREATE FUNCTION townsquare.file_left_store() RETURNS TRIGGER
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
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
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
CREATE TRIGGER townsquare_space_files AFTER DELETE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.delete_space_files();

-- BEFORE, because the identity keys are deleted with the user.
CREATE FUNCTION townsquare.delete_user_files() RETURNS TRIGGER
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
CREATE TRIGGER townsquare_user_files BEFORE DELETE ON public.users
    FOR EACH ROW EXECUTE FUNCTION townsquare.delete_user_files();

-- An id of a space is claimed once (DESIGN 4): a caller cannot create a space with the id of one that was deleted.

-- The ids that spaces had. Never pruned.
CREATE TABLE townsquare.former_spaces (id UUID PRIMARY KEY);

-- Takes the lock that townsquare.is_claimable shares, so that a caller who creates a space with the id waits for this
-- transaction. (A deletion has taken it already: see lock_space_files.)
CREATE FUNCTION townsquare.keep_space_id() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM pg_advisory_xact_lock(townsquare.space_lock(OLD.id));
    INSERT INTO townsquare.former_spaces (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER townsquare_former_space_deleted AFTER DELETE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.keep_space_id();
CREATE TRIGGER townsquare_former_space_renamed AFTER UPDATE OF id ON public.spaces
    FOR EACH ROW WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION townsquare.keep_space_id();

-- TRUNCATE fires no trigger for its rows. The trigger acts for the service (see townsquare.is_service).
CREATE FUNCTION townsquare.keep_space_ids() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    INSERT INTO townsquare.former_spaces (id) SELECT id FROM public.spaces ON CONFLICT DO NOTHING;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;
CREATE TRIGGER townsquare_former_spaces_truncated BEFORE TRUNCATE ON public.spaces
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.keep_space_ids();
