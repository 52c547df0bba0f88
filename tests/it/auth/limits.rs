//! Limits on password checks and sign-ups (DESIGN 8).

use std::{
    task::{Context, Poll, Waker},
    time::Duration,
};

use townsquare::{
    ErrorKind, Uuid,
    auth::UserPatch,
    blocking::{Client, wait},
};
use townsquare_tests::{
    on_both_engines, on_engine,
    test_database::{Engine, TestDatabase},
};

use super::users::{PASSWORD, sign_up};

const ANN: &str = "ann@town.example";
const WRONG: &str = "wrong password";

/// The kind of the error of a sign-in with a wrong password.
fn failed_sign_in(db: &TestDatabase, email: &str) -> ErrorKind {
    db.service.auth().sign_in(email, WRONG).expect_err("wrong").kind()
}

fn failed_confirmation(client: &Client) -> ErrorKind {
    client.auth().update_user(WRONG, UserPatch::new()).expect_err("wrong").kind()
}

fn counts(db: &TestDatabase) -> usize {
    db.raw.count(match db.engine {
        Engine::Sqlite => "townsquare_failures",
        Engine::Postgres => "townsquare.failures",
    })
}

fn repeat(times: usize, mut call: impl FnMut() -> ErrorKind) {
    for _ in 0..times {
        assert_eq!(call(), ErrorKind::Unauthorized);
    }
}

on_both_engines! {
    fn a_user_keeps_a_thousand_sessions_and_always_the_latest(db: &TestDatabase) {
        let (first, _) = sign_up(db, ANN);
        let (table, user) = match db.engine {
            Engine::Sqlite => ("townsquare_sessions", format!("'{}'", first.user.id)),
            Engine::Postgres => ("townsquare.sessions", format!("'{}'::uuid", first.user.id)),
        };
        // The stored times are later than those of the next sign-in, as after a clock that was set back.
        let raw = &db.raw;
        let oldest = raw.value(&format!("SELECT id FROM {table}"));
        let columns = "access_hash, id, user_id, refresh_hash, created_at, access_expires_at, refresh_expires_at";
        for number in 0..999 {
            let id = Uuid::from_u128(number + 1);
            raw.run(&format!(
                "INSERT INTO {table} ({columns})
                     SELECT 'a{number}', '{id}', {user}, 'r{number}', '2100-01-01T00:00:00.000000Z', access_expires_at, refresh_expires_at
                     FROM {table} WHERE id = '{oldest}'"
            ));
        }
        assert!(db.client.as_user(&first.access_token).is_ok());
        db.clock.advance(Duration::from_secs(1));
        let last = db.service.auth().create_session(ANN, PASSWORD).expect("a session");
        assert_eq!(raw.value(&format!("SELECT count(*) FROM {table}")), "1000");
        assert!(db.client.as_user(&last.access_token).is_ok(), "the new session");
        assert!(db.client.as_user(&first.access_token).is_err(), "the oldest session");
    }

    fn failures_are_not_forgotten_when_a_window_ends(db: &TestDatabase) {
        repeat(9, || failed_sign_in(db, ANN));
        db.clock.advance(Duration::from_secs(16 * 60));
        // One of nine failures is forgotten.
        repeat(2, || failed_sign_in(db, ANN));
        assert_eq!(failed_sign_in(db, ANN), ErrorKind::RateLimited);
    }

    fn failures_decay_one_by_one(db: &TestDatabase) {
        repeat(10, || failed_sign_in(db, ANN));
        // The wait of 30 s does not count.
        db.clock.advance(Duration::from_secs(3 * 15 * 60 + 30));
        repeat(3, || failed_sign_in(db, ANN));
        assert_eq!(failed_sign_in(db, ANN), ErrorKind::RateLimited);
        db.clock.advance(Duration::from_secs(10 * 15 * 60 + 30));
        repeat(10, || failed_sign_in(db, ANN));
        assert_eq!(failed_sign_in(db, ANN), ErrorKind::RateLimited);
    }

    fn a_wait_doubles_to_fifteen_minutes_at_most(db: &TestDatabase) {
        repeat(10, || failed_sign_in(db, ANN));
        for seconds in [30, 60, 120, 240, 480, 900, 900] {
            let limited = db.service.auth().sign_in(ANN, PASSWORD).expect_err("limited");
            assert_eq!(limited.retry_after(), Some(Duration::from_secs(seconds)));
            db.clock.advance(Duration::from_secs(seconds));
            repeat(1, || failed_sign_in(db, ANN));
        }
    }

    fn text_that_is_no_address_is_not_stored(db: &TestDatabase) {
        for text in ["hunter2-my-password", "", "a b@c.d", "no\0body", &"x".repeat(1_000)] {
            repeat(12, || failed_sign_in(db, text));
        }
        assert_eq!(counts(db), 0);
        repeat(1, || failed_sign_in(db, "nobody@town.example"));
        assert_eq!(counts(db), 1);
    }

    fn strangers_do_not_lock_a_signed_in_user_out(db: &TestDatabase) {
        let (_, of_ann) = sign_up(db, ANN);
        repeat(10, || failed_sign_in(db, ANN));
        assert_eq!(failed_sign_in(db, ANN), ErrorKind::RateLimited);
        of_ann.auth().update_user(PASSWORD, UserPatch::new()).expect("the password is right");
        of_ann.auth().update_user(PASSWORD, UserPatch::new().email("ann@new.example")).expect("changed");
        of_ann.auth().delete_own_user(PASSWORD).expect("deleted");
    }

    fn wrong_passwords_inside_sessions_are_counted_per_user(db: &TestDatabase) {
        let (_, of_ann) = sign_up(db, ANN);
        let (_, of_bob) = sign_up(db, "bob@town.example");
        repeat(5, || failed_confirmation(&of_ann));
        of_ann.auth().update_user(PASSWORD, UserPatch::new()).expect("a right password forgets the failures");
        repeat(9, || failed_confirmation(&of_ann));
        assert_eq!(
            of_ann.auth().delete_own_user(WRONG).expect_err("wrong").kind(),
            ErrorKind::Unauthorized
        );
        let limited = of_ann.auth().update_user(PASSWORD, UserPatch::new()).expect_err("limited");
        assert_eq!((limited.kind(), limited.retry_after()), (ErrorKind::RateLimited, Some(Duration::from_secs(30))));
        assert_eq!(of_ann.auth().delete_own_user(PASSWORD).expect_err("limited").kind(), ErrorKind::RateLimited);
        // Another session of the user shares the count; sign-ins and other users do not.
        let (_, elsewhere) = super::users::handle(db, ANN);
        assert_eq!(failed_confirmation(&elsewhere), ErrorKind::RateLimited);
        assert!(of_bob.auth().update_user(PASSWORD, UserPatch::new()).is_ok());
        db.clock.advance(Duration::from_secs(30));
        assert!(of_ann.auth().update_user(PASSWORD, UserPatch::new()).is_ok());
    }

    fn sign_ups_are_limited_per_hour_over_all_clients(db: &TestDatabase) {
        let open = || Client::open(db.config().sign_up_limit(4)).expect("opens");
        let clients = [open(), open()];
        let sign_up = |number: usize| {
            clients[number % 2].auth().sign_up(&format!("user{number}@town.example"), PASSWORD)
        };
        for number in 0..4 {
            sign_up(number).expect("within the limit");
        }
        let refused = sign_up(4).expect_err("one too many");
        assert_eq!(refused.kind(), ErrorKind::RateLimited);
        assert_eq!(refused.to_string(), "Sign up failed: Too many sign-ups; try again in 900 s");
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(900)));
        assert!(refused.is_retryable());
        db.clock.advance(Duration::from_secs(900));
        // A sign-up that fails is not counted.
        assert_eq!(sign_up(0).expect_err("taken").kind(), ErrorKind::AlreadyExists);
        sign_up(4).expect("a quarter of an hour later there is room for one");
        assert_eq!(sign_up(5).expect_err("one too many").kind(), ErrorKind::RateLimited);
        db.client.auth().sign_up(ANN, PASSWORD).expect("without the option there is no limit");
        for client in clients {
            client.close();
        }
    }
}

on_engine! { Sqlite in hash_queue;
    fn the_queue_for_hashing_is_bounded_and_callers_who_leave_are_not_served(db: &TestDatabase) {
        // At most four hashes run and 64 callers wait for each.
        let callers = 5 * 65 + 20;
        let addresses: Vec<_> = (0..callers).map(|number| format!("user{number}@town.example")).collect();
        let mut context = Context::from_waker(Waker::noop());
        let auth = db.async_service().auth();
        let mut calls: Vec<_> = addresses.iter().map(|email| Box::pin(auth.sign_in(email, WRONG))).collect();
        let mut refused = 0;
        for call in &mut calls {
            if let Poll::Ready(result) = call.as_mut().poll(&mut context) {
                let error = result.expect_err("nobody");
                assert_eq!(error.kind(), ErrorKind::RateLimited, "{error}");
                assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
                refused += 1;
            }
        }
        assert!(refused >= callers - 4 * 65 - 20, "{refused} of {callers} callers were refused");
        drop(calls);
        // The next caller does not wait for those who left: their passwords are never hashed and no failure is counted.
        sign_up(db, ANN);
        assert!(counts(db) < 60, "{} callers who left were served", counts(db));
    }

    fn many_clients_with_right_passwords_do_not_refuse_a_known_client(db: &TestDatabase) {
        for email in [ANN, "mallory@town.example"] {
            db.client.auth().sign_up(email, PASSWORD).expect("created");
        }
        let phone = db.client.with_client_key("192.0.2.1");
        phone.auth().create_session(ANN, PASSWORD).expect("known from now on");
        let mut context = Context::from_waker(Waker::noop());
        let clients: Vec<_> = (0..400).map(|number| db.client.with_client_key(&format!("client {number}"))).collect();
        let auths: Vec<_> = clients.iter().flat_map(|client| [client.inner().auth(); 8]).collect();
        let mut calls: Vec<_> =
            auths.iter().map(|auth| Box::pin(auth.create_session("mallory@town.example", PASSWORD))).collect();
        let mut results = calls.iter_mut().map(|call| call.as_mut().poll(&mut context));
        let refused = results.by_ref().filter(Poll::is_ready).count();
        assert!(refused > 400 * 8 - 4 * 65 - 20, "{refused} calls were refused");
        let stranger = db.client.with_client_key("192.0.2.2");
        assert_eq!(
            stranger.auth().create_session(ANN, PASSWORD).expect_err("the queue is full").kind(),
            ErrorKind::RateLimited
        );
        let mut of_ann = Box::pin(phone.inner().auth().create_session(ANN, PASSWORD));
        assert!(of_ann.as_mut().poll(&mut context).is_pending(), "there is a place for a known client");
        drop(calls);
        wait(of_ann).expect("signed in");
    }
}
