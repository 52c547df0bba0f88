-- The order of the fidgets of a space: a page of them is read without the others.
CREATE INDEX townsquare_fidgets_in_order ON fidgets (space_id, (created_at IS NULL), created_at, id);

-- The files of a space belong to its owner, and count for that owner's quota. Files of the service have no owner. ('0' is the
-- character after '/'.)
CREATE TRIGGER townsquare_space_owner AFTER UPDATE OF owner_id ON spaces WHEN OLD.owner_id IS NOT NEW.owner_id
BEGIN
    UPDATE townsquare_file_intents SET owner_id = NEW.owner_id
        WHERE bucket = 'spaces' AND first_segment = NEW.id AND owner_id = OLD.owner_id;
    UPDATE townsquare_files SET owner_id = NEW.owner_id
        WHERE bucket = 'spaces' AND path = NEW.id AND owner_id = OLD.owner_id;
    UPDATE townsquare_files SET owner_id = NEW.owner_id
        WHERE bucket = 'spaces' AND path >= NEW.id || '/' AND path < NEW.id || '0' AND owner_id = OLD.owner_id;
END;
