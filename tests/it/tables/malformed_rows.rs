//! Rows that got past the CHECKs, in an older database or by another program: they never make a list unreadable.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use jiff::Timestamp;
use townsquare::{
    Error, ErrorKind, Uuid,
    communities::{DomainType, SpaceType},
    spaces::{Fidget, NewSpace, Space},
};
use townsquare_tests::{
    on_both_engines, on_engine,
    test_database::{Engine, TestDatabase},
};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Counts the warnings of this thread.
struct WarningCounter(Arc<AtomicUsize>);

impl Subscriber for WarningCounter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().starts_with("townsquare")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The result of `call` and the number of warnings that it logs on this thread.
fn with_warnings<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let result = tracing::subscriber::with_default(WarningCounter(Arc::clone(&count)), call);
    (result, count.load(Ordering::Relaxed))
}

/// Runs SQL that the CHECKs would refuse.
fn write_unchecked(db: &TestDatabase, sql: &str) {
    if db.engine == Engine::Sqlite {
        db.raw.run(&format!("PRAGMA ignore_check_constraints = ON; {sql}; PRAGMA ignore_check_constraints = OFF"));
    } else {
        db.raw.run(sql);
    }
}

/// Deletes the rows, so that the integrity check at the end of a test passes.
fn delete_all(db: &TestDatabase) {
    db.raw.run("DELETE FROM fidgets; DELETE FROM spaces; DELETE FROM \"spaceRegistrations\"");
}

fn public_spaces(db: &TestDatabase) -> Vec<Space> {
    let page = db.client.spaces().get_public_spaces(100, 0).expect("a readable list");
    page.into_iter().map(|space| space.space).collect()
}

fn fidgets(db: &TestDatabase, space: Uuid) -> Vec<Fidget> {
    db.client.fidgets().get_space_fidgets(space).expect("a readable list")
}

#[track_caller]
fn assert_unreadable<T>(result: Result<T, Error>, column: &str) {
    let error = result.err().expect("unreadable");
    assert_eq!(
        (error.kind(), error.code(), error.column()),
        (ErrorKind::Internal, Some("XX001"), Some(column)),
        "{error:?}"
    );
    assert!(error.message().contains(&format!("column {column} of a row")), "{error}");
}

on_both_engines! {
    fn an_infinite_time_reads_as_the_nearest_time(db: &TestDatabase) {
        let owner = db.user();
        let (late, early, good) =
            (db.public_space(owner, "late"), db.public_space(owner, "early"), db.public_space(owner, "good"));
        write_unchecked(db, &format!("UPDATE spaces SET created_at = 'infinity' WHERE id = '{}'", late.id));
        write_unchecked(db, &format!(
            "UPDATE spaces SET created_at = '-infinity', updated_at = 'infinity' WHERE id = '{}'", early.id
        ));
        let read = |id: Uuid| db.client.spaces().get_space(id).expect("readable");
        assert_eq!(read(late.id).created_at, Timestamp::MAX);
        assert_eq!((read(early.id).created_at, read(early.id).updated_at), (Timestamp::MIN, Timestamp::MAX));
        let (listed, warnings) = with_warnings(|| public_spaces(db));
        assert_eq!((listed.len(), warnings), (3, 1), "one warning for the list");
        assert!(listed.contains(&good) && listed.contains(&read(late.id)) && listed.contains(&read(early.id)));
        let pages = db.client.spaces().iter_public_spaces(1).map(|space| space.expect("a row").space.id);
        assert_eq!(pages.collect::<Vec<_>>(), [late.id, good.id, early.id], "pages go on behind each of them, and end");
        let (_, warnings) = with_warnings(|| read(good.id));
        assert_eq!(warnings, 0);
        assert_eq!(db.client.spaces().get_user_spaces(owner).expect("a list").len(), 3);
        delete_all(db);
    }

    fn a_time_out_of_range_reads_as_the_nearest_time(db: &TestDatabase) {
        let (late, early) = (db.space(), db.space());
        let (last, first) = match db.engine {
            Engine::Sqlite => ("9999-12-31T23:59:59.999999Z", "-009999-01-01T00:00:00.000000+23:00"),
            Engine::Postgres => ("infinity", "-infinity"),
        };
        for (space, time) in [(&late, last), (&early, first)] {
            write_unchecked(db, &format!("UPDATE spaces SET created_at = '{time}' WHERE id = '{}'", space.id));
        }
        let read = |id: Uuid| db.service.spaces().get_space(id).expect("readable").created_at;
        assert_eq!((read(late.id), read(early.id)), (Timestamp::MAX, Timestamp::MIN));
        for (space, time) in [(&late, "9999-12-31T23:59:59.999999Z"), (&early, "9999-12-31 23:59:59")] {
            write_unchecked(db, &format!("UPDATE spaces SET created_at = '{time}' WHERE id = '{}'", space.id));
        }
        assert_eq!((read(late.id), read(early.id)), (Timestamp::MAX, Timestamp::MAX));
        let day = |text: &str| text.parse::<Timestamp>().expect("a time");
        write_unchecked(db, &format!("UPDATE spaces SET created_at = '2024-02-03 04:05:06' WHERE id = '{}'", early.id));
        assert_eq!(read(early.id), day("2024-02-03T04:05:06Z"), "a time without zone is in UTC");
        delete_all(db);
    }

    fn json_that_cannot_be_read_leaves_one_fidget_out(db: &TestDatabase) {
        let space = db.public_space(db.user(), "shown");
        let (bad, good) = (db.fidget(space.id, "bad"), db.fidget(space.id, "good"));
        let json = if db.engine == Engine::Sqlite { "{\"a\": " } else { "[1e400]" };
        write_unchecked(db, &format!("UPDATE fidgets SET config = '{json}' WHERE id = '{}'", bad.id));
        assert_eq!(fidgets(db, space.id), std::slice::from_ref(&good));
        let found = db.client.spaces().get_space_with_fidgets(space.id).expect("a readable space");
        assert_eq!((&found.space, &found.fidgets[..]), (&space, &[good.clone()][..]));
        let spaces = db.client.spaces().get_user_spaces(space.owner_id.expect("owned")).expect("a readable list");
        assert_eq!(spaces[0], found);
        assert_unreadable(db.client.fidgets().get_fidget(bad.id), "config");
        // A page of one row is not empty because its row cannot be read.
        let page = |after: Option<&Fidget>| {
            db.client.fidgets().get_space_fidgets_after(space.id, 1, after.map(Into::into)).expect("a page")
        };
        assert_eq!((page(None), page(Some(&good))), (vec![good.clone()], vec![]));
        db.service.fidgets().delete_fidget(good.id).expect("deleted");
        let spaces = db.client.spaces().get_user_spaces(space.owner_id.expect("owned")).expect("a readable list");
        assert_eq!((&spaces[0].space, spaces[0].fidgets.len()), (&space, 0), "the space stays");
        delete_all(db);
    }

    fn a_word_that_the_library_does_not_know_is_read_as_other(db: &TestDatabase) {
        let space = db.space();
        if db.engine == Engine::Postgres {
            db.raw.run("ALTER TABLE \"spaceRegistrations\" DROP CONSTRAINT \"spaceRegistrations_spaceType_check\"");
        }
        write_unchecked(db, &format!(
            "INSERT INTO \"spaceRegistrations\" (\"spaceId\", \"spaceName\", \"spaceType\") VALUES ('{}', 'x', 'castle')",
            space.id
        ));
        let found = db.client.communities().get_space_registration(space.id).expect("read").expect("a row");
        assert_eq!(found.space_type, SpaceType::Other);
        delete_all(db);
    }
}

on_engine! { Sqlite in sqlite_alone;
    fn a_malformed_time_reads_as_a_time(db: &TestDatabase) {
        let space = db.public_space(db.user(), "shown");
        let times = [
            ("2026-01-02 03:04:05", "2026-01-02T03:04:05Z"),
            ("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.5Z"),
            ("2026-13-45T99:99:99.000000Z", "1970-01-01T00:00:00Z"),
            ("yesterday", "1970-01-01T00:00:00Z"),
            ("", "1970-01-01T00:00:00Z"),
        ];
        for (text, expected) in times {
            write_unchecked(db, &format!("UPDATE spaces SET created_at = '{text}'"));
            assert_eq!(public_spaces(db)[0].created_at, expected.parse().expect("a time"), "{text}");
        }
        write_unchecked(db, "UPDATE spaces SET created_at = 1700000000.5, updated_at = x'ff00'");
        let read = db.client.spaces().get_space(space.id).expect("readable");
        assert_eq!((read.created_at, read.updated_at), (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH));
        delete_all(db);
    }

    fn text_that_is_a_blob_or_not_utf8_reads_lossily(db: &TestDatabase) {
        let space = db.public_space(db.user(), "shown");
        let texts = [("CAST(x'61ff62' AS TEXT)", "a\u{fffd}b"), ("x'6162'", "ab"), ("x'c328'", "\u{fffd}("), ("42", "42")];
        for (sql, expected) in texts {
            write_unchecked(db, &format!("UPDATE spaces SET name = {sql}, description = {sql}"));
            let (listed, warnings) = with_warnings(|| public_spaces(db));
            assert_eq!((listed[0].name.as_str(), listed[0].description.as_deref()), (expected, Some(expected)), "{sql}");
            assert_eq!(warnings, usize::from(sql != "42"), "{sql}: column affinity makes the number a text");
        }
        assert_eq!(db.client.spaces().get_space(space.id).expect("readable").name, "42");
    }

    fn an_unreadable_id_or_flag_leaves_one_space_out(db: &TestDatabase) {
        let owner = db.user();
        let (good, bad) = (db.public_space(owner, "good"), db.public_space(owner, "bad"));
        let restore = format!("UPDATE spaces SET id = '{}', owner_id = '{owner}' WHERE name = 'bad'", bad.id);
        db.raw.run("PRAGMA foreign_keys = OFF");
        for change in ["id = 'not a uuid'", "id = upper(id) || 'x'", "owner_id = 'nobody'"] {
            write_unchecked(db, &format!("UPDATE spaces SET {change} WHERE name = 'bad'"));
            let (listed, warnings) = with_warnings(|| public_spaces(db));
            assert_eq!((listed, warnings), (vec![good.clone()], 1), "{change}");
            // A page of one row is not empty because its row cannot be read.
            let mut spaces = db.client.spaces().iter_public_spaces(1);
            assert_eq!(spaces.next().expect("one").expect("readable").id, good.id, "{change}");
            assert!(spaces.next().is_none(), "{change}");
            if change.starts_with("owner_id") {
                assert_unreadable(db.service.spaces().get_space(bad.id), "owner_id");
                assert_unreadable(db.service.spaces().create_spaces(vec![
                    NewSpace::named("bad").public().with_id(bad.id)
                ]), "owner_id");
            }
            write_unchecked(db, &restore);
        }
        assert_eq!(public_spaces(db).len(), 2);
        db.community("town");
        db.service.communities().save_community_domain("town", "x.example", DomainType::Custom).expect("saved");
    }
}
