//! The calls of a simulation.

use super::{
    BUCKET, SPACE, USER, bucket_of,
    feed::BackedUpFile,
    history::{Call, Found, History},
};
use crate::{
    database::{Row, Statement},
    error::{Error, Result},
    model::{ListFiles, Overwrite, UploadOptions},
    storage::Storage,
};

static FILES: Statement = Statement::new(
    "SELECT files.path, files.etag, contents.content FROM townsquare.files AS files
     LEFT JOIN townsquare.file_contents AS contents ON contents.bucket = files.bucket AND contents.path = files.path",
);

/// What a sign-out everywhere does to uploads. The session stays, so that the user goes on.
pub(super) static REVOKE: Statement = Statement::new(
    "UPDATE townsquare.credentials SET url_generation = url_generation + 1 WHERE user_id = $1 RETURNING 1",
);

static DELETE_SPACE: Statement = Statement::new("DELETE FROM spaces WHERE id = $1 RETURNING 1");

/// Runs the call with this number.
pub(super) async fn run(storage: &Storage, call: Call, number: usize) -> Result<Found> {
    match call {
        Call::Upload { path, size, if_match, upsert } => {
            let options = UploadOptions { upsert: upsert || if_match.is_some(), if_match, ..UploadOptions::new() };
            let data = History::content(number, size);
            storage.upload(bucket_of(path), path, data, options).await.map(Found::Info)
        }
        Call::Delete { path } => storage.delete(bucket_of(path), path).await.map(|()| Found::Nothing),
        Call::Read { path } => {
            let reader = storage.reader(bucket_of(path), path).await?;
            let bytes = reader.read_at(0..reader.info().size).await?;
            Ok(Found::File(reader.info().clone(), bytes))
        }
        Call::Copy { from, to } => storage.copy(BUCKET, from, to, Overwrite::Replace).await.map(Found::Info),
        Call::Move { from, to } => storage.move_file(BUCKET, from, to, Overwrite::Replace).await.map(Found::Info),
        Call::List => storage.list(BUCKET, ListFiles::new()).await.map(Found::List),
        Call::Repair => storage.repair().await.map(|_| Found::Nothing),
        Call::Revoke => {
            storage.core.service.execute(&REVOKE, vec![USER.into()], |_| Ok(())).await.map(|_| Found::Nothing)
        }
        Call::DeleteSpace => {
            storage.core.service.execute(&DELETE_SPACE, vec![SPACE.into()], |_| Ok(())).await.map(|_| Found::Nothing)
        }
        Call::Backup => back_up(storage).await.map(Found::Backup),
    }
}

/// Reads one moment of all files, as a backup and an export do.
async fn back_up(storage: &Storage) -> Result<Vec<BackedUpFile>> {
    let mut moment = storage.take_moment().await?;
    let mut database = moment.database.take().ok_or_else(Error::closed)?;
    let read = |row: &Row<'_>| {
        Ok(BackedUpFile { path: row.get(0)?, etag: row.get(1)?, bytes: row.get_optional(2)?.unwrap_or_default() })
    };
    let mut files = database.scan(&FILES, Vec::new(), read).await?;
    drop(database);
    for object in std::mem::take(&mut moment.objects) {
        let reader = moment.open(&object).await?;
        let bytes = reader.read(0..reader.size()).await?;
        if blake3::hash(&bytes).to_hex().as_str() != object.digest {
            moment.damaged.add(&object.bucket, &object.path, "the bytes are not those that were written");
        }
        if let Some(file) = files.iter_mut().find(|file| file.path == object.path) {
            file.bytes = bytes;
        }
    }
    moment.end("The backup lacks").await?;
    Ok(files)
}
