//! A child process that writes changes at times that are set beforehand, whether the changes before have returned or not.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use townsquare::{
    blocking::Client,
    spaces::{FidgetPatch, SpacePatch},
};

use crate::{
    config,
    process::next_command,
    rows::{self, Table, change},
    subscriber::now,
    usage,
};

/// Threads that write.
const THREADS: usize = 16;

/// Writes the change with a number.
pub(crate) fn write(service: &Client, number: usize, spaces: usize) {
    match change(number, spaces) {
        (Table::Spaces, of) => {
            let patch = SpacePatch::new().name(number.to_string());
            service.spaces().update_space(rows::space(of), patch).expect("a space");
        }
        (Table::Fidgets, of) => {
            let patch = FidgetPatch::new().config(Some(number.into()));
            service.fidgets().update_fidget(rows::fidget(of), patch).expect("a fidget");
        }
    }
}

/// Answers 0 when it is ready. At a command writes `changes` changes, `rate` a second, and answers the seconds, the longest time that a
/// change began late, and the CPU seconds. Writes the times of return to the folder.
#[allow(clippy::print_stdout, reason = "the parent reads the answers")]
pub(crate) fn run(url: &str, folder: &Path, rate: usize, changes: usize, spaces: usize) {
    let service = Client::open(config(url, &folder.join("writer"))).expect("the client opens").as_service();
    service.spaces().get_space(rows::space(0)).expect("a space");
    println!("0");
    if next_command().is_none() {
        return;
    }
    let (next, start, cpu) = (AtomicUsize::new(0), Instant::now(), usage::own_cpu());
    let work = || {
        let (mut returned, mut latest) = (Vec::new(), Duration::ZERO);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= changes {
                return (returned, latest);
            }
            let due = start + Duration::from_secs_f64(number as f64 / rate as f64);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            latest = latest.max(due.elapsed());
            write(&service, number, spaces);
            returned.push((number, now()));
        }
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let latest = parts.iter().map(|part| part.1).max().unwrap_or_default();
    let mut times = vec![0; changes];
    parts.iter().flat_map(|part| &part.0).for_each(|(number, at)| times[*number] = *at);
    let bytes: Vec<u8> = times.into_iter().flat_map(u64::to_le_bytes).collect();
    fs::write(folder.join("returned"), bytes).expect("the folder is writable");
    println!("{seconds} {} {}", latest.as_secs_f64(), usage::own_cpu() - cpu);
    next_command();
}
