//! The hand-over of the write connection between callers and the writer thread, in thousands of orders of the threads.
//!
//! The jobs write to a database of SQLite in memory. These changes were made by hand, one at a time, and a test here failed for each:
//!
//! - `push` notifies nobody, or notifies before it adds the job, or accepts a job after `close`;
//! - `wait` returns false when the queue is closed and not empty;
//! - `close` does not notify the writer thread, or does not join it, or a second caller does not wait for the first;
//! - `commit_group` answers jobs before COMMIT, keeps the rows of a job that fails, runs an abandoned job, or takes the newest job first;
//! - an exclusive job joins the transaction of others, or others join its own.

use std::{
    collections::BTreeSet,
    sync::{Mutex as StdMutex, MutexGuard as StdMutexGuard},
};

use super::*;
use crate::{
    database::sqlite::{connection::Connection, open_files::OpenFiles},
    threads::sync::check_times,
};

/// Each of them opens a database.
const SCHEDULES: usize = 1_000;

/// What the writer did, in the order in which it did it. Its lock is one of `std`, so it changes no schedule.
#[derive(Clone, Default)]
struct History(Arc<StdMutex<Events>>);

#[derive(Default)]
struct Events {
    /// The jobs of the open transaction that are to be committed.
    in_transaction: Vec<u32>,
    /// Whether no other job may join them.
    is_exclusive: bool,
    committed: BTreeSet<u32>,
    began: Vec<u32>,
    answered: Vec<u32>,
}

impl History {
    fn lock(&self) -> StdMutexGuard<'_, Events> {
        self.0.lock().expect("no panic")
    }
}

/// What a job does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    /// Inserts, and then fails.
    Fail,
    /// Inserts, and may not share its transaction.
    InsertAlone,
    /// Its submitter is gone.
    Abandoned,
}

struct ModelJob {
    id: u32,
    kind: Kind,
    history: History,
    answer: Arc<Answer>,
}

/// The answer of a job, for the thread that waits for it.
#[derive(Default)]
struct Answer {
    result: Mutex<Option<Result<()>>>,
    given: Condvar,
}

impl Answer {
    fn wait(&self) -> Result<()> {
        let mut result = self.result.lock();
        self.given.wait_while(&mut result, |result| result.is_none());
        result.take().expect("it was given")
    }
}

impl Job for ModelJob {
    fn run(&mut self, connection: &mut WriteConnection) -> bool {
        {
            let mut history = self.history.lock();
            assert!(!history.began.contains(&self.id), "job {} runs once", self.id);
            history.began.push(self.id);
            assert!(self.kind != Kind::InsertAlone || history.in_transaction.is_empty(), "it is alone");
            assert!(!history.is_exclusive, "the job before is alone");
            history.is_exclusive = self.kind == Kind::InsertAlone;
        }
        thread::yield_now();
        connection.0.execute("INSERT INTO numbers (number) VALUES (?1)", [self.id]).expect("the table is there");
        let commits = self.kind != Kind::Fail;
        if commits {
            self.history.lock().in_transaction.push(self.id);
        }
        commits
    }

    fn is_abandoned(&self) -> bool {
        self.kind == Kind::Abandoned
    }

    fn is_exclusive(&self) -> bool {
        self.kind == Kind::InsertAlone
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        {
            let mut history = self.history.lock();
            let writes = matches!(self.kind, Kind::Insert | Kind::InsertAlone);
            let is_committed = history.committed.contains(&self.id);
            assert_eq!(is_committed, writes && committed.is_ok(), "job {} is answered after its COMMIT", self.id);
            history.answered.push(self.id);
        }
        *self.answer.result.lock() = Some(committed);
        self.answer.given.notify_all();
    }
}

/// A writer on a new database in memory.
#[derive(Clone)]
struct Fixture {
    writer: Arc<Writer>,
    history: History,
}

impl Fixture {
    fn new() -> Fixture {
        let connection = rusqlite::Connection::open_in_memory().expect("memory");
        connection.execute_batch("CREATE TABLE numbers (number)").expect("a table");
        let history = History::default();
        let of_commit = history.clone();
        let commit_hook = move || {
            let mut history = of_commit.lock();
            let jobs = std::mem::take(&mut history.in_transaction);
            history.is_exclusive = false;
            history.committed.extend(jobs);
            false
        };
        let of_rollback = history.clone();
        connection.commit_hook(Some(commit_hook)).expect("a hook");
        let rollback_hook = move || {
            let mut history = of_rollback.lock();
            history.in_transaction.clear();
            history.is_exclusive = false;
        };
        connection.rollback_hook(Some(rollback_hook)).expect("a hook");
        let connection = WriteConnection::new(Connection(connection), Arc::new(OpenFiles::none()), None);
        let writer = Writer::start(connection, Duration::from_secs(5), Turns::of_one_process()).expect("a thread");
        Fixture { writer: Arc::new(writer), history }
    }

    fn submit(&self, id: u32, kind: Kind) -> Result<Arc<Answer>> {
        let answer = Arc::<Answer>::default();
        let job = ModelJob { id, kind, history: self.history.clone(), answer: Arc::clone(&answer) };
        self.writer.submit(Box::new(job)).map(|()| answer)
    }

    /// Submits the jobs of one caller, each after the answer to the one before.
    fn submit_each(&self, jobs: &[(u32, Kind)]) {
        for (id, kind) in jobs {
            self.submit(*id, *kind).expect("it is open").wait().expect("it is answered");
        }
    }

    /// The rows of the database.
    fn rows(&self) -> BTreeSet<u32> {
        let connection = self.writer.shared.connection.lock();
        let connection = connection.as_ref().expect("it is open");
        let mut statement = connection.0.prepare("SELECT number FROM numbers").expect("a table");
        let rows = statement.query_map([], |row| row.get(0)).expect("rows");
        rows.map(|row| row.expect("a number")).collect()
    }
}

#[test]
fn every_job_of_leaders_and_of_the_queue_is_committed_and_then_answered() {
    check_times(SCHEDULES, || {
        let fixture = Fixture::new();
        let callers: [(bool, &'static [(u32, Kind)]); 3] = [
            (true, &[(1, Kind::Insert), (2, Kind::Fail)]),
            (true, &[(11, Kind::Fail), (12, Kind::Insert)]),
            (false, &[(21, Kind::InsertAlone), (22, Kind::Insert)]),
        ];
        let callers = callers.map(|(may_lead, jobs)| {
            let fixture = fixture.clone();
            thread::spawn(move || {
                let _blocking = may_lead.then(blocking_caller::enter);
                fixture.submit_each(jobs);
            })
        });
        callers.into_iter().for_each(|caller| caller.join().expect("no panic"));
        assert_eq!(fixture.rows(), BTreeSet::from([1, 12, 21, 22]), "a job that fails fails alone");
        fixture.writer.close();
        assert_eq!(fixture.history.lock().answered.len(), 6);
    });
}

#[test]
fn jobs_of_one_thread_run_in_the_order_of_their_submission() {
    check_times(SCHEDULES, || {
        let fixture = Fixture::new();
        let leader = {
            let fixture = fixture.clone();
            thread::spawn(move || {
                let _blocking = blocking_caller::enter();
                fixture.submit_each(&[(1, Kind::Insert), (2, Kind::Insert)]);
            })
        };
        // Like a task, which cannot lead: it submits several jobs before it waits.
        let kinds = [Kind::Insert, Kind::Abandoned, Kind::Fail, Kind::InsertAlone, Kind::Insert];
        let answers: Vec<_> =
            (11..).zip(kinds).map(|(id, kind)| fixture.submit(id, kind).expect("it is open")).collect();
        answers.iter().for_each(|answer| answer.wait().expect("answered"));
        leader.join().expect("no panic");
        fixture.writer.close();
        let history = fixture.history.lock();
        let began: Vec<_> = history.began.iter().copied().filter(|id| *id > 10).collect();
        assert_eq!(began, [11, 13, 14, 15], "an abandoned job does not run");
        assert_eq!(history.committed, BTreeSet::from([1, 2, 11, 14, 15]));
    });
}

#[test]
fn close_answers_each_accepted_job_and_returns_after_the_connection_is_closed() {
    check_times(SCHEDULES, || {
        let fixture = Fixture::new();
        let submitters = [true, false].map(|may_lead| {
            let fixture = fixture.clone();
            thread::spawn(move || {
                let _blocking = may_lead.then(blocking_caller::enter);
                let first = if may_lead { 1 } else { 11 };
                let accepted = (first..first + 2).filter_map(|id| match fixture.submit(id, Kind::Insert) {
                    Ok(answer) => Some((id, answer)),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Closed);
                        None
                    }
                });
                let accepted: Vec<_> = accepted.collect();
                accepted.into_iter().map(|(id, answer)| answer.wait().map(|()| id).expect("committed")).collect()
            })
        });
        let closers = [(); 2].map(|()| {
            let fixture = fixture.clone();
            thread::spawn(move || {
                fixture.writer.close();
                assert!(fixture.writer.shared.connection.lock().is_none());
            })
        });
        closers.into_iter().for_each(|closer| closer.join().expect("no panic"));
        let accepted: Vec<Vec<u32>> = submitters.map(|submitter| submitter.join().expect("no panic")).into();
        assert_eq!(fixture.history.lock().committed, accepted.into_iter().flatten().collect());
    });
}
