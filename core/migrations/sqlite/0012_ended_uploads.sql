-- The outbox names the staged bytes of an upload that ended before its object store answered. Without these bytes, a copy that the
-- store has not carried out yet finds nothing: it would leave an object without a row, or replace a newer one.
ALTER TABLE townsquare_file_outbox ADD COLUMN staged TEXT;

DROP TRIGGER townsquare_space_files;
CREATE TRIGGER townsquare_space_files BEFORE DELETE ON spaces WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path, staged)
        SELECT bucket, path, staged FROM townsquare_file_intents WHERE bucket = 'spaces' AND first_segment = OLD.id
        ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(staged, excluded.staged);
    DELETE FROM townsquare_file_intents WHERE bucket = 'spaces' AND first_segment = OLD.id;
    DELETE FROM townsquare_files WHERE bucket = 'spaces' AND path = OLD.id;
    DELETE FROM townsquare_files WHERE bucket = 'spaces' AND path >= OLD.id || '/' AND path < OLD.id || '0';
END;

DROP TRIGGER townsquare_user_files;
CREATE TRIGGER townsquare_user_files BEFORE DELETE ON users WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path, staged)
        SELECT bucket, path, staged FROM townsquare_file_intents WHERE access = 'private' AND (first_segment = OLD.id
            OR first_segment IN (SELECT public_key FROM townsquare_identities WHERE user_id = OLD.id))
        ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(staged, excluded.staged);
    DELETE FROM townsquare_file_intents WHERE access = 'private' AND (first_segment = OLD.id
        OR first_segment IN (SELECT public_key FROM townsquare_identities WHERE user_id = OLD.id));
    DELETE FROM townsquare_files WHERE (bucket, path) IN (
        SELECT files.bucket, files.path
        FROM townsquare_buckets AS buckets
        CROSS JOIN (SELECT OLD.id AS segment UNION ALL SELECT public_key FROM townsquare_identities WHERE user_id = OLD.id) AS own
        CROSS JOIN townsquare_files AS files
        WHERE buckets.access = 'private' AND files.bucket = buckets.name
        AND files.path >= own.segment AND files.path < own.segment || '0' AND files.first_segment = own.segment
    );
END;

DROP TRIGGER townsquare_user_revoked;
CREATE TRIGGER townsquare_user_revoked AFTER UPDATE OF url_generation ON townsquare_credentials
WHEN OLD.url_generation IS NOT NEW.url_generation
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path, staged)
        SELECT bucket, path, staged FROM townsquare_file_intents
        WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(staged, excluded.staged);
    DELETE FROM townsquare_file_intents WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1 WHERE owner_id = NEW.user_id AND moved_from IS NULL;
END;

-- BEFORE, because the uploads of a space go to its new owner (0007).
DROP TRIGGER townsquare_space_given;
CREATE TRIGGER townsquare_space_given BEFORE UPDATE OF owner_id ON spaces WHEN OLD.owner_id IS NOT NEW.owner_id
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path, staged)
        SELECT bucket, path, staged FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = OLD.id AND owner_id = OLD.owner_id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(staged, excluded.staged);
    DELETE FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = OLD.id AND owner_id = OLD.owner_id AND base_etag = ''
            AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1
        WHERE bucket = 'spaces' AND first_segment = OLD.id AND owner_id = OLD.owner_id AND moved_from IS NULL;
END;

DROP TRIGGER townsquare_user_uploads;
CREATE TRIGGER townsquare_user_uploads BEFORE DELETE ON users WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path, staged)
        SELECT bucket, path, staged FROM townsquare_file_intents
        WHERE owner_id = OLD.id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(staged, excluded.staged);
    DELETE FROM townsquare_file_intents WHERE owner_id = OLD.id AND base_etag = '' AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1 WHERE owner_id = OLD.id AND moved_from IS NULL;
END;
