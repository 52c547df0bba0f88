//! `close` beside calls of other threads: each call succeeds or fails with `Closed`, and none panics (DESIGN 4).

use std::{thread, time::Duration};

use townsquare::{
    Config, Error, ErrorKind,
    blocking::{Client, wait},
    discovery::Timeframe,
    spaces::{NewSpace, SpacePatch},
    storage::{ListFiles, UploadOptions},
};
use townsquare_tests::{
    catalog::Catalog,
    s3_server::S3Server,
    test_database::{Engine, TestDatabase},
    upstream::{KEY, Upstream},
};

const ROUNDS: u32 = 20;

/// Threads that make the same call.
const CALLERS: usize = 2;

const PASSWORD: &str = "correct horse";

type Call = Box<dyn Fn() -> Result<(), Error> + Send>;

/// A database, a remote store and a catalog. The clients of the test are opened on them.
struct Fixture {
    db: TestDatabase,
    store: S3Server,
    upstream: Upstream,
}

impl Fixture {
    fn on(engine: Engine) -> Option<Fixture> {
        let (store, upstream) = (S3Server::start(), Upstream::of(Catalog::of(60).rows()));
        let db = TestDatabase::with(engine, |config| with_services(config, &store, &upstream))?;
        Some(Fixture { db, store, upstream })
    }

    fn open(&self) -> Client {
        Client::open(with_services(self.db.config(), &self.store, &self.upstream)).expect("opens")
    }
}

fn with_services(config: Config, store: &S3Server, upstream: &Upstream) -> Config {
    let config = config.storage_url(store.url("objects")).inline_file_limit(0);
    config.catalog_url(upstream.url()).catalog_api_key(KEY)
}

/// A request that has begun has a response: 503 if the client is closed meanwhile.
fn check_status(client: &Client, status: u16) {
    assert!(status < 300 || status == 503 && client.is_closed(), "{status}");
}

/// Repeats a call until the client is closed. Returns the first other error.
fn repeat(call: &Call) -> Result<(), Error> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Closed => return Ok(()),
            // A server of PostgreSQL has the write.
            Err(error) if error.code() == Some("08007") => return Ok(()),
            outcome => outcome?,
        }
    }
}

fn close_beside_calls(engine: Engine) {
    let Some(fixture) = Fixture::on(engine) else { return };
    let auth = fixture.db.client.auth();
    auth.sign_up("ann@town.example", PASSWORD).expect("signed up");
    let session = auth.create_session("ann@town.example", PASSWORD).expect("a session");
    let ann = fixture.db.client.as_user(&session.access_token).expect("a handle");
    let space = ann.spaces().create_space(NewSpace::named("Harbor").public()).expect("created").id;
    let large = vec![b'x'; 1_000_000];
    ann.storage().upload("assets", "large", large, UploadOptions::new()).expect("uploaded");
    let headers = vec![("authorization".to_owned(), format!("Bearer {}", session.access_token))];
    for round in 0..ROUNDS {
        let client = fixture.open();
        let ann = client.as_user(&session.access_token).expect("a handle");
        client.realtime().start().expect("capture is on");
        let calls = |place: usize| -> Vec<Call> {
            let (client, ann, headers) = (|| client.clone(), || ann.clone(), || headers.clone());
            let on_client = client();
            let get = move || on_client.spaces().get_space(space).map(drop);
            let on_client = ann();
            let update = move || on_client.spaces().update_space(space, SpacePatch::new().name("Pier")).map(drop);
            let (on_client, of_ann, target) = (client(), headers(), format!("/assets/{place}"));
            let put = move || {
                let response = on_client.storage().handle_file("PUT", &target, &of_ann, vec![b'x'; 100_000])?;
                check_status(&on_client, response.status);
                Ok(())
            };
            let (on_client, of_ann) = (client(), headers());
            let download = move || {
                let mut response = on_client.storage().handle_file("GET", "/assets/large", &of_ann, "")?;
                check_status(&on_client, response.status);
                while wait(response.body.next_chunk())?.is_some() {}
                Ok(())
            };
            let on_client = ann();
            let list = move || on_client.storage().list("assets", ListFiles::new()).map(drop);
            let (on_client, of_ann) = (client(), headers());
            let listen = move || {
                let response = on_client.realtime().handle_events("/?table=spaces", &of_ann)?;
                check_status(&on_client, response.status);
                Ok(())
            };
            let on_client = client();
            let sign_in = move || on_client.auth().create_session("ann@town.example", PASSWORD).map(drop);
            let on_client = client();
            let fetch = move || {
                on_client.discovery().force_refresh()?;
                on_client.discovery().get_trending_mini_apps(Timeframe::Days7, 1).map(drop)
            };
            let on_client = client();
            // The thread of a host's own runtime polls the future.
            let host = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let poll = move || host.block_on(on_client.inner().spaces().get_space(space)).map(drop);
            vec![
                Box::new(get),
                Box::new(update),
                Box::new(put),
                Box::new(download),
                Box::new(list),
                Box::new(listen),
                Box::new(sign_in),
                Box::new(fetch),
                Box::new(poll),
            ]
        };
        let callers: Vec<_> = (0..CALLERS).flat_map(calls).map(|call| thread::spawn(move || repeat(&call))).collect();
        #[allow(clippy::disallowed_methods, reason = "the close begins at another moment in each round")]
        thread::sleep(Duration::from_millis(u64::from(60 + 10 * (round % 7))));
        let closers: Vec<_> = [client.clone(), client].map(|client| thread::spawn(move || client.close())).into();
        for closer in closers {
            closer.join().expect("close does not panic");
        }
        for (place, caller) in callers.into_iter().enumerate() {
            let outcome = caller.join().unwrap_or_else(|_| panic!("caller {place} panicked in round {round}"));
            assert!(outcome.is_ok(), "caller {place} in round {round}: {outcome:?}");
        }
    }
}

#[test]
fn calls_beside_close_succeed_or_fail_as_closed_on_sqlite() {
    close_beside_calls(Engine::Sqlite);
}

#[test]
fn calls_beside_close_succeed_or_fail_as_closed_on_postgres() {
    close_beside_calls(Engine::Postgres);
}
