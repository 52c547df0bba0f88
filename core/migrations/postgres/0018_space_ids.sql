-- Each trigger function refuses every table but its own before it evaluates a column; 0021_definers says why.
--
-- An id of a space is claimed once (DESIGN 4): a caller cannot create a space with the id of one that was deleted. Libraries
-- before this version do not know the table and need not: the triggers fill it, and the policies enforce the rule.

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
REVOKE ALL ON FUNCTION townsquare.keep_space_id() FROM PUBLIC;
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
REVOKE ALL ON FUNCTION townsquare.keep_space_ids() FROM PUBLIC;
CREATE TRIGGER townsquare_former_spaces_truncated BEFORE TRUNCATE ON public.spaces
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.keep_space_ids();

-- The policies of files compare the space and the first segment, so both must be those of the path: a caller who writes rows by
-- SQL could else put a file of the own space at the path of another.
UPDATE townsquare.files SET first_segment = split_part(path, '/', 1),
        space_id = CASE WHEN access = 'spaces' AND space_id::text = split_part(path, '/', 1) THEN space_id END
    WHERE first_segment <> split_part(path, '/', 1)
        OR space_id IS NOT NULL AND (access <> 'spaces' OR space_id::text <> split_part(path, '/', 1));
UPDATE townsquare.file_intents SET first_segment = split_part(path, '/', 1),
        space_id = CASE WHEN access = 'spaces' AND space_id::text = split_part(path, '/', 1) THEN space_id END
    WHERE first_segment <> split_part(path, '/', 1)
        OR space_id IS NOT NULL AND (access <> 'spaces' OR space_id::text <> split_part(path, '/', 1));
ALTER TABLE townsquare.files ADD CONSTRAINT files_place CHECK (first_segment = split_part(path, '/', 1)
    AND (space_id IS NULL OR (access = 'spaces' AND space_id::text = first_segment)));
ALTER TABLE townsquare.file_intents ADD CONSTRAINT file_intents_place CHECK (first_segment = split_part(path, '/', 1)
    AND (space_id IS NULL OR (access = 'spaces' AND space_id::text = first_segment)));

-- The feed of a space's files is for who may see the space (DESIGN 4), so the context of a file has owner and visibility of the
-- space as of the statement. Entries from before this version have none: such files are shown to the service alone.

CREATE OR REPLACE FUNCTION townsquare.file_context(file townsquare.files) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT json_build_object('access', file.access, 'first_segment', file.first_segment, 'holder', (
            SELECT user_id FROM townsquare.identities WHERE public_key = file.first_segment AND file.access = 'private'),
        'space_id', file.space_id, 'owner_id', space.owner_id, 'is_public', space.is_public)
    FROM (VALUES (true)) AS one LEFT JOIN LATERAL (
        SELECT owner_id, is_public FROM public.spaces WHERE id = file.space_id
        UNION ALL
        SELECT owner_id, is_public FROM townsquare.deleted_spaces
            WHERE transaction = pg_current_xact_id_if_assigned() AND id = file.space_id
        LIMIT 1
    ) AS space ON true
$$;

-- As before; it also waits for a transaction that changes who may see the space of a file, and acts for the service, because
-- it reads spaces.
CREATE OR REPLACE FUNCTION townsquare.capture_file() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    IF TG_RELID <> 'townsquare.files'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    -- The first segment is the identity key of a private file, or the id of the space.
    IF TG_OP <> 'INSERT' AND OLD.access IN ('private', 'spaces') THEN
        PERFORM pg_advisory_xact_lock_shared((29811::bigint << 48) | (hashtextextended(OLD.first_segment, 0) & 255));
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.access IN ('private', 'spaces') THEN
        PERFORM pg_advisory_xact_lock_shared((29811::bigint << 48) | (hashtextextended(NEW.first_segment, 0) & 255));
    END IF;
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', '', true);
    END IF;
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Fails if the space has changed since the snapshot of this transaction.
        PERFORM FROM public.spaces WHERE id IN (OLD.space_id, NEW.space_id) FOR SHARE;
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.bucket = NEW.bucket AND OLD.path = NEW.path THEN
        IF townsquare.file_image(OLD)::text <> townsquare.file_image(NEW)::text THEN
            INSERT INTO townsquare.changes (table_name, kind, old_row, new_row, old_context, new_context)
                VALUES ('files', 'update', townsquare.file_image(OLD), townsquare.file_image(NEW),
                    townsquare.file_context(OLD), townsquare.file_context(NEW));
        END IF;
    ELSE
        IF TG_OP <> 'INSERT' THEN
            INSERT INTO townsquare.changes (table_name, kind, old_row, old_context)
                VALUES ('files', 'delete', townsquare.file_image(OLD), townsquare.file_context(OLD));
        END IF;
        IF TG_OP <> 'DELETE' THEN
            INSERT INTO townsquare.changes (table_name, kind, new_row, new_context)
                VALUES ('files', 'insert', townsquare.file_image(NEW), townsquare.file_context(NEW));
        END IF;
    END IF;
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', caller, true);
    END IF;
    RETURN NULL;
END
$$;

-- As before, for the files of the space too.
CREATE OR REPLACE FUNCTION townsquare.capture_visibility(p_space UUID, p_old_context JSON, p_new_context JSON) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    segment TEXT COLLATE "C" := p_space::text;
BEGIN
    -- Waits for the transactions that write fidgets or files of the space, and keeps others out until this one ends: each of
    -- them saw the space either as it was or as it will be.
    PERFORM pg_advisory_xact_lock((29811::bigint << 48) | (hashtextextended(segment, 0) & 255));
    PERFORM set_config('townsquare.caller', '', true);
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Fails if one of the rows has changed since the snapshot of this transaction.
        PERFORM FROM public.fidgets WHERE space_id = p_space FOR SHARE;
        PERFORM FROM townsquare.files WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' FOR SHARE;
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, new_row, old_context, new_context)
        SELECT 'fidgets', 'visibility', row_to_json(fidgets), p_old_context, p_new_context
        FROM public.fidgets WHERE space_id = p_space ORDER BY created_at, id;
    INSERT INTO townsquare.changes (table_name, kind, new_row, old_context, new_context)
        SELECT 'files', 'visibility', townsquare.file_image(files),
            json_build_object('access', access, 'first_segment', first_segment, 'space_id', space_id,
                'owner_id', p_old_context -> 'owner_id', 'is_public', p_old_context -> 'is_public'),
            json_build_object('access', access, 'first_segment', first_segment, 'space_id', space_id,
                'owner_id', p_new_context -> 'owner_id', 'is_public', p_new_context -> 'is_public')
        FROM townsquare.files
        WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' AND space_id = p_space ORDER BY path;
    PERFORM set_config('townsquare.caller', caller, true);
END
$$;

-- The service creates a space with the id of a page, or another program gives a space another id: its files get another
-- owner. A space without files takes no lock: those of many new spaces would make their transactions wait for each other.
CREATE FUNCTION townsquare.capture_space_of_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    segment TEXT COLLATE "C";
    has_files BOOLEAN;
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    segment := format('%s', NEW.id);
    IF TG_OP = 'UPDATE' THEN
        PERFORM townsquare.capture_visibility(OLD.id,
            json_build_object('owner_id', OLD.owner_id, 'is_public', OLD.is_public), NULL);
    END IF;
    PERFORM set_config('townsquare.caller', '', true);
    has_files := EXISTS (SELECT FROM townsquare.files
        WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' AND space_id = NEW.id);
    PERFORM set_config('townsquare.caller', caller, true);
    IF has_files THEN
        PERFORM townsquare.capture_visibility(NEW.id, NULL,
            json_build_object('owner_id', NEW.owner_id, 'is_public', NEW.is_public));
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION townsquare.capture_space_of_files() FROM PUBLIC;
CREATE TRIGGER townsquare_capture_files AFTER INSERT ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_space_of_files();
CREATE TRIGGER townsquare_capture_files_renamed AFTER UPDATE OF id ON public.spaces
    FOR EACH ROW WHEN (OLD.id <> NEW.id) EXECUTE FUNCTION townsquare.capture_space_of_files();

-- New triggers are enabled; set_capture switches them with the others.
DO $$
BEGIN
    IF NOT (SELECT is_on FROM townsquare.feed) THEN
        ALTER TABLE public.spaces DISABLE TRIGGER townsquare_capture_files;
        ALTER TABLE public.spaces DISABLE TRIGGER townsquare_capture_files_renamed;
    END IF;
END
$$;
