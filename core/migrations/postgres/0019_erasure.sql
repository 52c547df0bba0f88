-- The deletion of a user reduces what the change log holds of the user.

-- What stays of the image of a row that went with its owner: its key, and what decides who is told of its end. The member
-- (erased) says so to the readers.
CREATE FUNCTION townsquare.erased_image(p_table TEXT, p_image JSON) RETURNS JSON
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN p_image IS NOT NULL THEN CASE p_table
        WHEN 'users' THEN json_build_object('id', p_image -> 'id', '(erased)', true)
        WHEN 'spaces' THEN json_build_object('id', p_image -> 'id', 'owner_id', p_image -> 'owner_id',
            'is_public', p_image -> 'is_public', '(erased)', true)
        WHEN 'fidgets' THEN json_build_object('id', p_image -> 'id', 'space_id', p_image -> 'space_id',
            '(erased)', true)
        ELSE json_build_object('bucket', p_image -> 'bucket', 'path', p_image -> 'path', '(erased)', true)
    END END
$$;
REVOKE ALL ON FUNCTION townsquare.erased_image(TEXT, JSON) FROM PUBLIC;

-- Reduces the entries of a deleted user: those of the user's row, and of the rows that the user owned and that are gone.
CREATE FUNCTION townsquare.erase_user(p_user UUID) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    erased TEXT := p_user::text;
    -- The entry of the user's own row: nothing of the user is before it. If the log does not have it, all of the log is read.
    began BIGINT := COALESCE((SELECT id FROM townsquare.changes
        WHERE table_name = 'users' AND kind = 'insert' AND new_row ->> 'id' = p_user::text ORDER BY id DESC LIMIT 1), 0);
BEGIN
    UPDATE townsquare.changes AS entry SET
        old_row = townsquare.erased_image(entry.table_name, entry.old_row),
        new_row = townsquare.erased_image(entry.table_name, entry.new_row)
    WHERE entry.id >= began AND entry.kind IN ('insert', 'update', 'delete', 'visibility') AND CASE entry.table_name
        WHEN 'users' THEN erased IN (entry.old_row ->> 'id', entry.new_row ->> 'id')
        WHEN 'spaces' THEN erased IN (entry.old_row ->> 'owner_id', entry.new_row ->> 'owner_id')
            AND NOT EXISTS (SELECT FROM public.spaces
                WHERE spaces.id = COALESCE(entry.new_row ->> 'id', entry.old_row ->> 'id')::uuid)
        WHEN 'fidgets' THEN erased IN (entry.old_context ->> 'owner_id', entry.new_context ->> 'owner_id')
            AND NOT EXISTS (SELECT FROM public.fidgets
                WHERE fidgets.id = COALESCE(entry.new_row ->> 'id', entry.old_row ->> 'id')::uuid)
        WHEN 'files' THEN erased IN (entry.old_row ->> 'owner_id', entry.new_row ->> 'owner_id',
                entry.old_context ->> 'first_segment', entry.new_context ->> 'first_segment',
                entry.old_context ->> 'holder', entry.new_context ->> 'holder')
            AND NOT EXISTS (SELECT FROM townsquare.files
                WHERE files.bucket = COALESCE(entry.new_row ->> 'bucket', entry.old_row ->> 'bucket')
                AND files.path = COALESCE(entry.new_row ->> 'path', entry.old_row ->> 'path'))
        ELSE false
    END;
END
$$;
REVOKE ALL ON FUNCTION townsquare.erase_user(UUID) FROM PUBLIC;
