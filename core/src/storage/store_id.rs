//! The identity of the object store: an id in the store and in the database.
//!
//! Invariant: nothing in a store is changed before its id is that of the database. So a wrong, empty or unmounted store costs
//! no file: the database does not open with it, and `repair` fails and deletes nothing.

use std::time::Duration;

use uuid::Uuid;

use super::{
    buckets::Buckets,
    core::{LOCK_TIMEOUT, StorageCore},
    statements as sql,
};
use crate::{
    database::Row,
    error::{Error, ErrorKind, Result},
    objects::{MEMORY_ID, ObjectKey},
};

/// How long `open` waits for a remote store.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// What follows the check of a store for a database that has no large file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Inline files need no store, so any store is fine.
    Open,
    /// The objects of another database must not be removed.
    Repair,
    /// The database takes the store over.
    Write,
}

impl StorageCore {
    /// Checks at `open` that the database's files are in the store. A remote store is not called while there are none.
    ///
    /// # Errors
    /// `Config` if the store is another one. If the store does not answer, the check is left to the first call that needs it.
    pub(super) async fn check_store_at_open(&self) -> Result<()> {
        if self.objects.is_remote() && self.recorded_id().await?.is_empty() && self.first_objects().await?.is_empty() {
            return Ok(());
        }
        let error = match tokio::time::timeout(OPEN_TIMEOUT, self.check_store(Next::Open)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) if error.kind() == ErrorKind::Config => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => Error::file(504, "The object store does not answer"),
        };
        tracing::warn!(%error, "the object store could not be checked");
        Ok(())
    }

    /// Checks the store once for the client. The first large file of a database takes the store over.
    ///
    /// # Errors
    /// `Config` if the store is another one.
    pub(super) async fn require_store(&self) -> Result<()> {
        let is_checked = self.store_id.lock().is_some();
        if is_checked { Ok(()) } else { self.check_store(Next::Write).await }
    }

    /// Does what [`require_store`](Self::require_store) does, and checks that no other client gave the database another store
    /// since.
    ///
    /// # Errors
    /// `Config` if the store is another one.
    pub(super) async fn require_current_store(&self) -> Result<()> {
        let checked = self.store_id.lock().clone();
        match checked {
            Some(checked) if checked == self.recorded_id().await? => Ok(()),
            _ => self.check_store(Next::Write).await,
        }
    }

    /// Checks the store anew, for `repair`.
    ///
    /// # Errors
    /// `Config` if the store is another one; those of the object store.
    pub(super) async fn recheck_store(&self) -> Result<()> {
        self.check_store(Next::Repair).await
    }

    async fn check_store(&self, next: Next) -> Result<()> {
        *self.store_id.lock() = None;
        loop {
            let recorded = self.recorded_id().await?;
            match self.compare_store(&recorded, next).await {
                // Another client took the store over meanwhile, and may have written objects.
                Err(_) if self.recorded_id().await? != recorded => {}
                compared => return compared,
            }
        }
    }

    async fn compare_store(&self, recorded: &str, next: Next) -> Result<()> {
        let found = self.objects.read_id().await?;
        if let Some(found) = found.as_ref().filter(|found| *found == recorded) {
            self.accept_store(found.clone());
            return Ok(());
        }
        let files = self.first_objects().await?;
        // The bytes that a store in memory had are lost anyway.
        let is_unknown = recorded.is_empty() || recorded == MEMORY_ID;
        if files.is_empty() {
            if next != Next::Open {
                self.refuse_foreign_objects().await?;
            }
            if next != Next::Write {
                return Ok(());
            }
        } else if !is_unknown || (recorded.is_empty() && !self.has_any(&files).await?) {
            return Err(other_store(recorded, found.as_deref()));
        }
        self.take_store_over(recorded).await
    }

    /// Records the id of the store, which gets one if it has none.
    async fn take_store_over(&self, recorded: &str) -> Result<()> {
        self.objects.expect_id(None);
        // Two clients must not give the store two ids.
        let key = ObjectKey { bucket: String::new(), path: "store".to_owned() };
        let guard = self.lock(&key, LOCK_TIMEOUT).await?;
        let id = match self.objects.read_id().await {
            Ok(None) => {
                let id = Uuid::new_v4().simple().to_string();
                self.objects.write_id(&id).await.map(|()| id)
            }
            found => found.map(Option::unwrap_or_default),
        };
        guard.release(self).await;
        let id = id?;
        let values = vec![id.clone().into(), recorded.to_owned().into()];
        let is_recorded = self.service.execute(&sql::SET_STORE_ID, values, |_| Ok(())).await?.is_some();
        if !is_recorded && self.recorded_id().await? != id {
            return Err(Error::file(503, "Another client gives the database another object store"));
        }
        self.accept_store(id);
        Ok(())
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

    /// Whether the store has one of these files.
    async fn has_any(&self, files: &[(ObjectKey, u64)]) -> Result<bool> {
        for (key, size) in files {
            if self.objects.open_object(key).await?.is_some_and(|object| object.size == *size) {
                return Ok(true);
            }
        }
        Ok(self.objects.is_volatile())
    }

    /// The id of the database's store; empty if there is none yet.
    async fn recorded_id(&self) -> Result<String> {
        self.service.fetch_one(&sql::GET_STORE_ID, &[], |row| row.get::<String>(0)).await
    }

    /// A few large files and their sizes.
    async fn first_objects(&self) -> Result<Vec<(ObjectKey, u64)>> {
        let read = |row: &Row<'_>| {
            Ok((ObjectKey { bucket: row.get(0)?, path: row.get(1)? }, row.get::<i64>(2)?.unsigned_abs()))
        };
        self.service.fetch(&sql::FIRST_OBJECTS, &[], read).await
    }
}

fn other_store(recorded: &str, found: Option<&str>) -> Error {
    let found = found.map_or_else(|| "it has no id".to_owned(), |found| format!("its id is {found}"));
    let expected = match recorded {
        "" => "has none of the files of this database".to_owned(),
        recorded => format!("is not the one with the files of this database, whose id is {recorded}"),
    };
    Error::config(format!(
        "Option storage_url: the object store {expected}; {found}. Nothing was changed. If it is the right store after all, \
         give it the id: write {} into .townsquare/store",
        if recorded.is_empty() { "a new UUID" } else { recorded }
    ))
}
