//! Rights of anonymous callers and of the service (SPEC 5.4, DESIGN 4).

use serde_json::json;
use townsquare::{
    ErrorKind,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{assert_fails, required},
};

const MISSING: ErrorKind = ErrorKind::NotFound;

on_both_engines! {
    fn anonymous_callers_see_public_spaces_only(db: &TestDatabase) {
        let (hidden, anonymous) = (db.space(), db.client.spaces());
        let shown = db.public_space(hidden.owner_id.expect("owned"), "shown");
        assert_eq!(anonymous.get_space(shown.id).expect("public"), shown);
        assert_fails(anonymous.get_space(hidden.id), MISSING, None, "Get space failed: Record not found");
        let found = anonymous.get_user_spaces(hidden.owner_id.expect("owned")).expect("a list");
        assert_eq!(found.iter().map(|space| space.id).collect::<Vec<_>>(), [shown.id]);
        db.fidget(hidden.id, "x");
        let sentence = "Get space with fidgets failed: Record not found";
        assert_fails(anonymous.get_space_with_fidgets(hidden.id), MISSING, None, sentence);
        db.fidget(shown.id, "x");
        assert_eq!(anonymous.get_space_with_fidgets(shown.id).expect("public").fidgets.len(), 1);
    }

    fn anonymous_callers_see_fidgets_of_public_spaces_only(db: &TestDatabase) {
        let (hidden, anonymous) = (db.space(), db.client.fidgets());
        let shown = db.public_space(hidden.owner_id.expect("owned"), "shown");
        let (secret, open) = (db.fidget(hidden.id, "x"), db.fidget(shown.id, "x"));
        assert_eq!(anonymous.get_fidget(open.id).expect("public"), open);
        assert_fails(anonymous.get_fidget(secret.id), MISSING, None, "Get fidget failed: Record not found");
        assert_eq!(anonymous.get_space_fidgets(shown.id).expect("a list"), [open]);
        assert_eq!(anonymous.get_space_fidgets(hidden.id).expect("a list"), []);
        db.service.spaces().update_space(hidden.id, SpacePatch::new().published()).expect("shown");
        assert_eq!(anonymous.get_fidget(secret.id).expect("public now"), secret);
    }

    fn anonymous_changes_fail_like_missing_rows(db: &TestDatabase) {
        let owner = db.user();
        let space = db.public_space(owner, "shown");
        let fidget = db.fidget(space.id, "x");
        let (spaces, fidgets) = (db.client.spaces(), db.client.fidgets());
        for patch in [SpacePatch::new().name("mine"), SpacePatch::new()] {
            let refused = spaces.update_space(space.id, patch);
            assert_fails(refused, MISSING, None, "Update space failed: Record not found");
        }
        assert_fails(spaces.delete_space(space.id), MISSING, None, "Delete space failed: Record not found");
        for patch in [FidgetPatch::new().kind("mine"), FidgetPatch::new()] {
            let refused = fidgets.update_fidget(fidget.id, patch);
            assert_fails(refused, MISSING, None, "Update fidget failed: Record not found");
        }
        assert_fails(fidgets.delete_fidget(fidget.id), MISSING, None, "Delete fidget failed: Record not found");
        let refused = fidgets.save_positions(space.id, [(fidget.id, Some(json!(1)))].into());
        assert_fails(refused, MISSING, None, "Save positions failed: Record not found");
        assert_eq!(spaces.get_space(space.id).expect("as it was"), space);
        assert_eq!(fidgets.get_fidget(fidget.id).expect("as it was"), fidget);
    }

    fn anonymous_insert_is_refused(db: &TestDatabase) {
        let owner = db.user();
        let shown = db.public_space(owner, "shown");
        let forbidden = |result: townsquare::Result<()>, operation: &str, table: &str| {
            let words = format!("Database error: new row violates row-level security policy for table \"{table}\"");
            assert_fails(result, ErrorKind::Forbidden, Some("42501"), &format!("{operation} failed: {words}"));
        };
        let (spaces, fidgets) = (db.client.spaces(), db.client.fidgets());
        for space in [NewSpace::named("x"), NewSpace::named("x").owned_by(owner), NewSpace::named("x").public()] {
            forbidden(spaces.create_space(space.clone()).map(drop), "Create space", "spaces");
            forbidden(spaces.create_spaces(vec![space]).map(drop), "Create spaces", "spaces");
        }
        let new = || NewFidget::of_type("x");
        forbidden(fidgets.create_fidget(shown.id, new()).map(drop), "Create fidget", "fidgets");
        forbidden(fidgets.create_fidgets(shown.id, vec![new()]).map(drop), "Create fidgets", "fidgets");
        let registration = NewRegistration::new(shown.id, "x", SpaceType::Profile);
        let refused = db.client.communities().register_space(registration).map(drop);
        forbidden(refused, "Register space", "spaceRegistrations");
        assert_eq!((db.raw.count("spaces"), db.raw.count("fidgets")), (1, 0));
        assert_eq!(db.raw.count("\"spaceRegistrations\""), 0);
    }

    fn only_the_service_writes_communities(db: &TestDatabase) {
        let made = db.community("town");
        let anonymous = db.client.communities();
        let unauthorized = |result: townsquare::Result<()>, operation: &str, table: &str| {
            let sentence = format!("{operation} failed: Database error: permission denied for table {table}");
            assert_fails(result, ErrorKind::Unauthorized, Some("42501"), &sentence);
        };
        for id in ["town", "village"] {
            for patch in [required(), CommunityPatch::new()] {
                let refused = anonymous.save_community_config(id, patch).map(drop);
                unauthorized(refused, "Save community config", "community_configs");
            }
            let refused = anonymous.update_navigation(id, Some(json!(1))).map(drop);
            unauthorized(refused, "Update navigation", "community_configs");
            let refused = anonymous.save_community_domain(id, "town.example", DomainType::Custom).map(drop);
            unauthorized(refused, "Save community domain", "community_domains");
            unauthorized(anonymous.delete_community_domain(id), "Delete community domain", "community_domains");
        }
        let same = db.service.communities().save_community_config("town", CommunityPatch::new());
        assert_eq!(same.expect("as it was"), made);
        assert_eq!((db.raw.count("community_configs"), db.raw.count("community_domains")), (1, 0));
    }

    fn the_service_sees_and_changes_everything(db: &TestDatabase) {
        let hidden = db.space();
        let fidget = db.fidget(hidden.id, "x");
        let (spaces, fidgets) = (db.service.spaces(), db.service.fidgets());
        assert_eq!(spaces.get_space(hidden.id).expect("seen"), hidden);
        assert_eq!(fidgets.get_fidget(fidget.id).expect("seen"), fidget);
        spaces.update_space(hidden.id, SpacePatch::new().name("y")).expect("changed");
        fidgets.delete_fidget(fidget.id).expect("deleted");
        spaces.delete_space(hidden.id).expect("deleted");
        // The anonymous handle of the same client has no more rights.
        let refused = db.client.spaces().create_space(NewSpace::named("x"));
        assert_eq!(refused.expect_err("still nobody").kind(), ErrorKind::Forbidden);
    }
}
