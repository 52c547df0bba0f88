//! A database of either engine with a client on it, so that a contract is written once and held by both.
//!
//! Invariant: each store is new and empty, and its own; when it is dropped after a test that passed, a SQLite file
//! has no damage and no dangling reference.

use std::{path::PathBuf, process::Command, thread};

use serde_json::{Value, json};
use townsquare::{
    Client, CommunityPatch, Config, Error, ErrorKind, Fidget, ManualClock, NewFidget, NewSpace, Space, Uuid,
    blocking::wait,
};

use crate::{
    alone::child,
    outside::{Outside, quoted},
    postgres::{PLAIN_ROLE, Server, VARIABLE, server},
    temp::TempFolder,
    town::morning,
};

/// Carries a store's database to child processes.
const URL: &str = "TOWNSQUARE_TEST_DATABASE";

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One file.
    Sqlite,
    /// A server.
    Postgres,
}

/// A new database and a client on it.
pub struct Store {
    /// Which engine it is.
    pub engine: Engine,
    /// The time of its clients.
    pub hands: ManualClock,
    /// The client, as nobody.
    pub client: Client,
    /// The client, as the service.
    pub service: Client,
    /// The database as other programs see it.
    pub outside: Outside,
    place: Place,
}

enum Place {
    File(TempFolder),
    Database(&'static Server, String),
}

/// A database that nothing was done to yet.
pub struct Fresh {
    engine: Engine,
    place: Option<Place>,
}

impl Fresh {
    /// One of this engine; `None`, said aloud, where the engine is missing.
    pub fn on(engine: Engine) -> Option<Fresh> {
        let place = match engine {
            Engine::Sqlite => Place::File(TempFolder::new()),
            Engine::Postgres => {
                let server = server()?;
                Place::Database(server, server.new_database())
            }
        };
        Some(Fresh { engine, place: Some(place) })
    }

    /// Which engine.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.place().url()
    }

    /// The database as other programs see it; this makes a SQLite file that is missing.
    pub fn outside(&self) -> Outside {
        self.place().outside()
    }

    /// The SQLite file.
    ///
    /// # Panics
    /// On PostgreSQL.
    pub fn file(&self) -> PathBuf {
        self.place().file()
    }

    /// With a client on it.
    pub fn open(mut self) -> Store {
        let place = self.place.take().expect("taken once");
        Store::of(self.engine, place, |config| config)
    }

    fn place(&self) -> &Place {
        self.place.as_ref().expect("taken when it is consumed")
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.remove();
        }
    }
}

impl Place {
    fn url(&self) -> String {
        match self {
            Place::File(_) => format!("sqlite:{}", self.file().display()),
            Place::Database(server, name) => server.url(PLAIN_ROLE, name),
        }
    }

    fn file(&self) -> PathBuf {
        match self {
            Place::File(folder) => folder.join("townsquare.db"),
            Place::Database(..) => panic!("a PostgreSQL database is no file"),
        }
    }

    fn outside(&self) -> Outside {
        match self {
            Place::File(_) => Outside::sqlite(&self.file()),
            Place::Database(..) => Outside::postgres(&self.url()).expect("the server runs"),
        }
    }

    fn remove(&self) {
        if let Place::Database(server, name) = self {
            server.drop_database(name);
        }
    }
}

impl Store {
    /// One of this engine; `None`, said aloud, where the engine is missing.
    pub fn on(engine: Engine) -> Option<Store> {
        Store::with(engine, |config| config)
    }

    /// The same with other options.
    pub fn with(engine: Engine, options: impl Fn(Config) -> Config) -> Option<Store> {
        let mut fresh = Fresh::on(engine)?;
        Some(Store::of(engine, fresh.place.take().expect("new"), options))
    }

    fn of(engine: Engine, place: Place, options: impl Fn(Config) -> Config) -> Store {
        let hands = ManualClock::at(morning());
        let client = wait(Client::open(options(config(&place.url(), &hands)))).expect("a new database opens");
        let (service, outside) = (client.as_service(), place.outside());
        Store { engine, hands, client, service, outside, place }
    }

    /// The configuration of another client on it, with the same clock.
    pub fn config(&self) -> Config {
        config(&self.url(), &self.hands)
    }

    /// Another client on it, with the same clock.
    ///
    /// # Panics
    /// When it does not open.
    pub fn another(&self) -> Client {
        wait(Client::open(self.config())).expect("a good database opens")
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.place.url()
    }

    /// The name of its PostgreSQL database.
    ///
    /// # Panics
    /// On SQLite.
    pub fn database(&self) -> (&'static Server, &str) {
        match &self.place {
            Place::Database(server, name) => (server, name),
            Place::File(_) => panic!("SQLite has no server"),
        }
    }

    /// The SQLite file.
    ///
    /// # Panics
    /// On PostgreSQL.
    pub fn file(&self) -> PathBuf {
        self.place.file()
    }

    /// A new user.
    pub fn user(&self) -> Uuid {
        let id = Uuid::new_v4();
        self.user_of(id, &format!("{}@town.example", id.simple()));
        id
    }

    /// A user with this id and address.
    pub fn user_of(&self, id: Uuid, email: &str) {
        self.outside.run(&format!("INSERT INTO users (id, email) VALUES ('{id}', {})", quoted(email)));
    }

    /// A new private space of a new user's.
    ///
    /// # Panics
    /// When that fails.
    pub fn space(&self) -> Space {
        let space = NewSpace::named("a space").owned_by(self.user());
        wait(self.service.spaces().create_space(space)).expect("a space")
    }

    /// A new public space of this owner's.
    ///
    /// # Panics
    /// When that fails.
    pub fn public_space(&self, owner: Uuid, name: &str) -> Space {
        let space = NewSpace::named(name).owned_by(owner).public();
        wait(self.service.spaces().create_space(space)).expect("a public space")
    }

    /// A new fidget of this space.
    ///
    /// # Panics
    /// When that fails.
    pub fn fidget(&self, space: Uuid, kind: &str) -> Fidget {
        wait(self.service.fidgets().create_fidget(space, NewFidget::of_type(kind))).expect("a fidget")
    }

    /// A new, published community.
    ///
    /// # Panics
    /// When that fails.
    pub fn community(&self, id: &str) -> townsquare::CommunityConfig {
        wait(self.service.communities().save_community_config(id, required())).expect("a community")
    }

    /// A command that runs the named test of this binary in another process, on this store.
    pub fn child(&self, test: &str, role: &str, variables: &[(&str, &str)]) -> Command {
        child_on(&self.url(), test, role, variables)
    }

    /// What SQLite says of the file's soundness; nothing when all is well. PostgreSQL looks after itself.
    pub fn complaints(&self) -> Vec<String> {
        if self.engine == Engine::Postgres {
            return Vec::new();
        }
        let damage = self.outside.rows("PRAGMA integrity_check").into_iter().flatten().flatten();
        let dangling = self.outside.rows("PRAGMA foreign_key_check").into_iter().map(|row| format!("{row:?}"));
        damage.filter(|line| line != "ok").chain(dangling).collect()
    }
}

/// A command that runs the named test of this binary in another process, on this database.
pub fn child_on(url: &str, test: &str, role: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = child(test, role, variables);
    command.env(URL, url);
    if url.starts_with("postgres")
        && let Some(server) = server()
    {
        command.env(VARIABLE, server.inheritance());
    }
    command
}

/// In a child process: the configuration of the parent's database, with the time of the system.
///
/// # Panics
/// In a process that is no child of a store.
pub fn inherited() -> Config {
    let url = std::env::var(URL).expect("a child of a store");
    Config::new().database_url(url).catalog_api_key("")
}

impl Drop for Store {
    fn drop(&mut self) {
        wait(self.client.close());
        if !thread::panicking() {
            let complaints = self.complaints();
            assert!(complaints.is_empty(), "the file is not sound: {complaints:?}");
        }
        self.place.remove();
    }
}

fn config(url: &str, hands: &ManualClock) -> Config {
    Config::new().database_url(url).catalog_api_key("").clock(hands.clock())
}

/// The four configurations that a new community needs.
pub fn required() -> CommunityPatch {
    CommunityPatch::with_required(
        json!({"brand": 1}),
        json!({"assets": 2}),
        json!({"community": 3}),
        json!({"fidgets": 4}),
    )
}

/// A JSON value nested this deep.
pub fn nested(depth: usize) -> Value {
    (0..depth).fold(json!("core"), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"in": inner}) })
}

/// Holds a failure to kind, SQLSTATE and sentence.
///
/// # Panics
/// When it succeeded or failed otherwise.
#[track_caller]
pub fn assert_fails<T>(result: Result<T, Error>, kind: ErrorKind, code: Option<&str>, sentence: &str) -> Error {
    match result {
        Ok(_) => panic!("succeeded, where `{sentence}` was due"),
        Err(error) => {
            let (found, told) = ((error.kind(), error.code()), error.to_string());
            assert_eq!((found, told.as_str()), ((kind, code), sentence), "{error:?}");
            error
        }
    }
}

/// Each of these functions of a `&Store` as a test of its own on each engine.
#[macro_export]
macro_rules! on_both_engines {
    ($($test:ident),* $(,)?) => {
        $crate::on_engine!(sqlite, Sqlite, $($test),*);
        $crate::on_engine!(postgres, Postgres, $($test),*);
    };
}

/// Each of these functions of a `&Store` as a test on one engine.
#[macro_export]
macro_rules! on_engine {
    ($module:ident, $engine:ident, $($test:ident),* $(,)?) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    if let Some(store) = $crate::store::Store::on($crate::store::Engine::$engine) {
                        super::$test(&store);
                    }
                }
            )*
        }
    };
}
