-- An id of a space is claimed once (DESIGN 4): a caller cannot create a space with the id of one that was deleted. Libraries
-- before this version do not know the table and need not: the triggers fill it.

-- The ids that spaces had. Never pruned.
CREATE TABLE townsquare_former_spaces (
    id TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER townsquare_former_space_deleted AFTER DELETE ON spaces WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_former_spaces (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER townsquare_former_space_renamed AFTER UPDATE OF id ON spaces
WHEN OLD.id IS NOT NULL AND OLD.id IS NOT NEW.id
BEGIN
    INSERT INTO townsquare_former_spaces (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
END;

-- The feed of a space's files is for who may see the space (DESIGN 4), so the context of a file has owner and visibility of the
-- space as of the statement. Entries from before this version have none: such files are shown to the service alone.

-- Before the space, so that the context of its files is complete. ('0' is the character after '/'.)
DROP TRIGGER townsquare_space_files;
CREATE TRIGGER townsquare_space_files BEFORE DELETE ON spaces WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents WHERE bucket = 'spaces' AND first_segment = OLD.id
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents WHERE bucket = 'spaces' AND first_segment = OLD.id;
    DELETE FROM townsquare_files WHERE bucket = 'spaces' AND path = OLD.id;
    DELETE FROM townsquare_files WHERE bucket = 'spaces' AND path >= OLD.id || '/' AND path < OLD.id || '0';
END;

DROP TRIGGER townsquare_change_files_insert;
CREATE TRIGGER townsquare_change_files_insert AFTER INSERT ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, new_context) VALUES (
        'files', 'insert', json_object(
            'bucket', CAST(NEW.bucket AS TEXT), 'path', CAST(NEW.path AS TEXT), 'size', NEW.size,
            'content_type', CAST(NEW.content_type AS TEXT), 'cache_control', NEW.cache_control,
            'etag', CAST(NEW.etag AS TEXT), 'metadata', json(CAST(NEW.metadata AS TEXT)),
            'owner_id', CAST(NEW.owner_id AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT)),
        json_object('access', NEW.access, 'first_segment', NEW.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = NEW.first_segment),
            'space_id', CAST(NEW.space_id AS TEXT),
            'owner_id', (SELECT CAST(space.owner_id AS TEXT) FROM spaces AS space WHERE space.id = NEW.space_id),
            'is_public', (SELECT space.is_public FROM spaces AS space WHERE space.id = NEW.space_id))
    );
END;

DROP TRIGGER townsquare_change_files_update;
CREATE TRIGGER townsquare_change_files_update AFTER UPDATE ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed) AND (OLD.bucket = NEW.bucket AND OLD.path = NEW.path AND (
    OLD.etag IS NOT NEW.etag OR OLD.size IS NOT NEW.size OR OLD.content_type IS NOT NEW.content_type OR OLD.cache_control IS NOT NEW.cache_control OR OLD.metadata IS NOT NEW.metadata OR OLD.owner_id IS NOT NEW.owner_id OR OLD.updated_at IS NOT NEW.updated_at))
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new, old_context, new_context) VALUES (
        'files', 'update', json_object(
            'bucket', CAST(OLD.bucket AS TEXT), 'path', CAST(OLD.path AS TEXT), 'size', OLD.size,
            'content_type', CAST(OLD.content_type AS TEXT), 'cache_control', OLD.cache_control,
            'etag', CAST(OLD.etag AS TEXT), 'metadata', json(CAST(OLD.metadata AS TEXT)),
            'owner_id', CAST(OLD.owner_id AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'bucket', CAST(NEW.bucket AS TEXT), 'path', CAST(NEW.path AS TEXT), 'size', NEW.size,
            'content_type', CAST(NEW.content_type AS TEXT), 'cache_control', NEW.cache_control,
            'etag', CAST(NEW.etag AS TEXT), 'metadata', json(CAST(NEW.metadata AS TEXT)),
            'owner_id', CAST(NEW.owner_id AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT)),
        json_object('access', OLD.access, 'first_segment', OLD.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = OLD.first_segment),
            'space_id', CAST(OLD.space_id AS TEXT),
            'owner_id', (SELECT CAST(space.owner_id AS TEXT) FROM spaces AS space WHERE space.id = OLD.space_id),
            'is_public', (SELECT space.is_public FROM spaces AS space WHERE space.id = OLD.space_id)),
        json_object('access', NEW.access, 'first_segment', NEW.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = NEW.first_segment),
            'space_id', CAST(NEW.space_id AS TEXT),
            'owner_id', (SELECT CAST(space.owner_id AS TEXT) FROM spaces AS space WHERE space.id = NEW.space_id),
            'is_public', (SELECT space.is_public FROM spaces AS space WHERE space.id = NEW.space_id))
    );
END;

DROP TRIGGER townsquare_change_files_move;
CREATE TRIGGER townsquare_change_files_move AFTER UPDATE OF bucket, path ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed) AND (OLD.bucket <> NEW.bucket OR OLD.path <> NEW.path)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context) VALUES (
        'files', 'delete', json_object(
            'bucket', CAST(OLD.bucket AS TEXT), 'path', CAST(OLD.path AS TEXT), 'size', OLD.size,
            'content_type', CAST(OLD.content_type AS TEXT), 'cache_control', OLD.cache_control,
            'etag', CAST(OLD.etag AS TEXT), 'metadata', json(CAST(OLD.metadata AS TEXT)),
            'owner_id', CAST(OLD.owner_id AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object('access', OLD.access, 'first_segment', OLD.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = OLD.first_segment),
            'space_id', CAST(OLD.space_id AS TEXT),
            'owner_id', (SELECT CAST(space.owner_id AS TEXT) FROM spaces AS space WHERE space.id = OLD.space_id),
            'is_public', (SELECT space.is_public FROM spaces AS space WHERE space.id = OLD.space_id))
    );
    INSERT INTO townsquare_changes (table_name, kind, new, new_context) VALUES (
        'files', 'insert', json_object(
            'bucket', CAST(NEW.bucket AS TEXT), 'path', CAST(NEW.path AS TEXT), 'size', NEW.size,
            'content_type', CAST(NEW.content_type AS TEXT), 'cache_control', NEW.cache_control,
            'etag', CAST(NEW.etag AS TEXT), 'metadata', json(CAST(NEW.metadata AS TEXT)),
            'owner_id', CAST(NEW.owner_id AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT)),
        json_object('access', NEW.access, 'first_segment', NEW.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = NEW.first_segment),
            'space_id', CAST(NEW.space_id AS TEXT),
            'owner_id', (SELECT CAST(space.owner_id AS TEXT) FROM spaces AS space WHERE space.id = NEW.space_id),
            'is_public', (SELECT space.is_public FROM spaces AS space WHERE space.id = NEW.space_id))
    );
END;

DROP TRIGGER townsquare_change_files_delete;
CREATE TRIGGER townsquare_change_files_delete AFTER DELETE ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context) VALUES (
        'files', 'delete', json_object(
            'bucket', CAST(OLD.bucket AS TEXT), 'path', CAST(OLD.path AS TEXT), 'size', OLD.size,
            'content_type', CAST(OLD.content_type AS TEXT), 'cache_control', OLD.cache_control,
            'etag', CAST(OLD.etag AS TEXT), 'metadata', json(CAST(OLD.metadata AS TEXT)),
            'owner_id', CAST(OLD.owner_id AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object('access', OLD.access, 'first_segment', OLD.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = OLD.first_segment),
            'space_id', CAST(OLD.space_id AS TEXT),
            'owner_id', (SELECT CAST(space.owner_id AS TEXT) FROM spaces AS space WHERE space.id = OLD.space_id),
            'is_public', (SELECT space.is_public FROM spaces AS space WHERE space.id = OLD.space_id))
    );
END;

-- Who may see the files of a space changes with the space: one visibility entry for each file.

CREATE TRIGGER townsquare_change_space_files_insert AFTER INSERT ON spaces WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'files', 'visibility', json_object(
            'bucket', CAST(file.bucket AS TEXT), 'path', CAST(file.path AS TEXT), 'size', file.size,
            'content_type', CAST(file.content_type AS TEXT), 'cache_control', file.cache_control,
            'etag', CAST(file.etag AS TEXT), 'metadata', json(CAST(file.metadata AS TEXT)),
            'owner_id', CAST(file.owner_id AS TEXT), 'updated_at', CAST(file.updated_at AS TEXT)),
        json_object('access', file.access, 'first_segment', file.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = file.first_segment),
            'space_id', CAST(file.space_id AS TEXT),
            'owner_id', NULL,
            'is_public', NULL),
        json_object('access', file.access, 'first_segment', file.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = file.first_segment),
            'space_id', CAST(file.space_id AS TEXT),
            'owner_id', CAST(NEW.owner_id AS TEXT),
            'is_public', NEW.is_public)
    FROM townsquare_files AS file
    WHERE file.bucket = 'spaces' AND file.path >= NEW.id AND file.path < NEW.id || '0' AND file.space_id = NEW.id
    ORDER BY file.path;
END;

CREATE TRIGGER townsquare_change_space_files_update AFTER UPDATE OF id, owner_id, is_public ON spaces WHEN (SELECT is_on FROM townsquare_feed)
    AND (OLD.owner_id IS NOT NEW.owner_id OR OLD.is_public IS NOT NEW.is_public OR OLD.id IS NOT NEW.id)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'files', 'visibility', json_object(
            'bucket', CAST(file.bucket AS TEXT), 'path', CAST(file.path AS TEXT), 'size', file.size,
            'content_type', CAST(file.content_type AS TEXT), 'cache_control', file.cache_control,
            'etag', CAST(file.etag AS TEXT), 'metadata', json(CAST(file.metadata AS TEXT)),
            'owner_id', CAST(file.owner_id AS TEXT), 'updated_at', CAST(file.updated_at AS TEXT)),
        json_object('access', file.access, 'first_segment', file.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = file.first_segment),
            'space_id', CAST(file.space_id AS TEXT),
            'owner_id', CASE WHEN file.space_id = OLD.id THEN CAST(OLD.owner_id AS TEXT) END,
            'is_public', CASE WHEN file.space_id = OLD.id THEN OLD.is_public END),
        json_object('access', file.access, 'first_segment', file.first_segment,
            'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = file.first_segment),
            'space_id', CAST(file.space_id AS TEXT),
            'owner_id', CASE WHEN file.space_id = NEW.id THEN CAST(NEW.owner_id AS TEXT) END,
            'is_public', CASE WHEN file.space_id = NEW.id THEN NEW.is_public END)
    FROM (SELECT OLD.id AS id UNION SELECT NEW.id) AS space
    CROSS JOIN townsquare_files AS file
    WHERE file.bucket = 'spaces' AND file.path >= space.id AND file.path < space.id || '0' AND file.space_id = space.id
    ORDER BY file.path;
END;
