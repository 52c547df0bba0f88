//! Whose changes a subscription gets while its handle signs in and out, and when a session ends elsewhere.

use std::time::Duration;

use townsquare::{
    ErrorKind, Uuid,
    auth::Session,
    blocking::{Client, EventResponse},
    realtime::{ChangeRequest, LiveRequest},
    spaces::NewSpace,
    storage::UploadOptions,
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase},
    wait::DEADLINE,
};

use super::fixture::{PausedReader, Recorder, assert_silent, next, next_short, short, stream};

const PASSWORD: &str = "correct horse";

/// An identity key.
const KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn sign_up(db: &TestDatabase, name: &str) -> Uuid {
    db.service.auth().sign_up(&format!("{name}@town.example"), PASSWORD).expect("signed up").id
}

fn sign_in(db: &TestDatabase, name: &str) -> Session {
    db.service.auth().sign_in(&format!("{name}@town.example"), PASSWORD).expect("signed in")
}

/// A handle that acts for a user.
fn as_user(db: &TestDatabase, name: &str) -> Client {
    db.client.as_user(&sign_in(db, name).access_token).expect("a handle")
}

/// What makes the access token of a session invalid.
#[derive(Debug, Clone, Copy)]
enum End {
    SignOut,
    NewPassword,
    NewTokens,
    Expiry,
}

impl End {
    const ALL: [End; 4] = [End::SignOut, End::NewPassword, End::NewTokens, End::Expiry];

    fn happen(self, db: &TestDatabase, user: Uuid, session: &Session) {
        match self {
            End::SignOut => {
                let other = db.client.as_user(&session.access_token).expect("a handle");
                other.auth().sign_out().expect("signed out");
            }
            End::NewPassword => db.service.auth().set_password(user, PASSWORD).expect("every session ends"),
            End::NewTokens => {
                db.service.auth().refresh_session_of(&session.refresh_token).expect("new tokens");
            }
            End::Expiry => db.clock.advance(Duration::from_secs(3_601)),
        }
    }

    fn message(self) -> &'static str {
        if matches!(self, End::Expiry) { "Session has expired" } else { "Session has ended" }
    }
}

/// Asks for the changes of spaces as the bearer of a token.
fn events(db: &TestDatabase, access_token: &str) -> EventResponse {
    let headers = [("authorization".to_owned(), format!("Bearer {access_token}"))];
    db.client.realtime().start().expect("capture is on");
    db.client.realtime().handle_events("?table=spaces", &headers).expect("a response")
}

/// The event that ends the events of a bearer with an invalid token.
fn end_event(message: &str) -> String {
    format!("event: end\ndata: {{\"error\":\"{message}\",\"status\":401}}\n\n")
}

/// Reads a body until it has the text.
fn read_until(response: &mut EventResponse, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        read.push_str(&String::from_utf8_lossy(&response.body.next().expect("the text comes")));
    }
    read
}

/// Reads a body to its end.
fn text_of(response: EventResponse) -> String {
    response.body.map(|chunk| String::from_utf8_lossy(&chunk).into_owned()).collect()
}

fn private_space(db: &TestDatabase, owner: Uuid, name: &str) {
    db.service.spaces().create_space(NewSpace::named(name).owned_by(owner)).expect("created");
}

on_both_engines! {
    fn a_clients_subscription_follows_sign_in_and_sign_out(db: &TestDatabase) {
        let (ann, bob) = (sign_up(db, "ann"), sign_up(db, "bob"));
        let mut changes = stream(&db.client, ChangeRequest::table("spaces"));
        let recorder = Recorder::subscribe(&db.client, ChangeRequest::table("spaces"));
        private_space(db, ann, "before the sign-in");
        db.public_space(ann, "public");
        assert_eq!(short(&next(&mut changes)), "INSERT public");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        private_space(db, ann, "of ann");
        private_space(db, bob, "of bob");
        db.client.auth().refresh_session().expect("new tokens");
        private_space(db, ann, "after the refresh");
        db.client.auth().sign_out().expect("signed out");
        private_space(db, ann, "after the sign-out");
        db.client.auth().sign_in("bob@town.example", PASSWORD).expect("signed in");
        private_space(db, ann, "of ann again");
        private_space(db, bob, "of bob again");
        let expected = ["INSERT of ann", "INSERT after the refresh", "INSERT of bob again"];
        assert_eq!(next_short(&mut changes, 3), expected);
        assert_eq!(recorder.wait_for(4)[1..], expected);
        assert_silent(db, &mut changes);
    }

    fn feeds_of_a_session_end_with_an_error_when_its_token_becomes_invalid(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        for end in End::ALL {
            let session = sign_in(db, "ann");
            let handle = db.client.as_user(&session.access_token).expect("a handle");
            let request = || ChangeRequest::table("spaces");
            let (mut changes, recorder) = (stream(&handle, request()), Recorder::subscribe(&handle, request()));
            let live = handle.realtime().live(LiveRequest::table("spaces"));
            let mut live = live.expect("a live query").changes;
            let mut response = events(db, &session.access_token);
            private_space(db, ann, "before");
            let read = read_until(&mut response, "before");
            assert_eq!((next_short(&mut changes, 1), next_short(&mut live, 1)), (vec!["INSERT before".to_owned()], vec!["INSERT before".to_owned()]));
            recorder.wait_for(1);
            end.happen(db, ann, &session);
            private_space(db, ann, "after");
            db.public_space(ann, "public");
            let ended = changes.next_within(DEADLINE).expect("an end").expect_err("the token is not valid");
            assert_eq!((ended.kind(), ended.to_string()), (ErrorKind::Unauthorized, format!("Read changes failed: {}", end.message())), "{end:?}");
            assert!(changes.next().is_none());
            let ended = live.next_within(DEADLINE).expect("an end").expect_err("the token is not valid");
            assert_eq!(ended.to_string(), format!("Live query failed: {}", end.message()), "{end:?}");
            let reason = recorder.closed().expect("a reason");
            assert_eq!((reason.kind(), reason.to_string()), (ErrorKind::Unauthorized, format!("Subscribe failed: {}", end.message())), "{end:?}");
            assert_eq!(recorder.short(), ["INSERT before"], "{end:?}");
            let text = read + &text_of(response);
            assert!(!text.contains("after") && !text.contains(r#""name":"public""#), "{end:?}: {text}");
            assert!(text.ends_with(&end_event(end.message())), "{end:?}: {text}");
            assert_kind(ErrorKind::Unauthorized, handle.realtime().changes(request()));
            assert_eq!(events(db, &session.access_token).status, 401, "{end:?}");
        }
    }

    fn an_idle_subscription_ends_when_its_token_expires(db: &TestDatabase) {
        sign_up(db, "ann");
        let handle = as_user(db, "ann");
        let (mut changes, recorder) = (stream(&handle, ChangeRequest::table("spaces")), Recorder::subscribe(&handle, ChangeRequest::table("spaces")));
        let response = events(db, &sign_in(db, "ann").access_token);
        End::Expiry.happen(db, Uuid::nil(), &sign_in(db, "ann"));
        let ended = changes.next_within(DEADLINE).expect("an end").expect_err("the token has expired");
        assert_eq!(ended.kind(), ErrorKind::Unauthorized);
        assert_eq!(recorder.closed().map(|reason| reason.kind()), Some(ErrorKind::Unauthorized));
        assert!(text_of(response).ends_with(&end_event("Session has expired")));
    }

    fn events_of_a_bearer_end_when_the_user_is_deleted(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        let response = events(db, &sign_in(db, "ann").access_token);
        db.service.auth().delete_user(ann).expect("deleted");
        db.public_space(db.user(), "public");
        let text = text_of(response);
        assert!(text.ends_with(&end_event("Session has ended")) && !text.contains(r#""name":"public""#), "{text}");
    }

    fn events_that_nobody_reads_end_after_what_their_session_could_see(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        let response = events(db, &sign_in(db, "ann").access_token);
        (0..300).for_each(|number| private_space(db, ann, &format!("space {number};")));
        db.service.auth().set_password(ann, "another password").expect("every session ends");
        db.public_space(ann, "public");
        let text = text_of(response);
        assert_eq!(text.matches("event: change").count(), 300);
        assert!(text.contains("space 299;") && text.ends_with(&end_event("Session has ended")), "{text}");
    }

    fn a_slow_stream_ends_after_what_its_session_could_see(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        let handle = as_user(db, "ann");
        let mut changes = stream(&handle, ChangeRequest::table("spaces"));
        // More than a feed holds in memory, and read only after the session has ended.
        (0..300).for_each(|number| private_space(db, ann, &format!("{number}")));
        db.service.auth().set_password(ann, "another password").expect("every session ends");
        db.public_space(ann, "public");
        let expected: Vec<_> = (0..300).map(|number| format!("INSERT {number}")).collect();
        assert_eq!(next_short(&mut changes, 300), expected);
        assert_kind(ErrorKind::Unauthorized, changes.next_within(DEADLINE).expect("an end"));
    }

    fn a_live_query_of_a_client_goes_on_with_the_clients_new_tokens(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        let client = &db.client;
        let mut live = client.realtime().live(LiveRequest::table("spaces")).expect("a live query");
        db.client.auth().refresh_session().expect("new tokens");
        private_space(db, ann, "one");
        db.client.auth().refresh_session().expect("new tokens");
        private_space(db, ann, "two");
        assert_eq!(next_short(&mut live.changes, 2), ["INSERT one", "INSERT two"]);
    }

    fn a_slow_subscription_is_judged_for_the_caller_of_each_change(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        let mut changes = stream(&db.client, ChangeRequest::table("spaces"));
        // More than a feed holds in memory.
        (0..100).for_each(|number| private_space(db, ann, &format!("{number}")));
        db.client.auth().sign_out().expect("signed out");
        (100..200).for_each(|number| private_space(db, ann, &format!("{number}")));
        db.public_space(ann, "public");
        let expected: Vec<_> = (0..100).map(|number| format!("INSERT {number}")).chain(["INSERT public".to_owned()]).collect();
        assert_eq!(next_short(&mut changes, 101), expected);
    }

    fn callers_that_change_while_the_feed_is_pages_late_count_from_their_own_entries(db: &TestDatabase) {
        let (ann, bob) = (sign_up(db, "ann"), sign_up(db, "bob"));
        let mut changes = stream(&db.client, ChangeRequest::table("spaces"));
        let reader = PausedReader::pause(&db.service);
        // More than a page of the log between any two changes of the caller.
        let spaces_of = |owner: Uuid, name: &str| {
            let row = format!("('{name}', '{owner}')");
            db.raw.run(&format!("INSERT INTO spaces (name, owner_id) VALUES {}", vec![row; 300].join(", ")));
        };
        let spaces = |period: &str| {
            spaces_of(ann, &format!("of ann, {period}"));
            spaces_of(bob, &format!("of bob, {period}"));
        };
        spaces("before");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        spaces("as ann");
        db.client.auth().sign_out().expect("signed out");
        spaces("as nobody");
        db.client.auth().sign_in("bob@town.example", PASSWORD).expect("signed in");
        spaces("as bob");
        reader.release();
        let mut seen = next_short(&mut changes, 600);
        seen.dedup();
        assert_eq!(seen, ["INSERT of ann, as ann", "INSERT of bob, as bob"]);
        assert_silent(db, &mut changes);
    }

    fn a_session_that_is_revoked_after_a_refresh_counts_no_more(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        let mut changes = stream(&db.client, ChangeRequest::table("spaces"));
        // The feed learns of the new tokens from no entry.
        db.client.auth().refresh_session().expect("new tokens");
        db.service.auth().set_password(ann, "another password").expect("every session ends");
        private_space(db, ann, "after");
        assert_silent(db, &mut changes);
    }

    fn a_replay_is_judged_for_the_caller_that_it_began_with(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        let lasting = Recorder::subscribe(&db.client, ChangeRequest::table("spaces"));
        let cursor = db.client.realtime().cursor().expect("a cursor");
        let reader = PausedReader::pause(&db.service);
        private_space(db, ann, "before the sign-in");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        let mut replay = stream(&db.client, ChangeRequest::table("spaces").since(cursor));
        private_space(db, ann, "after it");
        reader.release();
        assert_eq!(next_short(&mut replay, 2), ["INSERT before the sign-in", "INSERT after it"]);
        assert_eq!(lasting.wait_for(1), ["INSERT after it"]);
    }

    fn a_deleted_user_gets_what_is_deleted_with_it_and_nothing_later(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        let handle = as_user(db, "ann");
        private_space(db, ann, "private");
        let space = db.service.spaces().get_user_spaces(ann).expect("spaces").remove(0);
        db.fidget(space.id, "clock");
        let schema = if db.engine == Engine::Sqlite { "townsquare_" } else { "townsquare." };
        db.raw.run(&format!("INSERT INTO {schema}identities (public_key, user_id, linked_at) VALUES ('{KEY}', '{ann}', '2026-01-01T00:00:00.000000Z')"));
        let upload = |path: String| db.service.storage().upload("private", &path, "x", UploadOptions::new()).expect("uploaded");
        upload(format!("{KEY}/homebase"));
        let tables = ["spaces", "fidgets", "users", "files"];
        let mut streams = tables.map(|table| stream(&handle, ChangeRequest::table(table)));
        db.service.auth().delete_user(ann).expect("deleted");
        let deleted: Vec<_> = streams.iter_mut().map(|stream| short(&next(stream))).collect();
        let file = format!("DELETE {KEY}/homebase");
        // The deletion erases what the log holds of the user.
        assert_eq!(deleted, ["DELETE 1 columns", "DELETE 1 columns", "DELETE 1 columns", &file]);
        upload(format!("{ann}/later"));
        db.service.storage().upload("assets", "mark", "x", UploadOptions::new()).expect("uploaded");
        for stream in &mut streams {
            assert_kind(ErrorKind::Unauthorized, stream.next_within(DEADLINE).expect("an end"));
        }
    }

    fn a_live_query_keeps_its_caller_and_ends_with_the_session(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        db.client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        let client = &db.client;
        let mut live = client.realtime().live(LiveRequest::table("spaces")).expect("a live query");
        private_space(db, ann, "before");
        db.client.auth().sign_out().expect("signed out");
        db.public_space(ann, "public");
        assert_eq!(short(&next(&mut live.changes)), "INSERT before");
        let ended = live.changes.next().expect("an error").expect_err("the session has ended");
        assert_eq!((ended.kind(), ended.to_string().as_str()), (ErrorKind::Unauthorized, "Live query failed: Session has ended"));
        assert!(live.changes.next().is_none());
    }

    fn closing_a_handle_ends_its_subscriptions_only(db: &TestDatabase) {
        sign_up(db, "ann");
        let handle = as_user(db, "ann");
        let (ended, other) = (Recorder::subscribe(&handle, ChangeRequest::table("spaces")), Recorder::subscribe(&db.client, ChangeRequest::table("spaces")));
        let mut changes = stream(&handle, ChangeRequest::table("spaces"));
        handle.close();
        assert!(ended.closed().is_none(), "no error");
        assert!(changes.next().is_none());
        assert_kind(ErrorKind::Closed, handle.realtime().cursor());
        db.public_space(db.user(), "public");
        assert_eq!(other.wait_for(1), ["INSERT public"]);
        assert!(ended.changes().is_empty() && !other.is_closed());
    }
}
