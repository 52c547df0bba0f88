//! Where a file or a folder is on its file system, as text: a copy of it is at another place. And who has rights on it.
//!
//! Invariant: the place stays the same when the file is renamed or changed, and when the machine starts again. It is unknown on
//! a file system that may give a file another number.

use std::path::Path;

/// Returns the place of a file or a folder: its inode number, and the time of its creation if the file system keeps that. `None`
/// if the place is unknown. (The number of the device is no part of it, because it may change when the machine starts.)
pub(crate) fn file_place(path: &Path) -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        use std::{os::unix::fs::MetadataExt as _, time::UNIX_EPOCH};

        if !rustix::fs::statfs(path).is_ok_and(|system| is_local(&system)) {
            return None;
        }
        let metadata = std::fs::metadata(path).ok()?;
        let created = metadata.created().ok().and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let created = created.map(|created| created.as_nanos().to_string());
        Some(format!("{}@{}", metadata.ino(), created.unwrap_or_default()))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        None
    }
}

/// What a process does with a file or a folder.
#[cfg(feature = "sqlite")]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Use {
    Read,
    /// Read and write.
    Write,
    /// Make files in a folder.
    Create,
}

/// Returns the host's error if this process lacks the right for a use of a file or a folder. `None` also if there is no such file,
/// and where files have no modes. It opens nothing, because closing a database would drop the locks of this process.
#[cfg(feature = "sqlite")]
pub(crate) fn denied_use(path: &Path, wanted: Use) -> Option<std::io::Error> {
    #[cfg(unix)]
    {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        let access = match wanted {
            Use::Read => Access::READ_OK,
            Use::Write => Access::READ_OK | Access::WRITE_OK,
            Use::Create => Access::WRITE_OK | Access::EXEC_OK,
        };
        let error = std::io::Error::from(accessat(CWD, path, access, AtFlags::EACCESS).err()?);
        (error.kind() == std::io::ErrorKind::PermissionDenied).then_some(error)
    }
    #[cfg(not(unix))]
    {
        let _ = (path, wanted);
        None
    }
}

/// Whether other users of the machine have a right on a file or a folder. False if it does not exist, and where files have no
/// modes.
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Whether a file system is a local one of Linux.
#[cfg(target_os = "linux")]
fn is_local(system: &rustix::fs::StatFs) -> bool {
    /// The numbers of ext2 to ext4, XFS, Btrfs, F2FS, ZFS, tmpfs and overlayfs: statfs(2).
    const LOCAL: [u32; 7] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630];
    LOCAL.contains(&(system.f_type as u32))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_renamed_file_keeps_its_place_and_a_copy_has_another() {
        let folder = std::env::temp_dir().join(format!("townsquare-place-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let [first, second, copy] = ["first", "second", "copy"].map(|name| folder.join(name));
        fs::write(&first, "x").expect("a file");
        let place = file_place(&first);
        fs::rename(&first, &second).expect("renamed");
        fs::write(&second, "y").expect("changed");
        fs::copy(&second, &copy).expect("copied");
        assert_eq!(file_place(&second), place);
        if place.is_some() {
            assert_ne!(file_place(&copy), place);
        }
        assert_eq!(file_place(Path::new("/proc/self/stat")), None);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
