-- The functions that read, switch, prune and erase the change log (DESIGN 5). `open` creates them again when their source, owner or
-- rights have changed. Only the service may execute them.
--
-- Entries are delivered in the order of their ids. A trigger takes the id while its transaction holds the lock of the
-- changed row, so the ids of one row's changes are in the order of the changes. (The ids of transactions are not: a
-- transaction that began earlier may change a row last.) An id is taken before the commit, so a reader must not pass the
-- entries of transactions that still run: see townsquare.log_state.

-- The largest id up to which every entry has been committed or will never exist, and whether a transaction
-- holds the lock 29809. Entries up to the id are visible to the statements after this call.
--
-- An entry up to `last` was written by a transaction that held its lock (see townsquare.next_entry) before `last` was read.
-- It still holds the lock, with a smaller id, or it has ended.
CREATE OR REPLACE FUNCTION townsquare.log_state(OUT settled BIGINT, OUT has_writer BOOLEAN) LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION townsquare.settled_id() RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT settled FROM townsquare.log_state());
END
$$;

-- The position after the last commit: the settled entries, and the later entries of transactions that the snapshot sees. None
-- of these has an id above the last. `has_writer` is as in townsquare.log_state.
CREATE OR REPLACE FUNCTION townsquare.feed_head(
    OUT settled BIGINT, OUT snapshot TEXT, OUT last BIGINT, OUT has_writer BOOLEAN
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT state.settled, state.has_writer INTO settled, has_writer FROM townsquare.log_state() AS state;
    snapshot := pg_current_snapshot()::text;
    last := COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0);
END
$$;

-- A cursor proves its history: it names the entry that it stands on by its transaction and its time, which together no entry of
-- another history has. A server that fails over to one that lagged, and one that loses its last commits, give the ids of the
-- lost entries to other changes. The functions below raise TQ410 for a position after which entries have been pruned, and
-- TQ411 for one in another history.

-- What tells an entry from one of another history: its id, its transaction, and its time in microseconds.
CREATE OR REPLACE FUNCTION townsquare.entry_mark(p_id BIGINT, p_transaction XID8, p_at TIMESTAMPTZ) RETURNS TEXT
LANGUAGE sql STABLE AS $$
    SELECT p_id || ':' || p_transaction || ':' || (EXTRACT(EPOCH FROM p_at) * 1000000)::bigint
$$;

-- The proof of a point in the log: the last entry up to p_after, which may have been pruned. NULL if later
-- entries have been pruned. p_after is settled.
CREATE OR REPLACE FUNCTION townsquare.proof_at(p_after BIGINT) RETURNS TEXT LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        (SELECT townsquare.entry_mark(id, transaction, at) FROM townsquare.changes
            WHERE id <= p_after ORDER BY id DESC LIMIT 1),
        (SELECT townsquare.entry_mark(pruned_to, pruned_transaction, pruned_at) FROM townsquare.feed
            WHERE pruned_to <= p_after))
$$;

-- A hash of the entries between two ids that a snapshot sees; '' if there is none.
CREATE OR REPLACE FUNCTION townsquare.seen_entries(p_settled BIGINT, p_last BIGINT, p_snapshot TEXT) RETURNS TEXT
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(md5(string_agg(townsquare.entry_mark(id, transaction, at), ' ' ORDER BY id)), '')
    FROM townsquare.changes
    WHERE id > p_settled AND id <= p_last AND pg_visible_in_snapshot(transaction, p_snapshot::pg_snapshot)
$$;

-- Checks that a position is one of this history, and that nothing after it has been pruned.
CREATE OR REPLACE FUNCTION townsquare.check_point(p_after BIGINT, p_proof TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    proof TEXT := townsquare.proof_at(p_after);
BEGIN
    IF proof = p_proof THEN
        RETURN;
    END IF;
    IF split_part(p_proof, ':', 1)::bigint < (SELECT pruned_to FROM townsquare.feed) THEN
        RAISE EXCEPTION 'The change feed no longer has what follows the cursor' USING ERRCODE = 'TQ410';
    END IF;
    RAISE EXCEPTION 'The cursor is of another history of the database' USING ERRCODE = 'TQ411';
END
$$;

-- The position after the last commit, as in townsquare.feed_head, with its proof, and the later entries that the snapshot sees.
CREATE OR REPLACE FUNCTION townsquare.feed_position(
    OUT settled BIGINT, OUT proof TEXT, OUT snapshot TEXT, OUT last BIGINT, OUT seen TEXT
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT head.settled, head.snapshot, head.last INTO settled, snapshot, last FROM townsquare.feed_head() AS head;
    proof := townsquare.proof_at(settled);
    seen := townsquare.seen_entries(settled, last, snapshot);
END
$$;

-- Returns the entries after an id, in the order of the feed: at most 256, and none after the first one with which their
-- images have more than p_bytes. Images of tables that are not in p_tables are NULL, and cost nothing: PostgreSQL reads a
-- large value when it is converted to text. Entries of sessions are always whole. `found` is the number of entries without
-- the limit of bytes. Ends at p_end, before which no running transaction writes an entry; if it is NULL, at the settled id.
-- Raises what townsquare.check_point raises.
CREATE OR REPLACE FUNCTION townsquare.changes_page(
    p_after BIGINT, p_proof TEXT, p_end BIGINT, p_bytes BIGINT, p_tables TEXT[]
) RETURNS TABLE (
    id BIGINT, transaction TEXT, at TIMESTAMPTZ, table_name TEXT, kind TEXT,
    old_row TEXT, new_row TEXT, old_context TEXT, new_context TEXT, found BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    last BIGINT := COALESCE(p_end, townsquare.settled_id());
    total BIGINT;
    read_to BIGINT;
BEGIN
    -- Without the images: a window function copies each row.
    SELECT count(*), max(sized.id) FILTER (WHERE COALESCE(sized.bytes_before, 0) <= p_bytes) INTO total, read_to
        FROM (
            SELECT entry.id, sum(entry.bytes) OVER (ORDER BY entry.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
            FROM (
                -- The limit is a constant, because a bound one lets PostgreSQL read the whole range and sort it.
                SELECT changes.id, CASE WHEN changes.table_name = ANY (p_tables) THEN
                    COALESCE(pg_column_size(changes.old_row), 0) + COALESCE(pg_column_size(changes.new_row), 0) END AS bytes
                FROM townsquare.changes WHERE changes.id > p_after AND changes.id <= last
                ORDER BY changes.id LIMIT 256
            ) AS entry
        ) AS sized;
    RETURN QUERY SELECT changes.id, changes.transaction::text, changes.at, changes.table_name, changes.kind,
            CASE WHEN wanted.yes THEN changes.old_row::text END, CASE WHEN wanted.yes THEN changes.new_row::text END,
            CASE WHEN wanted.yes THEN changes.old_context::text END,
            CASE WHEN wanted.yes THEN changes.new_context::text END, total
        FROM townsquare.changes CROSS JOIN LATERAL (
            SELECT changes.table_name = ANY (p_tables)
                OR changes.kind IN ('session_started', 'session_rotated', 'session_ended') AS yes
        ) AS wanted
        WHERE changes.id > p_after AND changes.id <= read_to ORDER BY changes.id LIMIT 256;
    -- After the rows were read, so that a deletion in between is noticed.
    PERFORM townsquare.check_point(p_after, p_proof);
END
$$;

-- About the bytes of an entry as it is stored. Reads no large value.
CREATE OR REPLACE FUNCTION townsquare.entry_bytes(p_old_row JSON, p_new_row JSON, p_old_context JSON, p_new_context JSON) RETURNS BIGINT
LANGUAGE sql STABLE AS $$
    SELECT 100 + COALESCE(pg_column_size(p_old_row), 0)::bigint + COALESCE(pg_column_size(p_new_row), 0)
        + COALESCE(pg_column_size(p_old_context), 0) + COALESCE(pg_column_size(p_new_context), 0)
$$;

-- Deletes the oldest of at most p_batch entries, of about 16 MiB, that are beyond the limits (p_age in microseconds), but none above
-- p_keep_after unless it is beyond four times the limits. Returns true if there is more to delete. It stops at the first entry
-- that is within the limits: a clock that was wrong for a while gave wrong times, and an old time among fresh ones must not
-- delete what is before it. Counts the bytes of the entries that were written since the last call, in steps.
--
-- The log has no partitions that could be dropped instead. Dead entries cost autovacuum 0.3 ms of processor time a second at 1,000
-- changes a second (`log_pruning` of the benches), and whole partitions would keep more than the limits or less.
CREATE OR REPLACE FUNCTION townsquare.prune_changes(
    p_rows BIGINT, p_bytes BIGINT, p_age BIGINT, p_keep_after BIGINT, p_batch BIGINT
) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    settled BIGINT := townsquare.settled_id();
    age INTERVAL := p_age * INTERVAL '1 microsecond';
    step BIGINT := 10000;
    -- Keeps the deletion of large entries short.
    max_bytes BIGINT := 16777216;
    already BIGINT;
    counted BIGINT;
    bytes BIGINT;
    new_to BIGINT;
    new_bytes BIGINT;
    new_count BIGINT;
    found_last BIGINT;
    prune_to BIGINT;
    last_transaction XID8;
    last_at TIMESTAMPTZ;
BEGIN
    SELECT pruned_to, counted_to, counted_bytes INTO already, counted, bytes FROM townsquare.feed FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        -- Another process prunes.
        RETURN false;
    END IF;
    SELECT max(id), sum(size), count(*) INTO new_to, new_bytes, new_count
        FROM (SELECT id, townsquare.entry_bytes(old_row, new_row, old_context, new_context) AS size
            FROM townsquare.changes WHERE id > GREATEST(counted, already) AND id <= settled ORDER BY id LIMIT step) AS uncounted;
    IF new_count > 0 THEN
        counted := new_to;
        bytes := bytes + new_bytes;
        UPDATE townsquare.feed SET counted_to = counted, counted_bytes = bytes;
    END IF;
    SELECT max(id), max(id) FILTER (WHERE kept = 0) INTO found_last, prune_to
        FROM (SELECT id, count(*) FILTER (WHERE NOT (
                (id <= settled - p_rows OR at < now() - age OR bytes - before > p_bytes)
                AND (p_keep_after IS NULL OR id <= p_keep_after OR id <= settled - 4 * p_rows OR at < now() - 4 * age
                    OR bytes - before > 4 * p_bytes)
            )) OVER (ORDER BY id) AS kept
            FROM (SELECT id, at, COALESCE(sum(size) OVER (
                    ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
                FROM (SELECT id, at, townsquare.entry_bytes(old_row, new_row, old_context, new_context) AS size
                    FROM townsquare.changes
                    WHERE id > already AND id <= LEAST(settled, counted) ORDER BY id LIMIT p_batch) AS oldest) AS sized
            WHERE before <= max_bytes) AS judged;
    IF prune_to IS NOT NULL THEN
        SELECT transaction, at INTO last_transaction, last_at FROM townsquare.changes WHERE id = prune_to;
        WITH deleted AS (
            DELETE FROM townsquare.changes WHERE id > already AND id <= prune_to
            RETURNING townsquare.entry_bytes(old_row, new_row, old_context, new_context) AS size
        )
        SELECT bytes - sum(size) INTO bytes FROM deleted;
        UPDATE townsquare.feed SET pruned_to = prune_to, pruned_transaction = last_transaction, pruned_at = last_at,
            counted_bytes = GREATEST(bytes, 0);
        DELETE FROM townsquare.deleted_spaces WHERE transaction < pg_snapshot_xmin(pg_current_snapshot());
    END IF;
    RETURN new_count = step OR COALESCE(prune_to = found_last, false);
END
$$;

-- Enables the triggers of the log on a table, or disables them, as townsquare.feed says. A trigger of the same name on a
-- temporary table of another session is none of them.
CREATE OR REPLACE FUNCTION townsquare.switch_triggers(p_table REGCLASS) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own NAME;
    change TEXT := CASE WHEN (SELECT is_on FROM townsquare.feed) THEN 'ENABLE' ELSE 'DISABLE' END;
BEGIN
    FOR own IN SELECT tgname FROM pg_trigger WHERE tgrelid = p_table AND tgname LIKE 'townsquare\_capture%' LOOP
        EXECUTE format('ALTER TABLE %s %s TRIGGER %I', p_table, change, own);
    END LOOP;
END
$$;

-- Switches capture on or off. Waits for the transactions that write to the tables, so that every transaction that
-- commits later writes its entries.
CREATE OR REPLACE FUNCTION townsquare.set_capture(p_is_on BOOLEAN) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE {captured tables} IN SHARE ROW EXCLUSIVE MODE;
    IF p_is_on = (SELECT is_on FROM townsquare.feed) THEN
        RETURN;
    END IF;
    UPDATE townsquare.feed SET is_on = p_is_on;
    PERFORM townsquare.switch_triggers(captured) FROM unnest(ARRAY[{captured names}]::regclass[]) AS captured;
END
$$;

-- Switches capture off and empties the log. Every position in it expires, so that each reader notices: the log ends after an
-- entry that never was. Notifies the readers.
CREATE OR REPLACE FUNCTION townsquare.stop_capture() RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    marker BIGINT;
BEGIN
    PERFORM townsquare.set_capture(false);
    TRUNCATE townsquare.changes;
    marker := nextval('townsquare.changes_id');
    UPDATE townsquare.feed SET pruned_to = marker, pruned_transaction = pg_current_xact_id(), pruned_at = clock_timestamp(),
        counted_to = marker, counted_bytes = 0;
    PERFORM pg_notify('townsquare_changes', '');
END
$$;

-- Reduces the image of a row that was deleted with its owner to its key and the columns that policies read. `(erased)` marks it.
CREATE OR REPLACE FUNCTION townsquare.erased_image(p_table TEXT, p_image JSON) RETURNS JSON
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT {erased p_table p_image}
$$;
