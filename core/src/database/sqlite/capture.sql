-- The triggers of the change log (SPEC 6, DESIGN 5): each writes the changes of a row in the transaction of the change. `capture.rs`
-- puts SQL in place of the braces:
--   {TABLE ROW}          the image of a row: its columns as JSON
--   {old TABLE}          the image of OLD, in which large columns that NEW has unchanged are NULL; the key "=" lists their names
--   {context TABLE ROW}  what the select policy reads besides the row, as of the statement
--   {on}                 whether the log is on
-- Everything here works in SQLite 3.40 and older.

-- Every table without triggers of its own below, in place of TABLE: the policy reads the row alone.

CREATE TRIGGER townsquare_change_TABLE_insert AFTER INSERT ON "TABLE" WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES ('TABLE', 'insert', {TABLE NEW});
END;
CREATE TRIGGER townsquare_change_TABLE_update AFTER UPDATE ON "TABLE" WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES ('TABLE', 'update', {old TABLE}, {TABLE NEW});
END;
CREATE TRIGGER townsquare_change_TABLE_delete AFTER DELETE ON "TABLE" WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES ('TABLE', 'delete', {TABLE OLD});
END;

-- Users and their sessions. A subscription is anonymous for every entry after the end of its session. The sessions of a deleted user
-- end after everything else that is deleted with the user, so that the user's subscriptions get it.

CREATE TRIGGER townsquare_change_users_insert AFTER INSERT ON users WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES ('users', 'insert', {users NEW});
END;
CREATE TRIGGER townsquare_change_users_update AFTER UPDATE ON users WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES ('users', 'update', {old users}, {users NEW});
END;
CREATE TRIGGER townsquare_change_users_before_delete BEFORE DELETE ON users WHEN {on} BEGIN
    INSERT OR REPLACE INTO townsquare_ending_sessions (id, user_id)
        SELECT id, user_id FROM townsquare_sessions WHERE user_id = OLD.id;
END;
-- Runs after the cascades.
CREATE TRIGGER townsquare_change_users_delete AFTER DELETE ON users WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES ('users', 'delete', {users OLD});
    -- With foreign keys off, as in the sqlite3 shell, the sessions outlive the user.
    INSERT INTO townsquare_changes (table_name, kind, old)
        SELECT 'users', 'session_ended', json_object('session_id', ending.id, 'user_id', ending.user_id)
        FROM townsquare_ending_sessions AS ending
        WHERE ending.user_id = OLD.id AND ending.id NOT IN (SELECT id FROM townsquare_sessions WHERE user_id = OLD.id);
    DELETE FROM townsquare_ending_sessions WHERE user_id = OLD.id;
END;

CREATE TRIGGER townsquare_change_sessions_insert AFTER INSERT ON townsquare_sessions WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new)
        VALUES ('users', 'session_started', json_object('session_id', NEW.id, 'user_id', NEW.user_id));
END;
-- A subscription ends when its session gets other tokens, which the subscription's handle does not have.
CREATE TRIGGER townsquare_change_sessions_update AFTER UPDATE OF access_hash ON townsquare_sessions
WHEN {on} AND OLD.access_hash <> NEW.access_hash BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new)
        VALUES ('users', 'session_rotated', json_object('session_id', NEW.id, 'user_id', NEW.user_id));
END;
CREATE TRIGGER townsquare_change_sessions_delete AFTER DELETE ON townsquare_sessions
WHEN {on} AND OLD.id NOT IN (SELECT id FROM townsquare_ending_sessions) BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old)
        VALUES ('users', 'session_ended', json_object('session_id', OLD.id, 'user_id', OLD.user_id));
END;

-- Spaces. Who may see a fidget changes with its space: one visibility entry for each fidget. With foreign keys off, as in the sqlite3
-- shell, a space can come to fidgets that exist, and fidgets can outlive their space.

CREATE TRIGGER townsquare_change_spaces_insert AFTER INSERT ON spaces WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES ('spaces', 'insert', {spaces NEW});
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'fidgets', 'visibility', {fidgets fidget}, NULL, {context spaces NEW}
        FROM fidgets AS fidget WHERE fidget.space_id = NEW.id ORDER BY fidget.created_at, fidget.id;
END;
CREATE TRIGGER townsquare_change_spaces_update AFTER UPDATE ON spaces WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES ('spaces', 'update', {old spaces}, {spaces NEW});
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'fidgets', 'visibility', {fidgets fidget},
            CASE WHEN fidget.space_id = OLD.id THEN {context spaces OLD} END,
            CASE WHEN fidget.space_id = NEW.id THEN {context spaces NEW} END
        FROM fidgets AS fidget
        WHERE (OLD.owner_id IS NOT NEW.owner_id OR OLD.is_public IS NOT NEW.is_public OR OLD.id IS NOT NEW.id)
            AND fidget.space_id IN (OLD.id, NEW.id) ORDER BY fidget.created_at, fidget.id;
END;
CREATE TRIGGER townsquare_change_spaces_before_delete BEFORE DELETE ON spaces WHEN {on} AND (OLD.id IS NOT NULL) BEGIN
    INSERT OR REPLACE INTO townsquare_deleted_spaces (id, owner_id, is_public) VALUES (OLD.id, OLD.owner_id, OLD.is_public);
END;
CREATE TRIGGER townsquare_change_spaces_delete AFTER DELETE ON spaces WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old) VALUES ('spaces', 'delete', {spaces OLD});
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'fidgets', 'visibility', {fidgets fidget}, {context spaces OLD}, NULL
        FROM fidgets AS fidget WHERE fidget.space_id = OLD.id ORDER BY fidget.created_at, fidget.id;
    DELETE FROM townsquare_deleted_spaces WHERE id = OLD.id;
END;

-- Who may see the files of a space changes with the space: one visibility entry for each file. '0' is the character after '/'.

CREATE TRIGGER townsquare_change_space_files_insert AFTER INSERT ON spaces WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'files', 'visibility', {files file},
            {context files file, NULL, NULL},
            {context files file, CAST(NEW.owner_id AS TEXT), NEW.is_public}
        FROM townsquare_files AS file
        WHERE file.bucket = 'spaces' AND file.path >= NEW.id AND file.path < NEW.id || '0' AND file.space_id = NEW.id
        ORDER BY file.path;
END;
CREATE TRIGGER townsquare_change_space_files_update AFTER UPDATE OF id, owner_id, is_public ON spaces
WHEN {on} AND (OLD.owner_id IS NOT NEW.owner_id OR OLD.is_public IS NOT NEW.is_public OR OLD.id IS NOT NEW.id) BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'files', 'visibility', {files file},
            {context files file, CASE WHEN file.space_id = OLD.id THEN CAST(OLD.owner_id AS TEXT) END,
                CASE WHEN file.space_id = OLD.id THEN OLD.is_public END},
            {context files file, CASE WHEN file.space_id = NEW.id THEN CAST(NEW.owner_id AS TEXT) END,
                CASE WHEN file.space_id = NEW.id THEN NEW.is_public END}
        FROM (SELECT OLD.id AS id UNION SELECT NEW.id) AS space
        CROSS JOIN townsquare_files AS file
        WHERE file.bucket = 'spaces' AND file.path >= space.id AND file.path < space.id || '0' AND file.space_id = space.id
        ORDER BY file.path;
END;

-- Fidgets. A cascade deletes a fidget after its space, whose context is then in `townsquare_deleted_spaces`.

CREATE TRIGGER townsquare_change_fidgets_insert AFTER INSERT ON fidgets WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, new_context)
        VALUES ('fidgets', 'insert', {fidgets NEW}, {context fidgets NEW});
END;
CREATE TRIGGER townsquare_change_fidgets_update AFTER UPDATE ON fidgets WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new, old_context, new_context)
        VALUES ('fidgets', 'update', {old fidgets}, {fidgets NEW}, {context fidgets OLD}, {context fidgets NEW});
END;
CREATE TRIGGER townsquare_change_fidgets_delete AFTER DELETE ON fidgets WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context) VALUES ('fidgets', 'delete', {fidgets OLD},
        coalesce({context fidgets OLD},
            (SELECT {context spaces space} FROM townsquare_deleted_spaces AS space WHERE space.id = OLD.space_id)));
END;

-- Files. A change of the key, a move, is a deletion and an insertion. Bookkeeping that no column of the feed shows is no change.

CREATE TRIGGER townsquare_change_files_insert AFTER INSERT ON townsquare_files WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, new_context)
        VALUES ('files', 'insert', {files NEW}, {context files NEW});
END;
CREATE TRIGGER townsquare_change_files_update AFTER UPDATE ON townsquare_files
WHEN {on} AND (OLD.bucket = NEW.bucket AND OLD.path = NEW.path AND {differs files}) BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new, old_context, new_context)
        VALUES ('files', 'update', {old files}, {files NEW}, {context files OLD}, {context files NEW});
END;
CREATE TRIGGER townsquare_change_files_move AFTER UPDATE OF bucket, path ON townsquare_files
WHEN {on} AND (OLD.bucket <> NEW.bucket OR OLD.path <> NEW.path) BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context)
        VALUES ('files', 'delete', {files OLD}, {context files OLD});
    INSERT INTO townsquare_changes (table_name, kind, new, new_context)
        VALUES ('files', 'insert', {files NEW}, {context files NEW});
END;
CREATE TRIGGER townsquare_change_files_delete AFTER DELETE ON townsquare_files WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, old_context)
        VALUES ('files', 'delete', {files OLD}, {context files OLD});
END;

-- Linking an identity key shows its private files to the user; unlinking hides them.

CREATE TRIGGER townsquare_change_identities_insert AFTER INSERT ON townsquare_identities WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'files', 'visibility', {files file},
            json_object('access', file.access, 'first_segment', file.first_segment, 'holder', NULL),
            json_object('access', file.access, 'first_segment', file.first_segment, 'holder', NEW.user_id)
        FROM townsquare_buckets AS bucket
        CROSS JOIN townsquare_files AS file
        WHERE bucket.access = 'private' AND file.bucket = bucket.name AND file.path >= NEW.public_key
            AND file.path < NEW.public_key || '0' AND file.first_segment = NEW.public_key;
END;
CREATE TRIGGER townsquare_change_identities_delete AFTER DELETE ON townsquare_identities WHEN {on} BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
        SELECT 'files', 'visibility', {files file},
            json_object('access', file.access, 'first_segment', file.first_segment, 'holder', OLD.user_id),
            json_object('access', file.access, 'first_segment', file.first_segment, 'holder', NULL)
        FROM townsquare_buckets AS bucket
        CROSS JOIN townsquare_files AS file
        WHERE bucket.access = 'private' AND file.bucket = bucket.name AND file.path >= OLD.public_key
            AND file.path < OLD.public_key || '0' AND file.first_segment = OLD.public_key;
END;
