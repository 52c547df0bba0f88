//! Copies of the SQLite database with its files, and their restore.

use std::path::Path;

use super::Client;
#[cfg(feature = "sqlite")]
use crate::config::check_data_dir;
use crate::{
    database::call,
    error::{Operation, Result},
    threads::BoxedFuture,
};

impl Client {
    /// Writes a copy of the SQLite database to the file `target`, as the database is at one moment. Other calls may write
    /// meanwhile.
    ///
    /// Small files are in the database. The large ones are copied to the folder `<target>.files`, at `BUCKET/PATH`, as they are
    /// at the same moment. If the files are in a remote object store (`s3://…`), they stay there and the copy has their rows
    /// only. The copy has its name when it is complete; a process that is killed leaves a folder `<target>.….part`, which the
    /// next backup to `target` removes.
    ///
    /// A backup is an operation of the host, not of a caller: every handle may make one, and the copy has every row and file
    /// of the database, also the rows and files that policies hide from the handle's caller. A host that lets its users choose a
    /// target must check the target first. The copy contains password hashes and the hashes of session tokens, but not the key of
    /// signed URLs.
    ///
    /// # Errors
    /// `InvalidInput` if `target` or `<target>.files` exists, and on PostgreSQL, which has its own tools for backups. `Config` if
    /// `target` cannot be written: its folder is missing or not writable, or the path is empty or has a NUL. `Internal`, naming the
    /// files, if the bytes of files are gone or of another size: there is no backup then. Upload or delete these files, or call [`repair`](crate::storage::Storage::repair). `Unavailable` if the disk is full, or if files
    /// change faster than the backup can follow.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let copy = folder.path().join("backup.db");
    /// client.backup(&copy)?;
    /// townsquare::Client::restore(&copy, folder.path().join("restored"))?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn backup(&self, target: impl AsRef<Path>) -> Result<()> {
        call(self.0.auth.principal(), Operation::Backup, self.back_up(target.as_ref())).await
    }

    #[cfg(feature = "sqlite")]
    fn back_up<'a>(&'a self, target: &'a Path) -> BoxedFuture<'a, Result<()>> {
        Box::pin(async move { self.as_service().storage().back_up(target).await })
    }

    #[cfg(not(feature = "sqlite"))]
    fn back_up<'a>(&'a self, _target: &'a Path) -> BoxedFuture<'a, Result<()>> {
        let refusal = "A PostgreSQL database is backed up with its own tools (pg_dump, pg_basebackup)";
        Box::pin(async move { Err(crate::error::Error::invalid_input(refusal)) })
    }

    /// Installs a copy made by [`backup`](Client::backup) in the folder `data_dir`, with the files of `<source>.files`. Blocks
    /// the thread.
    ///
    /// The restored database has its own incarnation id and its own key of signed URLs, so signed URLs of the original are
    /// refused. It has the users, the sessions and the tokens of recovery and verification of the backup: each session and token
    /// is valid in both databases, in each until it ends there. Files that stayed in a remote store can be read; see
    /// [`claim_store`](crate::Config::claim_store) for changing them.
    ///
    /// Either everything is restored or nothing: after an error, or after the process was killed, the call can be repeated. While
    /// it runs, `open` of `data_dir` is `Unavailable`; after a kill it is `Config` until the call is repeated.
    ///
    /// # Errors
    /// `Unavailable` if the disk is full. `Config` if `source` is damaged, is no copy of a townsquare database or has a newer
    /// version, if a file's bytes are missing or damaged, and if `data_dir` already contains a database or files. Nothing is
    /// installed then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::{Config, blocking::Client};
    ///
    /// townsquare::Client::restore("/backups/town.db", "restored-town")?;
    /// let client = Client::open(Config::new().data_dir("restored-town"))?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    #[cfg(feature = "sqlite")]
    pub fn restore(source: impl AsRef<Path>, data_dir: impl AsRef<Path>) -> Result<()> {
        let restored = check_data_dir(data_dir.as_ref())
            .and_then(|()| crate::storage::restore(source.as_ref(), data_dir.as_ref()));
        restored.map_err(|error| error.with_operation(Operation::Restore))
    }

    /// Does what [`restore`](Client::restore) does but its last step, and removes what it has written. For the command.
    #[cfg(feature = "sqlite")]
    #[doc(hidden)]
    pub fn try_restore(source: impl AsRef<Path>, data_dir: impl AsRef<Path>) -> Result<()> {
        let tried = check_data_dir(data_dir.as_ref())
            .and_then(|()| crate::storage::try_restore(source.as_ref(), data_dir.as_ref()));
        tried.map_err(|error| error.with_operation(Operation::Restore))
    }
}
