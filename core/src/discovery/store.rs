//! The catalog in the database (DESIGN 6): all processes on the database share it, and it is the fallback if the
//! upstream fails.
//!
//! Invariant: a header names a generation whose parts are all stored. `save` writes the parts of a new generation in
//! short transactions, then the header in one, then deletes the parts of older generations in short transactions. An
//! older catalog never replaces a newer one.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    catalog::{CatalogData, CatalogHeader, MiniAppRecord},
    catalog_thread::CatalogThread,
    clock::{Clock, later},
    database::{Row, Scope, Statement},
    error::{Error, ErrorKind, Result},
};

/// The stored catalog of one source, and the lease on fetching it.
pub(super) struct CatalogStore {
    /// Acts for the service: the catalog has no policies.
    database: Scope,
    source: Arc<str>,
    clock: Clock,
    catalog_thread: Arc<CatalogThread>,
    /// Identifies this client as the holder of a lease.
    holder: Uuid,
}

/// A row of the catalog table: everything but the records.
pub(super) struct StoredCatalog {
    pub(super) fetched_at: Timestamp,
    generation: String,
    parts: i64,
    header: String,
}

/// The number of records in a part.
const PART_RECORDS: usize = 1_000;
/// The number of parts deleted in one transaction.
const PARTS_PER_DELETE: i64 = 10;

static FIND: Statement =
    Statement::new("SELECT generation, parts, fetched_at, header FROM townsquare.catalog WHERE source = $1");
static READ_PART: Statement =
    Statement::new("SELECT records FROM townsquare.catalog_parts WHERE generation = $1 AND part = $2");
static WRITE_PART: Statement =
    Statement::new("INSERT INTO townsquare.catalog_parts (generation, part, source, records) VALUES ($1, $2, $3, $4)");
/// Replaces the header unless a newer one is stored. A stored time in the future ($6 is now) was written by a wrong
/// clock and is replaced.
static WRITE_HEADER: Statement = Statement::new(
    "INSERT INTO townsquare.catalog AS catalog (source, generation, parts, fetched_at, header)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (source) DO UPDATE SET generation = excluded.generation, parts = excluded.parts,
        fetched_at = excluded.fetched_at, header = excluded.header
    WHERE catalog.fetched_at <= excluded.fetched_at OR catalog.fetched_at > $6
    RETURNING source",
);
static LAST_PART: Statement = Statement::new("SELECT max(part) FROM townsquare.catalog_parts WHERE source = $1");
static DELETE_UNUSED_PARTS: Statement = Statement::new(
    "DELETE FROM townsquare.catalog_parts WHERE source = $1 AND part >= $2 AND part < $3
    AND generation NOT IN (SELECT generation FROM townsquare.catalog WHERE source = $1)",
);
static TAKE_LEASE: Statement = Statement::new(
    "INSERT INTO townsquare.leases AS leases (name, holder, held_until) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
    WHERE leases.held_until <= $4 OR leases.holder = excluded.holder
    RETURNING name",
);
static END_LEASE: Statement =
    Statement::new("DELETE FROM townsquare.leases WHERE name = $1 AND holder = $2 RETURNING name");

impl CatalogStore {
    pub(super) fn new(
        database: Scope,
        source: String,
        clock: Clock,
        catalog_thread: Arc<CatalogThread>,
    ) -> CatalogStore {
        CatalogStore { database, source: source.into(), clock, catalog_thread, holder: Uuid::new_v4() }
    }

    /// The stored catalog without its records.
    pub(super) async fn find(&self) -> Result<Option<StoredCatalog>> {
        let read = |row: &Row<'_>| {
            let (generation, parts, fetched_at, header) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(StoredCatalog { fetched_at, generation, parts, header })
        };
        self.database.fetch_optional(&FIND, &[(&*self.source).into()], read).await
    }

    /// Reads the stored catalog; `None` if there is none.
    pub(super) async fn load(&self) -> Result<Option<CatalogData>> {
        // Another process may replace the catalog while its parts are read: then read the new one.
        for _ in 0..3 {
            let Some(stored) = self.find().await? else { return Ok(None) };
            if let Some(data) = self.read_parts(stored).await? {
                return Ok(Some(data));
            }
        }
        Err(invalid("parts are missing"))
    }

    /// Reads the records; `None` if a part is missing.
    async fn read_parts(&self, stored: StoredCatalog) -> Result<Option<CatalogData>> {
        let header: CatalogHeader =
            serde_json::from_str(&stored.header).map_err(|_| invalid("its header cannot be parsed"))?;
        let mut records: Vec<MiniAppRecord> = Vec::new();
        for part in 0..stored.parts {
            let values = [stored.generation.as_str().into(), part.into()];
            let text = self.database.fetch_optional(&READ_PART, &values, |row| row.get::<String>(0)).await?;
            let Some(text) = text else { return Ok(None) };
            let part = self.catalog_thread.run(move || serde_json::from_str::<Vec<MiniAppRecord>>(&text)).await?;
            records.extend(part.map_err(|_| invalid("a part cannot be parsed"))?);
        }
        CatalogData::restore(header, records).map(Some).ok_or_else(|| invalid("a list names a record that is missing"))
    }

    /// Stores a catalog, unless a newer one is stored.
    pub(super) async fn save(&self, data: &CatalogData) -> Result<()> {
        let generation = Uuid::new_v4().to_string();
        let mut parts = 0i64;
        for records in data.records.chunks(PART_RECORDS) {
            let records = records.to_vec();
            let text = self
                .catalog_thread
                .run(move || serde_json::to_string(&records))
                .await?
                .map_err(|error| internal("The catalog cannot be serialized").caused_by(error))?;
            let values = [generation.clone().into(), parts.into(), self.source.to_string().into(), text.into()];
            let write = self.database.write(move |transaction| {
                Box::pin(async move {
                    transaction.forget_pages();
                    transaction.execute(&WRITE_PART, &values).await
                })
            });
            write.await?;
            parts += 1;
        }
        let header = serde_json::to_string(&data.header)
            .map_err(|error| internal("The catalog's header cannot be serialized").caused_by(error))?;
        let values = vec![
            self.source.to_string().into(),
            generation.into(),
            parts.into(),
            data.header.fetched_at.into(),
            header.into(),
            self.clock.now().into(),
        ];
        self.database.execute(&WRITE_HEADER, values, |row| row.get::<String>(0)).await?;
        self.delete_unused_parts().await
    }

    /// Deletes the parts that no header names, some per transaction, so that other writers need not wait long.
    async fn delete_unused_parts(&self) -> Result<()> {
        let last =
            self.database.fetch_optional(&LAST_PART, &[(&*self.source).into()], |row| row.get_optional(0)).await?;
        let end = last.flatten().map_or(0, |last: i64| last + 1);
        for start in (0..end).step_by(PARTS_PER_DELETE as usize) {
            let values = [self.source.to_string().into(), start.into(), (start + PARTS_PER_DELETE).into()];
            let write = self.database.write(move |transaction| {
                Box::pin(async move {
                    transaction.forget_pages();
                    transaction.execute(&DELETE_UNUSED_PARTS, &values).await
                })
            });
            write.await?;
        }
        Ok(())
    }

    /// Acquires the lease on the next fetch; false if another process holds it.
    pub(super) async fn take_lease(&self, length: Duration) -> Result<bool> {
        let now = self.clock.now();
        let (name, holder) = (self.source.to_string(), self.holder.to_string());
        let values = vec![name.into(), holder.into(), later(now, length).into(), now.into()];
        Ok(self.database.execute(&TAKE_LEASE, values, |row| row.get::<String>(0)).await?.is_some())
    }

    /// Releases the lease.
    pub(super) async fn end_lease(&self) -> Result<()> {
        let values = vec![self.source.to_string().into(), self.holder.to_string().into()];
        self.database.execute(&END_LEASE, values, |row| row.get::<String>(0)).await.map(drop)
    }
}

impl StoredCatalog {
    /// The number of apps in the default order.
    pub(super) fn ranked(&self) -> usize {
        serde_json::from_str::<CatalogHeader>(&self.header).map_or(0, |header| header.ranked)
    }
}

fn invalid(why: &str) -> Error {
    internal(format!("The catalog stored in the database cannot be used: {why}"))
}

fn internal(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Internal, message)
}
