-- A copy of a database is noticed by its place: the number of the file and the time of its creation. '' is unknown. Libraries
-- before this version do not know the columns and need not.
ALTER TABLE townsquare_database ADD COLUMN place TEXT NOT NULL DEFAULT '';

-- Whether the object store is this database's own. A copy has that of the original, and only reads it.
ALTER TABLE townsquare_database ADD COLUMN owns_store INTEGER NOT NULL DEFAULT TRUE CHECK (owns_store IN (0, 1));
