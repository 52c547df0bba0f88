-- The object store of a database's large files: its id is also in the store, so that another store is not taken for it.
-- '' before the first large file. Libraries before this version do not know the column and need not.
ALTER TABLE townsquare.database ADD COLUMN store_id TEXT NOT NULL DEFAULT '';

-- The large files, which are few beside the small ones.
CREATE INDEX files_objects ON townsquare.files (bucket, path) WHERE NOT is_inline;
