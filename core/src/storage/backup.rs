//! The files of a backup: large files are copied beside the copy of the database, and installed with it.
//!
//! Invariant: each row of the copied database describes the bytes that the backup has. A backup whose files are not complete
//! is not installed.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

use super::{
    Storage,
    buckets::{BucketAccess, Buckets, Target},
    export::{DamagedFiles, place},
    host_file,
};
use crate::{
    database::{BackupCopy, BackupObject, Restore},
    error::{Error, Result},
};

impl Storage {
    /// Copies the files of a copied database, as the service, and gives the database its name.
    ///
    /// # Errors
    /// `InvalidInput` if there is a folder or a file `<target>.files`; `Internal`, naming the files, if the bytes of files are
    /// gone or of another size.
    pub(crate) async fn back_up(&self, copy: BackupCopy, target: &Path) -> Result<()> {
        let folder = files_of(target);
        let pool = &self.core.runtime.blocking;
        if !self.core.objects.has_locks() {
            return pool.run(move || copy.leave_objects().and_then(|()| copy.install())).await?;
        }
        if folder.exists() {
            let folder = folder.display();
            return Err(Error::invalid_input(format!("{folder} exists; a backup does not overwrite files")));
        }
        let mut unfinished = RemovedOnDrop(Some(folder.clone()));
        let copy = self.copy_files(copy, &folder).await?;
        pool.run(move || copy.install()).await??;
        unfinished.0 = None;
        Ok(())
    }

    async fn copy_files(&self, mut copy: BackupCopy, folder: &Path) -> Result<BackupCopy> {
        let pool = &self.core.runtime.blocking;
        let buckets: BTreeMap<String, BucketAccess> = Buckets::stored(&self.scope).await?.into_iter().collect();
        let mut damaged = DamagedFiles::default();
        let (mut bucket, mut path) = (String::new(), String::new());
        loop {
            let list = move || {
                let objects = copy.objects_after(&bucket, &path);
                (copy, objects)
            };
            let (listed, objects) = pool.run(list).await?;
            copy = listed;
            let objects = objects?;
            let Some(last) = objects.last() else { break };
            (bucket, path) = (last.bucket.clone(), last.path.clone());
            for object in objects {
                // The table of files refers to no bucket that is not in the table of buckets.
                let access = buckets.get(&object.bucket).copied().unwrap_or(BucketAccess::Private);
                let file = Target::new(&object.bucket, &object.path, access)?;
                let copied = self.copy_out(&file, folder, &mut damaged).await?;
                let update = move || {
                    let updated = match copied {
                        None => copy.remove_object(&object.bucket, &object.path),
                        Some((info, digest)) if info.etag != object.etag || digest != object.digest => {
                            copy.set_object(&info, &digest)
                        }
                        Some(_) => Ok(()),
                    };
                    (copy, updated)
                };
                let (updated, result) = pool.run(update).await?;
                copy = updated;
                result?;
            }
        }
        damaged.into_result("The backup would lack")?;
        Ok(copy)
    }
}

/// Checks the files of a backup and installs them in `data_dir`.
///
/// # Errors
/// `Config` if a file is missing or damaged, or if `data_dir` has files. Nothing is installed then.
pub(crate) fn restore_files(restore: &Restore, source: &Path, data_dir: &Path) -> Result<()> {
    let (folder, target) = (files_of(source), data_dir.join("files"));
    let cannot =
        |error: io::Error| Error::config(format!("Cannot install the files of the backup: {error}")).caused_by(error);
    let mut staging = RemovedOnDrop(None);
    let (mut bucket, mut path) = (String::new(), String::new());
    loop {
        let objects = restore.objects_after(&bucket, &path)?;
        let Some(last) = objects.last() else { break };
        (bucket, path) = (last.bucket.clone(), last.path.clone());
        let staged = match &staging.0 {
            Some(staged) => staged.clone(),
            None => {
                if fs::read_dir(&target).is_ok_and(|mut entries| entries.next().is_some()) {
                    let target = target.display();
                    return Err(Error::config(format!("{target} has files; a restore does not overwrite files")));
                }
                let staged = data_dir.join(format!(".files-{}", Uuid::new_v4().simple()));
                staging.0 = Some(staged.clone());
                staged
            }
        };
        for object in objects {
            install_file(&object, &folder, &staged).map_err(cannot)?.map_err(|why| {
                Error::config(format!("The backup is not complete: {}/{} {why}", object.bucket, object.path))
            })?;
        }
    }
    if let Some(staged) = staging.0.clone() {
        // An empty folder is in the way on some systems.
        let _ = fs::remove_dir(&target);
        fs::rename(&staged, &target).and_then(|()| host_file::sync_folder(data_dir)).map_err(cannot)?;
        staging.0 = None;
    }
    Ok(())
}

/// Copies one file; the inner error says why the backup does not have it.
fn install_file(object: &BackupObject, from: &Path, to: &Path) -> io::Result<Result<(), &'static str>> {
    let source = place(from, &object.bucket, &object.path);
    // No symbolic link leads out of the backup.
    match fs::symlink_metadata(&source) {
        Ok(metadata) if metadata.is_file() && metadata.len() == object.size => {}
        Ok(_) => return Ok(Err("has another size")),
        Err(_) => return Ok(Err("is missing")),
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

/// A folder that is removed when it is dropped, unless it was completed.
struct RemovedOnDrop(Option<PathBuf>);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // There is no folder if there are no files.
            let _ = fs::remove_dir_all(folder);
        }
    }
}
