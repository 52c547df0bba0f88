//! The check of the machine: room on the disks, and who has rights on files and folders.
//!
//! Invariant: no file is opened: closing a descriptor of the database would drop the locks of this process. Messages name files
//! without the folders above them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    config::{DatabaseLocation, FilesLocation, Resolved},
    file_place::is_open_to_others,
    model::FindingCode,
};

/// Less room than this is low, if it is less than a twentieth of the disk as well.
const LOW: u64 = 1 << 30;

/// The part of a disk that is low.
const LOW_PART: u64 = 20;

/// Less room than this is none: SQLite's log takes twice as much as its limit before it is emptied.
const NONE: u64 = 64 << 20;

/// Where a client keeps data on this machine.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The folder that belongs to the library alone.
    data_dir: Option<PathBuf>,
    database: Option<PathBuf>,
    files: Option<PathBuf>,
    session: Option<PathBuf>,
}

impl Places {
    pub(crate) fn of(resolved: &Resolved) -> Places {
        let (database, data_dir) = match &resolved.database {
            DatabaseLocation::Sqlite { file, folder } => (Some(file.clone()), folder.clone()),
            DatabaseLocation::SqliteMemory | DatabaseLocation::Postgres(_) => (None, None),
        };
        let files = match &resolved.files {
            FilesLocation::Folder(folder) => Some(folder.clone()),
            FilesLocation::Memory | FilesLocation::Remote { .. } => None,
        };
        Places { data_dir, database, files, session: resolved.session_file.clone() }
    }
}

/// Returns what is wrong. Blocks the thread.
pub(super) fn inspect(places: &Places) -> Vec<(FindingCode, String)> {
    let mut findings = Vec::new();
    inspect_modes(places, &mut findings);
    let mut disks = Vec::new();
    let folder_of = |file: &PathBuf| file.parent().map(Path::to_owned);
    let places = [("database", places.database.as_ref().and_then(folder_of)), ("files", places.files.clone())];
    for (what, place) in places {
        // The folder of the files may not exist yet.
        let existing = place.iter().flat_map(|place| place.ancestors()).find(|folder| folder.exists());
        let Some(disk) = existing.and_then(Disk::of) else { continue };
        if !disks.contains(&disk.device) {
            findings.extend(disk.finding(what));
            disks.push(disk.device);
        }
    }
    findings
}

fn inspect_modes(places: &Places, findings: &mut Vec<(FindingCode, String)>) {
    let mut check = |path: &Path, name: &str| {
        if is_open_to_others(path) {
            findings.push((FindingCode::ModeOpen, format!("Other users of this machine have rights on {name}.")));
        }
    };
    if let Some(folder) = &places.data_dir {
        check(folder, "the folder data_dir");
    }
    if let Some(database) = &places.database {
        for suffix in ["", "-wal", "-shm"] {
            let mut path = database.clone().into_os_string();
            path.push(suffix);
            let path = PathBuf::from(path);
            check(&path, &name_of(&path));
        }
    }
    if let Some(session) = &places.session {
        check(session, &name_of(session));
    }
    let Some(files) = &places.files else { return };
    let root = name_of(files);
    check(files, &root);
    for entry in fs::read_dir(files).into_iter().flatten().flatten() {
        // What a link names is not of the store.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            check(&entry.path(), &format!("{root}/{}", entry.file_name().to_string_lossy()));
        }
    }
    let id = Path::new(".townsquare").join("store");
    check(&files.join(&id), &format!("{root}/{}", id.display()));
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A disk and its room, in bytes.
#[derive(Debug, Clone, Copy)]
struct Disk {
    device: u64,
    available: u64,
    total: u64,
}

impl Disk {
    #[cfg(unix)]
    fn of(folder: &Path) -> Option<Disk> {
        use std::os::unix::fs::MetadataExt as _;
        let room = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(room.f_frsize);
        let device = fs::metadata(folder).ok()?.dev();
        Some(Disk { device, available: bytes(room.f_bavail), total: bytes(room.f_blocks) })
    }

    #[cfg(not(unix))]
    fn of(_: &Path) -> Option<Disk> {
        None
    }

    fn finding(&self, what: &str) -> Option<(FindingCode, String)> {
        let code = match self.available {
            // Not every file system says how large it is.
            _ if self.total == 0 => return None,
            available if available < NONE => FindingCode::DiskFull,
            available if available < LOW && available < self.total / LOW_PART => FindingCode::DiskLow,
            _ => return None,
        };
        Some((code, format!("The disk with the {what} has {} MiB left.", self.available >> 20)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_low_by_bytes_and_by_part_and_full_by_bytes() {
        const GIB: u64 = 1 << 30;
        let code = |available, total| Disk { device: 1, available, total }.finding("files").map(|(code, _)| code);
        assert_eq!(code(GIB - 1, 100 * GIB), Some(FindingCode::DiskLow));
        assert_eq!(code(GIB, 100 * GIB), None, "a large disk may have less than a twentieth");
        assert_eq!(code(GIB / 2, 8 * GIB), None, "a small disk may have less than 1 GiB");
        assert_eq!(code(NONE - 1, GIB), Some(FindingCode::DiskFull));
        assert_eq!(code(0, 0), None);
    }
}
