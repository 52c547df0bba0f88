//! The catalog in the database: for the fallback, and for the other processes on it (DESIGN 6).
//!
//! Invariant: a header names a generation whose parts are all there. A new generation is written part by part, in
//! short transactions that hold up nobody, and takes effect with its header, in one; then the parts of older ones go,
//! as slowly. An older data never replaces a newer one.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    catalog::{CatalogData, Header, MiniAppRecord},
    catalog_thread::CatalogThread,
    clock::{Clock, later},
    database::{Row, Scope, Statement, Value},
    error::{Error, ErrorKind, Result},
};

/// The catalogs of one source.
#[derive(Clone)]
pub(super) struct Store {
    /// The service's: the catalog has no policies of its own.
    pub(super) database: Scope,
    pub(super) source: Arc<str>,
    pub(super) clock: Clock,
    pub(super) catalog_thread: Arc<CatalogThread>,
    /// This process's client, as holder of leases.
    pub(super) holder: Uuid,
}

/// What the database says about the catalog it has, without its records.
pub(super) struct Found {
    pub(super) fetched_at: Timestamp,
    generation: String,
    parts: i64,
    header: String,
}

/// Records in one part.
const PART: usize = 1_000;
/// Parts removed at once.
const SWEPT: i64 = 10;

static FIND: Statement =
    Statement::new("SELECT generation, parts, fetched_at, header FROM townsquare.catalog WHERE source = $1");
static READ_PART: Statement =
    Statement::new("SELECT records FROM townsquare.catalog_parts WHERE generation = $1 AND part = $2");
static WRITE_PART: Statement =
    Statement::new("INSERT INTO townsquare.catalog_parts (generation, part, source, records) VALUES ($1, $2, $3, $4)");
/// A stored time ahead of our clock was written by a clock that was wrong, and does not count.
static WRITE_HEADER: Statement = Statement::new(
    "INSERT INTO townsquare.catalog AS catalog (source, generation, parts, fetched_at, header)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (source) DO UPDATE SET generation = excluded.generation, parts = excluded.parts,
        fetched_at = excluded.fetched_at, header = excluded.header
    WHERE catalog.fetched_at <= excluded.fetched_at OR catalog.fetched_at > $6",
);
static LAST_PART: Statement = Statement::new("SELECT max(part) FROM townsquare.catalog_parts WHERE source = $1");
static SWEEP: Statement = Statement::new(
    "DELETE FROM townsquare.catalog_parts WHERE source = $1 AND part >= $2 AND part < $3
    AND generation NOT IN (SELECT generation FROM townsquare.catalog WHERE source = $1)",
);
static TAKE_LEASE: Statement = Statement::new(
    "INSERT INTO townsquare.leases AS leases (name, holder, held_until) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
    WHERE leases.held_until <= $4 OR leases.holder = excluded.holder",
);
static END_LEASE: Statement = Statement::new("DELETE FROM townsquare.leases WHERE name = $1 AND holder = $2");

impl Store {
    /// What is there, if anything.
    pub(super) async fn find(&self) -> Result<Option<Found>> {
        let read = |row: &Row<'_>| {
            Ok(Found { generation: row.get(0)?, parts: row.get(1)?, fetched_at: row.get(2)?, header: row.get(3)? })
        };
        Ok(self.database.fetch(&FIND, &[(&*self.source).into()], read).await?.pop())
    }

    /// The whole data, unless there is none.
    pub(super) async fn load(&self) -> Result<Option<CatalogData>> {
        // Another process may replace the data while its parts are being read; then the new one is read.
        for _ in 0..3 {
            let Some(found) = self.find().await? else { return Ok(None) };
            if let Some(data) = self.read(found).await? {
                return Ok(Some(data));
            }
        }
        Err(damaged("its parts are not all there"))
    }

    async fn read(&self, found: Found) -> Result<Option<CatalogData>> {
        let header: Header = serde_json::from_str(&found.header).map_err(|_| damaged("its header does not read"))?;
        let mut records: Vec<MiniAppRecord> = Vec::new();
        for part in 0..found.parts {
            let values = [found.generation.as_str().into(), part.into()];
            let texts = self.database.fetch(&READ_PART, &values, |row| row.get::<String>(0)).await?;
            let Some(text) = texts.into_iter().next() else { return Ok(None) };
            let read = self.catalog_thread.run(move || serde_json::from_str::<Vec<MiniAppRecord>>(&text)).await?;
            records.extend(read.map_err(|_| damaged("a part does not read"))?);
        }
        CatalogData::restore(header, records).map(Some).ok_or_else(|| damaged("its numbers do not fit"))
    }

    /// Keeps an data, unless a newer one is there.
    pub(super) async fn save(&self, data: &CatalogData) -> Result<()> {
        let generation: Arc<str> = Uuid::new_v4().to_string().into();
        let mut parts = 0i64;
        for chunk in data.records.chunks(PART) {
            let chunk = chunk.to_vec();
            let text = self
                .catalog_thread
                .run(move || serde_json::to_string(&chunk))
                .await?
                .map_err(|error| internal("the catalog does not serialise").caused_by(error))?;
            let (generation, source, part) = (Arc::clone(&generation), Arc::clone(&self.source), parts);
            let write = self.database.write(move |transaction| {
                Box::pin(async move {
                    transaction.forget_pages();
                    let values = [(&*generation).into(), part.into(), (&*source).into(), text.into()];
                    transaction.execute(&WRITE_PART, &values).await
                })
            });
            write.await?;
            parts += 1;
        }
        let header = serde_json::to_string(&data.header)
            .map_err(|error| internal("the catalog's header does not serialise").caused_by(error))?;
        let (source, fetched_at, now) = (Arc::clone(&self.source), data.header.fetched_at, self.clock.now());
        let write = self.database.write(move |transaction| {
            Box::pin(async move {
                let values: [Value<'_>; 6] = [
                    (&*source).into(),
                    (&*generation).into(),
                    parts.into(),
                    fetched_at.into(),
                    header.into(),
                    now.into(),
                ];
                transaction.execute(&WRITE_HEADER, &values).await
            })
        });
        write.await?;
        self.sweep().await
    }

    /// Removes the parts that no header names, some at a time: nobody waits long for it, and no cache fills with them.
    async fn sweep(&self) -> Result<()> {
        let last = self.database.fetch(&LAST_PART, &[(&*self.source).into()], |row| row.get_optional::<i64>(0)).await?;
        let end = last.into_iter().flatten().next().map_or(0, |last| last + 1);
        for start in (0..end).step_by(SWEPT as usize) {
            let source = Arc::clone(&self.source);
            let write = self.database.write(move |transaction| {
                Box::pin(async move {
                    transaction.forget_pages();
                    let values = [(&*source).into(), start.into(), (start + SWEPT).into()];
                    transaction.execute(&SWEEP, &values).await
                })
            });
            write.await?;
        }
        Ok(())
    }

    /// Claims the next fetch for this process; false when another one is at it.
    pub(super) async fn take_lease(&self, length: Duration) -> Result<bool> {
        let (name, holder, now) = (Arc::clone(&self.source), self.holder.to_string(), self.clock.now());
        let until = later(now, length);
        let write = self.database.write(move |transaction| {
            Box::pin(async move {
                let values = [(&*name).into(), holder.into(), until.into(), now.into()];
                transaction.execute(&TAKE_LEASE, &values).await
            })
        });
        Ok(write.await? > 0)
    }

    /// Lets others fetch again.
    pub(super) async fn end_lease(&self) -> Result<()> {
        let (name, holder) = (Arc::clone(&self.source), self.holder.to_string());
        let write = self.database.write(move |transaction| {
            Box::pin(async move { transaction.execute(&END_LEASE, &[(&*name).into(), holder.into()]).await })
        });
        write.await.map(drop)
    }
}

impl Found {
    /// How many apps its default order has.
    pub(super) fn ranked(&self) -> usize {
        serde_json::from_str::<Header>(&self.header).map_or(0, |header| header.ranked)
    }
}

fn damaged(how: &str) -> Error {
    internal(format!("The catalog kept in the database cannot be used: {how}"))
}

fn internal(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::Internal, message)
}
