//! The fixture of the storage tests: a database, an object store and users.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::TempDir;
use townsquare::{
    Config, Error, ErrorKind, Uuid,
    blocking::Client,
    storage::{FileInfo, ListFiles, UploadOptions},
};
use townsquare_tests::{
    s3_server::S3Server,
    temp_dir,
    test_database::{Engine, TestDatabase, without_reason},
};

/// An object store with a limit of inline files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Folder(u64),
    Memory(u64),
    S3(u64),
}

/// A limit so large that every file of a test is inline.
pub(super) const UNLIMITED: u64 = 1_000_000_000;

/// The size up to which files are inline by default.
pub(super) const SMALL: u64 = 65_536;

impl Store {
    pub(super) const ALL: [Store; 6] = [
        Store::Folder(0),
        Store::Folder(SMALL),
        Store::Folder(UNLIMITED),
        Store::Memory(0),
        Store::S3(0),
        Store::S3(SMALL),
    ];
}

/// A database with a store.
pub(super) struct Fixture {
    pub(super) db: TestDatabase,
    pub(super) store: Store,
    pub(super) folder: TempDir,
    pub(super) s3: Option<S3Server>,
}

/// A signed-in user.
pub(super) struct SignedInUser {
    pub(super) client: Client,
    pub(super) id: Uuid,
}

impl Fixture {
    pub(super) fn is_s3(&self) -> bool {
        matches!(self.store, Store::S3(_))
    }

    /// `None` if the engine is not installed.
    pub(super) fn on(engine: Engine, store: Store) -> Option<Fixture> {
        let folder = temp_dir();
        let s3 = matches!(store, Store::S3(_)).then(S3Server::start);
        let options = |config: Config| with_store(config, store, &folder.path().join("files"), s3.as_ref());
        let db = TestDatabase::with(engine, options)?;
        Some(Fixture { db, store, folder, s3 })
    }

    /// The configuration of a further client on the same database and store.
    pub(super) fn config(&self) -> Config {
        with_store(self.db.config(), self.store, &self.files_folder(), self.s3.as_ref())
    }

    /// The folder of the objects.
    pub(super) fn files_folder(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    pub(super) fn limit(&self) -> u64 {
        match self.store {
            Store::Folder(limit) | Store::Memory(limit) | Store::S3(limit) => limit,
        }
    }

    /// Signs a new user up and in.
    pub(super) fn signed_in_user(&self, name: &str) -> SignedInUser {
        let email = format!("{name}@town.example");
        let service = &self.db.service;
        service.auth().sign_up(&email, "correct horse").expect("signed up");
        let session = service.auth().sign_in(&email, "correct horse").expect("signed in");
        let client = self.db.client.as_user(&session.access_token).expect("a handle");
        SignedInUser { client, id: session.user.id }
    }

    /// Uploads as the service.
    #[track_caller]
    pub(super) fn put(&self, bucket: &str, path: &str, data: impl Into<Bytes>) -> FileInfo {
        put(&self.db.service, bucket, path, data).expect("uploaded")
    }

    /// Downloads as the service.
    #[track_caller]
    pub(super) fn get(&self, bucket: &str, path: &str) -> Bytes {
        self.db.service.storage().download(bucket, path).expect("downloaded")
    }

    /// The objects of the folder or of the S3 server: `BUCKET/PATH`; `None` for memory.
    pub(super) fn objects(&self) -> Option<Vec<String>> {
        let root = match (self.store, &self.s3) {
            (Store::Memory(_), _) => return None,
            (_, Some(server)) => server.folder().join("objects"),
            _ => self.files_folder(),
        };
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name.to_string_lossy().starts_with('.') {
                    continue;
                }
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    let path = entry.path();
                    found.push(path.strip_prefix(&root).expect("below").to_string_lossy().into_owned());
                }
            }
        }
        found.sort();
        Some(found)
    }

    /// What `objects` is if exactly these files of this size exist.
    pub(super) fn expected_objects(&self, files: &[impl AsRef<str>], size: u64) -> Option<Vec<String>> {
        let is_object = size > self.limit();
        let mut files: Vec<String> = files.iter().filter(|_| is_object).map(|file| file.as_ref().to_owned()).collect();
        files.sort();
        (!matches!(self.store, Store::Memory(_))).then_some(files)
    }
}

fn with_store(config: Config, store: Store, folder: &Path, s3: Option<&S3Server>) -> Config {
    match (store, s3) {
        (Store::Folder(limit), _) => config.storage_url(format!("file:{}", folder.display())).inline_file_limit(limit),
        (Store::Memory(limit), _) => config.storage_url("memory:").inline_file_limit(limit),
        (Store::S3(limit), Some(server)) => config.storage_url(server.url("objects")).inline_file_limit(limit),
        (Store::S3(_), None) => panic!("an S3 store has a server"),
    }
}

pub(super) fn put(client: &Client, bucket: &str, path: &str, data: impl Into<Bytes>) -> Result<FileInfo, Error> {
    client.storage().upload(bucket, path, data, UploadOptions::new())
}

/// The paths of a bucket that the client may see.
pub(super) fn paths(client: &Client, bucket: &str) -> Vec<String> {
    let files = client.storage().list(bucket, ListFiles::new().limit(1_000)).expect("listed");
    files.into_iter().map(|file| file.path).collect()
}

/// Checks kind, status and message of a failure of the file store.
#[track_caller]
pub(super) fn assert_refused<T>(result: Result<T, Error>, kind: ErrorKind, status: u16, message: &str) {
    match result {
        Ok(_) => panic!("succeeded instead of failing with `{message}`"),
        Err(error) => {
            let found = (error.kind(), error.status(), without_reason(&error, &error.to_string()));
            assert_eq!(found, (kind, status, message.to_owned()), "{error:?}");
        }
    }
}

/// Bytes that do not compress, of this size.
pub(super) fn bytes(size: usize, seed: u8) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(u64::from(seed));
    (0..size).map(|_| random.u8(..)).collect()
}

/// Makes each of these functions of a `&Fixture` a test on every store, on either engine.
macro_rules! on_every_store {
    ($($(#[$meta:meta])* fn $test:ident($fixture:ident: &Fixture) $body:block)+) => {
        $($(#[$meta])* fn $test($fixture: &$crate::storage::fixture::Fixture) $body)+
        $crate::storage::fixture::on_every_store! { @engine sqlite, Sqlite, $($test)+ }
        $crate::storage::fixture::on_every_store! { @engine postgres, Postgres, $($test)+ }
    };
    (@engine $module:ident, $engine:ident, $($test:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    for store in $crate::storage::fixture::Store::ALL {
                        let engine = townsquare_tests::test_database::Engine::$engine;
                        if let Some(fixture) = $crate::storage::fixture::Fixture::on(engine, store) {
                            super::$test(&fixture);
                        }
                    }
                }
            )+
        }
    };
}
pub(crate) use on_every_store;
