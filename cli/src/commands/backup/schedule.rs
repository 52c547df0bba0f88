//! Copies by a schedule: one folder, one process, a copy at each turn.
//!
//! Invariant: a copy is removed only after a newer one has succeeded. The wall clock decides names and what is due when the command
//! starts; the waits between turns are monotonic, so a clock that jumps makes no flood of copies and no gap.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use jiff::Timestamp;
use serde_json::json;

use super::{
    Copied, copy,
    interval::Interval,
    retention::{self, Keep, SUFFIX},
};
use crate::{
    context::Context, exit_code, failure::Failure, interrupt, output::note, runtime::block_on, settings::IfMissing,
};

/// The file that the process with the folder has locked.
const LOCK: &str = ".townsquare-backups.lock";

/// After the name of a copy: the folder of its files.
const FILES: &str = ".files";

/// The end of the name of a folder in which the library prepares a copy.
const PART: &str = ".part";

/// The lock file in such a folder, which the library holds while it works there.
const LOCK_OF_PART: &str = "lock";

/// Makes copies in `folder` until a signal comes.
pub(super) fn run(folder: &Path, every: Interval, keep: Option<&Keep>, context: &Context) -> Result<(), Failure> {
    create_folder(folder).map_err(|error| Failure::of_file(folder, &error))?;
    let _lock = lock(folder)?;
    let Interval(every) = every;
    let mut wait = wait_before_first(&copies(folder)?, Timestamp::now(), every);
    let mut is_first = true;
    loop {
        if !slept(wait)? {
            return ended();
        }
        let started = Instant::now();
        match turn(folder, keep, context) {
            Ok(Copied::Whole) => {}
            Ok(Copied::Interrupted) => return ended(),
            // No later turn would succeed.
            Err(failure) if is_first && matches!(failure.code, exit_code::USAGE | exit_code::NOT_FOUND) => {
                return Err(failure);
            }
            // The reader of the output has closed it.
            Err(failure) if failure.sentence.is_none() => return Err(failure),
            Err(failure) => {
                let sentence = failure.sentence.as_deref().unwrap_or_default();
                note(&format!("No backup was made: {sentence}"));
                note(&format!("try: {} The next turn tries again.", failure.advice));
            }
        }
        is_first = false;
        wait = every.saturating_sub(started.elapsed());
    }
}

fn ended() -> Result<(), Failure> {
    note("Ended by a signal. The copies that are there are whole.");
    Ok(())
}

/// How long after the start the first copy is due: none of the past is younger than `every`. Copies with a time in the future,
/// which a clock that went back leaves, do not count.
fn wait_before_first(copies: &[Timestamp], now: Timestamp, every: Duration) -> Duration {
    let newest = copies.iter().filter(|time| **time <= now).max();
    newest.map_or(Duration::ZERO, |newest| every.saturating_sub(now.duration_since(*newest).unsigned_abs()))
}

/// Waits. Returns false if a signal ends the wait.
fn slept(time: Duration) -> Result<bool, Failure> {
    block_on(async {
        let signal = pin!(interrupt::requested());
        matches!(select(pin!(tokio::time::sleep(time)), signal).await, Either::Left(_)) && !interrupt::is_requested()
    })
}

/// Makes a copy, and then removes the superfluous ones.
fn turn(folder: &Path, keep: Option<&Keep>, context: &Context) -> Result<Copied, Failure> {
    remove_parts(folder)?;
    // A new client for each turn: the database may have been restored meanwhile.
    let client = context.open(IfMissing::Fail)?;
    let time = Timestamp::now();
    let target = folder.join(retention::name(time));
    match copy(&client, &target, context)? {
        Copied::Whole => {}
        Copied::Interrupted => return Ok(Copied::Interrupted),
    }
    let mut removed = Vec::new();
    if let Some(keep) = keep
        && let Err(failure) = remove_superfluous(folder, keep, time, &mut removed)
    {
        let sentence = failure.sentence.unwrap_or_default();
        note(&format!("Old copies stay, because one of them cannot be removed: {sentence}"));
    }
    if context.output.is_json {
        context.output.json_line(&json!({ "backup": target.to_string_lossy(), "removed": removed }))?;
    } else {
        let count = removed.len();
        let removed = if count == 0 { String::new() } else { format!(" {count} removed.") };
        note(&format!("The copy is {}.{removed}", target.display()));
    }
    Ok(Copied::Whole)
}

/// Removes the copies that are not to be kept at the time `now`, and adds them to `removed`.
fn remove_superfluous(folder: &Path, keep: &Keep, now: Timestamp, removed: &mut Vec<String>) -> Result<(), Failure> {
    for time in keep.superfluous(&copies(folder)?, now) {
        let copy = folder.join(retention::name(time));
        remove(&copy).map_err(|error| Failure::of_file(&copy, &error))?;
        removed.push(copy.to_string_lossy().into_owned());
    }
    remove_files_without_database(folder)
}

/// Removes a copy. Without the database, what is left of it is no copy.
fn remove(copy: &Path) -> io::Result<()> {
    fs::remove_file(copy)?;
    match fs::remove_dir_all(files_of(copy)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn files_of(copy: &Path) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push(FILES);
    name.into()
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
fn copies(folder: &Path) -> Result<Vec<Timestamp>, Failure> {
    let entries = entries(folder)?;
    Ok(entries.iter().filter(|(_, kind)| kind.is_file()).filter_map(|(name, _)| retention::time_of(name)).collect())
}

/// Removes what a killed process left of a removal: the files of a copy whose database is gone.
fn remove_files_without_database(folder: &Path) -> Result<(), Failure> {
    let entries = entries(folder)?;
    let names: BTreeSet<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    for (name, kind) in &entries {
        let Some(copy) = name.strip_suffix(FILES).filter(|copy| retention::time_of(copy).is_some()) else { continue };
        if kind.is_dir() && !names.contains(copy) {
            let path = folder.join(name);
            fs::remove_dir_all(&path).map_err(|error| Failure::of_file(&path, &error))?;
        }
    }
    Ok(())
}

/// Removes what a killed process left of a copy. The library removes it only for a copy of the same name.
fn remove_parts(folder: &Path) -> Result<(), Failure> {
    for (name, kind) in entries(folder)? {
        let copy = name.strip_suffix(PART).and_then(|name| name.rsplit_once('.'));
        let is_part = copy.is_some_and(|(copy, _)| copy.ends_with(SUFFIX) && retention::time_of(copy).is_some());
        let path = folder.join(&name);
        // `townsquare backup` may write a copy of such a name at this time.
        let is_in_use = || File::open(path.join(LOCK_OF_PART)).is_ok_and(|lock| lock.try_lock().is_err());
        if is_part && kind.is_dir() && !is_in_use() {
            fs::remove_dir_all(&path).map_err(|error| Failure::of_file(&path, &error))?;
        }
    }
    Ok(())
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Locks the folder until the process ends.
fn lock(folder: &Path) -> Result<File, Failure> {
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
    use super::*;

    #[test]
    fn the_first_copy_is_due_when_the_newest_one_is_old_enough() {
        let time = |text: &str| text.parse::<Timestamp>().expect("a time");
        let (now, every) = (time("2026-02-01T12:00:00Z"), Duration::from_secs(3_600));
        for (copies, minutes) in [
            (&[][..], 0),
            (&["2026-02-01T11:30:00Z", "2026-02-01T10:00:00Z"][..], 30),
            (&["2026-02-01T12:00:00Z"][..], 60),
            (&["2026-02-01T11:00:00Z"][..], 0),
            (&["2026-01-01T00:00:00Z"][..], 0),
            // The clock was ahead.
            (&["2030-01-01T00:00:00Z"][..], 0),
            (&["2030-01-01T00:00:00Z", "2026-02-01T11:50:00Z"][..], 50),
        ] {
            let copies: Vec<_> = copies.iter().map(|text| time(text)).collect();
            assert_eq!(wait_before_first(&copies, now, every), Duration::from_secs(minutes * 60), "{copies:?}");
        }
    }

    #[test]
    fn only_what_killed_processes_left_of_copies_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let (copy, mine) = ("townsquare-20260131T235900Z.db", "mine.db");
        for name in [
            format!("{copy}.0123.part"),
            format!("{mine}.0123.part"),
            "townsquare-20260101T000000Z.db.files".to_owned(),
            format!("{copy}.files"),
            format!("{mine}.files"),
        ] {
            fs::create_dir_all(folder.join(name).join("inner")).expect("a folder");
        }
        let used = folder.join("townsquare-20260131T235901Z.db.4567.part");
        fs::create_dir(&used).expect("a folder");
        let held = File::create(used.join(LOCK_OF_PART)).expect("a file");
        held.try_lock().expect("the lock");
        fs::write(folder.join(copy), "").expect("a file");
        remove_parts(folder).expect("removed");
        remove_files_without_database(folder).expect("removed");
        let left: BTreeSet<String> = entries(folder).expect("entries").into_iter().map(|(name, _)| name).collect();
        let expected = [
            copy.to_owned(),
            format!("{copy}.files"),
            format!("{mine}.files"),
            format!("{mine}.0123.part"),
            "townsquare-20260131T235901Z.db.4567.part".to_owned(),
        ];
        assert_eq!(left, BTreeSet::from(expected));
    }
}
