-- A checksum of the script of each applied migration. `open` refuses a database whose migrations are those of another build.
ALTER TABLE townsquare_migrations ADD COLUMN checksum TEXT;
