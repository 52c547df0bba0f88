//! Compares search engines on the same queries, or a call with its floor, in one process.
//!
//! Invariant: the engines take turns, so that other load on the machine affects all of them; each call is timed alone,
//! because the result is a percentile over queries and not a mean over a batch.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use crate::{
    catalog::App,
    queries::{self, Kind},
    sized,
};

/// A search engine.
pub trait Engine {
    /// Returns the name for the table.
    fn name(&self) -> &'static str;

    /// Searches for the best twenty apps; returns how many it found.
    fn answer(&mut self, kind: Kind, query: &str) -> usize;
}

/// The size of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Different queries of each kind.
    pub queries: usize,
    /// Timed rounds over all queries, after one that is not timed.
    pub rounds: usize,
}

/// Runs all queries of the wanted kinds on every engine and prints a table; ratios are relative to the first engine.
#[allow(clippy::print_stdout, reason = "a bench reports on the terminal")]
pub fn run(title: &str, apps: &[App], effort: Effort, engines: &mut [&mut dyn Engine]) {
    println!("\nsearch: {title}, {} apps, {} queries x {} rounds, limit 20", apps.len(), effort.queries, effort.rounds);
    println!(
        "{:<10} {:<12} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "query", "engine", "p50 us", "p90 us", "p99 us", "answered", "x p50"
    );
    for kind in Kind::ALL.into_iter().filter(|kind| is_wanted(kind.name())) {
        let queries = queries::queries(kind, apps, effort.queries);
        let mut timings = vec![Vec::with_capacity(effort.queries * effort.rounds); engines.len()];
        let mut answered = vec![0; engines.len()];
        for round in 0..=effort.rounds {
            for (place, engine) in engines.iter_mut().enumerate() {
                for query in &queries {
                    let start = Instant::now();
                    let found = black_box(engine.answer(kind, black_box(query)));
                    let taken = start.elapsed();
                    if round == 0 {
                        answered[place] += usize::from(found > 0);
                    } else {
                        timings[place].push(taken.as_nanos() as u64);
                    }
                }
            }
        }
        let mut first = None;
        for (place, engine) in engines.iter().enumerate() {
            let timings = &mut timings[place];
            timings.sort_unstable();
            let at = |share: f64| percentile(timings, share) as f64 / 1_000.0;
            let ratio = at(0.5) / *first.get_or_insert(at(0.5));
            let share = 100.0 * answered[place] as f64 / effort.queries as f64;
            println!(
                "{:<10} {:<12} {:>10.2} {:>10.2} {:>10.2} {share:>8.1}% {ratio:>9.1}",
                kind.name(),
                engine.name(),
                at(0.5),
                at(0.9),
                at(0.99)
            );
        }
    }
    println!("* the same queries; peers also match the last word as a prefix, as townsquare always does");
}

/// Whether the command line has no filter, or one that contains `name` or is a part of it.
pub fn is_wanted(name: &str) -> bool {
    let fits = |argument: String| name.contains(&argument) || argument.contains(name);
    std::env::args().skip(1).all(|argument| argument.starts_with('-') || fits(argument))
}

/// Calls `ours` and `floor` in turns for `time`, and prints the median and the lowest tenth of both with their ratios. Does
/// nothing unless `name` is wanted.
#[allow(clippy::print_stdout, reason = "a bench reports on the terminal")]
pub fn in_turns<A, B>(name: &str, time: Duration, mut ours: impl FnMut() -> A, mut floor: impl FnMut() -> B) {
    if !is_wanted(name) {
        return;
    }
    let time = sized(time, Duration::ZERO);
    let mut timings = [Vec::new(), Vec::new()];
    let started = Instant::now();
    // The first round warms up.
    for round in 0.. {
        for (place, timings) in timings.iter_mut().enumerate() {
            let start = Instant::now();
            if place == 0 {
                drop(black_box(ours()));
            } else {
                drop(black_box(floor()));
            }
            if round > 0 {
                timings.push(start.elapsed().as_nanos() as u64);
            }
        }
        if round > 0 && started.elapsed() >= time {
            break;
        }
    }
    timings.iter_mut().for_each(|timings| timings.sort_unstable());
    let at = |place: usize, share| percentile(&timings[place], share) as f64 / 1_000.0;
    let ratio = |share| at(0, share) / at(1, share);
    println!(
        "{name:<32} p50 {:>9.1} us, floor {:>9.1} us, {:.2}x;  p10 {:>9.1} us, floor {:>9.1} us, {:.2}x;  {} calls",
        at(0, 0.5),
        at(1, 0.5),
        ratio(0.5),
        at(0, 0.1),
        at(1, 0.1),
        ratio(0.1),
        timings[0].len()
    );
}

/// Returns the percentile of a sorted, non-empty list; `share` is 0 to 1.
///
/// # Panics
/// When the list is empty.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}
