//! Cost of the tables on PostgreSQL, compared with sqlx on the same server and socket.
//!
//! The floor has open connections and prepared statements, and reads the same columns into the same types. Each is called
//! in three ways: by a task of a multi-threaded runtime, by that runtime's `block_on`, and by a blocking call with a
//! current-thread runtime, which needs no wake-up between threads. Pages of public spaces and callers that take turns are
//! blocking calls.

#![forbid(unsafe_code)]

use std::{
    future::Future,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::Criterion;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _, postgres::PgRow};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Mutex,
};
use townsquare::{
    Client, Config, Timestamp, Uuid, blocking,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_benches::{
    raw::RawSpace,
    sized,
    spaces::{fill, fill_whale, insert_whale, open, owners},
};
use townsquare_tests::{
    postgres::{APP_ROLE, Server},
    replica::{Pair, replica_reads},
    wait::wait_until,
};

/// Concurrent writers, as many as the library's pool has connections.
const WRITERS: usize = 32;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let Some(server) = Server::durable() else { return };
    let url = server.socket_url(APP_ROLE, &server.new_database());
    let client = open(&url);
    let alone = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (insert, owners) = owners(1_000);
    let mut connection = alone.block_on(connect(&url));
    alone.block_on(connection.execute(AssertSqlSafe(insert))).expect("users");
    let ids = fill(&client, &owners, sized(100_000, 100));
    alone.block_on(connection.execute("ANALYZE")).expect("statistics");
    let users = ["ann", "bob", "cid"].map(|name| {
        let (address, password) = (format!("{name}@town.example"), "correct horse battery");
        client.auth().sign_up(&address, password).expect("an account");
        let session = client.auth().sign_in(&address, password).expect("a session");
        client.as_user(&session.access_token).expect("a handle")
    });
    let service = client.as_service();
    reading(&mut criterion, &url, [&service, &users[0]], &ids, &alone, connection);
    turns(&mut criterion, &users, &ids);
    pages(&mut criterion, &url, [&service, &users[0]], &alone);
    writing(&mut criterion, &url, client.as_service().inner());
    client.close();
    beside_private(&mut criterion, &server, &alone);
    on_replica(&mut criterion, &alone);
    criterion.final_summary();
}

fn threads() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("the server runs")
}

fn reading(
    criterion: &mut Criterion,
    url: &str,
    [service, user]: [&blocking::Client; 2],
    ids: &[Uuid],
    alone: &Runtime,
    mut connection: PgConnection,
) {
    let mut turn = ids.iter().step_by(7).copied().cycle();
    let mut next = || turn.next().expect("endless");
    let mut group = criterion.benchmark_group("postgres/get_space, a thread that waits");
    for (name, caller) in [("townsquare", service), ("townsquare, as a user", user)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| caller.spaces().get_space(next()).expect("a space"));
        });
    }
    group.bench_function("floor: sqlx", |bencher| {
        bencher.iter(|| alone.block_on(get_space(&mut connection, next())));
    });
    group.finish();
    let tasks = threads();
    let mut group = criterion.benchmark_group("postgres/get_space, main of a service");
    for (name, caller) in [("townsquare", service), ("townsquare, as a user", user)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| tasks.block_on(caller.inner().spaces().get_space(next())).expect("a space"));
        });
    }
    let mut held = tasks.block_on(connect(url));
    group.bench_function("floor: sqlx", |bencher| {
        bencher.iter(|| tasks.block_on(get_space(&mut held, next())));
    });
    group.finish();
    let mut group = criterion.benchmark_group("postgres/get_space, a task of a service");
    let mut turn = ids.iter().step_by(7).copied().cycle();
    for (name, caller) in [("townsquare", service), ("townsquare, as a user", user)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let ids: Vec<_> = turn.by_ref().take(times as usize).collect();
                let client = caller.inner().clone();
                timed(&tasks, async move {
                    for id in ids {
                        black_box(client.spaces().get_space(id).await.expect("a space"));
                    }
                })
            });
        });
    }
    let connection = Arc::new(Mutex::new(tasks.block_on(connect(url))));
    group.bench_function("floor: sqlx", |bencher| {
        bencher.iter_custom(|times| {
            let ids: Vec<_> = turn.by_ref().take(times as usize).collect();
            let connection = Arc::clone(&connection);
            timed(&tasks, async move {
                let mut connection = connection.lock().await;
                for id in ids {
                    black_box(get_space(&mut connection, id).await);
                }
            })
        });
    });
    group.finish();
}

/// One user, and three who take turns on one thread.
fn turns(criterion: &mut Criterion, users: &[blocking::Client], ids: &[Uuid]) {
    let mut group = criterion.benchmark_group("postgres/get_space, users in turns");
    for (name, users) in [("one", &users[..1]), ("three", users)] {
        let mut turn = ids.iter().step_by(7).zip(users.iter().cycle()).cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let (id, user) = turn.next().expect("endless");
                user.spaces().get_space(*id).expect("a space")
            });
        });
    }
    group.finish();
}

/// The first page, deep pages, and the first page beside an owner of very many private spaces and of the newest public ones.
fn pages(criterion: &mut Criterion, url: &str, [service, user]: [&blocking::Client; 2], alone: &Runtime) {
    let mut connection = alone.block_on(connect(url));
    let mut group = criterion.benchmark_group("postgres/get_public_spaces(20)");
    let mut measure = |place: &str, offset: u64, connection: &mut PgConnection| {
        for (name, caller) in [("townsquare", service), ("townsquare, as a user", user)] {
            group.bench_function(format!("{name}, {place}"), |bencher| {
                bencher.iter(|| caller.spaces().get_public_spaces(20, offset).expect("a page"));
            });
        }
        group.bench_function(format!("floor: sqlx, {place}"), |bencher| {
            bencher.iter(|| alone.block_on(get_public_spaces(connection, offset)));
        });
    };
    measure("first", 0, &mut connection);
    measure("offset 5,000", sized(5_000, 50), &mut connection);
    alone.block_on(connection.execute(AssertSqlSafe(insert_whale()))).expect("a user");
    fill_whale(service, sized(100_000, 100));
    alone.block_on(connection.execute("ANALYZE")).expect("statistics");
    measure("first, an owner of very many", 0, &mut connection);
    group.finish();
    let mut group = criterion.benchmark_group("postgres/get_public_spaces_after(20)");
    for (place, before) in [("one tenth", sized(10_000, 10)), ("nine tenths", sized(90_000, 90))] {
        let after = service.spaces().get_public_spaces(1, before).expect("a deep page").pop().expect("a space");
        for (name, caller) in [("townsquare", service), ("townsquare, as a user", user)] {
            group.bench_function(format!("{name}, after {place}"), |bencher| {
                bencher.iter(|| caller.spaces().get_public_spaces_after(20, &after).expect("a page"));
            });
        }
    }
    group.finish();
}

/// Pages of 50,000 public spaces beside 400,000 private ones: the policies must not keep anyone from the ordered index.
fn beside_private(criterion: &mut Criterion, server: &Server, alone: &Runtime) {
    let url = server.socket_url(APP_ROLE, &server.new_database());
    let client = open(&url);
    let mut connection = alone.block_on(connect(&url));
    let (insert, _) = owners(1);
    let spaces = format!(
        "INSERT INTO spaces (name, owner_id, is_public, created_at)
         SELECT 'A space', (SELECT id FROM users), number % 9 = 0, now() - number * interval '1 second'
         FROM generate_series(1, {}) AS number",
        sized(450_000, 450)
    );
    for statement in [insert, spaces, "ANALYZE".to_owned()] {
        alone.block_on(connection.execute(AssertSqlSafe(statement))).expect("rows");
    }
    // Signing in on this handle leaves the client anonymous.
    let service = client.as_service();
    service.auth().sign_up("ann@town.example", "correct horse battery").expect("an account");
    let session = service.auth().sign_in("ann@town.example", "correct horse battery").expect("a session");
    let user = client.as_user(&session.access_token).expect("a handle");
    let after = service.spaces().get_public_spaces(1, sized(20_000, 20)).expect("a deep page").pop().expect("a space");
    let mut group = criterion.benchmark_group("postgres/get_public_spaces(20), beside many private");
    for (name, caller) in [("service", &service), ("anonymous", &client), ("user", &user)] {
        group.bench_function(format!("{name}, first"), |bencher| {
            bencher.iter(|| caller.spaces().get_public_spaces(20, 0).expect("a page"));
        });
        group.bench_function(format!("{name}, after"), |bencher| {
            bencher.iter(|| caller.spaces().get_public_spaces_after(20, &after).expect("a page"));
        });
    }
    group.finish();
    client.close();
}

/// Reads on a standby, over the loopback: alone, and each right after a write, when the primary is asked how far the standby must be.
fn on_replica(criterion: &mut Criterion, alone: &Runtime) {
    let Some(pair) = Pair::start() else { return };
    let primary = open(&pair.database());
    let options = Config::new().database_url(pair.database()).catalog_api_key("");
    let client = blocking::Client::open(options.database_replica_url(pair.replica())).expect("the client opens");
    let mut connection = alone.block_on(connect(&pair.database()));
    let (insert, owners) = owners(1_000);
    alone.block_on(connection.execute(AssertSqlSafe(insert))).expect("users");
    let ids = fill(&primary, &owners, sized(10_000, 100));
    pair.follow();
    // Reads on the standby, from the first one on.
    let answered = |server| replica_reads(&client, server).expect("it has a replica");
    wait_until("reads go to the standby", || {
        client.spaces().get_space(ids[0]).expect("a space");
        answered("replica") > 0.0
    });

    let (on_standby, on_primary) = (answered("replica"), answered("primary"));
    let mut turn = ids.iter().step_by(7).copied().cycle();
    let mut next = || turn.next().expect("endless");
    let mut standby = alone.block_on(connect(&pair.replica()));
    let mut group = criterion.benchmark_group("postgres/get_space with a replica, a thread that waits");
    for (name, client) in [("townsquare, the standby", &client), ("townsquare, no replica", &primary)] {
        group.bench_function(name, |bencher| bencher.iter(|| client.spaces().get_space(next()).expect("a space")));
    }
    group.bench_function("floor: sqlx, the standby", |bencher| {
        bencher.iter(|| alone.block_on(get_space(&mut standby, next())));
    });
    for (name, client) in
        [("townsquare, the standby after a write", &client), ("townsquare, no replica after a write", &primary)]
    {
        let service = client.as_service();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let read = |_| {
                    let id = next();
                    service.spaces().update_space(id, SpacePatch::new().name("A new name")).expect("a space");
                    let started = Instant::now();
                    client.spaces().get_space(id).expect("a space");
                    started.elapsed()
                };
                (0..times).map(read).sum()
            });
        });
    }
    group.finish();
    assert!(answered("replica") - on_standby > answered("primary") - on_primary, "the primary has answered");
    client.close();
    primary.close();
}

fn writing(criterion: &mut Criterion, url: &str, service: &Client) {
    let tasks = threads();
    let mut group = criterion.benchmark_group("postgres/32 writers, each insert");
    group.bench_function("townsquare", |bencher| {
        bencher.iter_custom(|times| {
            let writers = shares(times).map(|share| {
                let client = service.clone();
                async move {
                    for _ in 0..share {
                        black_box(client.spaces().create_space(NewSpace::named("A space")).await.expect("a space"));
                    }
                }
            });
            timed(&tasks, all(writers.collect()))
        });
    });
    let connect = || Arc::new(Mutex::new(tasks.block_on(connect(url))));
    let connections: Vec<_> = (0..WRITERS).map(|_| connect()).collect();
    group.bench_function("floor: sqlx", |bencher| {
        bencher.iter_custom(|times| {
            let writers = shares(times).zip(&connections).map(|(share, connection)| {
                let connection = Arc::clone(connection);
                async move {
                    let mut connection = connection.lock().await;
                    for _ in 0..share {
                        black_box(create_space(&mut connection).await);
                    }
                }
            });
            timed(&tasks, all(writers.collect()))
        });
    });
    group.finish();
}

/// Returns the number of inserts of each writer.
fn shares(times: u64) -> impl Iterator<Item = u64> {
    let writers = WRITERS as u64;
    (0..writers).map(move |number| times / writers + u64::from(number < times % writers))
}

async fn all(tasks: Vec<impl Future<Output = ()> + Send + 'static>) {
    let started: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    for task in started {
        task.await.expect("no panic");
    }
}

/// Returns the duration of a task on a runtime's threads.
fn timed(runtime: &Runtime, task: impl Future<Output = ()> + Send + 'static) -> Duration {
    let started = Instant::now();
    runtime.block_on(runtime.spawn(task)).expect("no panic");
    started.elapsed()
}

async fn get_space(connection: &mut PgConnection, id: Uuid) -> RawSpace {
    let sql = "SELECT id, name, description, owner_id, is_public, created_at, updated_at FROM spaces WHERE id = $1";
    space(&sqlx::query(sql).bind(id).fetch_one(connection).await.expect("a row"))
}

/// A page as a plain program reads it: LIMIT and OFFSET are bound.
async fn get_public_spaces(connection: &mut PgConnection, offset: u64) -> Vec<RawSpace> {
    let sql = "SELECT spaces.id, spaces.name, spaces.description, spaces.owner_id, spaces.is_public, spaces.created_at,
            spaces.updated_at, users.id, users.email
        FROM spaces LEFT JOIN users ON users.id = spaces.owner_id WHERE spaces.is_public = true
        ORDER BY spaces.created_at DESC, spaces.id LIMIT $1 OFFSET $2";
    let rows = sqlx::query(sql).bind(20_i64).bind(i64::try_from(offset).expect("small")).fetch_all(connection).await;
    let owner = |row: &PgRow| row.get::<Option<Uuid>, _>(7).map(|id| (id, row.get(8)));
    rows.expect("a page").iter().map(|row| RawSpace { owner: owner(row), ..space(row) }).collect()
}

async fn create_space(connection: &mut PgConnection) -> RawSpace {
    let sql = "INSERT INTO spaces (id, name, description, owner_id, is_public, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, now(), now())
        RETURNING id, name, description, owner_id, is_public, created_at, updated_at";
    let insert =
        sqlx::query(sql).bind(Uuid::new_v4()).bind("A space").bind(None::<&str>).bind(None::<Uuid>).bind(false);
    space(&insert.fetch_one(connection).await.expect("a row"))
}

fn space(row: &PgRow) -> RawSpace {
    RawSpace {
        id: row.get(0),
        name: row.get(1),
        description: row.get(2),
        owner_id: row.get(3),
        is_public: row.get(4),
        created_at: time(row, 5),
        updated_at: time(row, 6),
        owner: None,
    }
}

/// Reads a time, on the wire a number of microseconds since 2000.
fn time(row: &PgRow, column: usize) -> Timestamp {
    Timestamp::from_microsecond(row.get_unchecked::<i64, _>(column) + 946_684_800_000_000).expect("in range")
}
