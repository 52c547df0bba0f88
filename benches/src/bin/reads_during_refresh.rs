//! Latency of reads during a refresh: percentiles of single reads with and without one.
//!
//! `reads_during_refresh [APPS] [ROUNDS]`, 100,000 and 5 by default. Not a criterion bench, because criterion has no
//! percentiles.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use townsquare::discovery::Timeframe;
use townsquare_benches::{
    catalog,
    comparison::percentile,
    fixture::Fixture,
    queries::{self, Kind},
};

/// A kind of read, with its durations without and during a refresh.
struct Read<'a> {
    name: &'static str,
    call: Box<dyn Fn(usize) -> usize + 'a>,
    rest: Vec<u64>,
    refresh: Vec<u64>,
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let size: usize = arguments.next().unwrap_or(100_000);
    let rounds: usize = arguments.next().unwrap_or(5);
    let fixture = Fixture::of(size);
    let apps = catalog::read(&fixture.file).expect("the catalog is readable");
    let words = queries::queries(Kind::OneWord, &apps, 500);
    let discovery = fixture.client.discovery();
    let new = |name, call| Read { name, call, rest: Vec::new(), refresh: Vec::new() };
    let mut reads = [
        new(
            "trending",
            Box::new(|_| discovery.get_trending_mini_apps(Timeframe::default(), 20).map_or(0, |apps| apps.len())),
        ),
        new("category", Box::new(|_| discovery.get_mini_apps_by_category(["games"], 20).map_or(0, |apps| apps.len()))),
        new("search", Box::new(|turn| discovery.search_mini_apps(&words[turn % 500], 20).map_or(0, |apps| apps.len()))),
    ];
    let mut refreshes = Duration::ZERO;
    for _ in 0..rounds {
        for read in &mut reads {
            let refreshing = AtomicBool::new(true);
            thread::scope(|scope| {
                let start = Instant::now();
                scope.spawn(|| {
                    discovery.refresh().expect("a good catalog");
                    refreshing.store(false, Ordering::Release);
                });
                sample(&read.call, &mut read.refresh, || refreshing.load(Ordering::Acquire));
                refreshes += start.elapsed();
            });
            // Without a refresh: as long as a refresh took, after its threads became idle.
            thread::sleep(Duration::from_millis(100));
            let end = Instant::now() + refreshes / (rounds * 3) as u32;
            sample(&read.call, &mut read.rest, || Instant::now() < end);
        }
    }
    println!(
        "reads of {size} apps, one thread; a refresh took {:.2?} with a reader beside it",
        refreshes / (rounds * 3) as u32
    );
    println!(
        "{:<10} {:<8} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "read", "", "calls", "p50 ns", "p99 ns", "p99.9 ns", "max us"
    );
    for read in &mut reads {
        let [rest, refresh] = [("rest", &mut read.rest), ("refresh", &mut read.refresh)].map(|(when, timings)| {
            timings.sort_unstable();
            let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|share| percentile(timings, share));
            println!(
                "{:<10} {when:<8} {:>10} {p50:>9} {p99:>9} {p999:>9} {:>9}",
                read.name,
                timings.len(),
                max / 1_000
            );
            p99 as f64
        });
        println!("{:<10} p99 during a refresh is {:.2} times that at rest", read.name, refresh / rest);
    }
    fixture.client.close();
}

/// Measures reads while `goes_on` returns true.
fn sample(call: &dyn Fn(usize) -> usize, timings: &mut Vec<u64>, goes_on: impl Fn() -> bool) {
    // Reserved first: growing the vector would be measured too.
    timings.reserve(1 << 22);
    let most = timings.len() + (1 << 22);
    let mut turn = 0;
    while goes_on() && timings.len() < most {
        for _ in 0..16 {
            let start = Instant::now();
            black_box(call(turn));
            timings.push(start.elapsed().as_nanos() as u64);
            turn += 1;
        }
        // A real reader yields the core now and then.
        thread::sleep(Duration::from_micros(20));
    }
}
