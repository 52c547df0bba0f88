//! Operations on large tables of PostgreSQL find their rows in indexes (DESIGN 4): the statistics of the server count the rows that a
//! scan of a whole table reads.

use townsquare::{
    blocking::Client,
    storage::{ListFiles, UploadOptions},
};
use townsquare_tests::{on_engine, raw_sql::RawConnection, wait::wait_until};

const PASSWORD: &str = "correct horse battery";

/// Rows of each table.
const ROWS: usize = 5_000;

/// Rows of each large table, by the administrator: no change is logged.
fn fill(administrator: &RawConnection) {
    administrator.run(&format!(
        "SET session_replication_role = replica;
         INSERT INTO users (id, email) SELECT md5(n::text)::uuid, n || '@rows.example' FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.sessions SELECT md5('a' || n), md5(n::text)::uuid, md5(n::text)::uuid, md5('r' || n), now(),
            now() + interval '1 day', now() + interval '1 day' FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.identities SELECT md5('a' || n) || md5('b' || n), md5(n::text)::uuid, now()
            FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO spaces (id, name, owner_id, is_public) SELECT md5('s' || n)::uuid, n, md5(n::text)::uuid, n % 2 = 0
            FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO fidgets (space_id, type) SELECT md5('s' || n)::uuid, 'clock' FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.files (bucket, path, access, space_id, first_segment, owner_id, size, content_type, cache_control,
                etag, is_inline, updated_at)
            SELECT 'spaces', md5('s' || n)::uuid || '/a', 'spaces', md5('s' || n)::uuid, md5('s' || n)::uuid::text,
                md5(n::text)::uuid, 0, 'text/plain', 0, 'e', true, now() FROM generate_series(1, {ROWS}) AS n;
         INSERT INTO townsquare.file_contents SELECT bucket, path, '' FROM townsquare.files;
         RESET session_replication_role;
         ANALYZE"
    ));
}

/// The rows of the large tables that scans of whole tables have read, as `table: rows`.
fn scanned(administrator: &RawConnection) -> Vec<String> {
    let rows = administrator.rows(
        "SELECT relname || ': ' || seq_tup_read FROM pg_stat_user_tables
         WHERE relname IN ('users', 'sessions', 'identities', 'spaces', 'fidgets', 'files', 'file_contents') ORDER BY 1",
    );
    rows.into_iter().flatten().flatten().collect()
}

on_engine! { Postgres in postgres;
    fn no_operation_of_an_account_or_of_its_files_reads_a_whole_table(db: &TestDatabase) {
        let (server, database) = db.database();
        let administrator = server.administrator(database);
        fill(&administrator);
        db.client.close();
        let client = Client::open(db.config().database_url(db.url())).expect("opens");
        let service = client.as_service();
        service.realtime().start().expect("the feed is on");
        let id = client.auth().sign_up("ann@town.example", PASSWORD).expect("an account").id;
        let session = client.auth().create_session("ann@town.example", PASSWORD).expect("a session");
        let other = client.auth().create_session("ann@town.example", PASSWORD).expect("a session");
        // Besides the connection of the test.
        let backends = format!(
            "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND usename = 'app' AND pid <> {}",
            db.raw.value("SELECT pg_backend_pid()::text")
        );
        client.close();
        wait_until("the statistics are written", || administrator.value(&backends) == "0");
        let before = scanned(&administrator);
        let client = Client::open(db.config().database_url(db.url())).expect("opens");
        let [ann, at_another_place] = [&session, &other].map(|session| client.as_user(&session.access_token).expect("ann"));
        let path = format!("{id}/note.txt");
        ann.storage().upload("private", &path, "hello", UploadOptions::new()).expect("a private file");
        for caller in [&ann, &client.as_anonymous()] {
            let page = caller.storage().list("spaces", ListFiles::new().limit(10)).expect("a page");
            assert_eq!(page.len(), 10);
            let after = page.last().expect("a file").path.clone();
            let next = caller.storage().list("spaces", ListFiles::new().limit(10).after(&after)).expect("a page");
            assert!(next.len() == 10 && next[0].path > after);
        }
        at_another_place.auth().sign_out().expect("signed out");
        client.as_service().auth().delete_user(id).expect("deleted");
        client.close();
        wait_until("the statistics are written", || administrator.value(&backends) == "0");
        assert_eq!(scanned(&administrator), before);
    }
}
