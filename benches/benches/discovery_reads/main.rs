//! Cost of a list of 20 apps at several sizes of the catalog.
//!
//! Each contender requests 20 apps, reads their names and drops the list. The floor clones 20 `Arc`s out of a vector. C
//! has a client of its own on the same file, after the Rust client was closed.

#![deny(unsafe_code)]

// Calls the C functions as a C program would.
#[allow(unsafe_code)]
mod c;

use std::{hint::black_box, sync::Arc};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use townsquare::{
    Result,
    discovery::{MiniApps, Timeframe},
};
use townsquare_benches::{fixture::Fixture, once, sized};

const LIMIT: u32 = 20;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for size in sized([1_000, 100_000, 1_000_000], [100, 200, 300]) {
        let fixture = Fixture::of(size);
        let mut group = criterion.benchmark_group(format!("trending/{size}"));
        reads(&mut group, &fixture);
        group.finish();
        let mut group = criterion.benchmark_group(format!("category/{size}"));
        categories(&mut group, &fixture);
        group.finish();
        fixture.client.close();
        let client = c::Client::on(&fixture.file);
        let mut group = criterion.benchmark_group(format!("trending/{size}"));
        group.bench_function("C", |bencher| bencher.iter(|| client.trending(LIMIT)));
        group.finish();
        let mut group = criterion.benchmark_group(format!("category/{size}"));
        group.bench_function("C", |bencher| bencher.iter(|| client.category("games", LIMIT)));
        group.finish();
    }
    criterion.final_summary();
}

fn reads(group: &mut BenchmarkGroup<'_, WallTime>, fixture: &Fixture) {
    let (blocking, discovery) = (fixture.client.discovery(), fixture.client.inner().discovery());
    group.bench_function("blocking", |bencher| {
        bencher.iter(|| names(&blocking.get_trending_mini_apps(Timeframe::Hours24, LIMIT)));
    });
    group.bench_function("async", |bencher| {
        bencher.iter(|| names(&once(discovery.get_trending_mini_apps(Timeframe::Hours24, LIMIT))));
    });
    floor(group, &blocking.get_trending_mini_apps(Timeframe::Hours24, LIMIT));
}

fn categories(group: &mut BenchmarkGroup<'_, WallTime>, fixture: &Fixture) {
    let (blocking, discovery) = (fixture.client.discovery(), fixture.client.inner().discovery());
    group.bench_function("blocking", |bencher| {
        bencher.iter(|| names(&blocking.get_mini_apps_by_category(["games"], LIMIT)));
    });
    group.bench_function("async", |bencher| {
        bencher.iter(|| names(&once(discovery.get_mini_apps_by_category(["games"], LIMIT))));
    });
    floor(group, &blocking.get_mini_apps_by_category(["games"], LIMIT));
}

fn floor(group: &mut BenchmarkGroup<'_, WallTime>, apps: &Result<MiniApps>) {
    let apps = apps.as_ref().expect("the catalog answers");
    let all: Vec<Arc<str>> = apps.iter().map(|app| Arc::from(app.name())).collect();
    group.bench_function("floor: 20 Arcs", |bencher| {
        bencher
            .iter(|| black_box(black_box(&all)[..].to_vec()).iter().map(|name| black_box(name.len())).sum::<usize>());
    });
}

/// Reads the names and returns their total length.
fn names(apps: &Result<MiniApps>) -> usize {
    apps.as_ref().expect("the catalog answers").iter().map(|app| black_box(app.name()).len()).sum()
}
