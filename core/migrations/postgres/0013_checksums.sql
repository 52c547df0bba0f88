-- A checksum of the script of each applied migration. `open` refuses a database whose migrations are those of another build.
ALTER TABLE townsquare.migrations ADD COLUMN checksum TEXT;
