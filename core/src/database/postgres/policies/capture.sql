-- The functions of the triggers that write the change log (DESIGN 5): each writes the changes of a row, in the transaction of the
-- change. `open` creates them again when their source, owner or rights have changed. `capture.rs` makes the triggers, and puts SQL
-- in place of the braces:
--   only TABLE          refuses every other table; `rows` are the tables without a function of their own, `captured` all of them
--   drop large TABLE    sets the large columns of OLD that NEW has unchanged to NULL and adds their names to `unchanged`
--   image files ROW     the image of a file: the columns of FileInfo as JSON
--
-- A trigger function runs for the table that its trigger is on. Each refuses every table but its own before it evaluates a column
-- of the row: a column of another table may have a type with a cast of its owner, and a cast to text or to JSON would then run
-- that owner's code with the rights of the service.
--
-- The functions that read tables with policies act for the service, whoever changes the row: they set townsquare.caller to ''
-- (see townsquare.is_service) until they return.
--
-- Keys of advisory locks have a number of this library in their highest 16 bits:
-- 29809: shared by each transaction that writes entries; the other bits are an id smaller than all of its entries' ids.
-- 29810: held by the transaction that will notify the readers.
-- 29811: the visibility of the spaces, and of the private files of the identity keys, with a hash.
-- 29812: the files of the spaces, with a hash (0005_files).

-- Returns the id of a new entry. Every statement that writes an entry calls this: the column has no default.
CREATE OR REPLACE FUNCTION townsquare.next_entry() RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    -- Below the id of the new entry.
    key BIGINT := (29809::bigint << 48) | COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0);
BEGIN
    -- 1. Share the lock that keeps readers from passing this entry before the transaction ends (see townsquare.log_state).
    IF clock_timestamp() < now() + INTERVAL '1 ms' THEN
        -- A young transaction takes a lock for each entry. That is cheaper than a mark: the end of a transaction that has one
        -- looks at every setting of the server. (A clock that is set back makes it young again.)
        IF NOT pg_try_advisory_xact_lock_shared(key) THEN
            RAISE EXCEPTION 'Another program holds a lock of the change log';
        END IF;
    ELSIF COALESCE(current_setting('townsquare.writer', true), '') = pg_current_xact_id()::text THEN
        -- The transaction has the mark, so it holds a lock with a smaller id and has notified.
        RETURN nextval('townsquare.changes_id');
    ELSE
        -- A transaction that may write many entries takes one lock and marks itself with its number. A savepoint that is
        -- rolled back undoes the mark together with the lock.
        IF NOT pg_try_advisory_xact_lock_shared(key) THEN
            RAISE EXCEPTION 'Another program holds a lock of the change log';
        END IF;
        PERFORM set_config('townsquare.writer', pg_current_xact_id()::text, true);
    END IF;
    -- 2. Notify the readers at the commit, if one listens. Commits that notify wait for each other, so only one of the running
    --    transactions notifies: the reader then looks again until the others have ended.
    IF COALESCE(pg_sequence_last_value('townsquare.listening_until'), 0) > date_part('epoch', clock_timestamp())
        AND pg_try_advisory_xact_lock(29810::bigint << 48)
    THEN
        PERFORM pg_notify('townsquare_changes', '');
    END IF;
    -- 3. Take the id, after the lock.
    RETURN nextval('townsquare.changes_id');
END
$$;

-- The old image of an update leaves out large columns that did not change: their values are NULL, and the key "=" lists their
-- names. The new image has their values.
CREATE OR REPLACE FUNCTION townsquare.old_image(p_image JSON, p_unchanged TEXT[]) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN cardinality(p_unchanged) = 0 THEN p_image
        ELSE (left(p_image::text, 1) || '"=":' || array_to_json(p_unchanged)::text || ',' || substr(p_image::text, 2))::json END
$$;

-- The columns of a space that policies of its fidgets and files read.
CREATE OR REPLACE FUNCTION townsquare.context_of(p_owner UUID, p_is_public BOOLEAN) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT json_build_object('owner_id', p_owner, 'is_public', p_is_public)
$$;

-- Returns the columns of the space that the policy of a fidget reads. Waits for a transaction that changes who may see the space.
CREATE OR REPLACE FUNCTION townsquare.space_context(p_space UUID) RETURNS JSON LANGUAGE plpgsql AS $$
DECLARE
    context JSON;
BEGIN
    IF p_space IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock_shared((29811::bigint << 48) | (hashtextextended(p_space::text, 0) & 255));
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Fails if the space has changed since the snapshot of this transaction.
        PERFORM FROM public.spaces WHERE id = p_space FOR SHARE;
    END IF;
    SELECT townsquare.context_of(owner_id, is_public) INTO context FROM public.spaces WHERE id = p_space;
    IF NOT FOUND THEN
        SELECT townsquare.context_of(owner_id, is_public) INTO context
            FROM townsquare.deleted_spaces WHERE transaction = pg_current_xact_id() AND id = p_space;
    END IF;
    RETURN context;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.file_image(file townsquare.files) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT {image files file}
$$;

-- What the policy of a file needs besides the row: the user with the identity key of a private file, and the context of the space.
CREATE OR REPLACE FUNCTION townsquare.context_of_file(file townsquare.files, p_holder UUID, p_space JSON) RETURNS JSON
LANGUAGE sql STABLE AS $$
    SELECT json_build_object('access', file.access, 'first_segment', file.first_segment, 'holder', p_holder,
        'space_id', file.space_id, 'owner_id', p_space -> 'owner_id', 'is_public', p_space -> 'is_public')
$$;

-- The context of a file as it is now: the feed of a space's files is for who may see the space. The collation is the one of the keys,
-- whose index serves no comparison with the collation "C" of paths.
CREATE OR REPLACE FUNCTION townsquare.file_context(file townsquare.files) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT townsquare.context_of_file(file,
        (SELECT user_id FROM townsquare.identities WHERE file.access = 'private'
            AND public_key = file.first_segment COLLATE "default"),
        townsquare.context_of(space.owner_id, space.is_public))
    FROM (VALUES (true)) AS one LEFT JOIN LATERAL (
        SELECT owner_id, is_public FROM public.spaces WHERE id = file.space_id
        UNION ALL
        SELECT owner_id, is_public FROM townsquare.deleted_spaces
            WHERE transaction = pg_current_xact_id_if_assigned() AND id = file.space_id
        LIMIT 1
    ) AS space ON true
$$;

-- Tables without a function of their own: the policy reads the row alone.
CREATE OR REPLACE FUNCTION townsquare.capture_row() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unchanged TEXT[] := ARRAY[]::text[];
BEGIN
    {only rows}
    IF TG_OP = 'UPDATE' THEN
        {drop large rows}
    END IF;
    INSERT INTO townsquare.changes (id, table_name, kind, old_row, new_row)
        VALUES (townsquare.next_entry(), TG_TABLE_NAME, lower(TG_OP), townsquare.old_image(row_to_json(OLD), unchanged),
            row_to_json(NEW));
    RETURN NULL;
END
$$;

-- Writes a change of who may see a space, once for each of its fidgets and files. The caller acts for the service.
CREATE OR REPLACE FUNCTION townsquare.capture_visibility(p_space UUID, p_old_context JSON, p_new_context JSON) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE
    segment TEXT COLLATE "C" := p_space::text;
BEGIN
    -- Waits for the transactions that write fidgets or files of the space, and keeps others out until this one ends: each of
    -- them saw the space either as it was or as it will be.
    PERFORM pg_advisory_xact_lock((29811::bigint << 48) | (hashtextextended(segment, 0) & 255));
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Fails if one of the rows has changed since the snapshot of this transaction.
        PERFORM FROM public.fidgets WHERE space_id = p_space FOR SHARE;
        PERFORM FROM townsquare.files WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' FOR SHARE;
    END IF;
    -- Few statements: one for each entry would cost as much as the rest of it.
    INSERT INTO townsquare.changes (id, table_name, kind, new_row, old_context, new_context)
        SELECT townsquare.next_entry(), 'fidgets', 'visibility', row_to_json(fidgets), p_old_context, p_new_context
        FROM public.fidgets WHERE space_id = p_space ORDER BY created_at, fidgets.id;
    INSERT INTO townsquare.changes (id, table_name, kind, new_row, old_context, new_context)
        SELECT townsquare.next_entry(), 'files', 'visibility', townsquare.file_image(files),
            townsquare.context_of_file(files, NULL, p_old_context), townsquare.context_of_file(files, NULL, p_new_context)
        FROM townsquare.files
        WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' AND space_id = p_space ORDER BY path;
END
$$;

-- The service creates a space with the id of a page, or another program gives a space another id: the files under the id get
-- another owner. A space without files takes no lock: many new spaces would make their transactions wait for each other.
CREATE OR REPLACE FUNCTION townsquare.capture_claimed_files(p_space UUID, p_context JSON) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE
    segment TEXT COLLATE "C" := p_space::text;
BEGIN
    IF EXISTS (SELECT FROM townsquare.files
        WHERE bucket = 'spaces' AND path >= segment AND path < segment || '0' AND space_id = p_space)
    THEN
        PERFORM townsquare.capture_visibility(p_space, NULL, p_context);
    END IF;
END
$$;

-- Spaces. Who may see the fidgets and files of a space changes with the space.
CREATE OR REPLACE FUNCTION townsquare.capture_space() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    unchanged TEXT[] := ARRAY[]::text[];
BEGIN
    {only spaces}
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', '', true);
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.id <> NEW.id OR OLD.owner_id IS DISTINCT FROM NEW.owner_id) THEN
        -- The other triggers of such an update need this lock. It comes before those of the visibility, as in an upload.
        PERFORM pg_advisory_xact_lock(townsquare.space_lock(OLD.id));
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.id <> NEW.id THEN
            PERFORM townsquare.capture_visibility(OLD.id, townsquare.context_of(OLD.owner_id, OLD.is_public), NULL);
            PERFORM townsquare.capture_claimed_files(NEW.id, townsquare.context_of(NEW.owner_id, NEW.is_public));
        ELSIF (OLD.is_public IS TRUE) <> (NEW.is_public IS TRUE) OR OLD.owner_id IS DISTINCT FROM NEW.owner_id THEN
            PERFORM townsquare.capture_visibility(NEW.id, townsquare.context_of(OLD.owner_id, OLD.is_public),
                townsquare.context_of(NEW.owner_id, NEW.is_public));
        END IF;
        {drop large spaces}
    END IF;
    INSERT INTO townsquare.changes (id, table_name, kind, old_row, new_row)
        VALUES (townsquare.next_entry(), 'spaces', lower(TG_OP), townsquare.old_image(row_to_json(OLD), unchanged),
            row_to_json(NEW));
    IF TG_OP = 'INSERT' THEN
        PERFORM townsquare.capture_claimed_files(NEW.id, townsquare.context_of(NEW.owner_id, NEW.is_public));
    ELSIF TG_OP = 'DELETE' THEN
        -- For the fidgets and files that are deleted with the space.
        INSERT INTO townsquare.deleted_spaces (id, owner_id, is_public) VALUES (OLD.id, OLD.owner_id, OLD.is_public)
            ON CONFLICT (transaction, id) DO UPDATE
            SET owner_id = excluded.owner_id, is_public = excluded.is_public;
    END IF;
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', caller, true);
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION townsquare.capture_fidget() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    unchanged TEXT[] := ARRAY[]::text[];
    old_context JSON;
    new_context JSON;
BEGIN
    {only fidgets}
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', '', true);
    END IF;
    IF TG_OP = 'UPDATE' THEN
        old_context := townsquare.space_context(OLD.space_id);
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.space_id IS NOT DISTINCT FROM OLD.space_id THEN
        new_context := old_context;
    ELSE
        new_context := townsquare.space_context(NEW.space_id);
    END IF;
    IF TG_OP = 'UPDATE' THEN
        {drop large fidgets}
    END IF;
    INSERT INTO townsquare.changes (id, table_name, kind, old_row, new_row, old_context, new_context)
        VALUES (townsquare.next_entry(), 'fidgets', lower(TG_OP), townsquare.old_image(row_to_json(OLD), unchanged),
            row_to_json(NEW), old_context, new_context);
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', caller, true);
    END IF;
    RETURN NULL;
END
$$;

-- Writes the entries of the fidgets that a statement deleted, in the order of their deletion. Reads each space once.
CREATE OR REPLACE FUNCTION townsquare.capture_deleted_fidgets() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    {only fidgets}
    PERFORM set_config('townsquare.caller', '', true);
    INSERT INTO townsquare.changes (id, table_name, kind, old_row, old_context)
        SELECT townsquare.next_entry(), 'fidgets', 'delete', fidget.image, space.context
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

-- Files. A move is the end of one file and the beginning of another. Bookkeeping that no column of the feed shows is no change.
CREATE OR REPLACE FUNCTION townsquare.capture_file() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    {only files}
    -- Waits for a transaction that links or unlinks the identity key of a private file, or that changes who may see the space.
    -- The first segment is the identity key, or the id of the space.
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
            INSERT INTO townsquare.changes (id, table_name, kind, old_row, new_row, old_context, new_context)
                VALUES (townsquare.next_entry(), 'files', 'update', townsquare.file_image(OLD), townsquare.file_image(NEW),
                    townsquare.file_context(OLD), townsquare.file_context(NEW));
        END IF;
    ELSE
        IF TG_OP <> 'INSERT' THEN
            INSERT INTO townsquare.changes (id, table_name, kind, old_row, old_context)
                VALUES (townsquare.next_entry(), 'files', 'delete', townsquare.file_image(OLD), townsquare.file_context(OLD));
        END IF;
        IF TG_OP <> 'DELETE' THEN
            INSERT INTO townsquare.changes (id, table_name, kind, new_row, new_context)
                VALUES (townsquare.next_entry(), 'files', 'insert', townsquare.file_image(NEW), townsquare.file_context(NEW));
        END IF;
    END IF;
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', caller, true);
    END IF;
    RETURN NULL;
END
$$;

-- Linking an identity key shows its private files to the user; unlinking hides them. '0' is the character after '/'.
CREATE OR REPLACE FUNCTION townsquare.capture_identity() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    key TEXT;
BEGIN
    {only identities}
    key := CASE WHEN TG_OP = 'INSERT' THEN NEW.public_key ELSE OLD.public_key END;
    -- Waits for the transactions that write files under the key, and keeps others out until this one ends.
    PERFORM pg_advisory_xact_lock((29811::bigint << 48) | (hashtextextended(key, 0) & 255));
    PERFORM set_config('townsquare.caller', '', true);
    INSERT INTO townsquare.changes (id, table_name, kind, new_row, old_context, new_context)
        SELECT townsquare.next_entry(), 'files', 'visibility', townsquare.file_image(files),
            townsquare.context_of_file(files, OLD.user_id, NULL), townsquare.context_of_file(files, NEW.user_id, NULL)
        FROM townsquare.buckets JOIN townsquare.files ON files.bucket = buckets.name
        WHERE buckets.access = 'private' AND files.first_segment = key
            AND files.path >= key AND files.path < key || '0' ORDER BY files.bucket, files.path;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;

-- A subscription that acts for a session ends when the session ends, and when the session gets other tokens, which its handle does
-- not have.
CREATE OR REPLACE FUNCTION townsquare.capture_session() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    {only sessions}
    IF TG_OP = 'DELETE' THEN
        INSERT INTO townsquare.changes (id, table_name, kind, old_row)
            VALUES (townsquare.next_entry(), 'users', 'session_ended',
                json_build_object('session_id', OLD.id, 'user_id', OLD.user_id));
    ELSE
        INSERT INTO townsquare.changes (id, table_name, kind, new_row)
            VALUES (townsquare.next_entry(), 'users',
                CASE TG_OP WHEN 'INSERT' THEN 'session_started' ELSE 'session_rotated' END,
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
BEGIN
    {only captured}
    PERFORM set_config('townsquare.caller', '', true);
    CASE TG_TABLE_NAME
        WHEN 'sessions' THEN
            INSERT INTO townsquare.changes (id, table_name, kind, old_row)
                SELECT townsquare.next_entry(), 'users', 'session_ended',
                    json_build_object('session_id', sessions.id, 'user_id', user_id) FROM townsquare.sessions;
        WHEN 'files' THEN
            INSERT INTO townsquare.changes (id, table_name, kind, old_row, old_context)
                SELECT townsquare.next_entry(), 'files', 'delete', townsquare.file_image(files), townsquare.file_context(files)
                FROM townsquare.files;
        WHEN 'fidgets' THEN
            INSERT INTO townsquare.changes (id, table_name, kind, old_row, old_context)
                SELECT townsquare.next_entry(), 'fidgets', 'delete', row_to_json(fidgets),
                    townsquare.space_context(fidgets.space_id) FROM public.fidgets;
        ELSE
            EXECUTE format('INSERT INTO townsquare.changes (id, table_name, kind, old_row)
                SELECT townsquare.next_entry(), %L, ''delete'', row_to_json(t) FROM %I.%I AS t',
                TG_TABLE_NAME, TG_TABLE_SCHEMA, TG_TABLE_NAME);
    END CASE;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;
