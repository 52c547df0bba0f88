//! The change feed: from commit to callback, the cost of capture, many subscriptions, and replay.
//!
//! Each figure stands beside a floor or beside the same work without the feed, measured in the same run; the two take turns,
//! so that other load on the machine affects both. Criterion measures means of batches, and here percentiles and ratios of
//! single calls count, so the program takes its own times. An argument selects the parts whose name contains it.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

mod capture;
mod hostile_filters;
mod latency;
mod notify_floor;
mod replay;
mod subscriptions;

use std::{
    cell::{Cell, OnceCell},
    time::{Duration, Instant},
};

use townsquare::blocking::Client;
use townsquare_benches::{
    comparison::percentile,
    spaces::{open, sqlite_url},
};
use townsquare_tests::{
    postgres::{APP_ROLE, Server},
    temp_dir,
};

/// Returns the URL of a new database.
type NewDatabase<'a> = &'a dyn Fn() -> String;

fn main() {
    let folder = temp_dir();
    let next = Cell::new(0);
    let sqlite = || {
        next.set(next.get() + 1);
        sqlite_url(&folder.path().join(format!("{}.db", next.get())))
    };
    let server = OnceCell::new();
    let postgres = || {
        let server = server.get_or_init(Server::durable).as_ref()?;
        Some(server.socket_url(APP_ROLE, &server.new_database()))
    };
    part("sqlite latency", || latency::run("SQLite", &sqlite, &latency::wake_ups));
    part("sqlite capture", || capture::run("SQLite", &sqlite, &[1]));
    part("sqlite subscriptions", || subscriptions::run(&sqlite()));
    part("sqlite hostile filters", || hostile_filters::run(&sqlite()));
    part("sqlite hostile replays", || hostile_filters::run_replays(&sqlite()));
    part("sqlite replay", || replay::run("SQLite", &sqlite()));
    part("postgres", || drop(postgres()));
    let Some(Some(_)) = server.get() else { return };
    let postgres = || postgres().expect("the server runs");
    part("postgres latency", || latency::run("PostgreSQL", &postgres, &|| notify_floor::run(&postgres())));
    part("postgres capture", || capture::run("PostgreSQL", &postgres, &[1, 32]));
    part("postgres replay", || replay::run("PostgreSQL", &postgres()));
}

/// Runs a part of the bench if the arguments select it.
fn part(name: &str, run: impl FnOnce()) {
    let mut selected = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).peekable();
    if selected.peek().is_none() || selected.any(|argument| name.contains(&argument) || argument.contains(name)) {
        run();
    }
}

fn service_of(url: &str) -> Client {
    open(url).as_service()
}

/// Prints percentiles in microseconds.
fn report(name: &str, mut taken: Vec<Duration>) {
    taken.sort_unstable();
    let nanos: Vec<u64> = taken.iter().map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).collect();
    let at = |share: f64| percentile(&nanos, share) as f64 / 1e3;
    println!("{name:<58} p50 {:>9.1} us  p99 {:>9.1} us  ({})", at(0.5), at(0.99), nanos.len());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
