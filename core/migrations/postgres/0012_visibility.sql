-- Pages of the change log are bounded by bytes, and a change of many rows writes its entries by few statements.

-- Returns the entries after an id, in the order of the feed: at most 256, and none after the first one with which their
-- images have more than p_bytes. Images of tables that are not in p_tables are NULL, and cost nothing: PostgreSQL reads a
-- large value when it is converted to text. Entries of sessions are always whole. `found` is the number of entries without
-- the limit of bytes. Ends at p_end, before which no running transaction writes an entry; if it is NULL, at the settled id.
-- Raises what townsquare.check_point raises.
CREATE FUNCTION townsquare.changes_page(
    p_after BIGINT, p_proof TEXT, p_end BIGINT, p_bytes BIGINT, p_tables TEXT[]
) RETURNS TABLE (
    id BIGINT, transaction TEXT, at TIMESTAMPTZ, table_name TEXT, kind TEXT,
    old_row TEXT, new_row TEXT, old_context TEXT, new_context TEXT, found BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT := COALESCE(p_end, townsquare.settled_id());
BEGIN
    -- The limit is a constant, because a bound one lets PostgreSQL read the whole range and sort it.
    RETURN QUERY SELECT page.id, page.transaction::text, page.at, page.table_name, page.kind,
            page.old_row::text, page.new_row::text, page.old_context::text, page.new_context::text, page.found
        FROM (
            SELECT entry.*, count(*) OVER () AS found,
                sum(COALESCE(pg_column_size(entry.old_row), 0) + COALESCE(pg_column_size(entry.new_row), 0))
                    OVER (ORDER BY entry.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
            FROM (
                SELECT changes.id, changes.transaction, changes.at, changes.table_name, changes.kind,
                    wanted.old_row, wanted.new_row, wanted.old_context, wanted.new_context
                FROM townsquare.changes LEFT JOIN LATERAL (
                    SELECT changes.old_row, changes.new_row, changes.old_context, changes.new_context
                    WHERE changes.table_name = ANY (p_tables)
                        OR changes.kind IN ('session_started', 'session_rotated', 'session_ended')
                ) AS wanted ON true
                WHERE changes.id > p_after AND changes.id <= last
                ORDER BY changes.id LIMIT 256
            ) AS entry
        ) AS page WHERE COALESCE(page.bytes_before, 0) <= p_bytes ORDER BY page.id;
    -- After the rows were read, so that a deletion in between is noticed.
    PERFORM townsquare.check_point(p_after, p_proof);
END
$$;
REVOKE ALL ON FUNCTION townsquare.changes_page(BIGINT, TEXT, BIGINT, BIGINT, TEXT[]) FROM PUBLIC;

-- As before, in one statement: a statement for each entry costs as much as the rest of it.
CREATE OR REPLACE FUNCTION townsquare.capture_visibility(p_space UUID, p_old_context JSON, p_new_context JSON) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
    -- Waits for the transactions that write fidgets of the space, and keeps others out until this one ends: each of them
    -- saw the space either as it was or as it will be.
    PERFORM pg_advisory_xact_lock((29811::bigint << 48) | (hashtextextended(p_space::text, 0) & 255));
    PERFORM set_config('townsquare.caller', '', true);
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        -- Fails if one of the fidgets has changed since the snapshot of this transaction.
        PERFORM FROM public.fidgets WHERE space_id = p_space FOR SHARE;
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, new_row, old_context, new_context)
        SELECT 'fidgets', 'visibility', row_to_json(fidgets), p_old_context, p_new_context
        FROM public.fidgets WHERE space_id = p_space ORDER BY created_at, id;
    PERFORM set_config('townsquare.caller', caller, true);
END
$$;

-- Writes the entries of the fidgets that a statement deleted, in the order of their deletion. Reads each space once.
CREATE FUNCTION townsquare.capture_deleted_fidgets() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
BEGIN
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
REVOKE ALL ON FUNCTION townsquare.capture_deleted_fidgets() FROM PUBLIC;

DROP TRIGGER townsquare_capture ON public.fidgets;
CREATE TRIGGER townsquare_capture AFTER INSERT OR UPDATE ON public.fidgets
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_fidget();
CREATE TRIGGER townsquare_capture_delete AFTER DELETE ON public.fidgets
    REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION townsquare.capture_deleted_fidgets();
DO $$
BEGIN
    IF NOT (SELECT is_on FROM townsquare.feed) THEN
        ALTER TABLE public.fidgets DISABLE TRIGGER townsquare_capture;
        ALTER TABLE public.fidgets DISABLE TRIGGER townsquare_capture_delete;
    END IF;
END
$$;
