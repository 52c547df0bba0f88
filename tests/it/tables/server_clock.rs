//! The clocks of a host and of its PostgreSQL server (DESIGN 3): times that processes compare are the server's.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use townsquare::{
    ErrorKind,
    auth::identity_claim,
    blocking::Client,
    config::ManualClock,
    spaces::{NewSpace, SpacePatch},
    storage::UploadOptions,
};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    subprocess::{child, name_of, role, run_child},
    test_database::{EmptyDatabase, Engine, TestDatabase},
};
use tracing::{Event, Level, Metadata, Subscriber, field::Field, span};

const EMAIL: &str = "ann@town.example";
const PASSWORD: &str = "correct horse";
const SEED: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";

/// Opens a client on a host with a clock that is wrong by so many hours.
fn open(db: &TestDatabase, hours: i64) -> (ManualClock, Client) {
    let clock = ManualClock::at(Timestamp::now() + SignedDuration::from_hours(hours));
    let client = Client::open(db.config().clock(clock.clock())).expect("opens");
    (clock, client)
}

#[track_caller]
fn assert_is_now(time: Timestamp) {
    let age = Timestamp::now().duration_since(time);
    assert!(age.abs() < SignedDuration::from_mins(10), "{age}");
}

on_engine! { Postgres in postgres;
    fn hosts_with_wrong_clocks_agree_on_sessions_and_tokens(db: &TestDatabase) {
        let ((_, behind), (clock, ahead)) = (open(db, -5), open(db, 5));
        behind.auth().sign_up(EMAIL, PASSWORD).expect("an account");
        for (first, second) in [(&behind, &ahead), (&ahead, &behind)] {
            let session = first.as_service().auth().sign_in(EMAIL, PASSWORD).expect("a session");
            assert_is_now(session.expires_at - SignedDuration::from_hours(1));
            let handle = second.as_user(&session.access_token).expect("the session of another host");
            handle.spaces().get_user_spaces(session.user.id).expect("her spaces");
            let refreshed = second.as_service().auth().refresh_session_of(&session.refresh_token);
            assert_is_now(refreshed.expect("refreshed").expires_at - SignedDuration::from_hours(1));
            let token = first.as_service().auth().create_recovery_token(EMAIL).expect("asked").expect("known");
            second.auth().recover(&token, PASSWORD).expect("the token of another host");
            let token = first.as_service().auth().create_verification_token(session.user.id).expect("a token");
            let verified = second.auth().verify_email(&token).expect("the token of another host");
            assert_is_now(verified.email_verified_at.expect("verified"));
        }
        // Time that passes on a host passes for its sessions.
        let session = ahead.as_service().auth().sign_in(EMAIL, PASSWORD).expect("a session");
        let handle = ahead.as_user(&session.access_token).expect("a handle");
        clock.step(SignedDuration::from_hours(-10));
        handle.spaces().get_public_spaces(1, 0).expect("a step of the clock ends no session");
        clock.advance(Duration::from_secs(3_600));
        assert_kind(ErrorKind::Unauthorized, handle.spaces().get_public_spaces(1, 0));
        behind.close();
        ahead.close();
    }

    fn hosts_with_wrong_clocks_share_the_wait_after_wrong_passwords(db: &TestDatabase) {
        let ((_, behind), (_, ahead)) = (open(db, -5), open(db, 5));
        behind.auth().sign_up(EMAIL, PASSWORD).expect("an account");
        for _ in 0..10 {
            assert_kind(ErrorKind::Unauthorized, behind.auth().sign_in(EMAIL, "wrong horse"));
        }
        for client in [&behind, &ahead] {
            assert_kind(ErrorKind::RateLimited, client.auth().sign_in(EMAIL, PASSWORD));
        }
        behind.close();
        ahead.close();
    }

    fn rows_files_and_claims_have_the_times_of_the_server(db: &TestDatabase) {
        let (_, client) = open(db, 5);
        let service = client.as_service();
        let space = service.spaces().create_space(NewSpace::named("x")).expect("created");
        assert_is_now(space.created_at);
        let renamed = service.spaces().update_space(space.id, SpacePatch::new().name("y")).expect("renamed");
        assert_is_now(renamed.updated_at);
        let file = service.storage().upload("assets", "images/a", "x", UploadOptions::new()).expect("uploaded");
        assert_is_now(file.updated_at);
        client.auth().sign_up(EMAIL, PASSWORD).expect("an account");
        let session = client.auth().sign_in(EMAIL, PASSWORD).expect("a session");
        let audience = client.auth().identity_audience().expect("an audience");
        let claim = identity_claim(session.user.id, SEED, &audience, Timestamp::now()).expect("a key");
        client.auth().link_identity(&claim).expect("a claim of now");
        client.close();
    }
}

/// Collects the warnings of all threads.
#[derive(Clone, Copy)]
struct Warnings;

static WARNINGS: Mutex<String> = Mutex::new(String::new());

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN && metadata.target().starts_with("townsquare")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut |_: &Field, value: &dyn std::fmt::Debug| WARNINGS.lock().push_str(&format!("{value:?} ")));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn child_process_that_collects_warnings() {
    if role().as_deref() != Some("warnings") {
        return;
    }
    tracing::subscriber::set_global_default(Warnings).expect("the first of this process");
    let Some(empty) = EmptyDatabase::on(Engine::Postgres) else { return };
    let db = empty.open();
    WARNINGS.lock().clear();
    let (_, right) = open(&db, 0);
    assert_eq!(WARNINGS.lock().as_str(), "");
    let (_, wrong) = open(&db, 5);
    let text = WARNINGS.lock().clone();
    assert!(text.contains("the clock of this machine") && (text.contains("1800") || text.contains("1799")), "{text}");
    right.close();
    wrong.close();
}

#[test]
fn open_warns_of_a_clock_that_is_wrong() {
    let Some(server) = townsquare_tests::postgres::server() else { return };
    let test = name_of(&child_process_that_collects_warnings);
    let address = server.address();
    let variables = [(townsquare_tests::postgres::VARIABLE, address.as_str())];
    run_child(&mut child(test, "warnings", &variables));
}
