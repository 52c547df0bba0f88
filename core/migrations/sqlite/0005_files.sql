-- Files (SPEC 2.8, 4.4): a row for each file, the bytes of small files, and what keeps the object store of the large ones in
-- agreement with the rows.

-- The buckets with the rule of who may do what in them.
CREATE TABLE townsquare_buckets (
    name   TEXT PRIMARY KEY NOT NULL,
    access TEXT NOT NULL CHECK (access IN ('spaces', 'private', 'public')),
    CHECK ((name = 'spaces') = (access = 'spaces')),
    CHECK (name <> 'private' OR access = 'private'),
    CHECK (name <> 'assets' OR access = 'public')
) WITHOUT ROWID;
INSERT INTO townsquare_buckets (name, access) VALUES ('spaces', 'spaces'), ('private', 'private'), ('assets', 'public');

CREATE TABLE townsquare_files (
    bucket        TEXT NOT NULL,
    path          TEXT NOT NULL,
    -- The access of the bucket, for the policies.
    access        TEXT NOT NULL CHECK (access IN ('spaces', 'private', 'public')),
    -- The first segment of the path, if the access is `spaces` and the segment is a uuid.
    space_id      TEXT,
    first_segment TEXT NOT NULL,
    owner_id      TEXT REFERENCES users (id) ON DELETE SET NULL,
    size          INTEGER NOT NULL CHECK (size >= 0),
    content_type  TEXT NOT NULL,
    cache_control INTEGER NOT NULL,
    -- New with every write.
    etag          TEXT NOT NULL,
    metadata      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata)),
    -- BLAKE3 of the object in hex; NULL for an inline file.
    digest        TEXT,
    -- Whether the bytes are in `townsquare_file_contents`; else they are in the object store.
    is_inline     INTEGER NOT NULL CHECK (is_inline IN (0, 1)),
    updated_at    TEXT NOT NULL,
    PRIMARY KEY (bucket, path),
    CHECK ((bucket = 'spaces') = (access = 'spaces')),
    CHECK (bucket <> 'private' OR access = 'private'),
    CHECK (bucket <> 'assets' OR access = 'public')
) WITHOUT ROWID;
-- Quotas read the sizes of an owner's files from the index.
CREATE INDEX townsquare_files_owner_id ON townsquare_files (owner_id, size) WHERE owner_id IS NOT NULL;
-- The large files, which are few beside the small ones.
CREATE INDEX townsquare_files_objects ON townsquare_files (bucket, path) WHERE NOT is_inline;

-- The bytes of small files.
CREATE TABLE townsquare_file_contents (
    bucket  TEXT NOT NULL,
    path    TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (bucket, path),
    FOREIGN KEY (bucket, path) REFERENCES townsquare_files (bucket, path) ON DELETE CASCADE ON UPDATE CASCADE
);

-- The objects that are being written: each row becomes the row of the file when its bytes are in the object store.
CREATE TABLE townsquare_file_intents (
    bucket        TEXT NOT NULL,
    path          TEXT NOT NULL,
    access        TEXT NOT NULL,
    space_id      TEXT,
    first_segment TEXT NOT NULL,
    owner_id      TEXT,
    size          INTEGER NOT NULL,
    content_type  TEXT NOT NULL,
    cache_control INTEGER NOT NULL,
    etag          TEXT NOT NULL,
    metadata      TEXT NOT NULL,
    digest        TEXT NOT NULL,
    -- The name of the staged bytes.
    staged        TEXT NOT NULL,
    -- The version that the file had before; '' for none.
    base_etag     TEXT NOT NULL,
    -- For a move: the source and its version.
    moved_from    TEXT,
    moved_etag    TEXT,
    created_at    TEXT NOT NULL,
    PRIMARY KEY (bucket, path)
) WITHOUT ROWID;

-- The objects that no row needs any more.
CREATE TABLE townsquare_file_outbox (
    bucket TEXT NOT NULL,
    path   TEXT NOT NULL,
    PRIMARY KEY (bucket, path)
) WITHOUT ROWID;

CREATE TRIGGER townsquare_file_deleted AFTER DELETE ON townsquare_files WHEN NOT OLD.is_inline
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path) VALUES (OLD.bucket, OLD.path) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER townsquare_file_became_inline AFTER UPDATE OF is_inline ON townsquare_files
WHEN NEW.is_inline AND NOT OLD.is_inline
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path) VALUES (OLD.bucket, OLD.path) ON CONFLICT DO NOTHING;
END;

-- Before the space, so that the change log has the context of its files. ('0' is the character after '/'.)
CREATE TRIGGER townsquare_space_files BEFORE DELETE ON spaces WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents WHERE bucket = 'spaces' AND first_segment = OLD.id
        ON CONFLICT DO NOTHING;
    DELETE FROM townsquare_file_intents WHERE bucket = 'spaces' AND first_segment = OLD.id;
    DELETE FROM townsquare_files WHERE bucket = 'spaces' AND path = OLD.id;
    DELETE FROM townsquare_files WHERE bucket = 'spaces' AND path >= OLD.id || '/' AND path < OLD.id || '0';
END;

-- BEFORE, because the identity keys are deleted with the user.
CREATE TRIGGER townsquare_user_files BEFORE DELETE ON users WHEN OLD.id IS NOT NULL
BEGIN
    INSERT INTO townsquare_file_outbox (bucket, path)
        SELECT bucket, path FROM townsquare_file_intents WHERE access = 'private' AND (first_segment = OLD.id
            OR first_segment IN (SELECT public_key FROM townsquare_identities WHERE user_id = OLD.id))
        ON CONFLICT DO NOTHING;
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

-- An id of a space is claimed once (DESIGN 4): a caller cannot create a space with the id of one that was deleted.

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
