//! What a check of a client finds: the codes with their severity, meaning and advice, and the list of a check.
//!
//! Invariant: a code is declared once, in `finding_codes!`. The table of the documentation comes from that declaration. A name
//! that was released stays and keeps its meaning.

use std::{collections::BTreeMap, fmt};

use serde::{Serialize, Serializer};

/// Declares the codes: variant, name, severity, what is wrong, and what to do.
macro_rules! finding_codes {
    ($($variant:ident, $name:literal, $severity:ident, $meaning:literal, $advice:literal;)*) => {
        /// What kind of fault a [`Finding`] is about. Later versions may have more codes.
        ///
        /// ```
        /// use townsquare::check::{FindingCode, Severity};
        ///
        /// assert_eq!(FindingCode::FileMissing.as_str(), "file_missing");
        /// assert_eq!(FindingCode::FileMissing.severity(), Severity::Error);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum FindingCode { $(#[doc = $meaning] $variant,)* }

        impl FindingCode {
            /// Every code.
            pub const ALL: &'static [FindingCode] = &[$(FindingCode::$variant,)*];

            /// The name: stable, as in Python's `Finding.code` and in the table of the documentation.
            ///
            /// ```
            /// assert_eq!(townsquare::check::FindingCode::DiskLow.as_str(), "disk_low");
            /// ```
            pub const fn as_str(self) -> &'static str {
                match self { $(FindingCode::$variant => $name,)* }
            }

            /// How bad a finding of this code is.
            ///
            /// ```
            /// use townsquare::check::{FindingCode, Severity};
            ///
            /// assert_eq!(FindingCode::DiskLow.severity(), Severity::Warning);
            /// ```
            pub const fn severity(self) -> Severity {
                match self { $(FindingCode::$variant => Severity::$severity,)* }
            }

            /// What is wrong, as the table of the documentation says it.
            ///
            /// ```
            /// for code in townsquare::check::FindingCode::ALL {
            ///     println!("{}: {}", code.as_str(), code.meaning());
            /// }
            /// ```
            pub const fn meaning(self) -> &'static str {
                match self { $(FindingCode::$variant => $meaning,)* }
            }

            /// What to do about a finding of this code.
            ///
            /// ```
            /// println!("{}", townsquare::check::FindingCode::FileMissing.advice());
            /// ```
            pub const fn advice(self) -> &'static str {
                match self { $(FindingCode::$variant => $advice,)* }
            }
        }
    };
}

finding_codes! {
    CheckIncomplete, "check_incomplete", Error,
        "A part of the check failed, so it may have missed faults.",
        "Find the error in the log, remove its cause, and check again.";
    DatabaseUnreachable, "database_unreachable", Error,
        "The database does not answer. Nothing else was checked but the disk and the modes.",
        "See that the server runs and accepts connections, or that the disk of the database file can be read; then check again.";
    DatabaseReplaced, "database_replaced", Error,
        "The files of the SQLite database were removed or replaced while they were open.",
        "Close every client of the database. Put the right files back, or restore a backup; then open it again.";
    DatabaseDamaged, "database_damaged", Error,
        "The database is damaged: pages, rows or indexes do not fit together.",
        "Stop the writers, keep a copy of the database, and restore a backup. Look for a failing disk.";
    ReferenceBroken, "reference_broken", Error,
        "Rows name rows of another table that do not exist.",
        "Delete these rows or restore a backup. Programs that write to the SQLite file must set PRAGMA foreign_keys = ON.";
    TableMissing, "table_missing", Error,
        "A table of the library does not exist.",
        "Restore a backup.";
    TableChanged, "table_changed", Warning,
        "A table of the library is not declared as the migrations declare it.",
        "Undo the change that another program made to the table.";
    IndexMissing, "index_missing", Warning,
        "An index of the library is missing, changed or not valid, so calls are slow or duplicates get in.",
        "On PostgreSQL REINDEX an index that is not valid. Create a missing one by its statement in \
         core/migrations of the sources.";
    TriggerChanged, "trigger_changed", Error,
        "A trigger of the library is missing, changed or switched off, so the change feed or the removal of files misses changes.",
        "Close and open the client: open makes the triggers of the change feed. Create a trigger of files by its statement \
         in core/migrations of the sources.";
    PolicyChanged, "policy_changed", Error,
        "The policies, grants or triggers of a PostgreSQL table are not those of the library.",
        "Close and open the client: open makes them again.";
    PolicyForeign, "policy_foreign", Error,
        "Policies or grants of another program change what the callers of the library see.",
        "Do what the message says: drop the policy or revoke the grant.";
    FunctionChanged, "function_changed", Error,
        "A function of the schema townsquare is not that of the library.",
        "Close and open the client. If open fails, restore the schema townsquare from a backup.";
    RoleUnsafe, "role_unsafe", Error,
        "The PostgreSQL roles are set up so that row-level security would not hold, or triggers would not run.",
        "Do what the message says, as an administrator of the database.";
    MigrationChanged, "migration_changed", Error,
        "A recorded migration is not the one of this library.",
        "Use the build of the library that made the database, or restore a backup.";
    MigrationMissing, "migration_missing", Error,
        "The database does not record a migration that this library needs.",
        "Close and open the client with migrate=true. If open fails, restore a backup.";
    SchemaNewer, "schema_newer", Note,
        "A newer version of the library migrated the database. This version works with it.",
        "Update this program when you can. Its check does not compare tables, triggers and policies.";
    BookkeepingMissing, "bookkeeping_missing", Error,
        "A table with one row that the library keeps about the database has no row.",
        "Restore a backup.";
    ServerReadOnly, "server_read_only", Warning,
        "The PostgreSQL server is a standby, so writes fail.",
        "Add the primary to database_url, or promote this server.";
    StandbyMissing, "standby_missing", Error,
        "The PostgreSQL server waits for synchronous standbys that are not connected, so writes hang.",
        "Start the standbys, or take them out of synchronous_standby_names and reload the server. Without them, a failure of \
         the server may lose commits.";
    ReplicaBehind, "replica_behind", Warning,
        "A standby of the PostgreSQL server is behind: by a minute or more, or by more write-ahead log than max_wal_size.",
        "See that the standby runs and can keep up. A failover to it now would lose commits, unless replication is synchronous.";
    SlotUnread, "slot_unread", Warning,
        "Nobody reads a replication slot of the PostgreSQL server. It keeps more write-ahead log than max_wal_size, and the disk \
         fills.",
        "Start the standby or the program that reads it. If there is none any more, drop the slot with \
         pg_drop_replication_slot. Limit all slots with max_slot_wal_keep_size.";
    SlotLost, "slot_lost", Warning,
        "The reader of a replication slot of the PostgreSQL server has fallen behind max_slot_wal_keep_size, or soon will: what it \
         needs is removed.",
        "Make the standby again, and drop the slot if nobody reads it. Raise max_slot_wal_keep_size if the disk has room.";
    TransactionIdsLow, "transaction_ids_low", Warning,
        "Autovacuum does not keep up: the PostgreSQL database comes near the end of its transaction ids.",
        "End transactions and replication slots that stay open, and VACUUM the database.";
    PoolerTransaction, "pooler_transaction", Note,
        "Connections belong to the client for a transaction only, as behind a pooler in transaction mode.",
        "Nothing, if a pooler is meant to be there. A direct connection saves a round trip for each call.";
    ClockBehind, "clock_behind", Warning,
        "The clock of this machine is behind times in the database.",
        "Set the clock, and keep it right with NTP. Sessions and tokens last too long until then.";
    ClockDiffers, "clock_differs", Warning,
        "The clock of this machine and the clock of the PostgreSQL server differ by more than 5 seconds.",
        "Set both clocks, and keep them right with NTP.";
    FileMissing, "file_missing", Error,
        "A file has a row and no bytes.",
        "Put the bytes back from a backup, upload the file again, or delete it. repair() deletes the rows of such large files.";
    FileSizeDiffers, "file_size_differs", Error,
        "The bytes of a file are of another size than its row says. They are never served.",
        "Put the bytes back from a backup, upload the file again, or delete it.";
    FileVersionDiffers, "file_version_differs", Error,
        "An object of a remote store is of another version than its row says.",
        "Call repair(): the row gets the version of the object.";
    FileDigestDiffers, "file_digest_differs", Error,
        "The bytes of a file are not those that were uploaded.",
        "Put the bytes back from a backup, or upload the file again. Look for a failing disk, or a program that writes there.";
    FileUnreadable, "file_unreadable", Error,
        "The bytes of a file cannot be read.",
        "See who owns the file in the store and its mode. Look for a failing disk.";
    OrphanObject, "orphan_object", Warning,
        "The store has an object that belongs to no file.",
        "Call repair(), which removes it. Move it away first if another program needs it.";
    UnfinishedUpload, "unfinished_upload", Warning,
        "The write of a file began an hour ago or earlier and has not ended.",
        "Call repair(), which finishes or undoes it.";
    StaleStage, "stale_stage", Warning,
        "The store keeps bytes of uploads that ended without a file an hour ago or earlier.",
        "Call repair(), which removes them.";
    StrayContent, "stray_content", Warning,
        "The database has bytes of small files that have no row.",
        "Call repair(), which removes them. Programs that write to the SQLite file must set PRAGMA foreign_keys = ON.";
    StoreUnreachable, "store_unreachable", Error,
        "The object store does not answer. Its files were not checked.",
        "See that the store runs and that this machine reaches it; then check again.";
    StoreMissing, "store_missing", Error,
        "The object store with the files of the database does not exist, has no id or denies the access.",
        "Mount the folder, or correct storage_url and the credentials. Write nothing into an empty folder in its place.";
    MovedAway, "moved_away", Warning,
        "The database has moved to another place by a move that followed it, and takes no writes.",
        "Open the new place. If that is given up, call reopen_for_writes(), or `townsquare repair --reopen`: then this one takes writes again.";
    StoreForeign, "store_foreign", Error,
        "The object store belongs to another database.",
        "Correct storage_url. If this database is new and empty, the file of the old one was lost: restore it. \
         If nobody uses the other database any more, open this one once with claim_store=true.";
    StoreOfOriginal, "store_of_original", Warning,
        "The database is a copy, and its object store is that of the original: large files can only be read.",
        "If nobody uses the original any more, open the copy once with claim_store=true. Else copy the files to another store.";
    StoreNested, "store_nested", Error,
        "The object store lies in another one, which takes its objects for orphans.",
        "Move the store to a place that is in no other store.";
    FeedBehind, "feed_behind", Warning,
        "The change feed is a minute or more behind the last commit.",
        "On PostgreSQL end transactions that stay open. Else see whether this process has time to run.";
    LogOverLimit, "log_over_limit", Warning,
        "The change log has more than 1.5 times its limits, so writes wait for it to be pruned.",
        "Read or end the subscription that lags, or raise change_retention_rows and change_retention_bytes.";
    WalLarge, "wal_large", Warning,
        "The write-ahead log of the SQLite database is larger than 128 MiB, because a reader holds it up.",
        "End reads that take long, such as an open export_rows, also of other programs, and then write something or close the client.";
    DiskFull, "disk_full", Error,
        "A disk with data of the library has less than 64 MiB left.",
        "Make room now. SQLite needs some to delete rows.";
    DiskLow, "disk_low", Warning,
        "A disk with data of the library has less than 1 GiB and less than a twentieth of its size left.",
        "Make room, or move the data to a larger disk.";
    ModeOpen, "mode_open", Warning,
        "Other users of this machine may read or change a file or folder of the library.",
        "Take the rights away: chmod go= on the file or folder.";
    CollationChanged, "collation_changed", Warning,
        "The PostgreSQL server sorts text by other rules than when an index of the library was built, as after an upgrade of its \
         operating system: lookups may miss rows, and duplicates may get in.",
        "REINDEX the index, then ALTER COLLATION … REFRESH VERSION, or ALTER DATABASE … REFRESH COLLATION VERSION for the \
         collation \"default\".";
}

crate::model::named! {
    /// How bad a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Severity {
        /// Something is broken: data is lost, wrong or open to the wrong callers, or calls fail.
        Error = "error",
        /// Something works and will not for long, or wastes room or time.
        Warning = "warning",
        /// Something unusual that works.
        Note = "note",
    }

    /// Every severity, the worst one first.
    pub const ALL;

    /// The name: `error`, `warning` or `note`.
    ///
    /// ```
    /// assert_eq!(townsquare::check::Severity::Note.as_str(), "note");
    /// ```
    pub fn as_str;
}

/// How much a check reads.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
/// use townsquare::check::CheckDepth;
///
/// assert!(client.check(CheckDepth::Full)?.is_empty());
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CheckDepth {
    /// Every row of the files, and the names and sizes of their objects, but not the bytes.
    #[default]
    Quick,
    /// Every byte of the database and of the files.
    Full,
}

/// Something that is wrong, or will be, as [`Client::check`](crate::Client::check) found it.
///
/// It serialises to an object with the keys `code`, `severity`, `message` and `advice`.
///
/// ```
/// use townsquare::check::{Finding, Severity};
///
/// fn report(findings: &[Finding]) {
///     for finding in findings.iter().filter(|finding| finding.severity() == Severity::Error) {
///         println!("{}: {}\n  {}", finding.code.as_str(), finding.message, finding.advice());
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What kind of fault it is.
    pub code: FindingCode,
    /// A sentence that names the file, the table or the part. It has no secret, no e-mail address and no token.
    pub message: String,
}

impl Finding {
    /// How bad it is.
    ///
    /// ```
    /// fn is_urgent(finding: &townsquare::check::Finding) -> bool {
    ///     finding.severity() == townsquare::check::Severity::Error
    /// }
    /// ```
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// What to do about it.
    ///
    /// ```
    /// fn show(finding: &townsquare::check::Finding) {
    ///     println!("{finding} {}", finding.advice());
    /// }
    /// ```
    pub fn advice(&self) -> &'static str {
        self.code.advice()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.severity().as_str(), self.code.as_str(), self.message)
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("Finding", 4)?;
        fields.serialize_field("code", self.code.as_str())?;
        fields.serialize_field("severity", self.severity().as_str())?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("advice", self.advice())?;
        fields.end()
    }
}

/// The findings of a check, in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    listed: Vec<Finding>,
    /// How many findings of a code there are.
    counts: BTreeMap<FindingCode, usize>,
}

impl Findings {
    /// The most findings of a code that are listed.
    const LISTED: usize = 100;

    pub(crate) fn add(&mut self, code: FindingCode, message: impl Into<String>) {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        if *count <= Findings::LISTED {
            self.listed.push(Finding { code, message: message.into() });
        }
    }

    /// Whether there is a finding of this code.
    pub(crate) fn has(&self, code: FindingCode) -> bool {
        self.counts.contains_key(&code)
    }

    /// The findings, the worst first. A code with too many has one finding at its end that counts the others.
    pub(crate) fn into_list(self) -> Vec<Finding> {
        let Findings { mut listed, counts } = self;
        for (code, count) in counts.into_iter().filter(|(_, count)| *count > Findings::LISTED) {
            let further = count - Findings::LISTED;
            let message = format!("There are {further} further findings of this code, which are not listed.");
            listed.push(Finding { code, message });
        }
        listed.sort_by_key(|finding| (finding.severity(), finding.code));
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_text_is_one_or_more_sentences() {
        let mut names: Vec<_> = FindingCode::ALL.iter().map(|code| code.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FindingCode::ALL.len());
        for code in FindingCode::ALL {
            for text in [code.meaning(), code.advice()] {
                assert!(text.ends_with('.') && !text.contains(['|', '\n']), "{text}");
            }
            assert!(code.as_str().chars().all(|character| character.is_ascii_lowercase() || character == '_'));
        }
    }

    /// A failure prints the table to put there.
    #[test]
    fn the_guide_has_the_table_of_codes() {
        let mut table = "| code | severity | what is wrong | what to do |\n|---|---|---|---|\n".to_owned();
        for code in FindingCode::ALL {
            let (name, severity) = (code.as_str(), code.severity().as_str());
            table.push_str(&format!("| `{name}` | {severity} | {} | {} |\n", code.meaning(), code.advice()));
        }
        let guide = include_str!("../check_guide.md");
        assert!(guide.replace("\r\n", "\n").ends_with(&table), "the table of core/src/check_guide.md:\n{table}");
    }

    #[test]
    fn a_code_lists_a_hundred_findings_and_counts_the_others() {
        let mut findings = Findings::default();
        for number in 0..250 {
            findings.add(FindingCode::OrphanObject, format!("{number}"));
        }
        findings.add(FindingCode::PoolerTransaction, "a note");
        findings.add(FindingCode::FileMissing, "an error");
        let list = findings.into_list();
        assert_eq!(list.len(), 103);
        assert_eq!((list[0].message.as_str(), list[102].message.as_str()), ("an error", "a note"));
        assert_eq!(list[1].message, "0");
        assert_eq!(list[101].message, "There are 150 further findings of this code, which are not listed.");
    }
}
