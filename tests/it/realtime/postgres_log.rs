//! The change log on a PostgreSQL server, as its triggers write it and as its functions return it: plain SQL, as other
//! programs send it.

use std::thread;

use townsquare_tests::{on_engine, postgres::callers_role, raw_sql::RawConnection, test_database::TestDatabase};

const SPACE: &str = "00000000-0000-0000-0001-000000000001";
const OWNER: &str = "00000000-0000-0000-0000-000000000001";

fn connect(db: &TestDatabase) -> RawConnection {
    RawConnection::postgres(&db.url()).expect("the server runs")
}

/// Switches capture on, and creates a user with a space named `0`.
fn start(db: &TestDatabase) {
    db.raw.run("SELECT townsquare.set_capture(true)");
    db.raw.run(&format!("INSERT INTO users (id, email) VALUES ('{OWNER}', 'owner@town.example')"));
    db.raw.run(&format!("INSERT INTO spaces (id, name, owner_id) VALUES ('{SPACE}', '0', '{OWNER}')"));
}

/// Each entry after the second, which are those of `start`, as `kind of table: old -> new`. A row is its name or its type.
fn entries(db: &TestDatabase) -> Vec<String> {
    let sql = "SELECT kind || ' of ' || table_name || ': '
            || COALESCE(old_row::json ->> 'name', old_row::json ->> 'type', '') || ' -> '
            || COALESCE(new_row::json ->> 'name', new_row::json ->> 'type', '')
        FROM townsquare.changes WHERE id > 2 AND id <= townsquare.settled_id() ORDER BY id";
    db.raw.rows(sql).into_iter().map(|row| row[0].clone().expect("a text")).collect()
}

fn rename(connection: &RawConnection, name: &str) {
    connection.run(&format!("UPDATE spaces SET name = '{name}' WHERE id = '{SPACE}'"));
}

fn add_fidget(connection: &RawConnection, kind: &str) {
    connection.run(&format!("INSERT INTO fidgets (space_id, type) VALUES ('{SPACE}', '{kind}')"));
}

on_engine! { Postgres in postgres;
    fn nothing_is_written_to_the_log_before_the_feed_is_used(db: &TestDatabase) {
        db.space();
        assert_eq!(db.raw.count("townsquare.changes"), 0);
        assert_eq!(db.raw.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'townsquare_capture%' AND tgenabled <> 'D'"), "0");
    }

    fn capture_begins_after_the_running_writers_have_ended(db: &TestDatabase) {
        let (early, switch) = (connect(db), connect(db));
        early.run(&format!("BEGIN; INSERT INTO users (id, email) VALUES ('{OWNER}', 'early')"));
        thread::scope(|scope| {
            let switching = scope.spawn(|| switch.run("SELECT townsquare.set_capture(true)"));
            db.wait_for_a_waiting_connection();
            early.run("COMMIT");
            switching.join().expect("capture is on");
        });
        db.raw.run("UPDATE users SET email = 'late'");
        assert_eq!(db.raw.value("SELECT string_agg(old_row ->> 'email', ',') FROM townsquare.changes"), "early");
    }

    fn entries_wait_for_a_transaction_that_may_write_one_before_them(db: &TestDatabase) {
        start(db);
        let open = connect(db);
        open.run("BEGIN");
        add_fidget(&open, "first");
        rename(&db.raw, "1");
        rename(&db.raw, "2");
        assert!(entries(db).is_empty(), "the first entry is not committed");
        add_fidget(&open, "last");
        open.run("COMMIT");
        assert_eq!(entries(db), [
            "insert of fidgets:  -> first",
            "update of spaces: 0 -> 1",
            "update of spaces: 1 -> 2",
            "insert of fidgets:  -> last",
        ]);
    }

    fn entries_of_a_transaction_that_is_rolled_back_do_not_exist(db: &TestDatabase) {
        start(db);
        let open = connect(db);
        open.run("BEGIN");
        add_fidget(&open, "first");
        rename(&db.raw, "1");
        open.run("ROLLBACK");
        assert_eq!(entries(db), ["update of spaces: 0 -> 1"]);
    }

    fn a_savepoint_that_is_rolled_back_leaves_the_rest_of_its_transaction_in_order(db: &TestDatabase) {
        start(db);
        let open = connect(db);
        open.run("BEGIN; SAVEPOINT one");
        add_fidget(&open, "undone");
        open.run("ROLLBACK TO one");
        rename(&db.raw, "1");
        assert_eq!(entries(db), ["update of spaces: 0 -> 1"], "the transaction has no entry");
        add_fidget(&open, "kept");
        rename(&db.raw, "2");
        assert_eq!(entries(db), ["update of spaces: 0 -> 1"], "the transaction has an entry again");
        open.run("COMMIT");
        assert_eq!(entries(db)[1..], ["insert of fidgets:  -> kept", "update of spaces: 1 -> 2"]);
    }

    fn changes_of_one_row_are_in_their_order_if_the_older_transaction_makes_the_last_one(db: &TestDatabase) {
        start(db);
        let older = connect(db);
        older.run("BEGIN");
        add_fidget(&older, "clock");
        rename(&db.raw, "1");
        rename(&older, "2");
        older.run("COMMIT");
        assert_eq!(entries(db), ["insert of fidgets:  -> clock", "update of spaces: 0 -> 1", "update of spaces: 1 -> 2"]);
    }

    fn a_transaction_that_writes_no_entry_holds_up_nobody(db: &TestDatabase) {
        start(db);
        db.raw.run("CREATE TABLE public.others (x INT)");
        let open = connect(db);
        open.run("BEGIN; INSERT INTO others VALUES (1)");
        rename(&db.raw, "1");
        assert_eq!(entries(db), ["update of spaces: 0 -> 1"]);
    }

    fn a_transaction_with_one_snapshot_writes_its_entries_in_order(db: &TestDatabase) {
        start(db);
        let open = connect(db);
        open.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM spaces");
        db.raw.run("UPDATE users SET email = '1'");
        add_fidget(&open, "clock");
        db.raw.run("UPDATE users SET email = '2'");
        assert_eq!(entries(db), ["update of users:  -> "]);
        open.run("COMMIT");
        assert_eq!(entries(db)[1..], ["insert of fidgets:  -> clock", "update of users:  -> "]);
    }

    fn a_fidget_is_not_judged_by_an_old_snapshot_of_its_space(db: &TestDatabase) {
        start(db);
        let open = connect(db);
        open.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM spaces");
        db.raw.run("UPDATE spaces SET is_public = true");
        let refused = open.try_rows(&format!("INSERT INTO fidgets (space_id, type) VALUES ('{SPACE}', 'clock')"));
        assert!(refused.expect_err("the space has changed").contains("could not serialize access"));
    }

    fn publishing_a_space_waits_for_the_transactions_that_write_its_fidgets(db: &TestDatabase) {
        start(db);
        let (writer, publisher) = (connect(db), connect(db));
        writer.run("BEGIN");
        add_fidget(&writer, "clock");
        thread::scope(|scope| {
            let publishing = scope.spawn(|| publisher.run("UPDATE spaces SET is_public = true"));
            db.wait_for_a_waiting_connection();
            writer.run("COMMIT");
            publishing.join().expect("the space is published");
        });
        assert_eq!(entries(db), [
            "insert of fidgets:  -> clock",
            "visibility of fidgets:  -> clock",
            "update of spaces: 0 -> 0",
        ]);
    }

    fn a_fidget_written_while_its_space_is_unpublished_is_judged_as_unpublished(db: &TestDatabase) {
        start(db);
        add_fidget(&db.raw, "clock");
        db.raw.run("UPDATE spaces SET is_public = true");
        let (writer, publisher) = (connect(db), connect(db));
        publisher.run("BEGIN; UPDATE spaces SET is_public = false");
        thread::scope(|scope| {
            let writing = scope.spawn(|| writer.run("UPDATE fidgets SET type = 'map'"));
            db.wait_for_a_waiting_connection();
            publisher.run("COMMIT");
            writing.join().expect("the fidget is written");
        });
        let context = "SELECT old_context::json ->> 'is_public' FROM townsquare.changes ORDER BY id DESC";
        assert_eq!(entries(db).last().map(String::as_str), Some("update of fidgets: clock -> map"));
        assert_eq!(db.raw.value(context), "false");
    }

    fn linking_an_identity_key_waits_for_the_transactions_that_write_its_files(db: &TestDatabase) {
        start(db);
        let upload = |connection: &RawConnection, etag: &str| {
            connection.run(&format!(
                "INSERT INTO townsquare.files (bucket, path, access, first_segment, size, content_type, cache_control, etag,
                     is_inline, updated_at)
                 VALUES ('private', 'key/a', 'private', 'key', 1, 'text/plain', 0, '{etag}', true, now())
                 ON CONFLICT (bucket, path) DO UPDATE SET etag = excluded.etag"
            ));
        };
        upload(&db.raw, "0");
        let (writer, linker) = (connect(db), connect(db));
        writer.run("BEGIN");
        upload(&writer, "1");
        thread::scope(|scope| {
            let linking = scope.spawn(|| {
                linker.run(&format!("INSERT INTO townsquare.identities VALUES ('key', '{OWNER}', now())"));
            });
            db.wait_for_a_waiting_connection();
            writer.run("COMMIT");
            linking.join().expect("linked");
        });
        let images = "SELECT string_agg(kind || ' ' || (new_row ->> 'etag'), ', ' ORDER BY id) FROM townsquare.changes WHERE id > 2";
        assert_eq!(db.raw.value(images), "insert 0, update 1, visibility 1");
    }

    fn each_fidget_that_is_deleted_with_its_space_has_the_space_as_its_context(db: &TestDatabase) {
        start(db);
        add_fidget(&db.raw, "clock");
        db.raw.run("DELETE FROM users");
        assert_eq!(entries(db), [
            "insert of fidgets:  -> clock",
            "delete of users:  -> ",
            "delete of spaces: 0 -> ",
            "delete of fidgets: clock -> ",
        ]);
        let context = "SELECT old_context::json ->> 'owner_id' FROM townsquare.changes ORDER BY id DESC";
        assert_eq!(db.raw.value(context), OWNER);
    }

    fn a_page_of_the_log_has_the_images_of_the_tables_asked_for_and_ends_after_its_bytes(db: &TestDatabase) {
        start(db);
        db.raw.run(&format!(
            "INSERT INTO fidgets (space_id, type, config)
                SELECT '{SPACE}', n, to_jsonb(repeat('x', 100000)) FROM generate_series(1, 3) AS n"
        ));
        let page = |bytes: u32, tables: &str| {
            db.raw.value(&format!(
                "SELECT concat_ws(' ', count(*), max(found), string_agg(table_name, ' ') FILTER (WHERE new_row IS NOT NULL))
                 FROM townsquare.changes_page(0, townsquare.proof_at(0), NULL, {bytes}, '{{{tables}}}')"
            ))
        };
        assert_eq!(page(1_000_000, "fidgets"), "5 5 fidgets fidgets fidgets");
        assert_eq!(page(0, "fidgets"), "3 5 fidgets", "a page has one entry at least");
        assert_eq!(page(100_000, "fidgets"), "3 5 fidgets");
        assert_eq!(page(150_000, "fidgets"), "4 5 fidgets fidgets");
        assert_eq!(page(0, "users"), "1 5 users");
        assert_eq!(page(100_000, "users,spaces"), "5 5 users spaces");
    }

    /// The fidgets are deleted in the order of their spaces.
    fn fidgets_of_many_spaces_are_deleted_in_order_and_each_has_its_own_space(db: &TestDatabase) {
        start(db);
        db.raw.run(
            "INSERT INTO spaces (name, owner_id, is_public) SELECT n, NULL, n % 2 = 0 FROM generate_series(1, 20) AS n;
             INSERT INTO fidgets (space_id, type) SELECT spaces.id, spaces.name || '.' || n
                FROM spaces, generate_series(1, 20) AS n WHERE spaces.name <> '0';
             INSERT INTO fidgets (type) VALUES ('alone');
             DELETE FROM fidgets WHERE type = 'alone'",
        );
        let last = "SELECT kind || ' ' || (old_row ->> 'type') || ' ' || (old_context IS NULL)
            FROM townsquare.changes ORDER BY id DESC LIMIT 1";
        assert_eq!(db.raw.value(last), "delete alone true");
        db.raw.run("DELETE FROM spaces");
        let deleted = "SELECT DISTINCT count(*) || ' ' || count(DISTINCT old_context::text) FROM townsquare.changes
            WHERE kind = 'delete' AND old_row ->> 'type' <> 'alone'";
        assert_eq!(db.raw.value(deleted), "400 2");
        let wrong = "SELECT count(*) FROM townsquare.changes AS fidget, townsquare.changes AS space
            WHERE fidget.kind = 'delete' AND fidget.table_name = 'fidgets' AND space.kind = 'insert'
                AND space.table_name = 'spaces' AND space.new_row ->> 'id' = fidget.old_row ->> 'space_id'
                AND (space.new_row ->> 'is_public') <> (fidget.old_context ->> 'is_public')";
        assert_eq!(db.raw.value(wrong), "0");
        let order = "SELECT count(*) FROM (
                SELECT old_row ->> 'space_id' AS space, lag(old_row ->> 'space_id') OVER (ORDER BY id) AS space_before
                FROM townsquare.changes WHERE kind = 'delete' AND table_name = 'fidgets' AND old_row ->> 'type' <> 'alone'
            ) AS deleted WHERE space <> space_before";
        assert_eq!(db.raw.value(order), "19");
    }

    fn truncate_deletes_each_row(db: &TestDatabase) {
        start(db);
        add_fidget(&db.raw, "clock");
        db.raw.run("TRUNCATE spaces CASCADE");
        assert_eq!(entries(db)[1..], ["delete of spaces: 0 -> ", "delete of fidgets: clock -> "]);
    }

    fn truncate_of_users_ends_their_sessions_and_deletes_their_files(db: &TestDatabase) {
        start(db);
        db.raw.run(&format!(
            "INSERT INTO townsquare.sessions VALUES ('a', gen_random_uuid(), '{OWNER}', 'r', now(), now(), now());
             INSERT INTO townsquare.files (bucket, path, access, first_segment, owner_id, size, content_type,
                 cache_control, etag, is_inline, updated_at)
                 VALUES ('assets', 'a', 'public', 'a', '{OWNER}', 1, 'text/plain', 0, 'e', true, now())"
        ));
        db.raw.run("TRUNCATE users CASCADE");
        let mut deleted = entries(db).split_off(2);
        // The order of the tables is PostgreSQL's.
        deleted.sort_unstable();
        let expected = ["delete of files:  -> ", "delete of spaces: 0 -> ", "delete of users:  -> ", "session_ended of users:  -> "];
        assert_eq!(deleted, expected);
    }

    fn a_change_of_the_key_has_both_keys(db: &TestDatabase) {
        start(db);
        db.raw.run("UPDATE spaces SET id = '00000000-0000-0000-0001-000000000002'");
        let keys = "SELECT (old_row::json ->> 'id') || ' ' || (new_row::json ->> 'id') FROM townsquare.changes WHERE id > 2";
        assert_eq!(db.raw.value(keys), format!("{SPACE} 00000000-0000-0000-0001-000000000002"));
    }

    fn the_role_of_callers_writes_entries_by_its_changes_only(db: &TestDatabase) {
        start(db);
        let caller = connect(db);
        caller.run(&format!("SET ROLE {}", callers_role(&db.raw)));
        for refused in [
            "SELECT 1 FROM townsquare.changes",
            "SELECT 1 FROM townsquare.changes_page(0, '', NULL, 9, '{}')",
            "INSERT INTO townsquare.changes (id, table_name, kind) VALUES (9, 'spaces', 'insert')",
            "SELECT townsquare.next_entry()",
            "DELETE FROM townsquare.changes",
            "SELECT townsquare.prune_changes(0, 0, 0, NULL, 9)",
            "SELECT townsquare.set_capture(false)",
            "UPDATE townsquare.feed SET is_on = false",
            "SELECT setval('townsquare.changes_id', 1)",
            "SELECT setval('townsquare.listening_until', 1)",
        ] {
            let error = caller.try_rows(refused).expect_err(refused);
            assert!(error.contains("permission denied") || error.contains("must be owner"), "{refused}: {error}");
        }
        assert!(entries(db).is_empty());
    }

    fn the_search_path_of_a_writer_has_no_effect_on_the_triggers(db: &TestDatabase) {
        start(db);
        let writer = connect(db);
        writer.run("CREATE SCHEMA hostile; CREATE TEMP TABLE changes (id INT)");
        for (function, result) in [
            ("lower(TEXT)", "TEXT"),
            ("row_to_json(RECORD)", "JSON"),
            ("current_setting(TEXT, BOOLEAN)", "TEXT"),
            ("set_config(TEXT, TEXT, BOOLEAN)", "TEXT"),
            ("pg_current_xact_id()", "XID8"),
            ("pg_sequence_last_value(REGCLASS)", "BIGINT"),
            ("compare(BOOLEAN, BOOLEAN)", "BOOLEAN"),
            ("compare(UUID, UUID)", "BOOLEAN"),
            ("compare(TEXT, TEXT)", "BOOLEAN"),
            ("combine(BIGINT, BIGINT)", "BIGINT"),
            ("shift(BIGINT, INT)", "BIGINT"),
        ] {
            let body = "LANGUAGE plpgsql AS 'BEGIN RAISE ''called''; END'";
            writer.run(&format!("CREATE FUNCTION hostile.{function} RETURNS {result} {body}"));
        }
        for (operator, left, right, function) in [
            ("=", "BOOLEAN", "BOOLEAN", "compare"),
            ("<>", "BOOLEAN", "BOOLEAN", "compare"),
            ("=", "UUID", "UUID", "compare"),
            ("<>", "UUID", "UUID", "compare"),
            ("=", "TEXT", "TEXT", "compare"),
            ("<>", "TEXT", "TEXT", "compare"),
            ("|", "BIGINT", "BIGINT", "combine"),
            ("<<", "BIGINT", "INT", "shift"),
        ] {
            let operands = format!("LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = hostile.{function}");
            writer.run(&format!("CREATE OPERATOR hostile.{operator} ({operands})"));
        }
        writer.run("SET search_path = hostile, pg_catalog, public");
        writer.run(&format!("INSERT INTO fidgets (space_id, type) VALUES ('{SPACE}', 'clock')"));
        writer.run("UPDATE public.spaces SET name = '1', is_public = true");
        // A transaction that is older than a millisecond marks itself.
        writer.run("BEGIN; SELECT pg_sleep(0.01); UPDATE public.spaces SET owner_id = NULL; COMMIT");
        writer.run("DELETE FROM public.spaces");
        assert_eq!(entries(db), [
            "insert of fidgets:  -> clock",
            "visibility of fidgets:  -> clock",
            "update of spaces: 0 -> 1",
            "visibility of fidgets:  -> clock",
            "update of spaces: 1 -> 1",
            "delete of spaces: 1 -> ",
            "delete of fidgets: clock -> ",
        ]);
    }

    fn a_transaction_with_many_entries_takes_few_locks(db: &TestDatabase) {
        start(db);
        let open = connect(db);
        // In one message, so that the transaction is young when the first row is written.
        open.run("BEGIN; INSERT INTO spaces (name) SELECT 'x' FROM generate_series(1, 20000)");
        let locks = db.raw.count(
            "pg_locks WHERE locktype = 'advisory' AND classid::bigint >> 16 = 29809
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        assert!((1..2_000).contains(&locks), "{locks} locks");
        assert!(entries(db).is_empty(), "no entry is committed");
        open.run("COMMIT");
        assert_eq!(entries(db).len(), 20_000);
    }

    fn entries_of_sessions_have_no_hash_of_a_token(db: &TestDatabase) {
        start(db);
        db.raw.run(&format!(
            "INSERT INTO townsquare.sessions VALUES ('hash-of-access', gen_random_uuid(), '{OWNER}', 'hash-of-refresh', now(), now(), now())"
        ));
        db.raw.run("DELETE FROM townsquare.sessions");
        assert_eq!(entries(db), ["session_started of users:  -> ", "session_ended of users:  -> "]);
        assert_eq!(db.raw.count("townsquare.changes AS entry WHERE entry::text LIKE '%hash-of%'"), 0);
    }

    fn pruning_deletes_the_oldest_entries_beyond_the_limit_in_steps(db: &TestDatabase) {
        start(db);
        for number in 1..=20 {
            rename(&db.raw, &number.to_string());
        }
        let prune = |keep: &str| db.raw.value(&format!("SELECT townsquare.prune_changes(10, 1000000000, 3600000000, {keep}, 5)"));
        assert_eq!(prune("3"), "f", "a reader is at the third entry");
        assert_eq!(db.raw.value("SELECT min(id) FROM townsquare.changes"), "4");
        assert_eq!([prune("NULL"), prune("NULL"), prune("NULL")], ["t", "f", "f"]);
        assert_eq!(db.raw.value("SELECT min(id) FROM townsquare.changes"), "13");
        let pruned = db.raw.try_rows("SELECT 1 FROM townsquare.check_point(11, '11:1:1')");
        assert!(pruned.expect_err("pruned").contains("no longer has what follows the cursor"));
        assert_eq!(db.raw.count("townsquare.changes WHERE id > 12"), 10);
    }
}
