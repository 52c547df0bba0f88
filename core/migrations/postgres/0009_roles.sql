-- The callers' role belongs to this database, and the caller's identity comes from the session alone. A library before
-- this version uses a role of the whole cluster and does not work with this database.

-- The parts of the access rules (`policies.rs`): the script that created a part and a hash of what it created. A part that
-- differs is created again.
DROP TABLE townsquare.policies;
CREATE TABLE townsquare.policies (name TEXT PRIMARY KEY, script TEXT NOT NULL);

-- It reads the user from a setting. `functions.sql` has its successor.
DROP FUNCTION townsquare.admitted();
