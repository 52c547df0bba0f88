//! Sessions: whom a handle acts for, how long, and what ends that (SPEC 5.3, DESIGN 8).

use std::{
    sync::mpsc,
    task::{Context, Waker},
    time::Duration,
};

use jiff::SignedDuration;
use townsquare::{AuthEvent, ErrorKind, NewSpace, Uuid, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Store, assert_fails},
    wait::wait_until,
};

on_both_engines!(
    a_client_acts_as_the_user_who_signed_in_and_so_do_its_clones,
    signing_out_ends_the_session_for_every_handle_and_process,
    a_handle_of_a_user_keeps_its_caller,
    a_session_that_ended_is_an_error_whatever_is_asked,
    an_access_token_counts_for_an_hour,
    a_clock_set_back_ends_no_session_early,
    refreshing_kills_both_old_tokens,
    a_refresh_token_that_comes_back_ends_its_session,
    a_session_kept_elsewhere_can_be_taken_up,
    signing_out_ends_a_session_that_was_refreshed_elsewhere,
    what_was_begun_is_seen_through_when_the_caller_goes_away,
    listeners_hear_what_happens_in_order,
    an_address_that_fails_too_often_has_to_wait,
);

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse";

fn sign_in(store: &Store) -> townsquare::Session {
    wait(store.client.auth().sign_up(EMAIL, PASSWORD)).expect("signed up");
    wait(store.client.auth().sign_in(EMAIL, PASSWORD)).expect("signed in")
}

fn a_client_acts_as_the_user_who_signed_in_and_so_do_its_clones(store: &Store) {
    let clone = store.client.clone();
    let session = sign_in(store);
    let space = wait(clone.spaces().create_space(NewSpace::named("mine"))).expect("created");
    assert_eq!(space.owner_id, Some(session.user.id));
    assert_eq!(wait(store.client.spaces().get_space(space.id)).expect("mine"), space);
    let stranger = store.another();
    let hidden = wait(stranger.spaces().get_space(space.id));
    assert_fails(hidden, ErrorKind::NotFound, None, "Get space failed: Record not found");
    wait(clone.auth().sign_out()).expect("signed out");
    assert!(wait(store.client.spaces().get_space(space.id)).is_err());
}

fn signing_out_ends_the_session_for_every_handle_and_process(store: &Store) {
    let session = sign_in(store);
    let elsewhere = store.another();
    let handle = wait(elsewhere.as_user(&session.access_token)).expect("a handle");
    assert!(wait(handle.spaces().get_public_spaces(1, 0)).is_ok());
    wait(store.client.auth().sign_out()).expect("signed out");
    let ended = wait(handle.spaces().get_public_spaces(1, 0));
    assert_fails(ended, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has ended");
    let again = wait(elsewhere.as_user(&session.access_token)).map(|_| ());
    assert_fails(again, ErrorKind::Unauthorized, None, "Act as user failed: Session has ended");
    assert!(wait(store.client.spaces().get_public_spaces(1, 0)).is_ok(), "as nobody");
    wait(store.client.auth().sign_out()).expect("once more is fine");
}

fn a_handle_of_a_user_keeps_its_caller(store: &Store) {
    let ann = sign_in(store);
    wait(store.service.auth().sign_up("bob@town.example", PASSWORD)).expect("signed up");
    let bob = wait(store.service.auth().sign_in("bob@town.example", PASSWORD)).expect("a session to hand out");
    let handle = wait(store.client.as_user(&ann.access_token)).expect("a handle");
    wait(handle.auth().sign_in("bob@town.example", PASSWORD)).expect("a session to hand out");
    let space = wait(handle.spaces().create_space(NewSpace::named("ann's"))).expect("created");
    assert_eq!(space.owner_id, Some(ann.user.id));
    let held = wait(handle.auth().get_session()).expect("asked").expect("there is one");
    assert_eq!((held.user.id, held.refresh_token.as_str()), (ann.user.id, ""));
    assert!(wait(handle.auth().set_session(&bob.refresh_token)).is_err());
    let of_service = wait(store.service.spaces().create_space(NewSpace::named("nobody's"))).expect("created");
    assert_eq!(of_service.owner_id, None, "the service is still the service");
}

fn a_session_that_ended_is_an_error_whatever_is_asked(store: &Store) {
    let session = sign_in(store);
    let space = store.public_space(session.user.id, "seen by all");
    let handle = wait(store.client.as_user(&session.access_token)).expect("a handle");
    wait(store.client.auth().sign_out()).expect("signed out");
    let missing = Uuid::new_v4();
    let kinds = [
        wait(handle.spaces().get_space(space.id)).err(),
        wait(handle.spaces().get_space(missing)).err(),
        wait(handle.spaces().get_user_spaces(missing)).err(),
        wait(handle.spaces().delete_space(missing)).err(),
        wait(handle.spaces().create_space(NewSpace::named("late"))).err(),
        wait(handle.fidgets().get_space_fidgets(missing)).err(),
        wait(handle.spaces().create_spaces(Vec::new())).err(),
        wait(handle.fidgets().save_positions(missing, Default::default())).err(),
        wait(handle.communities().resolve_community("nowhere.example")).err(),
        wait(handle.communities().get_space_registration(missing)).err(),
        wait(handle.communities().get_active_community_config("none")).err(),
    ];
    for (place, error) in kinds.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("call {place} succeeded"));
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unauthorized, "Session has ended"), "call {place}");
    }
}

fn an_access_token_counts_for_an_hour(store: &Store) {
    let session = sign_in(store);
    let handle = wait(store.client.as_user(&session.access_token)).expect("a handle");
    store.hands.advance(Duration::from_secs(3_599));
    assert!(wait(handle.spaces().get_public_spaces(1, 0)).is_ok());
    store.hands.advance(Duration::from_secs(1));
    let expired = wait(handle.spaces().get_public_spaces(1, 0));
    assert_fails(expired, ErrorKind::Unauthorized, None, "Get public spaces failed: Session has expired");
    assert!(wait(store.client.as_user(&session.access_token)).is_err());
    let renewed = wait(store.client.auth().get_session()).expect("asked").expect("it was refreshed");
    assert_ne!(renewed.access_token, session.access_token);
    store.hands.advance(Duration::from_secs(31 * 86_400));
    assert_eq!(wait(store.client.auth().get_session()).expect("asked"), None, "a month later it is over");
}

fn a_clock_set_back_ends_no_session_early(store: &Store) {
    let session = sign_in(store);
    let handle = wait(store.client.as_user(&session.access_token)).expect("a handle");
    store.hands.step(SignedDuration::from_hours(-1));
    assert!(wait(handle.spaces().get_public_spaces(1, 0)).is_ok());
    store.hands.advance(Duration::from_secs(2 * 3_600 - 1));
    assert!(wait(handle.spaces().get_public_spaces(1, 0)).is_ok());
    store.hands.advance(Duration::from_secs(1));
    assert!(wait(handle.spaces().get_public_spaces(1, 0)).is_err(), "an hour longer, and no more");
}

fn refreshing_kills_both_old_tokens(store: &Store) {
    let auth = store.client.auth();
    let old = sign_in(store);
    let new = wait(auth.refresh_session()).expect("refreshed");
    assert_eq!(new.user, old.user);
    assert!(wait(store.client.as_user(&old.access_token)).is_err());
    assert!(wait(store.client.as_user(&new.access_token)).is_ok());
    let third = wait(auth.refresh_session_of(&new.refresh_token)).expect("its own, by token");
    assert_eq!(wait(auth.get_session()).expect("asked").map(|held| held.access_token), Some(third.access_token));
}

fn a_refresh_token_that_comes_back_ends_its_session(store: &Store) {
    let old = sign_in(store);
    let auth = store.service.auth();
    let new = wait(auth.refresh_session_of(&old.refresh_token)).expect("refreshed");
    let reused = wait(auth.refresh_session_of(&old.refresh_token));
    assert_fails(reused, ErrorKind::Unauthorized, None, "Refresh session failed: Session has ended");
    assert!(wait(store.client.as_user(&new.access_token)).is_err(), "whoever holds the new one is out too");
    assert!(wait(auth.refresh_session_of(&new.refresh_token)).is_err());
    assert!(wait(auth.refresh_session_of("tsr_unheard-of")).is_err());
}

fn a_session_kept_elsewhere_can_be_taken_up(store: &Store) {
    let session = sign_in(store);
    let app = store.another();
    let taken = wait(app.auth().set_session(&session.refresh_token)).expect("taken up");
    assert_eq!(taken.user, session.user);
    assert!(wait(app.spaces().create_space(NewSpace::named("mine"))).is_ok());
    assert!(wait(app.auth().set_session(&session.refresh_token)).is_err(), "once");
}

fn signing_out_ends_a_session_that_was_refreshed_elsewhere(store: &Store) {
    let session = sign_in(store);
    let newer = wait(store.service.auth().refresh_session_of(&session.refresh_token)).expect("refreshed elsewhere");
    wait(store.client.auth().sign_out()).expect("signed out");
    assert!(wait(store.client.as_user(&newer.access_token)).is_err(), "it is one session");
    assert!(wait(store.service.auth().refresh_session_of(&newer.refresh_token)).is_err());
}

fn what_was_begun_is_seen_through_when_the_caller_goes_away(store: &Store) {
    let old = sign_in(store);
    for _ in 0..20 {
        let auth = store.client.auth();
        let mut refresh = Box::pin(auth.refresh_session());
        let _ = refresh.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(refresh);
    }
    // Among them all: no call ever finds a token that has just died.
    for _ in 0..50 {
        assert!(wait(store.client.spaces().create_space(NewSpace::named("mine"))).is_ok());
        assert!(wait(store.client.spaces().get_user_spaces(old.user.id)).is_ok());
    }
    wait_until("the session is another", || {
        let held = wait(store.client.auth().get_session()).expect("asked").expect("the session goes on");
        held.access_token != old.access_token
    });
    assert!(wait(store.client.auth().refresh_session()).is_ok(), "no token was spent twice");
}

fn listeners_hear_what_happens_in_order(store: &Store) {
    let auth = store.client.auth();
    let (told, heard) = mpsc::channel();
    let subscription = auth.on_auth_state_change(move |event, session| {
        told.send((event, session.is_some())).expect("the test listens");
    });
    sign_in(store);
    wait(auth.refresh_session()).expect("refreshed");
    wait(auth.sign_out()).expect("signed out");
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
    wait(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "nothing after unsubscribe");
}

fn an_address_that_fails_too_often_has_to_wait(store: &Store) {
    let auth = store.client.auth();
    wait(auth.sign_up(EMAIL, PASSWORD)).expect("signed up");
    for email in [EMAIL, "stranger@town.example"] {
        let wrong = || wait(auth.sign_in(email, "wrong password")).expect_err("wrong");
        for _ in 0..10 {
            assert_eq!(wrong().kind(), ErrorKind::Unauthorized);
        }
        let limited = wrong();
        assert_eq!(limited.kind(), ErrorKind::RateLimited);
        assert_eq!(limited.retry_after(), Some(Duration::from_secs(30)));
        let elsewhere =
            wait(store.another().auth().sign_in(email, "wrong password")).expect_err("counted across clients");
        assert_eq!(elsewhere.kind(), ErrorKind::RateLimited);
    }
    let right = wait(auth.sign_in(EMAIL, PASSWORD)).expect_err("also with the right password");
    assert_eq!(right.to_string(), "Sign in failed: Too many failed attempts; try again in 30 s");
    store.hands.advance(Duration::from_secs(30));
    assert!(wait(auth.sign_in(EMAIL, "wrong password")).is_err());
    let limited = wait(auth.sign_in(EMAIL, PASSWORD)).expect_err("twice as long");
    assert_eq!(limited.retry_after(), Some(Duration::from_secs(60)));
    store.hands.advance(Duration::from_secs(60));
    assert!(wait(auth.sign_in(EMAIL, PASSWORD)).is_ok());
    assert_eq!(
        wait(auth.sign_in(EMAIL, "wrong password")).expect_err("wrong").kind(),
        ErrorKind::Unauthorized,
        "cleared"
    );
}
