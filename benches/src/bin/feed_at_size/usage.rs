//! What processes use, by `/proc` (Linux).

use std::{fs, process};

use townsquare_tests::raw_sql::RawConnection;

/// Clock ticks of a second in `/proc`.
const TICKS: f64 = 100.0;

/// The fields of a process's `stat` after its name.
fn stat(process: &str) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn seconds(fields: &[String], places: &[usize]) -> f64 {
    places.iter().map(|place| fields[*place].parse().unwrap_or(0.0)).sum::<f64>() / TICKS
}

/// Returns the CPU seconds of a process.
pub(crate) fn cpu_of(process: u32) -> f64 {
    stat(&process.to_string()).map_or(0.0, |fields| seconds(&fields, &[11, 12]))
}

/// Returns the CPU seconds of this process.
pub(crate) fn own_cpu() -> f64 {
    cpu_of(process::id())
}

/// Returns the resident MB of a process.
pub(crate) fn megabytes_of(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) * 1024.0 / 1e6
}

/// The first process of a PostgreSQL server.
pub(crate) fn postmaster(raw: &RawConnection) -> String {
    stat(&raw.value("SELECT pg_backend_pid()::text")).expect("a process of this machine")[1].clone()
}

/// Returns the CPU seconds of a server: of its processes, and of those that have ended.
pub(crate) fn cpu_of_server(postmaster: &str) -> f64 {
    let all = fs::read_dir("/proc").expect("Linux has it").flatten();
    let of_children: f64 = all
        .filter_map(|process| stat(process.file_name().to_str()?))
        .filter(|fields| fields[1] == postmaster)
        .map(|fields| seconds(&fields, &[11, 12]))
        .sum();
    of_children + stat(postmaster).map_or(0.0, |fields| seconds(&fields, &[11, 12, 13, 14]))
}

/// Returns the CPU seconds of the machine: those that were used, and all.
pub(crate) fn cpu_of_machine() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/stat").expect("Linux has it");
    let fields: Vec<f64> =
        stat.lines().next().unwrap_or("").split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // The guests are counted as user time, too.
    let all: f64 = fields.iter().take(8).sum();
    ((all - fields[3] - fields[4]) / TICKS, all / TICKS)
}

pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
