-- A signed URL of a user is valid for one generation. A new password, a recovery and a global sign-out raise it.
ALTER TABLE townsquare.credentials ADD COLUMN url_generation BIGINT NOT NULL DEFAULT 0;

-- URLs that were signed before have no generation.
UPDATE townsquare.database SET url_key = replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
