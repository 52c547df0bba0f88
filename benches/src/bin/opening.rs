//! Time to open a large SQLite database, and memory of a client on it.
//!
//! `opening [SPACES]`, 1,000,000 by default. Memory is resident bytes minus those of the same process before it opened a
//! client (Linux), after each step: open, one reader, 16 concurrent readers, writers. Each run is a process of its own.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{
    env, fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use townsquare::{
    Uuid,
    blocking::Client,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_benches::{
    comparison::percentile,
    process_memory, raw,
    spaces::{database_of, open, sqlite_url},
};
use townsquare_tests::{catalog::SplitMix, temp_dir};

/// The number of connections that the client keeps open.
const READERS: usize = 16;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [child, file] if child == "--child" => measure(Path::new(file)),
        _ => run(arguments.first().map_or(1_000_000, |size| size.parse().expect("a number of spaces"))),
    }
}

fn run(size: usize) {
    let folder = temp_dir();
    let file = folder.path().join("town.db");
    database_of(&file, size).0.close();
    println!("{size} spaces, {} MB on the disk", fs::metadata(&file).expect("the file").len() / 1_000_000);
    for _ in 0..3 {
        let program = env::current_exe().expect("a path of its own");
        let status = Command::new(program).arg("--child").arg(&file).status().expect("the child starts");
        assert!(status.success(), "{status}");
    }
}

fn measure(file: &Path) {
    let ids = some_ids(file);
    let bare = process_memory::now();
    let mut steps = Vec::new();
    let started = Instant::now();
    let client = open(&sqlite_url(file));
    let first = started.elapsed();
    steps.push(("open", process_memory::now()));
    read(&client, &ids, 1);
    steps.push(("one reader", process_memory::now()));
    thread::scope(|scope| {
        for number in 0..READERS {
            let (client, ids) = (&client, &ids);
            scope.spawn(move || read(client, ids, number as u64));
        }
    });
    steps.push(("16 readers", process_memory::now()));
    let mut random = SplitMix::new(3);
    let service = client.as_service();
    for _ in 0..20 {
        service.spaces().create_spaces(vec![NewSpace::named("A space").public(); 100]).expect("spaces");
        for _ in 0..500 {
            service.spaces().update_space(random.pick(&ids), SpacePatch::new().name("Renamed")).expect("a space");
        }
    }
    steps.push(("and writers", process_memory::now()));
    thread::sleep(Duration::from_secs(7));
    steps.push(("at rest", process_memory::now()));
    client.close();
    let mut again: Vec<_> = (0..21).map(|_| opened_in(file)).collect();
    again.sort_unstable();
    let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
    print!("opens in {:.2} ms", milliseconds(first.as_nanos() as u64));
    print!(
        ", then {:.2} ms (p50), {:.2} ms (slowest of 21);",
        milliseconds(percentile(&again, 0.5)),
        milliseconds(again[20])
    );
    print!(" MB over a bare process of {:.1}:", bare as f64 / 1e6);
    for (step, bytes) in steps.into_iter().chain([("peak", process_memory::peak())]) {
        print!(" {step} {:.1},", bytes.saturating_sub(bare) as f64 / 1e6);
    }
    println!();
}

fn opened_in(file: &Path) -> u64 {
    let started = Instant::now();
    let client = open(&sqlite_url(file));
    let taken = started.elapsed();
    client.close();
    taken.as_nanos() as u64
}

/// Returns every 20th id of the table.
fn some_ids(file: &Path) -> Vec<Uuid> {
    let raw = raw::reader(file);
    let mut statement = raw.prepare("SELECT id FROM spaces WHERE rowid % 20 = 0").expect("prepares");
    let ids = statement.query_map([], |row| row.get::<_, String>(0)).expect("runs");
    ids.map(|id| id.expect("a row").parse().expect("a UUID")).collect()
}

fn read(client: &Client, ids: &[Uuid], seed: u64) {
    let mut random = SplitMix::new(seed);
    let service = client.as_service();
    for _ in 0..20_000 {
        service.spaces().get_space(random.pick(ids)).expect("a space");
    }
    for page in 0..100 {
        client.spaces().get_public_spaces(20, page * 20).expect("a page");
    }
}
