//! Ids that callers give (DESIGN 3, 4): an owner may repeat a create; a stranger learns only that the id is taken.

use std::error::Error as _;

use serde_json::json;
use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{on_both_engines, test_database::assert_fails};

use super::users::sign_up;

/// All public parts of the errors of creates with these ids.
fn refusals(client: &Client, own: Uuid, space: &NewSpace, fidget: &NewFidget) -> Vec<String> {
    let results = [
        client.spaces().create_space(space.clone()).map(drop),
        client.spaces().create_spaces(vec![space.clone()]).map(drop),
        client.fidgets().create_fidget(own, fidget.clone()).map(drop),
        client.fidgets().create_fidgets(own, vec![fidget.clone()]).map(drop),
    ];
    let errors = results.into_iter().map(|result| result.expect_err("taken"));
    errors
        .map(|error| {
            assert_eq!((error.kind(), error.code()), (ErrorKind::AlreadyExists, Some("23505")), "{error:?}");
            let reason = error.reason().expect("the column");
            assert!(["spaces.id", "fidgets.id"].contains(&reason), "{reason}");
            assert_eq!(error.message(), format!("Record already exists: {reason}"));
            format!("{error:?} {:?} {:?} {:?}", error.row(), error.column(), error.source().map(ToString::to_string))
        })
        .collect()
}

on_both_engines! {
    fn an_owner_repeats_a_create(db: &TestDatabase) {
        let (session, ann) = sign_up(db, "ann@town.example");
        let new = NewSpace::named("Chess").with_id(Uuid::new_v4());
        let space = ann.spaces().create_space(new.clone()).expect("created");
        assert_eq!(space.owner_id, Some(session.user.id));
        assert_eq!(ann.spaces().create_space(new.clone()).expect("the existing space"), space);
        assert_eq!(ann.spaces().create_spaces(vec![new.clone()]).expect("the existing space"), std::slice::from_ref(&space));
        let named = new.owned_by(session.user.id);
        assert_eq!(ann.spaces().create_space(named).expect("the existing space"), space);
        let new = NewFidget::of_type("clock").config(json!({"a": 1})).with_id(Uuid::new_v4());
        let fidget = ann.fidgets().create_fidget(space.id, new.clone()).expect("created");
        assert_eq!(ann.fidgets().create_fidget(space.id, new).expect("the existing fidget"), fidget);
    }

    fn a_stranger_learns_only_that_an_id_is_taken(db: &TestDatabase) {
        let ((_, ann), (session, ben)) = (sign_up(db, "ann@town.example"), sign_up(db, "ben@town.example"));
        let own = ben.spaces().create_space(NewSpace::named("Ben's")).expect("created").id;
        let mut seen = Vec::new();
        // Ben repeats Ann's call, and a call with other content, while her space is hidden and while it is public.
        for is_public in [false, true] {
            let (mut space, fidget) = (NewSpace::named("Chess"), NewFidget::of_type("clock").position(json!([1])));
            space.is_public = is_public;
            let (space, fidget) = (space.with_id(Uuid::new_v4()), fidget.with_id(Uuid::new_v4()));
            let id = ann.spaces().create_space(space.clone()).expect("created").id;
            ann.fidgets().create_fidget(id, fidget.clone()).expect("created");
            seen.push(refusals(&ben, own, &space, &fidget));
            let (other_space, other_fidget) = (space.clone().description("other"), fidget.clone().config(json!(2)));
            seen.push(refusals(&ben, own, &other_space, &other_fidget));
            // In Ann's space or name, Ben is refused as with a new id.
            let forbidden = ben.fidgets().create_fidget(id, fidget).expect_err("Ann's space");
            assert_eq!((forbidden.kind(), forbidden.code()), (ErrorKind::Forbidden, Some("42501")));
            let owner = ann.spaces().get_space(id).expect("hers").owner_id.expect("owned");
            let sentence = "Create space failed: Database error: new row violates row-level security policy for table \"spaces\"";
            for space in [space.clone(), space.with_id(Uuid::new_v4())] {
                let forbidden = ben.spaces().create_space(space.owned_by(owner));
                assert_fails(forbidden, ErrorKind::Forbidden, Some("42501"), sentence);
            }
        }
        // Ben's own row of another content is refused in the same words.
        let space = NewSpace::named("x").with_id(Uuid::new_v4());
        let fidget = NewFidget::of_type("x").with_id(Uuid::new_v4());
        ben.spaces().create_space(space.clone()).expect("created");
        ben.fidgets().create_fidget(own, fidget.clone()).expect("created");
        seen.push(refusals(&ben, own, &space.description("other"), &fidget.config(json!(2))));
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:#?}");
        assert_eq!(db.raw.count(&format!("spaces WHERE owner_id = '{}'", session.user.id)), 2);
    }

    fn an_anonymous_caller_creates_nothing_with_an_id(db: &TestDatabase) {
        let space = NewSpace::named("Chess").public();
        let taken = db.service.spaces().create_space(space.clone()).expect("created");
        for id in [taken.id, Uuid::new_v4()] {
            let sentence = "Create space failed: Database error: new row violates row-level security policy for table \"spaces\"";
            let refused = db.client.spaces().create_space(space.clone().with_id(id));
            assert_fails(refused, ErrorKind::Forbidden, Some("42501"), sentence);
        }
        assert_eq!(db.raw.count("spaces"), 1);
    }
}
