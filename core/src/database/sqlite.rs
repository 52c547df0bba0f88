//! The embedded engine: one SQLite file, readers on the calling thread, one writer thread.
//!
//! Invariant: every write of this client goes through the writer, so writers never fight for the lock; reads never
//! wait for them (WAL). Reads run where the caller is because a thread hop costs twice what a point read does.

mod backup;
mod connection;
mod dialect;
mod errors;
mod migrate;
mod open;
mod readers;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::{runtime::Handle, sync::oneshot};

pub(super) use self::writer::Writing;
use self::{readers::Readers, writer::Writer};
use super::{OpenOptions, Principal, Read, Statement, Transaction, Value, Work};
use crate::error::{Error, ErrorKind, Result};

pub(crate) use self::backup::restore;

/// An open SQLite database.
#[derive(Clone)]
pub(super) struct Sqlite(Arc<Parts>);

struct Parts {
    readers: Readers,
    writer: Writer,
    runtime: Handle,
}

impl Sqlite {
    pub(super) async fn open(
        file: PathBuf,
        folder: Option<PathBuf>,
        options: OpenOptions,
        runtime: Handle,
    ) -> Result<Sqlite> {
        let of_database = runtime.clone();
        let open = move || {
            let connection = open::writer(&file, folder.as_deref(), &options)?;
            let readers = Readers::new(file, options.busy_timeout);
            Ok(Sqlite(Arc::new(Parts { readers, writer: Writer::start(connection)?, runtime: of_database })))
        };
        off_thread(&runtime, open).await
    }

    pub(super) fn fetch<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        self.0.readers.with(|connection| {
            connection.admitted(principal, |caller| connection.fetch(caller, statement, values, read))
        })
    }

    pub(super) async fn scan<T: Send + 'static>(
        &self,
        principal: Arc<Principal>,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let this = self.clone();
        off_thread(&self.0.runtime, move || this.fetch(&principal, statement, &values, read)).await
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        principal: Arc<Principal>,
        work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.0.writer.submit(writer::job(principal, work, answer))?;
        // The writer answers every job it took, unless it was torn down with the process's last handle.
        answered.await.unwrap_or_else(|_| Err(Error::closed()))
    }

    pub(super) async fn backup(&self, target: &Path) -> Result<()> {
        let (this, target) = (self.clone(), target.to_owned());
        off_thread(&self.0.runtime, move || this.0.readers.with(|connection| backup::copy(connection, &target))).await
    }

    pub(super) fn close(&self) {
        self.0.writer.close();
        self.0.readers.close();
    }
}

/// Runs what may take long on a thread that may wait.
async fn off_thread<T: Send + 'static>(
    runtime: &Handle,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    runtime.spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(if error.is_cancelled() {
            Error::closed()
        } else {
            Error::new(ErrorKind::Internal, "A read panicked").caused_by(error)
        })
    })
}
