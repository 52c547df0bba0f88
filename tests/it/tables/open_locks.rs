//! The locks of `open` on PostgreSQL (DESIGN 3): a further `open` beside long transactions of others stalls no query.

use std::thread;

use townsquare_tests::{on_engine, raw_sql::RawConnection, test_database::TestDatabase, wait::wait_until};

/// The tables of SPEC 2, quoted for SQL.
const TABLES: [&str; 6] =
    ["community_configs", "community_domains", "\"spaceRegistrations\"", "users", "spaces", "fidgets"];

/// Connects with a transaction that holds this lock of these tables until its end.
fn hold(db: &TestDatabase, tables: &[&str], mode: &str) -> RawConnection {
    let raw = RawConnection::postgres(&db.url()).expect("the server runs");
    raw.run(&format!("BEGIN; LOCK TABLE {} IN {mode} MODE", tables.join(", ")));
    raw
}

/// Counts the requests for an exclusive lock of one of our tables that wait. Meanwhile, later requests wait as well.
fn waiting_exclusive_locks(db: &TestDatabase) -> usize {
    let tables = TABLES.map(|table| format!("'{table}'::regclass")).join(", ");
    db.raw.count(&format!(
        "pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND relation IN ({tables})
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ))
}

/// Runs queries of each caller.
fn query(db: &TestDatabase, space: &townsquare::spaces::Space) {
    assert_eq!(db.service.spaces().get_space(space.id).expect("read"), *space);
    db.client.spaces().get_public_spaces(10, 0).expect("a list");
}

on_engine! { Postgres in postgres;
    /// The reader has read every table, and the writer has written to each. An `open` that had to change a table would
    /// wait for them, and fail at the end of the operation timeout.
    fn open_beside_long_transactions_and_a_new_table_changes_and_locks_nothing(db: &TestDatabase) {
        let space = db.space();
        db.raw.run("CREATE TABLE notes (id INTEGER PRIMARY KEY, space_id UUID); GRANT SELECT ON notes TO PUBLIC");
        let reader = hold(db, &TABLES, "ACCESS SHARE");
        let writer = hold(db, &TABLES, "ROW EXCLUSIVE");
        let creator = RawConnection::postgres(&db.url()).expect("the server runs");
        creator.run("BEGIN; CREATE TABLE drafts (id INTEGER)");
        thread::scope(|scope| {
            let opening = scope.spawn(|| {
                for _ in 0..5 {
                    db.another().close();
                }
            });
            while !opening.is_finished() {
                assert_eq!(waiting_exclusive_locks(db), 0);
                query(db, &space);
            }
            opening.join().expect("it opens while the transactions go on");
        });
        for transaction in [reader, writer, creator] {
            transaction.run("COMMIT");
        }
    }

    /// A changed table is locked to repair its policies: `open` waits for the reader, but other queries go on in between.
    fn queries_go_on_while_open_waits_for_a_table_that_it_has_to_change(db: &TestDatabase) {
        let space = db.space();
        db.raw.run("DROP POLICY townsquare_delete ON spaces");
        let reader = hold(db, &["spaces"], "ACCESS SHARE");
        thread::scope(|scope| {
            let opening = scope.spawn(|| db.another().close());
            for _ in 0..2 {
                wait_until("open waits for the table", || waiting_exclusive_locks(db) == 1);
                query(db, &space);
                wait_until("open lets others pass", || waiting_exclusive_locks(db) == 0);
            }
            assert!(!opening.is_finished(), "the reader goes on");
            reader.run("COMMIT");
            opening.join().expect("it opens");
        });
        assert_eq!(db.raw.count("pg_policy WHERE polrelid = 'spaces'::regclass AND polname = 'townsquare_delete'"), 1);
        query(db, &space);
    }
}
