//! What pruning the change log on PostgreSQL costs: 1,000 changes a second, while entries are deleted as fast as they are written.
//!
//! `log_pruning [LIMIT] [SECONDS]`: the entries that the log keeps, 30,000 by default, and the seconds of writes, 240. Latency is the
//! time from the trigger of a write to the begin of its callback.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{
    env, mem,
    sync::atomic::{AtomicUsize, Ordering},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant, SystemTime},
};

use townsquare::{Config, Uuid, blocking::Client, realtime::ChangeRequest, spaces::SpacePatch};
use townsquare_benches::comparison::percentile;
use townsquare_tests::{
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    temp_dir,
};

/// Changes a second.
const RATE: usize = 1_000;
const WRITERS: usize = 8;
const SPACES: usize = 2_000;

/// The seconds of a line of the report.
const PART: usize = 15;

fn main() {
    let number = |place: usize, default| env::args().nth(place).map_or(default, |text| text.parse().expect("a number"));
    let (limit, seconds) = (number(1, 30_000), number(2, 240));
    let Some(server) = Server::with_settings(&["log_autovacuum_min_duration=0"]) else { return };
    let database = server.new_database();
    let (url, raw) = (server.socket_url(APP_ROLE, &database), server.administrator(&database));
    let folder = temp_dir();
    let config = Config::new().database_url(url).data_dir(folder.path()).catalog_api_key("");
    let client = Client::open(config.change_retention_rows(limit as u64)).expect("the client opens").as_service();
    raw.run(&format!(
        "INSERT INTO spaces (id, name) SELECT ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, 'Space'
         FROM generate_series(0, {}) AS n",
        SPACES - 1
    ));
    let taken = Arc::new(Mutex::new(Vec::new()));
    let callbacks = Arc::clone(&taken);
    let subscription = client.realtime().subscribe("spaces", ChangeRequest::table("spaces"), move |change| {
        let age = SystemTime::now().duration_since(change.commit_timestamp.into()).unwrap_or_default();
        callbacks.lock().expect("whole").push(age.as_nanos() as u64);
    });
    let subscription = subscription.expect("subscribed");
    println!("the log keeps {limit} entries; {RATE} changes a second by {WRITERS} threads");
    println!(
        "{:>8} {:>10} {:>8} {:>8} {:>9} {:>9} {:>9}",
        "second", "callbacks", "p50 ms", "p99 ms", "entries", "dead", "MB"
    );
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| write(&client, &next, start, seconds * RATE));
        }
        for part in 1..=seconds / PART {
            let end = Duration::from_secs((part * PART) as u64);
            thread::sleep(end.saturating_sub(start.elapsed()));
            report(part * PART, mem::take(&mut *taken.lock().expect("whole")), &raw);
        }
    });
    subscription.unsubscribe();
    let (runs, cpu, elapsed) = vacuums(&server.log());
    println!("autovacuum of the log: {runs} times, {cpu:.2} s of CPU, {elapsed:.2} s in all");
    client.close();
}

/// Renames spaces at times that are set beforehand.
fn write(client: &Client, next: &AtomicUsize, start: Instant, changes: usize) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= changes {
            return;
        }
        let due = start + Duration::from_secs_f64(number as f64 / RATE as f64);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let space = Uuid::from_u128((number.wrapping_mul(7_919) % SPACES) as u128);
        client.spaces().update_space(space, SpacePatch::new().name(number.to_string())).expect("renamed");
    }
}

fn report(second: usize, mut taken: Vec<u64>, raw: &RawConnection) {
    taken.sort_unstable();
    let at = |share: f64| if taken.is_empty() { 0.0 } else { percentile(&taken, share) as f64 / 1e6 };
    let of_log = "FROM pg_stat_user_tables WHERE relid = 'townsquare.changes'::regclass";
    println!(
        "{second:>8} {:>10} {:>8.1} {:>8.1} {:>9} {:>9} {:>9}",
        taken.len(),
        at(0.5),
        at(0.99),
        raw.value("SELECT count(*) FROM townsquare.changes"),
        raw.value(&format!("SELECT n_dead_tup {of_log}")),
        raw.value(&format!("SELECT pg_total_relation_size(relid) / 1000000 {of_log}"))
    );
}

/// How often autovacuum has worked on the log, with its seconds of CPU and its seconds in all, as the server's log tells.
fn vacuums(log: &str) -> (usize, f64, f64) {
    let (mut runs, mut cpu, mut elapsed) = (0, 0.0, 0.0);
    let mut is_of_log = false;
    for line in log.lines() {
        if line.contains("automatic vacuum of table") {
            is_of_log = line.contains(".townsquare.changes\"");
        }
        if is_of_log && line.contains("system usage: CPU:") {
            let mut seconds = line.split(['s', ',', ' ']).filter_map(|word| word.parse::<f64>().ok());
            cpu += seconds.next().unwrap_or_default() + seconds.next().unwrap_or_default();
            elapsed += seconds.next().unwrap_or_default();
            runs += 1;
            is_of_log = false;
        }
    }
    (runs, cpu, elapsed)
}
