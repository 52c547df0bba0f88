//! Cost of a refresh: parsing, until readers see the new catalog, and until it is stored.
//!
//! Measured through the public API, by `refresh()` on a `file:` catalog:
//! - *parse*: a file in which a thousand apps repeat. Every row is parsed and validated; duplicates are dropped, so index
//!   and database work is a hundredth.
//! - *serving*: from the call until `stats().fetched_at` changes.
//! - *kept*: until the call returns, after the database write.
//!
//! The floors read the file, and check its JSON without building values; the peer builds a `serde_json::Value`.

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
use townsquare_benches::{fixture::Fixture, sized};
use townsquare_tests::{
    catalog::{Catalog, write_rows},
    temp_dir,
};

const DISTINCT: usize = 1_000;

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let size = sized(100_000, 1_000);
    let folder = temp_dir();
    let repeated = folder.path().join("repeated.json");
    let rows: Vec<_> = Catalog::of(DISTINCT.min(size / 10)).rows().map(|row| row.body).collect();
    write_rows(&repeated, rows.iter().cycle().take(size).cloned()).expect("the temporary folder is writable");
    parsing(&mut criterion, &repeated);
    refreshing(&mut criterion, size);
    criterion.final_summary();
}

fn parsing(criterion: &mut Criterion, file: &Path) {
    let fixture = Fixture::on(file);
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Bytes(fs::metadata(file).expect("the catalog").len()));
    group.bench_function("townsquare", |bencher| {
        bencher.iter(|| fixture.client.discovery().refresh().expect("a good catalog"));
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
    fixture.client.close();
}

fn refreshing(criterion: &mut Criterion, size: usize) {
    let fixture = Fixture::of(size);
    let mut group = criterion.benchmark_group(format!("refresh/{size}"));
    group.throughput(Throughput::Bytes(fs::metadata(&fixture.file).expect("the catalog").len()));
    group.bench_function("serving", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| refresh(&fixture).0).sum());
    });
    group.bench_function("kept", |bencher| bencher.iter_custom(|times| (0..times).map(|_| refresh(&fixture).1).sum()));
    group.finish();
    fixture.client.close();
}

/// Returns the time until readers see the new catalog, and until the call returns.
fn refresh(fixture: &Fixture) -> (Duration, Duration) {
    let fetched_at = || fixture.client.discovery().stats().expect("an open client").fetched_at;
    let before = fetched_at();
    thread::scope(|scope| {
        let start = Instant::now();
        let call = scope.spawn(move || {
            fixture.client.discovery().refresh().expect("a good catalog");
            start.elapsed()
        });
        while fetched_at() == before && !call.is_finished() {
            thread::sleep(Duration::from_micros(200));
        }
        (start.elapsed(), call.join().expect("the refresh does not panic"))
    })
}
