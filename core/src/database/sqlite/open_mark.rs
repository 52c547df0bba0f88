//! Refuses a database that another copy of this library has open in this process.
//!
//! A file's POSIX locks belong to the process. Two copies of SQLite in one process do not see each other's locks, and the copy that
//! closes the file first drops the locks of the other, so that the database can lose writes (sqlite.org/howtocorrupt.html, 2.2.1).
//!
//! Invariant: a client that has a database open holds a file in memory, if the system has such files. The name of the file contains
//! the identity of the database and the address of a variable, which differs between copies of the library. The other copies read
//! the names in `/proc/self/fd`. Elsewhere than on Linux the other copy is not noticed.

use super::file_id::FileId;
use crate::error::{Error, Result};

/// The mark of a client that has a database open.
#[derive(Debug)]
pub(super) struct OpenMark {
    #[cfg(target_os = "linux")]
    _file: Option<std::os::fd::OwnedFd>,
}

impl OpenMark {
    /// Marks a database as open in this copy of the library. Call it before a connection opens the database, because the end of that
    /// connection drops the locks of the other copy.
    ///
    /// # Errors
    /// `Config` if another copy has the database open.
    #[cfg(target_os = "linux")]
    pub(super) fn create(database: &FileId) -> Result<OpenMark> {
        // Each copy of the library has this variable at its own address.
        static COPY: u8 = 0;
        let prefix = format!("townsquare-{:x}-{:x}-", database.0, database.1);
        let name = format!("{prefix}{:x}", (&raw const COPY).addr());
        // Before the search, so that of two copies that open the database at once at least one finds the other.
        let file = rustix::fs::memfd_create(name.as_str(), rustix::fs::MemfdFlags::CLOEXEC)
            .inspect_err(
                |error| tracing::warn!(%error, "another copy of the library in this process would not be noticed"),
            )
            .ok();
        let is_of_other_copy = |target: &str| {
            target
                .strip_prefix("/memfd:")
                .is_some_and(|of| of.starts_with(&prefix) && of.split(' ').next() != Some(&name))
        };
        let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let mut targets = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
        if targets.any(|target| target.to_str().is_some_and(is_of_other_copy)) {
            return Err(Error::config(
                "Another copy of the library has the database open in this process, and the two would corrupt it: load the library \
                 once, or give each copy its own data_dir",
            ));
        }
        Ok(OpenMark { _file: file })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn create(_database: &FileId) -> Result<OpenMark> {
        Ok(OpenMark {})
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn another_copy_is_noticed_until_it_closes_the_database() {
        let of_other =
            |name: &str| rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).expect("a file in memory");
        let own =
            (OpenMark::create(&(7, 9)).expect("no other copy"), OpenMark::create(&(7, 9)).expect("the same copy"));
        let other = of_other("townsquare-7-9-1");
        let error = OpenMark::create(&(7, 9)).expect_err("another copy");
        assert!(error.message().starts_with("Another copy of the library"), "{error}");
        assert!(OpenMark::create(&(7, 90)).is_ok(), "another database");
        drop((other, own));
        assert!(OpenMark::create(&(7, 9)).is_ok());
    }
}
