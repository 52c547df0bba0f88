//! A PostgreSQL server that starts or shuts down (SQLSTATE 57P03, DESIGN 3): clients are told to try again, or wait.

use std::{thread, time::Duration};

use townsquare::{Config, Error, ErrorKind, Uuid, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    wait::wait_until,
};

fn config(server: &Server, database: &str, timeout: Duration) -> Config {
    let url = server.url(APP_ROLE, database);
    Config::new().database_url(url).catalog_api_key("").operation_timeout(timeout)
}

/// Checks that the server said 57P03, and that the caller may try again.
#[track_caller]
fn assert_not_ready<T>(result: Result<T, Error>) {
    let error = assert_kind(ErrorKind::Unavailable, result);
    assert_eq!((error.code(), error.is_retryable()), (Some("57P03"), true), "{error:?}");
}

#[test]
fn a_starting_server_is_unavailable_and_waited_for_within_the_operation_timeout() {
    let Some(server) = Server::durable() else { return };
    let database = server.new_database();
    let config = |timeout| config(&server, &database, Duration::from_secs(timeout));
    let [hasty, patient] = [5, 60].map(|timeout| Client::open(config(timeout)).expect("opens"));
    let (of_hasty, of_patient) = (hasty.as_service(), patient.as_service());
    let space = of_patient.spaces().create_space(NewSpace::named("before")).expect("created");
    assert_eq!(of_hasty.spaces().get_space(space.id).expect("read"), space);

    server.restart_unfinished();
    assert_not_ready(Client::open(config(60)));
    assert_not_ready(of_hasty.spaces().get_space(space.id));
    assert_not_ready(of_hasty.spaces().create_space(NewSpace::named("refused")));
    assert_not_ready(of_hasty.spaces().create_spaces(vec![NewSpace::named("refused")]));
    thread::scope(|scope| {
        let read = scope.spawn(|| of_patient.spaces().get_space(space.id));
        let new = NewSpace::named("after").with_id(Uuid::new_v4());
        let write = scope.spawn(|| of_patient.spaces().create_space(new));
        server.finish_start();
        assert_eq!(read.join().expect("no panic").expect("the read waits"), space);
        assert_eq!(write.join().expect("no panic").expect("the write waits").name, "after");
    });

    assert_eq!(of_hasty.spaces().get_space(space.id).expect("read"), space);
    let administrator = server.administrator(&database);
    assert_eq!(
        administrator.rows("SELECT name FROM spaces ORDER BY name").concat(),
        ["after", "before"].map(|name| Some(name.to_owned()))
    );
    hasty.close();
    patient.close();
}

#[test]
fn a_server_that_shuts_down_is_unavailable() {
    let Some(server) = Server::durable() else { return };
    let database = server.new_database();
    let config = || config(&server, &database, Duration::from_secs(4));
    let client = Client::open(config()).expect("opens");
    let service = client.as_service();
    let space = service.spaces().create_space(NewSpace::named("before")).expect("created");
    // The server waits for the end of this session.
    let last_session = server.administrator(&database);

    server.begin_shutdown();
    wait_until("the server refuses connections", || RawConnection::postgres(&server.url(APP_ROLE, &database)).is_err());
    assert_not_ready(Client::open(config()));
    assert_eq!(service.spaces().get_space(space.id).expect("open connections serve on"), space);
    last_session.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'townsquare'");
    assert_not_ready(service.spaces().get_space(space.id));
    assert_not_ready(service.spaces().create_space(NewSpace::named("refused")));
    assert_eq!(last_session.count("spaces"), 1);

    drop(last_session);
    wait_until("the server is down", || {
        let error = assert_kind(ErrorKind::Unavailable, Client::open(config()));
        assert!(error.is_retryable(), "{error:?}");
        error.code().is_none()
    });
    client.close();
}

on_engine! { Postgres in closed;
    fn a_database_that_accepts_no_connections_is_unavailable(db: &TestDatabase) {
        let (server, database) = db.database();
        let administrator = server.administrator("postgres");
        administrator.run(&format!("ALTER DATABASE {database} ALLOW_CONNECTIONS false"));
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = ";
        wait_until("every connection has ended", || {
            administrator.value(&format!("{end}'{database}'"));
            db.client.spaces().get_public_spaces(10, 0).is_err()
        });
        let error = assert_kind(ErrorKind::Unavailable, db.client.spaces().get_public_spaces(10, 0));
        assert!(error.is_retryable() && error.status() == 503, "{error:?}");
        assert_kind(ErrorKind::Unavailable, Client::open(db.config()).map(drop));
        administrator.run(&format!("ALTER DATABASE {database} ALLOW_CONNECTIONS true"));
        db.client.spaces().get_public_spaces(10, 0).expect("it is back");
    }
}
