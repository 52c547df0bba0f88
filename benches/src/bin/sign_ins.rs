//! Memory of concurrent sign-ins on 32 threads, during and after them.
//!
//! `sign_ins [COUNT]`, 200 by default, by one user per thread.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{
    env,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use townsquare_benches::{
    process_memory,
    spaces::{open, sqlite_url},
};
use townsquare_tests::temp_dir;

const THREADS: usize = 32;
const PASSWORD: &str = "correct horse battery";

fn main() {
    let count = env::args().nth(1).map_or(200, |count| count.parse().expect("a number"));
    let folder = temp_dir();
    let client = open(&sqlite_url(&folder.path().join("town.db")));
    let email = |number: usize| format!("user-{number}@town.example");
    for number in 0..THREADS {
        client.auth().sign_up(&email(number), PASSWORD).expect("an account");
    }
    // Longer than the library keeps the memory for the next sign-in.
    let pause = || thread::sleep(Duration::from_secs(4));
    pause();
    let (idle, started, left) = (process_memory::now(), Instant::now(), AtomicUsize::new(count));
    let service = client.as_service();
    let next = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let most = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (service, email, next, most) = (&service, &email, &next, &most);
            scope.spawn(move || {
                while next() {
                    service.auth().sign_in(&email(number), PASSWORD).expect("right");
                    most.fetch_max(process_memory::now() as usize, Ordering::Relaxed);
                }
            });
        }
    });
    let taken = started.elapsed();
    pause();
    let megabytes = |bytes: u64| bytes.saturating_sub(idle) as f64 / 1e6;
    println!(
        "{count} sign-ins on {THREADS} threads in {:.2} s: at the most {:.0} MB over idle, {:.0} MB afterwards",
        taken.as_secs_f64(),
        megabytes(most.into_inner() as u64),
        megabytes(process_memory::now()),
    );
    client.close();
}
