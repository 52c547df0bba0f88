//! What the clients have done, and what a reader may therefore see.
//!
//! Invariant: the rules know nothing of the code under test. A call is an interval of steps, with its outcome.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{
    BUCKET, SPACE_BUCKET, bucket_of,
    feed::{BackedUpFile, Usage},
};
use crate::{
    error::{Error, ErrorKind},
    model::FileInfo,
};

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Writes files without an owner.
    Service,
    /// Owns the files that it writes, within a quota.
    User,
}

/// What a call changes or reads.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Upload {
        path: &'static str,
        size: usize,
        if_match: Option<String>,
        upsert: bool,
    },
    Delete {
        path: &'static str,
    },
    Read {
        path: &'static str,
    },
    Copy {
        from: &'static str,
        to: &'static str,
    },
    Move {
        from: &'static str,
        to: &'static str,
    },
    List,
    Repair,
    Backup,
    /// Ends the uploads of the user that run.
    Revoke,
    /// Deletes the user's space with its files.
    DeleteSpace,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Without an effect: `Error::is_retryable` says that nothing happened.
    Refused,
    /// It may have had its effect, and has it at the latest when the next call on the path begins.
    Unknown,
    /// Its caller dropped the future: it may run on.
    Dropped,
}

/// A call, from the step in which it began to the one in which it ended.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) by: By,
    pub(super) call: Call,
    /// The committed changes before it began.
    pub(super) changes: usize,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// `None` while it runs.
    pub(super) outcome: Option<Outcome>,
    etag: Option<String>,
}

/// The result of a call.
pub(super) enum Found {
    Nothing,
    Info(FileInfo),
    File(FileInfo, Bytes),
    List(Vec<FileInfo>),
    Backup(Vec<BackedUpFile>),
}

#[derive(Default)]
pub(super) struct History {
    pub(super) entries: Vec<Entry>,
    /// The numbers of the uploads by the version that readers saw.
    contents: BTreeMap<String, usize>,
}

const NEVER: usize = usize::MAX;

impl History {
    /// Begins a call after `changes` committed changes.
    pub(super) fn begin(&mut self, by: By, call: Call, changes: usize, step: usize) -> usize {
        self.entries.push(Entry { by, call, changes, begin: step, end: NEVER, outcome: None, etag: None });
        self.entries.len() - 1
    }

    /// The bytes of the upload with this number.
    pub(super) fn content(number: usize, size: usize) -> Bytes {
        format!("{:<1$}", format!("{number}|"), size).into()
    }

    /// The last version of a path that a client knows.
    pub(super) fn known_version(&self, path: &str) -> Option<String> {
        let written = self.entries.iter().filter(|entry| entry.outcome == Some(Outcome::Done));
        written.rev().find(|entry| entry.target() == Some(path)).and_then(|entry| entry.etag.clone())
    }

    /// Ends a call whose client crashed, or whose caller dropped it.
    pub(super) fn lose(&mut self, number: usize, step: usize, outcome: Outcome) {
        let entry = &mut self.entries[number];
        entry.outcome = Some(outcome);
        entry.end = if outcome == Outcome::Dropped { NEVER } else { step };
    }

    /// Ends a call.
    ///
    /// # Errors
    /// What is wrong with its result.
    pub(super) fn end(&mut self, number: usize, step: usize, result: Result<Found, Error>) -> Result<(), String> {
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(error) => self.judge_error(number, error)?,
        };
        let entry = &mut self.entries[number];
        (entry.end, entry.outcome) = (step, Some(outcome));
        if let Ok(Found::Info(info)) = &result {
            entry.etag = Some(info.etag.clone());
        }
        let entry = entry.clone();
        match (&entry.call, result) {
            (Call::Read { path }, Ok(Found::File(info, bytes))) => self.check_read(&entry, path, &info, &bytes),
            (Call::Read { path }, Err(error)) if error.kind() == ErrorKind::NotFound => self.check_absent(&entry, path),
            (Call::List, Ok(Found::List(files))) => self.check_list(&entry, &files),
            (Call::Backup, Ok(Found::Backup(files))) => {
                files.iter().try_for_each(|file| self.check_content(&file.path, &file.etag, &file.bytes).map(drop))
            }
            (Call::Upload { if_match: Some(etag), path, .. }, Ok(_)) => self.check_only_successor(path, etag),
            _ => Ok(()),
        }
    }

    /// Returns the number of the upload that these bytes are of.
    ///
    /// # Errors
    /// If they are not the whole bytes of one upload, and if other bytes had the same version.
    fn check_content(&mut self, path: &str, etag: &str, bytes: &[u8]) -> Result<usize, String> {
        let text = String::from_utf8_lossy(bytes);
        let number = text.split_once('|').and_then(|(number, _)| number.parse::<usize>().ok());
        let whole = match number.and_then(|number| Some((number, &self.entries.get(number)?.call))) {
            Some((number, Call::Upload { size, .. })) => History::content(number, *size) == bytes,
            _ => false,
        };
        let number = number.filter(|_| whole).ok_or_else(|| format!("{path}: {text:?} is no whole upload"))?;
        if *self.contents.entry(etag.to_owned()).or_insert(number) != number {
            return Err(format!("{path}: one version with the bytes of two uploads"));
        }
        Ok(number)
    }

    /// # Errors
    /// If a reader sees bytes that no write of the path can have left there.
    fn check_read(&mut self, read: &Entry, path: &str, info: &FileInfo, bytes: &[u8]) -> Result<(), String> {
        let number = self.check_content(path, &info.etag, bytes)?;
        if info.size != bytes.len() as u64 {
            return Err(format!("{path}: the row says {} bytes, the reader got {}", info.size, bytes.len()));
        }
        let candidates = self.writers(path, number, 0);
        if candidates.is_empty() {
            return Err(format!("{path}: upload {number} is not of this path"));
        }
        let is_allowed = |writer: &usize| {
            let writer = &self.entries[*writer];
            writer.begin < read.end && !self.is_overwritten(path, writer.end, read.begin)
        };
        if candidates.iter().any(is_allowed) {
            return Ok(());
        }
        Err(format!("{path}: a reader saw upload {number}, which a later call had replaced before the read began"))
    }

    /// The calls that may have written the bytes of an upload to a path.
    fn writers(&self, path: &str, number: usize, depth: usize) -> Vec<usize> {
        let may_write = |index: usize, entry: &Entry| match &entry.call {
            Call::Upload { .. } => index == number,
            Call::Copy { from, .. } | Call::Move { from, .. } => depth < 3 && self.may_have(from, number, depth + 1),
            _ => false,
        };
        let entries = self.entries.iter().enumerate();
        let writers = entries.filter(|(index, entry)| {
            entry.outcome != Some(Outcome::Refused) && entry.target() == Some(path) && may_write(*index, entry)
        });
        writers.map(|(index, _)| index).collect()
    }

    fn may_have(&self, path: &str, number: usize, depth: usize) -> bool {
        !self.writers(path, number, depth).is_empty()
    }

    /// Whether a call that ended well changed the path after the step `after`, and ended before the step `before`.
    fn is_overwritten(&self, path: &str, after: usize, before: usize) -> bool {
        self.entries.iter().any(|entry| {
            entry.outcome == Some(Outcome::Done) && entry.changes(path) && entry.begin > after && entry.end < before
        })
    }

    /// # Errors
    /// If a reader found no file, and one must be there.
    fn check_absent(&self, read: &Entry, path: &str) -> Result<(), String> {
        let lost = self.entries.iter().enumerate().find(|(_, entry)| {
            entry.outcome == Some(Outcome::Done)
                && entry.target() == Some(path)
                && entry.end < read.begin
                && !self.may_be_removed(path, entry.begin, read.end)
        });
        match lost {
            Some((number, _)) => Err(format!("{path}: call {number} wrote the file, and a reader did not find it")),
            None => Ok(()),
        }
    }

    /// Whether a call may have removed the file at a path after the step `after` and before the step `before`.
    fn may_be_removed(&self, path: &str, after: usize, before: usize) -> bool {
        self.entries.iter().any(|entry| {
            entry.removes(path) && entry.outcome != Some(Outcome::Refused) && entry.end > after && entry.begin < before
        })
    }

    fn check_list(&self, read: &Entry, files: &[FileInfo]) -> Result<(), String> {
        let is_sorted = files.windows(2).all(|pair| pair[0].path < pair[1].path);
        if !is_sorted {
            return Err("a list is not in order".to_owned());
        }
        super::PATHS
            .iter()
            .filter(|path| bucket_of(path) == BUCKET && !files.iter().any(|file| file.path == **path))
            .try_for_each(|path| self.check_absent(read, path))
    }

    /// # Errors
    /// If two uploads replaced the same version.
    fn check_only_successor(&self, path: &str, etag: &str) -> Result<(), String> {
        let successors = self.entries.iter().filter(|entry| {
            entry.outcome == Some(Outcome::Done)
                && matches!(&entry.call, Call::Upload { path: other, if_match: Some(of), .. } if *other == path && of == etag)
        });
        if successors.count() > 1 { Err(format!("{path}: two uploads replaced one version")) } else { Ok(()) }
    }

    /// # Errors
    /// An error that nothing in the simulation explains.
    fn judge_error(&self, number: usize, error: &Error) -> Result<Outcome, String> {
        let entry = &self.entries[number];
        let (is_of_user, writes) =
            (entry.by == By::User, matches!(entry.call, Call::Upload { .. } | Call::Copy { .. }));
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::Conflict => Ok(Outcome::Refused),
            ErrorKind::Unavailable if error.code() != Some("08007") => Ok(Outcome::Refused),
            ErrorKind::Unavailable | ErrorKind::Closed => Ok(Outcome::Unknown),
            ErrorKind::QuotaExceeded if is_of_user && writes => Ok(Outcome::Refused),
            // The service has written a file, or the space is deleted.
            ErrorKind::Forbidden if is_of_user && self.entries.iter().any(Entry::may_forbid) => Ok(Outcome::Refused),
            _ => Err(format!("an unexpected error: {error}")),
        }
    }

    /// The most that the intents of the user's other writes can have counted for while a call ran.
    pub(super) fn most_in_flight(&self, number: usize) -> Usage {
        let call = &self.entries[number];
        let others = self.entries.iter().enumerate().filter(|(other, entry)| {
            let is_over = matches!(entry.outcome, Some(Outcome::Done | Outcome::Refused)) && entry.end < call.begin;
            *other != number && entry.by == By::User && entry.begin < call.end && !is_over
        });
        others.fold(Usage::default(), |usage, (_, entry)| {
            let bytes = self.most_bytes(entry);
            Usage { files: usage.files + u64::from(bytes > 0), bytes: usage.bytes + bytes }
        })
    }

    /// The most bytes that a call writes.
    pub(super) fn most_bytes(&self, entry: &Entry) -> u64 {
        match entry.call {
            Call::Upload { size, .. } => size as u64,
            Call::Copy { .. } => self.entries.iter().map(Entry::upload_size).max().unwrap_or_default(),
            _ => 0,
        }
    }

    /// How many copies may have the bytes of an upload.
    pub(super) fn copies(&self, number: usize) -> usize {
        let is_copy = |entry: &&Entry| matches!(&entry.call, Call::Copy { from, .. } if self.may_have(from, number, 0));
        self.entries.iter().filter(is_copy).count()
    }

    /// The versions that calls have written.
    pub(super) fn versions(&self) -> impl Iterator<Item = (usize, &String)> {
        self.entries.iter().enumerate().filter_map(|(number, entry)| Some((number, entry.etag.as_ref()?)))
    }

    /// The upload whose version a reader saw.
    pub(super) fn upload_of(&self, etag: &str) -> Option<usize> {
        self.contents.get(etag).copied()
    }
}

impl Entry {
    fn upload_size(&self) -> u64 {
        if let Call::Upload { size, .. } = self.call { size as u64 } else { 0 }
    }

    /// Whether the call may take the right to a file from the user.
    fn may_forbid(&self) -> bool {
        self.by == By::Service && matches!(self.call, Call::Upload { .. } | Call::Copy { .. } | Call::DeleteSpace)
    }

    /// The path that the call writes.
    fn target(&self) -> Option<&'static str> {
        match self.call {
            Call::Upload { path, .. } => Some(path),
            Call::Copy { to, .. } | Call::Move { to, .. } => Some(to),
            _ => None,
        }
    }

    fn removes(&self, path: &str) -> bool {
        match self.call {
            Call::Delete { path: removed } | Call::Move { from: removed, .. } => removed == path,
            Call::DeleteSpace => bucket_of(path) == SPACE_BUCKET,
            _ => false,
        }
    }

    fn changes(&self, path: &str) -> bool {
        self.removes(path) || self.target() == Some(path)
    }
}
