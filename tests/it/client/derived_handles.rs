//! Handles of `as_user` and `as_service`: closing one ends that handle and not the client (DESIGN 4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use townsquare::{
    Error, ErrorKind, Uuid,
    auth::{UserPatch, identity_claim},
    blocking::Client,
    check::CheckDepth,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    discovery::Timeframe,
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
    storage::{ListFiles, UrlMethod},
};
use townsquare_tests::{on_both_engines, test_database::TestDatabase, wait::wait_until};

const PASSWORD: &str = "correct horse";

/// A handle of a user with an account of its own.
fn user(db: &TestDatabase) -> Client {
    user_of(db, &db.client)
}

/// As `user`, a handle of this client.
fn user_of(db: &TestDatabase, client: &Client) -> Client {
    let address = format!("{}@town.example", Uuid::new_v4().simple());
    db.service.auth().sign_up(&address, PASSWORD).expect("an account");
    let session = db.service.auth().sign_in(&address, PASSWORD).expect("a session");
    client.as_user(&session.access_token).expect("a handle")
}

/// The results of every operation.
fn every_call(db: &TestDatabase, client: &Client) -> Vec<(&'static str, Result<(), Error>)> {
    let (id, folder) = (Uuid::from_u128(1), townsquare_tests::temp_dir());
    let (spaces, fidgets, communities) = (client.spaces(), client.fidgets(), client.communities());
    let (auth, discovery) = (client.auth(), client.discovery());
    let key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    let claim = identity_claim(id, key, "town.example", db.now()).expect("a claim");
    let mut stream = spaces.iter_public_spaces(1);
    let registration = NewRegistration::new(id, "x", SpaceType::Profile);
    vec![
        ("create_space", spaces.create_space(NewSpace::named("x")).map(drop)),
        ("create_spaces", spaces.create_spaces(vec![NewSpace::named("x")]).map(drop)),
        ("get_space", spaces.get_space(id).map(drop)),
        ("update_space", spaces.update_space(id, SpacePatch::new().name("x")).map(drop)),
        ("delete_space", spaces.delete_space(id)),
        ("get_user_spaces", spaces.get_user_spaces(id).map(drop)),
        ("get_public_spaces", spaces.get_public_spaces(1, 0).map(drop)),
        ("a deep get_public_spaces", spaces.get_public_spaces(1, 5_000).map(drop)),
        ("get_public_spaces_after", spaces.get_public_spaces_after(1, id).map(drop)),
        ("iter_public_spaces", stream.next().transpose().map(drop)),
        ("get_space_with_fidgets", spaces.get_space_with_fidgets(id).map(drop)),
        ("create_fidget", fidgets.create_fidget(id, NewFidget::of_type("x")).map(drop)),
        ("create_fidgets", fidgets.create_fidgets(id, vec![NewFidget::of_type("x")]).map(drop)),
        ("save_positions", fidgets.save_positions(id, [(id, None)].into()).map(drop)),
        ("get_fidget", fidgets.get_fidget(id).map(drop)),
        ("update_fidget", fidgets.update_fidget(id, FidgetPatch::new().kind("x")).map(drop)),
        ("delete_fidget", fidgets.delete_fidget(id)),
        ("get_space_fidgets", fidgets.get_space_fidgets(id).map(drop)),
        ("save_community_config", communities.save_community_config("x", CommunityPatch::new()).map(drop)),
        ("get_active_community_config", communities.get_active_community_config("x").map(drop)),
        ("save_community_domain", communities.save_community_domain("x", "x.example", DomainType::Custom).map(drop)),
        ("delete_community_domain", communities.delete_community_domain("x.example")),
        ("update_navigation", communities.update_navigation("x", None).map(drop)),
        ("resolve_community", communities.resolve_community("x.example").map(drop)),
        ("register_space", communities.register_space(registration).map(drop)),
        ("get_space_registration", communities.get_space_registration(id).map(drop)),
        ("sign_up", auth.sign_up("eve@town.example", PASSWORD).map(drop)),
        ("sign_in", auth.sign_in("eve@town.example", PASSWORD).map(drop)),
        ("get_session", auth.get_session().map(drop)),
        ("refresh_session", auth.refresh_session().map(drop)),
        ("refresh_session_of", auth.refresh_session_of("x").map(drop)),
        ("set_session", auth.set_session("x").map(drop)),
        ("update_user", auth.update_user(PASSWORD, UserPatch::new()).map(drop)),
        ("delete_own_user", auth.delete_own_user(PASSWORD)),
        ("delete_user", auth.delete_user(id)),
        ("link_identity", auth.link_identity(&claim)),
        ("create_recovery_token", auth.create_recovery_token("eve@town.example").map(drop)),
        ("create_verification_token", auth.create_verification_token(id).map(drop)),
        ("find_user", auth.find_user("eve@town.example").map(drop)),
        ("set_password", auth.set_password(id, PASSWORD).map(drop)),
        ("sign_out", auth.sign_out()),
        ("identity_audience", auth.identity_audience().map(drop)),
        ("download of no bucket", client.storage().download("nowhere", "x").map(drop)),
        ("list of no bucket", client.storage().list("nowhere", ListFiles::new()).map(drop)),
        ("signed_url", client.storage().signed_url("nowhere", "x", UrlMethod::Get, Duration::ZERO).map(drop)),
        ("cursor", client.realtime().cursor().map(drop)),
        ("metrics", client.metrics().map(drop)),
        ("check", client.check(CheckDepth::Quick).map(drop)),
        ("handle_request", client.handle_request("GET", "/files/assets/x", &[], "").map(drop)),
        ("get_trending_mini_apps", discovery.get_trending_mini_apps(Timeframe::Hours24, 1).map(drop)),
        ("get_mini_apps_by_category", discovery.get_mini_apps_by_category(["games"], 1).map(drop)),
        ("search_mini_apps", discovery.search_mini_apps("x", 1).map(drop)),
        ("refresh", discovery.refresh().map(drop)),
        ("force_refresh", discovery.force_refresh().map(drop)),
        ("stats", discovery.stats().map(drop)),
        ("handle", discovery.handle("GET", "/", b"", &[]).map(drop)),
        ("as_user", client.as_user("x").map(drop)),
        ("a handle of as_service", client.as_service().spaces().get_public_spaces(1, 0).map(drop)),
        ("backup", client.backup(folder.path().join("copy.db"))),
        ("backup of a clone", client.clone().backup(db.url())),
    ]
}

on_both_engines! {
    fn every_call_on_a_closed_handle_fails_as_closed(db: &TestDatabase) {
        for handle in [user(db), db.client.as_service()] {
            let clone = handle.clone();
            assert!(!handle.is_closed());
            handle.close();
            handle.close();
            assert!(handle.is_closed() && clone.is_closed() && handle.as_service().is_closed());
            for (call, result) in every_call(db, &handle).into_iter().chain(every_call(db, &clone)) {
                let error = result.expect_err(call);
                assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, "The handle is closed"), "{call}");
                assert!(!error.is_retryable());
            }
        }
        assert_eq!(db.raw.count("spaces"), 0);
    }

    fn closing_a_handle_ends_no_other_handle(db: &TestDatabase) {
        let (ann, bob) = (user(db), user(db));
        let of_ann = ann.as_service();
        let space = ann.spaces().create_space(NewSpace::named("Harbor")).expect("created");
        ann.close();
        assert!(!db.client.is_closed() && !bob.is_closed() && !of_ann.is_closed());
        bob.spaces().create_space(NewSpace::named("Mill")).expect("another user's handle goes on");
        assert_eq!(of_ann.spaces().get_space(space.id).expect("a handle made before goes on"), space);
        db.client.spaces().get_public_spaces(1, 0).expect("the client goes on");
        db.client.auth().sign_up("new@town.example", PASSWORD).expect("the client goes on");
    }

    /// The session is not the handle: it goes on.
    fn closing_a_handle_ends_no_session(db: &TestDatabase) {
        db.service.auth().sign_up("ann@town.example", PASSWORD).expect("an account");
        let session = db.service.auth().sign_in("ann@town.example", PASSWORD).expect("a session");
        let first = db.client.as_user(&session.access_token).expect("a handle");
        first.close();
        let second = db.client.as_user(&session.access_token).expect("the session goes on");
        second.spaces().create_space(NewSpace::named("Harbor")).expect("created");
    }

    fn closing_the_client_closes_every_handle(db: &TestDatabase) {
        let client = db.another();
        let (clone, service) = (client.clone(), client.as_service());
        let user = user_of(db, &client);
        clone.close();
        assert!(client.is_closed() && service.is_closed() && service.as_service().is_closed());
        for handle in [&client, &service, &user] {
            for (call, result) in every_call(db, handle) {
                let error = result.expect_err(call);
                assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, "The client is closed"), "{call}");
            }
        }
        service.close();
    }

    fn a_closed_handle_calls_no_callback(db: &TestDatabase) {
        let handle = user(db);
        let (events, alive) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let listen = || {
            let (events, alive) = (Arc::clone(&events), Arc::clone(&alive));
            handle.auth().on_auth_state_change(move |_, _| {
                let _ = &alive;
                events.fetch_add(1, Ordering::SeqCst);
            })
        };
        let first = listen();
        wait_until("the first event", || events.load(Ordering::SeqCst) == 1);
        handle.close();
        let second = listen();
        wait_until("both callbacks are dropped", || Arc::strong_count(&alive) == 1);
        assert_eq!(events.load(Ordering::SeqCst), 1);
        first.unsubscribe();
        second.unsubscribe();
    }
}
