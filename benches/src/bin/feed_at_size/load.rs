//! Reads and writes a second with one, two and four client processes, and who uses the CPU.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use townsquare::blocking::Client;
use townsquare_tests::{raw_sql::RawConnection, temp_dir};

use crate::{
    config,
    process::{Process, next_command},
    rows::{self, PASSWORD, address},
    usage,
    writer::write,
};

/// Threads of a client process.
const THREADS: usize = 8;

/// How long a measurement takes.
const SECONDS: u64 = 4;

const ROUNDS: usize = 3;

/// A child process. At each command, `reads` or `writes`, makes calls for some seconds; answers how many, and its CPU seconds.
#[allow(clippy::print_stdout, reason = "the parent reads the answers")]
pub(crate) fn run_child(url: &str, folder: &Path, process: usize, spaces: usize) {
    let client = Client::open(config(url, &folder.join(format!("load-{process}")))).expect("the client opens");
    let session = client.auth().create_session(&address(0), PASSWORD).expect("a session");
    let callers = [client.as_service(), client.as_anonymous(), client.as_user(&session.access_token).expect("a user")];
    let calls = |is_read: bool| {
        let (done, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let cpu = usage::own_cpu();
        thread::scope(|scope| {
            for first in 0..THREADS {
                let (callers, done, is_over) = (&callers, &done, &is_over);
                scope.spawn(move || {
                    let mut number = first * 104_729 + process * 15_485_863;
                    while !is_over.load(Ordering::Relaxed) {
                        number += 1;
                        if is_read {
                            // A public space, which each caller sees.
                            let of = number.wrapping_mul(7_919) % (spaces / 10) * 10 + 1;
                            callers[number % 3].spaces().get_space(rows::space(of)).expect("a space");
                        } else {
                            write(&callers[0], number, spaces);
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            thread::sleep(Duration::from_secs(SECONDS));
            is_over.store(true, Ordering::Relaxed);
        });
        (done.into_inner(), usage::own_cpu() - cpu)
    };
    println!("0");
    while let Some(command) = next_command() {
        let (done, cpu) = calls(command == "reads");
        println!("{done} {cpu}");
    }
}

/// What a measurement found; seconds of CPU are of one second of time.
#[derive(Default, Clone, Copy)]
struct Measured {
    calls: f64,
    clients: f64,
    server: f64,
    used: f64,
}

/// Measures the numbers of processes in turns.
pub(crate) fn measure(url: &str, raw: &RawConnection, spaces: usize) {
    let folder = temp_dir();
    let start = |process: usize| {
        let path = folder.path().to_str().expect("UTF-8");
        let words = ["load", url, path, &process.to_string(), &spaces.to_string()];
        let mut child = Process::start(&words.map(str::to_owned));
        child.answer();
        child
    };
    let mut children: Vec<_> = (0..4).map(start).collect();
    let postmaster = usage::postmaster(raw);
    for what in ["reads", "writes"] {
        let mut measured: BTreeMap<usize, Vec<Measured>> = BTreeMap::new();
        let mut waits = BTreeMap::new();
        for _ in 0..ROUNDS {
            for count in [1, 2, 4] {
                let one = round(what, &mut children[..count], raw, &postmaster, waits.entry(count).or_default());
                measured.entry(count).or_default().push(one);
            }
        }
        for (count, mut rounds) in measured {
            rounds.sort_by(|one, other| one.calls.total_cmp(&other.calls));
            let Measured { calls, clients, server, used } = rounds[ROUNDS / 2];
            println!(
                "{what}, {count} processes with {THREADS} threads: {calls:.0} a second; CPU: clients {clients:.2}, PostgreSQL {server:.2}, \
                 others {:.2}, of {:.0} cores; {:.0} us of clients and {:.0} us of PostgreSQL each; load {}",
                used - clients - server,
                thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
                clients / calls * 1e6,
                server / calls * 1e6,
                usage::load()
            );
            println!("  its processes waited for: {}", most(&waits[&count]));
        }
    }
}

fn round(
    what: &str,
    children: &mut [Process],
    raw: &RawConnection,
    postmaster: &str,
    waits: &mut BTreeMap<String, usize>,
) -> Measured {
    let (start, server, machine) = (Instant::now(), usage::cpu_of_server(postmaster), usage::cpu_of_machine());
    children.iter_mut().for_each(|child| child.command(what));
    while start.elapsed() < Duration::from_secs(SECONDS) {
        thread::sleep(Duration::from_millis(100));
        let active = "SELECT COALESCE(wait_event_type || ' ' || wait_event, 'the CPU, or runs') FROM pg_stat_activity
            WHERE state = 'active' AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        for event in raw.rows(active).into_iter().flatten().flatten() {
            *waits.entry(event).or_insert(0) += 1;
        }
    }
    let answers: Vec<_> = children.iter_mut().map(Process::answer).collect();
    let seconds = start.elapsed().as_secs_f64();
    let sum = |place: usize| answers.iter().map(|answer| answer[place]).sum::<f64>() / seconds;
    Measured {
        calls: sum(0),
        clients: sum(1),
        server: (usage::cpu_of_server(postmaster) - server) / seconds,
        used: (usage::cpu_of_machine().0 - machine.0) / seconds,
    }
}

/// The most frequent of what the processes of the server waited for.
fn most(waits: &BTreeMap<String, usize>) -> String {
    let all: usize = waits.values().sum();
    let mut waits: Vec<_> = waits.iter().collect();
    waits.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let share = |(event, count): (&String, &usize)| format!("{event} {}%", 100 * count / all.max(1));
    waits.into_iter().take(4).map(share).collect::<Vec<_>>().join(", ")
}
