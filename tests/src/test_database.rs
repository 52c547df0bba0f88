//! A temporary database of either engine with a client on it, so that one test covers both engines.
//!
//! Invariant: each database is new, empty and used by one test. Dropping it after a passed test checks a SQLite file
//! for corruption and dangling references.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use townsquare::{
    Config, Error, ErrorKind, Timestamp, Uuid,
    blocking::Client,
    communities::{CommunityConfig, CommunityPatch},
    config::ManualClock,
    spaces::{Fidget, NewFidget, NewSpace, Space},
};

use crate::{
    fixture::start_time,
    pgbouncer::{Mode, PgBouncer},
    postgres::{APP_ROLE, Server, VARIABLE, server},
    raw_sql::{RawConnection, quoted},
    subprocess::child,
    temp_dir,
    wait::wait_until,
};

/// The environment variable that passes the database's URL to child processes.
const URL: &str = "TOWNSQUARE_TEST_DATABASE";

/// The environment variable that puts a pgbouncer between the clients of PostgreSQL tests and the server: `transaction` or
/// `session`.
const POOLER: &str = "TOWNSQUARE_TEST_POOLER";

/// How long the clients of tests wait for a connection to PostgreSQL.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// SQLite, one file.
    Sqlite,
    /// PostgreSQL, a database of the tests' server.
    Postgres,
}

/// A temporary database and a client on it.
pub struct TestDatabase {
    /// The database's engine.
    pub engine: Engine,
    /// The clock of the database's clients.
    pub clock: ManualClock,
    /// The client; its caller is anonymous until a sign-in.
    pub client: Client,
    /// A handle of the client that acts as the service.
    pub service: Client,
    /// A connection without the library.
    pub raw: RawConnection,
    location: Location,
    pooler: Option<PgBouncer>,
}

enum Location {
    File(TempDir),
    /// With the folder of large files.
    Database(&'static Server, String, TempDir),
}

/// A temporary database that no client has opened yet.
pub struct EmptyDatabase {
    engine: Engine,
    location: Option<Location>,
}

impl EmptyDatabase {
    /// Creates a database. Returns `None` and reports a skip if the engine is not installed.
    pub fn on(engine: Engine) -> Option<EmptyDatabase> {
        let location = match engine {
            Engine::Sqlite => Location::File(temp_dir()),
            Engine::Postgres => {
                let server = server()?;
                Location::Database(server, server.new_database(), temp_dir())
            }
        };
        Some(EmptyDatabase { engine, location: Some(location) })
    }

    /// Returns the database's engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Returns the database's URL.
    pub fn url(&self) -> String {
        self.location().url()
    }

    /// Connects to the database without the library; creates a missing SQLite file.
    pub fn raw(&self) -> RawConnection {
        self.location().raw()
    }

    /// Returns the SQLite file.
    ///
    /// # Panics
    /// On PostgreSQL.
    pub fn file(&self) -> PathBuf {
        self.location().file()
    }

    /// Opens a client on the database.
    pub fn open(mut self) -> TestDatabase {
        let location = self.location.take().expect("taken once");
        TestDatabase::of(self.engine, location, |config| config)
    }

    fn location(&self) -> &Location {
        self.location.as_ref().expect("taken when it is consumed")
    }
}

impl Drop for EmptyDatabase {
    fn drop(&mut self) {
        if let Some(location) = self.location.take() {
            location.remove();
        }
    }
}

impl Location {
    fn folder(&self) -> &Path {
        match self {
            Location::File(folder) | Location::Database(_, _, folder) => folder.path(),
        }
    }

    fn url(&self) -> String {
        match self {
            Location::File(_) => format!("sqlite:{}", self.file().display()),
            Location::Database(server, name, _) => server.url(APP_ROLE, name),
        }
    }

    /// Starts the pooler that [`POOLER`] asks for.
    fn pooler(&self) -> Option<PgBouncer> {
        let mode = match env::var(POOLER).as_deref() {
            Ok("transaction") => Mode::Transaction,
            Ok("session") => Mode::Session,
            _ => return None,
        };
        match self {
            Location::Database(server, ..) => {
                PgBouncer::before(server, mode, if mode == Mode::Session { 40 } else { 4 })
            }
            Location::File(_) => None,
        }
    }

    fn url_through(&self, pooler: Option<&PgBouncer>) -> String {
        match (self, pooler) {
            (Location::Database(_, name, _), Some(pooler)) => pooler.url(APP_ROLE, name),
            _ => self.url(),
        }
    }

    fn file(&self) -> PathBuf {
        match self {
            Location::File(folder) => folder.path().join("townsquare.db"),
            Location::Database(..) => panic!("a PostgreSQL database is no file"),
        }
    }

    fn raw(&self) -> RawConnection {
        match self {
            Location::File(_) => RawConnection::sqlite(&self.file()),
            Location::Database(..) => RawConnection::postgres(&self.url()).expect("the server runs"),
        }
    }

    fn config(&self, pooler: Option<&PgBouncer>, clock: &ManualClock) -> Config {
        let url = self.url_through(pooler);
        let config = Config::new().database_url(url).catalog_api_key("").clock(clock.clock());
        match self {
            Location::File(folder) => config.data_dir(folder.path()),
            // A loaded machine may take long to start a server process for each connection.
            Location::Database(_, _, folder) => config.data_dir(folder.path()).operation_timeout(CONNECT_TIMEOUT),
        }
    }

    fn remove(&self) {
        if let Location::Database(server, name, _) = self {
            server.drop_database(name);
        }
    }
}

impl TestDatabase {
    /// Creates a database and a client on it. Returns `None` and reports a skip if the engine is not installed.
    pub fn on(engine: Engine) -> Option<TestDatabase> {
        TestDatabase::with(engine, |config| config)
    }

    /// Creates a database and a client on it with these options.
    pub fn with(engine: Engine, options: impl Fn(Config) -> Config) -> Option<TestDatabase> {
        let mut empty = EmptyDatabase::on(engine)?;
        Some(TestDatabase::of(engine, empty.location.take().expect("new"), options))
    }

    fn of(engine: Engine, location: Location, options: impl Fn(Config) -> Config) -> TestDatabase {
        let clock = ManualClock::at(start_time());
        let pooler = location.pooler();
        let config = location.config(pooler.as_ref(), &clock);
        let client = Client::open(options(config)).expect("a new database opens");
        let (service, raw) = (client.as_service(), location.raw());
        TestDatabase { engine, clock, client, service, raw, location, pooler }
    }

    /// Returns the configuration of a further client with the same clock.
    pub fn config(&self) -> Config {
        self.location.config(self.pooler.as_ref(), &self.clock)
    }

    /// Returns the time as the clients see it: on PostgreSQL it is the server's.
    ///
    /// # Panics
    /// Never, because a client is open.
    pub fn now(&self) -> Timestamp {
        match self.engine {
            Engine::Sqlite => self.clock.clock().now(),
            Engine::Postgres => self.clock.server_time().expect("a client is open"),
        }
    }

    /// Lets time pass for the clients and the catalog. PostgreSQL compares the catalog's times with its own clock, which no
    /// test can move: there the stored times move back.
    pub fn elapse(&self, by: Duration) {
        self.clock.advance(by);
        if self.engine == Engine::Sqlite {
            return;
        }
        let back = format!("INTERVAL '{} microseconds'", by.as_micros());
        let json = |column: &str| {
            let time = r#"to_char(fetched_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"#;
            format!("{column} = jsonb_set({column}::jsonb, '{{fetched_at}}', to_jsonb({time}))::text")
        };
        for change in [
            format!("leases SET held_until = held_until - {back} WHERE held_until > to_timestamp(0)"),
            format!("catalog_parts SET written_at = written_at - {back}"),
            format!("catalog SET fetched_at = fetched_at - {back}"),
            format!("catalog SET {}", json("header")),
            format!("catalog_lists SET retry_at = retry_at - {back}, fetched_at = fetched_at - {back}"),
            format!("catalog_lists SET {} WHERE content IS NOT NULL", json("content")),
        ] {
            self.raw.run(&format!("UPDATE townsquare.{change}"));
        }
    }

    /// Ends the server processes of this PostgreSQL database except the one of `raw`: later connections have the database's
    /// current settings, and the ended processes have reported their statistics. A pooler keeps processes without clients.
    pub fn end_server_processes(&self) {
        let others = "pg_stat_activity WHERE datname = current_database() AND usename = current_user
            AND pid <> pg_backend_pid()";
        self.raw.run(&format!("SELECT pg_terminate_backend(pid) FROM {others}"));
        wait_until("the server processes have ended", || self.raw.count(others) == 0);
    }

    /// Waits until the transactions of other connections have ended: a PostgreSQL server process may still commit what a
    /// process that was killed has sent.
    pub fn wait_for_transactions(&self) {
        if self.engine == Engine::Postgres {
            let busy = "pg_stat_activity WHERE datname = current_database() AND state <> 'idle'
                AND pid <> pg_backend_pid()";
            wait_until("the transactions of other connections have ended", || self.raw.count(busy) == 0);
        }
    }

    /// Waits until a connection of this PostgreSQL database waits for a lock.
    pub fn wait_for_a_waiting_connection(&self) {
        let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        wait_until("a connection waits for a lock", || self.raw.count(waiting) > 0);
    }

    /// Opens a further client with the same clock.
    ///
    /// # Panics
    /// When it does not open.
    pub fn another(&self) -> Client {
        Client::open(self.config()).expect("a good database opens")
    }

    /// Returns the async face of the client, for tests of futures.
    pub fn async_client(&self) -> &townsquare::Client {
        self.client.inner()
    }

    /// Returns the async face of the service's handle, for tests of futures.
    pub fn async_service(&self) -> &townsquare::Client {
        self.service.inner()
    }

    /// Returns the database's URL.
    pub fn url(&self) -> String {
        self.location.url()
    }

    /// Returns the server and the name of its PostgreSQL database.
    ///
    /// # Panics
    /// On SQLite.
    pub fn database(&self) -> (&'static Server, &str) {
        match &self.location {
            Location::Database(server, name, _) => (server, name),
            Location::File(_) => panic!("SQLite has no server"),
        }
    }

    /// Returns the SQLite file.
    ///
    /// # Panics
    /// On PostgreSQL.
    pub fn file(&self) -> PathBuf {
        self.location.file()
    }

    /// Inserts a user.
    pub fn user(&self) -> Uuid {
        let id = Uuid::new_v4();
        self.user_of(id, &format!("{}@town.example", id.simple()));
        id
    }

    /// Inserts a user with this id and address.
    pub fn user_of(&self, id: Uuid, email: &str) {
        self.raw.run(&format!("INSERT INTO users (id, email) VALUES ('{id}', {})", quoted(email)));
    }

    /// Creates a user and a private space of that user.
    ///
    /// # Panics
    /// When that fails.
    pub fn space(&self) -> Space {
        let space = NewSpace::named("a space").owned_by(self.user());
        self.service.spaces().create_space(space).expect("a space")
    }

    /// Creates a public space of this owner.
    ///
    /// # Panics
    /// When that fails.
    pub fn public_space(&self, owner: Uuid, name: &str) -> Space {
        let space = NewSpace::named(name).owned_by(owner).public();
        self.service.spaces().create_space(space).expect("a public space")
    }

    /// Creates a fidget in this space.
    ///
    /// # Panics
    /// When that fails.
    pub fn fidget(&self, space: Uuid, kind: &str) -> Fidget {
        self.service.fidgets().create_fidget(space, NewFidget::of_type(kind)).expect("a fidget")
    }

    /// Creates a published community.
    ///
    /// # Panics
    /// When that fails.
    pub fn community(&self, id: &str) -> CommunityConfig {
        self.service.communities().save_community_config(id, required()).expect("a community")
    }

    /// Makes a command that runs one test of this binary in another process, on this database.
    pub fn child(&self, test: &str, role: &str, variables: &[(&str, &str)]) -> Command {
        let mut command = child_on(&self.url(), test, role, variables);
        // Large files, and the locks of paths, are where this process has them.
        command.env("TOWNSQUARE_DATA_DIR", self.location.folder());
        command
    }

    /// Returns the errors of SQLite's integrity checks; none on PostgreSQL.
    pub fn integrity_errors(&self) -> Vec<String> {
        if self.engine == Engine::Postgres {
            return Vec::new();
        }
        let damage = self.raw.rows("PRAGMA integrity_check").into_iter().flatten().flatten();
        let dangling = self.raw.rows("PRAGMA foreign_key_check").into_iter().map(|row| format!("{row:?}"));
        damage.filter(|line| line != "ok").chain(dangling).collect()
    }
}

/// Makes a command that runs one test of this binary in another process, on the database at `url`.
pub fn child_on(url: &str, test: &str, role: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = child(test, role, variables);
    command.env(URL, url);
    if url.starts_with("postgres")
        && let Some(server) = server()
    {
        command.env(VARIABLE, server.address());
    }
    command
}

/// In a child process: returns the configuration of the parent's database, with the system clock.
///
/// # Panics
/// In a process without a parent's database.
pub fn inherited() -> Config {
    let url = env::var(URL).expect("the parent process sets the variable");
    Config::new().database_url(url).catalog_api_key("")
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.client.close();
        if !thread::panicking() {
            let errors = self.integrity_errors();
            assert!(errors.is_empty(), "the SQLite file is corrupt: {errors:?}");
        }
        self.location.remove();
    }
}

/// Returns a patch with the four configurations that a new community requires.
pub fn required() -> CommunityPatch {
    CommunityPatch::with_required(
        json!({"brand": 1}),
        json!({"assets": 2}),
        json!({"community": 3}),
        json!({"fidgets": 4}),
    )
}

/// Returns a JSON value of this depth.
pub fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("core"), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"in": inner}) })
}

/// Checks kind, SQLSTATE and message of a failure. The message is compared without its reason.
///
/// # Panics
/// When the call succeeded or failed otherwise.
#[track_caller]
pub fn assert_fails<T>(result: Result<T, Error>, kind: ErrorKind, code: Option<&str>, message: &str) -> Error {
    match result {
        Ok(_) => panic!("succeeded instead of failing with `{message}`"),
        Err(error) => {
            let (found, found_message) = ((error.kind(), error.code()), without_reason(&error, &error.to_string()));
            assert_eq!((found, found_message.as_str()), ((kind, code), message), "{error:?}");
            error
        }
    }
}

/// The sentence of SPEC 7 in `text`, which is the text or the message of `error`.
pub fn without_reason(error: &Error, text: &str) -> String {
    let reason = error.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
    text.strip_suffix(&reason).expect("the reason is the end of the text").to_owned()
}

/// Makes each of these functions of a `&TestDatabase` a test on each engine, in the modules `sqlite` and `postgres`.
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$meta:meta])* fn $test:ident($db:ident: &TestDatabase) $body:block)+) => {
        $($(#[$meta])* fn $test($db: &$crate::test_database::TestDatabase) $body)+
        $crate::tests_of_engine!(sqlite, Sqlite, $($test)+);
        $crate::tests_of_engine!(postgres, Postgres, $($test)+);
    };
}

/// Makes each of these functions of a `&TestDatabase` a test on one engine, in this module.
#[macro_export]
macro_rules! on_engine {
    ($engine:ident in $module:ident; $($(#[$meta:meta])* fn $test:ident($db:ident: &TestDatabase) $body:block)+) => {
        $($(#[$meta])* fn $test($db: &$crate::test_database::TestDatabase) $body)+
        $crate::tests_of_engine!($module, $engine, $($test)+);
    };
}

/// The test functions behind [`on_both_engines!`] and [`on_engine!`].
#[doc(hidden)]
#[macro_export]
macro_rules! tests_of_engine {
    ($module:ident, $engine:ident, $($test:ident)+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    if let Some(db) = $crate::test_database::TestDatabase::on($crate::test_database::Engine::$engine) {
                        super::$test(&db);
                    }
                }
            )+
        }
    };
}
