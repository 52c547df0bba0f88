//! Refuses a database that another process has open under another name.
//!
//! A file has another name as a hard link, or where it is mounted without its folder. SQLite keeps the write-ahead log beside the name,
//! so each name has a log of its own, and one process writes over what the other one has committed.
//!
//! Invariant: a client that has a database open holds a lock on one byte far behind the end of the file. The byte stands for the
//! folder and the name, and is another one for another name. The lock belongs to a descriptor, of which a process has one for a file:
//! it is closed after the last connection, because closing it drops the locks that SQLite has for the process. Where the system or the
//! file system has no such locks, the other name is not noticed.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(super) use self::linux::OpenName;

/// Elsewhere another name is not noticed.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
#[derive(Debug)]
pub(super) struct OpenName;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
impl OpenName {
    pub(super) fn lock(_: &super::file_id::FileId, _: &std::path::Path) -> crate::error::Result<Option<OpenName>> {
        Ok(None)
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod linux {
    use std::{
        collections::{BTreeMap, btree_map::Entry},
        fs::File,
        io,
        os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
        path::Path,
    };

    use nix::{
        fcntl::{FcntlArg, fcntl},
        libc,
    };
    use parking_lot::Mutex;

    use crate::{
        database::sqlite::file_id::FileId,
        error::{Error, Result},
        regular_file,
    };

    /// The first byte that stands for a name. SQLite locks bytes around 2³⁰.
    const FIRST: i64 = 1 << 40;

    /// The number of bytes that stand for names.
    const BYTES: i64 = 1 << 32;

    /// The locked files of this process. A file is opened and closed under the mutex: between the two, a client may come or go.
    static LOCKED: Mutex<BTreeMap<FileId, LockedFile>> = Mutex::new(BTreeMap::new());

    #[derive(Debug)]
    struct LockedFile {
        _file: File,
        byte: i64,
        clients: usize,
    }

    /// The name under which a client has a database open.
    #[derive(Debug)]
    pub(in crate::database::sqlite) struct OpenName(FileId);

    impl OpenName {
        /// Locks the name of a database; `None` if the file cannot be locked. Call it before a connection opens the database, and drop
        /// the name after the last one.
        ///
        /// # Errors
        /// `Config` if the database is open under another name.
        pub(in crate::database::sqlite) fn lock(database: &FileId, path: &Path) -> Result<Option<OpenName>> {
            let byte = match byte_of(path) {
                Ok(byte) => byte,
                Err(error) => {
                    tracing::debug!(%error, "another name of the database would not be noticed");
                    return Ok(None);
                }
            };
            match LOCKED.lock().entry(*database) {
                Entry::Occupied(mut locked) if locked.get().byte == byte => locked.get_mut().clients += 1,
                Entry::Occupied(_) => return Err(has_another_name()),
                Entry::Vacant(entry) => match open_and_lock(database, path, byte) {
                    Ok(Some(file)) => drop(entry.insert(LockedFile { _file: file, byte, clients: 1 })),
                    Ok(None) => return Err(has_another_name()),
                    Err(error) => {
                        tracing::debug!(%error, "another name of the database would not be noticed");
                        return Ok(None);
                    }
                },
            }
            Ok(Some(OpenName(*database)))
        }
    }

    impl Drop for OpenName {
        fn drop(&mut self) {
            let mut all = LOCKED.lock();
            if let Entry::Occupied(mut locked) = all.entry(self.0) {
                locked.get_mut().clients -= 1;
                if locked.get().clients == 0 {
                    locked.remove();
                }
            }
        }
    }

    /// The byte that stands for a name. The folder counts by its number, because it has other paths where it is mounted again.
    fn byte_of(path: &Path) -> io::Result<i64> {
        // SQLite follows a symbolic link and keeps the log beside its target.
        let real = path.canonicalize()?;
        let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut hash = blake3::Hasher::new();
        hash.update(&folder.metadata()?.ino().to_le_bytes()).update(name.as_bytes());
        let [first, second, third, fourth, ..] = *hash.finalize().as_bytes();
        Ok(FIRST + i64::from(u32::from_le_bytes([first, second, third, fourth])))
    }

    /// Opens a file and locks a byte of it; `None` if another process has locked another byte.
    fn open_and_lock(database: &FileId, path: &Path, byte: i64) -> io::Result<Option<File>> {
        let file = regular_file::open_regular(path)?;
        let metadata = file.metadata()?;
        if (metadata.dev(), metadata.ino()) != *database {
            return Err(io::Error::other("the file was replaced"));
        }
        // Before the search, so that of two processes that open the database at once at least one finds the other.
        fcntl(&file, FcntlArg::F_OFD_SETLK(&part(libc::F_RDLCK, byte, 1)))?;
        for (start, length) in [(FIRST, byte - FIRST), (byte + 1, FIRST + BYTES - byte - 1)] {
            // The length 0 would mean up to the end.
            if length == 0 {
                continue;
            }
            let mut found = part(libc::F_WRLCK, start, length);
            fcntl(&file, FcntlArg::F_OFD_GETLK(&mut found))?;
            if i32::from(found.l_type) != libc::F_UNLCK {
                return Ok(None);
            }
        }
        Ok(Some(file))
    }

    fn part(kind: i32, start: i64, length: i64) -> libc::flock {
        libc::flock {
            // A small constant.
            l_type: i16::try_from(kind).unwrap_or_default(),
            l_whence: 0,
            l_start: start,
            l_len: length,
            l_pid: 0,
        }
    }

    fn has_another_name() -> Error {
        Error::config(
            "The database is open under another name (its file is a hard link, or is mounted without its folder), and each name has \
             a write-ahead log of its own, so that writes would be lost: use one name, and mount the folder",
        )
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::database::sqlite::file_id::file_id;

        #[test]
        fn a_second_name_is_refused_until_the_last_client_has_closed_the_first() {
            let folder = tempfile::tempdir().expect("a folder");
            let (first, second) = (folder.path().join("first"), folder.path().join("second"));
            std::fs::write(&first, "").expect("a file");
            std::fs::hard_link(&first, &second).expect("a link");
            let id = file_id(&first).expect("it is there");
            let take = |path: &Path| OpenName::lock(&id, path);
            let clients = [take(&first).expect("free"), take(&first).expect("the same name")];
            assert!(clients.iter().all(Option::is_some));
            take(&second).expect_err("another name");
            let [one, other] = clients;
            drop(one);
            take(&second).expect_err("another name");
            drop(other);
            assert!(LOCKED.lock().get(&id).is_none());
            take(&second).expect("free");
        }

        #[test]
        fn a_lock_of_another_descriptor_is_found_and_ends_with_it() {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("file");
            std::fs::write(&path, "").expect("a file");
            let id = file_id(&path).expect("it is there");
            let last = FIRST + BYTES - 1;
            for byte in [FIRST, FIRST + 1, last] {
                let held = open_and_lock(&id, &path, byte).expect("locked").expect("free");
                assert!(open_and_lock(&id, &path, byte).expect("locked").is_some(), "the same name");
                for other in [FIRST, FIRST + 1, FIRST + 2, last - 1, last].into_iter().filter(|other| *other != byte) {
                    assert!(open_and_lock(&id, &path, other).expect("looked").is_none(), "{byte} and {other}");
                }
                drop(held);
            }
        }
    }
}
