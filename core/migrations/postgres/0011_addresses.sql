-- Finds the user with an address (townsquare.has_address). Row-level security keeps `lower(email) = …` from using an index: the
-- server would call lower() before the policy of the row, and lower() may tell a value in an error. An equality of texts may use one,
-- and this collation makes addresses equal that differ in case. A server without ICU, or with an encoding that ICU does not know, has
-- no such collation: there the collation is "C", and each lookup reads all users.
DO $$ BEGIN
    CREATE COLLATION IF NOT EXISTS townsquare.address (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN feature_not_supported OR invalid_object_definition OR undefined_object THEN
    CREATE COLLATION IF NOT EXISTS townsquare.address FROM "C";
END $$;
CREATE INDEX IF NOT EXISTS townsquare_users_address ON public.users (email COLLATE townsquare.address);
