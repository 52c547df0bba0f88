//! The catalog in the database (DESIGN 6): all processes on the database share it, and it is the fallback if the
//! upstream fails.
//!
//! Invariant: all parts of the generation that a header names are stored. `save` writes the parts of a new generation in
//! short transactions, then checks them and writes the header in one, then deletes the parts of the generation that it
//! replaced. If the stored generation has the same records, it writes the header only. An older catalog never replaces
//! a newer one. The holder of a lease cannot save after another process has taken the lease. Parts that no header names
//! may belong to a save that runs: they are deleted only [`ORPHAN_AGE`] after they were written.

mod lists;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    catalog::{CatalogData, CatalogHeader, ListKey, MiniAppRecord},
    clock::{Clock, later},
    database::{HeldLease, LeaseRenewal, Row, Scope, Statement, Transaction, Value},
    error::{Error, ErrorKind, Result},
    threads::BlockingPool,
};

/// The stored catalog of one source, and the lease on fetching it.
pub(super) struct CatalogStore {
    /// Acts for the service: the catalog has no policies.
    database: Scope,
    source: Arc<str>,
    clock: Clock,
    /// Parses and serializes catalogs.
    blocking: BlockingPool,
    /// Identifies this client as the holder of a lease.
    holder: Uuid,
    /// True after a stored catalog could not be read: the next save writes all of it.
    is_damaged: AtomicBool,
}

/// A catalog's header as it is stored. Older libraries ignore the fields besides `header`.
#[derive(Serialize, Deserialize)]
struct StoredHeader<H> {
    #[serde(flatten)]
    header: H,
    /// [`hash_records`] of the records.
    #[serde(default)]
    records_hash: String,
    /// When the stored records were fetched again and had not changed. Their own times are older.
    #[serde(default)]
    unchanged_at: Option<Timestamp>,
}

/// A row of the catalog table: everything but the records.
pub(super) struct StoredCatalog {
    pub(super) fetched_at: Timestamp,
    generation: String,
    parts: i64,
    header: String,
}

/// The result of an attempt to write a header.
enum HeaderWrite {
    /// Written; it replaced the header of this generation, if there was one.
    Written(Option<String>),
    /// A newer catalog is stored.
    Outdated,
    /// A part of the generation is missing.
    PartsMissing,
}

/// The age at which parts that no header names were left by a save that never ended.
const ORPHAN_AGE: Duration = Duration::from_secs(3_600);
/// The number of records in a part.
const PART_RECORDS: usize = 1_000;
/// The number of parts deleted in one transaction.
const PARTS_PER_DELETE: i64 = 10;

static FIND: Statement =
    Statement::new("SELECT generation, parts, fetched_at, header FROM townsquare.catalog WHERE source = $1");
static READ_PART: Statement =
    Statement::new("SELECT records FROM townsquare.catalog_parts WHERE generation = $1 AND part = $2");
static WRITE_PART: Statement = Statement::new(
    "INSERT INTO townsquare.catalog_parts (generation, part, source, records, written_at) VALUES ($1, $2, $3, $4, $5)",
);
static COUNT_PARTS: Statement = Statement::new("SELECT count(*) FROM townsquare.catalog_parts WHERE generation = $1");
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
/// Replaces the header of a stored generation unless a newer one is stored.
static WRITE_HEADER_OF_GENERATION: Statement = Statement::new(
    "UPDATE townsquare.catalog SET fetched_at = $4, header = $5
    WHERE source = $1 AND generation = $2 AND parts = $3 AND (fetched_at <= $4 OR fetched_at > $6)
    RETURNING source",
);
static DELETE_PARTS: Statement = Statement::new(
    "DELETE FROM townsquare.catalog_parts WHERE generation = $1 AND part >= $2 AND part < $3
    AND generation NOT IN (SELECT generation FROM townsquare.catalog)",
);
static UNUSED_GENERATIONS: Statement = Statement::new(
    "SELECT generation, max(part), max(written_at) FROM townsquare.catalog_parts WHERE source = $1
    AND generation NOT IN (SELECT generation FROM townsquare.catalog WHERE source = $1) GROUP BY generation",
);
/// Sets the time of parts without a time and of parts with a time in the future. An older library, or a process with a clock that
/// was ahead, wrote them. They may belong to a save that runs.
static DATE_PARTS: Statement = Statement::new(
    "UPDATE townsquare.catalog_parts SET written_at = $2
    WHERE generation = $1 AND (written_at IS NULL OR written_at > $2)",
);

impl CatalogStore {
    pub(super) fn new(database: Scope, source: String, clock: Clock, blocking: BlockingPool) -> CatalogStore {
        let is_damaged = AtomicBool::new(false);
        CatalogStore { database, source: source.into(), clock, blocking, holder: Uuid::new_v4(), is_damaged }
    }

    /// The database's time, which all its processes compare; the client's own time if the database does not answer.
    pub(super) async fn now(&self) -> Timestamp {
        self.database.now().await.unwrap_or_else(|_| self.clock.now())
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
        let loaded = self.load_parts().await;
        self.is_damaged.store(loaded.is_err(), Ordering::Release);
        loaded
    }

    async fn load_parts(&self) -> Result<Option<CatalogData>> {
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
        let StoredHeader::<CatalogHeader> { header, unchanged_at, .. } =
            serde_json::from_str(&stored.header).map_err(|_| invalid("its header cannot be parsed"))?;
        let mut records: Vec<MiniAppRecord> = Vec::new();
        for part in 0..stored.parts {
            let values = [stored.generation.as_str().into(), part.into()];
            let text = self.database.fetch_optional(&READ_PART, &values, |row| row.get::<String>(0)).await?;
            let Some(text) = text else { return Ok(None) };
            let part = self.blocking.run(move || serde_json::from_str::<Vec<MiniAppRecord>>(&text)).await?;
            records.extend(part.map_err(|_| invalid("a part cannot be parsed"))?);
        }
        if let Some(at) = unchanged_at {
            records.iter_mut().for_each(|record| record.fetched_again(at));
        }
        CatalogData::restore(header, records).map(Some).ok_or_else(|| invalid("a list names a record that is missing"))
    }

    /// Takes the lease on the next fetch of a list, `None` for the main one; returns `None` if another process holds it.
    pub(super) async fn take_lease(&self, list: Option<&ListKey>, length: Duration) -> Result<Option<HeldLease>> {
        let name = match list {
            None => self.source.to_string(),
            Some(list) => format!("{}#{}", self.source, list.name()),
        };
        self.database.take_lease(&name, self.holder, length).await
    }

    /// Stores the main list of a catalog, unless a newer one is stored.
    ///
    /// # Errors
    /// `Unavailable` if another process has taken `lease` meanwhile; the errors of the database.
    pub(super) async fn save(&self, data: &CatalogData, lease: Option<&HeldLease>) -> Result<()> {
        let data = data.main_list();
        let records = data.records.clone();
        let hash = self.blocking.run(move || hash_records(&records)).await?;
        if !self.save_unchanged(&data, &hash, lease).await? {
            self.save_all(&data, &hash, lease).await?;
            self.is_damaged.store(false, Ordering::Release);
        }
        self.delete_orphans().await
    }

    /// Stores the header alone, if the stored generation has the same records. Returns false if the records must be
    /// stored.
    async fn save_unchanged(&self, data: &CatalogData, hash: &str, lease: Option<&HeldLease>) -> Result<bool> {
        // A header that cannot be read is replaced.
        let Ok(Some(stored)) = self.find().await else { return Ok(false) };
        let is_unchanged = serde_json::from_str::<StoredHeader<CatalogHeader>>(&stored.header)
            .is_ok_and(|old| old.records_hash == hash);
        if !is_unchanged || self.is_damaged.load(Ordering::Acquire) {
            return Ok(false);
        }
        let values =
            self.header_values(data, stored.generation, stored.parts, hash, Some(data.header.fetched_at)).await?;
        let written = self.write_header(&WRITE_HEADER_OF_GENERATION, values, stored.parts, lease).await?;
        Ok(!matches!(written, HeaderWrite::PartsMissing))
    }

    /// Stores the records and the header. Starts again if an older library deleted the parts meanwhile.
    async fn save_all(&self, data: &CatalogData, hash: &str, lease: Option<&HeldLease>) -> Result<()> {
        for _ in 0..3 {
            let generation = Uuid::new_v4().to_string();
            let parts = self.write_parts(data, &generation).await?;
            let values = self.header_values(data, generation.clone(), parts, hash, None).await?;
            match self.write_header(&WRITE_HEADER, values, parts, lease).await {
                Ok(HeaderWrite::Written(replaced)) => {
                    return match replaced {
                        Some(replaced) => self.delete_generation(replaced).await,
                        None => Ok(()),
                    };
                }
                Ok(HeaderWrite::PartsMissing) => self.delete_generation(generation).await?,
                Ok(HeaderWrite::Outdated) => return self.delete_generation(generation).await,
                Err(error) => {
                    self.delete_generation(generation).await?;
                    return Err(error);
                }
            }
        }
        Err(internal("Another process deletes the catalog that this one saves"))
    }

    /// Writes the parts of a new generation, each in a short transaction, and returns their number.
    async fn write_parts(&self, data: &CatalogData, generation: &str) -> Result<i64> {
        let mut parts = 0i64;
        for records in data.records.chunks(PART_RECORDS) {
            let records = records.to_vec();
            let text = self
                .blocking
                .run(move || serde_json::to_string(&records))
                .await?
                .map_err(|error| internal("The catalog cannot be serialized").caused_by(error))?;
            let source = self.source.to_string();
            let now = self.database.now().await?;
            let values = [generation.to_owned().into(), parts.into(), source.into(), text.into(), now.into()];
            self.write(&WRITE_PART, values.into()).await?;
            parts += 1;
        }
        Ok(parts)
    }

    /// The values of [`WRITE_HEADER`] and [`WRITE_HEADER_OF_GENERATION`].
    async fn header_values(
        &self,
        data: &CatalogData,
        generation: String,
        parts: i64,
        hash: &str,
        unchanged_at: Option<Timestamp>,
    ) -> Result<Vec<Value<'static>>> {
        let header = StoredHeader { header: &data.header, records_hash: hash.to_owned(), unchanged_at };
        let header = serde_json::to_string(&header)
            .map_err(|error| internal("The catalog's header cannot be serialized").caused_by(error))?;
        Ok(vec![
            self.source.to_string().into(),
            generation.into(),
            parts.into(),
            data.header.fetched_at.into(),
            header.into(),
            self.database.now().await?.into(),
        ])
    }

    /// Runs a statement that writes the header of a generation of `parts` parts. The same transaction extends the lease and
    /// checks that every part is stored.
    async fn write_header(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        parts: i64,
        lease: Option<&HeldLease>,
    ) -> Result<HeaderWrite> {
        let renewal = renewal_of(lease).await?;
        let write = self.database.write(move |transaction| {
            Box::pin(async move {
                require_lease(transaction, renewal.as_ref()).await?;
                let stored = transaction.fetch_optional(&COUNT_PARTS, &values[1..2], |row| row.get::<i64>(0)).await?;
                if stored != Some(parts) {
                    return Ok(HeaderWrite::PartsMissing);
                }
                let replaced = transaction.fetch_optional(&FIND, &values[..1], |row| row.get::<String>(0)).await?;
                let written = transaction.fetch_optional(statement, &values, |row| row.get::<String>(0)).await?;
                Ok(written.map_or(HeaderWrite::Outdated, |_| HeaderWrite::Written(replaced)))
            })
        });
        write.await
    }

    /// Runs a statement in its own transaction. Returns the number of rows that it changed.
    async fn write(&self, statement: &'static Statement, values: Vec<Value<'static>>) -> Result<u64> {
        let write = self
            .database
            .write(move |transaction| Box::pin(async move { transaction.execute(statement, &values).await }));
        write.await
    }

    /// Deletes the parts left by saves that never ended.
    async fn delete_orphans(&self) -> Result<()> {
        let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get_optional::<Timestamp>(2)?));
        let unused = self.database.fetch(&UNUSED_GENERATIONS, &[(&*self.source).into()], read).await?;
        let now = self.database.now().await?;
        for (generation, written_at) in unused {
            match written_at.filter(|written_at| *written_at <= now) {
                None => {
                    self.write(&DATE_PARTS, vec![generation.into(), now.into()]).await?;
                }
                Some(written_at) if later(written_at, ORPHAN_AGE) <= now => self.delete_generation(generation).await?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Deletes the parts of a generation, some per transaction, so that other writers need not wait long. Does nothing if a
    /// header names the generation.
    async fn delete_generation(&self, generation: String) -> Result<()> {
        for start in (0..).step_by(PARTS_PER_DELETE as usize) {
            let end: i64 = start + PARTS_PER_DELETE;
            if self.write(&DELETE_PARTS, vec![generation.clone().into(), start.into(), end.into()]).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl StoredCatalog {
    /// The number of apps in the default order.
    pub(super) fn ranked(&self) -> usize {
        serde_json::from_str::<CatalogHeader>(&self.header).map_or(0, |header| header.ranked)
    }
}

/// A hash of the records and their order, without the times of their fetch.
fn hash_records(records: &[MiniAppRecord]) -> String {
    let mut hasher = blake3::Hasher::new();
    records.iter().for_each(|record| record.hash_content(&mut hasher));
    hasher.finalize().to_hex().to_string()
}

fn invalid(why: &str) -> Error {
    internal(format!("The catalog stored in the database cannot be used: {why}"))
}

fn internal(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Internal, message)
}

async fn renewal_of(lease: Option<&HeldLease>) -> Result<Option<LeaseRenewal>> {
    match lease {
        Some(lease) => lease.renewal().await.map(Some),
        None => Ok(None),
    }
}

/// Renews a lease inside a transaction, which then changes nothing if the lease was lost.
///
/// # Errors
/// `Unavailable` if another process has taken the lease.
async fn require_lease(transaction: &mut Transaction<'_>, renewal: Option<&LeaseRenewal>) -> Result<()> {
    match renewal {
        Some(renewal) if !renewal.renew(transaction).await? => {
            Err(Error::unavailable("Another process has taken over the refresh of the catalog"))
        }
        _ => Ok(()),
    }
}
