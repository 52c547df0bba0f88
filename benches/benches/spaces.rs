//! What do the tables cost on SQLite, next to rusqlite on the same file layout, with the same durability?
//!
//! The floor is a second database of the same schema (made by the library, then used by rusqlite alone), read and
//! written with cached statements; its rows become the same values.

#![forbid(unsafe_code)]

use std::{
    hint::black_box,
    path::Path,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use criterion::Criterion;
use rusqlite::{Connection, params};
use townsquare::{Config, NewSpace, Timestamp, Uuid, blocking::Client};
use townsquare_benches::{sized, town::Folder};

const COLUMNS: &str = "id, name, description, owner_id, is_public, created_at, updated_at";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    reading(&mut criterion);
    writing(&mut criterion);
    criterion.final_summary();
}

fn reading(criterion: &mut Criterion) {
    for size in [1_000, sized(100_000, 1_000)] {
        let folder = Folder::new();
        let client = open(&folder.join("town.db"));
        let spaces: Vec<_> = (0..size).map(|number| NewSpace::named(format!("Space {number}")).public()).collect();
        let created = client.as_service().spaces().create_spaces(spaces).expect("spaces");
        let raw = raw(&folder.join("town.db"));
        let mut group = criterion.benchmark_group(format!("sqlite/{size}"));
        let ids: Vec<Uuid> = created.iter().map(|space| space.id).step_by(7).collect();
        let service = client.as_service();
        let mut turn = ids.iter().cycle();
        group.bench_function("get_space/townsquare", |bencher| {
            bencher.iter(|| service.spaces().get_space(*turn.next().expect("endless")).expect("a space"));
        });
        let mut turn = ids.iter().cycle();
        group.bench_function("get_space/floor: rusqlite", |bencher| {
            bencher.iter(|| raw_space(&raw, turn.next().expect("endless")));
        });
        group.bench_function("get_public_spaces/townsquare", |bencher| {
            bencher.iter(|| client.spaces().get_public_spaces(20, 0).expect("spaces"));
        });
        group.bench_function("get_public_spaces/floor: rusqlite", |bencher| bencher.iter(|| raw_public_spaces(&raw)));
        group.finish();
        client.close();
    }
}

fn writing(criterion: &mut Criterion) {
    let folder = Folder::new();
    let client = open(&folder.join("town.db"));
    let service = client.as_service();
    open(&folder.join("raw.db")).close();
    let raw = Mutex::new(raw(&folder.join("raw.db")));
    let mut group = criterion.benchmark_group("sqlite/durable insert");
    group.bench_function("one/townsquare", |bencher| {
        bencher.iter(|| service.spaces().create_space(NewSpace::named("A space")).expect("a space"));
    });
    group.bench_function("one/floor: rusqlite", |bencher| bencher.iter(|| raw_insert(&raw.lock().expect("whole"))));
    let writers = 32;
    group.bench_function("32 writers, each/townsquare", |bencher| {
        bencher.iter_custom(|times| {
            together(writers, times, || {
                drop(service.spaces().create_space(NewSpace::named("A space")).expect("a space"));
            })
        });
    });
    group.bench_function("32 writers, each/rusqlite behind a mutex", |bencher| {
        bencher.iter_custom(|times| together(writers, times, || raw_insert(&raw.lock().expect("whole"))));
    });
    group.finish();
    client.close();
}

/// The time that `times` calls take when `threads` share them.
fn together(threads: u64, times: u64, call: impl Fn() + Sync) -> Duration {
    let started = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            let share = times / threads + u64::from(number < times % threads);
            let call = &call;
            scope.spawn(move || (0..share).for_each(|_| call()));
        }
    });
    started.elapsed()
}

fn open(file: &Path) -> Client {
    let config = Config::new().database_url(format!("sqlite:{}", file.display())).catalog_api_key("");
    Client::open(config).expect("opens")
}

fn raw(file: &Path) -> Connection {
    let connection = Connection::open(file).expect("opens");
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 8000")
        .expect("pragmas");
    connection
}

/// A row as the values that the library makes of it.
fn raw_space(
    connection: &Connection,
    id: &Uuid,
) -> (Uuid, String, Option<String>, Option<Uuid>, bool, Timestamp, Timestamp) {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM spaces WHERE id = ?1")).expect("prepares");
    let row = statement.query_row([id.to_string()], |row| {
        let uuid = |text: String| Uuid::parse_str(&text).unwrap_or_default();
        let time = |text: String| text.parse::<Timestamp>().unwrap_or_default();
        Ok((
            uuid(row.get(0)?),
            row.get(1)?,
            row.get(2)?,
            row.get::<_, Option<String>>(3)?.map(uuid),
            row.get(4)?,
            time(row.get(5)?),
            time(row.get(6)?),
        ))
    });
    black_box(row.expect("a row"))
}

fn raw_public_spaces(connection: &Connection) -> Vec<(String, String, String, Option<String>)> {
    let sql = "SELECT spaces.id, spaces.name, spaces.description, spaces.owner_id, spaces.is_public, spaces.created_at,
            spaces.updated_at, users.id, users.email
        FROM spaces LEFT JOIN users ON users.id = spaces.owner_id WHERE spaces.is_public = true
        ORDER BY spaces.created_at DESC, spaces.id LIMIT 20 OFFSET 0";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(5)?, row.get(8)?)));
    rows.expect("runs").map(|row| row.expect("a row")).collect()
}

fn raw_insert(connection: &Connection) {
    let sql = format!("INSERT INTO spaces ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6) RETURNING {COLUMNS}");
    let mut statement = connection.prepare_cached(&sql).expect("prepares");
    let now = format!("{:.6}", Timestamp::now());
    let row = statement
        .query_row(params![Uuid::new_v4().to_string(), "A space", None::<String>, None::<String>, false, now], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(5)?))
        });
    black_box(row.expect("a row"));
}
