//! The committed files, as a reader of the change feed learns of them.
//!
//! Invariant: the reader has the changes up to its cursor, each once and in order. A crash of the reader brings it back to the cursor
//! that it stored last.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    database::{
        Database, Row, Statement,
        change_log::{LogEntry, LoggedRow},
    },
    policy::Table,
    storage::FileQuota,
};

static FILES: Statement = Statement::new(
    "SELECT files.path, files.etag, files.size, files.owner_id IS NOT NULL FROM townsquare.files AS files",
);

static COUNT_CHANGES: Statement = Statement::new("SELECT count(*) FROM townsquare.changes WHERE table_name = 'files'");

/// What the simulation knows of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileRow {
    pub(super) etag: String,
    pub(super) size: u64,
    /// Whether the user of the simulation is its owner.
    pub(super) is_owned: bool,
}

type Files = BTreeMap<String, FileRow>;

/// What the user owns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// A committed change of one row.
#[derive(Clone)]
struct Change {
    old: Option<(String, FileRow)>,
    new: Option<(String, FileRow)>,
    /// After the change.
    usage: Usage,
}

/// A file of a backup.
pub(super) struct BackedUpFile {
    pub(super) path: String,
    pub(super) etag: String,
    pub(super) bytes: Bytes,
}

/// See the module.
#[derive(Clone)]
pub(super) struct Feed {
    /// `None` before the first read.
    cursor: Option<String>,
    changes: Vec<Change>,
    pub(super) files: Files,
    quota: FileQuota,
}

impl Usage {
    fn of(files: &Files) -> Usage {
        let owned = files.values().filter(|file| file.is_owned);
        owned.fold(Usage::default(), |usage, file| Usage { files: usage.files + 1, bytes: usage.bytes + file.size })
    }

    /// Whether a quota allows it.
    pub(super) fn is_within(self, quota: FileQuota) -> bool {
        quota.max_bytes.is_none_or(|limit| self.bytes <= limit)
            && quota.max_files.is_none_or(|limit| self.files <= limit)
    }
}

impl Feed {
    pub(super) fn new(quota: FileQuota) -> Feed {
        Feed { cursor: None, changes: Vec::new(), files: Files::new(), quota }
    }

    /// What the user owns.
    pub(super) fn usage(&self) -> Usage {
        Usage::of(&self.files)
    }

    /// The number of changes so far.
    pub(super) fn count(&self) -> usize {
        self.changes.len()
    }

    /// Reads what follows the cursor. The first read must come before the first change.
    ///
    /// # Errors
    /// If a change does not fit the one before, and if the user owns more than the quota.
    pub(super) async fn read(&mut self, database: &Database) -> Result<(), String> {
        let text = |error: crate::error::Error| format!("the feed: {error}");
        let (_, key) = database.capture_state().await.map_err(text)?;
        let Some(cursor) = &self.cursor else {
            self.cursor = Some(key.cursor(&database.head().await.map_err(text)?));
            return Ok(());
        };
        let mut point = database.position_of(cursor, &key).await.map_err(text)?.point();
        let known = self.changes.len();
        loop {
            let page = database.read_changes(point, [Table::Files].into_iter().collect()).await.map_err(text)?;
            for entry in page.entries.iter().filter(|entry| entry.table == Table::Files) {
                self.apply(entry)?;
            }
            point = page.end;
            if page.is_last {
                break;
            }
        }
        self.cursor = Some(key.cursor(&point.into()));
        self.check_quota(known)
    }

    /// Checks that the changes lead to the rows. The reader must have read everything.
    ///
    /// # Errors
    /// If they do not.
    pub(super) async fn check_rows(&self, database: &Database) -> Result<(), String> {
        let read = |row: &Row<'_>| {
            let size: i64 = row.get(2)?;
            let file = FileRow { etag: row.get(1)?, size: size.unsigned_abs(), is_owned: row.get(3)? };
            Ok((row.get::<String>(0)?, file))
        };
        let rows = database.service().fetch(&FILES, &[], read).await.map_err(|error| error.to_string())?;
        if rows.into_iter().collect::<Files>() != self.files {
            return Err("the feed does not lead to the rows".to_owned());
        }
        Ok(())
    }

    fn apply(&mut self, entry: &LogEntry) -> Result<(), String> {
        let kind = entry.kind;
        let (old, new) = (image(entry.old.as_deref())?, image(entry.new.as_deref())?);
        if let Some((path, file)) = &old
            && self.files.remove(path).as_ref() != Some(file)
        {
            return Err(format!("the feed has an {kind:?} of {path} with a version that was not there"));
        }
        if let Some((path, file)) = &new
            && self.files.insert(path.clone(), file.clone()).is_some()
        {
            return Err(format!("the feed has an {kind:?} of {path}, which was there"));
        }
        self.changes.push(Change { old, new, usage: Usage::of(&self.files) });
        Ok(())
    }

    /// Checks the changes from the number `from` on. A move of an object writes its new row before it deletes the old one, in one
    /// transaction.
    fn check_quota(&self, from: usize) -> Result<(), String> {
        let over = (from..self.changes.len()).find(|number| {
            let (change, next) = (&self.changes[*number], self.changes.get(number + 1));
            let size = |row: &Option<(String, FileRow)>| row.as_ref().map(|(_, file)| file.size);
            let is_move = next.is_some_and(|next| {
                next.new.is_none() && size(&next.old) == size(&change.new) && next.usage.is_within(self.quota)
            });
            !change.usage.is_within(self.quota) && !is_move
        });
        match over {
            None => Ok(()),
            Some(number) => Err(format!("the owner has {:?}, beyond {:?}", self.changes[number].usage, self.quota)),
        }
    }

    /// The most that the user owned after the first `from` changes and later.
    pub(super) fn most_used(&self, from: usize) -> Usage {
        let before = from.checked_sub(1).map_or_else(Usage::default, |last| self.changes[last].usage);
        self.changes[from..].iter().fold(before, |most, change| Usage {
            files: most.files.max(change.usage.files),
            bytes: most.bytes.max(change.usage.bytes),
        })
    }

    /// Checks that the files of a backup were all the files at one moment, after the first `from` changes or later.
    ///
    /// # Errors
    /// If they were not.
    pub(super) fn check_backup(&self, from: usize, backup: &[BackedUpFile]) -> Result<(), String> {
        let backup: BTreeMap<&str, &str> = backup.iter().map(|file| (file.path.as_str(), file.etag.as_str())).collect();
        let mut files: BTreeMap<&str, &str> = BTreeMap::new();
        for number in 0..=self.changes.len() {
            if let Some(change) = number.checked_sub(1).map(|last| &self.changes[last]) {
                if let Some((path, _)) = &change.old {
                    files.remove(path.as_str());
                }
                if let Some((path, file)) = &change.new {
                    files.insert(path, &file.etag);
                }
            }
            if number >= from && files == backup {
                return Ok(());
            }
        }
        Err(format!("the files of the backup never were all files: {:?}", backup.keys()))
    }

    /// How often the feed has had a version.
    pub(super) fn deliveries(&self, etag: &str) -> usize {
        self.changes.iter().filter(|change| change.new.as_ref().is_some_and(|(_, file)| file.etag == etag)).count()
    }

    /// Checks that the reader has had every entry of the log.
    ///
    /// # Errors
    /// If it has not.
    pub(super) async fn check_count(&self, database: &Database) -> Result<(), String> {
        let count = database.service().fetch_one(&COUNT_CHANGES, &[], |row| row.get::<i64>(0)).await;
        let count = count.map_err(|error| error.to_string())?;
        match count == i64::try_from(self.count()).unwrap_or_default() {
            true => Ok(()),
            false => Err(format!("the feed had {} changes, the log has {count}", self.count())),
        }
    }
}

/// Path and row of an image.
fn image(row: Option<&LoggedRow>) -> Result<Option<(String, FileRow)>, String> {
    let Some(row) = row else { return Ok(None) };
    let row = row.image();
    let text = |name: &str| row.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let size = row.get("size").and_then(serde_json::Value::as_u64);
    match (text("path"), text("etag"), size) {
        (Some(path), Some(etag), Some(size)) => {
            Ok(Some((path, FileRow { etag, size, is_owned: text("owner_id").is_some() })))
        }
        _ => Err(format!("an image lacks a column: {row:?}")),
    }
}
