//! A large file goes up and down with little memory, and with progress.

use std::{
    fs::{self, File},
    ops::ControlFlow,
    os::unix::fs::FileExt,
    path::Path,
    process::Command,
};

use townsquare::{
    blocking::{Client, wait},
    storage::UploadOptions,
};
use townsquare_tests::{
    setting::setting,
    skip::skip,
    subprocess::{name_of, role, run_child},
    test_database::Engine,
};

use super::{
    content::{self, inherited_store},
    fixture::{Fixture, SMALL, Store},
};

const MIB: u64 = 1 << 20;
/// The memory that a transfer may use over the idle client.
const LIMIT: u64 = 32 * MIB;

/// The size of the file, in bytes.
fn size() -> u64 {
    setting("TOWNSQUARE_TEST_FILE_MIB", 256) * MIB
}

/// Returns a line of `/proc/self/status`, in bytes.
fn status(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
}

/// Makes the command of a child process. With more arenas glibc keeps freed memory for each thread, and which threads work depends
/// on the load.
fn child_of(fixture: &Fixture, test: &str, role: &str) -> Command {
    let mut command = content::child_of(fixture, test, role);
    command.env("MALLOC_ARENA_MAX", "1");
    command
}

/// Creates a file with a number at each mebibyte, and holes between them.
fn create_source(path: &Path) {
    let file = File::create(path).expect("created");
    file.set_len(size()).expect("set");
    for number in 0..size() / MIB {
        file.write_all_at(&(number + 1).to_le_bytes(), number * MIB + number).expect("written");
    }
}

/// Checks a copy of the file of `create_source`.
fn assert_copied(path: &Path) {
    let file = File::open(path).expect("a file");
    assert_eq!(file.metadata().expect("metadata").len(), size());
    let (mut found, mut expected) = (vec![0; MIB as usize], vec![0; MIB as usize]);
    for number in 0..size() / MIB {
        file.read_exact_at(&mut found, number * MIB).expect("read");
        let place = number as usize;
        expected[place..place + 8].copy_from_slice(&(number + 1).to_le_bytes());
        assert!(found == expected, "mebibyte {number}");
        expected[place..place + 8].fill(0);
    }
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_with_a_large_file() {
    if role().as_deref() != Some("transfer") {
        return;
    }
    let folder = std::env::current_dir().expect("the parent's folder");
    let client = Client::open(inherited_store()).expect("opens").as_service();
    let storage = client.storage();
    storage.upload("assets", "small", vec![0; 100], UploadOptions::new()).expect("uploaded");
    storage.download("assets", "small").expect("downloaded");
    let idle = status("VmRSS").expect("Linux has it");
    let before = status("VmHWM").expect("Linux has it");
    assert!(before < idle + LIMIT, "opening the client hides the peak: {before} of {idle}");
    let mut steps = Vec::new();
    let progress = |done, all| {
        steps.push((done, all));
        ControlFlow::Continue(())
    };
    let uploaded = storage.upload_from("assets", "large", folder.join("source"), UploadOptions::new(), progress);
    let info = uploaded.expect("uploaded");
    assert_progress(&steps);
    // The target takes the source's place, to save the disk.
    let mut steps = Vec::new();
    let progress = |done, all| {
        steps.push((done, all));
        ControlFlow::Continue(())
    };
    assert_eq!(storage.download_to("assets", "large", folder.join("source"), progress).expect("downloaded"), info);
    assert_progress(&steps);
    let peak = status("VmHWM").expect("Linux has it");
    #[allow(clippy::print_stderr, reason = "the figure of a long run")]
    {
        eprintln!("{} MiB: idle {} KiB, peak {} KiB", size() / MIB, idle / 1_024, peak / 1_024);
    }
    assert!(peak < idle + LIMIT, "the peak is {} MiB over the idle client", (peak - idle) / MIB);
    client.close();
}

fn assert_progress(steps: &[(u64, u64)]) {
    assert!(steps.len() as u64 >= size() / (4 * MIB), "{} calls", steps.len());
    assert!(steps.is_sorted() && steps.iter().all(|(_, all)| *all == size()));
    assert_eq!(steps.last().map(|step| step.0), Some(size()));
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_verifies() {
    if role().as_deref() != Some("verify") {
        return;
    }
    let client = Client::open(inherited_store()).expect("opens").as_service();
    let storage = client.storage();
    let small = || UploadOptions::new().verify(true);
    let refused = storage.upload("assets", "small", b"{}".to_vec(), small()).expect_err("not signed");
    assert_eq!(refused.status(), 400);
    let idle = status("VmHWM").expect("Linux has it");
    // JSON that is many times as large in memory: 49 MiB, and as much as is verified.
    let hostile = |size: usize| {
        let mut text = String::from("[");
        while text.len() < size - 4 {
            text.push_str("[],");
        }
        text.push_str("0]");
        text
    };
    let source = hostile(49 << 20);
    let bytes = bytes::Bytes::from(source);
    let refused = storage.upload("assets", "large", bytes.clone(), small()).expect_err("too large to verify");
    assert_eq!((refused.kind(), refused.status()), (townsquare::ErrorKind::TooLarge, 413));
    // A stream of the same bytes.
    let mut writer = wait(client.inner().storage().writer("assets", "large", small())).expect("a writer");
    let failed = bytes.chunks(1 << 16).find_map(|chunk| wait(writer.write(chunk.to_vec())).err());
    assert_eq!(failed.expect("too large to verify").status(), 413);
    let refused = storage.upload("assets", "fits", hostile(1 << 20), small()).expect_err("not signed");
    assert_eq!(refused.status(), 400);
    let peak = status("VmHWM").expect("Linux has it");
    // The source itself, and what verifying 1 MiB takes.
    assert!(peak < idle + (50 + 100) * MIB, "the peak is {} MiB over the idle client", (peak - idle) / MIB);
    client.close();
}

#[test]
fn an_upload_with_verify_is_bounded_in_memory() {
    if status("VmHWM").is_none() {
        return skip("the memory of verify: there is no /proc");
    }
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(SMALL)).expect("SQLite is always there");
    let test = name_of(&child_process_that_verifies);
    run_child(&mut child_of(&fixture, test, "verify"));
}

/// `TOWNSQUARE_TEST_FILE_MIB` sets the size. The test needs twice the size on the disk.
#[test]
fn a_large_file_goes_up_and_down_with_32_mib() {
    if status("VmHWM").is_none() {
        return skip("the memory of a transfer: there is no /proc");
    }
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(SMALL)).expect("SQLite is always there");
    let source = fixture.folder.path().join("source");
    create_source(&source);
    let test = name_of(&child_process_with_a_large_file);
    let output = run_child(child_of(&fixture, test, "transfer").current_dir(fixture.folder.path()));
    #[allow(clippy::print_stderr, reason = "the figure of a long run")]
    {
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("{}", said.lines().find(|line| line.contains("peak")).unwrap_or_default());
    }
    assert_copied(&source);
}
