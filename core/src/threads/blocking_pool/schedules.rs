//! The promises of the pool in thousands of orders of its threads.
//!
//! These changes were made by hand, one at a time, and a test here failed for each:
//!
//! - a thread that is called, or woken, stays counted in `called`;
//! - a thread whose wait times out ends without another look at the jobs;
//! - a thread that takes a job calls no other thread for the jobs behind it;
//! - no thread watches the running jobs;
//! - a thread that ends notifies nobody, or stays counted in `running`;
//! - a closed pool accepts jobs.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{error::ErrorKind, threads::sync::check};

/// Adds one when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn jobs_of_two_threads_run_also_while_threads_end_of_idleness() {
    check(|| {
        let pool = BlockingPool::new("townsquare-test", 2);
        let ran = Arc::new((Mutex::new(0), Condvar::new()));
        let submitters = [(); 2].map(|()| {
            let (pool, ran) = (pool.clone(), Arc::clone(&ran));
            thread::spawn(move || {
                for _ in 0..2 {
                    let ran = Arc::clone(&ran);
                    pool.submit(move || {
                        *ran.0.lock() += 1;
                        ran.1.notify_all();
                    })
                    .expect("it is open");
                    thread::yield_now();
                }
            })
        });
        // A job that never runs leaves this thread waiting for ever, which the model checker reports.
        ran.1.wait_while(&mut ran.0.lock(), |ran| *ran < 4);
        submitters.into_iter().for_each(|submitter| submitter.join().expect("no panic"));
        pool.close(Duration::MAX);
    });
}

#[test]
fn a_job_that_waits_for_a_later_one_does_not_hold_it_up() {
    check(|| {
        let pool = BlockingPool::with_limits("townsquare-test", 1, 4, None);
        let turn = Arc::new((Mutex::new(2), Condvar::new()));
        for number in 0..3 {
            let turn = Arc::clone(&turn);
            // Job 2 may run at once, job 1 after it, job 0 last.
            let job = move || {
                let mut next = turn.0.lock();
                turn.1.wait_while(&mut next, |next| *next != number);
                *next -= 1;
                turn.1.notify_all();
            };
            pool.submit(job).expect("it is open");
        }
        turn.1.wait_while(&mut turn.0.lock(), |next| *next >= 0);
        pool.close(Duration::MAX);
    });
}

#[test]
fn a_job_runs_or_is_dropped_by_close_or_is_refused() {
    check(|| {
        let pool = BlockingPool::new("townsquare-test", 1);
        let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let submitters = [(); 2].map(|()| {
            let (pool, ran, dropped) = (pool.clone(), Arc::clone(&ran), Arc::clone(&dropped));
            thread::spawn(move || {
                let accepted = (0..2).filter(|_| {
                    let (ran, counted) = (Arc::clone(&ran), Counted(Arc::clone(&dropped)));
                    let submitted = pool.submit(move || {
                        let _counted = counted;
                        thread::yield_now();
                        ran.fetch_add(1, Ordering::SeqCst);
                    });
                    submitted.inspect_err(|error| assert_eq!(error.kind(), ErrorKind::Closed)).is_ok()
                });
                accepted.count()
            })
        });
        let closers = [(); 2].map(|()| {
            let (pool, ran) = (pool.clone(), Arc::clone(&ran));
            thread::spawn(move || {
                pool.close(Duration::MAX);
                ran.load(Ordering::SeqCst)
            })
        });
        let accepted: usize = submitters.map(|submitter| submitter.join().expect("no panic")).iter().sum();
        let ran_at_close = closers.map(|closer| closer.join().expect("no panic"));
        assert!(ran.load(Ordering::SeqCst) <= accepted);
        assert_eq!(ran_at_close, [ran.load(Ordering::SeqCst); 2], "no job runs after `close`");
        assert_eq!(dropped.load(Ordering::SeqCst), 4, "each job is dropped once");
        assert_eq!(pool.waiting(), 0);
    });
}
