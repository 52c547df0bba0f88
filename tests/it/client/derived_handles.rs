//! Handles of `as_user` and `as_service`: closing one ends that handle and not the client (DESIGN 4).

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use townsquare::{ErrorKind, Uuid, blocking::Client, spaces::NewSpace};
use townsquare_tests::{on_both_engines, test_database::TestDatabase, wait::wait_until};

use super::every_call::{PASSWORD, every_call};

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
