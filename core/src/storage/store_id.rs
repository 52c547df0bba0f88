//! The identity of the object store: an id in the store and in the database.
//!
//! Invariant: nothing in a store is changed before its id is that of the database, and before the store is the database's own. So
//! a wrong, empty or unmounted store costs no file: the database does not open with it, and `repair` fails and deletes nothing.
//! A copy of a database reads the store of the original and changes nothing in it.

use std::{path::Path, time::Duration};

use uuid::Uuid;

use super::{
    buckets::Buckets,
    core::{LOCK_TIMEOUT, PreparedStorage, StorageCore},
    inspection::StoreUse,
    rows::{self, key_of},
    statements as sql,
};
use crate::{
    database::{Row, StoredFiles},
    error::{Error, ErrorKind, Result},
    model::{FindingCode, StoredObject},
    objects::{MEMORY_ID, ObjectKey, Objects, store_around},
    threads::BoxedFuture,
};

/// How long `open` waits for the store.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// How many ids a store may have been given whose writes got no answer.
const MOST_LATE_IDS: usize = 64;

/// How often a client checks a store that changes meanwhile.
const CHECKS: u32 = 5;

/// How a check of a store ended that found no fault.
enum StoreCheck {
    /// The store may be used, as far as the caller asked.
    Passed,
    /// Another client has taken the store meanwhile.
    Overtaken,
}

/// What the caller does after the check of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterStoreCheck {
    /// Inline files need no store, so any store is fine for a database that has no large file.
    Open,
    /// The objects of another database must not be removed.
    Repair,
    /// A database without large files takes the store over.
    Write,
}

impl PreparedStorage {
    /// Checks, before `open` changes the database, that the files of the database are in the store.
    ///
    /// # Errors
    /// `Config` if the store is another one. If the store does not answer, the check is left to the first call that needs it.
    pub(super) async fn check_store(&self, stored: &StoredFiles) -> Result<()> {
        if stored.objects.is_empty() {
            return Ok(());
        }
        let check = async {
            let found = self.objects.read_id().await?;
            let is_other = match stored.store_id.as_str() {
                recorded if found.as_deref() == Some(recorded) => false,
                // The bytes that a store in memory had are lost anyway.
                MEMORY_ID => false,
                recorded if recorded.is_empty() || self.options.claim_store || is_late(recorded, found.as_deref()) => {
                    !has_any(&self.objects, &stored.objects).await?
                }
                _ => true,
            };
            if is_other { Err(other_store(&self.objects, &stored.store_id, found.as_deref()).await?) } else { Ok(()) }
        };
        match tokio::time::timeout(OPEN_TIMEOUT, check).await {
            Ok(Err(error)) if error.kind() == ErrorKind::Config => Err(error),
            _ => Ok(()),
        }
    }
}

/// # Errors
/// `Config` if the store lies in another one.
pub(super) async fn require_no_store_around(objects: &Objects) -> Result<()> {
    let Some(around) = objects.surrounding_store().await? else { return Ok(()) };
    Err(Error::config(format!(
        "Option storage_url: the object store lies in another one, at {around}, which would remove its files. Choose a place that is in \
         no other store"
    )))
}

/// Checks the place of a new database.
///
/// # Errors
/// `Config` if the folder lies in an object store, whose repair would delete the database.
pub(crate) fn require_outside_stores(data_dir: &Path) -> Result<()> {
    let Some(around) = store_around(data_dir) else { return Ok(()) };
    Err(Error::config(format!(
        "{} lies in an object store, at {}, whose repair would delete the database. Choose a folder that is in no store",
        data_dir.display(),
        around.display()
    )))
}

/// Whether the store has one of these files.
async fn has_any(objects: &Objects, files: &[StoredObject]) -> Result<bool> {
    for file in files {
        if objects.open_object(&key_of(file)).await?.is_some_and(|object| object.size() == file.size) {
            return Ok(true);
        }
    }
    Ok(objects.is_volatile())
}

/// What the database records of its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordedStore {
    /// Empty if there is none yet.
    pub(super) id: String,
    /// Whether the store is this database's own. False in a copy of a database, whose store is the original's.
    is_own: bool,
}

impl StorageCore {
    /// Checks at `open` that a remote store can be used, and that the database's files are in the store.
    ///
    /// # Errors
    /// `Config` if the store is another one, and if a remote store does not exist or denies the access; the errors of a folder. If a
    /// remote store does not answer, the check is left to the first call that needs it.
    pub(super) async fn check_store_at_open(&self) -> Result<()> {
        let check = async {
            self.objects.probe().await?;
            self.check_store(AfterStoreCheck::Open).await
        };
        let error = match tokio::time::timeout(OPEN_TIMEOUT, check).await {
            Ok(Err(error)) if self.objects.is_remote() && error.kind() == ErrorKind::Unavailable => error,
            Ok(checked) => return checked,
            Err(_) => Error::file(504, "The object store does not answer"),
        };
        tracing::warn!(%error, "the object store could not be checked");
        Ok(())
    }

    /// Checks the store, unless this client has done so and no other client has given the database another store since. The first
    /// large file of a database takes the store over.
    ///
    /// # Errors
    /// `Config` if the store is another one, or the store of the original of this copy.
    pub(super) async fn require_store(&self) -> Result<()> {
        let checked = self.store_id.lock().clone().map(|id| RecordedStore { id, is_own: true });
        if checked.is_some() && checked == Some(self.recorded_store().await?) {
            return Ok(());
        }
        self.check_store(AfterStoreCheck::Write).await
    }

    /// Checks the store anew, for `repair`.
    ///
    /// # Errors
    /// `Config` if the store is another one; the errors of the object store.
    pub(super) async fn recheck_store(&self) -> Result<()> {
        self.check_store(AfterStoreCheck::Repair).await
    }

    fn check_store(&self, next: AfterStoreCheck) -> BoxedFuture<'_, Result<()>> {
        Box::pin(async move {
            *self.store_id.lock() = None;
            for _ in 0..CHECKS {
                let (recorded, found) = (self.recorded_store().await?, self.objects.read_id().await?);
                match self.compare_store(&recorded, found.as_ref(), next).await {
                    Ok(StoreCheck::Passed) => return Ok(()),
                    Ok(StoreCheck::Overtaken) => {}
                    // Another client took the store over meanwhile, and may have written objects. It records the id before it writes it
                    // to the store.
                    Err(error)
                        if error.kind() == ErrorKind::Config
                            && (self.recorded_store().await? != recorded || self.objects.read_id().await? != found) => {
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(other_store_taken())
        })
    }

    async fn compare_store(
        &self,
        recorded: &RecordedStore,
        found: Option<&String>,
        next: AfterStoreCheck,
    ) -> Result<StoreCheck> {
        let is_same = found == Some(&recorded.id);
        if is_same && recorded.is_own {
            self.accept_store(recorded.id.clone());
            self.record_place().await?;
            return Ok(StoreCheck::Passed);
        }
        let files = self.first_objects().await?;
        // No other database has a store in memory.
        let is_foreign = found.is_some() && !self.objects.is_volatile();
        let is_copied = is_same && self.was_copied_with_database().await?;
        if recorded.is_own
            && let Some(found) = found.filter(|found| is_late(&recorded.id, Some(found)))
        {
            let is_ours = match files.is_empty() {
                true => next != AfterStoreCheck::Open,
                false => has_any(&self.objects, &files).await?,
            };
            if is_ours {
                return self.adopt_store(recorded, found).await;
            }
        }
        let may_take = is_copied
            || (self.options.claim_store && next == AfterStoreCheck::Open && (is_foreign || !recorded.is_own));
        if files.is_empty() {
            if may_take || next != AfterStoreCheck::Open {
                self.refuse_foreign_objects().await?;
            }
            return match next {
                _ if may_take => self.take_store_over(recorded, found).await,
                AfterStoreCheck::Write if !recorded.is_own => Err(store_of_original()),
                AfterStoreCheck::Write if is_foreign => Err(foreign_store(&recorded.id, found.map(String::as_str))),
                AfterStoreCheck::Write => self.take_store_over(recorded, found).await,
                AfterStoreCheck::Open | AfterStoreCheck::Repair => Ok(StoreCheck::Passed),
            };
        }
        // The bytes that a store in memory had are lost anyway.
        let was_volatile = recorded.id == MEMORY_ID && !is_foreign;
        let is_first = recorded.id.is_empty() && !is_foreign;
        if was_volatile || ((may_take || is_first) && has_any(&self.objects, &files).await?) {
            return self.take_store_over(recorded, found).await;
        }
        match next {
            _ if !is_same => Err(other_store(&self.objects, &recorded.id, found.map(String::as_str)).await?),
            AfterStoreCheck::Open => {
                self.objects.expect_id(found.map(String::as_str));
                tracing::warn!("{}", store_of_original());
                Ok(StoreCheck::Passed)
            }
            AfterStoreCheck::Write | AfterStoreCheck::Repair => Err(store_of_original()),
        }
    }

    /// Whether the store is the one of the database, without a change of either. `Ok(Ok(_))` says what a check may compare.
    pub(super) async fn judge_store(&self) -> Result<Result<StoreUse, (FindingCode, String)>> {
        loop {
            let (recorded, found) = (self.recorded_store().await?, self.objects.read_id().await?);
            let judged = self.compare_for_check(&recorded, found.as_deref()).await?;
            // Another client took the store over meanwhile.
            if judged.is_ok() || (self.recorded_store().await?, self.objects.read_id().await?) == (recorded, found) {
                return Ok(judged);
            }
        }
    }

    async fn compare_for_check(
        &self,
        recorded: &RecordedStore,
        found: Option<&str>,
    ) -> Result<Result<StoreUse, (FindingCode, String)>> {
        let fault = |code: FindingCode, message: &str| Ok(Err((code, message.to_owned())));
        let files = self.first_objects().await?;
        match found {
            Some(found) if found == recorded.id => match recorded.is_own || self.was_copied_with_database().await? {
                true => Ok(Ok(StoreUse::Own)),
                false => fault(
                    FindingCode::StoreOfOriginal,
                    "The database is a copy, and its object store is that of the original.",
                ),
            },
            Some(found) => fault(
                FindingCode::StoreForeign,
                &format!("The object store belongs to another database: its id is {found}."),
            ),
            None if files.is_empty() => match self.refuse_foreign_objects().await {
                Err(error) if error.kind() == ErrorKind::Config => fault(
                    FindingCode::StoreForeign,
                    "The object store has objects, and the database has no large files.",
                ),
                Err(error) => Err(error),
                Ok(()) => Ok(Ok(StoreUse::Nothing)),
            },
            // A database that has not recorded its store yet.
            None if recorded.id.is_empty() && has_any(&self.objects, &files).await? => Ok(Ok(StoreUse::Own)),
            None => match self.objects.exists().await? {
                true => fault(FindingCode::StoreMissing, "The object store has no id."),
                false => fault(FindingCode::StoreMissing, "The folder with the large files does not exist."),
            },
        }
    }

    /// Whether the store is a folder that was copied together with the database, so that nobody else uses it. A store elsewhere may
    /// have been moved by the original, which uses it.
    async fn was_copied_with_database(&self) -> Result<bool> {
        Ok(self.options.is_beside_database && self.objects.is_copied_folder().await?)
    }

    /// Gives the store, which has the id `found`, a new id and records it, so that the store belongs to this database alone.
    ///
    /// # Errors
    /// `Config` if the store lies in another one.
    async fn take_store_over(&self, recorded: &RecordedStore, found: Option<&String>) -> Result<StoreCheck> {
        require_no_store_around(&self.objects).await?;
        self.objects.expect_id(None);
        // Two clients must not give the store two ids.
        let key = ObjectKey { bucket: String::new(), path: "store".to_owned() };
        let guard = self.lock(&key, LOCK_TIMEOUT).await?;
        let id = self.take_locked_store(recorded, found).await;
        guard.release().await;
        let Some(id) = id? else { return Ok(StoreCheck::Overtaken) };
        self.accept_store(id);
        self.record_place().await?;
        Ok(StoreCheck::Passed)
    }

    /// Records the id `found` of a store that got it late.
    async fn adopt_store(&self, recorded: &RecordedStore, found: &str) -> Result<StoreCheck> {
        let values = vec![found.to_owned().into(), recorded.id.clone().into()];
        if self.service.execute(&sql::SET_STORE, values, |_| Ok(())).await?.is_none() {
            return Ok(StoreCheck::Overtaken);
        }
        self.service.flush_commits().await?;
        self.accept_store(found.to_owned());
        Ok(StoreCheck::Passed)
    }

    /// Requires the lock of the store. Returns its new id; `None` if another client has taken it. `judged` is the id that the store had
    /// when the caller decided to take it.
    pub(super) async fn take_locked_store(
        &self,
        recorded: &RecordedStore,
        judged: Option<&String>,
    ) -> Result<Option<String>> {
        let found = self.objects.read_id().await?;
        // A client of this database or of another one has taken the store meanwhile.
        if self.recorded_store().await? != *recorded || found.as_ref() != judged {
            return Ok(None);
        }
        // Always a new id: nobody knows whether a store without an id is the store that the database records. With that id, a second
        // place would pass for the first one.
        let may_come_late = found.is_none() && recorded.is_own && !recorded.id.is_empty() && self.objects.is_remote();
        let id = if self.objects.is_volatile() {
            MEMORY_ID.to_owned()
        } else if may_come_late {
            // The write of the recorded id had no answer, perhaps, and may still happen.
            id_after(&recorded.id)
        } else {
            Uuid::new_v4().simple().to_string()
        };
        // First in the database: a store with an id that no database records would look like the store of another database.
        let values = vec![id.clone().into(), recorded.id.clone().into()];
        // The lease of a client that stood still may have ended meanwhile: a store must not get the id that the database refuses.
        if self.service.execute(&sql::SET_STORE, values, |_| Ok(())).await?.is_none() {
            return Ok(None);
        }
        self.service.flush_commits().await?;
        // The holder of a lease that has ended does not replace an id.
        let is_written = self.objects.write_id(&id, found.is_none()).await?;
        // The lock of a client that stood still may have ended, and another client has recorded another id.
        Ok((is_written && self.recorded_store().await?.id == id).then_some(id))
    }

    /// Has a folder record its place. A folder that cannot be written, for example on a full disk, does so later.
    async fn record_place(&self) -> Result<()> {
        match self.objects.record_place().await {
            Err(error) if error.kind() == ErrorKind::Closed => Err(error),
            Err(error) => {
                tracing::debug!(%error, "the place of the folder is not recorded yet");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn accept_store(&self, id: String) {
        self.objects.expect_id(Some(&id));
        *self.store_id.lock() = Some(id);
    }

    /// Refuses a store with objects for a database without large files: they are of another database.
    async fn refuse_foreign_objects(&self) -> Result<()> {
        for (bucket, _) in Buckets::stored(&self.service).await? {
            if let Some(object) = self.objects.list(&bucket).await?.next_page().await?.first() {
                return Err(Error::config(format!(
                    "Option storage_url: the object store has files that this database does not know, such as \
                     {bucket}/{}: it belongs to another database. Move them away to start with an empty store",
                    object.path
                )));
            }
        }
        Ok(())
    }

    pub(super) async fn recorded_store(&self) -> Result<RecordedStore> {
        let read = |row: &Row<'_>| Ok(RecordedStore { id: row.get(0)?, is_own: row.get(1)? });
        self.service.fetch_one(&sql::GET_STORE, &[], read).await
    }

    /// A few large files.
    pub(super) async fn first_objects(&self) -> Result<Vec<StoredObject>> {
        self.service.fetch(&sql::FIRST_OBJECTS, &[], rows::stored_object).await
    }
}

/// The id that a remote store gets if it does not have the recorded one.
fn id_after(recorded: &str) -> String {
    let mut id = blake3::hash(recorded.as_bytes()).to_hex().to_string();
    id.truncate(32);
    id
}

/// Whether a remote store with the id `found` is the one of a database that records another id: the write of an id got no answer, another
/// id was recorded, and the store got the first one later, or both.
fn is_late(recorded: &str, found: Option<&str>) -> bool {
    let is_later = |id: &str, other: &str| {
        std::iter::successors(Some(id_after(id)), |id| Some(id_after(id))).take(MOST_LATE_IDS).any(|id| id == other)
    };
    found.is_some_and(|found| !recorded.is_empty() && (is_later(found, recorded) || is_later(recorded, found)))
}

/// The error for a store that does not have the files of the database.
async fn other_store(objects: &Objects, recorded: &str, found: Option<&str>) -> Result<Error> {
    let (found, advice) = match found {
        Some(found) => (
            format!("its id is {found}"),
            "If it is of another database, which nobody uses any more, open this one once with claim_store=true"
                .to_owned(),
        ),
        None if objects.exists().await? => {
            let id = if recorded.is_empty() { "a new UUID" } else { recorded };
            let advice = format!(
                "If it is the right store after all, give it the id: write {id} into .townsquare/store. If it is an empty folder in \
                 place of the store, mount the store, or restore it from a backup"
            );
            ("it has no id".to_owned(), advice)
        }
        None => ("it does not exist".to_owned(), "Mount it, or restore it from a backup".to_owned()),
    };
    let expected = match recorded {
        "" => "has none of the files of this database, or belongs to another one".to_owned(),
        recorded => format!("is not the one with the files of this database, whose id is {recorded}"),
    };
    Ok(Error::config(format!(
        "Option storage_url: the object store {expected}; {found}. Nothing was changed. {advice}"
    )))
}

fn other_store_taken() -> Error {
    Error::file(503, "Another client gives the database another object store")
}

fn foreign_store(recorded: &str, found: Option<&str>) -> Error {
    let found = found.unwrap_or_default();
    let other_place = match recorded {
        "" => String::new(),
        recorded => format!(
            " (this database has a store with the id {recorded}: if another of its clients has another storage_url or data_dir, give \
             them one)"
        ),
    };
    Error::config(format!(
        "Option storage_url: the object store belongs to another database; its id is {found}{other_place}. If nobody uses that \
         database any more, open this one once with claim_store=true"
    ))
}

fn store_of_original() -> Error {
    Error::config(
        "Option storage_url: this database is a copy, and its object store is that of the original, so its large files can \
         only be read. If nobody uses the original any more, open the copy once with claim_store=true. If both stay, copy \
         the files to a store for this copy, and open it once with that storage_url and claim_store=true",
    )
}
