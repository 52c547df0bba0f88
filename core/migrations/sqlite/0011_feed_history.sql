-- A cursor proves its history: it names the entry that it stands on by a random tag, which no entry of another history has.
-- The last commits can be lost with the power; other changes then get their ids.

-- The key of the cursors' authentication and encryption. A restored copy gets another.
ALTER TABLE townsquare_database ADD COLUMN cursor_key TEXT NOT NULL DEFAULT '';
UPDATE townsquare_database SET cursor_key = lower(hex(randomblob(32)));

-- The tag of the last entry that was pruned; a random number before any was.
ALTER TABLE townsquare_feed ADD COLUMN pruned_tag INTEGER NOT NULL DEFAULT 0;
UPDATE townsquare_feed SET pruned_tag = random(),
    pruned_id = coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'townsquare_changes'), pruned_id);

-- SQLite adds no column with a random default to a table. The log begins anew, after its last id: the cursors that stand in the
-- entries of the old one have expired, because they prove nothing.
DROP TABLE townsquare_changes;
CREATE TABLE townsquare_changes (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name  TEXT NOT NULL,
    -- insert, update, delete, visibility, session_started, session_ended, session_rotated
    kind        TEXT NOT NULL,
    old         TEXT,
    -- For kind visibility both the old and the new image, which are equal.
    new         TEXT,
    old_context TEXT,
    new_context TEXT,
    at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'),
    tag         INTEGER NOT NULL DEFAULT (random())
);
INSERT INTO sqlite_sequence (name, seq) SELECT 'townsquare_changes', pruned_id FROM townsquare_feed;

-- A subscription that acts for one session ends when the session gets other tokens, which its handle does not have.

CREATE TRIGGER townsquare_change_sessions_update AFTER UPDATE OF access_hash ON townsquare_sessions
WHEN (SELECT is_on FROM townsquare_feed) AND OLD.access_hash <> NEW.access_hash
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, new) VALUES (
        'users', 'session_rotated', json_object('session_id', NEW.id, 'user_id', NEW.user_id)
    );
END;
