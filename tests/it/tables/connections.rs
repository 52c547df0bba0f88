//! Connections to PostgreSQL (DESIGN 3): roles, sockets and TLS by the URL, and the errors of a bad URL or server.

use std::{path::Path, process::Command};

use tokio::runtime::{Builder, Runtime};
use townsquare::{Config, ErrorKind, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    postgres::{APP_ROLE, Server, server},
    skip::skip,
    temp_dir,
};

fn open(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

/// Opens a client, writes a row and closes it.
fn assert_writes(url: &str) {
    let client = Client::open(open(url)).unwrap_or_else(|error| panic!("{url}: {error}"));
    client.as_service().spaces().create_space(NewSpace::named("x")).expect("created");
    client.close();
}

/// Makes a runtime with one worker thread and only the I/O driver.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_io().build().expect("a runtime")
}

#[test]
fn open_names_a_server_that_refuses_and_no_password() {
    let error = assert_kind(ErrorKind::Unavailable, Client::open(open("postgres://ann:horse@127.0.0.1:1/town")));
    let sentence = "Open failed: Unknown database error: cannot connect to 127.0.0.1:1: ";
    assert!(error.to_string().starts_with(sentence) && error.to_string().contains("refused"), "{error}");
    assert_eq!(error.status(), 503);
    assert!(error.explanation().contains("database_url"));
    assert!(!format!("{error} {error:?}").contains("horse"));
}

#[test]
fn open_names_a_missing_grant() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    let administrator = server.administrator(&database);
    let guest = format!("guest_of_{database}");
    administrator.run(&format!("CREATE ROLE {guest} LOGIN"));
    let error = assert_kind(ErrorKind::Config, Client::open(open(&server.url(&guest, &database))));
    assert!(error.to_string().contains("permission denied for database"), "{error}");
    assert_eq!(error.code(), Some("42501"));
    administrator.run(&format!("GRANT CREATE ON DATABASE {database} TO {guest}"));
    let error = assert_kind(ErrorKind::Config, Client::open(open(&server.url(&guest, &database))));
    assert!(error.to_string().contains("permission denied for schema public"), "{error}");
    assert_eq!(error.code(), Some("42501"));
    administrator.run(&format!("GRANT CREATE ON SCHEMA public TO {guest}"));
    assert_writes(&server.url(&guest, &database));
    drop(administrator);
    server.drop_database(&database);
    server.administrator("postgres").run(&format!("DROP ROLE {guest}"));
}

#[test]
fn a_unix_socket_url_works() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    let url = server.socket_url(APP_ROLE, &database);
    assert_writes(&url);
    assert_writes(&url.replace("@localhost/", "@/"));
    server.drop_database(&database);
}

#[test]
fn an_unreachable_server_fails_without_showing_the_password() {
    let Some(server) = server() else { return };
    let urls = [
        "postgres://u:MARKED@127.0.0.1:1/x".to_owned(),
        format!("postgres://nobody_known:MARKED@127.0.0.1:{}/postgres", server.port()),
        format!("postgres://{APP_ROLE}:MARKED@127.0.0.1:{}/no_such_database", server.port()),
        format!("postgres://{APP_ROLE}:MARKED@127.0.0.1:{}/postgres?sslmode=require", server.port()),
        "postgres://u:MARKED@[bad/x".to_owned(),
    ];
    for url in &urls[1..] {
        let error = assert_kind(ErrorKind::Config, Client::open(open(url)));
        assert!(error.message().contains("database_url"), "{error}");
        assert!(!format!("{error} {error:?}").contains("MARKED"), "{error:?}");
    }
    // Nothing listens at the first: the URL may be right, and the server down.
    let error = assert_kind(ErrorKind::Unavailable, Client::open(open(&urls[0])));
    assert!(error.is_retryable() && !format!("{error} {error:?}").contains("MARKED"), "{error:?}");
}

#[test]
fn open_does_not_promise_to_create_a_database_on_a_server() {
    let Some(server) = server() else { return };
    for migrate in [true, false] {
        let config = open(&server.url(APP_ROLE, "no_such_database")).migrate(migrate);
        let error = assert_kind(ErrorKind::Config, Client::open(config));
        assert_eq!(error.code(), Some("3D000"), "{error}");
        assert!(error.explanation().contains("create the database on the server"), "{}", error.explanation());
    }
}

#[test]
fn a_server_without_tls_accepts_optional_tls() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    let url = server.url(APP_ROLE, &database);
    for mode in ["disable", "allow", "prefer"] {
        assert_writes(&format!("{url}?sslmode={mode}"));
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = assert_kind(ErrorKind::Config, Client::open(open(&format!("{url}?sslmode={mode}"))));
        assert!(error.message().contains("database_url") && error.message().contains("TLS"), "{error}");
    }
    server.drop_database(&database);
}

#[test]
fn the_sslmode_decides_how_a_server_is_verified() {
    let folder = temp_dir();
    if !create_certificates(folder.path()) {
        return skip("openssl is not installed, which makes certificates");
    }
    let Some(server) = Server::with_tls(&folder.path().join("server.crt"), &folder.path().join("server.key")) else {
        return;
    };
    let database = server.new_database();
    let url = server.url(APP_ROLE, &database);
    for mode in ["prefer", "require"] {
        assert_writes(&format!("{url}?sslmode={mode}"));
        let client = Client::open(open(&format!("{url}?sslmode={mode}"))).expect("opens");
        let is_encrypted = server.administrator(&database).count(
            "pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE ssl AND application_name = 'townsquare'",
        );
        assert_eq!(is_encrypted, 1, "{mode}");
        client.close();
    }
    let foreign = folder.path().join("foreign.crt").display().to_string();
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = format!("{url}?sslmode={mode}&sslrootcert={foreign}");
        let error = assert_kind(ErrorKind::Config, Client::open(open(&url)));
        assert!(error.message().contains("certificate"), "another authority: {error}");
    }
    assert_writes(&format!("{url}?sslmode=require&sslrootcert={}", folder.path().join("ca.crt").display()));
    let bound = format!("{url}?sslmode=require&channel_binding=require");
    assert_kind(ErrorKind::Config, Client::open(open(&bound)));
    assert_writes(&format!("{bound}&sslrootcert={}", folder.path().join("ca.crt").display()));
    for mode in ["verify-ca", "verify-full"] {
        let error = assert_kind(ErrorKind::Config, Client::open(open(&format!("{url}?sslmode={mode}"))));
        assert!(error.message().contains("certificate"), "an authority that nobody knows: {error}");
        assert_writes(&format!("{url}?sslmode={mode}&sslrootcert={}", folder.path().join("ca.crt").display()));
    }
    // The certificate names the address, not this host name.
    let other = url.replace("127.0.0.1", "localhost");
    let root = format!("sslrootcert={}", folder.path().join("ca.crt").display());
    let error = assert_kind(ErrorKind::Config, Client::open(open(&format!("{other}?sslmode=verify-full&{root}"))));
    assert!(error.message().contains("certificate"), "another name: {error}");
    assert_writes(&format!("{other}?sslmode=verify-ca&{root}"));
}

#[test]
fn a_certificate_that_signs_itself_is_its_own_authority() {
    let folder = temp_dir();
    if !create_certificates(folder.path()) {
        return skip("openssl is not installed, which makes certificates");
    }
    let (certificate, key) = (folder.path().join("own.crt"), folder.path().join("own.key"));
    let Some(server) = Server::with_tls(&certificate, &key) else { return };
    let url = server.url(APP_ROLE, &server.new_database());
    for mode in ["require", "verify-ca", "verify-full"] {
        assert_writes(&format!("{url}?sslmode={mode}&sslrootcert={}", certificate.display()));
    }
}

#[test]
fn a_server_with_the_certificate_of_an_authority_is_refused_with_the_reason() {
    let folder = temp_dir();
    if !create_certificates(folder.path()) {
        return skip("openssl is not installed, which makes certificates");
    }
    let (certificate, key) = (folder.path().join("ca.crt"), folder.path().join("ca.key"));
    let Some(server) = Server::with_tls(&certificate, &key) else { return };
    let url = server.url(APP_ROLE, &server.new_database());
    let url = format!("{url}?sslmode=verify-ca&sslrootcert={}", certificate.display());
    let error = assert_kind(ErrorKind::Config, Client::open(open(&url)));
    assert!(error.message().contains("CA:FALSE"), "{error}");
}

/// Creates a certificate authority and a certificate for 127.0.0.1; false without openssl.
fn create_certificates(folder: &Path) -> bool {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.current_dir(folder).args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
    };
    openssl("version")
        && openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt")
        && openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=foreign -keyout foreign.key -out foreign.crt")
        && openssl("req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr")
        && openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=own -addext subjectAltName=IP:127.0.0.1 -addext \
             basicConstraints=critical,CA:FALSE -keyout own.key -out own.crt",
        )
        && std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").is_ok()
        && openssl(
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
        )
}

on_engine! { Postgres in postgres;
    /// A connection belongs to the runtime that polls its socket, and is closed after that runtime ended.
    fn tasks_of_short_lived_runtimes_get_connections(db: &TestDatabase) {
        let space = db.space();
        let (server, database) = db.database();
        let administrator = server.administrator("postgres");
        let open = format!("pg_stat_activity WHERE datname = '{database}' AND application_name = 'townsquare'");
        for _ in 0..40 {
            let (runtime, client, id) = (runtime(), db.async_service().clone(), space.id);
            let task = runtime.spawn(async move {
                client.spaces().create_spaces(vec![NewSpace::named("x")]).await?;
                client.spaces().get_space(id).await
            });
            assert_eq!(runtime.block_on(task).expect("no panic").expect("read"), space);
            drop(runtime);
            assert_eq!(db.service.spaces().get_space(space.id).expect("read"), space);
            assert!(administrator.count(&open) <= 32, "connections of runtimes that are no more");
        }
        assert_eq!(db.raw.count("spaces"), 41);
    }

    fn blocking_calls_work_inside_and_outside_runtimes(db: &TestDatabase) {
        let (space, runtime) = (db.space(), runtime());
        let (client, id) = (db.service.clone(), space.id);
        // The runtime's only thread is blocked here.
        let task = runtime.spawn(async move { client.spaces().get_space(id) });
        assert_eq!(runtime.block_on(task).expect("no panic").expect("read"), space);
        let still = Builder::new_current_thread().build().expect("a runtime");
        let within = still.block_on(async { db.service.spaces().get_space(id) });
        assert_eq!(within.expect("read"), space);
        assert_eq!(still.block_on(db.async_service().spaces().get_space(id)).expect("read"), space);
    }
}
