//! What does a list of 20 cost, at any size of the catalog?
//!
//! Every contestant does the same: asks for 20 apps, reads the name of each, lets go of the list. The floor is what a
//! list costs that nobody has to ask for: 20 `Arc`s cloned out of a vector into another. C has a client of its own on
//! the same file, after the other was closed.

#![deny(unsafe_code)]

// The callers of a C interface are unsafe by nature; here they stand in for a C program.
#[allow(unsafe_code)]
mod c;

use std::{
    future::Future,
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use townsquare::{MiniApps, Result, Timeframe};
use townsquare_benches::{sized, town::Town};

const LIMIT: u32 = 20;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for size in sized([1_000, 100_000, 1_000_000], [100, 200, 300]) {
        let town = Town::of(size);
        let mut group = criterion.benchmark_group(format!("trending/{size}"));
        reads(&mut group, &town);
        group.finish();
        let mut group = criterion.benchmark_group(format!("category/{size}"));
        categories(&mut group, &town);
        group.finish();
        town.client.close();
        let client = c::Client::on(&town.file);
        let mut group = criterion.benchmark_group(format!("trending/{size}"));
        group.bench_function("C", |bencher| bencher.iter(|| client.trending(LIMIT)));
        group.finish();
        let mut group = criterion.benchmark_group(format!("category/{size}"));
        group.bench_function("C", |bencher| bencher.iter(|| client.category("games", LIMIT)));
        group.finish();
    }
    criterion.final_summary();
}

fn reads(group: &mut BenchmarkGroup<'_, WallTime>, town: &Town) {
    let (blocking, discovery) = (town.client.discovery(), town.client.inner().discovery());
    group.bench_function("blocking", |bencher| {
        bencher.iter(|| names(&blocking.get_trending_mini_apps(Timeframe::Hours24, LIMIT)));
    });
    group.bench_function("async", |bencher| {
        bencher.iter(|| names(&once(discovery.get_trending_mini_apps(Timeframe::Hours24, LIMIT))));
    });
    floor(group, &blocking.get_trending_mini_apps(Timeframe::Hours24, LIMIT));
}

fn categories(group: &mut BenchmarkGroup<'_, WallTime>, town: &Town) {
    let (blocking, discovery) = (town.client.discovery(), town.client.inner().discovery());
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

/// Reads the name of each.
fn names(apps: &Result<MiniApps>) -> usize {
    apps.as_ref().expect("the catalog answers").iter().map(|app| black_box(app.name()).len()).sum()
}

/// Polls a future that memory can answer: the first poll is the whole of it.
fn once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("an answer in memory takes one poll"),
    }
}
