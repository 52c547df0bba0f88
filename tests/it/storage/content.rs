//! Bytes that name themselves, and child processes on the parent's database and folder.

use std::{process::Command, time::Duration};

use townsquare::Config;
use townsquare_tests::test_database::inherited;

use super::fixture::Fixture;

const FOLDER: &str = "TOWNSQUARE_TEST_FILES_FOLDER";
const LIMIT: &str = "TOWNSQUARE_TEST_INLINE_LIMIT";

/// How long a writer waits for the other process. A loaded machine may need seconds to flush its disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of this size that begin with `id` and depend on it everywhere. The size is at least 8.
pub(super) fn content(id: u64, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(id);
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.reserve(size);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.u64(..).to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// Returns the id of `content`.
///
/// # Panics
/// If the bytes are not those of one call of `content` with a size of `sizes`.
#[track_caller]
pub(super) fn id_of(bytes: &[u8], sizes: &[usize]) -> u64 {
    let id = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    assert!(sizes.contains(&bytes.len()), "{} bytes", bytes.len());
    assert!(*bytes == content(id, bytes.len()), "the bytes of {id} are mixed with others");
    id
}

/// Makes a command that runs one test of this binary in another process, on the database and the folder of `fixture`.
pub(super) fn child_of(fixture: &Fixture, test: &str, role: &str) -> Command {
    let (folder, limit) = (fixture.files_folder().display().to_string(), fixture.limit().to_string());
    fixture.db.child(test, role, &[(FOLDER, &folder), (LIMIT, &limit)])
}

/// In a child process: the configuration of the parent's database and folder.
pub(super) fn inherited_store() -> Config {
    let variable = |name| std::env::var(name).expect("the parent process sets the variable");
    let limit = variable(LIMIT).parse().expect("a number");
    let config = inherited().storage_url(format!("file:{}", variable(FOLDER))).busy_timeout(PATIENCE);
    config.inline_file_limit(limit).max_file_size(1 << 40)
}
