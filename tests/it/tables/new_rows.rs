//! New rows: ids that the caller gives, the order of rows of one call, and errors that name the row and the column.

use std::thread;

use serde_json::json;
use townsquare::{
    ErrorKind, Uuid,
    communities::{NewRegistration, SpaceType},
    spaces::{NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, assert_fails},
};

fn fidget() -> NewFidget {
    NewFidget::of_type("clock")
        .config(json!({"zone": "UTC", "speed": 1e16, "n": [1.5, -0.0, u64::MAX]}))
        .position(json!([0, 1]))
}

on_both_engines! {
    fn a_repeated_create_with_the_same_id_and_content_returns_the_existing_row(db: &TestDatabase) {
        let owner = db.user();
        let new = NewSpace::named("Chess").description("Openings").owned_by(owner).public().with_id(Uuid::new_v4());
        let space = db.service.spaces().create_space(new.clone()).expect("created");
        assert_eq!(Some(space.id), new.id);
        db.clock.advance(std::time::Duration::from_secs(9));
        assert_eq!(db.service.spaces().create_space(new.clone()).expect("the existing space"), space);
        let others = vec![NewSpace::named("Go"), new, NewSpace::named("Go")];
        let spaces = db.service.spaces().create_spaces(others).expect("created");
        assert_eq!(spaces[1], space);

        let new = fidget().with_id(Uuid::new_v4());
        let made = db.service.fidgets().create_fidget(space.id, new.clone()).expect("created");
        assert_eq!(db.service.fidgets().create_fidget(space.id, new.clone()).expect("the existing fidget"), made);
        let both = vec![new, fidget()];
        assert_eq!(db.service.fidgets().create_fidgets(space.id, both).expect("created")[0], made);
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (3, 2));
    }

    fn another_row_with_the_id_already_exists(db: &TestDatabase) {
        let taken = "Create space failed: Record already exists";
        let (id, owner) = (Uuid::new_v4(), db.user());
        let new = || NewSpace::named("Chess").description("Openings").owned_by(owner).with_id(id);
        let space = db.service.spaces().create_space(new()).expect("created");
        let mut without_description = new();
        without_description.description = None;
        for other in [NewSpace::named("Go").with_id(id), new().public(), new().owned_by(db.user()), without_description] {
            let refused = db.service.spaces().create_space(other.clone());
            assert_fails(refused, ErrorKind::AlreadyExists, Some("23505"), taken);
            let refused = db.service.spaces().create_spaces(vec![NewSpace::named("new"), other]);
            let taken = "Create spaces failed: Record already exists";
            let error = assert_fails(refused, ErrorKind::AlreadyExists, Some("23505"), taken);
            assert_eq!(error.row(), Some(1));
        }
        db.service.spaces().update_space(id, SpacePatch::new().name("Chess club")).expect("changed");
        assert_fails(db.service.spaces().create_space(new()), ErrorKind::AlreadyExists, Some("23505"), taken);

        let (id, elsewhere) = (Uuid::new_v4(), db.space());
        let new = || fidget().with_id(id);
        db.service.fidgets().create_fidget(space.id, new()).expect("created");
        let taken = "Create fidget failed: Record already exists";
        for (space, other) in [
            (elsewhere.id, new()),
            (space.id, new().config(json!({"zone": "UTC"}))),
            (space.id, new().position(json!([1, 0]))),
            (space.id, NewFidget::of_type("clock").with_id(id)),
        ] {
            let refused = db.service.fidgets().create_fidget(space, other);
            assert_fails(refused, ErrorKind::AlreadyExists, Some("23505"), taken);
        }
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (2, 1));
    }

    fn the_same_id_twice_in_one_call_is_created_once(db: &TestDatabase) {
        let new = || NewSpace::named("Chess").with_id(Uuid::from_u128(7));
        let made = db.service.spaces().create_spaces(vec![new(), new()]).expect("created");
        assert_eq!(made[0], made[1]);
        let refused = db.service.spaces().create_spaces(vec![new(), new().public()]);
        let error = refused.expect_err("two contents");
        assert_eq!((error.kind(), error.row()), (ErrorKind::AlreadyExists, Some(1)));
        assert_eq!(db.raw.count("spaces"), 1);
    }

    fn concurrent_creates_with_one_id_create_one_row(db: &TestDatabase) {
        let space = db.space();
        for round in 0..20_u128 {
            let spaces = thread::scope(|scope| {
                let create = || {
                    let new = NewSpace::named("Chess").with_id(Uuid::from_u128(round + 1));
                    let space_made = db.service.spaces().create_space(new).expect("created or existing");
                    let new = fidget().with_id(Uuid::from_u128(round + 1));
                    let fidget_made = db.service.fidgets().create_fidget(space.id, new).expect("created or existing");
                    (space_made, fidget_made)
                };
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(create)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
            });
            assert!(spaces.iter().all(|made| made == &spaces[0]), "round {round}");
        }
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (21, 20));
    }

    fn fidgets_of_one_call_keep_their_order(db: &TestDatabase) {
        let space = db.space();
        let fidgets = (0..200).map(|index| NewFidget::of_type(format!("{index}")));
        // Given ids that sort against the order change nothing.
        let fidgets = fidgets.enumerate().map(|(index, new)| match index % 3 {
            0 => new.with_id(Uuid::from_u128(1_000 - index as u128)),
            _ => new,
        });
        let made = db.service.fidgets().create_fidgets(space.id, fidgets.collect()).expect("created");
        assert_eq!(db.service.fidgets().get_space_fidgets(space.id).expect("a list"), made);
        assert_eq!(db.service.spaces().get_space_with_fidgets(space.id).expect("found").fidgets, made);
        assert!(made.windows(2).all(|pair| pair[0].created_at < pair[1].created_at));
    }

    fn spaces_of_one_call_are_listed_newest_first(db: &TestDatabase) {
        let owner = db.user();
        let spaces = (0..200).map(|index| NewSpace::named(format!("{index}")).owned_by(owner).public()).collect();
        let mut made = db.service.spaces().create_spaces(spaces).expect("created");
        made.reverse();
        let listed = db.client.spaces().get_public_spaces(1_000, 0).expect("a list");
        assert_eq!(listed.iter().map(|space| &space.space).collect::<Vec<_>>(), made.iter().collect::<Vec<_>>());
        let listed = db.client.spaces().get_user_spaces(owner).expect("a list");
        assert_eq!(listed.into_iter().map(|space| space.space).collect::<Vec<_>>(), made);
    }

    fn an_error_names_the_row_and_the_missing_column(db: &TestDatabase) {
        let space = db.space();
        let spaces = vec![NewSpace::named("x"), NewSpace::named("x"), NewSpace::default()];
        let sentence = "Create spaces failed: Required field is missing";
        let refused = db.service.spaces().create_spaces(spaces);
        let error = assert_fails(refused, ErrorKind::FieldMissing, Some("23502"), sentence);
        assert_eq!((error.row(), error.column()), (Some(2), Some("name")));
        let error = db.service.spaces().create_space(NewSpace::default()).expect_err("no name");
        assert_eq!((error.row(), error.column()), (None, Some("name")));
        let fidgets = vec![NewFidget::of_type("x"), NewFidget::default()];
        let error = db.service.fidgets().create_fidgets(space.id, fidgets).expect_err("no type");
        assert_eq!((error.row(), error.column()), (Some(1), Some("type")));
        let mut new = NewRegistration::new(space.id, "x", SpaceType::Token);
        new.space_name = None;
        let error = db.service.communities().register_space(new).expect_err("no name");
        assert_eq!(error.column(), Some("spaceName"));
        let error = db.service.communities().save_community_config("town", Default::default()).expect_err("new");
        assert_eq!((error.kind(), error.column()), (ErrorKind::FieldMissing, Some("brand_config")));

        let lost = vec![NewSpace::named("x"), NewSpace::named("x").owned_by(Uuid::new_v4())];
        let error = db.service.spaces().create_spaces(lost).expect_err("no such owner");
        // SQLite does not say which reference is missing.
        let column = (db.engine == Engine::Postgres).then_some("owner_id");
        assert_eq!((error.kind(), error.row(), error.column()), (ErrorKind::ReferenceMissing, Some(1), column));
        let fidgets = vec![NewFidget::of_type("x"), NewFidget::of_type("x").config(json!({"\0": 1}))];
        let error = db.service.fidgets().create_fidgets(space.id, fidgets).expect_err("a NUL");
        assert_eq!((error.row(), error.message()), (Some(1), "fidgets[1].config contains a NUL character"));
        let error = db.client.spaces().create_spaces(vec![NewSpace::named("x")]).expect_err("anonymous");
        assert_eq!((error.kind(), error.row()), (ErrorKind::Forbidden, Some(0)));
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (1, 0));
    }
}
