//! A database with an object store, and a client with the system's clock, for planted damages.

use std::path::PathBuf;

use tempfile::TempDir;
use townsquare::{
    Config, Uuid,
    blocking::Client,
    check::{CheckDepth, Finding, FindingCode},
    spaces::NewSpace,
    storage::UploadOptions,
};
use townsquare_tests::{
    raw_sql::RawConnection,
    s3_server::S3Server,
    temp_dir,
    test_database::{EmptyDatabase, Engine},
};

/// The largest size of a file in the database.
const INLINE: u64 = 100;

/// Where the large files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Folder,
    S3,
}

/// A database with a store. Fields are dropped in this order.
pub(super) struct Fixture {
    pub(super) client: Client,
    pub(super) service: Client,
    pub(super) raw: RawConnection,
    pub(super) engine: Engine,
    pub(super) s3: Option<S3Server>,
    config: Config,
    pub(super) folder: TempDir,
    pub(super) database: EmptyDatabase,
}

impl Fixture {
    /// `None` if the engine is not installed.
    pub(super) fn on(engine: Engine, store: Store) -> Option<Fixture> {
        Fixture::with(engine, store, |config| config)
    }

    pub(super) fn with(engine: Engine, store: Store, options: impl Fn(Config) -> Config) -> Option<Fixture> {
        let (database, folder) = (EmptyDatabase::on(engine)?, temp_dir());
        let s3 = (store == Store::S3).then(S3Server::start);
        let url = match &s3 {
            Some(server) => server.url("objects"),
            None => format!("file:{}", folder.path().join("files").display()),
        };
        let config = Config::new().data_dir(folder.path().join("data")).catalog_api_key("");
        let mut config = options(config.storage_url(url).inline_file_limit(INLINE));
        if engine == Engine::Postgres {
            config = config.database_url(database.url());
        }
        let client = Client::open(config.clone()).expect("a new database opens");
        let raw = match engine {
            Engine::Sqlite => RawConnection::sqlite(&folder.path().join("data/townsquare.db")),
            Engine::Postgres => database.raw(),
        };
        let service = client.as_service();
        Some(Fixture { client, service, raw, engine, s3, config, folder, database })
    }

    /// The configuration of the client.
    pub(super) fn config(&self) -> Config {
        self.config.clone()
    }

    /// The folder of the objects.
    pub(super) fn files(&self) -> PathBuf {
        match &self.s3 {
            Some(server) => server.folder().join("objects"),
            None => self.folder.path().join("files"),
        }
    }

    /// The name of a table of the library itself.
    pub(super) fn own(&self, table: &str) -> String {
        let separator = if self.engine == Engine::Sqlite { '_' } else { '.' };
        format!("townsquare{separator}{table}")
    }

    /// Stores a file of this size in the bucket `assets`.
    pub(super) fn put(&self, path: &str, size: usize) {
        self.service.storage().upload("assets", path, vec![7; size], UploadOptions::new()).expect("uploaded");
    }

    /// Creates what a small town has: a user, a public space with a fidget, small and large files, and changes in the log.
    pub(super) fn fill(&self) {
        self.service.realtime().start().expect("capture is on");
        self.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
        let session = self.service.auth().create_session("ann@town.example", "correct horse").expect("signed in");
        let space = NewSpace::named("Harbor").owned_by(session.user.id).public();
        let space = self.service.spaces().create_space(space).expect("created");
        self.put("small", 10);
        self.put("large", 5_000);
        self.put("folder/large!", 5_000);
        self.put("folder/nested/large", 5_000);
        self.put("folder-large", 5_000);
        let tab = format!("{}/tabs/Home", space.id);
        self.service.storage().upload("spaces", &tab, vec![1; 5_000], UploadOptions::new()).expect("uploaded");
        let moved = townsquare::storage::Overwrite::Refuse;
        self.service.storage().move_file("assets", "large", "moved", moved).expect("moved");
        self.put("large", 5_000);
    }

    #[track_caller]
    pub(super) fn check(&self, depth: CheckDepth) -> Vec<Finding> {
        self.client.check(depth).expect("checked")
    }

    /// The codes of a quick check, each once.
    #[track_caller]
    pub(super) fn codes(&self) -> Vec<FindingCode> {
        codes(&self.check(CheckDepth::Quick))
    }

    /// Checks that a quick check finds this code alone. Returns the messages.
    #[track_caller]
    pub(super) fn assert_finds(&self, code: FindingCode) -> Vec<String> {
        assert_only(code, &self.check(CheckDepth::Quick))
    }
}

impl Fixture {
    /// Checks that a full check finds this code alone. Returns the messages.
    #[track_caller]
    pub(super) fn assert_finds_in_full(&self, code: FindingCode) -> Vec<String> {
        assert_only(code, &self.check(CheckDepth::Full))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.client.close();
    }
}

/// The codes of findings, each once.
pub(super) fn codes(findings: &[Finding]) -> Vec<FindingCode> {
    let mut codes: Vec<_> = findings.iter().map(|finding| finding.code).collect();
    codes.dedup();
    codes
}

/// Checks that findings have this code alone, and no secret. Returns the messages.
#[track_caller]
pub(super) fn assert_only(code: FindingCode, findings: &[Finding]) -> Vec<String> {
    assert_eq!(codes(findings), [code], "{findings:?}");
    for finding in findings {
        let text = serde_json::to_string(finding).expect("JSON");
        assert!(!text.contains("town.example") && !text.contains("postgres://"), "{text}");
        assert!(finding.message.ends_with('.') && !finding.advice().is_empty(), "{finding}");
    }
    findings.iter().map(|finding| finding.message.clone()).collect()
}

/// Runs a test on both engines, with a filled folder.
pub(super) fn on_each_engine(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(fixture) = Fixture::on(engine, Store::Folder) {
            fixture.fill();
            assert_eq!(fixture.codes(), [], "before the damage, on {engine:?}");
            test(&fixture);
        }
    }
}

/// An id of no row.
pub(super) fn unknown() -> Uuid {
    Uuid::new_v4()
}
