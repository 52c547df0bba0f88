//! Copies files out of the store, for an export and for a backup.
//!
//! Invariant: no file is left out silently. A file whose bytes are gone or of another size is named in the error.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Storage,
    buckets::{Buckets, FileTarget, NO_PLACE, target_of},
    host_file::{self, TargetFile, check_progress},
    moment::Moment,
    rows, statements as sql,
};
use crate::{error::Result, model::StoredObject, objects::CHUNK};

/// An export that runs.
struct Export<'a, P> {
    storage: &'a Storage,
    folder: &'a Path,
    progress: P,
    done: u64,
    /// The number of all files, as far as it is known.
    all: u64,
}

impl Storage {
    pub(super) async fn export(
        &self,
        target: &Path,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<u64> {
        self.require_service()?;
        let (core, folder) = (Arc::clone(&self.core), target.to_owned());
        self.core.runtime.blocking.run(move || core.objects.require_outside(&folder)).await??;
        host_file::create_export_folder(&self.core.runtime.blocking, target).await?;
        let all = self.scope.fetch_one(&sql::COUNT, &[], |row| row.get::<i64>(0)).await?.unsigned_abs();
        let mut moment = self.take_moment().await?;
        let mut export = Export { storage: self, folder: target, progress, done: 0, all };
        export.copy_inline(&mut moment).await?;
        let buckets = Buckets::stored(&self.scope).await?;
        for object in std::mem::take(&mut moment.objects) {
            let file = target_of(&buckets, &object.bucket, &object.path)?;
            if self.copy_out(&object, &file, &mut moment, target).await? {
                export.count()?;
            }
        }
        moment.end("The export lacks").await?;
        Ok(export.done)
    }

    /// Copies an object of a moment to `FOLDER/BUCKET/PATH`. Returns false if it is damaged: then `moment` names it.
    pub(super) async fn copy_out(
        &self,
        object: &StoredObject,
        file: &FileTarget,
        moment: &mut Moment,
        folder: &Path,
    ) -> Result<bool> {
        let (reader, mut position) = (moment.open(object).await?, 0);
        let mut written = self.create_target(file, folder).await?;
        let mut hasher = blake3::Hasher::new();
        while position < reader.size() {
            let chunk = reader.read(position..position + CHUNK).await?;
            position += chunk.len() as u64;
            hasher.update(&chunk);
            written.write(&self.core.runtime.blocking, chunk).await?;
        }
        if !object.digest.is_empty() && hasher.finalize().to_hex().as_str() != object.digest {
            moment.damaged.add(&object.bucket, &object.path, "the bytes are not those that were written");
            return Ok(false);
        }
        written.install(&self.core.runtime.blocking).await?;
        Ok(true)
    }

    /// Creates the file `FOLDER/BUCKET/PATH` and the folders above it.
    async fn create_target(&self, file: &FileTarget, folder: &Path) -> Result<TargetFile> {
        let pool = &self.core.runtime.blocking;
        let target = place(folder, &file.bucket, file.path.as_str());
        if let Some(above) = target.parent() {
            host_file::create_folders(pool, above.to_owned()).await?;
        }
        // On a file system that ignores case, a second file must not replace the first.
        TargetFile::new(pool, target).await
    }
}

impl<P: FnMut(u64, u64) -> ControlFlow<()> + Send> Export<'_, P> {
    /// Counts a file that was copied.
    fn count(&mut self) -> Result<()> {
        self.done += 1;
        check_progress((self.progress)(self.done, self.all.max(self.done)))
    }

    /// Copies the files whose bytes are in the database. Ends the moment of the database.
    async fn copy_inline(&mut self, moment: &mut Moment) -> Result<()> {
        let Some(mut database) = moment.database.take() else { return Ok(()) };
        let (pool, damaged) = (&self.storage.core.runtime.blocking, &mut moment.damaged);
        let buckets = Buckets::stored(&self.storage.scope).await?;
        let (mut bucket, mut path) = (String::new(), String::new());
        loop {
            let after = vec![bucket.into(), path.into()];
            let files = database.scan(&sql::INLINE_AFTER, after, rows::inline_file).await?;
            let Some(last) = files.last() else { return Ok(()) };
            (bucket, path) = (last.bucket.clone(), last.path.clone());
            for file in files {
                let Ok(target) = target_of(&buckets, &file.bucket, &file.path) else {
                    damaged.add(&file.bucket, &file.path, NO_PLACE);
                    continue;
                };
                match file.content {
                    Some(content) if content.len() as u64 == file.size => {
                        let mut written = self.storage.create_target(&target, self.folder).await?;
                        written.write(pool, content).await?;
                        written.install(pool).await?;
                        self.count()?;
                    }
                    Some(content) => {
                        let reason = format!("The stored bytes are {}, but the file has {}", content.len(), file.size);
                        damaged.add(&file.bucket, &file.path, &reason);
                    }
                    None => damaged.add(&file.bucket, &file.path, "the bytes of the file are gone"),
                }
            }
        }
    }
}

/// The place of a file in a folder with the layout of SPEC 2.8.
pub(super) fn place(folder: &Path, bucket: &str, path: &str) -> PathBuf {
    let mut place = folder.join(bucket);
    place.extend(path.split('/'));
    place
}
