//! The embedded engine: one SQLite file, readers on the calling thread, one writer thread.
//!
//! Invariant: every write of this client goes through the writer, so writers never fight for the lock; reads never
//! wait for them (WAL). Reads run where the caller is because a thread hop costs twice what a point read does.

pub(super) mod columns;
mod connection;
mod errors;
mod migrate;
mod open;
mod readers;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub(super) use self::connection::Connection;
use self::{errors::translate, readers::Readers, writer::Writer};
use super::{OpenOptions, Row, Transaction, Value, Work, row::Columns};
use crate::error::{Error, Result};

/// An open SQLite database.
#[derive(Clone)]
pub(super) struct Sqlite(Arc<Parts>);

struct Parts {
    readers: Readers,
    writer: Writer,
}

impl Sqlite {
    pub(super) fn open(file: PathBuf, folder: Option<&Path>, options: &OpenOptions) -> Result<Sqlite> {
        let connection = open::writer(&file, folder, options)?;
        let readers = Readers::new(file, options.busy_timeout);
        Ok(Sqlite(Arc::new(Parts { readers, writer: Writer::start(connection)? })))
    }

    pub(super) fn fetch<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.0.readers.with(|connection| connection.fetch(sql, values, read))
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.0.writer.submit(writer::job(work, answer))?;
        // The writer answers every job it took, unless it was torn down with the process's last handle.
        answered.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    pub(super) fn close(&self) {
        self.0.writer.close();
        self.0.readers.close();
    }
}

/// Reads the rows of a running statement.
fn rows<T>(rows: &mut rusqlite::Rows<'_>, read: impl Fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(translate)? {
        all.push(read(&Row(Columns::Sqlite(row)))?);
    }
    Ok(all)
}
