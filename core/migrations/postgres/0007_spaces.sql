-- The order of the fidgets of a space: a page of them is read without the others.
CREATE INDEX IF NOT EXISTS townsquare_fidgets_in_order ON public.fidgets (space_id, (created_at IS NULL), created_at, id);

-- The files of a space belong to its owner, and count for that owner's quota. Files of the service have no owner. ('0' is the
-- character after '/'.) The function waits for the transactions that write files of the space, and keeps others out.
CREATE OR REPLACE FUNCTION townsquare.pass_space_files() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller TEXT := COALESCE(current_setting('townsquare.caller', true), '');
    space TEXT;
BEGIN
    IF TG_RELID <> 'public.spaces'::regclass THEN
        RAISE EXCEPTION 'The trigger function is not for this table' USING ERRCODE = '42501';
    END IF;
    space := format('%s', NEW.id);
    PERFORM set_config('townsquare.caller', '', true);
    PERFORM pg_advisory_xact_lock(townsquare.space_lock(NEW.id));
    UPDATE townsquare.file_intents SET owner_id = NEW.owner_id
        WHERE bucket = 'spaces' AND first_segment = space AND owner_id = OLD.owner_id;
    UPDATE townsquare.files SET owner_id = NEW.owner_id
        WHERE bucket = 'spaces' AND path = space AND owner_id = OLD.owner_id;
    UPDATE townsquare.files SET owner_id = NEW.owner_id
        WHERE bucket = 'spaces' AND path >= space || '/' AND path < space || '0' AND owner_id = OLD.owner_id;
    PERFORM set_config('townsquare.caller', caller, true);
    RETURN NULL;
END
$$;
DROP TRIGGER IF EXISTS townsquare_space_owner ON public.spaces;
CREATE TRIGGER townsquare_space_owner AFTER UPDATE OF owner_id ON public.spaces
    FOR EACH ROW WHEN (OLD.owner_id IS DISTINCT FROM NEW.owner_id) EXECUTE FUNCTION townsquare.pass_space_files();
