//! The threads of a client take no signals of the host. tests/c/signals.c sends signals; this test reads the masks.

use std::fs;

use townsquare::{blocking::Client, discovery::Timeframe};
use townsquare_tests::{catalog::Catalog, fixture::Fixture, subprocess::in_subprocess, wait::wait_until};

/// The signals that a thread's own faults raise: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV and SIGSYS.
const FAULTS: [u32; 6] = [4, 5, 7, 8, 11, 31];
/// Signals that no mask contains: SIGKILL and SIGSTOP.
const UNMASKABLE: [u32; 2] = [9, 19];

/// Returns name and signal mask of each thread of the library.
fn masks() -> Vec<(String, u64)> {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux has /proc").flatten();
    let status = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let field = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let mask = |text: &str| u64::from_str_radix(&field(text, "SigBlk:"), 16).expect("a hexadecimal mask");
    status.map(|text| (field(&text, "Name:"), mask(&text))).filter(|(name, _)| name.starts_with("townsquare")).collect()
}

#[test]
fn every_thread_of_a_client_blocks_every_signal_but_faults() {
    in_subprocess(every_thread_of_a_client_blocks_every_signal_but_faults, || {
        let fixture = Fixture::of(Catalog::of(60).rows());
        let client = Client::open(fixture.config()).expect("opens");
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
        let subscription = client.auth().on_auth_state_change(|_, _| ());
        client.auth().sign_up("ann@town.example", "correct horse").expect("an account");
        client.auth().sign_in("ann@town.example", "correct horse").expect("a session");
        let kinds = ["townsquare-call", "townsquare-run", "townsquare-work", "townsquare-writ"];
        wait_until("every kind of thread runs", || {
            let masks = masks();
            kinds.iter().all(|kind| masks.iter().any(|(name, _)| name == kind))
        });
        for (name, mask) in masks() {
            for signal in (1..=31).filter(|signal| !UNMASKABLE.contains(signal)) {
                let is_blocked = mask & (1 << (signal - 1)) != 0;
                assert_eq!(is_blocked, !FAULTS.contains(&signal), "signal {signal} in {name}: {mask:016x}");
            }
        }
        subscription.unsubscribe();
        client.close();
    });
}
