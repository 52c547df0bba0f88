//! Database errors (SPEC 7, DESIGN 9), from real violations, equal on both engines.

use serde_json::json;
use townsquare::{
    ErrorKind, Operation, Uuid,
    communities::{NewRegistration, SpaceType},
    error::DATABASE_ERRORS,
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, assert_fails, required},
};

#[test]
fn the_table_of_errors_is_spec_7s() {
    let expected = [
        ("23505", ErrorKind::AlreadyExists, "Record already exists"),
        ("23503", ErrorKind::ReferenceMissing, "Referenced record not found"),
        ("23502", ErrorKind::FieldMissing, "Required field is missing"),
        ("42P01", ErrorKind::TableMissing, "Database table not found"),
    ];
    assert_eq!(DATABASE_ERRORS, expected);
}

#[test]
fn the_prefixes_are_spec_7s() {
    let expected = [
        (Operation::CreateSpace, "Create space failed: "),
        (Operation::GetSpace, "Get space failed: "),
        (Operation::UpdateSpace, "Update space failed: "),
        (Operation::DeleteSpace, "Delete space failed: "),
        (Operation::GetUserSpaces, "Get user spaces failed: "),
        (Operation::GetPublicSpaces, "Get public spaces failed: "),
        (Operation::GetSpaceWithFidgets, "Get space with fidgets failed: "),
    ];
    for (operation, prefix) in expected {
        assert_eq!(operation.prefix(), prefix);
    }
    for operation in Operation::ALL {
        let words = operation.prefix().strip_suffix(" failed: ").expect("the form of SPEC 7");
        assert!(words.starts_with(|first: char| first.is_uppercase()), "{words}");
    }
}

on_both_engines! {
    fn every_operation_names_a_dropped_table(db: &TestDatabase) {
        let space = db.space();
        let fidget = db.fidget(space.id, "x");
        db.community("town");
        // Prepares the statements before the tables are dropped.
        for dropped in [false, true] {
            if dropped {
                for table in ["fidgets", "spaces", "community_domains", "community_configs", "\"spaceRegistrations\""] {
                    // On PostgreSQL the policies of other tables read this table.
                    let cascade = if db.engine == Engine::Postgres { " CASCADE" } else { "" };
                    db.raw.run(&format!("DROP TABLE {table}{cascade}"));
                }
            }
            let (spaces, fidgets, communities) = (db.service.spaces(), db.service.fidgets(), db.service.communities());
            let registration = NewRegistration::new(Uuid::new_v4(), "x", SpaceType::Token);
            let custom = townsquare::communities::DomainType::Custom;
            let results = [
                ("Get space", spaces.get_space(space.id).map(drop)),
                ("Create space", spaces.create_space(NewSpace::named("x")).map(drop)),
                ("Create spaces", spaces.create_spaces(vec![NewSpace::named("x")]).map(drop)),
                ("Update space", spaces.update_space(space.id, SpacePatch::new().name("x")).map(drop)),
                ("Update space", spaces.update_space(space.id, SpacePatch::new()).map(drop)),
                ("Get user spaces", spaces.get_user_spaces(space.id).map(drop)),
                ("Get public spaces", spaces.get_public_spaces(1, 0).map(drop)),
                ("Get space with fidgets", spaces.get_space_with_fidgets(space.id).map(drop)),
                ("Create fidget", fidgets.create_fidget(space.id, NewFidget::of_type("x")).map(drop)),
                ("Create fidgets", fidgets.create_fidgets(space.id, vec![NewFidget::of_type("x")]).map(drop)),
                ("Get fidget", fidgets.get_fidget(fidget.id).map(drop)),
                ("Update fidget", fidgets.update_fidget(fidget.id, FidgetPatch::new().kind("x")).map(drop)),
                ("Get space fidgets", fidgets.get_space_fidgets(space.id).map(drop)),
                (
                    "Save positions",
                    fidgets.save_positions(space.id, [(fidget.id, Some(json!(1)))].into()).map(drop),
                ),
                ("Delete fidget", fidgets.delete_fidget(fidget.id)),
                ("Delete space", spaces.delete_space(space.id)),
                ("Save community config", communities.save_community_config("town", required()).map(drop)),
                ("Get active community config", communities.get_active_community_config("town").map(drop)),
                ("Update navigation", communities.update_navigation("town", None).map(drop)),
                (
                    "Save community domain",
                    communities.save_community_domain("town", "x.example", custom).map(drop),
                ),
                ("Resolve community", communities.resolve_community("town").map(drop)),
                ("Delete community domain", communities.delete_community_domain("x.example")),
                ("Register space", communities.register_space(registration).map(drop)),
                ("Get space registration", communities.get_space_registration(space.id).map(drop)),
            ];
            for (operation, result) in results {
                if dropped {
                    let sentence = format!("{operation} failed: Database table not found");
                    assert_fails(result, ErrorKind::TableMissing, Some("42P01"), &sentence);
                } else {
                    result.unwrap_or_else(|error| panic!("{operation}: {error}"));
                }
            }
        }
    }

    fn an_unmapped_sqlstate_carries_the_databases_message(db: &TestDatabase) {
        db.raw.run(match db.engine {
            Engine::Sqlite => {
                "CREATE TRIGGER night BEFORE INSERT ON spaces BEGIN SELECT RAISE(ABORT, 'the town sleeps'); END"
            }
            Engine::Postgres => {
                "CREATE FUNCTION night() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'the town sleeps'; END $$;
             CREATE TRIGGER night BEFORE INSERT ON spaces FOR EACH ROW EXECUTE FUNCTION night()"
            }
        });
        let refused = db.service.spaces().create_space(NewSpace::named("x"));
        let sentence = "Create space failed: Database error: the town sleeps";
        // P0001: raise_exception.
        let error = assert_fails(refused, ErrorKind::Internal, Some("P0001"), sentence);
        assert_eq!(error.message(), "Database error: the town sleeps");
    }

    fn a_foreign_check_constraint_is_a_database_error(db: &TestDatabase) {
        db.raw.run(match db.engine {
            Engine::Sqlite => "CREATE UNIQUE INDEX one_name ON spaces (name)",
            Engine::Postgres => {
                "CREATE UNIQUE INDEX one_name ON spaces (name);
             ALTER TABLE spaces ADD CHECK (name <> 'forbidden')"
            }
        });
        db.service.spaces().create_space(NewSpace::named("x")).expect("the first");
        let second = db.service.spaces().create_space(NewSpace::named("x"));
        let sentence = "Create space failed: Record already exists";
        let error = assert_fails(second, ErrorKind::AlreadyExists, Some("23505"), sentence);
        let constraint = if db.engine == Engine::Sqlite { "spaces.name" } else { "spaces (constraint one_name)" };
        assert_eq!(error.reason(), Some(constraint));
        if db.engine == Engine::Postgres {
            let error = db.service.spaces().create_space(NewSpace::named("forbidden")).expect_err("checked");
            assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, Some("23514")));
            assert!(error.to_string().starts_with("Create space failed: Database error: "), "{error}");
        }
    }

    fn the_text_names_the_column_and_the_error_what_to_do(db: &TestDatabase) {
        let (spaces, communities) = (db.service.spaces(), db.service.communities());
        let taken = NewSpace::named("x").with_id(Uuid::new_v4());
        spaces.create_space(taken.clone()).expect("the first");
        db.community("town");
        let custom = townsquare::communities::DomainType::Custom;
        communities.save_community_domain("town", "town.example", custom).expect("saved");
        let nobody = Uuid::new_v4();
        let is_postgres = db.engine == Engine::Postgres;
        // SQLite does not say which foreign key is violated.
        let reference = |column| is_postgres.then_some(column);
        let results = [
            (spaces.create_space(taken.description("other")).map(drop), Some("spaces.id"), 409, "column"),
            (spaces.create_space(NewSpace::default()).map(drop), Some("spaces.name"), 400, "Give a value"),
            (spaces.create_space(NewSpace::named("x").owned_by(nobody)).map(drop), reference("spaces.owner_id"), 409, "first"),
            (
                db.service.fidgets().create_fidget(nobody, NewFidget::of_type("x")).map(drop),
                reference("fidgets.space_id"),
                409,
                "first",
            ),
            (
                communities.save_community_domain("nowhere", "x.example", custom).map(drop),
                reference("community_domains.community_id"),
                409,
                "first",
            ),
            (spaces.get_space(nobody).map(drop), None, 404, "as_service()"),
            (spaces.get_space_with_fidgets(nobody).map(drop), None, 404, "allow_empty"),
            (
                db.client.communities().delete_community_domain("town.example"),
                Some("use as_service(): this is for the service alone"),
                401,
                "as_service()",
            ),
        ];
        for (result, reason, status, explanation) in results {
            let error = result.expect_err("refused");
            assert_eq!((error.reason(), error.status()), (reason, status), "{error}");
            assert!(error.to_string().ends_with(reason.unwrap_or_default()), "{error}");
            assert!(error.explanation().contains(explanation), "{}", error.explanation());
        }
        db.raw.run(if is_postgres { "DROP TABLE fidgets CASCADE" } else { "DROP TABLE fidgets" });
        let error = db.service.fidgets().get_fidget(nobody).expect_err("dropped");
        assert_eq!((error.reason(), error.status()), (Some("fidgets"), 500));
    }

    fn a_closed_client_fails_as_closed(db: &TestDatabase) {
        let other = db.another();
        let client = other.as_service();
        let space = db.space();
        other.close();
        let results = [
            ("Get space", client.spaces().get_space(space.id).map(drop)),
            ("Create space", client.spaces().create_space(NewSpace::named("x")).map(drop)),
            ("Create spaces", client.spaces().create_spaces(vec![NewSpace::named("x")]).map(drop)),
            ("Get user spaces", client.spaces().get_user_spaces(space.id).map(drop)),
            ("Save community config", client.communities().save_community_config("x", required()).map(drop)),
        ];
        for (operation, result) in results {
            assert_fails(result, ErrorKind::Closed, None, &format!("{operation} failed: The client is closed"));
        }
        assert_eq!(db.service.spaces().get_space(space.id).expect("the other client goes on"), space);
    }

    fn a_failed_write_does_not_affect_later_writes(db: &TestDatabase) {
        let lost = || NewSpace::named("lost").owned_by(Uuid::new_v4());
        for round in 0..20 {
            let error = db.service.spaces().create_space(lost()).expect_err("nobody's");
            assert_eq!(error.code(), Some("23503"));
            let many = vec![NewSpace::named("x"), lost()];
            assert_eq!(db.service.spaces().create_spaces(many).expect_err("one is lost").code(), Some("23503"));
            db.service.spaces().create_space(NewSpace::named(format!("{round}"))).expect("a good one");
        }
        assert_eq!(db.raw.count("spaces"), 20);
    }
}
