//! 100,000 subscriptions in four processes on one PostgreSQL during 1,000 changes a second, and the throughput of one, two and four
//! processes.
//!
//! `feed_at_size [SUBSCRIPTIONS] [RATE] [SECONDS]`: of a process, a second, and of the changes; 25,000, 1,000 and 30 by default. The
//! processes are children of this program; the writer's changes begin at set times. Latency is the time from the return of a write to
//! the begin of a callback, without the first two seconds; 0 for a callback that begins before. Each process computes the changes that
//! each of its subscriptions must get, and counts what it missed, what came twice, and what it must not get. Linux only.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

mod load;
mod process;
mod rows;
mod subscriber;
mod usage;
mod writer;

use std::{env, fs, path::Path, thread, time::Duration};

use townsquare::{Config, blocking::Client, realtime::ChangeRequest};
use townsquare_benches::comparison::percentile;
use townsquare_tests::{
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    temp_dir,
    wait::wait_up_to,
};

use crate::{
    process::Process,
    rows::{PASSWORD, USERS, address},
};

/// Spaces, each with a fidget.
const SPACES: usize = 10_000;

/// Processes with subscriptions.
const PROCESSES: usize = 4;

/// Seconds of changes that are judged and not timed.
const WARM_UP: usize = 2;

fn config(url: &str, folder: &Path) -> Config {
    Config::new().database_url(url).data_dir(folder).catalog_api_key("")
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize| arguments[place].parse().expect("a number");
    match arguments.get(1).map(String::as_str).filter(|_| arguments[0] == "--child") {
        Some("subscriber") => {
            subscriber::run(&arguments[2], Path::new(&arguments[3]), number(4), number(5), number(6));
        }
        Some("writer") => writer::run(&arguments[2], Path::new(&arguments[3]), number(4), number(5), number(6)),
        Some("load") => load::run_child(&arguments[2], Path::new(&arguments[3]), number(4), number(5)),
        _ => {
            let or = |place: usize, default| if place < arguments.len() { number(place) } else { default };
            run(or(0, 25_000), or(1, 1_000), or(2, 30));
        }
    }
}

fn run(subscriptions: usize, rate: usize, seconds: usize) {
    let settings =
        ["max_connections=200", "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all"];
    let Some(server) = Server::with_settings(&settings) else { return };
    let database = server.new_database();
    let (url, raw) = (server.socket_url(APP_ROLE, &database), server.administrator(&database));
    let folder = temp_dir();
    let client = Client::open(config(&url, &folder.path().join("parent"))).expect("the client opens");
    for user in 0..USERS {
        client.as_service().auth().sign_up(&address(user), PASSWORD).expect("a user");
    }
    rows::insert(&raw, SPACES);
    raw.run("CREATE EXTENSION pg_stat_statements");
    notifications(&client, &raw);
    feed(&url, &raw, subscriptions, rate, seconds);
    load::measure(&url, &raw, SPACES);
}

/// Counts the notifications of writers, with a subscription and after the last reader has gone.
fn notifications(client: &Client, raw: &RawConnection) {
    const WRITES: usize = 500;
    let service = client.as_service();
    let write = |what: &str| {
        raw.run("SELECT pg_stat_statements_reset()");
        (0..WRITES).for_each(|number| writer::write(&service, number, SPACES));
        let sql = "SELECT COALESCE(sum(calls), 0)::text FROM pg_stat_statements WHERE query LIKE '%pg_notify%' AND NOT toplevel";
        println!("{WRITES} writes {what}: {} of them notified", raw.value(sql));
    };
    let subscription = service.realtime().subscribe("one", ChangeRequest::table("spaces"), |_| ()).expect("subscribed");
    write("beside a subscription");
    subscription.unsubscribe();
    let listens = "SELECT (last_value > extract(epoch FROM clock_timestamp()))::text FROM townsquare.listening_until";
    wait_up_to(Duration::from_secs(90), "nobody listens", || {
        thread::sleep(Duration::from_millis(200));
        raw.value(listens) == "false"
    });
    write("with capture on and no subscription");
}

fn feed(url: &str, raw: &RawConnection, subscriptions: usize, rate: usize, seconds: usize) {
    let folder = temp_dir();
    let path = folder.path().to_str().expect("UTF-8");
    let changes = rate * seconds;
    let words = |kind: &str, numbers: [usize; 3]| {
        let numbers = numbers.iter().map(usize::to_string);
        [kind, url, path].map(str::to_owned).into_iter().chain(numbers).collect::<Vec<_>>()
    };
    let start = |process: usize| Process::start(&words("subscriber", [process, subscriptions, SPACES]));
    let mut subscribers: Vec<_> = (0..PROCESSES).map(start).collect();
    for subscriber in &mut subscribers {
        let [took, before, after] = subscriber.answer()[..] else { panic!("three numbers") };
        println!(
            "{subscriptions} subscriptions in {took:.1} s; {before:.0} MB before, {after:.0} MB with them, {:.0} bytes each",
            (after - before) * 1e6 / subscriptions as f64
        );
    }
    let mut writer = Process::start(&words("writer", [rate, changes, SPACES]));
    writer.answer();
    let postmaster = usage::postmaster(raw);
    let cpu: Vec<_> = subscribers.iter().map(|subscriber| usage::cpu_of(subscriber.id())).collect();
    let (of_server, of_machine) = (usage::cpu_of_server(&postmaster), usage::cpu_of_machine());
    writer.command("write");
    let [took, latest, of_writer] = writer.answer()[..] else { panic!("three numbers") };
    let of_server = usage::cpu_of_server(&postmaster) - of_server;
    let used = usage::cpu_of_machine().0 - of_machine.0;
    println!(
        "{changes} changes in {took:.1} s, begun at most {:.0} ms late; CPU seconds: writer {of_writer:.1}, PostgreSQL {of_server:.1}, \
         machine {used:.1}; load {}",
        latest * 1e3,
        usage::load()
    );
    let returned = numbers(&folder.path().join("returned"));
    for (process, subscriber) in subscribers.iter_mut().enumerate() {
        let megabytes = usage::megabytes_of(subscriber.id());
        subscriber.command(&changes.to_string());
        let [came, missed, doubled, foreign, cpu_now] = subscriber.answer()[..] else { panic!("five numbers") };
        let times = numbers(&folder.path().join(format!("times-{process}")));
        let timed = times.chunks_exact(2).filter(|pair| pair[0] as usize >= WARM_UP * rate);
        let mut taken: Vec<_> = timed.map(|pair| pair[1].saturating_sub(returned[pair[0] as usize])).collect();
        taken.sort_unstable();
        let at = |share: f64| percentile(&taken, share) as f64 / 1e6;
        println!(
            "process {process}: {came} callbacks, {missed} missed, {doubled} twice, {foreign} of rows that are hidden; ms after the \
             write p50 {:.1}, p99 {:.1}, max {:.1}; {:.1} CPU seconds, {megabytes:.0} MB",
            at(0.5),
            at(0.99),
            at(1.0),
            cpu_now - cpu[process]
        );
    }
}

/// Reads numbers that a child wrote.
fn numbers(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).expect("the child wrote it");
    bytes.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
}
