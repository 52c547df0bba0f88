-- Quotas read the sizes of an owner's files from the index.
DROP INDEX townsquare.files_owner_id;
CREATE INDEX files_owner_id ON townsquare.files (owner_id) INCLUDE (size) WHERE owner_id IS NOT NULL;

-- The size of the change log: `counted_bytes` is that of the entries up to `counted_to`. Writers do not count; who prunes does.
ALTER TABLE townsquare.feed ADD COLUMN counted_to BIGINT NOT NULL DEFAULT 0;
ALTER TABLE townsquare.feed ADD COLUMN counted_bytes BIGINT NOT NULL DEFAULT 0;

-- About the bytes of an entry as it is stored. Reads no large value.
CREATE FUNCTION townsquare.entry_bytes(p_old_row JSON, p_new_row JSON, p_old_context JSON, p_new_context JSON) RETURNS BIGINT
LANGUAGE sql STABLE AS $$
    SELECT 100 + COALESCE(pg_column_size(p_old_row), 0)::bigint + COALESCE(pg_column_size(p_new_row), 0)
        + COALESCE(pg_column_size(p_old_context), 0) + COALESCE(pg_column_size(p_new_context), 0)
$$;
REVOKE ALL ON FUNCTION townsquare.entry_bytes(JSON, JSON, JSON, JSON) FROM PUBLIC;

-- Deletes the oldest of at most p_batch entries that are beyond the limits (p_age in microseconds), but none above
-- p_keep_after unless it is beyond four times the limits. Returns true if there is more to delete. It stops at the first entry
-- that is within the limits: a clock that was wrong for a while gave wrong times, and an old time among fresh ones must not
-- delete what is before it. Counts the bytes of the entries that were written since the last call, in steps.
CREATE FUNCTION townsquare.prune_changes(
    p_rows BIGINT, p_bytes BIGINT, p_age BIGINT, p_keep_after BIGINT, p_batch BIGINT
) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    settled BIGINT := townsquare.settled_id();
    age INTERVAL := p_age * INTERVAL '1 microsecond';
    step BIGINT := 10000;
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
                    WHERE id > already AND id <= LEAST(settled, counted) ORDER BY id LIMIT p_batch) AS oldest) AS sized) AS judged;
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
REVOKE ALL ON FUNCTION townsquare.prune_changes(BIGINT, BIGINT, BIGINT, BIGINT, BIGINT) FROM PUBLIC;

-- Switches capture off and empties the log. Every position in it expires, so that each reader notices: the log ends after an
-- entry that never was. Notifies the readers.
CREATE FUNCTION townsquare.stop_capture() RETURNS VOID LANGUAGE plpgsql AS $$
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
REVOKE ALL ON FUNCTION townsquare.stop_capture() FROM PUBLIC;

-- The old image of an update leaves out large columns that did not change: their values are NULL, and the key "=" lists their
-- names. The new image has their values. A library before this version delivers NULL for them in the old row.

CREATE FUNCTION townsquare.old_image(p_image JSON, p_unchanged TEXT[]) RETURNS JSON
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ('{"=":' || array_to_json(p_unchanged)::text || ',' || substr(p_image::text, 2))::json
$$;
REVOKE ALL ON FUNCTION townsquare.old_image(JSON, TEXT[]) FROM PUBLIC;

-- The trigger functions below refuse every table but their own before they evaluate a column.

CREATE FUNCTION townsquare.capture_config_update() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    unchanged TEXT[] := '{}';
BEGIN
    IF TG_RELID <> 'public.community_configs'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF pg_column_size(OLD.brand_config) > 1000 AND OLD.brand_config::text = NEW.brand_config::text THEN
        OLD.brand_config := NULL;
        unchanged := unchanged || 'brand_config'::text;
    END IF;
    IF pg_column_size(OLD.assets_config) > 1000 AND OLD.assets_config::text = NEW.assets_config::text THEN
        OLD.assets_config := NULL;
        unchanged := unchanged || 'assets_config'::text;
    END IF;
    IF pg_column_size(OLD.community_config) > 1000 AND OLD.community_config::text = NEW.community_config::text THEN
        OLD.community_config := NULL;
        unchanged := unchanged || 'community_config'::text;
    END IF;
    IF pg_column_size(OLD.fidgets_config) > 1000 AND OLD.fidgets_config::text = NEW.fidgets_config::text THEN
        OLD.fidgets_config := NULL;
        unchanged := unchanged || 'fidgets_config'::text;
    END IF;
    IF pg_column_size(OLD.navigation_config) > 1000 AND OLD.navigation_config::text = NEW.navigation_config::text THEN
        OLD.navigation_config := NULL;
        unchanged := unchanged || 'navigation_config'::text;
    END IF;
    IF pg_column_size(OLD.ui_config) > 1000 AND OLD.ui_config::text = NEW.ui_config::text THEN
        OLD.ui_config := NULL;
        unchanged := unchanged || 'ui_config'::text;
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row)
        VALUES ('community_configs', 'update', townsquare.old_image(row_to_json(OLD), unchanged), row_to_json(NEW));
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION townsquare.capture_config_update() FROM PUBLIC;

CREATE FUNCTION townsquare.capture_fidget_update() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    unchanged TEXT[] := '{}';
    image JSON;
    old_context JSON;
    new_context JSON;
BEGIN
    IF TG_RELID <> 'public.fidgets'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', '', true);
    END IF;
    old_context := townsquare.space_context(OLD.space_id);
    IF NEW.space_id IS NOT DISTINCT FROM OLD.space_id THEN
        new_context := old_context;
    ELSE
        new_context := townsquare.space_context(NEW.space_id);
    END IF;
    IF pg_column_size(OLD.config) > 1000 AND OLD.config::text = NEW.config::text THEN
        OLD.config := NULL;
        unchanged := unchanged || 'config'::text;
    END IF;
    IF pg_column_size(OLD.position) > 1000 AND OLD.position::text = NEW.position::text THEN
        OLD.position := NULL;
        unchanged := unchanged || 'position'::text;
    END IF;
    image := row_to_json(OLD);
    IF unchanged <> '{}' THEN
        image := townsquare.old_image(image, unchanged);
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row, old_context, new_context)
        VALUES ('fidgets', 'update', image, row_to_json(NEW), old_context, new_context);
    IF caller <> '' THEN
        PERFORM set_config('townsquare.caller', caller, true);
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION townsquare.capture_fidget_update() FROM PUBLIC;

-- As capture_updated_space, and like that without a pinned search path.
CREATE FUNCTION townsquare.capture_space_update() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    image pg_catalog.json;
BEGIN
    IF TG_RELID OPERATOR(pg_catalog.<>) 'public.spaces'::pg_catalog.regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    IF (OLD.is_public IS TRUE) OPERATOR(pg_catalog.<>) (NEW.is_public IS TRUE)
        OR (OLD.owner_id IS NULL) OPERATOR(pg_catalog.<>) (NEW.owner_id IS NULL)
        OR OLD.owner_id OPERATOR(pg_catalog.<>) NEW.owner_id
    THEN
        PERFORM townsquare.capture_visibility(NEW.id,
            pg_catalog.json_build_object('owner_id', OLD.owner_id, 'is_public', OLD.is_public),
            pg_catalog.json_build_object('owner_id', NEW.owner_id, 'is_public', NEW.is_public));
    END IF;
    IF pg_catalog.octet_length(OLD.description) OPERATOR(pg_catalog.>) 1000
        AND OLD.description OPERATOR(pg_catalog.=) NEW.description
    THEN
        OLD.description := NULL;
        image := townsquare.old_image(pg_catalog.row_to_json(OLD), '{description}');
    ELSE
        image := pg_catalog.row_to_json(OLD);
    END IF;
    INSERT INTO townsquare.changes (table_name, kind, old_row, new_row)
        VALUES ('spaces', 'update', image, pg_catalog.row_to_json(NEW));
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION townsquare.capture_space_update() FROM PUBLIC;

DROP TRIGGER townsquare_capture ON public.community_configs;
CREATE TRIGGER townsquare_capture AFTER INSERT OR DELETE ON public.community_configs
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_row();
CREATE TRIGGER townsquare_capture_update AFTER UPDATE ON public.community_configs
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_config_update();
DROP TRIGGER townsquare_capture ON public.fidgets;
CREATE TRIGGER townsquare_capture AFTER INSERT ON public.fidgets
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_fidget();
CREATE TRIGGER townsquare_capture_update AFTER UPDATE ON public.fidgets
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_fidget_update();
DROP TRIGGER townsquare_capture_update ON public.spaces;
CREATE TRIGGER townsquare_capture_update AFTER UPDATE ON public.spaces
    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_space_update();
DO $$
BEGIN
    IF NOT (SELECT is_on FROM townsquare.feed) THEN
        ALTER TABLE public.community_configs DISABLE TRIGGER townsquare_capture;
        ALTER TABLE public.community_configs DISABLE TRIGGER townsquare_capture_update;
        ALTER TABLE public.fidgets DISABLE TRIGGER townsquare_capture;
        ALTER TABLE public.fidgets DISABLE TRIGGER townsquare_capture_update;
        ALTER TABLE public.spaces DISABLE TRIGGER townsquare_capture_update;
    END IF;
END
$$;
