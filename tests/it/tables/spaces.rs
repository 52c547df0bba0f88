//! Spaces (SPEC 2.6, 4.5): inserts, reads, partial updates, joins and cascading deletes.

use std::time::Duration;

use jiff::SignedDuration;
use townsquare::{
    ErrorKind, Uuid,
    spaces::{Change, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{on_both_engines, test_database::assert_fails};

on_both_engines! {
    fn a_created_space_is_returned_and_can_be_read(db: &TestDatabase) {
        let owner = db.user();
        let space = NewSpace::named("Plaza").description("where all meet").owned_by(owner).public();
        let space = db.service.spaces().create_space(space).expect("created");
        assert_eq!((space.name.as_str(), space.description.as_deref()), ("Plaza", Some("where all meet")));
        assert_eq!((space.owner_id, space.is_public), (Some(owner), true));
        assert_eq!((space.created_at, space.updated_at), (db.now(), db.now()));
        assert_eq!(db.service.spaces().get_space(space.id).expect("read"), space);
        assert_eq!(db.client.spaces().get_space(space.id).expect("read by nobody"), space);
        let row = db.raw.rows(&format!("SELECT name, owner_id, is_public FROM spaces WHERE id = '{}'", space.id));
        assert_eq!(row, [vec![Some("Plaza".to_owned()), Some(owner.to_string()), Some("t".to_owned())]]);
    }

    fn a_space_is_private_without_description_and_owner_by_default(db: &TestDatabase) {
        let space = db.service.spaces().create_space(NewSpace::named("bare")).expect("created");
        assert_eq!((space.description, space.owner_id, space.is_public), (None, None, false));
        let other = db.service.spaces().create_space(NewSpace::named("bare")).expect("a name may repeat");
        assert_ne!(space.id, other.id);
    }

    fn a_row_inserted_by_plain_sql_gets_the_column_defaults(db: &TestDatabase) {
        db.raw.run("INSERT INTO spaces (name) VALUES ('by hand')");
        let id = db.raw.value("SELECT id FROM spaces");
        let space = db.service.spaces().get_space(id.parse().expect("a uuid")).expect("read");
        assert_eq!((space.name.as_str(), space.is_public, space.owner_id), ("by hand", false, None));
        let age = jiff::Timestamp::now().duration_since(space.created_at);
        assert!(age.abs() < SignedDuration::from_mins(5), "created_at is the time of the insert: {age}");
        assert!(space.updated_at.duration_since(space.created_at).abs() < SignedDuration::from_secs(1));
        assert_eq!(space.id.get_version_num(), 4, "a random uuid");
    }

    fn an_update_changes_only_the_named_columns(db: &TestDatabase) {
        let space = db.space();
        let other = db.space();
        db.clock.advance(Duration::from_secs(1));
        let updated = db.service.spaces().update_space(space.id, SpacePatch::new().name("new")).expect("updated");
        let mut expected = space.clone();
        "new".clone_into(&mut expected.name);
        expected.updated_at = space.updated_at + Duration::from_secs(1);
        assert_eq!(updated, expected);
        assert_eq!(db.service.spaces().get_space(space.id).expect("read"), expected);
        assert_eq!(db.service.spaces().get_space(other.id).expect("read"), other, "the other space");
        let public = db.service.spaces().update_space(space.id, SpacePatch::new().published()).expect("updated");
        assert!(public.is_public && public.name == "new" && public.owner_id == space.owner_id);
        let hidden = db.service.spaces().update_space(space.id, SpacePatch::new().hidden()).expect("updated");
        assert!(!hidden.is_public);
    }

    fn an_update_distinguishes_keep_from_clear(db: &TestDatabase) {
        let space = NewSpace::named("a").description("b");
        let space = db.service.spaces().create_space(space).expect("created");
        let patch = SpacePatch::new().name("c");
        let kept = db.service.spaces().update_space(space.id, patch).expect("updated");
        assert_eq!(kept.description.as_deref(), Some("b"));
        let patch = SpacePatch::new().description(None);
        let cleared = db.service.spaces().update_space(space.id, patch).expect("updated");
        assert_eq!((cleared.description, cleared.name.as_str()), (None, "c"));
        let patch = SpacePatch::new().description(Some(String::new()));
        let empty = db.service.spaces().update_space(space.id, patch).expect("updated");
        assert_eq!(empty.description.as_deref(), Some(""), "empty is not absent");
        let mut patch = SpacePatch::new();
        patch.name = Change::Clear;
        let sentence = "Update space failed: Required field is missing";
        let refused = db.service.spaces().update_space(space.id, patch);
        assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
        assert_eq!(db.service.spaces().get_space(space.id).expect("read"), empty, "nothing of it was done");
    }

    fn an_empty_update_changes_nothing_and_returns_the_row(db: &TestDatabase) {
        let space = db.space();
        db.clock.advance(Duration::from_secs(9));
        let same = db.service.spaces().update_space(space.id, SpacePatch::new()).expect("the row");
        assert_eq!(same, space);
        let missing = db.service.spaces().update_space(Uuid::new_v4(), SpacePatch::new());
        assert_fails(missing, ErrorKind::NotFound, None, "Update space failed: Record not found");
    }

    fn updated_at_grows_with_every_update(db: &TestDatabase) {
        let space = db.space();
        let mut last = space.updated_at;
        let steps = [0, 0, -3_600, 0, 7_200, 0, -86_400, 0];
        for step in steps {
            db.clock.step(SignedDuration::from_secs(step));
            // Writing the same value is an update too.
            let updated = db.service.spaces().update_space(space.id, SpacePatch::new().name("same"));
            let updated = updated.expect("updated");
            assert!(updated.updated_at > last, "{} after {last}", updated.updated_at);
            assert_eq!(updated.created_at, space.created_at);
            last = updated.updated_at;
        }
    }

    fn updated_at_grows_across_a_second(db: &TestDatabase) {
        let space = db.space();
        let edge = match db.engine {
            townsquare_tests::test_database::Engine::Sqlite => "2027-12-31T23:59:59.999998Z",
            townsquare_tests::test_database::Engine::Postgres => "2027-12-31 23:59:59.999998+00",
        };
        db.raw.run(&format!("UPDATE spaces SET updated_at = '{edge}'"));
        let expected = ["2027-12-31T23:59:59.999999Z", "2028-01-01T00:00:00Z", "2028-01-01T00:00:00.000001Z"];
        for expected in expected {
            let updated = db.service.spaces().update_space(space.id, SpacePatch::new().name("x"));
            assert_eq!(updated.expect("updated").updated_at.to_string(), expected);
        }
    }

    fn deleting_a_space_deletes_its_fidgets(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        let fidget = db.fidget(space.id, "clock");
        let kept = db.fidget(other.id, "clock");
        db.service.spaces().delete_space(space.id).expect("deleted");
        let gone = db.service.spaces().get_space(space.id);
        assert_fails(gone, ErrorKind::NotFound, None, "Get space failed: Record not found");
        let gone = db.service.fidgets().get_fidget(fidget.id);
        assert_fails(gone, ErrorKind::NotFound, None, "Get fidget failed: Record not found");
        assert_eq!(db.service.fidgets().get_fidget(kept.id).expect("the other's"), kept);
        let again = db.service.spaces().delete_space(space.id);
        assert_fails(again, ErrorKind::NotFound, None, "Delete space failed: Record not found");
    }

    fn deleting_a_user_deletes_spaces_and_fidgets(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        db.fidget(space.id, "clock");
        db.fidget(other.id, "clock");
        let owner = space.owner_id.expect("owned");
        db.raw.run(&format!("DELETE FROM users WHERE id = '{owner}'"));
        let gone = db.service.spaces().get_space(space.id);
        assert_fails(gone, ErrorKind::NotFound, None, "Get space failed: Record not found");
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (1, 1));
    }

    fn operations_on_missing_rows_fail_with_not_found(db: &TestDatabase) {
        let (spaces, id) = (db.service.spaces(), Uuid::new_v4());
        let missing = |result, sentence: &str| assert_fails(result, ErrorKind::NotFound, None, sentence);
        missing(spaces.get_space(id).map(drop), "Get space failed: Record not found");
        let patch = SpacePatch::new().name("x");
        missing(spaces.update_space(id, patch).map(drop), "Update space failed: Record not found");
        missing(spaces.delete_space(id), "Delete space failed: Record not found");
        let sentence = "Get space with fidgets failed: Record not found";
        let error = missing(spaces.get_space_with_fidgets(id).map(drop), sentence);
        assert!(!error.is_retryable());
        assert_eq!(spaces.get_user_spaces(id).expect("none"), []);
    }

    fn user_spaces_are_newest_first_each_with_its_fidgets(db: &TestDatabase) {
        let owner = db.user();
        let mut made = Vec::new();
        // Pairs have equal times; ties are broken by id.
        for index in 0..8 {
            let space = NewSpace::named(format!("{index}")).owned_by(owner);
            made.push(db.service.spaces().create_space(space).expect("created"));
            if index % 2 == 1 {
                db.clock.advance(Duration::from_micros(1));
            }
        }
        let mut fidgets = Vec::new();
        for index in 0..6 {
            let fidget = NewFidget::of_type(format!("{index}")).config(index).position(serde_json::json!({"x": index}));
            fidgets.push(db.service.fidgets().create_fidget(made[3].id, fidget).expect("created"));
            if index % 3 == 2 {
                db.clock.advance(Duration::from_micros(1));
            }
        }
        made.sort_by_key(|space| (std::cmp::Reverse(space.created_at), space.id));
        fidgets.sort_by_key(|fidget| (fidget.created_at, fidget.id));
        let found = db.service.spaces().get_user_spaces(owner).expect("a list");
        assert_eq!(found.iter().map(|found| &found.space).collect::<Vec<_>>(), made.iter().collect::<Vec<_>>());
        for space in &found {
            assert_eq!(space.fidgets, if space.space.name == "3" { fidgets.clone() } else { Vec::new() });
        }
    }

    fn user_spaces_belong_to_that_user(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        db.service.spaces().create_space(NewSpace::named("nobody's")).expect("created");
        let found = db.service.spaces().get_user_spaces(space.owner_id.expect("owned")).expect("a list");
        assert_eq!(found.iter().map(|found| found.id).collect::<Vec<_>>(), [space.id]);
        assert_ne!(found[0].id, other.id);
    }

    fn a_space_with_fidgets_has_at_least_one(db: &TestDatabase) {
        let space = db.space();
        let none = db.service.spaces().get_space_with_fidgets(space.id);
        assert_fails(none, ErrorKind::NotFound, None, "Get space with fidgets failed: Record not found");
        let fidget = db.fidget(space.id, "clock");
        let found = db.service.spaces().get_space_with_fidgets(space.id).expect("now it matches");
        assert_eq!((found.space, found.fidgets), (space.clone(), vec![fidget.clone()]));
        db.service.fidgets().delete_fidget(fidget.id).expect("deleted");
        let none = db.service.spaces().get_space_with_fidgets(space.id);
        assert_fails(none, ErrorKind::NotFound, None, "Get space with fidgets failed: Record not found");
    }

    fn create_spaces_returns_the_input_order(db: &TestDatabase) {
        let owner = db.user();
        let names: Vec<_> = (0..50).map(|index| format!("{index}")).collect();
        let spaces = names.iter().map(|name| NewSpace::named(name).owned_by(owner)).collect();
        let made = db.service.spaces().create_spaces(spaces).expect("created");
        assert_eq!(made.iter().map(|space| &space.name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
        for space in &made {
            assert_eq!(&db.service.spaces().get_space(space.id).expect("read"), space);
        }
        assert_eq!(db.service.spaces().create_spaces(Vec::new()).expect("nothing to do"), []);
    }

    fn create_spaces_is_all_or_nothing(db: &TestDatabase) {
        let good = || NewSpace::named("good");
        let cases = [
            (NewSpace::default(), ErrorKind::FieldMissing, "23502", "Create spaces failed: Required field is missing"),
            (
                good().owned_by(Uuid::new_v4()),
                ErrorKind::ReferenceMissing,
                "23503",
                "Create spaces failed: Referenced record not found",
            ),
        ];
        for (bad, kind, code, sentence) in cases {
            for at in [0, 1, 2] {
                let mut spaces = vec![good(), good()];
                spaces.insert(at, bad.clone());
                assert_fails(db.service.spaces().create_spaces(spaces), kind, Some(code), sentence);
            }
        }
        assert_eq!(db.raw.count("spaces"), 0);
        db.service.spaces().create_space(good()).expect("the next write goes on");
    }

    /// SPEC 2.6 does not require these columns, so other programs may write NULL.
    fn a_row_with_null_times_and_flag_can_be_read(db: &TestDatabase) {
        let id = Uuid::new_v4();
        db.raw.run(&format!(
            "INSERT INTO spaces (id, name, is_public, created_at, updated_at) VALUES ('{id}', 'x', NULL, NULL, NULL)"
        ));
        let space = db.service.spaces().get_space(id).expect("read");
        assert!(!space.is_public);
        let updated = db.service.spaces().update_space(id, SpacePatch::new().name("y")).expect("updated");
        assert_eq!(updated.updated_at, db.now());
    }
}
