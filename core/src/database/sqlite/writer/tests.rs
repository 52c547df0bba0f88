//! The writer's queue and group commit: leaders, lost transactions, deadlines behind a foreign lock, closing.

use std::{
    path::Path,
    sync::{
        atomic::AtomicBool,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use tempfile::TempDir;

use super::*;
use crate::database::sqlite::{connection::Connection, file_id::file_id, open_files::OpenFiles};

const SECOND: Duration = Duration::from_secs(1);

/// What a [`TestJob`] runs.
type RunJob = dyn FnMut(&mut WriteConnection) -> bool + Send;

/// A job that runs a function and sends what became of its transaction.
struct TestJob<F> {
    run: F,
    answered: Sender<Result<()>>,
    panics_when_answered: bool,
    is_abandoned: Arc<AtomicBool>,
}

impl<F: FnMut(&mut WriteConnection) -> bool + Send> Job for TestJob<F> {
    fn run(&mut self, connection: &mut WriteConnection) -> bool {
        (self.run)(connection)
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::SeqCst)
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let _ = self.answered.send(committed);
        assert!(!self.panics_when_answered, "on purpose");
    }
}

/// A database file in a folder of its own, with a writer on it.
struct Fixture {
    folder: TempDir,
    writer: Writer,
}

fn write_connection(folder: &Path, connection: rusqlite::Connection) -> WriteConnection {
    let file = folder.join("test.db");
    let count = connection.query_row("SELECT count(*) FROM numbers", [], |row| row.get::<_, i64>(0));
    count.expect("it reads, so that it has the write-ahead log");
    let files = OpenFiles::of(&file, file_id(&file).expect("a file")).expect("every file is there");
    WriteConnection::new(Connection(connection), Arc::new(files), None)
}

impl Fixture {
    fn new(name: &str, busy_timeout: Duration) -> Fixture {
        let folder = tempfile::Builder::new().prefix(&format!("townsquare-writer-{name}-")).tempdir();
        let folder = folder.expect("a temporary folder");
        let connection = rusqlite::Connection::open(folder.path().join("test.db")).expect("a new database");
        connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE numbers (number)").expect("a table");
        let connection = write_connection(folder.path(), connection);
        let turns = Turns::of(&folder.path().join("test.db"));
        Fixture { folder, writer: Writer::start(connection, busy_timeout, turns).expect("a thread") }
    }

    /// A further writer of the database, as another process has it.
    fn second_writer(&self, busy_timeout: Duration) -> Writer {
        let connection = write_connection(self.folder.path(), self.connect());
        Writer::start(connection, busy_timeout, Turns::of(&self.folder.path().join("test.db"))).expect("a thread")
    }

    fn connect(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("test.db")).expect("the database")
    }

    fn count(&self) -> i64 {
        self.connect().query_row("SELECT count(*) FROM numbers", [], |row| row.get(0)).expect("a count")
    }

    fn submit(&self, run: impl FnMut(&mut WriteConnection) -> bool + Send + 'static) -> Receiver<Result<()>> {
        self.submit_abandonable(Arc::default(), run)
    }

    /// Submits a job that is abandoned once `is_abandoned` is true.
    fn submit_abandonable(
        &self,
        is_abandoned: Arc<AtomicBool>,
        run: impl FnMut(&mut WriteConnection) -> bool + Send + 'static,
    ) -> Receiver<Result<()>> {
        let (answered, receiver) = channel();
        let job = TestJob { run, answered, panics_when_answered: false, is_abandoned };
        self.writer.submit(Box::new(job)).expect("the writer is open");
        receiver
    }

    /// Submits a job that keeps the writer busy until `release` is dropped, then jobs that form one group behind it.
    fn submit_group<const N: usize>(
        &self,
        runs: [Box<RunJob>; N],
    ) -> (Receiver<Result<()>>, [Receiver<Result<()>>; N]) {
        let (release, released) = channel::<()>();
        let (started, starts) = channel();
        let first = self.submit(move |connection| {
            started.send(()).expect("the test waits");
            let _ = released.recv();
            insert(connection)
        });
        starts.recv().expect("the first job runs");
        let others = runs.map(|run| self.submit(run));
        drop(release);
        (first, others)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.writer.close();
    }
}

fn insert(connection: &mut WriteConnection) -> bool {
    connection.0.execute("INSERT INTO numbers VALUES (1)", []).is_ok()
}

fn answer_of(receiver: &Receiver<Result<()>>) -> Result<()> {
    receiver.recv_timeout(30 * SECOND).expect("every job is answered")
}

#[test]
fn a_blocking_caller_commits_on_its_own_thread_and_an_async_caller_does_not() {
    let fixture = Fixture::new("leader", SECOND);
    let (sender, threads) = channel();
    let run = move |connection: &mut WriteConnection| {
        sender.send(thread::current().id()).expect("the test waits");
        insert(connection)
    };
    let answer = {
        let _blocking = blocking_caller::enter();
        fixture.submit(run.clone())
    };
    assert!(answer.try_recv().expect("the answer is there when submit returns").is_ok());
    assert_eq!(threads.recv().expect("it ran"), thread::current().id());
    answer_of(&fixture.submit(run)).expect("committed");
    assert_ne!(threads.recv().expect("it ran"), thread::current().id());
    assert_eq!(fixture.count(), 2);
}

#[test]
fn a_writer_without_pause_lets_another_process_have_its_turn() {
    let (fixture, is_over) = (Fixture::new("turns", 30 * SECOND), AtomicBool::new(false));
    let other = fixture.second_writer(30 * SECOND);
    let (busy, answers) = thread::scope(|scope| {
        let busy: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while !is_over.load(Ordering::SeqCst) {
                        answer_of(&fixture.submit(insert)).expect("committed");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let answers: Vec<_> = (0..40)
            .map(|_| {
                let (answered, receiver) = channel();
                let job = TestJob { run: insert, answered, panics_when_answered: false, is_abandoned: Arc::default() };
                other.submit(Box::new(job)).expect("open");
                answer_of(&receiver)
            })
            .collect();
        is_over.store(true, Ordering::SeqCst);
        let counts = busy.into_iter().map(|thread| thread.join().expect("no panic"));
        (counts.sum::<i64>(), answers)
    });
    assert_eq!(fixture.count(), busy + 40);
    for answer in answers {
        answer.expect("the other process is not locked out");
    }
    other.close();
}

#[test]
fn a_savepoint_that_cannot_be_released_fails_the_whole_group() {
    let fixture = Fixture::new("release", SECOND);
    // The job ends its own savepoint, so the writer's RELEASE fails.
    let ends_savepoint =
        |connection: &mut WriteConnection| insert(connection) && connection.release_savepoint().is_ok();
    let (first, [second, third]) = fixture.submit_group([Box::new(insert), Box::new(ends_savepoint)]);
    for answer in [&first, &second, &third] {
        assert_eq!(answer_of(answer).expect_err("nothing was committed").code(), Some("40000"));
    }
    assert_eq!(fixture.count(), 0);
    answer_of(&fixture.submit(insert)).expect("the writer goes on");
    assert_eq!(fixture.count(), 1);
}

#[test]
fn a_job_that_ignores_the_loss_of_its_transaction_is_never_answered_ok() {
    let fixture = Fixture::new("lost", SECOND);
    // As after an error for which SQLite rolls back by itself, which the job does not report.
    let loses = |connection: &mut WriteConnection| {
        connection.roll_back();
        true
    };
    assert_eq!(answer_of(&fixture.submit(loses)).expect_err("lost").code(), Some("40000"));
    let (first, [second]) = fixture.submit_group([Box::new(loses)]);
    for answer in [&first, &second] {
        assert_eq!(answer_of(answer).expect_err("lost").code(), Some("40000"));
    }
    assert_eq!(fixture.count(), 0);
}

#[test]
fn a_waker_that_panics_leaves_the_writer_running() {
    let fixture = Fixture::new("waker", SECOND);
    let (answered, receiver) = channel();
    let job = TestJob { run: insert, answered, panics_when_answered: true, is_abandoned: Arc::default() };
    fixture.writer.submit(Box::new(job)).expect("open");
    answer_of(&receiver).expect("committed");
    answer_of(&fixture.submit(insert)).expect("the writer goes on");
    assert_eq!(fixture.count(), 2);
}

#[test]
fn a_job_that_is_abandoned_after_it_began_is_committed() {
    let fixture = Fixture::new("begun", SECOND);
    let is_abandoned = Arc::new(AtomicBool::new(false));
    let leaves = Arc::clone(&is_abandoned);
    let answer = fixture.submit_abandonable(is_abandoned, move |connection| {
        leaves.store(true, Ordering::SeqCst);
        insert(connection)
    });
    answer_of(&answer).expect("committed");
    assert_eq!(fixture.count(), 1);
}

#[test]
fn an_abandoned_job_does_not_run_and_its_group_is_committed() {
    let fixture = Fixture::new("abandoned", 30 * SECOND);
    let foreign = fixture.connect();
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let run = |_: &mut WriteConnection| unreachable!("it is abandoned");
    let abandoned = || fixture.submit_abandonable(Arc::new(AtomicBool::new(true)), run);
    let answers = [abandoned(), fixture.submit(insert), abandoned(), fixture.submit(insert)];
    foreign.execute_batch("ROLLBACK").expect("the lock is free");
    for answer in &answers {
        answer_of(answer).expect("the transaction was not lost");
    }
    assert_eq!(fixture.count(), 2);
}

/// A job that fails, and whose answer tells whether another process could take the write lock then.
struct FailsAndLooks {
    other_process: rusqlite::Connection,
    could_lock: Sender<bool>,
}

impl Job for FailsAndLooks {
    fn run(&mut self, _: &mut WriteConnection) -> bool {
        false
    }

    fn is_exclusive(&self) -> bool {
        false
    }

    fn is_abandoned(&self) -> bool {
        false
    }

    fn answer(self: Box<Self>, _: Result<()>) {
        self.other_process.busy_timeout(Duration::ZERO).expect("a time-out");
        let _ = self.could_lock.send(self.other_process.execute_batch("BEGIN IMMEDIATE").is_ok());
    }
}

#[test]
fn a_job_that_fails_keeps_the_lock_for_the_jobs_behind_it() {
    let fixture = Fixture::new("keeps", 30 * SECOND);
    let foreign = fixture.connect();
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let (could_lock, answered) = channel();
    let failing = [(); 2].map(|()| FailsAndLooks { other_process: fixture.connect(), could_lock: could_lock.clone() });
    for job in failing {
        fixture.writer.submit(Box::new(job)).expect("the writer is open");
    }
    let last = fixture.submit(insert);
    foreign.execute_batch("ROLLBACK").expect("the lock is free");
    answer_of(&last).expect("committed");
    drop(could_lock);
    assert_eq!(answered.iter().collect::<Vec<_>>(), [false, false], "whether another process could lock");
    assert_eq!(fixture.count(), 1);
}

#[test]
fn jobs_behind_a_foreign_lock_fail_together_when_their_time_is_over() {
    let fixture = Fixture::new("deadline", SECOND);
    let foreign = fixture.connect();
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let clock = Clock::default();
    let start = clock.moment();
    let answers: Vec<_> = (0..12).map(|_| fixture.submit(insert)).collect();
    for answer in &answers {
        assert!(is_busy(&answer_of(answer).expect_err("locked")));
    }
    let waited = clock.moment().since(start);
    assert!(waited >= SECOND && waited < 6 * SECOND, "twelve waits were not one after the other: {waited:?}");
    foreign.execute_batch("ROLLBACK").expect("the lock is free");
    answer_of(&fixture.submit(insert)).expect("the writer goes on");
}

#[test]
fn close_is_not_held_up_by_a_foreign_lock() {
    let fixture = Fixture::new("close", 600 * SECOND);
    let foreign = fixture.connect();
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let answers: Vec<_> = (0..3).map(|_| fixture.submit(insert)).collect();
    fixture.writer.close();
    for answer in &answers {
        assert_eq!(answer_of(answer).expect_err("closed").kind(), ErrorKind::Closed);
    }
}

#[test]
fn after_close_the_file_alone_holds_every_row() {
    let fixture = Fixture::new("checkpoint", SECOND);
    answer_of(&fixture.submit(insert)).expect("committed");
    fixture.writer.close();
    let copy = fixture.folder.path().join("copy.db");
    std::fs::copy(fixture.folder.path().join("test.db"), &copy).expect("a copy");
    let copy = rusqlite::Connection::open(copy).expect("a database");
    let count: i64 = copy.query_row("SELECT count(*) FROM numbers", [], |row| row.get(0)).expect("the table is there");
    assert_eq!(count, 1);
}

#[test]
fn jobs_behind_a_foreign_lock_fail_together_at_close() {
    let fixture = Fixture::new("close-all", 600 * SECOND);
    let foreign = fixture.connect();
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    let answers: Vec<_> = (0..1_000).map(|_| fixture.submit(insert)).collect();
    let clock = Clock::default();
    let start = clock.moment();
    fixture.writer.close();
    let waited = clock.moment().since(start);
    assert!(waited < 10 * SECOND, "a thousand waits of LOCK_WAIT are 50 s: {waited:?}");
    for answer in &answers {
        assert_eq!(answer_of(answer).expect_err("closed").kind(), ErrorKind::Closed);
    }
}

#[test]
fn every_caller_of_close_returns_after_the_connection_is_closed() {
    let fixture = Fixture::new("closers", SECOND);
    let (release, released) = channel::<()>();
    let (started, starts) = channel();
    let answer = fixture.submit(move |connection| {
        started.send(()).expect("the test waits");
        let _ = released.recv();
        insert(connection)
    });
    starts.recv().expect("the job runs");
    thread::scope(|scope| {
        let closers = [(); 2].map(|()| {
            scope.spawn(|| {
                fixture.writer.close();
                fixture.writer.shared.connection.lock().is_none()
            })
        });
        drop(release);
        assert!(closers.map(|closer| closer.join().expect("no panic")).iter().all(|is_closed| *is_closed));
    });
    answer_of(&answer).expect("a job that was accepted is committed");
}

#[test]
fn a_transaction_that_was_left_open_does_not_stop_the_writer() {
    let fixture = Fixture::new("left-open", SECOND);
    // As after a panic of a leader outside of its job.
    if let Some(connection) = fixture.writer.shared.connection.lock().as_mut() {
        connection.begin(SECOND).expect("begun");
        assert!(insert(connection));
    }
    answer_of(&fixture.submit(insert)).expect("the writer goes on");
    assert_eq!(fixture.count(), 1, "nothing of the lost transaction");
}
