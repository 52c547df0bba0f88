//! The program switches the change log on and off; a request over HTTP never does.

use townsquare::{
    ErrorKind,
    blocking::Client,
    realtime::{ChangeRequest, LiveRequest},
    spaces::NewSpace,
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase},
    wait::wait_until,
};

use super::fixture::{Recorder, next, short, stream};

fn spaces() -> ChangeRequest {
    ChangeRequest::table("spaces")
}

fn create(client: &Client, name: &str) {
    client.spaces().create_space(NewSpace::named(name).public()).expect("created");
}

/// The number of entries in the log.
fn entries(db: &TestDatabase) -> usize {
    db.raw.count(if db.engine == Engine::Sqlite { "townsquare_changes" } else { "townsquare.changes" })
}

fn is_on(db: &TestDatabase) -> bool {
    let feed = if db.engine == Engine::Sqlite { "townsquare_feed" } else { "townsquare.feed" };
    matches!(&*db.raw.value(&format!("SELECT is_on FROM {feed}")), "1" | "t" | "true")
}

/// The status and the body of a request for events, up to its first chunk.
fn events(client: &Client, headers: &[(&str, &str)]) -> (u16, String) {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut response = client.realtime().handle_events("/events?table=spaces", &headers).expect("a response");
    let chunk = response.body.next().expect("a body");
    (response.status, String::from_utf8_lossy(&chunk).into_owned())
}

on_both_engines! {
    fn a_request_over_http_does_not_switch_capture_on(db: &TestDatabase) {
        let session = {
            db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
            db.service.auth().sign_in("ann@town.example", "correct horse").expect("signed in")
        };
        let bearer = format!("Bearer {}", session.access_token);
        // The handle is the service; the request is anonymous, or a user.
        for headers in [&[][..], &[("authorization", bearer.as_str())], &[("last-event-id", "x")]] {
            let (status, body) = events(&db.service, headers);
            assert_eq!(status, 503, "{headers:?}");
            assert!(body.contains("switched off"), "{body}");
        }
        create(&db.service, "quiet");
        assert_eq!((is_on(db), entries(db)), (false, 0));
        db.client.realtime().start().expect("on");
        db.client.realtime().start().expect("still on");
        create(&db.service, "heard");
        assert_eq!((is_on(db), entries(db)), (true, 1));
        assert_eq!(events(&db.client, &[]).0, 200);
    }

    fn the_first_subscription_of_the_program_switches_capture_on(db: &TestDatabase) {
        let ways: [fn(&Client); 4] = [
            |client| drop(client.realtime().changes(spaces()).expect("a stream")),
            |client| drop(client.realtime().live(LiveRequest::table("spaces")).expect("a query")),
            |client| drop(client.realtime().cursor().expect("a cursor")),
            |client| Recorder::subscribe(client, spaces()).subscription.unsubscribe(),
        ];
        for subscribe in ways {
            db.service.realtime().stop().expect("off");
            assert!(!is_on(db));
            subscribe(&db.client);
            assert!(is_on(db));
        }
    }

    fn stop_ends_every_subscription_and_empties_the_log(db: &TestDatabase) {
        let other = db.another();
        let (own, elsewhere) = (Recorder::subscribe(&db.client, spaces()), Recorder::subscribe(&other, spaces()));
        let mut changes = stream(&other, spaces());
        create(&db.service, "Harbor");
        assert_eq!((own.wait_for(1), elsewhere.wait_for(1)), (vec!["INSERT Harbor".to_owned()], vec!["INSERT Harbor".to_owned()]));
        assert_eq!(short(&next(&mut changes)), "INSERT Harbor");
        let cursor = db.service.realtime().cursor().expect("a cursor");
        let error = assert_kind(ErrorKind::Unauthorized, db.client.realtime().stop());
        assert_eq!(error.code(), Some("42501"));
        db.service.realtime().stop().expect("off");
        db.service.realtime().stop().expect("still off");
        for recorder in [own, elsewhere] {
            let reason = recorder.closed().expect("a reason");
            assert_eq!(reason.kind(), ErrorKind::Unavailable, "{reason}");
            assert!(reason.message().contains("switched off"), "{reason}");
        }
        assert_kind(ErrorKind::Unavailable, changes.next().expect("the reason"));
        create(&db.service, "quiet");
        assert_eq!((is_on(db), entries(db)), (false, 0));
        assert_eq!(events(&other, &[]).0, 503, "a client that comes back");
        assert!(!is_on(db));
        // A program that subscribes again switches it on, and what was written meanwhile is not in the feed.
        let again = Recorder::subscribe(&other, spaces());
        let expired = db.service.realtime().changes(spaces().since(cursor));
        assert_kind(ErrorKind::CursorExpired, expired);
        create(&db.service, "heard");
        assert_eq!(again.wait_for(1), ["INSERT heard"]);
        db.service.realtime().start().expect("on");
        wait_until("the log is there", || entries(db) == 1);
    }

    fn a_user_cannot_stop_the_feed(db: &TestDatabase) {
        db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
        let session = db.service.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
        let ann = db.client.as_user(&session.access_token).expect("a handle");
        ann.realtime().start().expect("the program may");
        assert_kind(ErrorKind::Forbidden, ann.realtime().stop());
        assert!(is_on(db));
    }
}
