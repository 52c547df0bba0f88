//! Random writers and subscribers at once: each subscriber's sequence of changes is compared, element by element, with the one
//! that follows from the change log and the rights of `model::rights`. The log itself is compared with the tables.
//!
//! `TOWNSQUARE_TEST_FEED_SECONDS` (2), `TOWNSQUARE_TEST_FEED_WRITERS` (4), `TOWNSQUARE_TEST_FEED_SUBSCRIBERS` (16).

mod expected;
mod log;
mod writers;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use townsquare::{
    Client, Config, Uuid,
    blocking::wait,
    config::Durability,
    realtime::{ChangeRequest, EventType, RowChange, Subscription},
};
use townsquare_tests::{
    Rng,
    setting::{seed, setting},
    subprocess::role,
    test_database::{Engine, TestDatabase},
    wait::wait_until,
};

use self::{
    expected::{Filter, Received, View, Who},
    log::Log,
    writers::Writers,
};
use crate::model::rights::Principal;

const PASSWORD: &str = "correct horse";

/// The users that own spaces.
const USERS: usize = 3;

/// A subscription and what its callback got.
struct Subscriber {
    view: View,
    subscription: Subscription,
    received: Arc<Mutex<Vec<RowChange>>>,
    /// Every entry up to the first id was committed before the call of `subscribe`, and every entry after the second one
    /// after its return.
    began: (i64, i64),
    is_unsubscribed: bool,
}

/// A handle of a user, and the session that it acts for.
struct UserHandle {
    user: Uuid,
    session: Uuid,
    client: Client,
    is_signed_out: bool,
}

struct Run<'a> {
    db: &'a TestDatabase,
    random: Rng,
    users: Vec<Uuid>,
    handles: Vec<UserHandle>,
    subscribers: Vec<Subscriber>,
}

/// Runs a writer of another process; does nothing in the parent.
#[test]
fn child_process_entry_point() {
    if role().as_deref() == Some("write") {
        writers::write_as_child();
    }
}

fn address(number: usize) -> String {
    format!("user-{number}@town.example")
}

impl Run<'_> {
    /// Signs a user in: an `as_user` handle, or a client of its own.
    fn sign_in(&mut self, number: usize, owns_client: bool) {
        let client = if owns_client {
            let client = self.db.another();
            wait(client.auth().sign_in(&address(number), PASSWORD)).expect("signed in");
            client
        } else {
            let session = wait(self.db.service.auth().sign_in(&address(number), PASSWORD)).expect("a session");
            wait(self.db.client.as_user(&session.access_token)).expect("a handle")
        };
        let user = self.users[number];
        let session = log::newest_session(self.db, user);
        self.handles.push(UserHandle { user, session, client, is_signed_out: false });
    }

    /// A random caller: the service, nobody, or a user that may have signed out.
    fn caller(&mut self) -> (Who, Client) {
        match self.random.usize(..self.handles.len() + 2) {
            0 => (Who::Fixed(Principal::Service), self.db.service.clone()),
            1 => (Who::Fixed(Principal::Anonymous), self.db.client.clone()),
            other => {
                let handle = &self.handles[other - 2];
                (Who::User { user: handle.user, session: handle.session }, handle.client.clone())
            }
        }
    }

    fn subscribe(&mut self) {
        let (who, client) = self.caller();
        let filter = Filter::random(&mut self.random, &self.users);
        let event = [None, None, Some(EventType::Insert), Some(EventType::Update), Some(EventType::Delete)];
        let view = View { who, event: event[self.random.usize(..event.len())], filter };
        let mut request = ChangeRequest::table(view.filter.table).filter(&view.filter.text);
        if let Some(event) = view.event {
            request = request.event(event);
        }
        let received: Arc<Mutex<Vec<RowChange>>> = Arc::default();
        let changes = Arc::clone(&received);
        let before = log::settled_id(self.db);
        let subscribed = wait(client.realtime().subscribe("oracle", request, move |change| changes.lock().push(change)));
        // The session of the handle may have ended: then it must not subscribe.
        let Ok(subscription) = subscribed else {
            let is_signed_out = |handle: &UserHandle| handle.is_signed_out && view.who == Who::of(handle.user, handle.session);
            assert!(self.handles.iter().any(is_signed_out), "{:?} subscribes", view.who);
            return;
        };
        let began = (before, log::last_id(self.db));
        self.subscribers.push(Subscriber { view, subscription, received, began, is_unsubscribed: false });
    }

    /// Unsubscribes a random subscriber: it gets nothing more.
    fn unsubscribe(&mut self) {
        let index = self.random.usize(..self.subscribers.len());
        let subscriber = &mut self.subscribers[index];
        subscriber.subscription.unsubscribe();
        subscriber.is_unsubscribed = true;
    }

    fn sign_out(&mut self) {
        let index = self.random.usize(..self.handles.len());
        let handle = &mut self.handles[index];
        if !handle.is_signed_out {
            wait(handle.client.auth().sign_out()).expect("signed out");
            handle.is_signed_out = true;
        }
    }
}

impl Subscriber {
    fn received(&self) -> Received {
        Received::of(&self.received.lock(), self.began)
    }
}

fn subscribers_get_what_the_log_and_the_rights_say(engine: Engine) {
    let Some(db) = TestDatabase::with(engine, |config: Config| config.durability(Durability::Normal)) else { return };
    let duration = Duration::from_secs(setting("TOWNSQUARE_TEST_FEED_SECONDS", 2));
    let count: usize = setting("TOWNSQUARE_TEST_FEED_SUBSCRIBERS", 16);
    let mut random = Rng::with_seed(seed(1));
    // From here on the log has every change.
    wait(db.service.realtime().cursor()).expect("a cursor");
    let sign_up = |number| wait(db.service.auth().sign_up(&address(number), PASSWORD)).expect("signed up").id;
    let users: Vec<Uuid> = (0..USERS).map(sign_up).collect();
    let writers_random = random.fork();
    let mut run = Run { db: &db, random, users: users.clone(), handles: Vec::new(), subscribers: Vec::new() };
    for number in 0..USERS {
        run.sign_in(number, true);
        run.sign_in(number, false);
        run.sign_in(number, false);
    }
    (0..count).for_each(|_| run.subscribe());
    let writers = Writers::start(&db, &users, setting("TOWNSQUARE_TEST_FEED_WRITERS", 4), duration, writers_random);
    let end = Instant::now() + duration;
    let mut steps = 0;
    while Instant::now() < end {
        steps += 1;
        run.unsubscribe();
        run.subscribe();
        if steps % 40 == 0 {
            run.sign_out();
        }
        // The writers and the callbacks need the processor, too.
        writers.wait_for_writes(&db, 20);
    }
    writers.join();
    let log = Log::read(&db);
    log.assert_mirrors_the_tables(&db);
    let mut compared = 0;
    for subscriber in &run.subscribers {
        let expected = log.expected(&subscriber.view);
        if !subscriber.is_unsubscribed {
            wait_until("the last change arrives", || subscriber.received().is_complete(&expected));
            subscriber.subscription.unsubscribe();
        }
        let received = subscriber.received();
        received.assert_equals(&expected, &subscriber.view, !subscriber.is_unsubscribed);
        compared += received.len();
    }
    assert!(compared > 0, "no subscriber got a change of {} entries", log.len());
    for handle in &run.handles {
        wait(handle.client.close());
    }
}

#[test]
fn subscribers_get_what_the_log_and_the_rights_say_on_sqlite() {
    subscribers_get_what_the_log_and_the_rights_say(Engine::Sqlite);
}

#[test]
fn subscribers_get_what_the_log_and_the_rights_say_on_postgres() {
    subscribers_get_what_the_log_and_the_rights_say(Engine::Postgres);
}
