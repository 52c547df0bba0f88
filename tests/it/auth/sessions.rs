//! Sessions: the caller of a handle, its lifetime and its end (SPEC 5.3, DESIGN 8).

use std::{
    sync::mpsc,
    task::{Context, Waker},
    time::Duration,
};

use jiff::SignedDuration;
use townsquare::{
    ErrorKind, Uuid,
    auth::{AuthEvent, SignOutScope, UserPatch},
    spaces::NewSpace,
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase, assert_fails},
    wait::wait_until,
};

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse";
/// How long a refresh can be repeated (DESIGN 8).
const REPEAT: Duration = Duration::from_secs(10);

fn sign_in(db: &TestDatabase) -> townsquare::auth::Session {
    db.client.auth().sign_up(EMAIL, PASSWORD).expect("signed up");
    db.client.auth().sign_in(EMAIL, PASSWORD).expect("signed in")
}

on_both_engines! {
    fn a_client_and_its_clones_act_as_the_signed_in_user(db: &TestDatabase) {
        let clone = db.client.clone();
        let session = sign_in(db);
        let space = clone.spaces().create_space(NewSpace::named("mine")).expect("created");
        assert_eq!(space.owner_id, Some(session.user.id));
        assert_eq!(db.client.spaces().get_space(space.id).expect("mine"), space);
        let stranger = db.another();
        let hidden = stranger.spaces().get_space(space.id);
        assert_fails(hidden, ErrorKind::NotFound, None, "Get space failed: Record not found");
        clone.auth().sign_out().expect("signed out");
        assert!(db.client.spaces().get_space(space.id).is_err());
    }

    fn a_sign_out_before_unsubscribe_is_delivered_before_it_returns(db: &TestDatabase) {
        db.client.auth().sign_up(EMAIL, PASSWORD).expect("signed up");
        for _ in 0..20 {
            let (sender, events) = mpsc::channel();
            let subscription = db.client.auth().on_auth_state_change(move |event, _| {
                sender.send(event).expect("the test receives");
            });
            db.client.auth().sign_in(EMAIL, PASSWORD).expect("signed in");
            db.client.auth().sign_out().expect("signed out");
            subscription.unsubscribe();
            let events: Vec<_> = events.try_iter().collect();
            assert_eq!(events, [AuthEvent::InitialSession, AuthEvent::SignedIn, AuthEvent::SignedOut]);
        }
    }

    fn sign_out_ends_the_session_for_every_handle_and_client(db: &TestDatabase) {
        let session = sign_in(db);
        let elsewhere = db.another();
        let handle = elsewhere.as_user(&session.access_token).expect("a handle");
        assert!(handle.spaces().get_public_spaces(1, 0).is_ok());
        db.client.auth().sign_out().expect("signed out");
        let ended = handle.spaces().get_public_spaces(1, 0);
        assert_fails(ended, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has ended");
        let again = elsewhere.as_user(&session.access_token).map(|_| ());
        assert_fails(again, ErrorKind::Unauthorized, None, "Act as user failed: Session has ended");
        assert!(db.client.spaces().get_public_spaces(1, 0).is_ok(), "as nobody");
        db.client.auth().sign_out().expect("once more is fine");
    }

    fn sign_out_of_other_sessions_keeps_the_own(db: &TestDatabase) {
        let session = sign_in(db);
        let (elsewhere, bob) = (db.another(), "bob@town.example");
        elsewhere.auth().sign_in(EMAIL, PASSWORD).expect("signed in");
        db.service.auth().sign_up(bob, PASSWORD).expect("signed up");
        let bob = db.service.auth().sign_in(bob, PASSWORD).expect("signed in");
        db.client.auth().sign_out_scope(SignOutScope::Others).expect("signed out");
        let ended = elsewhere.spaces().get_public_spaces(1, 0);
        assert_fails(ended, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has ended");
        assert_eq!(db.client.auth().get_session().expect("asked"), Some(session));
        assert!(db.client.as_user(&bob.access_token).is_ok(), "another user's");
        elsewhere.close();
    }

    fn global_sign_out_ends_every_session_of_the_user(db: &TestDatabase) {
        let session = sign_in(db);
        let elsewhere = db.service.auth().sign_in(EMAIL, PASSWORD).expect("signed in");
        db.service.auth().sign_up("bob@town.example", PASSWORD).expect("signed up");
        let bob = db.service.auth().sign_in("bob@town.example", PASSWORD).expect("signed in");
        db.client.auth().sign_out_scope(SignOutScope::Global).expect("signed out");
        for session in [&session, &elsewhere] {
            assert!(db.client.as_user(&session.access_token).is_err());
            assert!(db.service.auth().refresh_session_of(&session.refresh_token).is_err());
        }
        assert_eq!(db.client.auth().get_session().expect("asked"), None);
        assert!(db.client.as_user(&bob.access_token).is_ok(), "another user's");
    }

    fn an_ended_session_ends_no_other(db: &TestDatabase) {
        let session = sign_in(db);
        let handle = db.client.as_user(&session.access_token).expect("a handle");
        db.client.auth().sign_out().expect("signed out");
        let other = db.service.auth().sign_in(EMAIL, PASSWORD).expect("signed in");
        for scope in [SignOutScope::Others, SignOutScope::Global] {
            let refused = handle.auth().sign_out_scope(scope);
            assert_fails(refused, ErrorKind::Unauthorized, None, "Sign out failed: Session has ended");
            db.client.auth().sign_out_scope(scope).expect("an anonymous caller has no sessions");
            db.service.auth().sign_out_scope(scope).expect("the service has no sessions");
        }
        assert!(db.client.as_user(&other.access_token).is_ok());
    }

    fn sign_out_of_a_scope_refreshes_an_expired_access_token_first(db: &TestDatabase) {
        sign_in(db);
        let other = db.service.auth().sign_in(EMAIL, PASSWORD).expect("signed in");
        db.clock.advance(Duration::from_secs(3_600));
        db.client.auth().sign_out_scope(SignOutScope::Others).expect("signed out");
        assert!(db.service.auth().refresh_session_of(&other.refresh_token).is_err());
        assert!(db.client.auth().get_session().expect("asked").is_some());
    }

    fn a_new_password_replaces_the_tokens_of_the_own_session(db: &TestDatabase) {
        let old = sign_in(db);
        let (told, heard) = mpsc::channel();
        let subscription = db.client.auth().on_auth_state_change(move |event, session| {
            told.send((event, session)).expect("the test listens");
        });
        let copy = db.client.as_user(&old.access_token).expect("a handle");
        let user = db.client.auth().update_user(PASSWORD, UserPatch::new().password("another password"));
        let new = db.client.auth().get_session().expect("asked").expect("the session goes on");
        assert_eq!(user.expect("changed"), new.user);
        assert_ne!((&old.access_token, &old.refresh_token), (&new.access_token, &new.refresh_token));
        assert_eq!(copy.spaces().get_public_spaces(1, 0).expect_err("old").kind(), ErrorKind::Unauthorized);
        assert!(db.client.spaces().create_space(NewSpace::named("mine")).is_ok());
        let next = || heard.recv_timeout(Duration::from_secs(20)).expect("an event");
        assert_eq!(next(), (AuthEvent::InitialSession, Some(old.clone())));
        assert_eq!(next(), (AuthEvent::UserUpdated, Some(new.clone())));
        subscription.unsubscribe();
        // The old refresh token is a spent one: its use ends the session.
        assert!(db.client.as_user(&new.access_token).is_ok());
        assert!(db.service.auth().refresh_session_of(&old.refresh_token).is_err());
        assert!(db.client.as_user(&new.access_token).is_err());
    }

    fn a_new_password_on_an_as_user_handle_keeps_the_handle_and_returns_its_tokens(db: &TestDatabase) {
        let old = sign_in(db);
        let handle = db.another().as_user(&old.access_token).expect("a handle");
        handle.auth().update_user(PASSWORD, UserPatch::new().password("another password")).expect("changed");
        assert_eq!(handle.spaces().create_space(NewSpace::named("mine")).expect("works").owner_id, Some(old.user.id));
        let new = handle.auth().get_session().expect("asked").expect("there is one");
        assert!(db.client.as_user(&old.access_token).is_err());
        let third = db.service.auth().refresh_session_of(&new.refresh_token).expect("the user's new tokens");
        assert!(db.client.as_user(&third.access_token).is_ok());
    }

    fn an_as_user_handle_keeps_its_caller(db: &TestDatabase) {
        let ann = sign_in(db);
        db.service.auth().sign_up("bob@town.example", PASSWORD).expect("signed up");
        let bob = db.service.auth().sign_in("bob@town.example", PASSWORD).expect("a session to hand out");
        let handle = db.client.as_user(&ann.access_token).expect("a handle");
        handle.auth().sign_in("bob@town.example", PASSWORD).expect("a session to hand out");
        let space = handle.spaces().create_space(NewSpace::named("ann's")).expect("created");
        assert_eq!(space.owner_id, Some(ann.user.id));
        let held = handle.auth().get_session().expect("asked").expect("there is one");
        assert_eq!((held.user.id, held.refresh_token.as_str()), (ann.user.id, ""));
        assert!(handle.auth().set_session(&bob.refresh_token).is_err());
        let of_service = db.service.spaces().create_space(NewSpace::named("nobody's")).expect("created");
        assert_eq!(of_service.owner_id, None, "the service is still the service");
    }

    fn every_operation_fails_after_the_session_ended(db: &TestDatabase) {
        let session = sign_in(db);
        let space = db.public_space(session.user.id, "seen by all");
        let handle = db.client.as_user(&session.access_token).expect("a handle");
        db.client.auth().sign_out().expect("signed out");
        let missing = Uuid::new_v4();
        let kinds = [
            handle.spaces().get_space(space.id).err(),
            handle.spaces().get_space(missing).err(),
            handle.spaces().get_user_spaces(missing).err(),
            handle.spaces().delete_space(missing).err(),
            handle.spaces().create_space(NewSpace::named("late")).err(),
            handle.fidgets().get_space_fidgets(missing).err(),
            handle.spaces().create_spaces(Vec::new()).err(),
            handle.fidgets().save_positions(missing, Default::default()).err(),
            handle.communities().resolve_community("nowhere.example").err(),
            handle.communities().get_space_registration(missing).err(),
            handle.communities().get_active_community_config("none").err(),
        ];
        for (place, error) in kinds.into_iter().enumerate() {
            let error = error.unwrap_or_else(|| panic!("call {place} succeeded"));
            assert_eq!((error.kind(), error.message()), (ErrorKind::Unauthorized, "Session has ended"), "call {place}");
        }
    }

    fn an_access_token_is_valid_for_an_hour(db: &TestDatabase) {
        let session = sign_in(db);
        let handle = db.client.as_user(&session.access_token).expect("a handle");
        db.clock.advance(Duration::from_secs(3_599));
        assert!(handle.spaces().get_public_spaces(1, 0).is_ok());
        db.clock.advance(Duration::from_secs(1));
        let expired = handle.spaces().get_public_spaces(1, 0);
        assert_fails(expired, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has expired");
        assert!(db.client.as_user(&session.access_token).is_err());
        let renewed = db.client.auth().get_session().expect("asked").expect("it was refreshed");
        assert_ne!(renewed.access_token, session.access_token);
        db.clock.advance(Duration::from_secs(31 * 86_400));
        assert_eq!(db.client.auth().get_session().expect("asked"), None, "a month later it is over");
    }

    fn setting_the_clock_back_ends_no_session(db: &TestDatabase) {
        let session = sign_in(db);
        let handle = db.client.as_user(&session.access_token).expect("a handle");
        db.clock.step(SignedDuration::from_hours(-1));
        assert!(handle.spaces().get_public_spaces(1, 0).is_ok());
        // On PostgreSQL the server's clock counts, which is not set back.
        let hours = if db.engine == Engine::Sqlite { 2 } else { 1 };
        db.clock.advance(Duration::from_secs(hours * 3_600 - 1));
        assert!(handle.spaces().get_public_spaces(1, 0).is_ok());
        db.clock.advance(Duration::from_secs(1));
        assert!(handle.spaces().get_public_spaces(1, 0).is_err(), "to the end of its hour, and no more");
    }

    fn refresh_invalidates_both_old_tokens(db: &TestDatabase) {
        let auth = db.client.auth();
        let old = sign_in(db);
        let new = auth.refresh_session().expect("refreshed");
        assert_eq!(new.user, old.user);
        assert!(db.client.as_user(&old.access_token).is_err());
        assert!(db.client.as_user(&new.access_token).is_ok());
        let third = auth.refresh_session_of(&new.refresh_token).expect("its own, by token");
        assert_eq!(auth.get_session().expect("asked").map(|held| held.access_token), Some(third.access_token));
    }

    fn reusing_a_refresh_token_ends_its_session(db: &TestDatabase) {
        let old = sign_in(db);
        let auth = db.service.auth();
        let new = auth.refresh_session_of(&old.refresh_token).expect("refreshed");
        db.clock.advance(REPEAT + Duration::from_secs(1));
        let reused = auth.refresh_session_of(&old.refresh_token);
        assert_fails(reused, ErrorKind::Unauthorized, None, "Refresh session failed: Session has ended");
        assert!(db.client.as_user(&new.access_token).is_err(), "whoever holds the new one is out too");
        assert!(auth.refresh_session_of(&new.refresh_token).is_err());
        assert!(auth.refresh_session_of("tsr_unheard-of").is_err());
    }

    fn set_session_restores_a_saved_session(db: &TestDatabase) {
        let session = sign_in(db);
        let app = db.another();
        let taken = app.auth().set_session(&session.refresh_token).expect("taken up");
        assert_eq!(taken.user, session.user);
        assert!(app.spaces().create_space(NewSpace::named("mine")).is_ok());
        db.clock.advance(REPEAT + Duration::from_secs(1));
        assert!(app.auth().set_session(&session.refresh_token).is_err(), "once");
    }

    fn sign_out_ends_a_session_that_another_client_refreshed(db: &TestDatabase) {
        let session = sign_in(db);
        let newer = db.service.auth().refresh_session_of(&session.refresh_token).expect("refreshed elsewhere");
        db.client.auth().sign_out().expect("signed out");
        assert!(db.client.as_user(&newer.access_token).is_err(), "it is one session");
        assert!(db.service.auth().refresh_session_of(&newer.refresh_token).is_err());
    }

    fn an_auth_operation_completes_when_its_future_is_dropped(db: &TestDatabase) {
        let old = sign_in(db);
        for _ in 0..20 {
            let auth = db.async_client().auth();
            let mut refresh = Box::pin(auth.refresh_session());
            let _ = refresh.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            drop(refresh);
        }
        // None of the calls fails because of a token that was just refreshed.
        for _ in 0..50 {
            assert!(db.client.spaces().create_space(NewSpace::named("mine")).is_ok());
            assert!(db.client.spaces().get_user_spaces(old.user.id).is_ok());
        }
        wait_until("the session is another", || {
            let held = db.client.auth().get_session().expect("asked").expect("the session goes on");
            held.access_token != old.access_token
        });
        assert!(db.client.auth().refresh_session().is_ok(), "no token was spent twice");
    }

    #[allow(clippy::disallowed_methods, reason = "what must not happen has no moment to wait for")]
    fn later_calls_wait_for_a_dropped_sign_in(db: &TestDatabase) {
        for address in ["a@town.example", "b@town.example"] {
            db.service.auth().sign_up(address, PASSWORD).expect("signed up");
        }
        let auth = db.async_client().auth();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let later = Duration::from_millis(150);
        let mut dropped = 0;
        runtime.block_on(async {
            for round in 0..12 {
                let limit = Duration::from_millis(3) * round;
                if tokio::time::timeout(limit, auth.sign_in("a@town.example", PASSWORD)).await.is_err() {
                    dropped += 1;
                    let session = auth.sign_in("b@town.example", PASSWORD).await.expect("signed in");
                    tokio::time::sleep(later).await;
                    let held = auth.get_session().await.expect("asked").expect("a session");
                    assert_eq!(held.user.id, session.user.id, "the dropped sign-in came later, round {round}");
                }
                if tokio::time::timeout(limit, auth.sign_in("a@town.example", PASSWORD)).await.is_err() {
                    auth.sign_out().await.expect("signed out");
                    tokio::time::sleep(later).await;
                    assert_eq!(auth.get_session().await.expect("asked"), None, "round {round}");
                }
            }
        });
        assert!(dropped > 0, "no sign-in took longer than its limit");
    }

    fn auth_events_arrive_in_order(db: &TestDatabase) {
        let auth = db.client.auth();
        let (told, heard) = mpsc::channel();
        let subscription = auth.on_auth_state_change(move |event, session| {
            told.send((event, session.is_some())).expect("the test listens");
        });
        sign_in(db);
        auth.refresh_session().expect("refreshed");
        auth.sign_out().expect("signed out");
        let next = || heard.recv_timeout(Duration::from_secs(20)).expect("an event");
        let events: Vec<_> = (0..4).map(|_| next()).collect();
        assert_eq!(
            events,
            [
                (AuthEvent::InitialSession, false),
                (AuthEvent::SignedIn, true),
                (AuthEvent::TokenRefreshed, true),
                (AuthEvent::SignedOut, false),
            ]
        );
        subscription.unsubscribe();
        auth.sign_in(EMAIL, PASSWORD).expect("signed in");
        assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "nothing after unsubscribe");
    }

    fn an_address_with_too_many_failures_is_rate_limited(db: &TestDatabase) {
        let auth = db.client.auth();
        auth.sign_up(EMAIL, PASSWORD).expect("signed up");
        for email in [EMAIL, "stranger@town.example"] {
            let wrong = || auth.sign_in(email, "wrong password").expect_err("wrong");
            for _ in 0..10 {
                assert_eq!(wrong().kind(), ErrorKind::Unauthorized);
            }
            let limited = wrong();
            assert_eq!(limited.kind(), ErrorKind::RateLimited);
            assert_eq!(limited.retry_after(), Some(Duration::from_secs(30)));
            let elsewhere =
                db.another().auth().sign_in(email, "wrong password").expect_err("counted across clients");
            assert_eq!(elsewhere.kind(), ErrorKind::RateLimited);
        }
        let right = auth.sign_in(EMAIL, PASSWORD).expect_err("also with the right password");
        assert_eq!(right.to_string(), "Sign in failed: Too many failed attempts; try again in 30 s");
        db.clock.advance(Duration::from_secs(30));
        assert!(auth.sign_in(EMAIL, "wrong password").is_err());
        let limited = auth.sign_in(EMAIL, PASSWORD).expect_err("twice as long");
        assert_eq!(limited.retry_after(), Some(Duration::from_secs(60)));
        db.clock.advance(Duration::from_secs(60));
        assert!(auth.sign_in(EMAIL, PASSWORD).is_ok());
        assert_eq!(
            auth.sign_in(EMAIL, "wrong password").expect_err("wrong").kind(),
            ErrorKind::Unauthorized,
            "cleared"
        );
    }
}
