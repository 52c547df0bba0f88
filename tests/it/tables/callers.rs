//! Who may do what (SPEC 5.4, DESIGN 4): nobody against the service. What nobody may not see is not there for it.

use serde_json::json;
use townsquare::{
    CommunityPatch, DomainType, ErrorKind, FidgetPatch, NewFidget, NewRegistration, NewSpace, SpacePatch, SpaceType,
    blocking::wait,
};
use townsquare_tests::{
    on_both_engines,
    store::{Store, assert_fails, required},
};

on_both_engines!(
    everyone_sees_public_spaces_and_nobody_private_ones,
    everyone_sees_fidgets_of_public_spaces_alone,
    nobody_changes_what_it_may_see,
    nobody_brings_in_no_row,
    communities_are_the_services_to_write,
    the_service_sees_and_changes_everything,
);

const MISSING: ErrorKind = ErrorKind::NotFound;

fn everyone_sees_public_spaces_and_nobody_private_ones(store: &Store) {
    let (hidden, nobody) = (store.space(), store.client.spaces());
    let shown = store.public_space(hidden.owner_id.expect("owned"), "shown");
    assert_eq!(wait(nobody.get_space(shown.id)).expect("public"), shown);
    assert_fails(wait(nobody.get_space(hidden.id)), MISSING, None, "Get space failed: Record not found");
    let found = wait(nobody.get_user_spaces(hidden.owner_id.expect("owned"))).expect("a list");
    assert_eq!(found.iter().map(|space| space.id).collect::<Vec<_>>(), [shown.id]);
    store.fidget(hidden.id, "x");
    let sentence = "Get space with fidgets failed: Record not found";
    assert_fails(wait(nobody.get_space_with_fidgets(hidden.id)), MISSING, None, sentence);
    store.fidget(shown.id, "x");
    assert_eq!(wait(nobody.get_space_with_fidgets(shown.id)).expect("public").fidgets.len(), 1);
}

fn everyone_sees_fidgets_of_public_spaces_alone(store: &Store) {
    let (hidden, nobody) = (store.space(), store.client.fidgets());
    let shown = store.public_space(hidden.owner_id.expect("owned"), "shown");
    let (secret, open) = (store.fidget(hidden.id, "x"), store.fidget(shown.id, "x"));
    assert_eq!(wait(nobody.get_fidget(open.id)).expect("public"), open);
    assert_fails(wait(nobody.get_fidget(secret.id)), MISSING, None, "Get fidget failed: Record not found");
    assert_eq!(wait(nobody.get_space_fidgets(shown.id)).expect("a list"), [open]);
    assert_eq!(wait(nobody.get_space_fidgets(hidden.id)).expect("a list"), []);
    wait(store.service.spaces().update_space(hidden.id, SpacePatch::new().published())).expect("shown");
    assert_eq!(wait(nobody.get_fidget(secret.id)).expect("public now"), secret);
}

fn nobody_changes_what_it_may_see(store: &Store) {
    let owner = store.user();
    let space = store.public_space(owner, "shown");
    let fidget = store.fidget(space.id, "x");
    let (spaces, fidgets) = (store.client.spaces(), store.client.fidgets());
    for patch in [SpacePatch::new().name("mine"), SpacePatch::new()] {
        let refused = wait(spaces.update_space(space.id, patch));
        assert_fails(refused, MISSING, None, "Update space failed: Record not found");
    }
    assert_fails(wait(spaces.delete_space(space.id)), MISSING, None, "Delete space failed: Record not found");
    for patch in [FidgetPatch::new().kind("mine"), FidgetPatch::new()] {
        let refused = wait(fidgets.update_fidget(fidget.id, patch));
        assert_fails(refused, MISSING, None, "Update fidget failed: Record not found");
    }
    assert_fails(wait(fidgets.delete_fidget(fidget.id)), MISSING, None, "Delete fidget failed: Record not found");
    let refused = wait(fidgets.save_positions(space.id, [(fidget.id, Some(json!(1)))].into()));
    assert_fails(refused, MISSING, None, "Save positions failed: Record not found");
    assert_eq!(wait(spaces.get_space(space.id)).expect("as it was"), space);
    assert_eq!(wait(fidgets.get_fidget(fidget.id)).expect("as it was"), fidget);
}

fn nobody_brings_in_no_row(store: &Store) {
    let owner = store.user();
    let shown = store.public_space(owner, "shown");
    let forbidden = |result: townsquare::Result<()>, operation: &str, table: &str| {
        let words = format!("Database error: new row violates row-level security policy for table \"{table}\"");
        assert_fails(result, ErrorKind::Forbidden, Some("42501"), &format!("{operation} failed: {words}"));
    };
    let (spaces, fidgets) = (store.client.spaces(), store.client.fidgets());
    for space in [NewSpace::named("x"), NewSpace::named("x").owned_by(owner), NewSpace::named("x").public()] {
        forbidden(wait(spaces.create_space(space.clone())).map(drop), "Create space", "spaces");
        forbidden(wait(spaces.create_spaces(vec![space])).map(drop), "Create spaces", "spaces");
    }
    let new = || NewFidget::of_type("x");
    forbidden(wait(fidgets.create_fidget(shown.id, new())).map(drop), "Create fidget", "fidgets");
    forbidden(wait(fidgets.create_fidgets(shown.id, vec![new()])).map(drop), "Create fidgets", "fidgets");
    let registration = NewRegistration::new(shown.id, "x", SpaceType::Profile);
    let refused = wait(store.client.communities().register_space(registration)).map(drop);
    forbidden(refused, "Register space", "spaceRegistrations");
    assert_eq!((store.outside.count("spaces"), store.outside.count("fidgets")), (1, 0));
    assert_eq!(store.outside.count("\"spaceRegistrations\""), 0);
}

fn communities_are_the_services_to_write(store: &Store) {
    let made = store.community("town");
    let nobody = store.client.communities();
    let unauthorized = |result: townsquare::Result<()>, operation: &str, table: &str| {
        let sentence = format!("{operation} failed: Database error: permission denied for table {table}");
        assert_fails(result, ErrorKind::Unauthorized, Some("42501"), &sentence);
    };
    for id in ["town", "village"] {
        for patch in [required(), CommunityPatch::new()] {
            let refused = wait(nobody.save_community_config(id, patch)).map(drop);
            unauthorized(refused, "Save community config", "community_configs");
        }
        let refused = wait(nobody.update_navigation(id, Some(json!(1)))).map(drop);
        unauthorized(refused, "Update navigation", "community_configs");
        let refused = wait(nobody.save_community_domain(id, "town.example", DomainType::Custom)).map(drop);
        unauthorized(refused, "Save community domain", "community_domains");
        unauthorized(wait(nobody.delete_community_domain(id)), "Delete community domain", "community_domains");
    }
    let same = wait(store.service.communities().save_community_config("town", CommunityPatch::new()));
    assert_eq!(same.expect("as it was"), made);
    assert_eq!((store.outside.count("community_configs"), store.outside.count("community_domains")), (1, 0));
}

fn the_service_sees_and_changes_everything(store: &Store) {
    let hidden = store.space();
    let fidget = store.fidget(hidden.id, "x");
    let (spaces, fidgets) = (store.service.spaces(), store.service.fidgets());
    assert_eq!(wait(spaces.get_space(hidden.id)).expect("seen"), hidden);
    assert_eq!(wait(fidgets.get_fidget(fidget.id)).expect("seen"), fidget);
    wait(spaces.update_space(hidden.id, SpacePatch::new().name("y"))).expect("changed");
    wait(fidgets.delete_fidget(fidget.id)).expect("deleted");
    wait(spaces.delete_space(hidden.id)).expect("deleted");
    // The handle that nobody has is none the stronger for it.
    let refused = wait(store.client.spaces().create_space(NewSpace::named("x")));
    assert_eq!(refused.expect_err("still nobody").kind(), ErrorKind::Forbidden);
}
