-- A signed URL of a user is valid for one generation. A new password, a recovery and a global sign-out raise it.
ALTER TABLE townsquare_credentials ADD COLUMN url_generation INTEGER NOT NULL DEFAULT 0;

-- URLs that were signed before have no generation. Earlier versions also left old bytes of the key in the file.
UPDATE townsquare_database SET url_key = lower(hex(randomblob(32)));
