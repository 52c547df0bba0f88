//! Writers of a remote store that die, lose their lease, or do not learn what became of a call (DESIGN 7).

use std::{sync::mpsc, thread, time::Duration};

use townsquare::{
    Error, ErrorKind, Uuid,
    auth::SignOutScope,
    blocking::{Client, wait},
    spaces::NewSpace,
    storage::FileInfo,
};
use townsquare_tests::{
    fixture::assert_kind,
    raw_sql::RawConnection,
    test_database::Engine,
    wait::{DEADLINE, wait_until},
};

use super::{
    files::own,
    fixture::{Fixture, SignedInUser, Store, assert_refused, bytes, put},
};

const SIZE: usize = 100_000;

/// The longest time for which a dead writer may block its path.
const LONGEST_LEASE: i64 = 20;

fn each_engine(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(fixture) = Fixture::on(engine, Store::S3(0)) {
            test(&fixture);
        }
    }
}

fn count(fixture: &Fixture, from: &str) -> String {
    fixture.db.raw.value(&own(fixture, &format!("SELECT count(*) FROM townsquare.{from}")))
}

/// Runs an upload that may wait for ever, for as long as a test waits.
fn put_within_deadline(client: &Client, seed: u8) -> Result<FileInfo, Error> {
    let (client, (done, ends)) = (client.clone(), mpsc::channel());
    thread::spawn(move || drop(done.send(put(&client, "assets", "a", bytes(SIZE, seed)))));
    ends.recv_timeout(DEADLINE).expect("the upload ends")
}

fn assert_file(fixture: &Fixture, info: &FileInfo, seed: u8) {
    assert_eq!(fixture.db.service.storage().stat("assets", "a").expect("found"), *info);
    assert!(fixture.get("assets", "a") == bytes(SIZE, seed));
}

fn assert_clean(fixture: &Fixture) {
    let report = fixture.db.service.storage().repair().expect("repaired");
    assert_eq!((report.rows_removed, &report.mismatched[..]), (0, &[][..]), "{report:?}");
    assert_eq!(count(fixture, "file_intents"), "0");
    // A call that fails gives its lease back after its answer.
    wait_until("no call has a lease", || count(fixture, "leases") == "0");
}

#[test]
fn a_copy_that_completes_after_its_time_limit_becomes_the_file() {
    each_engine(|fixture| {
        let old = fixture.put("assets", "a", bytes(SIZE, 1));
        let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
        let error = put(&fixture.db.service, "assets", "a", bytes(SIZE, 2)).expect_err("the server does not answer");
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Unavailable, Some("08007")),
            "it may happen later: {error:?}"
        );
        assert_file(fixture, &old, 1);
        drop(late);
        let object = fixture.s3.as_ref().expect("a server").folder().join("objects/assets/a");
        wait_until("the copy lands", || std::fs::read(&object).is_ok_and(|found| found == bytes(SIZE, 2)));
        assert!(fixture.get("assets", "a") == bytes(SIZE, 2));
        assert_clean(fixture);
        let new = fixture.put("assets", "a", bytes(SIZE, 3));
        assert_file(fixture, &new, 3);
    });
}

/// A trigger takes a table away when the intent is committed, so that the next statement of the upload fails.
#[test]
fn an_upload_that_fails_after_its_intent_is_in_doubt() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::S3(0)) else { return };
    let (db, old) = (&fixture.db, fixture.put("assets", "a", bytes(SIZE, 1)));
    db.raw.run(
        "CREATE FUNCTION public.take_away() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
            ALTER TABLE townsquare.file_outbox RENAME TO taken_away; RETURN NULL; END $$",
    );
    db.raw.run(
        "CREATE CONSTRAINT TRIGGER take_away AFTER INSERT ON townsquare.file_intents DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION public.take_away()",
    );
    let error = put(&db.service, "assets", "a", bytes(SIZE, 2)).expect_err("a table is gone");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("08007")), "{error:?}");
    assert_eq!(count(&fixture, "file_intents"), "1");
    db.raw.run("DROP FUNCTION public.take_away CASCADE; ALTER TABLE townsquare.taken_away RENAME TO file_outbox");
    let new = fixture.put("assets", "a", bytes(SIZE, 3));
    assert!(new.etag != old.etag);
    assert_file(&fixture, &new, 3);
    assert_clean(&fixture);
}

#[test]
fn a_write_wins_over_an_earlier_copy_that_completes_later() {
    each_engine(|fixture| {
        fixture.put("assets", "a", bytes(SIZE, 1));
        let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
        put(&fixture.db.service, "assets", "a", bytes(SIZE, 2)).expect_err("the server does not answer");
        drop(late);
        let new = fixture.put("assets", "a", bytes(SIZE, 3));
        assert_file(fixture, &new, 3);
        assert_clean(fixture);
        let staged = fixture.s3.as_ref().expect("a server").folder().join("objects/.townsquare/staging");
        wait_until("no stage is left", || std::fs::read_dir(&staged).map_or(0, Iterator::count) == 0);
    });
}

#[test]
fn repair_gives_a_file_the_version_that_its_object_has() {
    each_engine(|fixture| {
        let info = fixture.put("assets", "a", bytes(SIZE, 1));
        // As a copy leaves it that lands after the object of a later write.
        fixture.db.raw.run(&own(fixture, "UPDATE townsquare.files SET etag = 'later', size = size + 1, digest = 'x'"));
        let damaged = fixture.db.service.storage().download("assets", "a");
        damaged.expect_err("the bytes are of another version");
        let report = fixture.db.service.storage().repair().expect("repaired");
        assert_eq!((report.finished, report.rows_removed, &report.mismatched[..]), (1, 0, &[][..]));
        let found = fixture.db.service.storage().stat("assets", "a").expect("found");
        assert_eq!((found.size, &found.etag), (info.size, &info.etag));
        assert!(fixture.get("assets", "a") == bytes(SIZE, 1));
    });
}

#[test]
fn bytes_of_another_version_are_an_error() {
    each_engine(|fixture| {
        fixture.put("assets", "a", bytes(SIZE, 1));
        fixture.db.raw.run(&own(fixture, "UPDATE townsquare.files SET etag = 'later'"));
        let message = "Download failed: Storage error: The stored bytes are of another version than the file";
        let damaged = fixture.db.service.storage().download("assets", "a");
        assert_refused(damaged, ErrorKind::Internal, 500, message);
    });
}

/// The SQL of a lease of the path `a` that ends in this many seconds.
fn lease(fixture: &Fixture, seconds: i64) -> String {
    let end = match fixture.db.engine {
        Engine::Sqlite => {
            let now = townsquare_tests::fixture::start_time();
            let later = now.checked_add(jiff::SignedDuration::from_secs(seconds)).expect("in range");
            format!("'{later:.6}'")
        }
        Engine::Postgres => format!("now() + interval '{seconds} seconds'"),
    };
    let sql = "INSERT INTO townsquare.leases (name, holder, held_until, token) VALUES ('file:assets/a', 'dead', {}, 1)";
    own(fixture, &sql.replace("{}", &end))
}

#[test]
fn a_lease_in_the_future_is_free() {
    each_engine(|fixture| {
        let old = fixture.put("assets", "a", bytes(SIZE, 1));
        fixture.db.raw.run(&lease(fixture, 3_600));
        assert_file(fixture, &old, 1);
        let new = put_within_deadline(&fixture.db.service, 2).expect("the holder is dead");
        assert_file(fixture, &new, 2);
        assert_clean(fixture);
    });
}

#[test]
fn readers_go_on_with_the_old_version_while_a_dead_writer_holds_the_lease() {
    each_engine(|fixture| {
        let old = fixture.put("assets", "a", bytes(SIZE, 1));
        let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
        put(&fixture.db.service, "assets", "a", bytes(SIZE, 2)).expect_err("the server does not answer");
        // The writer dies before it releases the lease: the intent and the lease stay.
        fixture.db.raw.run(&lease(fixture, 10));
        assert_eq!(count(fixture, "file_intents"), "1");
        assert_file(fixture, &old, 1);
        drop(late);
    });
}

/// Starts an upload whose copy the server holds back, and runs `meanwhile`.
fn during_upload(fixture: &Fixture, meanwhile: impl FnOnce()) -> Result<FileInfo, Error> {
    let held = fixture.s3.as_ref().expect("a server").hold_copies();
    thread::scope(|scope| {
        let upload = scope.spawn(|| put(&fixture.db.service, "assets", "a", bytes(SIZE, 2)));
        wait_until("the intent is written", || count(fixture, "file_intents") == "1");
        meanwhile();
        drop(held);
        upload.join().expect("no panic")
    })
}

/// What takes the right to a file away, and the bucket of the file.
type Revocation = (&'static str, &'static str, fn(&Fixture, &SignedInUser, Uuid));

const REVOCATIONS: [Revocation; 7] = [
    ("a new password", "private", |fixture, user, _| {
        fixture.db.service.auth().set_password(user.id, "another horse").expect("set");
    }),
    ("a sign-out everywhere", "assets", |_, user, _| {
        user.client.auth().sign_out_scope(SignOutScope::Global).expect("signed out");
    }),
    ("no owner of the space", "spaces", |fixture, _, space| {
        fixture.db.raw.run(&format!("UPDATE spaces SET owner_id = NULL WHERE id = '{space}'"));
    }),
    ("a new owner of the space", "spaces", |fixture, _, space| {
        let other = fixture.signed_in_user(&format!("other-{}", Uuid::new_v4().simple())).id;
        fixture.db.service.spaces().set_owner(space, other).expect("set");
    }),
    ("the end of the user with a space", "spaces", |fixture, user, _| {
        fixture.db.service.auth().delete_user(user.id).expect("deleted");
    }),
    ("the end of the user with private files", "private", |fixture, user, _| {
        fixture.db.service.auth().delete_user(user.id).expect("deleted");
    }),
    ("the end of the user with shared files", "assets", |fixture, user, _| {
        fixture.db.service.auth().delete_user(user.id).expect("deleted");
    }),
];

/// Calls `test` with a user, the bucket and the path of a file of the user, and the revocation.
fn each_revocation(fixture: &Fixture, test: impl Fn(&SignedInUser, &str, &str, &dyn Fn())) {
    for (number, (name, bucket, revoke)) in REVOCATIONS.into_iter().enumerate() {
        let user = fixture.signed_in_user(&format!("user-{number}"));
        let space = user.client.spaces().create_space(NewSpace::named(name)).expect("created").id;
        let path = if bucket == "private" { format!("{}/tabs/Home", user.id) } else { format!("{space}/tabs/Home") };
        test(&user, bucket, &path, &|| revoke(fixture, &user, space));
    }
}

fn assert_no_file(fixture: &Fixture, bucket: &str, path: &str) {
    let found = fixture.db.service.storage().stat(bucket, path);
    assert_refused(found, ErrorKind::NotFound, 404, "Get file failed: File not found");
}

#[test]
fn a_revocation_ends_a_new_upload_in_doubt() {
    each_engine(|fixture| {
        each_revocation(fixture, |user, bucket, path, revoke| {
            let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
            let error = put(&user.client, bucket, path, bytes(SIZE, 1)).expect_err("the server does not answer");
            assert_eq!(error.code(), Some("08007"), "{error:?}");
            revoke();
            drop(late);
            assert_no_file(fixture, bucket, path);
            assert_clean(fixture);
            assert_no_file(fixture, bucket, path);
        });
    });
}

/// The store has not begun the copy when the upload is ended.
#[test]
fn the_late_copy_of_an_ended_upload_replaces_no_newer_file() {
    each_engine(|fixture| {
        each_revocation(fixture, |user, bucket, path, revoke| {
            let server = fixture.s3.as_ref().expect("a server");
            let late = server.give_up_on_copies();
            put(&user.client, bucket, path, bytes(SIZE, 1)).expect_err("the server does not answer");
            revoke();
            fixture.db.service.storage().repair().expect("repaired");
            let staged = server.folder().join("objects/.townsquare/staging");
            wait_until("no stage is left", || std::fs::read_dir(&staged).map_or(0, Iterator::count) == 0);
            drop(late);
            put(&fixture.db.service, bucket, path, bytes(SIZE, 2)).expect("uploaded");
            assert_clean(fixture);
            assert!(fixture.get(bucket, path) == bytes(SIZE, 2));
            fixture.db.service.storage().delete(bucket, path).expect("deleted");
        });
    });
}

/// The transactions of the two overlap: neither sees what the other one has not committed.
#[test]
fn a_new_password_waits_for_an_upload_that_is_about_to_begin_and_ends_it() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::S3(0)) else { return };
    fixture.db.raw.run(
        "CREATE FUNCTION pause() RETURNS TRIGGER LANGUAGE plpgsql
             AS 'BEGIN PERFORM pg_advisory_xact_lock(1, 1); RETURN NULL; END';
         CREATE TRIGGER pause AFTER INSERT ON townsquare.file_intents FOR EACH ROW EXECUTE FUNCTION pause()",
    );
    let ann = fixture.signed_in_user("ann");
    let holder = RawConnection::postgres(&fixture.db.url()).expect("the server runs");
    holder.run("SELECT pg_advisory_lock(1, 1)");
    let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    thread::scope(|scope| {
        let upload = scope.spawn(|| put(&ann.client, "assets", "a", bytes(SIZE, 1)));
        wait_until("the upload begins", || fixture.db.raw.count(waiting) == 1);
        let password = scope.spawn(|| fixture.db.service.auth().set_password(ann.id, "another horse"));
        wait_until("the new password waits for the upload", || fixture.db.raw.count(waiting) == 2);
        holder.run("SELECT pg_advisory_unlock(1, 1)");
        password.join().expect("no panic").expect("set");
        let error = upload.join().expect("no panic").expect_err("the right is gone");
        assert_eq!(error.status(), 401, "{error:?}");
    });
    assert_no_file(&fixture, "assets", "a");
    assert_clean(&fixture);
}

/// Every role can take the lock that uploads share.
#[test]
fn a_lock_that_a_stranger_holds_does_not_stop_a_new_password() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::S3(0)) else { return };
    let ann = fixture.signed_in_user("ann");
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock(townsquare.space_lock('{}'))", ann.id);
    let stranger = RawConnection::postgres(&fixture.db.url()).expect("the server runs");
    stranger.run(&lock);
    fixture.db.service.auth().set_password(ann.id, "another horse").expect("set");
    assert_kind(ErrorKind::Unauthorized, ann.client.spaces().get_public_spaces(1, 0));
    stranger.run("ROLLBACK");
}

/// The store does not carry the copy out, and may do so for a while.
#[test]
fn a_revocation_ends_an_upload_in_doubt_over_a_file() {
    each_engine(|fixture| {
        each_revocation(fixture, |user, bucket, path, revoke| {
            let old = put(&user.client, bucket, path, bytes(SIZE, 1)).expect("uploaded");
            let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
            let error = put(&user.client, bucket, path, bytes(SIZE, 2)).expect_err("the server does not answer");
            assert_eq!(error.code(), Some("08007"), "{error:?}");
            revoke();
            let service = fixture.db.service.storage();
            if service.exists(bucket, path).expect("asked") {
                fixture.db.elapse(Duration::from_secs(30));
                assert_kind(ErrorKind::Unavailable, put(&fixture.db.service, bucket, path, bytes(SIZE, 3)));
                fixture.db.elapse(Duration::from_secs(31));
                service.repair().expect("repaired");
                assert_eq!(service.stat(bucket, path).expect("found").etag, old.etag);
                assert!(fixture.get(bucket, path) == bytes(SIZE, 1));
            } else {
                fixture.db.elapse(Duration::from_secs(61));
                assert_no_file(fixture, bucket, path);
            }
            assert_clean(fixture);
            drop(late);
        });
    });
}

/// The store carries the copy out after all: the bytes of the old file are gone.
#[test]
fn an_upload_over_a_file_whose_bytes_are_installed_is_completed() {
    each_engine(|fixture| {
        let ann = fixture.signed_in_user("ann");
        put(&ann.client, "assets", "a", bytes(SIZE, 1)).expect("uploaded");
        let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
        put(&ann.client, "assets", "a", bytes(SIZE, 2)).expect_err("the server does not answer");
        fixture.db.service.auth().set_password(ann.id, "another horse").expect("set");
        drop(late);
        let object = fixture.s3.as_ref().expect("a server").folder().join("objects/assets/a");
        wait_until("the copy lands", || std::fs::read(&object).is_ok_and(|found| found == bytes(SIZE, 2)));
        fixture.db.service.storage().repair().expect("repaired");
        assert!(fixture.get("assets", "a") == bytes(SIZE, 2));
        assert_clean(fixture);
    });
}

#[test]
fn a_revocation_ends_a_new_upload_whose_bytes_are_being_installed() {
    each_engine(|fixture| {
        each_revocation(fixture, |user, bucket, path, revoke| {
            let held = fixture.s3.as_ref().expect("a server").hold_copies();
            let uploaded = thread::scope(|scope| {
                let upload = scope.spawn(|| put(&user.client, bucket, path, bytes(SIZE, 1)));
                wait_until("the intent is written", || count(fixture, "file_intents") == "1");
                revoke();
                drop(held);
                upload.join().expect("no panic")
            });
            let error = uploaded.expect_err("the right is gone");
            assert!(matches!(error.status(), 401 | 403), "{error:?}");
            assert_no_file(fixture, bucket, path);
            assert_clean(fixture);
        });
    });
}

#[test]
fn a_deletion_cancels_a_new_upload_in_doubt() {
    each_engine(|fixture| {
        let (ann, ben) = (fixture.signed_in_user("ann"), fixture.signed_in_user("ben"));
        type Delete = fn(&Client) -> Result<(), Error>;
        let deletions: [Delete; 2] = [
            |client| client.storage().delete("assets", "of ann/a"),
            |client| client.storage().delete_prefix("assets", "of ann/").map(drop),
        ];
        for delete in deletions {
            let late = fixture.s3.as_ref().expect("a server").give_up_on_copies();
            put(&ann.client, "assets", "of ann/a", bytes(SIZE, 1)).expect_err("the server does not answer");
            // Of others, nobody learns that it is there.
            assert_kind(ErrorKind::NotFound, ben.client.storage().delete("assets", "of ann/a"));
            assert_kind(ErrorKind::NotFound, ann.client.storage().delete("assets", "of ann"));
            assert_eq!(ben.client.storage().delete_prefix("assets", "").expect("deleted"), 0);
            assert_eq!(count(fixture, "file_intents"), "1");
            delete(&ann.client).expect("cancelled");
            assert_kind(ErrorKind::NotFound, ann.client.storage().delete("assets", "of ann/a"));
            // The source of the copy is gone.
            drop(late);
            assert_clean(fixture);
            assert!(!fixture.db.client.storage().exists("assets", "of ann/a").expect("asked"));
        }
    });
}

#[test]
fn a_lease_is_short_and_is_renewed_while_its_holder_works() {
    let fixture = Fixture::on(Engine::Sqlite, Store::S3(0)).expect("SQLite is always there");
    fixture.put("assets", "a", bytes(SIZE, 1));
    let end = || {
        let end = fixture.db.raw.value("SELECT held_until FROM townsquare_leases");
        end.parse::<jiff::Timestamp>().expect("a time")
    };
    let now = townsquare_tests::fixture::start_time();
    let uploaded = during_upload(&fixture, || {
        let first = end();
        assert!(first.duration_since(now).as_secs() <= LONGEST_LEASE, "{first}");
        fixture.db.elapse(Duration::from_secs(5));
        wait_until("the lease is renewed", || end().duration_since(first).as_secs() == 5);
    });
    assert_file(&fixture, &uploaded.expect("uploaded"), 2);
}

#[test]
fn a_writer_whose_lease_another_writer_took_stops() {
    each_engine(|fixture| {
        fixture.put("assets", "a", bytes(SIZE, 1));
        let held = fixture.s3.as_ref().expect("a server").hold_copies();
        thread::scope(|scope| {
            let upload = scope.spawn(|| put(&fixture.db.service, "assets", "a", bytes(SIZE, 2)));
            wait_until("the intent is written", || count(fixture, "file_intents") == "1");
            fixture.db.raw.run(&own(fixture, "UPDATE townsquare.leases SET holder = 'another'"));
            // Another writer may finish or undo the upload.
            let error = upload.join().expect("no panic").expect_err("the lease is lost");
            assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("08007")), "{error:?}");
            let cause = std::error::Error::source(&error).expect("a cause").to_string();
            assert!(cause.contains("Another writer took the lock of this path over"), "{cause}");
            assert!(!error.is_retryable());
        });
        drop(held);
        fixture.db.raw.run(&own(fixture, "DELETE FROM townsquare.leases"));
        let new = fixture.put("assets", "a", bytes(SIZE, 3));
        assert_file(fixture, &new, 3);
        assert_clean(fixture);
    });
}

#[test]
fn a_download_and_a_range_over_http_give_one_version_beside_an_overwrite() {
    let fixture = Fixture::on(Engine::Sqlite, Store::S3(0)).expect("SQLite is always there");
    let (old, new) = (bytes(3_000_000, 1), bytes(2_900_000, 2));
    for range in [None, Some(1_200_000..2_800_000)] {
        fixture.put("assets", "a", old.clone());
        let header =
            range.as_ref().map(|range| ("Range".to_owned(), format!("bytes={}-{}", range.start, range.end - 1)));
        let headers: Vec<_> = header.into_iter().collect();
        let storage = fixture.db.service.storage();
        let mut response = storage.handle_file("GET", "/assets/a", &headers, "").expect("a response");
        fixture.put("assets", "a", new.clone());
        let mut found = Vec::new();
        while let Some(chunk) = wait(response.body.next_chunk()).expect("a chunk") {
            found.extend_from_slice(&chunk);
        }
        assert!(found == old[range.unwrap_or(0..old.len())]);
    }
}
