//! Copies files out of the store, for an export and for a backup.
//!
//! Invariant: no file is left out silently. A file whose bytes are gone or of another size is named in the error.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use super::{
    Storage,
    buckets::{Buckets, Target},
    host_file::{self, TargetFile, check_progress},
    list::{PAGE, end_of_prefix},
    rows::readable_info,
    statements as sql,
};
use crate::{
    error::{Error, ErrorKind, Result},
    model::FileInfo,
};

/// The damaged files that a message names.
const NAMED: usize = 10;

/// A copied file and the BLAKE3 digest of its bytes, in hex.
pub(super) type CopiedFile = (FileInfo, String);

/// The files whose bytes are gone or of another size, with the reasons.
#[derive(Default)]
pub(super) struct DamagedFiles(Vec<String>);

impl DamagedFiles {
    /// # Errors
    /// `Internal` (500), naming the files, if there are any.
    pub(super) fn into_result(self, what_lacks_them: &str) -> Result<()> {
        let DamagedFiles(mut files) = self;
        let count = files.len();
        if count == 0 {
            return Ok(());
        }
        files.truncate(NAMED);
        let more = if count > NAMED { format!(", and {} more", count - NAMED) } else { String::new() };
        let files = files.join(", ");
        Err(Error::file(500, format!("{what_lacks_them} {count} damaged files: {files}{more}")))
    }
}

impl Storage {
    pub(super) async fn export(
        &self,
        target: &Path,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<u64> {
        self.require_service()?;
        let pool = &self.core.runtime.blocking;
        host_file::create_export_folder(pool, target).await?;
        let all = self.scope.fetch_one(&sql::COUNT, &[], |row| row.get::<i64>(0)).await?.unsigned_abs();
        let (mut done, mut damaged) = (0, DamagedFiles::default());
        for (bucket, access) in Buckets::stored(&self.scope).await? {
            let mut after: Option<String> = None;
            loop {
                let files = self.export_page(&bucket, after.as_deref()).await?;
                let Some(last) = files.last() else { break };
                after = Some(last.path.clone());
                for file in files {
                    let file = Target::new(&file.bucket, &file.path, access)?;
                    if self.copy_out(&file, target, &mut damaged).await?.is_some() {
                        done += 1;
                        check_progress(progress(done, all.max(done)))?;
                    }
                }
            }
        }
        damaged.into_result("The export lacks")?;
        Ok(done)
    }

    /// The next files of a bucket, which the configuration need not declare.
    async fn export_page(&self, bucket: &str, after: Option<&str>) -> Result<Vec<FileInfo>> {
        let statement = if after.is_some() { &sql::LIST_AFTER } else { &sql::LIST_FROM };
        let values =
            [bucket.into(), after.unwrap_or_default().into(), end_of_prefix("").into(), i64::from(PAGE).into()];
        let rows = self.scope.fetch(statement, &values, readable_info).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Copies a file to `FOLDER/BUCKET/PATH`. `None` if it was deleted meanwhile, and if it is damaged: then adds it to
    /// `damaged`.
    pub(super) async fn copy_out(
        &self,
        file: &Target,
        folder: &Path,
        damaged: &mut DamagedFiles,
    ) -> Result<Option<CopiedFile>> {
        let error = match self.try_copy_out(file, folder).await {
            Ok(copied) => return Ok(Some(copied)),
            Err(error) => error,
        };
        let name = format!("{}/{}", file.bucket, file.path);
        match error.status() {
            Some(404) => match self.find_row(file).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                found => drop(found?),
            },
            Some(500) => {}
            _ => {
                let reason = error.reason().unwrap_or_else(|| error.message().to_owned());
                return Err(error.with_reason(format!("{name}: {reason}")));
            }
        }
        let reason = error.reason().unwrap_or_else(|| error.message().to_owned());
        damaged.0.push(format!("{name} ({reason})"));
        Ok(None)
    }

    async fn try_copy_out(&self, file: &Target, folder: &Path) -> Result<CopiedFile> {
        let mut reader = self.open_reader_of(file.clone()).await?;
        let pool = &self.core.runtime.blocking;
        let target = place(folder, &file.bucket, file.path.as_str());
        if let Some(above) = target.parent() {
            host_file::create_folders(pool, above.to_owned()).await?;
        }
        // On a file system that ignores case, a second file must not replace the first.
        let mut written = TargetFile::create(pool, target, false).await?;
        let mut hasher = blake3::Hasher::new();
        while let Some(chunk) = reader.next_chunk().await? {
            hasher.update(&chunk);
            written.write(pool, chunk).await?;
        }
        written.install(pool).await?;
        Ok((reader.info().clone(), hasher.finalize().to_hex().to_string()))
    }
}

/// The place of a file in a folder with the layout of SPEC 2.8.
pub(super) fn place(folder: &Path, bucket: &str, path: &str) -> PathBuf {
    let mut place = folder.join(bucket);
    place.extend(path.split('/'));
    place
}
