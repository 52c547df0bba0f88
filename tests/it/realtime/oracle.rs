//! Random writers and subscribers at once: each subscriber's sequence of changes is compared, element by element, with the one
//! that follows from the change log and the rights of `model::rights`. The log itself is compared with the tables.
//!
//! `TOWNSQUARE_TEST_FEED_SECONDS` (2), `TOWNSQUARE_TEST_FEED_WRITERS` (4), `TOWNSQUARE_TEST_FEED_SUBSCRIBERS` (16).

mod expected;
mod log;
mod writers;

use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use townsquare::{
    Config, Uuid,
    blocking::Client,
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
    expected::{Agreement, Filter, KnownSession, Received, View, Who},
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

/// A handle that signs in and out, or an `as_user` handle.
struct UserHandle {
    client: Client,
    owns_client: bool,
    /// The sessions that it has had.
    sessions: Rc<RefCell<Vec<KnownSession>>>,
    is_signed_in: bool,
    /// Whether its session was ended elsewhere, so that its calls fail.
    has_ended: bool,
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
    /// Adds an `as_user` handle of a user, or a client of its own, which may sign in as another user later.
    fn add_handle(&mut self, number: usize, owns_client: bool) {
        let client = if owns_client {
            self.db.another()
        } else {
            let session = self.db.service.auth().sign_in(&address(number), PASSWORD).expect("a session");
            self.db.client.as_user(&session.access_token).expect("a handle")
        };
        self.handles.push(UserHandle {
            client,
            owns_client,
            sessions: Rc::default(),
            is_signed_in: false,
            has_ended: false,
        });
        let index = self.handles.len() - 1;
        if owns_client {
            self.sign_in(index, number);
        } else {
            self.note_session(index, number);
        }
    }

    fn sign_in(&mut self, handle: usize, number: usize) {
        self.handles[handle].client.auth().sign_in(&address(number), PASSWORD).expect("signed in");
        self.note_session(handle, number);
    }

    /// Notes that a handle has begun a session of a user.
    fn note_session(&mut self, handle: usize, number: usize) {
        let user = self.users[number];
        let session = log::newest_session(self.db, user);
        let known = KnownSession { user, session, returned_at: log::last_id(self.db) };
        self.handles[handle].sessions.borrow_mut().push(known);
        (self.handles[handle].is_signed_in, self.handles[handle].has_ended) = (true, false);
    }

    /// A random caller: the service, nobody, or a user that may have signed out.
    fn caller(&mut self) -> (Who, Client) {
        match self.random.usize(..self.handles.len() + 2) {
            0 => (Who::Fixed(Principal::Service), self.db.service.clone()),
            1 => (Who::Fixed(Principal::Anonymous), self.db.client.clone()),
            other => {
                let handle = &self.handles[other - 2];
                let sessions = Rc::clone(&handle.sessions);
                let who = if handle.owns_client { Who::Sessions(sessions) } else { Who::Session(sessions) };
                (who, handle.client.clone())
            }
        }
    }

    fn subscribe(&mut self) {
        let (who, client) = self.caller();
        let filter = Filter::random(&mut self.random, &who, &self.users);
        let event = [None, None, Some(EventType::Insert), Some(EventType::Update), Some(EventType::Delete)];
        let view = View { who, event: event[self.random.usize(..event.len())], filter };
        let mut request = ChangeRequest::table(view.filter.table).filter(&view.filter.text);
        if let Some(event) = view.event {
            request = request.event(event);
        }
        let received: Arc<Mutex<Vec<RowChange>>> = Arc::default();
        let changes = Arc::clone(&received);
        let before = log::settled_id(self.db);
        let subscribed = client.realtime().subscribe("oracle", request, move |change| changes.lock().push(change));
        // The session of the handle may have ended: then it must not subscribe.
        let Ok(subscription) = subscribed else {
            let (Who::Sessions(of_view) | Who::Session(of_view)) = &view.who else {
                panic!("{:?} subscribes", view.who)
            };
            let mut handles = self.handles.iter().filter(|handle| Rc::ptr_eq(&handle.sessions, of_view));
            assert!(handles.any(|handle| handle.has_ended), "{:?} subscribes", view.who);
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

    /// Changes the caller of a random handle, or ends all sessions of a random user.
    fn change_caller(&mut self) {
        let (index, number) = (self.random.usize(..self.handles.len()), self.random.usize(..self.users.len()));
        let handle = &mut self.handles[index];
        let has_session = handle.is_signed_in && !handle.has_ended;
        match self.random.u32(..6) {
            0 => self.revoke(number),
            1..=2 if has_session => {
                handle.client.auth().sign_out().expect("signed out");
                // A client goes on as anonymous, an `as_user` handle keeps its user and its subscriptions end.
                (handle.is_signed_in, handle.has_ended) = (!handle.owns_client, !handle.owns_client);
            }
            3 if has_session && handle.owns_client => {
                handle.client.auth().refresh_session().expect("new tokens");
            }
            _ if handle.owns_client => self.sign_in(index, number),
            _ => self.add_handle(number, false),
        }
    }

    /// Ends all sessions of a user, as another program does.
    fn revoke(&mut self, number: usize) {
        let user = self.users[number];
        let sessions = if self.db.engine == Engine::Sqlite { "townsquare_sessions" } else { "townsquare.sessions" };
        self.db.raw.run(&format!("DELETE FROM {sessions} WHERE user_id = '{user}'"));
        for handle in &mut self.handles {
            let last = handle.sessions.borrow().last().copied();
            handle.has_ended |= handle.is_signed_in && last.is_some_and(|last| last.user == user);
        }
    }
}

impl Subscriber {
    fn received(&self) -> Received {
        Received::of(&self.received.lock())
    }
}

fn subscribers_get_what_the_log_and_the_rights_say(engine: Engine) {
    let Some(db) = TestDatabase::with(engine, |config: Config| config.durability(Durability::Normal)) else { return };
    let duration = Duration::from_secs(setting("TOWNSQUARE_TEST_FEED_SECONDS", 2));
    let count: usize = setting("TOWNSQUARE_TEST_FEED_SUBSCRIBERS", 16);
    let mut random = Rng::with_seed(seed(1));
    // From here on the log has every change.
    db.service.realtime().cursor().expect("a cursor");
    let sign_up = |number| db.service.auth().sign_up(&address(number), PASSWORD).expect("signed up").id;
    let users: Vec<Uuid> = (0..USERS).map(sign_up).collect();
    let writers_random = random.fork();
    let mut run = Run { db: &db, random, users: users.clone(), handles: Vec::new(), subscribers: Vec::new() };
    for number in 0..USERS {
        run.add_handle(number, true);
        run.add_handle(number, false);
        run.add_handle(number, false);
    }
    (0..count).for_each(|_| run.subscribe());
    let writers = Writers::start(&db, &users, setting("TOWNSQUARE_TEST_FEED_WRITERS", 4), duration, writers_random);
    let end = Instant::now() + duration;
    let mut steps = 0;
    while Instant::now() < end {
        steps += 1;
        run.unsubscribe();
        run.subscribe();
        if steps % 10 == 0 {
            run.change_caller();
        }
        // The writers and the callbacks need the processor, too.
        writers.wait_for_writes(&db, 20);
    }
    writers.join();
    let log = Log::read(&db);
    log.assert_mirrors_the_tables(&db);
    let mut compared = 0;
    for subscriber in &run.subscribers {
        let expected = log.expected(&subscriber.view, subscriber.began);
        if !subscriber.is_unsubscribed {
            let is_waiting = || subscriber.received().agreement(&expected).0 == Agreement::Prefix;
            wait_until("the last change arrives", || !is_waiting());
            subscriber.subscription.unsubscribe();
        }
        let received = subscriber.received();
        received.assert_agrees(&expected, &subscriber.view, !subscriber.is_unsubscribed);
        compared += received.len();
    }
    assert!(compared > 0, "no subscriber got a change of {} entries", log.len());
    for handle in &run.handles {
        handle.client.close();
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
