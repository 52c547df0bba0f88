//! What does a new catalog cost: to read, to put before readers, to keep in the database?
//!
//! All through the public API, by `refresh()` on a `file:` catalog:
//! - *parsed*: a file of the same size in which a thousand apps repeat; every row is read, checked and turned into a
//!   record, the copies are dropped, and what is built and kept of it is a hundredth (of that the figure has its share).
//! - *serving*: from the call until readers see the new catalog, which is when `stats().fetched_at` moves on.
//! - *kept*: until the call returns, the database written.
//!
//! The floors are the file read, and read as JSON by serde_json without keeping anything; the peer is `serde_json::Value`.

#![forbid(unsafe_code)]

use std::{
    fs,
    hint::black_box,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use criterion::{Criterion, Throughput};
use serde::de::IgnoredAny;
use serde_json::Value;
use townsquare_benches::{
    catalog, sized,
    town::{Folder, Town},
};

const DISTINCT: usize = 1_000;

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let size = sized(100_000, 1_000);
    let folder = Folder::new();
    let repeated = folder.join("repeated.json");
    let rows: Vec<_> = (0..DISTINCT.min(size / 10)).map(|index| catalog::frame(index).to_string()).collect();
    catalog::write_rows(&repeated, rows.iter().cycle().take(size).cloned()).expect("the catalog can be written");
    parsing(&mut criterion, &repeated);
    refreshing(&mut criterion, size);
    criterion.final_summary();
}

fn parsing(criterion: &mut Criterion, file: &Path) {
    let town = Town::on(file);
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Bytes(fs::metadata(file).expect("the catalog").len()));
    group.bench_function("townsquare", |bencher| {
        bencher.iter(|| town.client.discovery().refresh().expect("a good catalog"));
    });
    group.bench_function("floor: file read", |bencher| bencher.iter(|| fs::read(file).expect("the catalog")));
    group.bench_function("floor: JSON checked", |bencher| {
        bencher.iter(|| {
            let body = fs::read(file).expect("the catalog");
            serde_json::from_slice::<IgnoredAny>(black_box(&body)).expect("JSON")
        });
    });
    group.bench_function("peer: serde_json::Value", |bencher| {
        bencher.iter(|| {
            let body = fs::read(file).expect("the catalog");
            serde_json::from_slice::<Value>(black_box(&body)).expect("JSON")
        });
    });
    group.finish();
    town.client.close();
}

fn refreshing(criterion: &mut Criterion, size: usize) {
    let town = Town::of(size);
    let mut group = criterion.benchmark_group(format!("refresh/{size}"));
    group.throughput(Throughput::Bytes(fs::metadata(&town.file).expect("the catalog").len()));
    group.bench_function("serving", |bencher| bencher.iter_custom(|times| (0..times).map(|_| refresh(&town).0).sum()));
    group.bench_function("kept", |bencher| bencher.iter_custom(|times| (0..times).map(|_| refresh(&town).1).sum()));
    group.finish();
    town.client.close();
}

/// How long until the new catalog serves, and until the call returns.
fn refresh(town: &Town) -> (Duration, Duration) {
    let fetched_at = || town.client.discovery().stats().expect("an open client").fetched_at;
    let before = fetched_at();
    thread::scope(|scope| {
        let start = Instant::now();
        let call = scope.spawn(move || {
            town.client.discovery().refresh().expect("a good catalog");
            start.elapsed()
        });
        while fetched_at() == before && !call.is_finished() {
            thread::sleep(Duration::from_micros(200));
        }
        (start.elapsed(), call.join().expect("the refresh does not panic"))
    })
}
