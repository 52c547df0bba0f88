//! Secrets: no log line, error, `Debug` output or table contains a password, token or key.
//!
//! A process of its own runs every auth operation with marked secrets and captures its log; the test then searches for the
//! marks.

use std::{
    error::Error as _,
    fmt::{self, Write as _},
    fs, panic,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::json;
use townsquare::{
    Client, Config, Error, Uuid,
    auth::{Session, UserPatch, identity_claim},
    blocking::wait,
    spaces::{NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    subprocess::in_subprocess,
    test_database::{Engine, TestDatabase},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

const PASSWORD: &str = "marked-password-4f1c";
const NEW_PASSWORD: &str = "marked-password-9d20";
const WRONG_PASSWORD: &str = "marked-password-77aa";
const API_KEY: &str = "marked-api-key-1b2c";
const SEED: &str = "4d61726b65642d736565642d303132333435363738394142434445464748494a";
const EMAIL: &str = "ann@town.example";

/// All captured output: log lines, `Debug` and `Display` of values and errors.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<String>>);

impl Heard {
    fn note(&self, what: impl fmt::Debug) {
        writeln!(self.0.lock(), "{what:?}").expect("memory");
    }

    /// Adds an error and its sources.
    fn error(&self, error: &Error) {
        self.note(error);
        let mut text = format!("{error} {:?} {:?}", error.message(), error.code());
        let mut cause = error.source();
        while let Some(inner) = cause {
            write!(text, " {inner} {inner:?}").expect("memory");
            cause = inner.source();
        }
        self.note(text);
    }

    /// Adds the outcome of an operation.
    fn outcome<T: fmt::Debug>(&self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => {
                self.note(&value);
                Some(value)
            }
            Err(error) => {
                self.error(&error);
                None
            }
        }
    }
}

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.note(format_args!("{field}={value:?}"));
    }
}

impl Subscriber for Heard {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut self.clone());
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Captures the log and the panics of this process.
fn listen() -> Heard {
    let heard = Heard::default();
    tracing::subscriber::set_global_default(heard.clone()).expect("the first of this process");
    let (kept, usual) = (heard.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        kept.note(info.to_string());
        usual(info);
    }));
    heard
}

/// Runs every operation with marked secrets; returns the secrets.
fn live(db: &TestDatabase, heard: &Heard) -> Vec<String> {
    let sessions = Mutex::new(Vec::<Session>::new());
    let kept = |result: Result<Session, Error>| {
        let session = heard.outcome(result);
        sessions.lock().extend(session.clone());
        session
    };
    let (auth, service) = (db.client.auth(), db.service.auth());
    let subscription = {
        let heard = heard.clone();
        auth.on_auth_state_change(move |event, session| heard.note((event, session)))
    };
    let careless = auth.on_auth_state_change(|event, session| panic!("a listener of {event:?} with {session:?}"));
    heard.note(db.config().catalog_api_key(API_KEY));
    heard.outcome(wait(auth.sign_up(EMAIL, PASSWORD)));
    heard.outcome(wait(auth.sign_up(EMAIL, PASSWORD)));
    heard.outcome(wait(auth.sign_up(PASSWORD, PASSWORD)));
    heard.outcome(wait(auth.sign_up("bob@town.example", &PASSWORD.repeat(60))));
    kept(wait(auth.sign_in(EMAIL, WRONG_PASSWORD)));
    kept(wait(auth.sign_in(PASSWORD, WRONG_PASSWORD)));
    let session = kept(wait(auth.sign_in(EMAIL, PASSWORD))).expect("signed in");
    let claim = identity_claim(session.user.id, SEED, db.clock.clock().now()).expect("a key");
    heard.outcome(identity_claim(session.user.id, PASSWORD, db.clock.clock().now()));
    heard.outcome(wait(auth.link_identity(&claim)));
    heard.outcome(wait(auth.link_identity(&json!({"publicKey": PASSWORD}))));
    let elsewhere = kept(wait(service.sign_in(EMAIL, PASSWORD))).expect("signed in");
    let handle = wait(db.client.as_user(&elsewhere.access_token)).expect("a handle");
    kept(wait(handle.auth().refresh_session()));
    kept(wait(service.refresh_session_of(&elsewhere.refresh_token)));
    kept(wait(service.refresh_session_of(&elsewhere.refresh_token)));
    heard.outcome(wait(handle.auth().get_session()));
    heard.outcome(wait(db.client.as_user(&elsewhere.access_token)).map(drop));
    let space = heard.outcome(wait(db.client.spaces().create_space(NewSpace::named("mine").public())));
    let space = space.expect("a space").id;
    heard.outcome(wait(db.client.fidgets().create_fidget(space, NewFidget::of_type("x"))));
    heard.outcome(wait(db.client.fidgets().create_fidget(space, NewFidget::default())));
    heard.outcome(wait(db.client.spaces().update_space(space, SpacePatch::new().name("ours"))));
    heard.outcome(wait(db.client.spaces().get_public_spaces(10, 0)));
    heard.outcome(wait(db.client.communities().update_navigation("town", None)));
    kept(wait(auth.refresh_session()));
    let patch = UserPatch::new().password(NEW_PASSWORD);
    heard.note(&patch);
    heard.outcome(wait(auth.update_user(WRONG_PASSWORD, patch.clone())));
    heard.outcome(wait(auth.update_user(PASSWORD, patch)));
    heard.outcome(wait(auth.update_user(NEW_PASSWORD, UserPatch::new().email("ann@new.example"))));
    heard.outcome(wait(auth.get_session()));
    let last = kept(wait(service.sign_in("ann@new.example", NEW_PASSWORD))).expect("signed in");
    kept(wait(auth.set_session(&last.refresh_token)));
    kept(wait(auth.set_session(&last.refresh_token)));
    for _ in 0..11 {
        kept(wait(service.sign_in("carl@town.example", WRONG_PASSWORD)));
    }
    faults(db, heard, &kept);
    heard.outcome(wait(auth.delete_own_user(WRONG_PASSWORD)));
    heard.outcome(wait(service.delete_user(Uuid::from_u128(7))));
    heard.outcome(wait(db.client.discovery().refresh()));
    subscription.unsubscribe();
    careless.unsubscribe();
    let session_secrets =
        sessions.into_inner().into_iter().flat_map(|session| [session.access_token, session.refresh_token]);
    let others = [PASSWORD, NEW_PASSWORD, WRONG_PASSWORD, API_KEY, SEED].map(str::to_owned);
    session_secrets.chain(others).collect()
}

/// Makes the database refuse rows, because its messages may quote their values.
fn faults(db: &TestDatabase, heard: &Heard, kept: &dyn Fn(Result<Session, Error>) -> Option<Session>) {
    let own = |name: &str| match db.engine {
        Engine::Sqlite => format!("townsquare_{name}"),
        Engine::Postgres => format!("townsquare.{name}"),
    };
    for table in ["credentials", "sessions", "failures"] {
        let (refuse, allow) = match db.engine {
            Engine::Sqlite => (
                format!("CREATE TRIGGER refuse BEFORE INSERT ON {} BEGIN SELECT RAISE(ABORT, 'no'); END", own(table)),
                "DROP TRIGGER refuse".to_owned(),
            ),
            Engine::Postgres => (
                format!("ALTER TABLE {} ADD CONSTRAINT refuse CHECK (false) NOT VALID", own(table)),
                format!("ALTER TABLE {} DROP CONSTRAINT refuse", own(table)),
            ),
        };
        db.raw.run(&refuse);
        let auth = db.service.auth();
        let failed = wait(auth.sign_up(&format!("{table}@town.example"), PASSWORD));
        assert_eq!(failed.is_err(), table == "credentials", "{failed:?}");
        heard.outcome(failed);
        kept(wait(auth.sign_in("ann@new.example", NEW_PASSWORD)));
        kept(wait(auth.sign_in("ann@new.example", WRONG_PASSWORD)));
        db.raw.run(&allow);
    }
}

/// Returns every row of the database as text.
fn contents(db: &TestDatabase) -> String {
    let mut all = String::new();
    let tables = match db.engine {
        Engine::Sqlite => "SELECT name FROM sqlite_schema WHERE type = 'table'",
        Engine::Postgres => {
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname IN ('public', 'townsquare')"
        }
    };
    for table in db.raw.rows(tables).into_iter().flatten().flatten() {
        let sql = match db.engine {
            Engine::Sqlite => format!("SELECT * FROM {table:?}"),
            Engine::Postgres => format!("SELECT row_to_json(x)::text FROM {table} AS x"),
        };
        writeln!(all, "{table}: {:?}", db.raw.rows(&sql)).expect("memory");
    }
    all
}

fn assert_without(place: &str, text: &str, secrets: &[String]) {
    for secret in secrets {
        if let Some(at) = text.find(secret.as_str()) {
            let line = text[..at].rfind('\n').map_or(0, |line| line + 1);
            panic!("{place} holds a secret: {}", &text[line..(at + secret.len())]);
        }
    }
}

fn secrets_are_nowhere_to_be_found(engine: Engine) {
    let heard = listen();
    let Some(db) = TestDatabase::with(engine, |config: Config| {
        config.catalog_api_key(API_KEY).catalog_url("http://127.0.0.1:9/").catalog_tries(1)
    }) else {
        return;
    };
    let secrets = live(&db, &heard);
    assert!(secrets.len() > 12, "there were secrets to find");
    let text = heard.0.lock().clone();
    for heard in ["Invalid login credentials", "a listener of SignedIn", "SELECT"] {
        assert!(text.contains(heard) || (heard == "SELECT" && engine == Engine::Sqlite), "{heard} was heard");
    }
    assert_without("what was said", &text, &secrets);
    assert!(!text.contains("$argon2"), "the hash of a password was said");
    let rows = contents(&db);
    assert!(rows.contains("$argon2id$") && rows.contains("ann@new.example"), "there are rows to look into");
    assert_without("the database", &rows, &secrets);
    if engine == Engine::Sqlite {
        let file = db.file();
        for name in [file.clone(), file.with_extension("db-wal")] {
            let bytes = fs::read(&name).unwrap_or_default();
            assert_without(&name.display().to_string(), &String::from_utf8_lossy(&bytes), &secrets);
        }
    }
}

#[test]
fn secrets_are_in_no_log_error_or_table_on_sqlite() {
    in_subprocess(secrets_are_in_no_log_error_or_table_on_sqlite, || secrets_are_nowhere_to_be_found(Engine::Sqlite));
}

#[test]
fn secrets_are_in_no_log_error_or_table_on_postgres() {
    in_subprocess(secrets_are_in_no_log_error_or_table_on_postgres, || {
        secrets_are_nowhere_to_be_found(Engine::Postgres)
    });
}

#[test]
fn the_password_of_a_database_is_in_no_error_and_no_log() {
    in_subprocess(the_password_of_a_database_is_in_no_error_and_no_log, || {
        let heard = listen();
        let secret = "marked-database-3e5f";
        for url in [
            format!("postgres://ann:{secret}@127.0.0.1:9/town"),
            format!("postgres://ann:{secret}@127.0.0.1:notaport/town"),
            format!("postgres://ann:{secret}@[::/town?sslmode=what"),
            format!("mysql://ann:{secret}@127.0.0.1/town"),
        ] {
            let config = Config::new().database_url(&url).catalog_api_key(API_KEY);
            heard.note(&config);
            heard.error(&wait(Client::open(config)).map(drop).expect_err("nothing is there"));
        }
        let text = heard.0.lock().clone();
        assert_without("what was said", &text, &[secret.to_owned(), API_KEY.to_owned()]);
    });
}
