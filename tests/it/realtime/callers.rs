//! Whose changes a subscription gets while its handle signs in and out, and when a session ends elsewhere.

use townsquare::{Client, ErrorKind, Uuid, blocking::wait, realtime::ChangeRequest, spaces::NewSpace};
use townsquare_tests::{fixture::assert_kind, on_both_engines, test_database::TestDatabase};

use super::fixture::{Recorder, assert_silent, next, next_short, short, stream};

const PASSWORD: &str = "correct horse";

fn sign_up(db: &TestDatabase, name: &str) -> Uuid {
    wait(db.service.auth().sign_up(&format!("{name}@town.example"), PASSWORD)).expect("signed up").id
}

/// A handle that acts for a user.
fn as_user(db: &TestDatabase, name: &str) -> Client {
    let session = wait(db.service.auth().sign_in(&format!("{name}@town.example"), PASSWORD)).expect("signed in");
    wait(db.client.as_user(&session.access_token)).expect("a handle")
}

fn private_space(db: &TestDatabase, owner: Uuid, name: &str) {
    wait(db.service.spaces().create_space(NewSpace::named(name).owned_by(owner))).expect("created");
}

on_both_engines! {
    fn a_clients_subscription_follows_sign_in_and_sign_out(db: &TestDatabase) {
        let (ann, bob) = (sign_up(db, "ann"), sign_up(db, "bob"));
        let mut changes = stream(&db.client, ChangeRequest::table("spaces"));
        let recorder = Recorder::subscribe(&db.client, ChangeRequest::table("spaces"));
        private_space(db, ann, "before the sign-in");
        db.public_space(ann, "public");
        assert_eq!(short(&next(&mut changes)), "INSERT public");
        wait(db.client.auth().sign_in("ann@town.example", PASSWORD)).expect("signed in");
        private_space(db, ann, "of ann");
        private_space(db, bob, "of bob");
        wait(db.client.auth().refresh_session()).expect("new tokens");
        private_space(db, ann, "after the refresh");
        wait(db.client.auth().sign_out()).expect("signed out");
        private_space(db, ann, "after the sign-out");
        wait(db.client.auth().sign_in("bob@town.example", PASSWORD)).expect("signed in");
        private_space(db, ann, "of ann again");
        private_space(db, bob, "of bob again");
        let expected = ["INSERT of ann", "INSERT after the refresh", "INSERT of bob again"];
        assert_eq!(next_short(&mut changes, 3), expected);
        assert_eq!(recorder.wait_for(4)[1..], expected);
        assert_silent(db, &mut changes);
    }

    fn a_subscription_goes_on_as_anonymous_when_its_session_is_revoked(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        let handle = as_user(db, "ann");
        let mut changes = stream(&handle, ChangeRequest::table("spaces"));
        // It is read only after the session has ended: what happened before is still judged for the user.
        private_space(db, ann, "before");
        wait(db.service.auth().set_password(ann, "another password")).expect("every session ends");
        private_space(db, ann, "after");
        db.public_space(ann, "public");
        assert_eq!(next_short(&mut changes, 2), ["INSERT before", "INSERT public"]);
        let late = wait(handle.realtime().changes(ChangeRequest::table("spaces")));
        assert_kind(ErrorKind::Unauthorized, late);
    }

    fn a_slow_subscription_is_judged_for_the_caller_of_each_change(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        wait(db.client.auth().sign_in("ann@town.example", PASSWORD)).expect("signed in");
        let mut changes = stream(&db.client, ChangeRequest::table("spaces"));
        // More than a feed holds in memory.
        (0..100).for_each(|number| private_space(db, ann, &format!("{number}")));
        wait(db.client.auth().sign_out()).expect("signed out");
        (100..200).for_each(|number| private_space(db, ann, &format!("{number}")));
        db.public_space(ann, "public");
        let expected: Vec<_> = (0..100).map(|number| format!("INSERT {number}")).chain(["INSERT public".to_owned()]).collect();
        assert_eq!(next_short(&mut changes, 101), expected);
    }

    fn a_live_query_keeps_its_caller_and_ends_with_the_session(db: &TestDatabase) {
        let ann = sign_up(db, "ann");
        wait(db.client.auth().sign_in("ann@town.example", PASSWORD)).expect("signed in");
        let client = townsquare::blocking::Client::from(db.client.clone());
        let mut live = client.realtime().live(townsquare::realtime::LiveRequest::table("spaces")).expect("a live query");
        private_space(db, ann, "before");
        wait(db.client.auth().sign_out()).expect("signed out");
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
        wait(handle.close());
        assert!(ended.closed().is_none(), "no error");
        assert!(changes.next().is_none());
        assert_kind(ErrorKind::Closed, wait(handle.realtime().cursor()));
        db.public_space(db.user(), "public");
        assert_eq!(other.wait_for(1), ["INSERT public"]);
        assert!(ended.changes().is_empty() && !other.is_closed());
    }
}
