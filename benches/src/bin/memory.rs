//! Memory of a catalog: resident bytes minus those of the same process before it opened a client (Linux).
//!
//! `memory [APPS]`, 100,000 by default. Each source is measured in a process of its own that loads the catalog from a
//! file or from an upstream on the loopback; the upstream runs in the parent process.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{env, fs, process::Command, thread, time::Duration};

use townsquare::{Config, blocking::Client, discovery::Timeframe};
use townsquare_benches::{fixture, process_memory};
use townsquare_tests::{
    catalog::Catalog,
    temp_dir,
    upstream::{KEY, Upstream},
};

/// Longer than a client keeps idle threads.
const SETTLED: Duration = Duration::from_secs(7);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [child, name, url] if child == "--child" => measure(name, url),
        _ => run(arguments.first().map_or(100_000, |size| size.parse().expect("a number of apps"))),
    }
}

fn run(size: usize) {
    let folder = temp_dir();
    let file = folder.path().join("catalog.json");
    Catalog::of(size).write(&file).expect("the catalog can be written");
    let bytes = fs::metadata(&file).expect("the catalog").len();
    println!("memory of {size} apps, {} MB as JSON; MB over the bare process", bytes / 1_000_000);
    println!(
        "{:<10} {:>8} {:>10} {:>8} {:>9} {:>15} {:>18}",
        "source", "bare", "peak", "loaded", "settled", "refreshed peak", "refreshed settled"
    );
    let upstream = Upstream::of(Catalog::of(size).rows());
    for (name, url) in [("file", format!("file://{}", file.display())), ("upstream", upstream.url())] {
        let child = env::current_exe().expect("a path of its own");
        let status = Command::new(child).args(["--child", name, &url]).status().expect("the child starts");
        assert!(status.success(), "{name}: {status}");
    }
}

fn measure(name: &str, url: &str) {
    let bare = process_memory::now();
    let over = |now: u64| now.saturating_sub(bare) as f64 / 1e6;
    let folder = temp_dir();
    let config: Config = fixture::config(folder.path()).catalog_url(url).catalog_api_key(KEY);
    let client = Client::open(config).expect("the client opens");
    let apps = client.discovery().get_trending_mini_apps(Timeframe::default(), 20).expect("the catalog loads");
    assert_eq!(apps.len(), 20);
    drop(apps);
    let (peak, loaded) = (process_memory::peak(), process_memory::now());
    thread::sleep(SETTLED);
    let settled = process_memory::now();
    // The allocator's resident size settles after a few refreshes.
    for _ in 0..3 {
        client.discovery().refresh().expect("a good catalog");
    }
    let refresh_peak = process_memory::peak();
    thread::sleep(SETTLED);
    println!(
        "{name:<10} {:>8.1} {:>10.1} {:>8.1} {:>9.1} {:>15.1} {:>18.1}",
        bare as f64 / 1e6,
        over(peak),
        over(loaded),
        over(settled),
        over(refresh_peak),
        over(process_memory::now())
    );
    client.close();
}
