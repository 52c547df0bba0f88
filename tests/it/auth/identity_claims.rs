//! Identity keys (DESIGN 4): linking by a claim, the right to set the navigation, and its end.

use std::{sync::Barrier, thread, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use townsquare::{
    ErrorKind, Uuid,
    auth::{Session, identity_claim},
    blocking::Client,
    communities::{CommunityConfig, CommunityPatch, DomainType},
    spaces::Change,
};
use townsquare_tests::{
    on_both_engines,
    test_database::{TestDatabase, assert_fails, required},
};

use super::users::{handle, sign_up};

const SEED: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
const KEY: &str = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";

fn now(db: &TestDatabase) -> Timestamp {
    db.now()
}

fn audience(db: &TestDatabase) -> String {
    db.client.auth().identity_audience().expect("an audience")
}

fn claim(db: &TestDatabase, user: Uuid) -> Value {
    identity_claim(user, SEED, &audience(db), now(db)).expect("a key")
}

fn links(db: &TestDatabase) -> usize {
    let table = match db.engine {
        townsquare_tests::test_database::Engine::Sqlite => "townsquare_identities",
        townsquare_tests::test_database::Engine::Postgres => "townsquare.identities",
    };
    db.raw.count(table)
}

/// Creates a community with the key among its admin keys.
fn community(db: &TestDatabase, id: &str) -> CommunityConfig {
    let mut patch: CommunityPatch = required();
    patch.admin_identity_public_keys = Change::Set(vec!["somebody else's".into(), KEY.into()]);
    db.service.communities().save_community_config(id, patch).expect("saved")
}

on_both_engines! {
    fn an_identity_key_belongs_to_one_user(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let (bob, of_bob) = sign_up(db, "bob@town.example");
        of_ann.auth().link_identity(&claim(db, ann.user.id)).expect("linked");
        of_ann.auth().link_identity(&claim(db, ann.user.id)).expect("once more is fine");
        let taken = of_bob.auth().link_identity(&claim(db, bob.user.id));
        assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Link identity failed: Record already exists");
        assert_eq!(links(db), 1);
    }

    fn a_user_has_at_most_a_hundred_identity_keys(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let (bob, of_bob) = sign_up(db, "bob@town.example");
        let claim_of = |user: Uuid, number: usize| {
            identity_claim(user, &format!("{number:064x}"), &audience(db), now(db)).expect("a claim")
        };
        for number in 1..=98 {
            of_ann.auth().link_identity(&claim_of(ann.user.id, number)).expect("linked");
        }
        // Other processes of the host, of which each has counted less than a hundred keys.
        let claims: Vec<_> = (99..=106).map(|number| claim_of(ann.user.id, number)).collect();
        let start = Barrier::new(claims.len());
        let results: Vec<_> = thread::scope(|scope| {
            let link = |claim| {
                let (client, start) = (of_ann.clone(), &start);
                scope.spawn(move || {
                    start.wait();
                    client.auth().link_identity(claim)
                })
            };
            let links: Vec<_> = claims.iter().map(link).collect();
            links.into_iter().map(|link| link.join().expect("no panic")).collect()
        });
        let refused: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert_eq!((refused.len(), links(db)), (6, 100));
        for error in refused {
            assert_eq!((error.kind(), error.status(), error.code()), (ErrorKind::QuotaExceeded, 409, None));
            let words = "Link identity failed: Quota exceeded: the user would have more than 100 identity keys";
            assert_eq!(error.to_string(), words);
        }
        of_ann.auth().link_identity(&claim_of(ann.user.id, 1)).expect("a repeated call links nothing");
        let taken = of_bob.auth().link_identity(&claim_of(bob.user.id, 1));
        assert_eq!(taken.expect_err("of Ann").kind(), ErrorKind::AlreadyExists);
        of_bob.auth().link_identity(&claim_of(bob.user.id, 200)).expect("the limit is each user's");
        let keys = of_ann.auth().identities().expect("keys");
        assert_eq!(db.service.auth().identities_of(ann.user.id).expect("keys"), keys);
        let refused = of_ann.auth().identities_of(ann.user.id).expect_err("no service");
        assert_eq!(refused.kind(), ErrorKind::Forbidden);
        of_ann.auth().unlink_identity(&keys[0]).expect("unlinked");
        of_ann.auth().link_identity(&claim_of(ann.user.id, 201)).expect("an unlinked key does not count");
    }

    fn an_identity_claim_is_valid_for_its_audience_only(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let own = audience(db);
        assert!(own.len() == 32 && own.bytes().all(|byte| byte.is_ascii_hexdigit()), "{own}");
        let other = "Link identity failed: The identity claim is for another audience";
        for audience in ["town.example", "", "' OR '1'='1", &own.to_uppercase(), &format!("{own}\0")] {
            let claim = identity_claim(ann.user.id, SEED, audience, now(db)).expect("a key");
            assert_fails(of_ann.auth().link_identity(&claim), ErrorKind::Unauthorized, None, other);
        }
        let mut without = claim(db, ann.user.id);
        without.as_object_mut().expect("an object").remove("audience");
        assert_eq!(of_ann.auth().link_identity(&without).expect_err("none").kind(), ErrorKind::InvalidInput);
        assert_eq!(links(db), 0);
        let client = Client::open(db.config().identity_audience("town.example")).expect("opens");
        assert_eq!(client.auth().identity_audience().expect("an audience"), "town.example");
        let handle = client.as_user(&ann.access_token).expect("a handle");
        assert_fails(
            handle.auth().link_identity(&claim(db, ann.user.id)),
            ErrorKind::Unauthorized,
            None,
            other,
        );
        let claim = identity_claim(ann.user.id, SEED, "town.example", now(db)).expect("a key");
        handle.auth().link_identity(&claim).expect("linked");
        client.close();
    }

    fn an_unlinked_key_has_no_rights_and_is_free(db: &TestDatabase) {
        community(db, "town");
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let (bob, of_bob) = sign_up(db, "bob@town.example");
        let other_key = identity_claim(ann.user.id, &"02".repeat(32), &audience(db), now(db)).expect("a key");
        of_ann.auth().link_identity(&claim(db, ann.user.id)).expect("linked");
        db.clock.advance(Duration::from_secs(1));
        of_ann.auth().link_identity(&other_key).expect("linked");
        let keys = of_ann.auth().identities().expect("a list");
        assert_eq!(keys, [KEY, other_key["publicKey"].as_str().expect("a text")]);
        assert_eq!(of_bob.auth().identities().expect("a list"), Vec::<String>::new());
        let missing = "Unlink identity failed: Record not found";
        for key in [KEY, "", "\0", "' OR '1'='1", &KEY.to_uppercase()] {
            assert_fails(of_bob.auth().unlink_identity(key), ErrorKind::NotFound, None, missing);
        }
        of_ann.communities().update_navigation("town", None).expect("an admin");
        of_ann.auth().unlink_identity(KEY).expect("unlinked");
        let refused = of_ann.communities().update_navigation("town", None).expect_err("no admin any more");
        assert_eq!(refused.kind(), ErrorKind::Forbidden);
        assert_eq!(of_ann.auth().identities().expect("a list"), keys[1..]);
        assert_fails(of_ann.auth().unlink_identity(KEY), ErrorKind::NotFound, None, missing);
        of_bob.auth().link_identity(&claim(db, bob.user.id)).expect("the key is free");
    }

    fn listing_and_unlinking_keys_requires_a_valid_session(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        of_ann.auth().link_identity(&claim(db, ann.user.id)).expect("linked");
        for client in [&db.client, &db.service] {
            let list = client.auth().identities();
            assert_fails(list, ErrorKind::Unauthorized, None, "List identities failed: Nobody is signed in");
            let unlink = client.auth().unlink_identity(KEY);
            assert_fails(unlink, ErrorKind::Unauthorized, None, "Unlink identity failed: Nobody is signed in");
        }
        of_ann.auth().sign_out().expect("signed out");
        let list = of_ann.auth().identities();
        assert_fails(list, ErrorKind::Unauthorized, None, "List identities failed: Session has ended");
        let unlink = of_ann.auth().unlink_identity(KEY);
        assert_fails(unlink, ErrorKind::Unauthorized, None, "Unlink identity failed: Session has ended");
        assert_eq!(links(db), 1);
    }

    fn an_identity_claim_is_valid_for_its_user_and_time_only(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let (_, of_bob) = sign_up(db, "bob@town.example");
        let made = claim(db, ann.user.id);
        let other = "Link identity failed: The identity claim is for another user";
        assert_fails(of_bob.auth().link_identity(&made), ErrorKind::Unauthorized, None, other);
        let stale = "Link identity failed: The identity claim is older than five minutes";
        let future = "Link identity failed: The identity claim is more than a minute in the future";
        db.clock.advance(Duration::from_secs(5 * 60 + 1));
        assert_fails(of_ann.auth().link_identity(&made), ErrorKind::Unauthorized, None, stale);
        let early = identity_claim(ann.user.id, SEED, &audience(db), now(db) + SignedDuration::from_secs(61)).expect("a key");
        assert_fails(of_ann.auth().link_identity(&early), ErrorKind::Unauthorized, None, future);
        assert_eq!(links(db), 0);
        let ahead = identity_claim(ann.user.id, SEED, &audience(db), now(db) + SignedDuration::from_secs(60)).expect("a key");
        of_ann.auth().link_identity(&ahead).expect("a clock may be a minute ahead");
    }

    fn an_invalid_identity_claim_links_nothing(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let good = claim(db, ann.user.id);
        let unsigned = "Link identity failed: The identity claim's signature is not that of its key";
        let signature = good["signature"].as_str().expect("a text");
        for (name, value) in [
            ("signature", json!("00".repeat(64))),
            ("signature", json!(format!("{}ff", &signature[..126]))),
            ("signature", json!("not hex")),
            ("publicKey", json!("ab".repeat(32))),
            ("timestamp", json!(format!("{:.3}", now(db) - SignedDuration::from_secs(1)))),
            ("userId", json!(Uuid::from_u128(7))),
        ] {
            let mut changed = good.clone();
            changed[name] = value;
            assert_fails(of_ann.auth().link_identity(&changed), ErrorKind::Unauthorized, None, unsigned);
        }
        let unreadable =
            "Link identity failed: An identity claim is {publicKey, userId, audience, timestamp, signature}, all texts";
        for value in [json!(null), json!([good.clone()]), json!("claim"), json!({}), json!({"publicKey": KEY})] {
            assert_fails(of_ann.auth().link_identity(&value), ErrorKind::InvalidInput, None, unreadable);
        }
        assert_eq!(links(db), 0);
    }

    fn a_signed_file_is_not_an_identity_claim(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        // Signed with the published JavaScript implementation.
        let file = json!({
            "publicKey": KEY, "fileData": "{\"a\":1}", "fileType": "json", "isEncrypted": false,
            "timestamp": "2024-01-15T10:30:00.000Z",
            "signature": "7872a955678d07afa6754d61262dbd37c53bd2488d70d69bc8158166ca2533ae\
                      894816d89276d872ee05bd11c7cbbcff204cc5cea5a08318652c04eac9e5ad04",
        });
        let mut padded = claim(db, ann.user.id);
        padded["fileData"] = json!("{}");
        for no_claim in [file, padded] {
            let refused = of_ann.auth().link_identity(&no_claim).expect_err("no claim");
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        }
        assert_eq!(links(db), 0);
    }

    fn a_community_admin_sets_the_navigation_and_nothing_else(db: &TestDatabase) {
        let before = community(db, "town");
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        of_ann.auth().link_identity(&claim(db, ann.user.id)).expect("linked");
        let communities = of_ann.communities();
        db.clock.advance(Duration::from_secs(1));
        let after = communities.update_navigation("town", Some(json!({"items": ["home"]}))).expect("set");
        let mut due = before;
        (due.navigation_config, due.updated_at) = (Some(json!({"items": ["home"]})), now(db));
        let saved = db.service.communities().save_community_config("town", CommunityPatch::new());
        assert_eq!(saved.expect("found"), due, "the rest is as it was");
        // The address and the keys are the service's.
        (due.admin_email, due.admin_identity_public_keys, due.custom_domain_authorized) = (None, None, false);
        assert_eq!(after, due);
        let words = "Database error: permission denied for table";
        for patch in [required(), CommunityPatch::new()] {
            let refused = communities.save_community_config("town", patch);
            let sentence = format!("Save community config failed: {words} community_configs");
            assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
        }
        let refused = communities.save_community_domain("town", "town.example", DomainType::Custom);
        let sentence = format!("Save community domain failed: {words} community_domains");
        assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
        // A community with other admin keys.
        db.service.communities().save_community_config("village", required()).expect("saved");
        let sentence = format!("Update navigation failed: {words} community_configs");
        let refused = communities.update_navigation("village", None);
        assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
        // An unpublished community fails like a missing one.
        let mut hidden = CommunityPatch::new();
        hidden.is_published = Change::Set(false);
        db.service.communities().save_community_config("town", hidden).expect("hidden");
        let refused = communities.update_navigation("town", None);
        assert_fails(refused, ErrorKind::Forbidden, Some("42501"), &sentence);
    }

    fn other_callers_cannot_set_the_navigation_or_detect_communities(db: &TestDatabase) {
        let before = community(db, "town");
        let (_, stranger) = sign_up(db, "stranger@town.example");
        let sentence = "Update navigation failed: Database error: permission denied for table community_configs";
        for id in ["town", "nowhere"] {
            for (client, kind) in [(&stranger, ErrorKind::Forbidden), (&db.client, ErrorKind::Unauthorized)] {
                let refused = client.communities().update_navigation(id, Some(json!("mine")));
                assert_fails(refused, kind, Some("42501"), sentence);
            }
        }
        let same = db.service.communities().save_community_config("town", CommunityPatch::new());
        assert_eq!(same.expect("as it was"), before);
    }

    fn deleting_a_user_deletes_the_linked_keys(db: &TestDatabase) {
        community(db, "town");
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        of_ann.auth().link_identity(&claim(db, ann.user.id)).expect("linked");
        db.service.auth().delete_user(ann.user.id).expect("deleted");
        assert_eq!(links(db), 0);
        let ended = of_ann.communities().update_navigation("town", None);
        assert_fails(ended, ErrorKind::Unauthorized, None, "Update navigation failed: Session has ended");
        // A new user with the same address does not have the key; the key is free.
        let (again, of_again) = sign_up(db, "ann@town.example");
        let refused = of_again.communities().update_navigation("town", None);
        assert_eq!(refused.expect_err("somebody else").kind(), ErrorKind::Forbidden);
        of_again.auth().link_identity(&claim(db, again.user.id)).expect("linked");
        of_again.communities().update_navigation("town", None).expect("set");
    }

    fn linking_an_identity_requires_a_valid_session(db: &TestDatabase) {
        let (ann, of_ann) = sign_up(db, "ann@town.example");
        let made = claim(db, ann.user.id);
        let anonymous = "Link identity failed: Nobody is signed in";
        for client in [&db.client, &db.service] {
            assert_fails(client.auth().link_identity(&made), ErrorKind::Unauthorized, None, anonymous);
        }
        let (_, elsewhere): (Session, _) = handle(db, "ann@town.example");
        of_ann.auth().sign_out().expect("signed out");
        let ended = of_ann.auth().link_identity(&made);
        assert_fails(ended, ErrorKind::Unauthorized, None, "Link identity failed: Session has ended");
        assert_eq!(links(db), 0);
        elsewhere.auth().link_identity(&made).expect("the user has another session");
    }
}
