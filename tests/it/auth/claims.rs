//! Identity keys from claim to navigation (DESIGN 4): who may link one, what that opens, and when it ends.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use townsquare::{
    Change, CommunityConfig, CommunityPatch, DomainType, ErrorKind, Session, Uuid, blocking::wait, identity_claim,
};
use townsquare_tests::{
    on_both_engines,
    store::{Store, assert_fails, required},
};

use super::people::{handle, sign_up};

on_both_engines!(
    a_key_belongs_to_one_user,
    a_claim_counts_for_its_user_and_its_time_alone,
    a_claim_that_is_wrong_links_nothing,
    a_signed_file_is_no_claim,
    who_holds_a_key_sets_the_navigation_and_nothing_else,
    nobody_else_sets_the_navigation_nor_learns_what_is_there,
    a_link_goes_with_its_user,
    a_claim_needs_a_session_that_stands,
);

const SEED: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
const KEY: &str = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";

fn now(store: &Store) -> Timestamp {
    store.hands.clock().now()
}

fn claim(store: &Store, user: Uuid) -> Value {
    identity_claim(user, SEED, now(store)).expect("a key")
}

fn links(store: &Store) -> usize {
    let table = match store.engine {
        townsquare_tests::store::Engine::Sqlite => "townsquare_identities",
        townsquare_tests::store::Engine::Postgres => "townsquare.identities",
    };
    store.outside.count(table)
}

/// A community with the key among its administrators'.
fn community(store: &Store, id: &str) -> CommunityConfig {
    let mut patch: CommunityPatch = required();
    patch.admin_identity_public_keys = Change::Set(vec!["somebody else's".into(), KEY.into()]);
    wait(store.service.communities().save_community_config(id, patch)).expect("saved")
}

fn a_key_belongs_to_one_user(store: &Store) {
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    let (bob, of_bob) = sign_up(store, "bob@town.example");
    wait(of_ann.auth().link_identity(&claim(store, ann.user.id))).expect("linked");
    wait(of_ann.auth().link_identity(&claim(store, ann.user.id))).expect("once more is fine");
    let taken = wait(of_bob.auth().link_identity(&claim(store, bob.user.id)));
    assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Link identity failed: Record already exists");
    assert_eq!(links(store), 1);
}

fn a_claim_counts_for_its_user_and_its_time_alone(store: &Store) {
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    let (_, of_bob) = sign_up(store, "bob@town.example");
    let made = claim(store, ann.user.id);
    let other = "Link identity failed: The identity claim is for another user";
    assert_fails(wait(of_bob.auth().link_identity(&made)), ErrorKind::Unauthorized, None, other);
    let stale = "Link identity failed: The identity claim is too old, or from the future";
    store.hands.advance(Duration::from_secs(5 * 60 + 1));
    assert_fails(wait(of_ann.auth().link_identity(&made)), ErrorKind::Unauthorized, None, stale);
    let early = identity_claim(ann.user.id, SEED, now(store) + SignedDuration::from_secs(61)).expect("a key");
    assert_fails(wait(of_ann.auth().link_identity(&early)), ErrorKind::Unauthorized, None, stale);
    assert_eq!(links(store), 0);
    let ahead = identity_claim(ann.user.id, SEED, now(store) + SignedDuration::from_secs(60)).expect("a key");
    wait(of_ann.auth().link_identity(&ahead)).expect("a clock may be a minute ahead");
}

fn a_claim_that_is_wrong_links_nothing(store: &Store) {
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    let good = claim(store, ann.user.id);
    let unsigned = "Link identity failed: The identity claim's signature is not that of its key";
    let signature = good["signature"].as_str().expect("a text");
    for (name, value) in [
        ("signature", json!("00".repeat(64))),
        ("signature", json!(format!("{}ff", &signature[..126]))),
        ("signature", json!("not hex")),
        ("publicKey", json!("ab".repeat(32))),
        ("timestamp", json!(format!("{:.3}", now(store) - SignedDuration::from_secs(1)))),
        ("userId", json!(Uuid::from_u128(7))),
    ] {
        let mut changed = good.clone();
        changed[name] = value;
        assert_fails(wait(of_ann.auth().link_identity(&changed)), ErrorKind::Unauthorized, None, unsigned);
    }
    let unreadable = "Link identity failed: An identity claim is {publicKey, userId, timestamp, signature}, all texts";
    for value in [json!(null), json!([good.clone()]), json!("claim"), json!({}), json!({"publicKey": KEY})] {
        assert_fails(wait(of_ann.auth().link_identity(&value)), ErrorKind::InvalidInput, None, unreadable);
    }
    assert_eq!(links(store), 0);
}

fn a_signed_file_is_no_claim(store: &Store) {
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    // Made with the published JavaScript of other programs that sign such files.
    let file = json!({
        "publicKey": KEY, "fileData": "{\"a\":1}", "fileType": "json", "isEncrypted": false,
        "timestamp": "2024-01-15T10:30:00.000Z",
        "signature": "7872a955678d07afa6754d61262dbd37c53bd2488d70d69bc8158166ca2533ae\
                      894816d89276d872ee05bd11c7cbbcff204cc5cea5a08318652c04eac9e5ad04",
    });
    let mut padded = claim(store, ann.user.id);
    padded["fileData"] = json!("{}");
    for no_claim in [file, padded] {
        let refused = wait(of_ann.auth().link_identity(&no_claim)).expect_err("no claim");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
    }
    assert_eq!(links(store), 0);
}

fn who_holds_a_key_sets_the_navigation_and_nothing_else(store: &Store) {
    let before = community(store, "town");
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    wait(of_ann.auth().link_identity(&claim(store, ann.user.id))).expect("linked");
    let communities = of_ann.communities();
    store.hands.advance(Duration::from_secs(1));
    let after = wait(communities.update_navigation("town", Some(json!({"items": ["home"]})))).expect("set");
    let mut due = before;
    (due.navigation_config, due.updated_at) = (Some(json!({"items": ["home"]})), now(store));
    assert_eq!(after, due, "the rest is as it was");
    let words = "Database error: permission denied for table";
    for patch in [required(), CommunityPatch::new()] {
        let refused = wait(communities.save_community_config("town", patch));
        let sentence = format!("Save community config failed: {words} community_configs");
        assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
    }
    let refused = wait(communities.save_community_domain("town", "town.example", DomainType::Custom));
    let sentence = format!("Save community domain failed: {words} community_domains");
    assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
    // Another community, with other keys.
    wait(store.service.communities().save_community_config("village", required())).expect("saved");
    let sentence = format!("Update navigation failed: {words} community_configs");
    let refused = wait(communities.update_navigation("village", None));
    assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
    // One that is not published is not there for her.
    let mut hidden = CommunityPatch::new();
    hidden.is_published = Change::Set(false);
    wait(store.service.communities().save_community_config("town", hidden)).expect("hidden");
    let refused = wait(communities.update_navigation("town", None));
    assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
}

fn nobody_else_sets_the_navigation_nor_learns_what_is_there(store: &Store) {
    let before = community(store, "town");
    let (_, stranger) = sign_up(store, "stranger@town.example");
    let sentence = "Update navigation failed: Database error: permission denied for table community_configs";
    for id in ["town", "nowhere"] {
        for (client, kind) in [(&stranger, ErrorKind::Forbidden), (&store.client, ErrorKind::Unauthorized)] {
            let refused = wait(client.communities().update_navigation(id, Some(json!("mine"))));
            assert_fails(refused, kind, Some("42501"), sentence);
        }
    }
    let same = wait(store.service.communities().save_community_config("town", CommunityPatch::new()));
    assert_eq!(same.expect("as it was"), before);
}

fn a_link_goes_with_its_user(store: &Store) {
    community(store, "town");
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    wait(of_ann.auth().link_identity(&claim(store, ann.user.id))).expect("linked");
    wait(store.service.auth().delete_user(ann.user.id)).expect("deleted");
    assert_eq!(links(store), 0);
    let ended = wait(of_ann.communities().update_navigation("town", None));
    assert_fails(ended, ErrorKind::Unauthorized, None, "Update navigation failed: Session has ended");
    // Whoever has her address next has her key no more; it is free.
    let (again, of_again) = sign_up(store, "ann@town.example");
    let refused = wait(of_again.communities().update_navigation("town", None));
    assert_eq!(refused.expect_err("somebody else").kind(), ErrorKind::Forbidden);
    wait(of_again.auth().link_identity(&claim(store, again.user.id))).expect("linked");
    wait(of_again.communities().update_navigation("town", None)).expect("set");
}

fn a_claim_needs_a_session_that_stands(store: &Store) {
    let (ann, of_ann) = sign_up(store, "ann@town.example");
    let made = claim(store, ann.user.id);
    let nobody = "Link identity failed: Nobody is signed in";
    for client in [&store.client, &store.service] {
        assert_fails(wait(client.auth().link_identity(&made)), ErrorKind::Unauthorized, None, nobody);
    }
    let (_, elsewhere): (Session, _) = handle(store, "ann@town.example");
    wait(of_ann.auth().sign_out()).expect("signed out");
    let ended = wait(of_ann.auth().link_identity(&made));
    assert_fails(ended, ErrorKind::Unauthorized, None, "Link identity failed: Session has ended");
    assert_eq!(links(store), 0);
    wait(elsewhere.auth().link_identity(&made)).expect("the user has another session");
}
