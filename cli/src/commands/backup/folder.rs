//! Copies in a folder of this machine. One process works on a folder.
//!
//! Invariant: only files and folders with names of copies are removed, and what a copy leaves when its process is killed.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::Path,
};

use jiff::Timestamp;
use townsquare::remove_named_files;

use super::{
    Copied, copy, files_of,
    retention::{self, Keep},
    with_end,
    work_folder::remove_locked,
};
use crate::{context::Context, exit_code, failure::Failure, output::note, settings::IfMissing};

/// The end of the name of a copy.
pub(super) const SUFFIX: &str = ".db";

/// The file that the process with the folder has locked.
const LOCK: &str = ".townsquare-backups.lock";

/// After the name of a copy that is being removed: no command takes it for a copy.
const REMOVED: &str = ".removed";

/// The end of the name of a folder in which the library prepares a copy.
const PART: &str = ".part";

/// The lock file in such a folder, which the library holds while it works there.
const LOCK_OF_PART: &str = "lock";

/// Makes the copy with a name. First removes what killed backups left.
pub(super) fn make(folder: &Path, name: &str, context: &Context) -> Result<Copied, Failure> {
    if let Err(failure) = remove_parts(folder) {
        note(&format!("What a killed backup left stays: {}", failure.sentence.unwrap_or_default()));
    }
    // A new client for each copy: the database may have been restored meanwhile.
    let client = context.open(IfMissing::FailReadOnly)?;
    copy(&client, &folder.join(name), context)
}

/// Removes the copies that are not to be kept at the time `now`, and adds them to `removed`. A copy that cannot be removed stays,
/// with a note.
pub(super) fn remove_superfluous(
    folder: &Path,
    keep: &Keep,
    now: Timestamp,
    removed: &mut Vec<String>,
) -> Result<(), Failure> {
    for time in keep.superfluous(&copies(folder)?, now) {
        let copy = folder.join(retention::name(time, SUFFIX));
        match fs::rename(&copy, with_end(&copy, REMOVED)) {
            Ok(()) => removed.push(copy.to_string_lossy().into_owned()),
            Err(error) => note_not_removed("An old copy", &copy, &error),
        }
    }
    finish_removals(folder)
}

/// Removes the copies whose database is renamed: first the files, then the database. A killed process may have left some.
fn finish_removals(folder: &Path) -> Result<(), Failure> {
    for (name, kind) in entries(folder)? {
        let Some(copy) = name.strip_suffix(REMOVED).filter(|copy| retention::time_of(copy, SUFFIX).is_some()) else {
            continue;
        };
        if !kind.is_file() {
            continue;
        }
        let copy = folder.join(copy);
        let files = match fs::symlink_metadata(&copy) {
            // Somebody copied it back, and the files belong to it.
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => remove_files(&copy),
            Err(error) => Err(error),
        };
        if let Err(error) = files.and_then(|()| fs::remove_file(with_end(&copy, REMOVED))) {
            note_not_removed("A part of an old copy", &copy, &error);
        }
    }
    Ok(())
}

/// Removes the files of a copy, if it has any.
fn remove_files(copy: &Path) -> io::Result<()> {
    match fs::remove_dir_all(files_of(copy)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn note_not_removed(what: &str, copy: &Path, error: &io::Error) {
    note(&format!("{what} stays: {}", Failure::of_file(copy, error).sentence.unwrap_or_default()));
}

/// The entries of the folder with a name in UTF-8, and whether each is a file or a folder. A symbolic link is neither.
fn entries(folder: &Path) -> Result<Vec<(String, fs::FileType)>, Failure> {
    let read = || {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            entries.extend(entry.file_name().into_string().ok().map(|name| (name, kind)));
        }
        Ok(entries)
    };
    read().map_err(|error| Failure::of_file(folder, &error))
}

/// The times of the copies in the folder.
pub(super) fn copies(folder: &Path) -> Result<Vec<Timestamp>, Failure> {
    let entries = entries(folder)?;
    Ok(entries
        .iter()
        .filter(|(_, kind)| kind.is_file())
        .filter_map(|(name, _)| retention::time_of(name, SUFFIX))
        .collect())
}

/// Removes what a killed process left of a copy. The library removes it only for a copy of the same name.
fn remove_parts(folder: &Path) -> Result<(), Failure> {
    for (name, kind) in entries(folder)? {
        let copy = name.strip_suffix(PART).and_then(|name| name.rsplit_once('.'));
        let is_part = copy.is_some_and(|(copy, _)| retention::time_of(copy, SUFFIX).is_some());
        let path = folder.join(&name);
        if !is_part || !kind.is_dir() {
            continue;
        }
        // `townsquare backup` may write a copy of such a name at this time.
        let lock = match File::open(path.join(LOCK_OF_PART)) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // It may be another user's.
            Err(_) => continue,
        };
        // Locked until the folder is removed: otherwise the library could take it for one of its own.
        if lock.as_ref().is_none_or(|lock| lock.try_lock().is_ok()) {
            if let Some((copy, _)) = copy {
                let (copy, files) = (folder.join(copy), files_of(&folder.join(copy)));
                remove_named_files(&path, &copy, &files).map_err(|error| Failure::of_file(&files, &error))?;
            }
            let removed = match lock {
                Some(lock) => remove_locked(&path, lock),
                None => fs::remove_dir_all(&path),
            };
            removed.map_err(|error| Failure::of_file(&path, &error))?;
        }
    }
    Ok(())
}

/// Locks the folder until the process ends.
pub(super) fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(|error| Failure::of_file(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            exit_code::TRY_AGAIN,
            format!("Another process makes backups in {}", folder.display()),
            "End it first, or give another folder.",
        )),
        Err(TryLockError::Error(error)) => Err(Failure::of_file(&path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_leftovers_of_killed_backups_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let (copy, mine) = ("townsquare-20260131T235900Z.db", "mine.db");
        // A copy that somebody copied back from the renamed one.
        let (back, back_removed) = ("townsquare-20260103T000000Z.db", "townsquare-20260103T000000Z.db.removed");
        for name in [
            format!("{copy}.0123.part"),
            format!("{mine}.0123.part"),
            // A copy whose database comes later, by another program.
            "townsquare-20260101T000000Z.db.files".to_owned(),
            "townsquare-20260102T000000Z.db.files".to_owned(),
            format!("{back}.files"),
            format!("{copy}.files"),
            format!("{mine}.files"),
        ] {
            fs::create_dir_all(folder.join(name).join("inner")).expect("a folder");
        }
        let used = folder.join("townsquare-20260131T235901Z.db.4567.part");
        fs::create_dir(&used).expect("a folder");
        let held = File::create(used.join(LOCK_OF_PART)).expect("a file");
        held.try_lock().expect("the lock");
        for name in [copy, back, back_removed, "townsquare-20260102T000000Z.db.removed", "mine.db.removed"] {
            fs::write(folder.join(name), "").expect("a file");
        }
        // Killed between the names of the files and of the database.
        let named = "townsquare-20260115T000000Z.db";
        fs::create_dir_all(folder.join(format!("{named}.files/inner"))).expect("a folder");
        fs::create_dir(folder.join(format!("{named}.89ab.part"))).expect("a folder");
        for name in ["installing", "database"] {
            fs::write(folder.join(format!("{named}.89ab.part/{name}")), "").expect("a file");
        }
        remove_parts(folder).expect("removed");
        finish_removals(folder).expect("removed");
        let left: BTreeSet<String> = entries(folder).expect("entries").into_iter().map(|(name, _)| name).collect();
        let expected = [
            copy.to_owned(),
            back.to_owned(),
            format!("{back}.files"),
            "townsquare-20260101T000000Z.db.files".to_owned(),
            "mine.db.removed".to_owned(),
            format!("{copy}.files"),
            format!("{mine}.files"),
            format!("{mine}.0123.part"),
            "townsquare-20260131T235901Z.db.4567.part".to_owned(),
        ];
        assert_eq!(left, BTreeSet::from(expected));
        assert!(folder.join(format!("{back}.files/inner")).exists());
    }
}
