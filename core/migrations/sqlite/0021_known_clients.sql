-- The clients from which users have signed in. A key is a hash of the client and the address of the user.
CREATE TABLE townsquare_known_clients (
    key_hash TEXT PRIMARY KEY NOT NULL,
    user_id  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    last_at  TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX townsquare_known_clients_user_id ON townsquare_known_clients (user_id);
CREATE INDEX townsquare_known_clients_last_at ON townsquare_known_clients (last_at);
