//! The promises of a handle's session in thousands of orders of the threads that change it.
//!
//! The database is one in memory, and its threads are part of the check. These changes of `session_state.rs` were made by hand, one
//! at a time, and a test here failed for each:
//!
//! - `sign_out` or `refresh_session` does not hold the session lock;
//! - `replace` sets the principal without the lock of the current session;
//! - `clear` leaves the principal, or sends no event;
//! - `adopt` saves the session after it takes effect;
//! - `clear` leaves the session file.
//!
//! Not found: `sign_in` without the session lock, and an event that `replace` sends after it has released the lock.

use std::{
    sync::{Mutex as StdMutex, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::{
    auth::{AccountOptions, statements as sql},
    clock::Clock,
    config::{DatabaseLocation, Durability},
    database::{Database, OpenOptions, PreparedDatabase},
    threads::{
        BlockingPool, RuntimeHandle,
        sync::{check_times, thread},
    },
    validate::Limits,
};

/// A schedule opens a database, which takes a thousand times as long as a lock.
const SCHEDULES: usize = 500;

type Event = (AuthEvent, Option<Session>);

/// A runtime whose timers never fire: nobody drives it.
fn stopped_runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime"))
}

/// A handle on a new database, with a listener.
struct Fixture {
    state: Arc<SessionState>,
    database: Database,
    pools: [BlockingPool; 2],
    events: Arc<StdMutex<Vec<Event>>>,
    subscription: Subscription,
}

fn run<T>(future: impl Future<Output = T>) -> T {
    shuttle::future::block_on(future)
}

impl Fixture {
    /// `seen` runs in each call of the listener.
    fn new(file: Option<SessionFile>, seen: impl Fn(&Event) + Send + 'static) -> Fixture {
        let pools = ["townsquare-work", "townsquare-call"].map(|name| BlockingPool::new(name, 2));
        let runtime = RuntimeHandle::new(stopped_runtime().handle().clone(), pools[0].clone());
        let options = OpenOptions {
            durability: Durability::Full,
            busy_timeout: Duration::from_secs(5),
            postgres: Default::default(),
            replica: None,
            migrate: true,
            is_move_target: false,
            is_plan: false,
            clock: Clock::default(),
        };
        let prepared = PreparedDatabase::new(DatabaseLocation::SqliteMemory, options, runtime.clone());
        let database = run(async { prepared.await?.0.open().await }).expect("memory");
        let limits = Limits {
            max_text_size: 1_000,
            max_name_size: 1_000,
            max_json_size: 1_000,
            max_bulk_rows: 10,
            max_owner_spaces: None,
            max_space_fidgets: 10,
        };
        let options = AccountOptions { sign_up_limit: 0, identity_audience: None, limits };
        let accounts = Accounts::new(database.service(), Clock::default(), options, runtime, pools[1].clone());
        let state = SessionState::anonymous(Arc::new(accounts), file);
        let events = Arc::<StdMutex<Vec<Event>>>::default();
        let of_listener = Arc::clone(&events);
        let subscription = state.on_auth_state_change(move |event| {
            seen(&event);
            of_listener.lock().expect("no panic").push(event);
        });
        Fixture { state, database, pools, events, subscription }
    }

    /// Makes a user with a session.
    fn new_session(&self) -> Session {
        let (user_id, now) = (Uuid::new_v4(), self.state.accounts.clock.now());
        let insert = self.state.accounts.scope.write(move |transaction| {
            Box::pin(async move {
                let user = [user_id.into(), format!("{user_id}@town.example").into(), now.into()];
                transaction.execute(&sql::INSERT_USER, &user).await?;
                let tokens = TokenPair::new(now)?;
                Ok((tokens.insert_session(transaction, user_id, now).await?, tokens))
            })
        });
        let (session_id, tokens) = run(insert).expect("inserted");
        let session = tokens.into_session(session_id, user_without_times(user_id, now));
        let found = run(self.state.accounts.sessions.get_session(&session.access_token)).expect("it is there");
        Session { user: found.user, ..session }
    }

    /// Whether the principal is the user of the session.
    fn agrees(&self) -> bool {
        agrees(&self.state)
    }

    /// Ends the threads. Returns the events after the first.
    fn end(self) -> Vec<Event> {
        self.subscription.unsubscribe();
        self.database.close();
        self.pools.iter().for_each(|pool| pool.close(Duration::MAX));
        let events = std::mem::take(&mut *self.events.lock().expect("no panic"));
        assert_eq!(events.first().map(|(event, _)| *event), Some(AuthEvent::InitialSession));
        events.into_iter().skip(1).collect()
    }
}

fn user_without_times(id: Uuid, now: Timestamp) -> User {
    User { id, email: String::new(), created_at: now, updated_at: now, email_verified_at: None }
}

fn agrees(state: &SessionState) -> bool {
    let current = state.current.lock();
    is_principal_of(&state.principal.principal(), current.session.as_ref())
}

fn is_principal_of(principal: &Principal, session: Option<&Session>) -> bool {
    match (principal, session) {
        (Principal::Anonymous, None) => true,
        (Principal::User(principal), Some(session)) => principal.access_hash == token::hash(&session.access_token),
        _ => false,
    }
}

/// Signs in, refreshes and signs out on three threads, and looks at the state on a fourth one.
fn change_on_three_threads(fixture: &Fixture) {
    let sessions = [fixture.new_session(), fixture.new_session()];
    let [first, second] = sessions.map(|session| {
        let state = Arc::clone(&fixture.state);
        move || run(state.sign_in(&session)).expect("signed in")
    });
    let (refreshed, signed_out, looked_at) =
        (Arc::clone(&fixture.state), Arc::clone(&fixture.state), Arc::clone(&fixture.state));
    let threads = [
        thread::spawn(move || {
            first();
            // The session may have ended meanwhile.
            let _ = run(refreshed.refresh_session());
        }),
        thread::spawn(second),
        thread::spawn(move || run(signed_out.sign_out(SignOutScope::Local)).expect("signed out")),
        thread::spawn(move || {
            for _ in 0..3 {
                assert!(agrees(&looked_at), "the session and the principal agree");
                thread::yield_now();
            }
        }),
    ];
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn session_principal_and_events_agree() {
    // All threads of a schedule are on this one.
    let _runtime = stopped_runtime().enter();
    check_times(SCHEDULES, || {
        let fixture = Fixture::new(None, |_| {});
        let before = fixture.state.principal.principal();
        change_on_three_threads(&fixture);
        assert!(fixture.agrees());
        let (principal, session) = (fixture.state.principal.clone(), fixture.state.session());
        if let Some(session) = &session {
            run(fixture.state.accounts.sessions.get_session(&session.access_token)).expect("it is valid");
        }
        let events = fixture.end();
        let set = principal.set_since(&before);
        // A sign-out without a session changes nothing and sends nothing.
        let mut sent = events.iter();
        let mut last = None;
        for principal in &set {
            if matches!(**principal, Principal::Anonymous) && last.is_none() {
                continue;
            }
            let (event, session) = sent.next().expect("an event for each principal");
            assert!(is_principal_of(principal, session.as_ref()), "{event:?}");
            assert_eq!(*event == AuthEvent::SignedOut, session.is_none());
            last = session.as_ref();
        }
        assert!(sent.next().is_none(), "no other event");
        assert_eq!(last.map(|session| &session.access_token), session.as_ref().map(|session| &session.access_token));
    });
}

#[test]
fn the_session_file_has_each_session_before_it_takes_effect() {
    let _runtime = stopped_runtime().enter();
    check_times(SCHEDULES / 5, || {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("session.json");
        let fixture = Fixture::new(Some(SessionFile::new(path.clone())), |_| {});
        let session = fixture.new_session();
        let (state, of_path, first) = (Arc::clone(&fixture.state), path.clone(), session.refresh_token.clone());
        let looks = thread::spawn(move || {
            for _ in 0..3 {
                let current = state.current.lock();
                if let Some(session) = &current.session {
                    let stored = SessionFile::new(of_path.clone()).load().expect("it can be read").expect("a session");
                    // The file has the refreshed session before it takes effect.
                    assert!(stored.tokens.refresh_token == session.refresh_token || session.refresh_token == first);
                }
                drop(current);
                thread::yield_now();
            }
        });
        let (signed_in, refreshed) = (Arc::clone(&fixture.state), Arc::clone(&fixture.state));
        let threads = [
            thread::spawn(move || run(signed_in.sign_in(&session)).expect("signed in")),
            thread::spawn(move || drop(run(refreshed.refresh_session()))),
        ];
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        looks.join().expect("no panic");
        assert!(path.exists());
        run(fixture.state.sign_out(SignOutScope::Local)).expect("signed out");
        assert!(!path.exists(), "the session has ended");
        fixture.end();
    });
}
