-- An upload whose bytes are being installed ends with the rights of its user: with a new generation (a new password, a recovery, a
-- sign-out everywhere), and with a new owner of the space. A new file is dropped. The bytes of a file that is replaced may be gone
-- already, so that upload is marked: it is finished if the object store has installed its bytes, and else dropped.
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

CREATE TRIGGER townsquare_space_taken AFTER UPDATE OF owner_id ON spaces WHEN OLD.owner_id IS NOT NEW.owner_id
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = NEW.id AND owner_id IS NOT NULL AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = NEW.id AND owner_id IS NOT NULL AND base_etag = '' AND moved_from IS NULL;
    UPDATE townsquare_file_intents SET is_revoked = 1
        WHERE bucket = 'spaces' AND first_segment = NEW.id AND owner_id IS NOT NULL AND moved_from IS NULL;
END;
