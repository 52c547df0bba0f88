//! What an embedded database survives (DESIGN 3): closing, copying, restoring, foreign locks, many threads, and newer
//! libraries.

use std::{
    collections::BTreeSet,
    fs,
    future::Future,
    path::Path,
    pin::pin,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use townsquare::{
    Config, ErrorKind, Uuid,
    blocking::{Client, wait},
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    raw_sql::RawConnection,
    subprocess::{child, in_shell, name_of, role, run_child},
    temp_dir,
    test_database::TestDatabase,
    wait::{until, wait_until, within},
};

const SECOND: Duration = Duration::from_secs(1);

/// Longer than any test waits for a foreign lock: only a failing test reaches it.
const PATIENT: Duration = Duration::from_secs(600);

fn config(folder: &Path) -> Config {
    Config::new().data_dir(folder).catalog_api_key("")
}

fn open(folder: &Path) -> Client {
    Client::open(config(folder)).expect("opens")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect()
}

/// The names without the file of shared memory. It contains no row and keeps room on the disk for the next open.
fn names_of_rows(folder: &Path) -> BTreeSet<String> {
    let mut names = names(folder);
    names.remove("townsquare.db-shm");
    names
}

/// Checks that `townsquare.db` is the only file of `folder`, besides the room for the next open, and that a copy of it has `rows`
/// spaces.
fn assert_one_file(folder: &Path, rows: usize) {
    assert_eq!(names_of_rows(folder), ["townsquare.db".to_owned()].into());
    let copy = temp_dir();
    let file = copy.path().join("copy.db");
    fs::copy(folder.join("townsquare.db"), &file).expect("a copy");
    let raw = RawConnection::sqlite(&file);
    assert_eq!((raw.count("spaces"), raw.value("PRAGMA integrity_check")), (rows, "ok".to_owned()));
}

fn create_spaces(client: &Client, count: usize) -> Vec<Uuid> {
    let service = client.as_service();
    let create = |_| service.spaces().create_space(NewSpace::named("x").public()).expect("created").id;
    (0..count).map(create).collect()
}

#[test]
fn close_leaves_every_row_in_one_file() {
    let folder = temp_dir();
    for round in 1..=3 {
        let client = open(folder.path());
        for id in create_spaces(&client, 10) {
            client.spaces().get_space(id).expect("read");
        }
        client.spaces().get_public_spaces(100, 0).expect("read");
        client.close();
        assert_one_file(folder.path(), round * 10);
    }
}

#[test]
fn dropping_a_client_leaves_every_row_in_one_file() {
    let folder = temp_dir();
    let client = open(folder.path());
    let ids = create_spaces(&client, 10);
    client.spaces().get_space(ids[0]).expect("read");
    client.spaces().get_public_spaces(100, 0).expect("read");
    drop(client);
    wait_until("the threads of the dropped client have ended", || names(folder.path()).len() == 1);
    assert_one_file(folder.path(), 10);
}

/// `close` returns after the last read, on every thread that calls it.
#[test]
fn close_during_reads_writes_and_a_backup_leaves_one_file() {
    for round in 0..10 {
        let folder = temp_dir();
        let client = open(folder.path());
        let ids = create_spaces(&client, 20);
        let written = AtomicUsize::new(ids.len());
        let ready = Barrier::new(9);
        thread::scope(|scope| {
            for thread in 0..8 {
                let (client, ids, ready, written) = (client.clone(), &ids, &ready, &written);
                let copy = folder.path().with_extension(format!("copy{round}-{thread}"));
                scope.spawn(move || {
                    ready.wait();
                    loop {
                        let result = match thread {
                            0 | 1 => client.spaces().get_public_spaces(100, 0).map(drop),
                            2..6 => client.spaces().get_space(ids[0]).map(drop),
                            6 => client.backup(&copy).map(|()| fs::remove_file(&copy).expect("a copy")),
                            _ => {
                                let created = client.as_service().spaces().create_space(NewSpace::named("x"));
                                created.map(|_| {
                                    written.fetch_add(1, Ordering::SeqCst);
                                })
                            }
                        };
                        if let Err(error) = result {
                            return assert_eq!(error.kind(), ErrorKind::Closed, "thread {thread}: {error:?}");
                        }
                    }
                });
            }
            ready.wait();
            let closers = [(); 2].map(|()| {
                let (client, folder) = (client.clone(), folder.path());
                scope.spawn(move || {
                    client.close();
                    names_of_rows(folder)
                })
            });
            for closer in closers {
                let left = closer.join().expect("no panic");
                assert_eq!(left, ["townsquare.db".to_owned()].into(), "when close returns");
            }
        });
        assert_one_file(folder.path(), written.into_inner());
    }
}

/// Makes a backup of a database with one space and returns its file.
fn backup_with_one_space(folder: &Path) -> std::path::PathBuf {
    let client = open(&folder.join("source"));
    create_spaces(&client, 1);
    let copy = folder.join("copy.db");
    client.backup(&copy).expect("copied");
    client.close();
    copy
}

#[test]
fn restore_refuses_the_log_or_journal_of_another_database() {
    let folder = temp_dir();
    let copy = backup_with_one_space(folder.path());
    for name in ["townsquare.db-wal", "townsquare.db-shm", "townsquare.db-journal"] {
        let data = folder.path().join("data");
        fs::create_dir_all(&data).expect("a folder");
        fs::write(data.join(name), "pages of another database").expect("a file");
        let error = assert_kind(ErrorKind::Config, Client::restore(&copy, &data));
        assert!(error.to_string().starts_with("Restore failed: ") && error.message().contains(name), "{error}");
        assert_eq!(names(&data), [name.to_owned()].into(), "nothing is added");
        fs::remove_file(data.join(name)).expect("removed");
    }
    Client::restore(&copy, folder.path().join("data")).expect("nothing is in the way");
}

#[test]
fn restore_never_overwrites_a_database_that_is_opened_meanwhile() {
    let folder = temp_dir();
    let copy = backup_with_one_space(folder.path());
    let ready = Barrier::new(2);
    for round in 0..20 {
        let data = folder.path().join(format!("data{round}"));
        let (restored, created) = thread::scope(|scope| {
            let opening = scope.spawn(|| {
                ready.wait();
                let client = loop {
                    match Client::open(config(&data)) {
                        Ok(client) => break client,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "while it is restored: {error}"),
                    }
                };
                let created = create_spaces(&client, 1);
                client.close();
                created[0]
            });
            ready.wait();
            (Client::restore(&copy, &data), opening.join().expect("the client is never disturbed"))
        });
        let raw = RawConnection::sqlite(&data.join("townsquare.db"));
        assert_eq!(raw.count(&format!("spaces WHERE id = '{created}'")), 1, "round {round}: an acknowledged write");
        let rows = 1 + usize::from(restored.is_ok());
        assert_eq!(raw.count("spaces"), rows, "round {round}: {restored:?}");
        assert_eq!(raw.value("PRAGMA integrity_check"), "ok");
        if let Err(error) = restored {
            assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        }
    }
}

#[test]
fn a_restored_database_has_another_incarnation() {
    let folder = temp_dir();
    let copy = backup_with_one_space(folder.path());
    let incarnation = |file: &Path| RawConnection::sqlite(file).value("SELECT incarnation FROM townsquare_database");
    let mut seen = BTreeSet::from([incarnation(&folder.path().join("source/townsquare.db"))]);
    for name in ["first", "second"] {
        let data = folder.path().join(name);
        Client::restore(&copy, &data).expect("restored");
        let restored = incarnation(&data.join("townsquare.db"));
        assert_eq!(restored.len(), 32);
        assert!(seen.insert(restored.clone()), "{restored} is the id of another copy");
        open(&data).close();
        assert_eq!(incarnation(&data.join("townsquare.db")), restored, "opening keeps it");
    }
    assert_eq!(RawConnection::sqlite(&folder.path().join("first/townsquare.db")).count("spaces"), 1);
}

#[test]
fn restore_finds_damage_behind_rows_that_a_check_refuses() {
    let folder = temp_dir();
    let copy = backup_with_one_space(folder.path());
    let raw = RawConnection::sqlite(&copy);
    raw.run("PRAGMA ignore_check_constraints = ON; INSERT INTO spaces (name, created_at) VALUES ('old', 'yesterday')");
    drop(raw);
    Client::restore(&copy, folder.path().join("data")).expect("a row of an older form is no damage");
    let raw = RawConnection::sqlite(&copy);
    // An index with the entries of other rows.
    raw.run(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, '= true', '= false') WHERE name = 'spaces_is_public_idx'",
    );
    drop(raw);
    let error = assert_kind(ErrorKind::Config, Client::restore(&copy, folder.path().join("other")));
    assert!(error.message().contains("damaged"), "{error}");
}

/// Twelve writers with `busy_timeout` 1 behind a foreign lock; `wait_for_all` runs their calls.
fn assert_fail_together(db: &TestDatabase, wait_for_all: impl FnOnce(&Client) -> Vec<townsquare::Result<Duration>>) {
    let client = Client::open(db.config().busy_timeout(SECOND)).expect("opens").as_service();
    db.raw.run("BEGIN IMMEDIATE");
    let start = Instant::now();
    let results = wait_for_all(&client);
    let waited = start.elapsed();
    for result in results {
        assert_eq!(result.expect_err("the lock is held").code(), Some("55P03"));
    }
    assert!(waited >= SECOND && waited < 6 * SECOND, "one after the other they would wait 12 s: {waited:?}");
    db.raw.run("ROLLBACK");
    client.spaces().create_space(NewSpace::named("x")).expect("the writer goes on");
    client.close();
}

/// Runs in a child process with at most 1,024 file descriptors.
#[test]
fn child_process_with_few_descriptors() {
    if role().as_deref() != Some("many readers") {
        return;
    }
    let folder = temp_dir();
    let client = open(folder.path());
    let ids = create_spaces(&client, 4);
    let ready = Barrier::new(600);
    thread::scope(|scope| {
        for number in 0..600 {
            let (client, ids, ready) = (client.clone(), &ids, &ready);
            scope.spawn(move || {
                ready.wait();
                for round in 0..200 {
                    client.spaces().get_space(ids[(number + round) % ids.len()]).expect("no read fails");
                }
                assert_eq!(client.spaces().get_public_spaces(100, 0).expect("no read fails").len(), ids.len());
            });
        }
    });
    client.close();
}

#[test]
fn six_hundred_threads_read_with_a_thousand_descriptors() {
    let test = name_of(&child_process_with_few_descriptors);
    run_child(&mut in_shell("ulimit -n 1024", &child(test, "many readers", &[])));
}

/// The times that a thread of this process gave its processor up, by thread name.
fn switches_of(name: &str) -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten().map(|task| task.path());
    let task =
        tasks.into_iter().find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))?;
    let status = fs::read_to_string(task.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// In a process of its own, which has one writer thread.
#[test]
fn a_blocking_caller_commits_on_its_own_thread() {
    const WRITES: u64 = 300;
    townsquare_tests::subprocess::in_subprocess(a_blocking_caller_commits_on_its_own_thread, || {
        let folder = temp_dir();
        let client = open(folder.path());
        let service = client.as_service();
        let Some(before) = switches_of("townsquare-writ") else {
            return townsquare_tests::skip::skip("the threads of a process: there is no /proc");
        };
        for _ in 0..WRITES {
            service.spaces().create_space(NewSpace::named("x")).expect("created");
        }
        let woken = switches_of("townsquare-writ").expect("it runs") - before;
        assert!(woken < WRITES / 4, "the writer thread slept through {WRITES} writes; it woke {woken} times");
        let async_client = client.as_service().inner().clone();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            for _ in 0..WRITES {
                async_client.spaces().create_space(NewSpace::named("x")).await.expect("created");
            }
        });
        let woken = switches_of("townsquare-writ").expect("it runs") - before;
        assert!(woken >= WRITES / 2, "an async caller hands over to the writer thread, which woke {woken} times");
        client.close();
    });
}

on_engine! { Sqlite in sqlite;
    fn blocking_writers_behind_a_foreign_lock_fail_together(db: &TestDatabase) {
        assert_fail_together(db, |client| {
            thread::scope(|scope| {
                let start = Instant::now();
                let writers = [(); 12].map(|()| {
                    scope.spawn(move || {
                        client.spaces().create_space(NewSpace::named("x")).map(|_| start.elapsed())
                    })
                });
                writers.map(|writer| writer.join().expect("no panic")).into()
            })
        });
        assert_eq!(db.raw.count("spaces"), 1);
    }

    fn async_writers_behind_a_foreign_lock_fail_together(db: &TestDatabase) {
        assert_fail_together(db, |client| {
            let start = Instant::now();
            // Submitted by the first poll, all of them before the first wait.
            let mut writers: Vec<_> =
                (0..12).map(|_| Box::pin(client.inner().spaces().create_space(NewSpace::named("x")))).collect();
            let mut context = Context::from_waker(Waker::noop());
            assert!(writers.iter_mut().all(|writer| writer.as_mut().poll(&mut context).is_pending()));
            writers.into_iter().map(|writer| wait(writer).map(|_| start.elapsed())).collect()
        });
    }

    fn close_is_not_held_up_by_writers_behind_a_foreign_lock(db: &TestDatabase) {
        let opened = Client::open(db.config().busy_timeout(PATIENT)).expect("opens");
        let client = opened.as_service();
        db.raw.run("BEGIN IMMEDIATE");
        let submitted = AtomicUsize::new(0);
        let closing = thread::scope(|scope| {
            let writers = [(); 12].map(|()| {
                scope.spawn(|| {
                    submitted.fetch_add(1, Ordering::SeqCst);
                    client.spaces().create_space(NewSpace::named("x"))
                })
            });
            wait_until("every writer has begun", || submitted.load(Ordering::SeqCst) == 12);
            let start = Instant::now();
            opened.close();
            let closing = start.elapsed();
            for writer in writers {
                assert_kind(ErrorKind::Closed, writer.join().expect("no panic"));
            }
            closing
        });
        assert!(closing < 10 * SECOND, "{closing:?}");
        db.raw.run("ROLLBACK");
        assert_eq!(db.raw.count("spaces"), 0);
    }

    fn an_async_writer_does_not_block_its_runtime(db: &TestDatabase) {
        let client = Client::open(db.config().busy_timeout(PATIENT)).expect("opens").as_service();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        db.raw.run("BEGIN IMMEDIATE");
        runtime.block_on(async {
            let is_done = AtomicBool::new(false);
            let write = async {
                let created = client.inner().spaces().create_space(NewSpace::named("x")).await;
                is_done.store(true, Ordering::SeqCst);
                created
            };
            let others = async {
                // Other tasks of the only thread run while the write waits for the lock.
                let mut turns = 0;
                until("other tasks had a hundred turns", || {
                    turns += 1;
                    turns > 100
                })
                .await;
                assert!(!is_done.load(Ordering::SeqCst), "the lock is held");
                db.raw.run("ROLLBACK");
            };
            let (created, ()) = within("the write", 60 * SECOND, async { tokio::join!(write, others) }).await;
            created.expect("the lock is free");
        });
        client.close();
        assert_eq!(db.raw.count("spaces"), 1);
    }

    /// A blocking caller that leads for its own write also answers the writes that others queued meanwhile.
    fn blocking_and_async_writers_share_the_writer(db: &TestDatabase) {
        let space = db.space();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        db.service.spaces().create_space(NewSpace::named("blocking")).expect("created");
                        db.service.spaces().update_space(space.id, SpacePatch::new().name("y")).expect("updated");
                    }
                });
            }
            runtime.block_on(async {
                for _ in 0..50 {
                    let spaces = db.async_service().spaces();
                    let create = || spaces.create_space(NewSpace::named("async"));
                    let (a, b, c) = tokio::join!(create(), create(), create());
                    a.and(b).and(c).expect("created");
                }
            });
        });
        assert_eq!(db.raw.count("spaces WHERE name = 'blocking'"), 200);
        assert_eq!(db.raw.count("spaces WHERE name = 'async'"), 150);
    }

    fn a_write_that_is_cancelled_while_it_waits_for_a_foreign_lock_is_not_written(db: &TestDatabase) {
        let spaces = db.async_service().spaces();
        db.raw.run("BEGIN IMMEDIATE");
        let mut kept = pin!(spaces.create_space(NewSpace::named("kept")));
        for name in ["first", "second"] {
            let mut cancelled = pin!(spaces.create_space(NewSpace::named(name)));
            assert!(matches!(cancelled.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
            // The second one is behind a write that is not cancelled.
            assert!(matches!(kept.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
        }
        db.raw.run("ROLLBACK");
        wait(kept).expect("created");
        db.service.spaces().create_space(NewSpace::named("later")).expect("created");
        assert_eq!(db.raw.count("spaces"), 2, "neither of the cancelled writes");
    }
}
