//! Latency of durable writes by 32 threads: the library, then rusqlite behind a mutex.
//!
//! `writers [SECONDS]`, 60 by default, for each of the two.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{
    env,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use townsquare::spaces::NewSpace;
use townsquare_benches::{
    comparison::percentile,
    raw,
    spaces::{open, sqlite_url},
};
use townsquare_tests::temp_dir;

const WRITERS: usize = 32;

fn main() {
    let seconds = env::args().nth(1).map_or(60, |seconds| seconds.parse().expect("a number of seconds"));
    let span = Duration::from_secs(seconds);
    let folder = temp_dir();
    println!("{WRITERS} writers for {seconds} s, synchronous=FULL; milliseconds a write");
    println!("{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "writes", "a second", "p50", "p99", "p99.9", "slowest");
    let client = open(&sqlite_url(&folder.path().join("town.db")));
    let service = client.as_service();
    report("townsquare", span, || drop(service.spaces().create_space(NewSpace::named("A space")).expect("a space")));
    client.close();
    open(&sqlite_url(&folder.path().join("raw.db"))).close();
    let raw = Mutex::new(raw::writer(&folder.path().join("raw.db")));
    report("rusqlite behind a mutex", span, || drop(raw::create_space(&raw.lock().expect("whole"))));
}

fn report(name: &str, span: Duration, write: impl Fn() + Sync) {
    let started = Instant::now();
    let of_one = || {
        let mut taken = Vec::new();
        while started.elapsed() < span {
            let start = Instant::now();
            write();
            taken.push(start.elapsed().as_nanos() as u64);
        }
        taken
    };
    let mut taken: Vec<u64> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(of_one)).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
    });
    taken.sort_unstable();
    let at = |share: f64| percentile(&taken, share) as f64 / 1e6;
    let rate = taken.len() as f64 / span.as_secs_f64();
    println!(
        "{name:<26} {:>9} {rate:>9.0} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
        taken.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}
