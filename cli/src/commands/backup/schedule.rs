//! Makes backups into one folder at a fixed interval. One process works on a folder.
//!
//! Invariant: a copy is removed only after a newer one has succeeded. The wall clock decides names and what is due when the command
//! starts; the waits between turns are monotonic, so a clock that jumps makes no flood of copies and no gap.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::Path,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use jiff::Timestamp;
use serde_json::json;

use super::{
    Copied, copy, files_of,
    interval::Interval,
    retention::{self, Keep},
    with_end,
};
use crate::{
    context::Context, exit_code, failure::Failure, interrupt, output::note, runtime::block_on, settings::IfMissing,
};

/// The file that the process with the folder has locked.
const LOCK: &str = ".townsquare-backups.lock";

/// After the name of a copy that is being removed: no command takes it for a copy.
const REMOVED: &str = ".removed";

/// The end of the name of a folder in which the library prepares a copy.
const PART: &str = ".part";

/// The lock file in such a folder, which the library holds while it works there.
const LOCK_OF_PART: &str = "lock";

/// Makes copies in `folder` until a signal comes.
pub(super) fn run(folder: &Path, every: Interval, keep: Option<&Keep>, context: &Context) -> Result<(), Failure> {
    if folder.is_file() {
        let sentence = format!("{} is a file, and --every makes its copies in a folder", folder.display());
        return Err(Failure::usage(sentence, "Name a folder."));
    }
    create_folder(folder).map_err(|error| Failure::of_file(folder, &error))?;
    let _lock = lock(folder)?;
    let Interval(every) = every;
    let mut wait = wait_before_first(&copies(folder)?, Timestamp::now(), every);
    // Without a wait, the first turn opens the database.
    let mut is_start = wait.is_zero();
    if !is_start {
        match context.open(IfMissing::FailReadOnly) {
            Ok(client) => block_on(client.close())?,
            Err(failure) if is_lasting(&failure) => return Err(failure),
            // A later turn may succeed.
            Err(failure) => note(&format!("The database does not open now: {}", failure.sentence.unwrap_or_default())),
        }
    }
    if !is_start {
        note(&format!("No copy is due. The next one is made at {:.0}.", Timestamp::now() + wait));
    }
    loop {
        if !slept(wait)? {
            return ended();
        }
        let started = Instant::now();
        match turn(folder, keep, context) {
            Ok(Copied::Whole) => {}
            Ok(Copied::Interrupted) => return ended(),
            // No later turn would succeed.
            Err(failure) if is_start && is_lasting(&failure) => return Err(failure),
            // The reader of the output has closed it.
            Err(failure) if failure.sentence.is_none() => return Err(failure),
            Err(failure) => {
                let sentence = failure.sentence.as_deref().unwrap_or_default();
                note(&format!("No backup was made: {sentence}"));
                note(&format!("try: {} The next turn tries again.", failure.advice));
            }
        }
        is_start = false;
        wait = every.saturating_sub(started.elapsed());
    }
}

/// Whether every later turn would fail, too.
fn is_lasting(failure: &Failure) -> bool {
    matches!(failure.code, exit_code::USAGE | exit_code::NOT_FOUND)
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
    if let Err(failure) = remove_parts(folder) {
        note(&format!("What a killed backup left stays: {}", failure.sentence.unwrap_or_default()));
    }
    // A new client for each turn: the database may have been restored meanwhile.
    let client = context.open(IfMissing::FailReadOnly)?;
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
        note(&format!("Old copies stay: {}", failure.sentence.unwrap_or_default()));
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

/// Removes the copies that are not to be kept at the time `now`, and adds them to `removed`. A copy that cannot be removed stays,
/// with a note.
fn remove_superfluous(folder: &Path, keep: &Keep, now: Timestamp, removed: &mut Vec<String>) -> Result<(), Failure> {
    for time in keep.superfluous(&copies(folder)?, now) {
        let copy = folder.join(retention::name(time));
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
        let Some(copy) = name.strip_suffix(REMOVED).filter(|copy| retention::time_of(copy).is_some()) else { continue };
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
fn copies(folder: &Path) -> Result<Vec<Timestamp>, Failure> {
    let entries = entries(folder)?;
    Ok(entries.iter().filter(|(_, kind)| kind.is_file()).filter_map(|(name, _)| retention::time_of(name)).collect())
}

/// Removes what a killed process left of a copy. The library removes it only for a copy of the same name.
fn remove_parts(folder: &Path) -> Result<(), Failure> {
    for (name, kind) in entries(folder)? {
        let copy = name.strip_suffix(PART).and_then(|name| name.rsplit_once('.'));
        let is_part = copy.is_some_and(|(copy, _)| retention::time_of(copy).is_some());
        let path = folder.join(&name);
        // `townsquare backup` may write a copy of such a name at this time.
        let is_in_use = || match File::open(path.join(LOCK_OF_PART)) {
            Ok(lock) => lock.try_lock().is_err(),
            // It may be another user's.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
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
    use std::collections::BTreeSet;

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
