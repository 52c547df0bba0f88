//! Makes backups into one folder, or into one folder of an object store, at a fixed interval.
//!
//! Invariant: a copy is removed only after a newer one has succeeded. The wall clock decides names and what is due when the command
//! starts; the waits between turns are monotonic, so a clock that jumps makes no flood of copies and no gap.

use std::{
    path::Path,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::future::{Either, select};
use jiff::Timestamp;
use serde_json::json;

use super::{
    Copied, create_folder, folder,
    interval::Interval,
    retention::{self, Keep},
    store,
};
use crate::{
    context::Context, exit_code, failure::Failure, interrupt, output::note, runtime::block_on, settings::IfMissing,
};

/// Where the copies are.
pub(super) enum Copies<'p> {
    Folder(&'p Path),
    Store(&'p store::Place),
}

impl Copies<'_> {
    /// The name of a copy that begins at a time.
    fn name(&self, time: Timestamp) -> String {
        let suffix = match self {
            Copies::Folder(_) => folder::SUFFIX,
            Copies::Store(_) => store::SUFFIX,
        };
        retention::name(time, suffix)
    }

    /// What is shown of a copy.
    fn shown(&self, name: &str) -> String {
        match self {
            Copies::Folder(folder) => folder.join(name).to_string_lossy().into_owned(),
            Copies::Store(place) => place.object(name),
        }
    }

    /// The times of the copies that are there.
    fn times(&self) -> Result<Vec<Timestamp>, Failure> {
        match self {
            Copies::Folder(folder) => folder::copies(folder),
            Copies::Store(place) => {
                let names = place.names()?;
                Ok(names.iter().filter_map(|name| retention::time_of(name, store::SUFFIX)).collect())
            }
        }
    }

    fn make(&self, name: &str, time: Timestamp, context: &Context) -> Result<Copied, Failure> {
        match self {
            Copies::Folder(folder) => folder::make(folder, name, context),
            Copies::Store(place) => place.make(name, time, context),
        }
    }

    /// Removes the copies that are not to be kept at the time `now`, and adds them to `removed`. A copy that cannot be removed
    /// stays, with a note.
    fn remove_superfluous(&self, keep: &Keep, now: Timestamp, removed: &mut Vec<String>) -> Result<(), Failure> {
        let place = match self {
            Copies::Folder(folder) => return folder::remove_superfluous(folder, keep, now, removed),
            Copies::Store(place) => place,
        };
        for time in keep.superfluous(&self.times()?, now) {
            let name = self.name(time);
            match place.remove(&name) {
                Ok(()) => removed.push(self.shown(&name)),
                Err(failure) => note(&format!("An old copy stays: {}", failure.sentence.unwrap_or_default())),
            }
        }
        Ok(())
    }
}

/// Makes copies in a folder of this machine until a signal comes.
pub(super) fn run_in_folder(
    folder: &Path,
    every: Interval,
    keep: Option<&Keep>,
    context: &Context,
) -> Result<(), Failure> {
    if folder.is_file() {
        let sentence = format!("{} is a file, and --every makes its copies in a folder", folder.display());
        return Err(Failure::usage(sentence, "Name a folder."));
    }
    create_folder(folder).map_err(|error| Failure::of_file(folder, &error))?;
    let _lock = folder::lock(folder)?;
    run(&Copies::Folder(folder), every, keep, context)
}

/// Makes copies in a store until a signal comes.
pub(super) fn run_in_store(
    place: &store::Place,
    every: Interval,
    keep: Option<&Keep>,
    context: &Context,
) -> Result<(), Failure> {
    let copies = Copies::Store(place);
    place.check_writing(&copies.name(Timestamp::now()))?;
    run(&copies, every, keep, context)
}

fn run(copies: &Copies<'_>, every: Interval, keep: Option<&Keep>, context: &Context) -> Result<(), Failure> {
    let Interval(every) = every;
    let mut wait = wait_before_first(&copies.times()?, Timestamp::now(), every);
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
        match turn(copies, keep, context) {
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
fn turn(copies: &Copies<'_>, keep: Option<&Keep>, context: &Context) -> Result<Copied, Failure> {
    let time = Timestamp::now();
    let name = copies.name(time);
    match copies.make(&name, time, context)? {
        Copied::Whole => {}
        Copied::Interrupted => return Ok(Copied::Interrupted),
    }
    let mut removed = Vec::new();
    if let Some(keep) = keep
        && let Err(failure) = copies.remove_superfluous(keep, time, &mut removed)
    {
        note(&format!("Old copies stay: {}", failure.sentence.unwrap_or_default()));
    }
    let shown = copies.shown(&name);
    if context.output.is_json {
        context.output.json_line(&json!({ "backup": shown, "removed": removed }))?;
    } else {
        let count = removed.len();
        let removed = if count == 0 { String::new() } else { format!(" {count} removed.") };
        note(&format!("The copy is {shown}.{removed}"));
    }
    Ok(Copied::Whole)
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
}
