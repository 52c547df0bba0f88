//! Engines side by side on the same queries, in one process and one run.
//!
//! Invariant: the engines take turns, round by round, so that whatever else the machine does meets all of them; each
//! call is timed alone, since a median over queries is what is asked, not a mean over a batch.

use std::{hint::black_box, time::Instant};

use crate::{
    catalog::App,
    queries::{self, Kind},
};

/// Something that searches.
pub trait Engine {
    /// For the table.
    fn name(&self) -> &'static str;

    /// Answers with the best twenty, text in to ids out; returns how many it found.
    fn answer(&mut self, kind: Kind, query: &str) -> usize;
}

/// How much is asked.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Different queries of each kind.
    pub queries: usize,
    /// Timed rounds over all of them, after one that is not timed.
    pub rounds: usize,
}

/// Asks every engine everything and prints a table; ratios are to the first engine.
#[allow(clippy::print_stdout, reason = "a bench reports on the terminal")]
pub fn hold(title: &str, apps: &[App], effort: Effort, engines: &mut [&mut dyn Engine]) {
    println!("\nsearch: {title}, {} apps, {} queries x {} rounds, limit 20", apps.len(), effort.queries, effort.rounds);
    println!(
        "{:<10} {:<12} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "query", "engine", "p50 us", "p90 us", "p99 us", "answered", "x p50"
    );
    for kind in Kind::ALL {
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
    println!("* the same queries, for peers with the last word as a beginning too: what townsquare always answers");
}

/// The value that this share of a sorted, non-empty list is not above.
///
/// # Panics
/// When the list is empty.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}
