-- The change log (DESIGN 5): triggers write every change of a row, in the transaction of the change. The triggers exist from
-- this migration on and are disabled until a program first asks for the feed (townsquare.start_capture), so that a
-- database without subscribers pays nothing.
--
-- Entries are delivered in the order of their ids. A trigger takes the id while its transaction holds the lock of the
-- changed row, so the ids of one row's changes are in the order of the changes. (The ids of transactions are not: a
-- transaction that began earlier may change a row last.) An id is taken before the commit, so a reader must not pass the
-- entries of transactions that still run: see townsquare.settled_id.

CREATE SEQUENCE townsquare.changes_id;

-- Its value is the time, in seconds since 1970, until which a reader listens for notifications. A sequence, because its
-- value does not depend on a snapshot and costs no row version.
CREATE SEQUENCE townsquare.listening_until;

-- Keys of advisory locks have a number of this library in their highest 16 bits:
-- 29809: shared by each transaction that writes entries; the other bits are an id smaller than all of its entries' ids.
-- 29810: held by the transaction that will notify the readers.
-- 29811: the visibility of the spaces, and of the private files of the identity keys, with a hash.
-- 29812: the files of the spaces, with a hash (0005_files).

-- Takes the lock 29809 for a transaction that may write many entries, if it has not done so, and marks the transaction with
-- its number. A savepoint that is rolled back undoes the mark together with the lock. Returns true if it took the lock.
-- It names the schema of each function and operator; see capture_row.
CREATE FUNCTION townsquare.mark_writer() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    RETURN COALESCE(pg_catalog.current_setting('townsquare.writer', true), '')
            OPERATOR(pg_catalog.<>) pg_catalog.pg_current_xact_id()::pg_catalog.text
        AND pg_catalog.pg_try_advisory_xact_lock_shared((29809::bigint OPERATOR(pg_catalog.<<) 48)
            OPERATOR(pg_catalog.|) COALESCE(pg_catalog.pg_sequence_last_value('townsquare.changes_id'), 0))
        AND pg_catalog.set_config('townsquare.writer', pg_catalog.pg_current_xact_id()::pg_catalog.text, true)
            OPERATOR(pg_catalog.<>) '';
END
$$;

CREATE TABLE townsquare.changes (
    -- The first entry of a transaction takes the lock 29809 before its id, and notifies the readers. Each condition has an
    -- effect that those after it need; the last one is false. (One expression: each statement of a trigger costs as much as
    -- the rest of it. A short one: PostgreSQL prepares all of it for each entry, also what it does not evaluate.)
    id          BIGINT PRIMARY KEY DEFAULT CASE
        WHEN CASE
                -- A young transaction takes a lock for each entry. That is cheaper than the mark: the end of a transaction
                -- that has one looks at every setting of the server. (A clock that is set back makes it young again. A lower
                -- bound would cost each entry half as much as the lock.)
                WHEN clock_timestamp() < now() + INTERVAL '1 ms'
                -- The lock is always free to share.
                THEN pg_try_advisory_xact_lock_shared(
                    (29809::bigint << 48) | COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0))
                ELSE townsquare.mark_writer()
            END
            -- Commits that notify wait for each other. So only one of the running transactions notifies: the reader then
            -- looks again until the others have ended.
            AND COALESCE(pg_sequence_last_value('townsquare.listening_until'), 0) > date_part('epoch', clock_timestamp())
            AND pg_try_advisory_xact_lock(29810::bigint << 48)
            AND pg_notify('townsquare_changes', '') IS NULL
        THEN NULL
        ELSE nextval('townsquare.changes_id')
    END,
    transaction XID8 NOT NULL DEFAULT pg_current_xact_id(),
    at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    table_name  TEXT NOT NULL,
    -- insert, update, delete; visibility for a row that stays as it is while who may see it changes (only new_row has its
    -- image); session_started, session_ended.
    kind        TEXT NOT NULL,
    old_row     JSON,
    new_row     JSON,
    -- What the policy needs besides the row, as of the statement.
    old_context JSON,
    new_context JSON
);
-- Entries are short-lived, and compressing them costs more than it saves.
ALTER TABLE townsquare.changes ALTER COLUMN old_row SET STORAGE EXTERNAL, ALTER COLUMN new_row SET STORAGE EXTERNAL;

-- One row: whether capture is on, and the id of the last entry that was pruned.
CREATE TABLE townsquare.feed (
    only_row  INTEGER PRIMARY KEY CHECK (only_row = 1),
    is_on     BOOLEAN NOT NULL,
    pruned_to BIGINT NOT NULL
);
INSERT INTO townsquare.feed (only_row, is_on, pruned_to) VALUES (1, true, 0);

-- The spaces that a running transaction has deleted, for the triggers of the fidgets that are deleted with them.
CREATE UNLOGGED TABLE townsquare.deleted_spaces (
    transaction XID8 NOT NULL DEFAULT pg_current_xact_id(),
    id          UUID NOT NULL,
    owner_id    UUID,
    is_public   BOOLEAN,
    PRIMARY KEY (transaction, id)
);

-- The largest id up to which every entry has been committed or will never exist, and whether a transaction
-- holds the lock 29809. Entries up to the id are visible to the statements after this call.
--
-- An entry up to `last` was written by a transaction that held its lock (the default of `id`) before `last` was read.
-- It still holds the lock, with a smaller id, or it has ended.
CREATE FUNCTION townsquare.log_state(OUT settled BIGINT, OUT has_writer BOOLEAN) LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT := COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0);
    -- The smallest id in the keys of the locks.
    running BIGINT := (
        SELECT min(((classid::bigint & 65535) << 32) | objid::bigint) FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND classid::bigint >> 16 = 29809
            AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
    );
BEGIN
    settled := LEAST(last, running);
    has_writer := running IS NOT NULL;
END
$$;

CREATE FUNCTION townsquare.settled_id() RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT settled FROM townsquare.log_state());
END
$$;

-- Returns the settled entries after an id, in the order of the feed. Raises TQ410 if such entries have been pruned.
CREATE FUNCTION townsquare.changes_after(p_after BIGINT, p_limit BIGINT) RETURNS TABLE (
    id BIGINT, transaction TEXT, at TIMESTAMPTZ, table_name TEXT, kind TEXT,
    old_row TEXT, new_row TEXT, old_context TEXT, new_context TEXT
) LANGUAGE plpgsql AS $$
DECLARE
    settled BIGINT := townsquare.settled_id();
BEGIN
    RETURN QUERY SELECT entry.id, entry.transaction::text, entry.at, entry.table_name, entry.kind,
            entry.old_row::text, entry.new_row::text, entry.old_context::text, entry.new_context::text
        FROM townsquare.changes AS entry WHERE entry.id > p_after AND entry.id <= settled
        ORDER BY entry.id LIMIT p_limit;
    -- After the rows were read, so that a deletion in between is noticed.
    IF p_after < (SELECT pruned_to FROM townsquare.feed) THEN
        RAISE EXCEPTION 'The change feed no longer has what follows the cursor' USING ERRCODE = 'TQ410';
    END IF;
END
$$;

-- The position after the last commit: the settled entries, and of the later ones those of the transactions that the
-- snapshot sees, none of which has an id above the last. `has_writer` is that of log_state.
CREATE FUNCTION townsquare.feed_head(OUT settled BIGINT, OUT snapshot TEXT, OUT last BIGINT, OUT has_writer BOOLEAN)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT state.settled, state.has_writer INTO settled, has_writer FROM townsquare.log_state() AS state;
    snapshot := pg_current_snapshot()::text;
    last := COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0);
END
$$;

-- Deletes the oldest of at most p_batch entries that are beyond the limits (p_age in microseconds), but none above
-- p_keep_after unless it is beyond four times the limits. Returns true if there is more to delete.
CREATE FUNCTION townsquare.prune_changes(p_rows BIGINT, p_age BIGINT, p_keep_after BIGINT, p_batch BIGINT)
RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    settled BIGINT := townsquare.settled_id();
    age INTERVAL := p_age * INTERVAL '1 microsecond';
    already BIGINT;
    found_last BIGINT;
    prune_to BIGINT;
BEGIN
    SELECT pruned_to INTO already FROM townsquare.feed FOR UPDATE SKIP LOCKED;
    -- NULL if another process prunes.
    SELECT max(id), max(id) FILTER (WHERE
            (id <= settled - p_rows OR at < now() - age)
            AND (p_keep_after IS NULL OR id <= p_keep_after OR id <= settled - 4 * p_rows OR at < now() - 4 * age))
        INTO found_last, prune_to
        FROM (SELECT id, at FROM townsquare.changes
            WHERE id > already AND id <= settled ORDER BY id LIMIT p_batch) AS oldest;
    IF prune_to IS NULL THEN
        RETURN false;
    END IF;
    DELETE FROM townsquare.changes WHERE id > already AND id <= prune_to;
    UPDATE townsquare.feed SET pruned_to = prune_to;
    DELETE FROM townsquare.deleted_spaces WHERE transaction < pg_snapshot_xmin(pg_current_snapshot());
    RETURN prune_to = found_last;
END
$$;

-- What the policy of a fidget needs of its space. Waits for a transaction that changes who may see the space.
CREATE FUNCTION townsquare.space_context(p_space UUID) RETURNS JSON LANGUAGE plpgsql AS $$
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
    SELECT json_build_object('owner_id', owner_id, 'is_public', is_public) INTO context
        FROM public.spaces WHERE id = p_space;
    IF NOT FOUND THEN
        SELECT json_build_object('owner_id', owner_id, 'is_public', is_public) INTO context
            FROM townsquare.deleted_spaces WHERE transaction = pg_current_xact_id() AND id = p_space;
    END IF;
    RETURN context;
END
$$;

-- Most trigger functions pin the search path. That costs as much as writing the entry: when such a function returns,
-- PostgreSQL 15 looks at every setting of the server. capture_row and capture_updated_space do not: they name the schema of
-- each function and operator, so that the path of the program that changes the row has no effect. (So they contain no
-- expression that cannot name it, such as IS DISTINCT FROM.)

CREATE FUNCTION townsquare.capture_row() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row)
        VALUES (TG_TABLE_NAME, pg_catalog.lower(TG_OP COLLATE pg_catalog."C"),
            pg_catalog.row_to_json(OLD), pg_catalog.row_to_json(NEW));
    RETURN NULL;
END
$$;

CREATE FUNCTION townsquare.capture_updated_space() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
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

CREATE FUNCTION townsquare.keep_deleted_space() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO townsquare.deleted_spaces (id, owner_id, is_public) VALUES (OLD.id, OLD.owner_id, OLD.is_public)
        ON CONFLICT (transaction, id) DO UPDATE
        SET owner_id = excluded.owner_id, is_public = excluded.is_public;
    RETURN NULL;
END
$$;

-- The functions that read tables with policies act for the service, whoever changes the row: they set townsquare.caller to
-- '' (see townsquare.is_service) until they return.

-- Writes a change of who may see a space, once for each of its fidgets.
CREATE FUNCTION townsquare.capture_visibility(p_space UUID, p_old_context JSON, p_new_context JSON) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    fidget JSON;
BEGIN
    -- Waits for the transactions that write fidgets of the space, and keeps others out until this one ends: each of them
    -- saw the space either as it was or as it will be.
    PERFORM pg_advisory_xact_lock((29811::bigint << 48) | (hashtextextended(p_space::text, 0) & 255));
    PERFORM set_config('townsquare.caller', '', true);
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Fails if one of the fidgets has changed since the snapshot of this transaction.
        PERFORM FROM public.fidgets WHERE space_id = p_space FOR SHARE;
    END IF;
    FOR fidget IN SELECT row_to_json(fidgets) FROM public.fidgets WHERE space_id = p_space ORDER BY created_at, id LOOP
        INSERT INTO townsquare.changes (table_name, kind, new_row, old_context, new_context)
            VALUES ('fidgets', 'visibility', fidget, p_old_context, p_new_context);
    END LOOP;
    PERFORM set_config('townsquare.caller', caller, true);
END
$$;

CREATE FUNCTION townsquare.capture_fidget() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    old_context JSON;
    new_context JSON;
BEGIN
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

-- Files have the columns of FileInfo. A move is the end of one file and the beginning of another.
CREATE FUNCTION townsquare.file_image(file townsquare.files) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT json_build_object('bucket', file.bucket, 'path', file.path, 'size', file.size,
        'content_type', file.content_type, 'cache_control', file.cache_control, 'etag', file.etag,
        'metadata', file.metadata, 'owner_id', file.owner_id, 'updated_at', file.updated_at)
$$;

CREATE FUNCTION townsquare.file_context(file townsquare.files) RETURNS JSON LANGUAGE sql STABLE AS $$
    SELECT json_build_object('access', file.access, 'first_segment', file.first_segment, 'holder', (
        SELECT user_id FROM townsquare.identities WHERE public_key = file.first_segment AND file.access = 'private'))
$$;

CREATE FUNCTION townsquare.capture_file() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Waits for a transaction that links or unlinks the identity key of a private file.
    IF TG_OP <> 'INSERT' AND OLD.access = 'private' THEN
        PERFORM pg_advisory_xact_lock_shared((29811::bigint << 48) | (hashtextextended(OLD.first_segment, 0) & 255));
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.access = 'private' THEN
        PERFORM pg_advisory_xact_lock_shared((29811::bigint << 48) | (hashtextextended(NEW.first_segment, 0) & 255));
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.bucket = NEW.bucket AND OLD.path = NEW.path THEN
        IF townsquare.file_image(OLD)::text <> townsquare.file_image(NEW)::text THEN
            INSERT INTO townsquare.changes (table_name, kind, old_row, new_row, old_context, new_context)
                VALUES ('files', 'update', townsquare.file_image(OLD), townsquare.file_image(NEW),
                    townsquare.file_context(OLD), townsquare.file_context(NEW));
        END IF;
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO townsquare.changes (table_name, kind, old_row, old_context)
            VALUES ('files', 'delete', townsquare.file_image(OLD), townsquare.file_context(OLD));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO townsquare.changes (table_name, kind, new_row, new_context)
            VALUES ('files', 'insert', townsquare.file_image(NEW), townsquare.file_context(NEW));
    END IF;
    RETURN NULL;
END
$$;

-- Who links an identity key gains the private files under it, and who unlinks it loses them. '0' is the character after '/'.
CREATE FUNCTION townsquare.capture_identity() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    key TEXT := CASE WHEN TG_OP = 'INSERT' THEN NEW.public_key ELSE OLD.public_key END;
    file townsquare.files;
BEGIN
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

CREATE FUNCTION townsquare.capture_session() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO townsquare.changes (table_name, kind, new_row)
            VALUES ('users', 'session_started', json_build_object('session_id', NEW.id, 'user_id', NEW.user_id));
    ELSE
        INSERT INTO townsquare.changes (table_name, kind, old_row)
            VALUES ('users', 'session_ended', json_build_object('session_id', OLD.id, 'user_id', OLD.user_id));
    END IF;
    RETURN NULL;
END
$$;

-- TRUNCATE fires no trigger for its rows.
CREATE FUNCTION townsquare.capture_truncate() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    image JSON;
BEGIN
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

CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE OR DELETE ON public.community_configs
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_row();
CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE OR DELETE ON public.community_domains
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_row();
CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE OR DELETE ON public."spaceRegistrations"
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_row();
CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE OR DELETE ON public.users
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_row();
CREATE TRIGGER townsquare_capture AFTER INSERT OR DELETE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_row();
CREATE TRIGGER townsquare_capture_update AFTER UPDATE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_updated_space();
CREATE TRIGGER townsquare_capture_delete AFTER DELETE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.keep_deleted_space();
CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE OR DELETE ON public.fidgets
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_fidget();
CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE OR DELETE ON townsquare.files
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_file();
CREATE TRIGGER townsquare_capture AFTER INSERT OR DELETE ON townsquare.identities
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_identity();
CREATE TRIGGER townsquare_capture AFTER INSERT OR DELETE ON townsquare.sessions
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_session();

CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON public.community_configs
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON public.community_domains
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON public."spaceRegistrations"
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON public.users
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON public.spaces
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON public.fidgets
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON townsquare.files
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();
CREATE TRIGGER townsquare_capture_truncate BEFORE TRUNCATE ON townsquare.sessions
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_truncate();

-- Switches the triggers on or off. Waits for the transactions that write to the tables, so that every transaction that
-- commits later writes its entries.
CREATE FUNCTION townsquare.set_capture(p_is_on BOOLEAN) RETURNS VOID
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
        WHERE tgname LIKE 'townsquare\_capture%'
    LOOP
        EXECUTE 'ALTER TABLE ' || captured;
    END LOOP;
    UPDATE townsquare.feed SET is_on = p_is_on;
END
$$;
SELECT townsquare.set_capture(false);
