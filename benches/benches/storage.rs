//! Cost of files on the embedded default (SQLite and a folder), compared with rusqlite and `std::fs` with the same
//! durability.
//!
//! Small files: 4 KiB inline, and 4 KiB as objects with `inline_file_limit` 0. Large files: 1 MiB and 100 MiB, which are
//! objects by default. A page of 1,000 of a million files.

#![forbid(unsafe_code)]

use std::{
    cell::Cell,
    fs,
    hint::black_box,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use criterion::Criterion;
use townsquare::{
    Config,
    blocking::Client,
    storage::{ListFiles, UploadOptions},
};
use townsquare_benches::{
    comparison::{in_turns, is_wanted},
    raw,
    raw_files::{self, get_inline, get_row, insert_file, write_file},
    sized,
};
use townsquare_tests::temp_dir;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// How long a call and its floor are measured, by the size of the file.
const SHORT: Duration = Duration::from_secs(8);
const LONG: Duration = Duration::from_secs(30);

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    if is_wanted("4 KiB inline") {
        inline(&mut criterion);
    }
    if is_wanted("4 KiB as an object") {
        objects();
    }
    large();
    if is_wanted("files/list 1,000 of a million") {
        list(&mut criterion);
    }
    criterion.final_summary();
}

fn open(folder: &Path, options: impl FnOnce(Config) -> Config) -> Client {
    let config = Config::new().data_dir(folder).catalog_api_key("").max_file_size(1 << 30);
    Client::open(options(config)).expect("the client opens").as_service()
}

/// Bytes that do not compress.
fn data(size: usize) -> Bytes {
    let mut random = townsquare_tests::Rng::with_seed(1);
    (0..size / 8).flat_map(|_| random.u64(..).to_le_bytes()).collect::<Vec<u8>>().into()
}

fn put(client: &Client, path: &str, data: &Bytes) {
    black_box(client.storage().upload("assets", path, data.clone(), UploadOptions::new()).expect("uploaded"));
}

fn get(client: &Client, path: &str) -> Bytes {
    client.storage().download("assets", path).expect("downloaded")
}

/// Paths that were not given before, in a hundred folders.
struct Paths(AtomicUsize);

impl Paths {
    fn next(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        format!("folder-{}/file-{number}.bin", number % 100)
    }
}

/// 4 KiB in the database.
fn inline(criterion: &mut Criterion) {
    let folder = temp_dir();
    let (client, floor) = (open(&folder.path().join("a"), |config| config), folder.path().join("b"));
    open(&floor, |config| config).close();
    let file = floor.join("townsquare.db");
    let (raw, reader) = (Mutex::new(raw::writer(&file)), raw::reader(&file));
    let data = data(4 * KIB);
    let (ours, theirs) = (Paths(AtomicUsize::new(0)), Paths(AtomicUsize::new(0)));
    let put = || put(&client, &ours.next(), &data);
    let raw_put = || {
        let path = theirs.next();
        insert_file(&raw.lock().expect("whole"), &path, data.len(), Some(&data));
    };
    in_turns("4 KiB inline, put", SHORT, put, raw_put);
    let mut group = criterion.benchmark_group("files/4 KiB inline, put");
    group.bench_function("32 writers, each/townsquare", |bencher| {
        bencher.iter_custom(|times| time_on_threads(32, times, put));
    });
    group.bench_function("32 writers, each/rusqlite behind a mutex", |bencher| {
        bencher.iter_custom(|times| time_on_threads(32, times, raw_put));
    });
    group.finish();
    let paths: Vec<String> = (0..1_000).map(|_| ours.next()).collect();
    for path in &paths {
        client.storage().upload("assets", path, data.clone(), UploadOptions::new()).expect("uploaded");
        insert_file(&raw.lock().expect("whole"), &format!("get/{path}"), data.len(), Some(&data));
    }
    let turn = Turn::of(&paths);
    let raw_paths: Vec<String> = paths.iter().map(|path| format!("get/{path}")).collect();
    let raw_turn = Turn::of(&raw_paths);
    let raw_get = || get_inline(&reader, raw_turn.next());
    in_turns("4 KiB inline, get", SHORT, || get(&client, turn.next()), raw_get);
    client.close();
}

/// 4 KiB as objects.
fn objects() {
    let folder = temp_dir();
    let client = open(&folder.path().join("a"), |config| config.inline_file_limit(0));
    open(&folder.path().join("b"), |config| config).close();
    let file = folder.path().join("b/townsquare.db");
    let (raw, reader) = (raw::writer(&file), raw::reader(&file));
    let data = data(4 * KIB);
    let (ours, theirs) = (Paths(AtomicUsize::new(0)), Paths(AtomicUsize::new(0)));
    let root = folder.path().join("floor");
    (0..100).for_each(|number| fs::create_dir_all(root.join(format!("folder-{number}"))).expect("a folder"));
    let raw_put = |path: &str| {
        let path = Path::new(path);
        let (parent, name) = (path.parent().expect("a folder"), path.file_name().expect("a name"));
        write_file(&root.join(parent), name.to_str().expect("UTF-8"), &data);
    };
    let raw_put_with_row = || {
        let path = theirs.next();
        raw_put(&path);
        insert_file(&raw, &path, data.len(), None);
    };
    in_turns("4 KiB as an object, put", SHORT, || put(&client, &ours.next(), &data), raw_put_with_row);
    let paths: Vec<String> = (0..sized(1_000, 10)).map(|_| ours.next()).collect();
    for path in &paths {
        put(&client, path, &data);
        raw_put(path);
        insert_file(&raw, &format!("get/{path}"), data.len(), None);
    }
    let (turn, raw_turn) = (Turn::of(&paths), Turn::of(&paths));
    let raw_get = || {
        let path = raw_turn.next();
        black_box(get_row(&reader, &format!("get/{path}")));
        fs::read(root.join(path)).expect("read")
    };
    in_turns("4 KiB as an object, get", SHORT, || get(&client, turn.next()), raw_get);
    client.close();
}

/// Files above the limit of inline files. Four paths in turn, so that the disk does not fill.
fn large() {
    let sizes = [("1 MiB", MIB, SHORT), ("100 MiB", sized(100, 2) * MIB, LONG)];
    for (name, size, time) in sizes.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let folder = temp_dir();
        let client = open(&folder.path().join("a"), |config| config);
        open(&folder.path().join("b"), |config| config).close();
        let file = folder.path().join("b/townsquare.db");
        let (raw, reader) = (raw::writer(&file), raw::reader(&file));
        let root = folder.path().join("floor");
        fs::create_dir(&root).expect("a folder");
        let data = data(size);
        let names: Vec<String> = (0..4).map(|number| format!("file-{number}.bin")).collect();
        let (turn, raw_turn, rows) = (Turn::of(&names), Turn::of(&names), Paths(AtomicUsize::new(0)));
        for name in &names {
            put(&client, name, &data);
            write_file(&root, name, &data);
            insert_file(&raw, name, size, None);
        }
        let raw_put_with_row = || {
            write_file(&root, raw_turn.next(), &data);
            insert_file(&raw, &rows.next(), size, None);
        };
        in_turns(&format!("{name}, put"), time, || put(&client, turn.next(), &data), raw_put_with_row);
        let raw_get = || {
            let name = raw_turn.next();
            black_box(get_row(&reader, name));
            fs::read(root.join(name)).expect("read")
        };
        in_turns(&format!("{name}, get"), time / 2, || get(&client, turn.next()), raw_get);
        client.close();
    }
}

/// 1,000 files of a million, from the middle of the bucket.
fn list(criterion: &mut Criterion) {
    let folder = temp_dir();
    let client = open(folder.path(), |config| config);
    let file = folder.path().join("townsquare.db");
    raw_files::fill(&raw::writer(&file), sized(1_000_000, 2_000));
    let reader = raw::reader(&file);
    let page = || ListFiles::new().limit(1_000).after("folder-49/");
    let prefix = || ListFiles::with_prefix("folder-49/").limit(1_000);
    let user = client.clone();
    user.auth().sign_up("ann@town.example", "correct horse battery").expect("an account");
    let session = user.auth().sign_in("ann@town.example", "correct horse battery").expect("a session");
    let user = client.as_user(&session.access_token).expect("a handle");
    let mut group = criterion.benchmark_group("files/list 1,000 of a million");
    for (name, client) in [("the service", &client), ("a user", &user)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| client.storage().list("assets", page()).expect("a page").len());
        });
    }
    group.bench_function("the service, a folder", |bencher| {
        bencher.iter(|| client.storage().list("assets", prefix()).expect("a page").len());
    });
    group.bench_function("floor: rusqlite", |bencher| bencher.iter(|| raw_files::list(&reader, "folder-49/").len()));
    raw_files::fill_private(&raw::writer(&file), sized(1_000_000, 2_000), &session.user.id.to_string());
    group.bench_function("a user, the own private files among those of others", |bencher| {
        bencher.iter(|| {
            let found = user.storage().list("private", ListFiles::new().limit(1_000)).expect("a page").len();
            assert_eq!(found, 1_000);
        });
    });
    group.finish();
    client.close();
}

/// Gives texts in turn, without an end.
struct Turn<'a>(&'a [String], Cell<usize>);

impl<'a> Turn<'a> {
    fn of(all: &'a [String]) -> Turn<'a> {
        Turn(all, Cell::new(0))
    }

    fn next(&self) -> &'a str {
        let place = self.1.replace(self.1.get() + 7);
        &self.0[place % self.0.len()]
    }
}

/// The time that `times` calls take when `threads` share them.
fn time_on_threads(threads: u64, times: u64, call: impl Fn() + Sync) -> Duration {
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
