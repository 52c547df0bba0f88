-- The change log (SPEC 6, DESIGN 5): triggers write every change of a row in the transaction of the change.
--
-- Nothing is written before a client first asks for the feed, which sets `is_on`. An image maps the columns to JSON values:
-- JSON columns as JSON, booleans as 0 and 1. A context is what the select policy needs besides the row, as of the statement.
-- CAST makes a text of a BLOB, which JSON cannot hold. Everything here works in SQLite 3.40 and older.

-- One row.
CREATE TABLE townsquare_feed (
    only_row  INTEGER PRIMARY KEY CHECK (only_row = 1),
    is_on     INTEGER NOT NULL DEFAULT 0 CHECK (is_on IN (0, 1)),
    -- The id of the last entry that was pruned. A reader that is not past it has missed entries.
    pruned_id INTEGER NOT NULL DEFAULT 0
);
INSERT INTO townsquare_feed (only_row) VALUES (1);

-- AUTOINCREMENT: an id is never used again, also when every entry has been pruned.
CREATE TABLE townsquare_changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name  TEXT NOT NULL,
    -- insert, update, delete, visibility, session_started, session_ended
    kind        TEXT NOT NULL,
    old         TEXT,
    -- For kind visibility both the old and the new image, which are equal.
    new         TEXT,
    old_context TEXT,
    new_context TEXT,
    at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
);

-- The spaces that are being deleted. A cascade deletes a fidget after its space; the fidget's trigger finds the space here.
CREATE TABLE townsquare_deleted_spaces (
    id        TEXT PRIMARY KEY NOT NULL,
    owner_id  TEXT,
    is_public INTEGER
) WITHOUT ROWID;

-- The sessions of the users that are being deleted. They end after everything else that is deleted with the user, so that
-- the user's subscriptions get it.
CREATE TABLE townsquare_ending_sessions (
    id      TEXT PRIMARY KEY NOT NULL,
    user_id TEXT NOT NULL
) WITHOUT ROWID;

-- community_configs

CREATE TRIGGER townsquare_change_community_configs_insert AFTER INSERT ON community_configs WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'community_configs', 'insert', json_object(
            'id', CAST(NEW.id AS TEXT), 'community_id', CAST(NEW.community_id AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT), 'brand_config', json(CAST(NEW.brand_config AS TEXT)),
            'assets_config', json(CAST(NEW.assets_config AS TEXT)),
            'community_config', json(CAST(NEW.community_config AS TEXT)),
            'fidgets_config', json(CAST(NEW.fidgets_config AS TEXT)),
            'navigation_config', json(CAST(NEW.navigation_config AS TEXT)),
            'ui_config', json(CAST(NEW.ui_config AS TEXT)),
            'admin_identity_public_keys', json(CAST(NEW.admin_identity_public_keys AS TEXT)),
            'is_published', NEW.is_published, 'custom_domain_authorized', NEW.custom_domain_authorized,
            'admin_email', CAST(NEW.admin_email AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_community_configs_update AFTER UPDATE ON community_configs WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'community_configs', 'update', json_object(
            'id', CAST(OLD.id AS TEXT), 'community_id', CAST(OLD.community_id AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT), 'brand_config', json(CAST(OLD.brand_config AS TEXT)),
            'assets_config', json(CAST(OLD.assets_config AS TEXT)),
            'community_config', json(CAST(OLD.community_config AS TEXT)),
            'fidgets_config', json(CAST(OLD.fidgets_config AS TEXT)),
            'navigation_config', json(CAST(OLD.navigation_config AS TEXT)),
            'ui_config', json(CAST(OLD.ui_config AS TEXT)),
            'admin_identity_public_keys', json(CAST(OLD.admin_identity_public_keys AS TEXT)),
            'is_published', OLD.is_published, 'custom_domain_authorized', OLD.custom_domain_authorized,
            'admin_email', CAST(OLD.admin_email AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'community_id', CAST(NEW.community_id AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT), 'brand_config', json(CAST(NEW.brand_config AS TEXT)),
            'assets_config', json(CAST(NEW.assets_config AS TEXT)),
            'community_config', json(CAST(NEW.community_config AS TEXT)),
            'fidgets_config', json(CAST(NEW.fidgets_config AS TEXT)),
            'navigation_config', json(CAST(NEW.navigation_config AS TEXT)),
            'ui_config', json(CAST(NEW.ui_config AS TEXT)),
            'admin_identity_public_keys', json(CAST(NEW.admin_identity_public_keys AS TEXT)),
            'is_published', NEW.is_published, 'custom_domain_authorized', NEW.custom_domain_authorized,
            'admin_email', CAST(NEW.admin_email AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_community_configs_delete AFTER DELETE ON community_configs WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES (
        'community_configs', 'delete', json_object(
            'id', CAST(OLD.id AS TEXT), 'community_id', CAST(OLD.community_id AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT), 'brand_config', json(CAST(OLD.brand_config AS TEXT)),
            'assets_config', json(CAST(OLD.assets_config AS TEXT)),
            'community_config', json(CAST(OLD.community_config AS TEXT)),
            'fidgets_config', json(CAST(OLD.fidgets_config AS TEXT)),
            'navigation_config', json(CAST(OLD.navigation_config AS TEXT)),
            'ui_config', json(CAST(OLD.ui_config AS TEXT)),
            'admin_identity_public_keys', json(CAST(OLD.admin_identity_public_keys AS TEXT)),
            'is_published', OLD.is_published, 'custom_domain_authorized', OLD.custom_domain_authorized,
            'admin_email', CAST(OLD.admin_email AS TEXT))
    );
END;

-- community_domains

CREATE TRIGGER townsquare_change_community_domains_insert AFTER INSERT ON community_domains WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'community_domains', 'insert', json_object(
            'id', CAST(NEW.id AS TEXT), 'community_id', CAST(NEW.community_id AS TEXT),
            'domain', CAST(NEW.domain AS TEXT), 'domain_type', CAST(NEW.domain_type AS TEXT),
            'created_at', CAST(NEW.created_at AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_community_domains_update AFTER UPDATE ON community_domains WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'community_domains', 'update', json_object(
            'id', CAST(OLD.id AS TEXT), 'community_id', CAST(OLD.community_id AS TEXT),
            'domain', CAST(OLD.domain AS TEXT), 'domain_type', CAST(OLD.domain_type AS TEXT),
            'created_at', CAST(OLD.created_at AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'community_id', CAST(NEW.community_id AS TEXT),
            'domain', CAST(NEW.domain AS TEXT), 'domain_type', CAST(NEW.domain_type AS TEXT),
            'created_at', CAST(NEW.created_at AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_community_domains_delete AFTER DELETE ON community_domains WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES (
        'community_domains', 'delete', json_object(
            'id', CAST(OLD.id AS TEXT), 'community_id', CAST(OLD.community_id AS TEXT),
            'domain', CAST(OLD.domain AS TEXT), 'domain_type', CAST(OLD.domain_type AS TEXT),
            'created_at', CAST(OLD.created_at AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT))
    );
END;

-- spaceRegistrations

CREATE TRIGGER townsquare_change_registrations_insert AFTER INSERT ON "spaceRegistrations" WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'spaceRegistrations', 'insert', json_object(
            'spaceId', CAST(NEW."spaceId" AS TEXT), 'fid', NEW.fid,
            'spaceName', CAST(NEW."spaceName" AS TEXT), 'spaceType', CAST(NEW."spaceType" AS TEXT),
            'identityPublicKey', CAST(NEW."identityPublicKey" AS TEXT),
            'signature', CAST(NEW.signature AS TEXT), 'timestamp', CAST(NEW."timestamp" AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_registrations_update AFTER UPDATE ON "spaceRegistrations" WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'spaceRegistrations', 'update', json_object(
            'spaceId', CAST(OLD."spaceId" AS TEXT), 'fid', OLD.fid,
            'spaceName', CAST(OLD."spaceName" AS TEXT), 'spaceType', CAST(OLD."spaceType" AS TEXT),
            'identityPublicKey', CAST(OLD."identityPublicKey" AS TEXT),
            'signature', CAST(OLD.signature AS TEXT), 'timestamp', CAST(OLD."timestamp" AS TEXT)),
        json_object(
            'spaceId', CAST(NEW."spaceId" AS TEXT), 'fid', NEW.fid,
            'spaceName', CAST(NEW."spaceName" AS TEXT), 'spaceType', CAST(NEW."spaceType" AS TEXT),
            'identityPublicKey', CAST(NEW."identityPublicKey" AS TEXT),
            'signature', CAST(NEW.signature AS TEXT), 'timestamp', CAST(NEW."timestamp" AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_registrations_delete AFTER DELETE ON "spaceRegistrations" WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES (
        'spaceRegistrations', 'delete', json_object(
            'spaceId', CAST(OLD."spaceId" AS TEXT), 'fid', OLD.fid,
            'spaceName', CAST(OLD."spaceName" AS TEXT), 'spaceType', CAST(OLD."spaceType" AS TEXT),
            'identityPublicKey', CAST(OLD."identityPublicKey" AS TEXT),
            'signature', CAST(OLD.signature AS TEXT), 'timestamp', CAST(OLD."timestamp" AS TEXT))
    );
END;

-- users

CREATE TRIGGER townsquare_change_users_insert AFTER INSERT ON users WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'users', 'insert', json_object(
            'id', CAST(NEW.id AS TEXT), 'email', CAST(NEW.email AS TEXT),
            'created_at', CAST(NEW.created_at AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_users_update AFTER UPDATE ON users WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'users', 'update', json_object(
            'id', CAST(OLD.id AS TEXT), 'email', CAST(OLD.email AS TEXT),
            'created_at', CAST(OLD.created_at AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'email', CAST(NEW.email AS TEXT),
            'created_at', CAST(NEW.created_at AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT))
    );
END;

CREATE TRIGGER townsquare_change_users_before_delete BEFORE DELETE ON users WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT OR REPLACE INTO townsquare_ending_sessions (id, user_id)
    SELECT id, user_id FROM townsquare_sessions WHERE user_id = OLD.id;
END;

-- Runs after the cascades.
CREATE TRIGGER townsquare_change_users_delete AFTER DELETE ON users WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES (
        'users', 'delete', json_object(
            'id', CAST(OLD.id AS TEXT), 'email', CAST(OLD.email AS TEXT),
            'created_at', CAST(OLD.created_at AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT))
    );
    -- With foreign keys off, as in the sqlite3 shell, the sessions outlive the user.
    INSERT INTO townsquare_changes (table_name, kind, old)
    SELECT 'users', 'session_ended', json_object('session_id', ending.id, 'user_id', ending.user_id)
    FROM townsquare_ending_sessions AS ending
    WHERE ending.user_id = OLD.id AND ending.id NOT IN (SELECT id FROM townsquare_sessions WHERE user_id = OLD.id);
    DELETE FROM townsquare_ending_sessions WHERE user_id = OLD.id;
END;

-- spaces. Who may see a fidget changes with its space: one visibility entry for each fidget. With foreign keys off, as in the
-- sqlite3 shell, a space can come to fidgets that exist, and fidgets can outlive their space.

CREATE TRIGGER townsquare_change_spaces_insert AFTER INSERT ON spaces WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'spaces', 'insert', json_object(
            'id', CAST(NEW.id AS TEXT), 'name', CAST(NEW.name AS TEXT),
            'description', CAST(NEW.description AS TEXT), 'owner_id', CAST(NEW.owner_id AS TEXT),
            'is_public', NEW.is_public, 'created_at', CAST(NEW.created_at AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT))
    );
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'fidgets', 'visibility', json_object(
            'id', CAST(fidget.id AS TEXT), 'space_id', CAST(fidget.space_id AS TEXT),
            'type', CAST(fidget.type AS TEXT), 'config', json(CAST(fidget.config AS TEXT)),
            'position', json(CAST(fidget.position AS TEXT)), 'created_at', CAST(fidget.created_at AS TEXT),
            'updated_at', CAST(fidget.updated_at AS TEXT)),
        NULL,
        json_object('owner_id', CAST(NEW.owner_id AS TEXT), 'is_public', NEW.is_public)
    FROM fidgets AS fidget WHERE fidget.space_id = NEW.id ORDER BY fidget.created_at, fidget.id;
END;

CREATE TRIGGER townsquare_change_spaces_update AFTER UPDATE ON spaces WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'spaces', 'update', json_object(
            'id', CAST(OLD.id AS TEXT), 'name', CAST(OLD.name AS TEXT),
            'description', CAST(OLD.description AS TEXT), 'owner_id', CAST(OLD.owner_id AS TEXT),
            'is_public', OLD.is_public, 'created_at', CAST(OLD.created_at AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'name', CAST(NEW.name AS TEXT),
            'description', CAST(NEW.description AS TEXT), 'owner_id', CAST(NEW.owner_id AS TEXT),
            'is_public', NEW.is_public, 'created_at', CAST(NEW.created_at AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT))
    );
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'fidgets', 'visibility', json_object(
            'id', CAST(fidget.id AS TEXT), 'space_id', CAST(fidget.space_id AS TEXT),
            'type', CAST(fidget.type AS TEXT), 'config', json(CAST(fidget.config AS TEXT)),
            'position', json(CAST(fidget.position AS TEXT)), 'created_at', CAST(fidget.created_at AS TEXT),
            'updated_at', CAST(fidget.updated_at AS TEXT)),
        CASE WHEN fidget.space_id = OLD.id THEN json_object('owner_id', CAST(OLD.owner_id AS TEXT), 'is_public', OLD.is_public) END,
        CASE WHEN fidget.space_id = NEW.id THEN json_object('owner_id', CAST(NEW.owner_id AS TEXT), 'is_public', NEW.is_public) END
    FROM fidgets AS fidget WHERE (OLD.owner_id IS NOT NEW.owner_id OR OLD.is_public IS NOT NEW.is_public OR OLD.id IS NOT NEW.id)
        AND fidget.space_id IN (OLD.id, NEW.id) ORDER BY fidget.created_at, fidget.id;
END;

CREATE TRIGGER townsquare_change_spaces_before_delete BEFORE DELETE ON spaces WHEN (SELECT is_on FROM townsquare_feed) AND (OLD.id IS NOT NULL)
BEGIN
    INSERT OR REPLACE INTO townsquare_deleted_spaces (id, owner_id, is_public) VALUES (OLD.id, OLD.owner_id, OLD.is_public);
END;

CREATE TRIGGER townsquare_change_spaces_delete AFTER DELETE ON spaces WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES (
        'spaces', 'delete', json_object(
            'id', CAST(OLD.id AS TEXT), 'name', CAST(OLD.name AS TEXT),
            'description', CAST(OLD.description AS TEXT), 'owner_id', CAST(OLD.owner_id AS TEXT),
            'is_public', OLD.is_public, 'created_at', CAST(OLD.created_at AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT))
    );
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'fidgets', 'visibility', json_object(
            'id', CAST(fidget.id AS TEXT), 'space_id', CAST(fidget.space_id AS TEXT),
            'type', CAST(fidget.type AS TEXT), 'config', json(CAST(fidget.config AS TEXT)),
            'position', json(CAST(fidget.position AS TEXT)), 'created_at', CAST(fidget.created_at AS TEXT),
            'updated_at', CAST(fidget.updated_at AS TEXT)),
        json_object('owner_id', CAST(OLD.owner_id AS TEXT), 'is_public', OLD.is_public),
        NULL
    FROM fidgets AS fidget WHERE fidget.space_id = OLD.id ORDER BY fidget.created_at, fidget.id;
    DELETE FROM townsquare_deleted_spaces WHERE id = OLD.id;
END;

-- fidgets

CREATE TRIGGER townsquare_change_fidgets_insert AFTER INSERT ON fidgets WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, new_context) VALUES (
        'fidgets', 'insert', json_object(
            'id', CAST(NEW.id AS TEXT), 'space_id', CAST(NEW.space_id AS TEXT),
            'type', CAST(NEW.type AS TEXT), 'config', json(CAST(NEW.config AS TEXT)),
            'position', json(CAST(NEW.position AS TEXT)), 'created_at', CAST(NEW.created_at AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT)),
        (SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space WHERE space.id = NEW.space_id)
    );
END;

CREATE TRIGGER townsquare_change_fidgets_update AFTER UPDATE ON fidgets WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new, old_context, new_context) VALUES (
        'fidgets', 'update', json_object(
            'id', CAST(OLD.id AS TEXT), 'space_id', CAST(OLD.space_id AS TEXT),
            'type', CAST(OLD.type AS TEXT), 'config', json(CAST(OLD.config AS TEXT)),
            'position', json(CAST(OLD.position AS TEXT)), 'created_at', CAST(OLD.created_at AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'space_id', CAST(NEW.space_id AS TEXT),
            'type', CAST(NEW.type AS TEXT), 'config', json(CAST(NEW.config AS TEXT)),
            'position', json(CAST(NEW.position AS TEXT)), 'created_at', CAST(NEW.created_at AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT)),
        (SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space WHERE space.id = OLD.space_id),
        (SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space WHERE space.id = NEW.space_id)
    );
END;

CREATE TRIGGER townsquare_change_fidgets_delete AFTER DELETE ON fidgets WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context) VALUES (
        'fidgets', 'delete', json_object(
            'id', CAST(OLD.id AS TEXT), 'space_id', CAST(OLD.space_id AS TEXT),
            'type', CAST(OLD.type AS TEXT), 'config', json(CAST(OLD.config AS TEXT)),
            'position', json(CAST(OLD.position AS TEXT)), 'created_at', CAST(OLD.created_at AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT)),
        coalesce((SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space WHERE space.id = OLD.space_id),
            (SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM townsquare_deleted_spaces AS space WHERE space.id = OLD.space_id))
    );
END;

-- Files. A change of the key, a move, is a deletion and an insertion. Bookkeeping that no column of the feed shows is no change.

CREATE TRIGGER townsquare_change_files_insert AFTER INSERT ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, new_context) VALUES (
        'files', 'insert', json_object(
            'bucket', CAST(NEW.bucket AS TEXT), 'path', CAST(NEW.path AS TEXT), 'size', NEW.size,
            'content_type', CAST(NEW.content_type AS TEXT), 'cache_control', NEW.cache_control,
            'etag', CAST(NEW.etag AS TEXT), 'metadata', json(CAST(NEW.metadata AS TEXT)),
            'owner_id', CAST(NEW.owner_id AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT)),
        json_object('access', NEW.access, 'first_segment', NEW.first_segment, 'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = NEW.first_segment))
    );
END;

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
        json_object('access', OLD.access, 'first_segment', OLD.first_segment, 'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = OLD.first_segment)),
        json_object('access', NEW.access, 'first_segment', NEW.first_segment, 'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = NEW.first_segment))
    );
END;

CREATE TRIGGER townsquare_change_files_move AFTER UPDATE OF bucket, path ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed) AND (OLD.bucket <> NEW.bucket OR OLD.path <> NEW.path)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context) VALUES (
        'files', 'delete', json_object(
            'bucket', CAST(OLD.bucket AS TEXT), 'path', CAST(OLD.path AS TEXT), 'size', OLD.size,
            'content_type', CAST(OLD.content_type AS TEXT), 'cache_control', OLD.cache_control,
            'etag', CAST(OLD.etag AS TEXT), 'metadata', json(CAST(OLD.metadata AS TEXT)),
            'owner_id', CAST(OLD.owner_id AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object('access', OLD.access, 'first_segment', OLD.first_segment, 'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = OLD.first_segment))
    );
    INSERT INTO townsquare_changes (table_name, kind, new, new_context) VALUES (
        'files', 'insert', json_object(
            'bucket', CAST(NEW.bucket AS TEXT), 'path', CAST(NEW.path AS TEXT), 'size', NEW.size,
            'content_type', CAST(NEW.content_type AS TEXT), 'cache_control', NEW.cache_control,
            'etag', CAST(NEW.etag AS TEXT), 'metadata', json(CAST(NEW.metadata AS TEXT)),
            'owner_id', CAST(NEW.owner_id AS TEXT), 'updated_at', CAST(NEW.updated_at AS TEXT)),
        json_object('access', NEW.access, 'first_segment', NEW.first_segment, 'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = NEW.first_segment))
    );
END;

CREATE TRIGGER townsquare_change_files_delete AFTER DELETE ON townsquare_files WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context) VALUES (
        'files', 'delete', json_object(
            'bucket', CAST(OLD.bucket AS TEXT), 'path', CAST(OLD.path AS TEXT), 'size', OLD.size,
            'content_type', CAST(OLD.content_type AS TEXT), 'cache_control', OLD.cache_control,
            'etag', CAST(OLD.etag AS TEXT), 'metadata', json(CAST(OLD.metadata AS TEXT)),
            'owner_id', CAST(OLD.owner_id AS TEXT), 'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object('access', OLD.access, 'first_segment', OLD.first_segment, 'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = OLD.first_segment))
    );
END;

-- Who links an identity key gains the private files under it; who unlinks it loses them. '0' is the character after '/'.

CREATE TRIGGER townsquare_change_identities_insert AFTER INSERT ON townsquare_identities WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'files', 'visibility', json_object(
            'bucket', CAST(file.bucket AS TEXT), 'path', CAST(file.path AS TEXT), 'size', file.size,
            'content_type', CAST(file.content_type AS TEXT), 'cache_control', file.cache_control,
            'etag', CAST(file.etag AS TEXT), 'metadata', json(CAST(file.metadata AS TEXT)),
            'owner_id', CAST(file.owner_id AS TEXT), 'updated_at', CAST(file.updated_at AS TEXT)),
        json_object('access', file.access, 'first_segment', file.first_segment, 'holder', NULL),
        json_object('access', file.access, 'first_segment', file.first_segment, 'holder', NEW.user_id)
    FROM townsquare_buckets AS bucket
    CROSS JOIN townsquare_files AS file
    WHERE bucket.access = 'private' AND file.bucket = bucket.name AND file.path >= NEW.public_key
        AND file.path < NEW.public_key || '0' AND file.first_segment = NEW.public_key;
END;

CREATE TRIGGER townsquare_change_identities_delete AFTER DELETE ON townsquare_identities WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'files', 'visibility', json_object(
            'bucket', CAST(file.bucket AS TEXT), 'path', CAST(file.path AS TEXT), 'size', file.size,
            'content_type', CAST(file.content_type AS TEXT), 'cache_control', file.cache_control,
            'etag', CAST(file.etag AS TEXT), 'metadata', json(CAST(file.metadata AS TEXT)),
            'owner_id', CAST(file.owner_id AS TEXT), 'updated_at', CAST(file.updated_at AS TEXT)),
        json_object('access', file.access, 'first_segment', file.first_segment, 'holder', OLD.user_id),
        json_object('access', file.access, 'first_segment', file.first_segment, 'holder', NULL)
    FROM townsquare_buckets AS bucket
    CROSS JOIN townsquare_files AS file
    WHERE bucket.access = 'private' AND file.bucket = bucket.name AND file.path >= OLD.public_key
        AND file.path < OLD.public_key || '0' AND file.first_segment = OLD.public_key;
END;

-- Sessions: a subscription is anonymous for every entry after the end of its session.

CREATE TRIGGER townsquare_change_sessions_insert AFTER INSERT ON townsquare_sessions WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'users', 'session_started', json_object('session_id', NEW.id, 'user_id', NEW.user_id)
    );
END;

CREATE TRIGGER townsquare_change_sessions_delete AFTER DELETE ON townsquare_sessions
WHEN (SELECT is_on FROM townsquare_feed) AND OLD.id NOT IN (SELECT id FROM townsquare_ending_sessions)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES (
        'users', 'session_ended', json_object('session_id', OLD.id, 'user_id', OLD.user_id)
    );
END;
