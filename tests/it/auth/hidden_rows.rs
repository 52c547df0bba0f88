//! Hidden rows (DESIGN 4): every operation on a row that the caller may not see fails like one on a missing row.

use serde_json::json;
use townsquare::{
    Error, ErrorKind, Uuid,
    blocking::Client,
    communities::{NewRegistration, SpaceType},
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::on_both_engines;

use super::users::sign_up;

/// All public parts of an error.
fn error_parts(error: &Error) -> String {
    assert!(std::error::Error::source(error).is_none(), "{error:?}");
    format!("{error:?} {error} {:?} {:?} {:?}", error.code(), error.operation(), error.message())
}

/// Runs every operation on a space.
fn space_operations(client: &Client, id: Uuid) -> Vec<String> {
    let spaces = client.spaces();
    let patch = || SpacePatch::new().name("mine");
    let mut errors = vec![
        spaces.get_space(id).err(),
        spaces.get_space_with_fidgets(id).err(),
        client.fidgets().create_fidget(id, NewFidget::of_type("x")).err(),
        client.fidgets().create_fidget(id, NewFidget::default()).err(),
        client.fidgets().create_fidgets(id, vec![NewFidget::of_type("x"); 2]).err(),
        client.fidgets().save_positions(id, [(Uuid::from_u128(9), Some(json!(1)))].into()).err(),
        client.communities().register_space(NewRegistration::new(id, "x", SpaceType::Token)).err(),
    ];
    errors.extend(space_changes(client, id, patch()));
    errors.extend(space_changes(client, id, SpacePatch::new()));
    errors.into_iter().map(|error| error_parts(&error.expect("refused"))).collect()
}

fn space_changes(client: &Client, id: Uuid, patch: SpacePatch) -> [Option<Error>; 2] {
    [client.spaces().update_space(id, patch).err(), client.spaces().delete_space(id).err()]
}

/// Runs every operation on a fidget.
fn fidget_operations(client: &Client, space: Uuid, id: Uuid) -> Vec<String> {
    let read = client.fidgets().get_fidget(id).map(drop);
    [error_parts(&read.expect_err("refused"))].into_iter().chain(fidget_changes(client, space, id)).collect()
}

fn fidget_changes(client: &Client, space: Uuid, id: Uuid) -> Vec<String> {
    let fidgets = client.fidgets();
    let errors = [
        fidgets.update_fidget(id, FidgetPatch::new().kind("mine")).err(),
        fidgets.update_fidget(id, FidgetPatch::new()).err(),
        fidgets.save_positions(space, [(id, None)].into()).err(),
        fidgets.delete_fidget(id).err(),
    ];
    errors.into_iter().map(|error| error_parts(&error.expect("refused"))).collect()
}

on_both_engines! {
    fn a_hidden_space_fails_like_a_missing_one(db: &TestDatabase) {
        let hidden = db.space();
        let fidget = db.fidget(hidden.id, "x");
        let (_, stranger) = sign_up(db, "stranger@town.example");
        for client in [&stranger, &db.client] {
            assert_eq!(space_operations(client, hidden.id), space_operations(client, Uuid::from_u128(7)));
        }
        assert_eq!(db.service.spaces().get_space(hidden.id).expect("as it was"), hidden);
        assert_eq!(db.service.fidgets().get_space_fidgets(hidden.id).expect("as they were"), [fidget]);
    }

    fn a_hidden_fidget_fails_like_a_missing_one(db: &TestDatabase) {
        let hidden = db.space();
        let fidget = db.fidget(hidden.id, "x");
        let (_, stranger) = sign_up(db, "stranger@town.example");
        for client in [&stranger, &db.client] {
            let missing = fidget_operations(client, Uuid::from_u128(7), Uuid::from_u128(8));
            assert_eq!(fidget_operations(client, hidden.id, fidget.id), missing);
        }
        assert_eq!(db.service.fidgets().get_fidget(fidget.id).expect("as it was"), fidget);
    }

    fn changing_a_read_only_row_fails_like_a_missing_one(db: &TestDatabase) {
        let shown = db.public_space(db.user(), "shown");
        let fidget = db.fidget(shown.id, "x");
        let (_, stranger) = sign_up(db, "stranger@town.example");
        for client in [&stranger, &db.client] {
            assert_eq!(client.spaces().get_space(shown.id).expect("public"), shown);
            for patch in [SpacePatch::new().hidden(), SpacePatch::new()] {
                let told_of =
                    |id| space_changes(client, id, patch.clone()).map(|error| error_parts(&error.expect("refused")));
                assert_eq!(told_of(shown.id), told_of(Uuid::from_u128(7)));
            }
            let told_of = |id| fidget_changes(client, shown.id, id);
            assert_eq!(told_of(fidget.id), told_of(Uuid::from_u128(8)));
        }
        assert_eq!(db.service.fidgets().get_fidget(fidget.id).expect("as it was"), fidget);
    }

    fn lists_contain_no_hidden_rows(db: &TestDatabase) {
        let hidden = db.space();
        db.fidget(hidden.id, "x");
        let (_, stranger) = sign_up(db, "stranger@town.example");
        for client in [&stranger, &db.client] {
            assert_eq!(client.spaces().get_user_spaces(hidden.owner_id.expect("owned")).expect("a list"), []);
            assert_eq!(client.spaces().get_public_spaces(1_000, 0).expect("a list"), []);
            assert_eq!(client.fidgets().get_space_fidgets(hidden.id).expect("a list"), []);
        }
    }

    fn every_call_of_an_ended_session_fails_with_the_same_error(db: &TestDatabase) {
        let hidden = db.space();
        let (_, client) = sign_up(db, "ann@town.example");
        client.auth().sign_out().expect("signed out");
        let theirs = NewSpace::named("x").owned_by(hidden.owner_id.expect("owned"));
        let errors = [
            client.spaces().create_space(theirs.clone()).err(),
            client.spaces().create_spaces(vec![theirs; 2]).err(),
            client.fidgets().create_fidget(hidden.id, NewFidget::of_type("x")).err(),
            client.communities().register_space(NewRegistration::new(hidden.id, "x", SpaceType::Token)).err(),
            client.communities().update_navigation("town", None).err(),
        ];
        for (place, error) in errors.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("call {place} succeeded"));
            assert_eq!((error.kind(), error.message()), (ErrorKind::Unauthorized, "Session has ended"), "call {place}");
        }
    }
}
