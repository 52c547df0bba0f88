//! The files of a backup: large files are copied beside the copy of the database, and installed with it.
//!
//! Invariant: each row of the copied database describes the bytes that the backup has: both are of one moment. A backup with
//! missing files is not installed.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Storage,
    buckets::{Buckets, is_place, target_of},
    export::place,
    host_file,
    moment::Moment,
    store_id::require_outside_stores,
};
use crate::{
    database::{ReservedPlace, Restore, prepare_backup, prepare_restore, refuse_unfinished_restore, reserve_place},
    error::{Error, Result, is_out_of_descriptors, is_out_of_space},
    model::StoredObject,
};

/// The folder of the files in a folder of a database.
const FILES: &str = "files";

impl Storage {
    /// Writes a copy of the database to `target`, with its files.
    ///
    /// # Errors
    /// `InvalidInput` if there is a folder or a file `target` or `<target>.files`, and on PostgreSQL; `Internal`, naming the
    /// files, if the bytes of files are gone or of another size.
    pub(crate) async fn back_up(&self, target: &Path) -> Result<()> {
        let pool = &self.core.runtime.blocking;
        let other_tools = "A PostgreSQL database is backed up with its own tools (pg_dump, pg_basebackup)";
        let no_sqlite = || Error::invalid_input(other_tools);
        if !self.scope.is_embedded() {
            return Err(no_sqlite());
        }
        let files = files_of(target);
        let target = target.to_owned();
        let core = Arc::clone(&self.core);
        let prepare = move || core.objects.require_outside(&target).and_then(|()| prepare_backup(&target, &files));
        let prepared = pool.run(prepare).await??;
        if !self.core.objects.has_locks() && !self.core.objects.is_volatile() {
            let copy = self.scope.moment().await?.copy_to(prepared).await?.ok_or_else(no_sqlite)?;
            let copy = pool.run(move || copy.leave_objects().and_then(|()| copy.verified())).await??;
            return pool.run(move || copy.install()).await?;
        }
        let folder = prepared.files();
        let mut moment = self.take_moment().await?;
        let database = moment.database.take().ok_or_else(no_sqlite)?;
        let copy = database.copy_to(prepared).await?.ok_or_else(no_sqlite)?;
        drop(database);
        self.copy_objects(&mut moment, &folder).await?;
        moment.end("The backup would lack").await?;
        let copy = pool.run(move || copy.verified()).await??;
        pool.run(move || copy.install()).await?
    }

    async fn copy_objects(&self, moment: &mut Moment, folder: &Path) -> Result<()> {
        let buckets = Buckets::stored(&self.scope).await?;
        for object in std::mem::take(&mut moment.objects) {
            let file = target_of(&buckets, &object.bucket, &object.path)?;
            self.copy_out(&object, &file, moment, folder).await?;
        }
        Ok(())
    }
}

/// Installs a backup in the folder `data_dir`, with its files.
///
/// # Errors
/// `Config` if the backup is damaged or not complete (XX001), or if `data_dir` has a database or files; `Unavailable` if the disk is
/// full. Nothing is installed then.
pub(crate) fn restore(source: &Path, data_dir: &Path) -> Result<()> {
    let _folders = NewFolders::of(data_dir);
    stage(source, data_dir)?.install()
}

/// Does everything but the last step of a restore, and removes what it has written.
///
/// # Errors
/// Those of [`restore`].
pub(crate) fn try_restore(source: &Path, data_dir: &Path) -> Result<()> {
    refuse_unfinished_restore(data_dir)?;
    let _folders = NewFolders::of(data_dir);
    stage(source, data_dir)?.try_install()
}

/// The folders that a restore to a folder has to make, the innermost first. Dropping it removes those that are empty.
#[derive(Debug)]
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    fn of(data_dir: &Path) -> NewFolders {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        NewFolders(data_dir.ancestors().take_while(is_missing).map(Path::to_owned).collect())
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Fails for a folder with something in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The place of a database that a restore is prepared for: nobody opens a new database there meanwhile. Dropping it ends that, and
/// removes the folders that it made, if they are empty.
#[derive(Debug)]
pub struct RestorePlace {
    // Fields are dropped in this order.
    _place: ReservedPlace,
    _folders: NewFolders,
}

impl RestorePlace {
    /// Reserves the folder of a database.
    ///
    /// # Errors
    /// `Config` if the folder has a database, or if nothing can be written there.
    pub fn reserve(data_dir: &Path) -> Result<RestorePlace> {
        require_outside_stores(data_dir)?;
        let folders = NewFolders::of(data_dir);
        Ok(RestorePlace { _place: reserve_place(data_dir, &data_dir.join(FILES))?, _folders: folders })
    }
}

/// Checks a backup, and copies its files beside the place of the restored database.
fn stage(source: &Path, data_dir: &Path) -> Result<Restore> {
    require_outside_stores(data_dir)?;
    let restore = prepare_restore(source, data_dir, &data_dir.join(FILES))?;
    let (from, to) = (files_of(source), restore.files());
    for object in restore.objects() {
        install_file(object, &from, &to).map_err(cannot_install)?.map_err(|why| match source.exists() {
            true => Error::damaged_file(format!("The backup is not complete: {}/{} {why}", object.bucket, object.path)),
            false => Error::config(format!("The backup {} was removed while it was restored", source.display())),
        })?;
    }
    Ok(restore)
}

fn cannot_install(error: io::Error) -> Error {
    let message = format!("Cannot install the files of the backup: {error}");
    match (is_out_of_space(&error), is_out_of_descriptors(&error)) {
        (true, _) => Error::disk_full(message),
        (false, true) => Error::unavailable(message),
        (false, false) => Error::config(message),
    }
    .caused_by(error)
}

/// Copies one file; the inner error says why the backup does not have it.
fn install_file(object: &StoredObject, from: &Path, to: &Path) -> io::Result<Result<(), &'static str>> {
    // The rows come from the backup, which may be a stranger's.
    if !is_place(&object.bucket, &object.path) {
        return Ok(Err("is not the name of a file"));
    }
    let source = place(from, &object.bucket, &object.path);
    // No symbolic link leads out of the backup.
    match fs::symlink_metadata(&source) {
        Ok(metadata) if !metadata.is_file() => return Ok(Err("is no regular file")),
        Ok(metadata) if metadata.len() != object.size => return Ok(Err("has another size")),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Err("is missing"));
        }
        Err(error) => return Err(error),
    }
    let target = place(to, &object.bucket, &object.path);
    let digest = host_file::copy_private(&source, &target)?;
    Ok(if digest == object.digest { Ok(()) } else { Err("is damaged") })
}

/// The folder of a backup's files.
fn files_of(target: &Path) -> PathBuf {
    let mut name: OsString = target.as_os_str().to_owned();
    name.push(".files");
    PathBuf::from(name)
}
