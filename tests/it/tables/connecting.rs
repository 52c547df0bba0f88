//! Reaching a PostgreSQL server (DESIGN 3): roles, sockets and TLS by the URL, and refusals that name what is wrong.

use std::{path::Path, process::Command};

use tokio::runtime::{Builder, Runtime};
use townsquare::{Client, Config, ErrorKind, NewSpace, blocking::wait};
use townsquare_tests::{
    on_engine,
    postgres::{PLAIN_ROLE, Server, server},
    skip::skip,
    store::Store,
    temp::TempFolder,
    town::refused,
};

on_engine!(
    postgres,
    Postgres,
    tasks_of_runtimes_that_come_and_go_are_served,
    a_thread_that_waits_is_served_wherever_it_stands,
);

fn open(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

/// Opens a client, writes a row and closes it.
fn works(url: &str) {
    let client = wait(Client::open(open(url))).unwrap_or_else(|error| panic!("{url}: {error}"));
    wait(client.as_service().spaces().create_space(NewSpace::named("x"))).expect("created");
    wait(client.close());
}

/// With one thread, and with no more than it must have.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_io().build().expect("a runtime")
}

/// A connection belongs to the runtime that hears its socket: none is lent to another, and none is kept for ever.
fn tasks_of_runtimes_that_come_and_go_are_served(store: &Store) {
    let space = store.space();
    let (server, database) = store.database();
    let administrator = server.administrator("postgres");
    let open = format!("pg_stat_activity WHERE datname = '{database}' AND application_name = 'townsquare'");
    for _ in 0..40 {
        let (runtime, client, id) = (runtime(), store.service.clone(), space.id);
        let task = runtime.spawn(async move {
            client.spaces().create_spaces(vec![NewSpace::named("x")]).await?;
            client.spaces().get_space(id).await
        });
        assert_eq!(runtime.block_on(task).expect("no panic").expect("read"), space);
        drop(runtime);
        assert_eq!(wait(store.service.spaces().get_space(space.id)).expect("read"), space);
        assert!(administrator.count(&open) <= 32, "connections of runtimes that are no more");
    }
    assert_eq!(store.outside.count("spaces"), 41);
}

fn a_thread_that_waits_is_served_wherever_it_stands(store: &Store) {
    let (space, runtime) = (store.space(), runtime());
    let (client, id) = (store.service.clone(), space.id);
    // The runtime's one thread waits, so the runtime stands still.
    let task = runtime.spawn(async move { wait(client.spaces().get_space(id)) });
    assert_eq!(runtime.block_on(task).expect("no panic").expect("read"), space);
    let still = Builder::new_current_thread().build().expect("a runtime");
    let within = still.block_on(async { wait(store.service.spaces().get_space(id)) });
    assert_eq!(within.expect("read"), space);
    assert_eq!(still.block_on(store.service.spaces().get_space(id)).expect("read"), space);
}

#[test]
fn a_missing_grant_is_named() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    let administrator = server.administrator(&database);
    let guest = format!("guest_of_{database}");
    administrator.run(&format!("CREATE ROLE {guest} LOGIN"));
    let error = refused(ErrorKind::Config, wait(Client::open(open(&server.url(&guest, &database)))));
    assert!(error.to_string().contains("permission denied for database"), "{error}");
    assert_eq!(error.code(), Some("42501"));
    administrator.run(&format!("GRANT CREATE ON DATABASE {database} TO {guest}"));
    let error = refused(ErrorKind::Config, wait(Client::open(open(&server.url(&guest, &database)))));
    assert!(error.to_string().contains("permission denied for schema public"), "{error}");
    assert_eq!(error.code(), Some("42501"));
    administrator.run(&format!("GRANT CREATE ON SCHEMA public TO {guest}"));
    works(&server.url(&guest, &database));
    drop(administrator);
    server.drop_database(&database);
    server.administrator("postgres").run(&format!("DROP ROLE {guest}"));
}

#[test]
fn a_socket_is_as_good_as_a_port() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    works(&server.socket_url(PLAIN_ROLE, &database));
    server.drop_database(&database);
}

#[test]
fn a_server_that_is_not_there_is_refused_without_its_password() {
    let Some(server) = server() else { return };
    let urls = [
        "postgres://u:MARKED@127.0.0.1:1/x".to_owned(),
        format!("postgres://nobody_known:MARKED@127.0.0.1:{}/postgres", server.port()),
        format!("postgres://{PLAIN_ROLE}:MARKED@127.0.0.1:{}/no_such_database", server.port()),
        format!("postgres://{PLAIN_ROLE}:MARKED@127.0.0.1:{}/postgres?sslmode=require", server.port()),
        "postgres://u:MARKED@[bad/x".to_owned(),
    ];
    for url in urls {
        let error = refused(ErrorKind::Config, wait(Client::open(open(&url))));
        assert!(error.message().contains("database_url"), "{error}");
        assert!(!format!("{error} {error:?}").contains("MARKED"), "{error:?}");
    }
}

#[test]
fn a_server_without_tls_takes_those_who_do_not_insist() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    let url = server.url(PLAIN_ROLE, &database);
    for mode in ["disable", "allow", "prefer"] {
        works(&format!("{url}?sslmode={mode}"));
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let error = refused(ErrorKind::Config, wait(Client::open(open(&format!("{url}?sslmode={mode}")))));
        assert!(error.message().contains("database_url") && error.message().contains("TLS"), "{error}");
    }
    server.drop_database(&database);
}

#[test]
fn a_server_with_tls_is_verified_as_far_as_asked() {
    let folder = TempFolder::new();
    if !certify(folder.path()) {
        return skip("openssl is not installed, which makes certificates");
    }
    let Some(server) = Server::with_tls(&folder.join("server.crt"), &folder.join("server.key")) else { return };
    let database = server.new_database();
    let url = server.url(PLAIN_ROLE, &database);
    for mode in ["prefer", "require"] {
        works(&format!("{url}?sslmode={mode}"));
        let client = wait(Client::open(open(&format!("{url}?sslmode={mode}")))).expect("opens");
        let is_encrypted = server.administrator(&database).count(
            "pg_stat_ssl JOIN pg_stat_activity USING (pid)
            WHERE ssl AND application_name = 'townsquare'",
        );
        assert_eq!(is_encrypted, 1, "{mode}");
        wait(client.close());
    }
    for mode in ["verify-ca", "verify-full"] {
        let error = refused(ErrorKind::Config, wait(Client::open(open(&format!("{url}?sslmode={mode}")))));
        assert!(error.message().contains("certificate"), "an authority that nobody knows: {error}");
        works(&format!("{url}?sslmode={mode}&sslrootcert={}", folder.join("ca.crt").display()));
    }
    // The certificate is for the address, not for this name of it.
    let other = url.replace("127.0.0.1", "localhost");
    let root = format!("sslrootcert={}", folder.join("ca.crt").display());
    let error = refused(ErrorKind::Config, wait(Client::open(open(&format!("{other}?sslmode=verify-full&{root}")))));
    assert!(error.message().contains("certificate"), "another name: {error}");
    works(&format!("{other}?sslmode=verify-ca&{root}"));
}

/// Makes an authority, and by it a certificate for 127.0.0.1; `false` where there is nothing to make them with.
fn certify(folder: &Path) -> bool {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.current_dir(folder).args(arguments.split(' ')).output().is_ok_and(|output| output.status.success())
    };
    openssl("version")
        && openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt")
        && openssl("req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr")
        && std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").is_ok()
        && openssl(
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
        )
}
