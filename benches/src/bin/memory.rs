//! How much memory does a catalog take? Resident size over the same process before it opens a client, on Linux.
//!
//! `memory [APPS]`, 100,000 by default. Each source is measured in a process of its own that loads the catalog from a
//! file or from an upstream on the loopback; the upstream lives in the parent, whose memory does not count.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::{env, fs, process::Command, thread, time::Duration};

use townsquare::{Config, Timeframe, blocking::Client};
use townsquare_benches::{
    catalog, resident,
    town::{self, Folder},
    upstream,
};

/// Longer than the idle threads of a client live.
const SETTLED: Duration = Duration::from_secs(7);

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [child, name, url] if child == "--child" => measure(name, url),
        _ => run(arguments.first().map_or(100_000, |size| size.parse().expect("a number of apps"))),
    }
}

fn run(size: usize) {
    let folder = Folder::new();
    let file = folder.join("catalog.json");
    catalog::write(&file, size).expect("the catalog can be written");
    let bytes = fs::metadata(&file).expect("the catalog").len();
    println!("memory of {size} apps, {} MB as JSON; MB over the bare process", bytes / 1_000_000);
    println!(
        "{:<10} {:>8} {:>10} {:>8} {:>9} {:>15} {:>18}",
        "source", "bare", "peak", "loaded", "settled", "refreshed peak", "refreshed settled"
    );
    let paged = upstream::serve(size).expect("a port on the loopback");
    for (name, url) in [("file", format!("file://{}", file.display())), ("upstream", format!("http://{paged}"))] {
        let child = env::current_exe().expect("a path of its own");
        let status = Command::new(child).args(["--child", name, &url]).status().expect("the child starts");
        assert!(status.success(), "{name}: {status}");
    }
}

fn measure(name: &str, url: &str) {
    let bare = resident::now();
    let over = |now: u64| now.saturating_sub(bare) as f64 / 1e6;
    let folder = Folder::new();
    let config: Config = town::config(&folder).catalog_url(url).catalog_api_key("any");
    let client = Client::open(config).expect("the client opens");
    let apps = client.discovery().get_trending_mini_apps(Timeframe::default(), 20).expect("the catalog loads");
    assert_eq!(apps.len(), 20);
    drop(apps);
    let (peak, loaded) = (resident::peak(), resident::now());
    thread::sleep(SETTLED);
    let settled = resident::now();
    // Several: an allocator needs a few rounds to show where it settles.
    for _ in 0..3 {
        client.discovery().refresh().expect("a good catalog");
    }
    let refresh_peak = resident::peak();
    thread::sleep(SETTLED);
    println!(
        "{name:<10} {:>8.1} {:>10.1} {:>8.1} {:>9.1} {:>15.1} {:>18.1}",
        bare as f64 / 1e6,
        over(peak),
        over(loaded),
        over(settled),
        over(refresh_peak),
        over(resident::now())
    );
    client.close();
}
