//! What the subscriptions of a client do at moments that a program cannot choose.

use std::{
    sync::{Arc, mpsc},
    task::{Context, Waker},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tempfile::TempDir;

use super::{ChangeRequest, EventType, Realtime, subscription_state::NextForConsumer};
#[cfg(test)]
use crate::{Client, Config, ErrorKind, spaces::NewSpace, threads::wait};

const DEADLINE: Duration = Duration::from_secs(60);

/// A client with a space that was created after the cursor.
fn client() -> (TempDir, Client, String) {
    let dir = TempDir::new().expect("a directory");
    let client = wait(Client::open(Config::new().data_dir(dir.path()))).expect("a client");
    let service = client.as_service();
    let cursor = wait(service.realtime().cursor()).expect("a cursor");
    wait(service.spaces().create_space(NewSpace::named("harbor").public())).expect("a space");
    (dir, client, cursor)
}

fn since(cursor: &str) -> ChangeRequest {
    ChangeRequest::table("spaces").since(cursor)
}

#[test]
fn a_subscription_that_ends_while_its_consumer_reads_tells_the_reason() {
    let (_dir, client, cursor) = client();
    let service = client.as_service();
    let Realtime { core, principal, .. } = service.realtime();
    let (view, range) = since(&cursor).view(principal.principal().caller()).expect("a view");
    let cursors = wait(core.start_capture(principal)).expect("capture is on");
    let (subscription, _) = wait(core.stream(principal, view, range, &cursors)).expect("a subscription");
    let NextForConsumer::Read(position) = subscription.take(None) else { panic!("the subscription is behind") };
    wait(service.realtime().stop()).expect("stopped");
    wait(core.read_behind(&subscription, position)).expect("nothing to read");
    // As a stream does when its lane is gone.
    subscription.close();
    let NextForConsumer::Ended(reason) = subscription.take(None) else { panic!("the subscription has ended") };
    assert_eq!(reason.map(|reason| reason.kind()), Some(ErrorKind::Unavailable));
    wait(client.close());
}

#[test]
fn a_subscription_that_the_log_reader_ends_is_told_also_if_the_page_is_read_again() {
    let (_dir, client, _) = client();
    let (email, password) = ("ann@town.example", "correct horse");
    wait(client.auth().sign_up(email, password)).expect("a user");
    let session = wait(client.auth().sign_in(email, password)).expect("a session");
    let user = wait(client.as_user(&session.access_token)).expect("a handle");
    let (close, closed) = mpsc::channel();
    let request = ChangeRequest::table("spaces").on_close(move |reason| close.send(reason).expect("the test receives"));
    wait(user.realtime().subscribe("test", request, |_| {})).expect("a subscription");
    // While the log reader checks the session, a subscription of another table joins: the page that the log reader holds is of no
    // use.
    let joined = Arc::new(Mutex::new(None));
    let (stream, other) = (Arc::clone(&joined), client.clone());
    user.realtime().principal.set_reload(Box::new(move || {
        let (stream, other) = (Arc::clone(&stream), other.clone());
        Box::pin(async move {
            let changes = other.realtime().changes(ChangeRequest::table("fidgets")).await.expect("a stream");
            stream.lock().get_or_insert(changes);
            Ok(())
        })
    }));
    wait(client.auth().refresh_session()).expect("new tokens");
    let reason = closed.recv_timeout(DEADLINE).expect("on_close was called");
    assert_eq!(reason.map(|reason| reason.kind()), Some(ErrorKind::Unauthorized));
    assert!(joined.lock().is_some());
    wait(client.close());
}

#[test]
fn streams_that_read_the_log_wait_in_line_and_leave_it_when_they_are_dropped() {
    let (_dir, client, cursor) = client();
    let service = client.as_service();
    let core = &service.realtime().core;
    let (release, released) = mpsc::channel::<()>();
    let busy = move || {
        let _ = released.recv();
    };
    core.lanes[1].replays.submit(busy).expect("the only thread");
    let mut costly = wait(service.realtime().changes(since(&cursor).filter("name=like.h%"))).expect("a stream");
    let mut context = Context::from_waker(Waker::noop());
    assert!(Box::pin(costly.next()).as_mut().poll(&mut context).is_pending());
    let mut cheap = wait(service.realtime().changes(since(&cursor))).expect("a stream");
    let change = wait(cheap.next()).expect("a change").expect("no error");
    assert_eq!(change.event_type, EventType::Insert, "cheap filters do not wait for costly ones");
    assert!(Box::pin(costly.next()).as_mut().poll(&mut context).is_pending());
    let subscription = Arc::downgrade(&core.lanes[1].registry.lock().subscriptions(None)[0]);
    drop(costly);
    while subscription.upgrade().is_some() {
        thread::yield_now();
    }
    let mut next = wait(service.realtime().changes(since(&cursor).filter("name=like.h%"))).expect("a stream");
    drop(release);
    assert!(wait(next.next()).expect("a change").is_ok());
    wait(client.close());
}

#[test]
fn the_streams_of_anonymous_requests_follow_no_sign_in() {
    let (_dir, client, _) = client();
    let core = &client.realtime().core;
    let response = wait(client.realtime().handle_events("/events?table=spaces", &[])).expect("a response");
    assert_eq!(response.status, 200);
    let subscriptions = core.lanes[0].registry.lock().subscriptions(None);
    assert!(matches!(&subscriptions[..], [subscription] if subscription.timeline().is_none()));
    wait(client.close());
}

#[test]
fn the_streams_of_an_anonymous_handle_follow_no_sign_in() {
    let (_dir, client, _) = client();
    let stream = wait(client.as_anonymous().realtime().changes(ChangeRequest::table("spaces"))).expect("a stream");
    let subscriptions = client.realtime().core.lanes[0].registry.lock().subscriptions(None);
    assert!(matches!(&subscriptions[..], [subscription] if subscription.timeline().is_none()));
    drop(stream);
    wait(client.close());
}
