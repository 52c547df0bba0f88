//! Each call is a span `operation` with its name, the kind of its caller and its outcome, and no span or event has a secret.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{Debug, Write as _},
    future::Future as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use townsquare::{
    Config, ErrorKind, Operation, Uuid,
    auth::{SignOutScope, UserPatch},
    blocking::Client,
    realtime::ChangeRequest,
    spaces::NewSpace,
    storage::{UploadOptions, UrlMethod},
};
use townsquare_tests::{
    subprocess::in_subprocess,
    temp_dir,
    test_database::{Engine, TestDatabase},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::every_call::{PASSWORD, every_call};

/// What a span said: its target and its fields.
type Span = (String, BTreeMap<String, String>);

/// Every span and every event of this process, of every level and every crate.
#[derive(Clone, Default)]
struct Trace {
    /// The id of a span is its place here, from 1.
    spans: Arc<Mutex<Vec<Span>>>,
    /// How many spans `take_calls` has returned.
    taken: Arc<AtomicUsize>,
    /// The fields of spans and events as text, for a search.
    text: Arc<Mutex<String>>,
}

impl Trace {
    /// Starts to capture.
    ///
    /// # Panics
    /// When the process has a subscriber.
    fn capture() -> Trace {
        let trace = Trace::default();
        tracing::subscriber::set_global_default(trace.clone()).expect("the first of this process");
        trace
    }

    /// The name, the caller and the outcome of each call that began since the last time, in the order in which they began.
    fn take_calls(&self) -> Vec<[String; 3]> {
        let spans = self.spans.lock();
        let begun = &spans[self.taken.swap(spans.len(), Ordering::Relaxed)..];
        let calls = begun.iter().filter(|(target, _)| target == "townsquare::operation");
        let calls = calls.map(|(_, fields)| {
            assert_eq!(fields.keys().collect::<Vec<_>>(), ["caller", "name", "outcome"], "{fields:?}");
            ["name", "caller", "outcome"].map(|field| fields[field].clone())
        });
        calls.collect()
    }
}

/// Adds the fields of a span or an event.
struct Fields<'a> {
    fields: BTreeMap<String, String>,
    text: &'a Mutex<String>,
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        writeln!(self.text.lock(), "{field}={value}").expect("memory");
        self.fields.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Subscriber for Trace {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields { fields: BTreeMap::new(), text: &self.text };
        span.record(&mut fields);
        let mut spans = self.spans.lock();
        spans.push((span.metadata().target().to_owned(), fields.fields));
        span::Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        let mut fields = Fields { fields: BTreeMap::new(), text: &self.text };
        values.record(&mut fields);
        let index = usize::try_from(span.into_u64() - 1).expect("the id of a span is its place");
        self.spans.lock()[index].1.extend(fields.fields);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields { fields: BTreeMap::new(), text: &self.text });
    }

    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

fn call(name: &str, caller: &str, outcome: &str) -> [String; 3] {
    [name, caller, outcome].map(str::to_owned)
}

#[test]
fn a_call_is_a_span_with_its_caller_and_its_outcome() {
    in_subprocess(a_call_is_a_span_with_its_caller_and_its_outcome, || {
        let trace = Trace::capture();
        let folder = temp_dir();
        let client = Client::open(Config::new().data_dir(folder.path()).catalog_api_key("")).expect("opens");
        client.auth().sign_up("ann@town.example", PASSWORD).expect("signed up");
        let session = client.as_service().auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
        let user = client.as_user(&session.access_token).expect("a handle");
        trace.take_calls();

        client.spaces().get_public_spaces(1, 0).expect("a list");
        client.spaces().create_space(NewSpace::named("x")).expect_err("anonymous");
        user.spaces().create_space(NewSpace::named("x")).expect("created");
        user.spaces().get_space(Uuid::nil()).expect_err("there is none");
        client.as_service().spaces().list_spaces(1, None).expect("a list");
        assert_eq!(
            trace.take_calls(),
            [
                call("get_public_spaces", "anonymous", "ok"),
                call("create_space", "anonymous", "forbidden"),
                call("create_space", "user", "ok"),
                call("get_space", "user", "not_found"),
                call("list_spaces", "service", "ok"),
            ]
        );

        let service = client.as_service();
        let auth = service.inner().auth();
        let mut dropped = Box::pin(auth.sign_up("bob@town.example", PASSWORD));
        assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(dropped);
        assert_eq!(trace.take_calls(), [call("sign_up", "service", "dropped")]);
        client.close();
    });
}

/// Operations that are no call on a handle.
const WITHOUT_A_HANDLE: [Operation; 2] = [Operation::Open, Operation::Restore];

#[test]
fn every_operation_has_a_span_with_its_name() {
    in_subprocess(every_operation_has_a_span_with_its_name, || {
        let trace = Trace::capture();
        let db = TestDatabase::on(Engine::Sqlite).expect("SQLite is part of the library");
        db.service.auth().sign_up("ann@town.example", PASSWORD).expect("an account");
        let session = db.service.auth().sign_in("ann@town.example", PASSWORD).expect("a session");
        let user = db.client.as_user(&session.access_token).expect("a handle");
        let operations = Operation::ALL.iter().filter(|operation| !WITHOUT_A_HANDLE.contains(operation));
        let operations: BTreeSet<_> = operations.map(|operation| operation.name().to_owned()).collect();
        let outcomes: BTreeSet<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).chain(["ok"]).collect();
        for (caller, handle) in [("user", &user), ("service", &db.service)] {
            trace.take_calls();
            every_call(&db, handle);
            let calls = trace.take_calls();
            for [name, _, outcome] in &calls {
                assert!(outcomes.contains(&outcome.as_str()), "{name}: {outcome}");
            }
            // A request without a token is one of an anonymous caller, and `every_call` makes a handle of the service.
            let own = calls.iter().filter(|[_, of, _]| of == caller);
            let names: BTreeSet<_> = own.map(|[name, ..]| name.clone()).collect();
            assert_eq!(names, operations, "the operations with a span of the {caller}, and all");
        }
    });
}

/// Does with planted texts what a program does; returns the secrets that come of it.
fn use_secrets(db: &TestDatabase) -> Vec<String> {
    let (password, other) = ("planted-password-4f1c", "planted-password-9d20");
    let email = "planted-address@town.example";
    let (auth, service) = (db.client.auth(), db.service.auth());
    auth.sign_up(email, password).expect("signed up");
    auth.sign_up(email, password).expect_err("taken");
    auth.sign_up("planted-malformed", password).expect_err("no address");
    auth.sign_in(email, other).expect_err("wrong");
    let mut sessions = vec![auth.sign_in(email, password).expect("signed in")];
    sessions.push(auth.refresh_session().expect("refreshed"));
    sessions.push(service.sign_in(email, password).expect("signed in"));
    db.client.as_user("planted-token").map(drop).expect_err("unknown");
    let verification = service.create_verification_token(sessions[0].user.id).expect("a token");
    auth.verify_email(&verification).expect("verified");
    auth.update_user(password, UserPatch::new().password(other)).expect("changed");
    // The change of the password has ended the other sessions.
    sessions.push(service.sign_in(email, other).expect("signed in"));
    let user = db.client.as_user(&sessions[3].access_token).expect("a handle");

    let stream = user.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
    user.spaces().create_space(NewSpace::named("planted-space").public()).expect("created");
    drop(stream);
    let files = db.service.storage();
    files.upload("assets", "planted-path", "planted-bytes", UploadOptions::new()).expect("uploaded");
    let url = files.signed_url("assets", "planted-path", UrlMethod::Get, Duration::from_secs(60)).expect("a URL");
    let (_, signature) = url.rsplit_once('?').expect("a signed URL has a query");
    for target in [format!("/files{url}"), format!("/files/assets/absent?{signature}")] {
        let response = db.client.handle_request("GET", &target, &[], "").expect("an answer");
        assert_eq!(response.status == 200, target.contains("planted-"), "{target}: {}", response.status);
    }
    let bearer = [("authorization".to_owned(), format!("Bearer {}", sessions[3].access_token))];
    db.client.handle_request("GET", "/files/private/planted-path", &bearer, "").expect("an answer");
    let recovery = service.create_recovery_token(email).expect("asked").expect("a token");
    sessions.push(auth.recover(&recovery, password).expect("recovered"));
    auth.sign_out_scope(SignOutScope::Global).expect("signed out");

    let tokens = sessions.into_iter().flat_map(|session| [session.access_token, session.refresh_token]);
    // `planted-`: passwords, the address, paths, names and contents.
    let others = [recovery, verification, signature.to_owned(), "planted-".to_owned()];
    tokens.chain(others).collect()
}

fn assert_no_secret_is_traced(engine: Engine) {
    let trace = Trace::capture();
    let Some(db) = TestDatabase::on(engine) else { return };
    let secrets = use_secrets(&db);
    let calls = trace.take_calls();
    for name in ["sign_up", "sign_in", "recover", "signed_url", "handle_file"] {
        assert!(calls.iter().any(|[of, ..]| of == name), "{name} was traced");
    }
    let text = trace.text.lock();
    for secret in &secrets {
        let line = text.lines().find(|line| line.contains(secret.as_str()));
        assert!(line.is_none(), "a span or an event has {secret}: {line:?}");
    }
}

#[test]
fn no_span_and_no_event_has_a_secret_on_sqlite() {
    in_subprocess(no_span_and_no_event_has_a_secret_on_sqlite, || assert_no_secret_is_traced(Engine::Sqlite));
}

#[test]
fn no_span_and_no_event_has_a_secret_on_postgres() {
    in_subprocess(no_span_and_no_event_has_a_secret_on_postgres, || assert_no_secret_is_traced(Engine::Postgres));
}
