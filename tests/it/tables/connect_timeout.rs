//! Hosts of a PostgreSQL URL that do not answer (DESIGN 3): each has its own time limit, then the next one is tried.

use std::{
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::net::TcpSocket;
use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    realtime::{ChangeRequest, RowChange},
    spaces::NewSpace,
};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    proxy::Proxy,
    raw_sql::RawConnection,
    test_database::TestDatabase,
    wait::{DEADLINE, wait_until, wait_up_to},
};

/// A time limit that no call of a test reaches.
const NEVER: Duration = Duration::from_secs(600);

/// The time limit of a host in tests in which another one has to answer, also on a loaded machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A host that accepts connections and never answers, as a frozen server does.
fn silent_host() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// A host that drops the packets of new connections, because its queue is full. The connections fill it.
fn full_host(runtime: &tokio::runtime::Runtime) -> (tokio::net::TcpListener, Vec<TcpStream>, u16) {
    let _entered = runtime.enter();
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("listens");
    let address = listener.local_addr().expect("an address");
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queued.push(stream);
    }
    (listener, queued, address.port())
}

/// The configuration of a client with further hosts before the server.
fn after(db: &TestDatabase, ports: &[u16]) -> Config {
    let first: String = ports.iter().map(|port| format!("127.0.0.1:{port},")).collect();
    let url = db.url().replace("@127.0.0.1:", &format!("@{first}127.0.0.1:"));
    db.config().database_url(url).connect_timeout(CONNECT_TIMEOUT)
}

on_engine! { Postgres in postgres;
    fn a_host_that_does_not_answer_is_given_up_for_the_next(db: &TestDatabase) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let (_silent, silent) = silent_host();
        let (_full, _queued, full) = full_host(&runtime);
        for ports in [vec![silent], vec![full], vec![silent, full]] {
            let client = Client::open(after(db, &ports)).expect("the last host answers");
            let service = client.as_service();
            let names = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&names);
            let push = move |change: RowChange| heard.lock().push(change.new.expect("a row")["name"].to_string());
            let subscription = service.realtime().subscribe("names", ChangeRequest::table("spaces"), push);
            let subscription = subscription.expect("the connection that listens finds the server, too");
            service.spaces().create_space(NewSpace::named("heard")).expect("created");
            wait_until("the change arrives", || names.lock().len() == 1);
            drop(subscription);
            client.close();
        }
    }

    fn the_url_sets_the_time_limit_of_a_host(db: &TestDatabase) {
        let (_silent, silent) = silent_host();
        let url = db.url().replace("@127.0.0.1:", &format!("@127.0.0.1:{silent},127.0.0.1:"));
        let config = db.config().connect_timeout(Duration::from_secs(600));
        let client = Client::open(config.database_url(format!("{url}?connect_timeout=1"))).expect("opens");
        client.close();
    }

    fn hosts_that_never_answer_are_unavailable(db: &TestDatabase) {
        let (hosts, ports): (Vec<_>, Vec<_>) = [(); 2].map(|()| silent_host()).into_iter().unzip();
        let url = format!("postgres://app@127.0.0.1:{},127.0.0.1:{}/x", ports[0], ports[1]);
        let config = db.config().database_url(url).connect_timeout(Duration::from_millis(50));
        let refused = Client::open(config.operation_timeout(Duration::from_secs(2)));
        let error = assert_kind(ErrorKind::Unavailable, refused);
        assert_eq!((error.code(), error.is_retryable()), (Some("08001"), true), "{error:?}");
        // Each host was asked more than once.
        for host in hosts {
            host.set_nonblocking(true).expect("a setting");
            assert!(host.incoming().take_while(Result::is_ok).count() >= 2);
        }
    }

    /// A paused machine keeps its connections, and answers nothing.
    fn a_read_on_a_server_that_falls_silent_runs_on_the_next_one(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        let config = after(db, &[proxy.port()]).max_connections(1).operation_timeout(NEVER);
        let client = Client::open(config).expect("opens");
        let service = client.as_service();
        let space = service.spaces().create_space(NewSpace::named("harbor")).expect("created");
        proxy.stall(true);
        // The client cannot learn whether the server works on the call that it gave up, and does not wait for that with its only
        // connection.
        assert_eq!(service.spaces().get_space(space.id).expect("the other server answers"), space);
        let other = service.spaces().create_space(NewSpace::named("pier")).expect("the other server answers");
        assert_eq!(service.spaces().get_space(other.id).expect("the other server answers"), other);
        client.close();
    }

    fn a_write_on_a_server_that_falls_silent_is_in_doubt(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        let config = after(db, &[proxy.port()]).max_connections(1).operation_timeout(NEVER);
        let client = Client::open(config).expect("opens");
        let service = client.as_service();
        // The only connection has prepared the statement from here on, so it waits for the lock when it runs.
        service.spaces().create_space(NewSpace::named("first")).expect("created");
        let lock = RawConnection::postgres(&db.url()).expect("connects");
        lock.run("BEGIN");
        lock.run("LOCK TABLE spaces IN EXCLUSIVE MODE");
        thread::scope(|scope| {
            let write = scope.spawn(|| service.spaces().create_space(NewSpace::named("harbor")));
            db.wait_for_a_waiting_connection();
            proxy.stall(true);
            let error = assert_kind(ErrorKind::Unavailable, write.join().expect("no panic"));
            assert_eq!((error.code(), error.is_retryable()), (Some("08007"), false), "{error:?}");
        });
        lock.run("COMMIT");
        wait_until("the server goes on with the write", || db.raw.count("spaces") == 2);
        service.spaces().create_space(NewSpace::named("pier")).expect("the other server answers");
        client.close();
    }

    fn a_call_that_takes_long_on_a_server_that_answers_goes_on(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        let client = Client::open(after(db, &[proxy.port()])).expect("opens");
        let service = client.as_service();
        let lock = RawConnection::postgres(&db.url()).expect("connects");
        lock.run("BEGIN");
        lock.run("LOCK TABLE spaces IN EXCLUSIVE MODE");
        thread::scope(|scope| {
            let write = scope.spawn(|| service.spaces().create_space(NewSpace::named("harbor")));
            db.wait_for_a_waiting_connection();
            let probed = proxy.connections() + 2;
            wait_up_to(3 * DEADLINE, "the call has probed the server twice", || proxy.connections() >= probed);
            lock.run("COMMIT");
            write.join().expect("no panic").expect("created");
        });
        client.close();
    }

    /// A machine that dies closes no connection.
    fn open_on_a_server_that_falls_silent_ends(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        let url = db.url().replace(&format!(":{}/", db.database().0.port()), &format!(":{}/", proxy.port()));
        let config = db.config().database_url(url).connect_timeout(Duration::from_millis(300)).operation_timeout(NEVER);
        let lock = RawConnection::postgres(&db.url()).expect("connects");
        lock.run("BEGIN");
        lock.run("LOCK TABLE townsquare.database IN ACCESS EXCLUSIVE MODE");
        thread::scope(|scope| {
            let open = scope.spawn(|| Client::open(config));
            db.wait_for_a_waiting_connection();
            proxy.stall(true);
            let error = assert_kind(ErrorKind::Unavailable, open.join().expect("no panic"));
            assert_eq!(error.code(), Some("08001"), "{error:?}");
        });
        lock.run("COMMIT");
    }

    /// The first attempt got no answer and never will.
    fn a_host_that_answers_again_is_found_in_a_later_round(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        proxy.stall(true);
        let url = db.url().replace(&format!(":{}/", db.database().0.port()), &format!(":{}/", proxy.port()));
        let config = db.config().database_url(url).connect_timeout(CONNECT_TIMEOUT);
        thread::scope(|scope| {
            let open = scope.spawn(|| Client::open(config));
            wait_until("the client has connected", || proxy.connections() > 0);
            proxy.stall(false);
            open.join().expect("no panic").expect("opens").close();
        });
    }
}
