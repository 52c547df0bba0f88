//! Crashes of a PostgreSQL server process, after which the server ends all others and starts again (DESIGN 3): reads and
//! idempotent writes are repeated, other writes never, and each failed write says whether it may have happened.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use townsquare::{
    Config, Error, ErrorKind, Uuid,
    blocking::Client,
    spaces::{NewSpace, Space, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    wait::{DEADLINE, wait_until, wait_up_to},
};

const THREADS: usize = 8;
const CRASHES: usize = 5;

fn open(url: &str) -> Client {
    Client::open(Config::new().database_url(url).catalog_api_key("")).expect("opens")
}

/// Connects as the administrator, who may have to wait until the server has started again.
fn administrator(server: &Server, database: &str) -> RawConnection {
    let (url, mut connection) = (server.url("postgres", database), None);
    wait_up_to(3 * DEADLINE, "the server has started again", || {
        connection = RawConnection::postgres(&url).ok();
        connection.is_some()
    });
    connection.expect("it has")
}

/// Ends the work of other threads, also when the test fails.
struct EndOfWork<'a>(&'a AtomicBool);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The calls of one thread.
#[derive(Default)]
struct Calls {
    /// How many reads and idempotent writes failed.
    repeated: usize,
    /// The names of the spaces that other writes created, and those of the writes that failed.
    written: Vec<String>,
    failed: Vec<(String, Error)>,
}

impl Calls {
    /// Makes a call that may be repeated, and repeats it if it fails.
    fn repeat<T>(&mut self, call: impl Fn() -> Result<T, Error>) -> T {
        call().unwrap_or_else(|error| {
            assert!(error.is_retryable(), "{error:?}");
            self.repeated += 1;
            call().expect("the server has started again")
        })
    }
}

/// Reads and writes until `is_done`. Counts its turns.
fn work(service: &Client, space: &Space, turns: &AtomicUsize, is_done: &AtomicBool) -> Calls {
    let mut calls = Calls::default();
    while !is_done.load(Ordering::Relaxed) {
        assert_eq!(calls.repeat(|| service.spaces().get_space(space.id)), *space);
        calls.repeat(|| service.spaces().get_public_spaces(10, 0));
        let id = Uuid::new_v4();
        calls.repeat(|| service.spaces().create_space(NewSpace::named("repeatable").with_id(id)));
        let name = Uuid::new_v4().to_string();
        match service.spaces().create_space(NewSpace::named(&name)) {
            Ok(_) => calls.written.push(name),
            Err(error) => calls.failed.push((name, error)),
        }
        turns.fetch_add(1, Ordering::Relaxed);
    }
    calls
}

#[test]
fn a_crash_under_load_fails_at_most_one_call_that_may_be_repeated() {
    let Some(server) = Server::durable() else { return };
    let database = server.new_database();
    let client = open(&server.url(APP_ROLE, &database));
    let service = client.as_service();
    let space = service.spaces().create_space(NewSpace::named("first")).expect("created");
    let (turns, is_done) = ([const { AtomicUsize::new(0) }; THREADS], AtomicBool::new(false));
    let calls: Vec<Calls> = thread::scope(|scope| {
        let (service, space, is_done) = (&service, &space, &is_done);
        let workers: Vec<_> =
            turns.iter().map(|turns| scope.spawn(move || work(service, space, turns, is_done))).collect();
        let end = EndOfWork(is_done);
        let all_work = || {
            let before = turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
            wait_up_to(3 * DEADLINE, "every thread works", || {
                assert!(!workers.iter().any(thread::ScopedJoinHandle::is_finished), "a call has failed");
                turns.iter().zip(before).all(|(turns, before)| turns.load(Ordering::Relaxed) > before + 2)
            });
        };
        all_work();
        for _ in 0..CRASHES {
            let process = "SELECT pid FROM pg_stat_activity WHERE application_name = 'townsquare' ORDER BY random()";
            server.crash(&administrator(&server, &database).value(process));
            all_work();
        }
        drop(end);
        workers.into_iter().map(|worker| worker.join().expect("each call that may be repeated works")).collect()
    });

    let administrator = administrator(&server, &database);
    let rows = |name: &str| administrator.count(&format!("spaces WHERE name = '{name}'"));
    // The library has repeated each once. The server may accept the new connection of the call whose process was killed before
    // it notices the crash, and then ends that one as well.
    let repeated: usize = calls.iter().map(|calls| calls.repeated).sum();
    assert!(repeated <= CRASHES, "{repeated} failed in {CRASHES} crashes");
    let turns: usize = turns.iter().map(|turns| turns.load(Ordering::Relaxed)).sum();
    assert_eq!(rows("repeatable"), turns, "an idempotent write happens once");
    for Calls { written, failed, .. } in calls {
        assert!(failed.len() <= CRASHES, "at most one call of a thread fails in a crash: {failed:?}");
        assert!(written.iter().all(|name| rows(name) == 1), "an acknowledged write happened, once");
        for (name, error) in failed {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
            // A write that may have happened must not be repeated.
            assert!(rows(&name) <= usize::from(!error.is_retryable()), "{error:?}");
        }
    }
    client.close();
}

#[track_caller]
fn assert_unknown<T>(result: Result<T, Error>) {
    let error = assert_kind(ErrorKind::Unavailable, result);
    assert_eq!((error.code(), error.is_retryable()), (Some("08007"), false), "{error:?}");
}

/// The commits wait for a standby that does not exist: they are on disk, and the crash ends their processes before the
/// answer.
#[test]
fn a_write_that_a_crash_leaves_unanswered_is_not_repeated_without_an_id() {
    let Some(server) = Server::with_settings(&["synchronous_standby_names=missing", "synchronous_commit=local"]) else {
        return;
    };
    let database = server.new_database();
    let url = server.url(APP_ROLE, &database);
    let client = open(&url);
    client.as_service().spaces().create_space(NewSpace::named("first")).expect("created");
    let waiting = open(&format!("{url}?options=-c%20synchronous_commit%3Don"));
    let service = waiting.as_service();

    let during_crash = |create: &(dyn Fn() -> Result<(), Error> + Sync)| {
        // An idle connection: the server may have closed it, which alone does not make a write unknown.
        service.spaces().get_public_spaces(1, 0).expect("a list");
        let administrator = administrator(&server, &database);
        thread::scope(|scope| {
            let call = scope.spawn(create);
            wait_until("the commit waits for the standby", || {
                administrator.count("pg_stat_activity WHERE wait_event = 'SyncRep'") == 1
            });
            server.crash(&administrator.value("SELECT pg_backend_pid()"));
            call.join().expect("no panic")
        })
    };
    assert_unknown(during_crash(&|| service.spaces().create_space(NewSpace::named("one")).map(drop)));
    let two = || vec![NewSpace::named("two"); 2];
    assert_unknown(during_crash(&|| service.spaces().create_spaces(two()).map(drop)));
    let id = Uuid::new_v4();
    let repeatable = || NewSpace::named("repeatable").with_id(id);
    during_crash(&|| service.spaces().create_space(repeatable()).map(drop)).expect("repeated, which finds the row");

    let administrator = administrator(&server, &database);
    for (name, rows) in [("first", 1), ("one", 1), ("two", 2), ("repeatable", 1)] {
        assert_eq!(administrator.count(&format!("spaces WHERE name = '{name}'")), rows, "{name}");
    }
    waiting.close();
    client.close();
}

/// Each restart ends eight idle connections, which eight writes then find at once.
#[test]
fn writes_after_a_restart_find_no_connection_that_was_lost_while_it_was_idle() {
    const ROUNDS: usize = 3;
    let Some(server) = Server::durable() else { return };
    let database = server.new_database();
    let client = open(&server.url(APP_ROLE, &database));
    let service = client.as_service();
    let space = service.spaces().create_space(NewSpace::named("locked")).expect("created");
    for round in 0..2 * ROUNDS {
        let (locker, counter) = (administrator(&server, &database), administrator(&server, &database));
        locker.run(&format!("BEGIN; UPDATE spaces SET name = 'locked' WHERE id = '{}'", space.id));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let patch = SpacePatch::new().name("renamed");
                    service.spaces().update_space(space.id, patch).expect("renamed");
                });
            }
            wait_until("each call waits on its own connection", || {
                counter.count("pg_stat_activity WHERE wait_event_type = 'Lock'") == THREADS
            });
            locker.run("COMMIT");
        });
        drop((locker, counter));
        if round % 2 == 0 {
            server.restart();
        } else {
            server.restart_at_once();
        }
        drop(administrator(&server, &database));
        let start = Barrier::new(THREADS);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    service.spaces().create_space(NewSpace::named("after")).expect("on a new connection");
                });
            }
        });
    }
    assert_eq!(administrator(&server, &database).count("spaces WHERE name = 'after'"), 2 * ROUNDS * THREADS);
    client.close();
}
