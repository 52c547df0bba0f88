//! Cost of the tables on SQLite, compared with rusqlite on the same file with the same durability.
//!
//! Reads: one space by id, the first page of public spaces, and a page after nine tenths of them, at three sizes, in
//! Rust and C; the first page beside an owner with very many spaces. Writes: one durable insert at a time, then 32 concurrent threads, then one durable update. rusqlite
//! writes to a second database, which the library created with the same schema.

#![deny(unsafe_code)]

// Calls the C functions as a C program would.
#[allow(unsafe_code)]
mod c;

use std::{
    hint::black_box,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use townsquare::{
    Uuid,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_benches::{
    raw, sized,
    spaces::{database_of, fill_whale, insert_whale, open, sqlite_url},
};
use townsquare_tests::temp_dir;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    reading(&mut criterion);
    whale(&mut criterion);
    writing(&mut criterion);
    criterion.final_summary();
}

fn reading(criterion: &mut Criterion) {
    for size in sized([1_000, 100_000, 1_000_000], [100, 200, 300]) {
        let folder = temp_dir();
        let file = folder.path().join("town.db");
        let (client, ids) = database_of(&file, size);
        let (service, spaces, raw) = (client.as_service(), client.spaces(), raw::reader(&file));
        let c = c::Client::on(&file);
        let mut group = criterion.benchmark_group(format!("sqlite/{size}/get_space"));
        read_each(&mut group, "Rust", &ids, |id| service.spaces().get_space(id).expect("a space").name.len());
        read_each(&mut group, "C", &ids, |id| c.get_space(id));
        read_each(&mut group, "floor: rusqlite", &ids, |id| raw::get_space(&raw, &id).name.len());
        group.finish();
        let mut group = criterion.benchmark_group(format!("sqlite/{size}/get_public_spaces(20)"));
        group.bench_function("Rust", |bencher| bencher.iter(|| spaces.get_public_spaces(20, 0).expect("a page")));
        group.bench_function("C", |bencher| bencher.iter(|| c.get_public_spaces(20)));
        group.bench_function("floor: rusqlite", |bencher| bencher.iter(|| raw::get_public_spaces(&raw)));
        let before = u64::try_from(size / 10 * 9).expect("a size");
        let after = spaces.get_public_spaces(1, before).expect("a deep page").pop().expect("a space");
        group.bench_function("Rust, after nine tenths", |bencher| {
            bencher.iter(|| spaces.get_public_spaces_after(20, &after).expect("a page"));
        });
        group.bench_function("floor: rusqlite, after nine tenths", |bencher| {
            bencher.iter(|| raw::get_public_spaces_after(&raw, after.created_at, &after.id));
        });
        group.finish();
        drop(c);
        client.close();
    }
}

/// The first page of everybody, without and with one owner of very many private spaces and of the newest public ones.
fn whale(criterion: &mut Criterion) {
    let folder = temp_dir();
    let file = folder.path().join("town.db");
    let size = sized(100_000, 100);
    let (client, _) = database_of(&file, size);
    let raw = raw::writer(&file);
    let mut group = criterion.benchmark_group("sqlite/get_public_spaces(20), one owner");
    let mut measure = |name: &str| {
        let (spaces, reader) = (client.spaces(), raw::reader(&file));
        group.bench_function(name, |bencher| bencher.iter(|| spaces.get_public_spaces(20, 0).expect("a page")));
        group.bench_function(format!("floor: rusqlite, {name}"), |bencher| {
            bencher.iter(|| raw::get_public_spaces(&reader));
        });
    };
    measure("without many spaces");
    raw.execute_batch(&insert_whale()).expect("a user");
    fill_whale(&client, size);
    measure("with many private spaces");
    group.finish();
    drop(raw);
    client.close();
}

/// Measures `read` on every seventh space in turn, so that consecutive reads use different database pages.
fn read_each(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, ids: &[Uuid], read: impl Fn(Uuid) -> usize) {
    let mut turn = ids.iter().step_by(7).cycle();
    group.bench_function(name, |bencher| {
        bencher.iter(|| black_box(read(*turn.next().expect("endless"))));
    });
}

fn writing(criterion: &mut Criterion) {
    let folder = temp_dir();
    let client = open(&sqlite_url(&folder.path().join("town.db")));
    let service = client.as_service();
    open(&sqlite_url(&folder.path().join("raw.db"))).close();
    let raw = Mutex::new(raw::writer(&folder.path().join("raw.db")));
    let insert = || drop(service.spaces().create_space(NewSpace::named("A space")).expect("a space"));
    let raw_insert = || drop(raw::create_space(&raw.lock().expect("whole")));
    let mut group = criterion.benchmark_group("sqlite/durable insert");
    group.bench_function("one/townsquare", |bencher| bencher.iter(insert));
    group.bench_function("one/floor: rusqlite", |bencher| bencher.iter(raw_insert));
    group.bench_function("32 writers, each/townsquare", |bencher| {
        bencher.iter_custom(|times| time_on_threads(32, times, insert));
    });
    group.bench_function("32 writers, each/rusqlite behind a mutex", |bencher| {
        bencher.iter_custom(|times| time_on_threads(32, times, raw_insert));
    });
    group.finish();
    let id = service.spaces().create_space(NewSpace::named("A space")).expect("a space").id;
    let raw_id = raw::create_space(&raw.lock().expect("whole")).id;
    let patch = || SpacePatch::new().description(Some("Another text".to_owned()));
    let mut group = criterion.benchmark_group("sqlite/durable update");
    group.bench_function("townsquare", |bencher| {
        bencher.iter(|| service.spaces().update_space(id, patch()).expect("a space"));
    });
    group.bench_function("floor: rusqlite", |bencher| {
        bencher.iter(|| raw::update_space(&raw.lock().expect("whole"), &raw_id));
    });
    group.finish();
    client.close();
}

/// The time that `times` calls take when `threads` share them.
fn time_on_threads(threads: u64, times: u64, call: impl Fn() + Sync) -> Duration {
    let started = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            let share = times / threads + u64::from(number < times % threads);
            let call = &call;
            scope.spawn(move || (0..share).for_each(|_| call()));
        }
    });
    started.elapsed()
}
