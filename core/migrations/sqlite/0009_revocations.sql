-- A new upload whose bytes are being installed ends with the rights of its user: with a new generation (a new password, a recovery,
-- a sign-out everywhere), and with a new owner of the space. (One that replaces a file cannot be undone: the file's bytes may be
-- gone.)
CREATE TRIGGER townsquare_user_revoked AFTER UPDATE OF url_generation ON townsquare_credentials
WHEN OLD.url_generation IS NOT NEW.url_generation
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents
        WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents WHERE owner_id = NEW.user_id AND base_etag = '' AND moved_from IS NULL;
END;

CREATE TRIGGER townsquare_space_taken AFTER UPDATE OF owner_id ON spaces WHEN OLD.owner_id IS NOT NEW.owner_id
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = NEW.id AND owner_id IS NOT NULL AND base_etag = '' AND moved_from IS NULL
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents
        WHERE bucket = 'spaces' AND first_segment = NEW.id AND owner_id IS NOT NULL AND base_etag = '' AND moved_from IS NULL;
END;
