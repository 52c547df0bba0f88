//! Secrets: no log line, error, `Debug` output or table contains a password, token or key.
//!
//! A process of its own runs every auth operation with marked secrets and captures its log; the test then searches for
//! the marks.

use std::{
    error::Error as _,
    fmt::{self, Write as _},
    fs, panic,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::json;
use townsquare::{
    Config, Error, Uuid,
    auth::{NewCredential, Session, SignOutScope, UserPatch, identity_claim},
    blocking::Client,
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
struct Captured(Arc<Mutex<String>>);

impl Captured {
    fn add(&self, what: impl fmt::Debug) {
        writeln!(self.0.lock(), "{what:?}").expect("memory");
    }

    /// Adds an error and its sources.
    fn add_error(&self, error: &Error) {
        self.add(error);
        let mut text = format!("{error} {:?} {:?}", error.message(), error.code());
        let mut cause = error.source();
        while let Some(inner) = cause {
            write!(text, " {inner} {inner:?}").expect("memory");
            cause = inner.source();
        }
        self.add(text);
    }

    /// Adds the outcome of an operation.
    fn add_outcome<T: fmt::Debug>(&self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => {
                self.add(&value);
                Some(value)
            }
            Err(error) => {
                self.add_error(&error);
                None
            }
        }
    }
}

impl Visit for Captured {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(format_args!("{field}={value:?}"));
    }
}

impl Subscriber for Captured {
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
fn capture_log() -> Captured {
    let captured = Captured::default();
    tracing::subscriber::set_global_default(captured.clone()).expect("the first of this process");
    let (collect, usual) = (captured.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |info| {
        collect.add(info.to_string());
        usual(info);
    }));
    captured
}

/// Runs every operation with marked secrets; returns the secrets.
fn use_secrets(db: &TestDatabase, captured: &Captured) -> Vec<String> {
    let sessions = Mutex::new(Vec::<Session>::new());
    let collect = |result: Result<Session, Error>| {
        let session = captured.add_outcome(result);
        sessions.lock().extend(session.clone());
        session
    };
    let (auth, service) = (db.client.auth(), db.service.auth());
    let subscription = {
        let captured = captured.clone();
        auth.on_auth_state_change(move |event, session| captured.add((event, session)))
    };
    let careless = auth.on_auth_state_change(|event, session| panic!("a listener of {event:?} with {session:?}"));
    captured.add(db.config().catalog_api_key(API_KEY));
    captured.add_outcome(auth.sign_up(EMAIL, PASSWORD));
    captured.add_outcome(auth.sign_up(EMAIL, PASSWORD));
    captured.add_outcome(auth.sign_up(PASSWORD, PASSWORD));
    captured.add_outcome(auth.sign_up("bob@town.example", &PASSWORD.repeat(60)));
    collect(auth.sign_in(EMAIL, WRONG_PASSWORD));
    collect(auth.sign_in(PASSWORD, WRONG_PASSWORD));
    let session = collect(auth.sign_in(EMAIL, PASSWORD)).expect("signed in");
    let audience = auth.identity_audience().expect("an audience");
    let claim = identity_claim(session.user.id, SEED, &audience, db.now()).expect("a key");
    captured.add_outcome(identity_claim(session.user.id, PASSWORD, &audience, db.now()));
    captured.add_outcome(auth.link_identity(&claim));
    captured.add_outcome(auth.link_identity(&json!({"publicKey": PASSWORD})));
    let elsewhere = collect(service.sign_in(EMAIL, PASSWORD)).expect("signed in");
    let handle = db.client.as_user(&elsewhere.access_token).expect("a handle");
    collect(handle.auth().refresh_session());
    collect(service.refresh_session_of(&elsewhere.refresh_token));
    db.clock.advance(Duration::from_secs(11));
    collect(service.refresh_session_of(&elsewhere.refresh_token));
    captured.add_outcome(handle.auth().get_session());
    captured.add_outcome(db.client.as_user(&elsewhere.access_token).map(drop));
    let space = captured.add_outcome(db.client.spaces().create_space(NewSpace::named("mine").public()));
    let space = space.expect("a space").id;
    captured.add_outcome(db.client.fidgets().create_fidget(space, NewFidget::of_type("x")));
    captured.add_outcome(db.client.fidgets().create_fidget(space, NewFidget::default()));
    captured.add_outcome(db.client.spaces().update_space(space, SpacePatch::new().name("ours")));
    captured.add_outcome(db.client.spaces().get_public_spaces(10, 0));
    captured.add_outcome(db.client.communities().update_navigation("town", None));
    collect(auth.refresh_session());
    let patch = UserPatch::new().password(NEW_PASSWORD);
    captured.add(&patch);
    captured.add_outcome(auth.update_user(WRONG_PASSWORD, patch.clone()));
    captured.add_outcome(auth.update_user(PASSWORD, patch));
    captured.add_outcome(auth.update_user(NEW_PASSWORD, UserPatch::new().email("ann@new.example")));
    captured.add_outcome(auth.get_session());
    let last = collect(service.sign_in("ann@new.example", NEW_PASSWORD)).expect("signed in");
    collect(auth.set_session(&last.refresh_token));
    collect(auth.set_session(&last.refresh_token));
    for _ in 0..11 {
        collect(service.sign_in("carl@town.example", WRONG_PASSWORD));
    }
    refused_rows(db, captured, &collect);
    import_hashes(db, captured, &collect);
    let mailed = use_mailed_tokens(db, captured, session.user.id, &collect);
    captured.add_outcome(auth.delete_own_user(WRONG_PASSWORD));
    captured.add_outcome(service.delete_user(Uuid::from_u128(7)));
    captured.add_outcome(db.client.discovery().refresh());
    subscription.unsubscribe();
    careless.unsubscribe();
    let session_secrets =
        sessions.into_inner().into_iter().flat_map(|session| [session.access_token, session.refresh_token]);
    let others = [PASSWORD, NEW_PASSWORD, WRONG_PASSWORD, API_KEY, SEED].map(str::to_owned);
    session_secrets.chain(others).chain(mailed).collect()
}

/// Imports password hashes, also those that are refused.
fn import_hashes(db: &TestDatabase, captured: &Captured, collect: &dyn Fn(Result<Session, Error>) -> Option<Session>) {
    let (id, email) = (Uuid::from_u128(9), "Dan@Town.example");
    db.user_of(id, email);
    let hash = bcrypt::hash_with_salt(PASSWORD, 4, [7; 16]).expect("a hash").to_string();
    let import = |row: NewCredential| {
        captured.add(&row);
        captured.add_outcome(db.service.auth().import_credentials(vec![row]))
    };
    import(NewCredential::of_user(id, PASSWORD));
    import(NewCredential::of_user(Uuid::nil(), &hash));
    import(NewCredential::of_user(id, hash.replace("$04$", "$31$")));
    import(NewCredential::of_user(id, hash)).expect("imported");
    collect(db.service.auth().sign_in(email, WRONG_PASSWORD));
    collect(db.service.auth().sign_in(email, PASSWORD)).expect("signed in");
}

/// Makes and uses recovery and verification tokens; returns them.
fn use_mailed_tokens(
    db: &TestDatabase,
    captured: &Captured,
    user: Uuid,
    collect: &dyn Fn(Result<Session, Error>) -> Option<Session>,
) -> Vec<String> {
    let (auth, service) = (db.client.auth(), db.service.auth());
    let email = "ann@new.example";
    let recovery = || service.create_recovery_token(email).expect("asked").expect("a known address");
    let verification = || service.create_verification_token(user).expect("a token");
    // The last two stay unused.
    let tokens = [recovery(), verification(), recovery(), verification()];
    captured.add_outcome(auth.create_recovery_token(email));
    captured.add_outcome(service.create_recovery_token(WRONG_PASSWORD));
    captured.add_outcome(service.find_user(WRONG_PASSWORD));
    captured.add_outcome(service.find_user(email));
    captured.add_outcome(auth.verify_email(&tokens[0]));
    captured.add_outcome(auth.verify_email(&tokens[1]));
    captured.add_outcome(auth.verify_email(&tokens[1]));
    captured.add_outcome(service.set_password(Uuid::nil(), WRONG_PASSWORD));
    collect(auth.recover(&tokens[1], WRONG_PASSWORD));
    assert!(collect(auth.recover(&tokens[2], "short")).is_none());
    captured.add_outcome(auth.sign_out_scope(SignOutScope::Others));
    captured.add_outcome(service.set_password(user, NEW_PASSWORD));
    let last = [recovery(), verification(), recovery()];
    collect(auth.recover(&last[0], NEW_PASSWORD)).expect("recovered");
    collect(auth.recover(&last[0], NEW_PASSWORD));
    service.create_recovery_token(email).expect("asked").into_iter().chain(tokens).chain(last).collect()
}

/// Makes the database refuse rows, because its messages may quote their values.
fn refused_rows(db: &TestDatabase, captured: &Captured, collect: &dyn Fn(Result<Session, Error>) -> Option<Session>) {
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
        let failed = auth.sign_up(&format!("{table}@town.example"), PASSWORD);
        assert_eq!(failed.is_err(), table == "credentials", "{failed:?}");
        captured.add_outcome(failed);
        collect(auth.sign_in("ann@new.example", NEW_PASSWORD));
        collect(auth.sign_in("ann@new.example", WRONG_PASSWORD));
        db.raw.run(&allow);
    }
}

/// Returns every row of the database as text.
fn all_rows(db: &TestDatabase) -> String {
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

fn assert_secrets_hidden(engine: Engine) {
    let captured = capture_log();
    let Some(db) = TestDatabase::with(engine, |config: Config| {
        config.catalog_api_key(API_KEY).catalog_url("http://127.0.0.1:9/").catalog_tries(1)
    }) else {
        return;
    };
    let secrets = use_secrets(&db, &captured);
    assert!(secrets.len() > 12, "there were secrets to find");
    let text = captured.0.lock().clone();
    for captured in ["Invalid login credentials", "a listener of SignedIn", "SELECT"] {
        assert!(
            text.contains(captured) || (captured == "SELECT" && engine == Engine::Sqlite),
            "{captured} is in the captured log"
        );
    }
    assert_without("the captured log", &text, &secrets);
    for hash in ["$argon2", "$2b$0", "$31$"] {
        assert!(!text.contains(hash), "the captured log contains a password hash");
    }
    let rows = all_rows(&db);
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
    in_subprocess(secrets_are_in_no_log_error_or_table_on_sqlite, || assert_secrets_hidden(Engine::Sqlite));
}

#[test]
fn secrets_are_in_no_log_error_or_table_on_postgres() {
    in_subprocess(secrets_are_in_no_log_error_or_table_on_postgres, || assert_secrets_hidden(Engine::Postgres));
}

#[test]
fn the_password_of_a_database_is_in_no_error_and_no_log() {
    in_subprocess(the_password_of_a_database_is_in_no_error_and_no_log, || {
        let captured = capture_log();
        let secret = "marked-database-3e5f";
        for url in [
            format!("postgres://ann:{secret}@127.0.0.1:9/town"),
            format!("postgres://ann:{secret}@127.0.0.1:notaport/town"),
            format!("postgres://ann:{secret}@[::/town?sslmode=what"),
            format!("mysql://ann:{secret}@127.0.0.1/town"),
        ] {
            let config = Config::new().database_url(&url).catalog_api_key(API_KEY);
            captured.add(&config);
            captured.add_error(&Client::open(config).map(drop).expect_err("nothing is there"));
        }
        let text = captured.0.lock().clone();
        assert_without("the captured log", &text, &[secret.to_owned(), API_KEY.to_owned()]);
    });
}
