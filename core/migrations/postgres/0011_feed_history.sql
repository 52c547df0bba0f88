-- A cursor proves its history: it names the entry that it stands on by its transaction and its time, which together no entry of
-- another history has. A server that fails over to one that lagged, and one that loses its last
-- commits, give the ids of the lost entries to other changes.

-- The key of the cursors' authentication and encryption.
ALTER TABLE townsquare.database ADD COLUMN cursor_key TEXT NOT NULL DEFAULT '';
UPDATE townsquare.database SET cursor_key = replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');

-- The last entry that was pruned. Before any was, this migration stands in for it.
ALTER TABLE townsquare.feed ADD COLUMN pruned_transaction XID8 NOT NULL DEFAULT pg_current_xact_id();
ALTER TABLE townsquare.feed ADD COLUMN pruned_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();

-- The functions below raise TQ410 for a position after which entries have been pruned, and TQ411 for one in another history.

-- What tells an entry from one of another history: its id, its transaction, and its time in microseconds.
CREATE FUNCTION townsquare.entry_mark(p_id BIGINT, p_transaction XID8, p_at TIMESTAMPTZ) RETURNS TEXT LANGUAGE sql STABLE AS $$
    SELECT p_id || ':' || p_transaction || ':' || (EXTRACT(EPOCH FROM p_at) * 1000000)::bigint
$$;

-- The proof of a point in the log: the last entry up to p_after, which may have been pruned. NULL if later
-- entries have been pruned. p_after is settled.
CREATE FUNCTION townsquare.proof_at(p_after BIGINT) RETURNS TEXT LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        (SELECT townsquare.entry_mark(id, transaction, at) FROM townsquare.changes
            WHERE id <= p_after ORDER BY id DESC LIMIT 1),
        (SELECT townsquare.entry_mark(pruned_to, pruned_transaction, pruned_at) FROM townsquare.feed
            WHERE pruned_to <= p_after))
$$;

-- A hash of the entries between two ids that a snapshot sees; '' if there is none.
CREATE FUNCTION townsquare.seen_entries(p_settled BIGINT, p_last BIGINT, p_snapshot TEXT) RETURNS TEXT
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(md5(string_agg(townsquare.entry_mark(id, transaction, at), ' ' ORDER BY id)), '')
    FROM townsquare.changes
    WHERE id > p_settled AND id <= p_last AND pg_visible_in_snapshot(transaction, p_snapshot::pg_snapshot)
$$;

-- Checks that a position is one of this history, and that nothing after it has been pruned.
CREATE FUNCTION townsquare.check_point(p_after BIGINT, p_proof TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
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

-- The position after the last commit: that of feed_head with its proof, and the later entries that the snapshot sees.
CREATE FUNCTION townsquare.feed_position(
    OUT settled BIGINT, OUT proof TEXT, OUT snapshot TEXT, OUT last BIGINT, OUT seen TEXT
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT head.settled, head.snapshot, head.last INTO settled, snapshot, last FROM townsquare.feed_head() AS head;
    proof := townsquare.proof_at(settled);
    seen := townsquare.seen_entries(settled, last, snapshot);
END
$$;

-- Subscriptions that act for one session. Such a subscription ends when the session ends, and when the session gets other
-- tokens, which its handle does not have.

CREATE OR REPLACE FUNCTION townsquare.capture_session() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO townsquare.changes (table_name, kind, old_row)
            VALUES ('users', 'session_ended', json_build_object('session_id', OLD.id, 'user_id', OLD.user_id));
    ELSE
        INSERT INTO townsquare.changes (table_name, kind, new_row)
            VALUES ('users', CASE TG_OP WHEN 'INSERT' THEN 'session_started' ELSE 'session_rotated' END,
                json_build_object('session_id', NEW.id, 'user_id', NEW.user_id));
    END IF;
    RETURN NULL;
END
$$;

DROP TRIGGER townsquare_capture ON townsquare.sessions;
CREATE TRIGGER townsquare_capture AFTER INSERT ON townsquare.sessions
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_session();
CREATE TRIGGER townsquare_capture_update AFTER UPDATE OF access_hash ON townsquare.sessions
    FOR EACH ROW WHEN (OLD.access_hash <> NEW.access_hash) EXECUTE FUNCTION townsquare.capture_session();
-- Deferred to the end of the transaction: a user who is deleted still gets what is deleted with them.
CREATE CONSTRAINT TRIGGER townsquare_capture_delete AFTER DELETE ON townsquare.sessions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_session();

-- Deletes the oldest of at most p_batch entries that are beyond the limits (p_age in microseconds), but none above
-- p_keep_after unless it is beyond four times the limits. Returns true if there is more to delete. It stops at the first entry
-- that is within the limits: a clock that was wrong for a while gave wrong times, and an old time among fresh ones must not
-- delete what is before it.
CREATE OR REPLACE FUNCTION townsquare.prune_changes(p_rows BIGINT, p_age BIGINT, p_keep_after BIGINT, p_batch BIGINT)
RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    settled BIGINT := townsquare.settled_id();
    age INTERVAL := p_age * INTERVAL '1 microsecond';
    already BIGINT;
    found_last BIGINT;
    prune_to BIGINT;
    last_transaction XID8;
    last_at TIMESTAMPTZ;
BEGIN
    SELECT pruned_to INTO already FROM townsquare.feed FOR UPDATE SKIP LOCKED;
    -- NULL if another process prunes.
    SELECT max(id), max(id) FILTER (WHERE kept = 0) INTO found_last, prune_to
        FROM (SELECT id, count(*) FILTER (WHERE NOT (
                (id <= settled - p_rows OR at < now() - age)
                AND (p_keep_after IS NULL OR id <= p_keep_after OR id <= settled - 4 * p_rows OR at < now() - 4 * age)
            )) OVER (ORDER BY id) AS kept
            FROM (SELECT id, at FROM townsquare.changes
                WHERE id > already AND id <= settled ORDER BY id LIMIT p_batch) AS oldest) AS counted;
    IF prune_to IS NULL THEN
        RETURN false;
    END IF;
    SELECT transaction, at INTO last_transaction, last_at FROM townsquare.changes WHERE id = prune_to;
    DELETE FROM townsquare.changes WHERE id > already AND id <= prune_to;
    UPDATE townsquare.feed SET pruned_to = prune_to, pruned_transaction = last_transaction, pruned_at = last_at;
    DELETE FROM townsquare.deleted_spaces WHERE transaction < pg_snapshot_xmin(pg_current_snapshot());
    RETURN prune_to = found_last;
END
$$;

-- New triggers are enabled; set_capture switches them with the others.
DO $$
BEGIN
    IF NOT (SELECT is_on FROM townsquare.feed) THEN
        ALTER TABLE townsquare.sessions DISABLE TRIGGER townsquare_capture;
        ALTER TABLE townsquare.sessions DISABLE TRIGGER townsquare_capture_update;
        ALTER TABLE townsquare.sessions DISABLE TRIGGER townsquare_capture_delete;
    END IF;
END
$$;
