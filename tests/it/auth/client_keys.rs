//! Limits per client key (DESIGN 8): one client's guesses neither refuse the sign-ins of others nor lock a user out.

use std::time::Duration;

use townsquare::{
    ErrorKind, Result,
    auth::{Session, UserPatch},
    blocking::Client,
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

use super::users::PASSWORD;

const ANN: &str = "ann@town.example";
const WRONG: &str = "wrong password";

/// A session that a server makes for a client.
fn create_session(db: &TestDatabase, client: &str, email: &str, password: &str) -> Result<Session> {
    db.client.with_client_key(client).auth().create_session(email, password)
}

#[track_caller]
fn assert_refused(kind: ErrorKind, result: Result<Session>) {
    assert_eq!(result.expect_err("refused").kind(), kind);
}

fn account(db: &TestDatabase, email: &str) -> townsquare::Uuid {
    db.service.auth().sign_up(email, PASSWORD).expect("signed up").id
}

fn known_clients(db: &TestDatabase) -> usize {
    db.raw.count(match db.engine {
        Engine::Sqlite => "townsquare_known_clients",
        Engine::Postgres => "townsquare.known_clients",
    })
}

on_both_engines! {
    fn the_failures_of_one_client_do_not_refuse_another(db: &TestDatabase) {
        account(db, ANN);
        account(db, "bob@town.example");
        for number in 0..50 {
            assert_refused(ErrorKind::Unauthorized, create_session(db, "guesser", &format!("{number}@town.example"), WRONG));
        }
        let limited = create_session(db, "guesser", ANN, PASSWORD).expect_err("the client has to wait");
        assert_eq!((limited.kind(), limited.retry_after()), (ErrorKind::RateLimited, Some(Duration::from_secs(30))));
        create_session(db, "other", ANN, PASSWORD).expect("another client");
        db.service.auth().sign_in(ANN, PASSWORD).expect("no client key");
        // The client's failures end no sooner by a sign-in with an account of its own.
        db.clock.advance(Duration::from_secs(30));
        create_session(db, "guesser", "bob@town.example", PASSWORD).expect("its own account");
        assert_refused(ErrorKind::Unauthorized, create_session(db, "guesser", ANN, WRONG));
        assert_refused(ErrorKind::RateLimited, create_session(db, "guesser", ANN, WRONG));
        // One failure is forgotten every minute.
        db.clock.advance(Duration::from_secs(60 + 120));
        assert_refused(ErrorKind::Unauthorized, create_session(db, "guesser", ANN, WRONG));
    }

    fn addresses_of_one_ipv6_subscriber_are_one_client(db: &TestDatabase) {
        account(db, ANN);
        for number in 0..50 {
            let (peer, email) = (format!("2001:db8:1:2::{number}"), format!("{number}@town.example"));
            assert_refused(ErrorKind::Unauthorized, create_session(db, &peer, &email, WRONG));
        }
        assert_refused(ErrorKind::RateLimited, create_session(db, "2001:db8:1:2:ffff::1", ANN, PASSWORD));
        create_session(db, "2001:db8:1:3::1", ANN, PASSWORD).expect("another subscriber");
    }

    fn the_port_of_an_address_does_not_count(db: &TestDatabase) {
        account(db, ANN);
        for port in 1..=50 {
            let email = format!("{port}@town.example");
            assert_refused(ErrorKind::Unauthorized, create_session(db, &format!("10.0.0.1:{port}"), &email, WRONG));
        }
        assert_refused(ErrorKind::RateLimited, create_session(db, " 10.0.0.1 ", ANN, PASSWORD));
        create_session(db, "10.0.0.2:1", ANN, PASSWORD).expect("another client");
    }

    fn a_device_that_signed_in_before_keeps_a_way_in_while_the_address_is_locked(db: &TestDatabase) {
        account(db, ANN);
        create_session(db, "phone", ANN, PASSWORD).expect("the phone is known from here on");
        for round in 0..12 {
            let refused = create_session(db, &format!("stranger {round}"), ANN, WRONG).expect_err("wrong");
            assert_eq!(refused.kind(), if round < 10 { ErrorKind::Unauthorized } else { ErrorKind::RateLimited });
        }
        assert_refused(ErrorKind::RateLimited, create_session(db, "new phone", ANN, PASSWORD));
        assert_refused(ErrorKind::RateLimited, db.service.auth().sign_in(ANN, PASSWORD));
        create_session(db, "phone", " ANN@town.example", PASSWORD).expect("her phone");
        // Its own failures are counted for it alone, and its sign-ins do not give strangers new guesses.
        assert_refused(ErrorKind::RateLimited, create_session(db, "new phone", ANN, PASSWORD));
        for _ in 0..10 {
            assert_refused(ErrorKind::Unauthorized, create_session(db, "phone", ANN, WRONG));
        }
        assert_refused(ErrorKind::RateLimited, create_session(db, "phone", ANN, PASSWORD));
        db.clock.advance(Duration::from_secs(30));
        create_session(db, "phone", ANN, PASSWORD).expect("after its wait");
        // A client is known for one user only.
        account(db, "bob@town.example");
        for _ in 0..10 {
            assert_refused(ErrorKind::Unauthorized, db.service.auth().sign_in("bob@town.example", WRONG));
        }
        assert_refused(ErrorKind::RateLimited, create_session(db, "phone", "bob@town.example", PASSWORD));
    }

    fn a_client_is_forgotten_with_the_password_the_user_and_after_180_days(db: &TestDatabase) {
        let ann = account(db, ANN);
        create_session(db, "phone", ANN, PASSWORD).expect("signed in");
        assert_eq!(known_clients(db), 1);
        db.service.auth().set_password(ann, PASSWORD).expect("set");
        assert_eq!(known_clients(db), 0);
        for (email, patch) in [
            (ANN, UserPatch::new().email("ann@harbor.example")),
            ("ann@harbor.example", UserPatch::new().email(ANN)),
            (ANN, UserPatch::new().password(PASSWORD)),
        ] {
            let session = create_session(db, "phone", email, PASSWORD).expect("signed in");
            assert_eq!(known_clients(db), 1);
            let own = db.client.as_user(&session.access_token).expect("a handle");
            own.auth().update_user(PASSWORD, patch).expect("changed");
            assert_eq!(known_clients(db), 0);
        }
        create_session(db, "phone", ANN, PASSWORD).expect("signed in");
        db.service.auth().delete_user(ann).expect("deleted");
        assert_eq!(known_clients(db), 0);
        account(db, ANN);
        create_session(db, "phone", ANN, PASSWORD).expect("signed in");
        db.clock.advance(Duration::from_secs(181 * 86_400));
        for _ in 0..10 {
            assert_refused(ErrorKind::Unauthorized, create_session(db, "stranger", ANN, WRONG));
        }
        assert_refused(ErrorKind::RateLimited, create_session(db, "phone", ANN, PASSWORD));
        db.clock.advance(Duration::from_secs(30));
        create_session(db, "tablet", ANN, PASSWORD).expect("signed in");
        assert_eq!(known_clients(db), 1);
        // Failed sign-ins and calls without a key make no client known.
        assert_refused(ErrorKind::Unauthorized, create_session(db, "laptop", ANN, WRONG));
        db.service.auth().sign_in(ANN, PASSWORD).expect("signed in");
        assert_eq!(known_clients(db), 1);
    }

    fn create_session_changes_no_caller_and_handles_keep_their_key(db: &TestDatabase) {
        let ann = account(db, ANN);
        let client = db.another();
        let session = client.auth().create_session(ANN, PASSWORD).expect("a session");
        assert_eq!(client.auth().get_session().expect("asked"), None);
        assert_eq!(session.user.id, ann);
        let keyed = client.with_client_key("peer");
        for _ in 0..50 {
            assert_refused(ErrorKind::Unauthorized, keyed.auth().create_session("nobody", WRONG));
        }
        let of_ann = keyed.as_user(&session.access_token).expect("a handle");
        for handle in [&keyed.as_service(), &of_ann] {
            assert_refused(ErrorKind::RateLimited, handle.auth().create_session(ANN, PASSWORD));
        }
        // A handle with a key has the caller of its client.
        keyed.with_client_key("other").auth().sign_in(ANN, PASSWORD).expect("signed in");
        assert!(client.auth().get_session().expect("asked").is_some());
        client.close();
        assert!(keyed.is_closed());
    }

    fn two_hundred_guesses_of_one_client_do_not_refuse_a_right_sign_in(db: &TestDatabase) {
        account(db, ANN);
        let guesser = db.client.with_client_key("guesser");
        std::thread::scope(|scope| {
            let guesses = scope.spawn(|| guess_at_once(&guesser, 200));
            loop {
                create_session(db, "other", ANN, PASSWORD).expect("never refused");
                if guesses.is_finished() {
                    break;
                }
            }
            let kinds = guesses.join().expect("no panic");
            assert!(kinds.contains(&ErrorKind::RateLimited), "{kinds:?}");
        });
    }
}

/// Guesses `times` times at once, each from a thread of its own.
fn guess_at_once(client: &Client, times: usize) -> Vec<ErrorKind> {
    std::thread::scope(|scope| {
        let guesses: Vec<_> = (0..times)
            .map(|number| {
                let auth = client.auth();
                scope.spawn(move || {
                    let email = format!("{number}@town.example");
                    auth.create_session(&email, WRONG).expect_err("wrong").kind()
                })
            })
            .collect();
        guesses.into_iter().map(|guess| guess.join().expect("no panic")).collect()
    })
}
