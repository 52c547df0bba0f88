-- The callers' role belongs to this database, and the caller's identity comes from the session alone. A library before
-- this version uses a role of the whole cluster and does not work with this database.

-- The parts of the access rules (`policies.rs`): the script that created a part and a hash of what it created. A part that
-- differs is created again.
DROP TABLE townsquare.policies;
CREATE TABLE townsquare.policies (name TEXT PRIMARY KEY, script TEXT NOT NULL);

-- It reads the user from a setting. `functions.sql` has its successor.
DROP FUNCTION townsquare.admitted();

-- Other programs may have stored addresses in mixed case. The library finds them by their lower case.
CREATE INDEX townsquare_users_lower_email ON public.users (lower(email));

-- The owners of public spaces, without their private ones: the policy of users asks for them, also for an owner with very
-- many private spaces. The condition is that of the policy, word for word: PostgreSQL 15 draws no conclusions from it.
CREATE INDEX townsquare_public_spaces_owner ON public.spaces (owner_id) WHERE is_public IS TRUE;
-- A page after a space seeks its place. PostgreSQL does not use the first column of SPEC's own index, because the condition
-- of the index implies it.
CREATE INDEX townsquare_public_spaces_order ON public.spaces (created_at DESC, id) WHERE is_public;
