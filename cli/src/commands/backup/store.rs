//! Copies in an object store: each is one object, a tar archive.
//!
//! Invariant: the object is there when it is whole, because the store makes it when the last part has come. The copy is first made on
//! this machine, as one of a file is, and then sent. A restore checks all of an archive before it installs anything.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    pin::pin,
};

use futures_util::future::{Either, select};
use jiff::Timestamp;
use townsquare::{BackupDownload, BackupStore, BackupUpload, Error, ErrorKind, storage::RestorePlace};

use super::{
    Copied,
    archive::{DATABASE, measure, pack, unpack},
    copy, create_folder,
    store_url::StoreUrl,
    work_folder::WorkFolder,
};
use crate::{
    context::Context,
    exit_code,
    failure::Failure,
    interrupt,
    output::note,
    progress::{Progress, Unit},
    runtime::block_on,
    settings::IfMissing,
};

/// The end of the name of a copy.
pub(super) const SUFFIX: &str = ".tar";

/// A folder of copies in a store.
pub(super) struct Place {
    store: BackupStore,
    pub(super) shown: String,
    /// Where the copy is made before it is sent.
    temp_dir: PathBuf,
}

impl Place {
    /// The folder of a URL. `temp_dir` is the option.
    pub(super) fn of_folder(url: &StoreUrl, temp_dir: Option<&Path>, context: &Context) -> Result<Place, Failure> {
        let store = BackupStore::of_folder(&url.url).map_err(|error| failure(&url.shown, &error))?;
        Place::new(store, url.shown.trim_end_matches('/'), temp_dir, context)
    }

    /// The folder of the object of a URL, and the name of the object.
    pub(super) fn of_object(
        url: &StoreUrl,
        temp_dir: Option<&Path>,
        context: &Context,
    ) -> Result<(Place, String), Failure> {
        let (store, name) = BackupStore::of_object(&url.url).map_err(|error| failure(&url.shown, &error))?;
        let folder = url.shown.rsplit_once('/').map_or("", |(folder, _)| folder);
        Ok((Place::new(store, folder, temp_dir, context)?, name))
    }

    fn new(store: BackupStore, shown: &str, temp_dir: Option<&Path>, context: &Context) -> Result<Place, Failure> {
        let temp_dir = match temp_dir {
            Some(folder) => folder.to_owned(),
            None => context.settings()?.data_dir(),
        };
        Ok(Place { store, shown: shown.to_owned(), temp_dir })
    }

    /// What is shown of an object.
    pub(super) fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.shown)
    }

    /// Checks that there is no object of a name.
    pub(super) fn check_new(&self, name: &str) -> Result<(), Failure> {
        let exists = block_on(self.store.exists(name))?.map_err(|error| failure(&self.object(name), &error))?;
        match exists {
            true => Err(Failure { code: exit_code::USAGE, ..exists_already(&self.object(name)) }),
            false => Ok(()),
        }
    }

    /// Checks that the store takes objects, with an upload to `name` that it does not complete.
    pub(super) fn check_writing(&self, name: &str) -> Result<(), Failure> {
        block_on(self.store.check_writing(name))?.map_err(|error| failure(&self.object(name), &error))
    }

    /// The names of the objects in the folder.
    pub(super) fn names(&self) -> Result<Vec<String>, Failure> {
        block_on(self.store.list())?.map_err(|error| failure(&self.shown, &error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Failure> {
        block_on(self.store.remove(name))?.map_err(|error| failure(&self.object(name), &error))
    }

    /// Makes a copy of the database, sends it, and removes it from this machine.
    pub(super) fn make(&self, name: &str, time: Timestamp, context: &Context) -> Result<Copied, Failure> {
        // A new client for each copy: the database may have been restored meanwhile.
        let client = context.open(IfMissing::FailReadOnly)?;
        let work = match WorkFolder::make(&self.temp_dir) {
            Ok(work) => work,
            Err(failed) => {
                block_on(client.close())?;
                return Err(failed);
            }
        };
        let made = match copy(&client, &work.path().join(DATABASE), context)? {
            Copied::Whole => self.send(work.path(), name, time, context),
            Copied::Interrupted => Ok(Copied::Interrupted),
        };
        if let Err(failed) = work.remove() {
            note(&format!("A copy stays on this machine: {}", failed.sentence.unwrap_or_default()));
        }
        made
    }

    fn send(&self, folder: &Path, name: &str, time: Timestamp, context: &Context) -> Result<Copied, Failure> {
        let sizes = measure(folder)?;
        let progress = Progress::new(&context.output, "uploading", Unit::Bytes);
        let failed = |error: &Error| failure(&self.object(name), error);
        let upload = block_on(self.store.upload(name, sizes.archive))?.map_err(|error| failed(&error))?;
        let mut sink = Sink { upload, ended: None };
        let mut done = 0;
        let packed = pack(folder, time, &mut sink, &mut |count| {
            done += count;
            // The sink notices a signal, too.
            let _ = progress.show(done, sizes.files);
        });
        let packed = packed.and_then(|()| sink.flush().map_err(|error| Failure::of_file(folder, &error)));
        match (sink.ended, packed) {
            (Some(Ended::BySignal), _) => return Ok(Copied::Interrupted),
            (Some(Ended::ByStore(error)), _) => return Err(failed(&error)),
            (Some(Ended::Failed(failure)), _) | (None, Err(failure)) => return Err(failure),
            (None, Ok(())) => {}
        }
        // From here on, the store may make the object: a signal waits.
        block_on(sink.upload.finish())?.map_err(|error| failed(&error))?;
        Ok(Copied::Whole)
    }

    /// Waits until the store has removed what was sent of a copy that failed.
    pub(super) fn close(self) {
        self.store.close();
    }
}

/// Sends the bytes of an archive in parts.
struct Sink {
    upload: BackupUpload,
    ended: Option<Ended>,
}

/// Why no more is sent.
enum Ended {
    BySignal,
    ByStore(Error),
    Failed(Failure),
}

impl Sink {
    fn send(&mut self) -> io::Result<()> {
        let sent = block_on(async {
            match select(pin!(self.upload.send()), pin!(interrupt::requested())).await {
                Either::Left((sent, _)) => sent.map_err(Ended::ByStore),
                Either::Right(_) => Err(Ended::BySignal),
            }
        });
        match sent.unwrap_or_else(|failure| Err(Ended::Failed(failure))) {
            Ok(()) => Ok(()),
            Err(ended) => self.end(ended),
        }
    }

    fn end(&mut self, ended: Ended) -> io::Result<()> {
        self.ended.get_or_insert(ended);
        Err(io::Error::other("the upload has ended"))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.ended.is_some() || interrupt::is_requested() {
            self.end(Ended::BySignal)?;
        }
        if self.upload.is_full() {
            self.send()?;
        }
        Ok(self.upload.add(bytes))
    }

    /// Sends the last part.
    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

/// A copy from a store, unpacked. Dropping it removes it.
pub(in crate::commands) struct Fetched {
    /// The file of the database.
    pub(in crate::commands) database: PathBuf,
    work: Option<WorkFolder>,
    /// The folders that were made for it, the innermost first.
    made: Vec<PathBuf>,
    /// Dropped last: it removes the folder of the database if that was made for it and is empty.
    _place: Option<RestorePlace>,
}

impl Drop for Fetched {
    fn drop(&mut self) {
        drop(self.work.take());
        for folder in &self.made {
            // Fails for a folder with something in it.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Reads a copy from a store, checks it, and unpacks it for a restore to the folder `target`: into `temp_dir`, or into `target`. Until
/// the result is dropped, nobody opens a new database in `target`, unless it is a dry run.
pub(in crate::commands) fn fetch(
    url: &StoreUrl,
    target: &Path,
    temp_dir: Option<&Path>,
    is_dry_run: bool,
    context: &Context,
) -> Result<Fetched, Failure> {
    // Otherwise the restore would say so after everything has been read.
    if fs::symlink_metadata(target.join(DATABASE)).is_ok() {
        let sentence = format!("There is a database in {} already", target.display());
        return Err(Failure::usage(sentence, "Name another folder, or move that database away."));
    }
    // Nobody makes a new database there while the copy is read, which may take hours.
    let place = if is_dry_run { None } else { Some(RestorePlace::reserve(target)?) };
    let (store, name) = BackupStore::of_object(&url.url).map_err(|error| failure(&url.shown, &error))?;
    let opened = block_on(store.download(&name))?;
    let fetched = match opened {
        Ok((download, size)) => unpack_to(download, size, url, temp_dir.unwrap_or(target), place, context),
        Err(error) => Err(failure(&url.shown, &error)),
    };
    store.close();
    fetched
}

fn unpack_to(
    download: BackupDownload,
    size: u64,
    url: &StoreUrl,
    temp_dir: &Path,
    place: Option<RestorePlace>,
    context: &Context,
) -> Result<Fetched, Failure> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let made = temp_dir.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    let mut fetched = Fetched { database: PathBuf::new(), work: None, made, _place: place };
    create_folder(temp_dir).map_err(|error| Failure::of_file(temp_dir, &error))?;
    let work = fetched.work.insert(WorkFolder::make(temp_dir)?);
    let progress = Progress::new(&context.output, "downloading", Unit::Bytes);
    let mut source = Source { download, chunk: Vec::new(), at: 0, done: 0, size, progress, ended: None };
    let unpacked = unpack(&mut source, size, work.path());
    match (source.ended, unpacked) {
        (Some(Ended::BySignal), _) => Err(Failure::interrupted("Nothing is restored. Run the same command again.")),
        (Some(Ended::ByStore(error)), _) => Err(failure(&url.shown, &error)),
        (Some(Ended::Failed(failure)), _) | (None, Err(failure)) => Err(failure),
        (None, Ok(())) => {
            fetched.database = work.path().join(DATABASE);
            Ok(fetched)
        }
    }
}

/// The bytes of an object.
struct Source {
    download: BackupDownload,
    chunk: Vec<u8>,
    /// The place in the chunk.
    at: usize,
    done: u64,
    size: u64,
    progress: Progress,
    ended: Option<Ended>,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.chunk.len() {
            let next = block_on(async {
                match select(pin!(self.download.next()), pin!(interrupt::requested())).await {
                    Either::Left((next, _)) => next.map_err(Ended::ByStore),
                    Either::Right(_) => Err(Ended::BySignal),
                }
            });
            let next = next.unwrap_or_else(|failure| Err(Ended::Failed(failure)));
            self.chunk = match next {
                Ok(chunk) => chunk.map(|chunk| chunk.to_vec()).unwrap_or_default(),
                Err(ended) => {
                    self.ended.get_or_insert(ended);
                    return Err(io::Error::other("the download has ended"));
                }
            };
            self.at = 0;
            self.done += self.chunk.len() as u64;
            // The next read notices a signal, too.
            let _ = self.progress.show(self.done, self.size);
        }
        let count = buffer.len().min(self.chunk.len() - self.at);
        buffer[..count].copy_from_slice(&self.chunk[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Another process has made the object meanwhile. A schedule goes on: its next copy has another name.
fn exists_already(shown: &str) -> Failure {
    let sentence = format!("{shown}: The object exists, and a backup replaces nothing");
    Failure::new(exit_code::FAILURE, sentence, "Give another name, or remove the object.")
}

/// The failure of a call of the store. `shown` is what is shown of the URL.
fn failure(shown: &str, error: &Error) -> Failure {
    let (code, advice) = match error.kind() {
        ErrorKind::AlreadyExists => return exists_already(shown),
        ErrorKind::NotFound => (exit_code::NOT_FOUND, "Check the bucket and the name. The command makes no bucket."),
        ErrorKind::Forbidden => (
            exit_code::DENIED,
            "Check the credentials, and their rights to list, read and write objects; --keep also deletes some.",
        ),
        ErrorKind::Config => (exit_code::USAGE, "The URL has the form and the options of the option storage_url."),
        _ => (exit_code::of(error), "Check the network and the store, then run the same command again."),
    };
    Failure::new(code, format!("{shown}: {error}"), advice)
}
