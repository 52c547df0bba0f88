-- A revocation ends the uploads of a user whose bytes are being installed: a new password, a recovery, a sign-out everywhere (each
-- raises url_generation), the deletion of the user, and another owner of the space. The intent of a new file is deleted. The
-- intent of a replaced file is marked, because the old bytes may be gone: it is finished if the object has the new bytes, and
-- else deleted.
ALTER TABLE townsquare_file_intents ADD COLUMN is_revoked INTEGER NOT NULL DEFAULT 0 CHECK (is_revoked IN (0, 1));

CREATE TRIGGER townsquare_user_revoked AFTER UPDATE OF url_generation ON townsquare_credentials
WHEN OLD.url_generation IS NOT NEW.url_generation
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents
        WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1 WHERE owner_id = NEW.user_id AND moved_from IS NULL;
END;

-- BEFORE, because the uploads of a space go to its new owner (0007).
CREATE TRIGGER townsquare_space_given BEFORE UPDATE OF owner_id ON spaces WHEN OLD.owner_id IS NOT NEW.owner_id
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = OLD.id AND owner_id = OLD.owner_id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = OLD.id AND owner_id = OLD.owner_id AND base_etag = ''
            AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1
        WHERE bucket = 'spaces' AND first_segment = OLD.id AND owner_id = OLD.owner_id AND moved_from IS NULL;
END;

CREATE TRIGGER townsquare_user_uploads BEFORE DELETE ON users WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents WHERE owner_id = OLD.id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents WHERE owner_id = OLD.id AND base_etag = '' AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1 WHERE owner_id = OLD.id AND moved_from IS NULL;
END;
