-- A copy of a database is noticed by its place: the system identifier of the server and the oid of the database. '' is
-- unknown. Libraries before this version do not know the columns and need not.
ALTER TABLE townsquare.database ADD COLUMN place TEXT NOT NULL DEFAULT '';

-- Whether the object store is this database's own. A copy has that of the original, and only reads it.
ALTER TABLE townsquare.database ADD COLUMN owns_store BOOLEAN NOT NULL DEFAULT TRUE;
