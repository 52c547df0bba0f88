//! A backup and an export are one moment of rows and bytes (DESIGN 7), whatever writers do meanwhile.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use townsquare::{
    Config,
    blocking::Client,
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{Rng, test_database::Engine};

use super::{
    content::{content, id_of},
    fixture::{Fixture, Store, paths},
};

/// Files that writers move and never delete. Each has an id of its own.
const MOVED: u64 = 300;
/// Paths that writers overwrite and delete.
const CHANGED: u64 = 30;
/// A size above and one below the limit of inline files.
const SIZES: [usize; 2] = [70_000, 600];

fn size_of(id: u64) -> usize {
    SIZES[(id % 4 == 3) as usize]
}

fn put(client: &Client, path: &str, id: u64) {
    client.storage().upload("assets", path, content(id, size_of(id)), UploadOptions::new()).expect("uploaded");
}

/// Moves the files of `number`, and overwrites and deletes others, until `stop`.
fn disturb(client: &Client, number: u64, writers: u64, stop: &AtomicBool) {
    let storage = client.storage();
    let mut places: Vec<String> =
        (number..MOVED).step_by(writers as usize).map(|id| format!("moved/{id:03}")).collect();
    let (mut random, mut id) = (Rng::with_seed(number), 1_000_000 * (number + 1));
    while !stop.load(Ordering::Relaxed) {
        id += 1;
        // To the beginning and to the end of the list of files, past whoever reads it in order.
        let target = format!("{}/{id}", ["a", "z"][random.usize(..2)]);
        let place = random.choice(&mut places).expect("some files");
        storage.move_file("assets", place.as_str(), &target, Overwrite::Refuse).expect("moved");
        *place = target;
        let path = format!("changed/{number}-{}", random.u64(..CHANGED));
        match random.u32(..3) {
            0 => drop(storage.delete("assets", &path)),
            _ => put(client, &path, id),
        }
    }
}

/// Runs `work` while writers change files.
fn under_writers(fixture: &Fixture, work: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..3 {
            let (client, stop) = (fixture.db.service.clone(), &stop);
            scope.spawn(move || disturb(&client, number, 3, stop));
        }
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        done
    })
    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn filled(engine: Engine, store: Store) -> Option<Fixture> {
    let fixture = Fixture::on(engine, store)?;
    for id in 0..MOVED {
        put(&fixture.db.service, &format!("moved/{id:03}"), id);
    }
    Some(fixture)
}

/// Checks that each file is whole and that each of the moved files is there once.
fn assert_complete(files: &BTreeMap<String, Vec<u8>>) {
    let mut ids: Vec<u64> = files.values().map(|bytes| id_of(bytes, &SIZES)).filter(|id| *id < MOVED).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..MOVED), "{} of {MOVED} files: {ids:?}", ids.len());
}

#[test]
fn a_backup_has_every_file_that_writers_move_overwrite_and_delete_meanwhile() {
    for store in [Store::Folder(65_536), Store::Folder(65_536), Store::Memory(65_536)] {
        let fixture = filled(Engine::Sqlite, store).expect("SQLite is always there");
        let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
        under_writers(&fixture, || fixture.db.client.backup(&backup).expect("a backup"));
        Client::restore(&backup, &data_dir).expect("rows and bytes agree");
        let client = Client::open(Config::new().data_dir(&data_dir).catalog_api_key("")).expect("opened");
        let service = client.as_service();
        let files = paths(&service, "assets").into_iter().map(|path| {
            let bytes = service.storage().download("assets", &path).expect("whole").to_vec();
            (path, bytes)
        });
        assert_complete(&files.collect());
        let report = service.storage().repair().expect("repaired");
        assert_eq!((report.orphans_removed, report.rows_removed, report.mismatched.len()), (0, 0, 0));
        client.close();
        let left = fs::read_dir(fixture.files_folder().join(".townsquare/held")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "nothing stays in the store");
    }
}

#[test]
fn an_export_has_every_file_that_writers_move_overwrite_and_delete_meanwhile() {
    for (engine, store) in [
        (Engine::Sqlite, Store::Folder(65_536)),
        (Engine::Sqlite, Store::Folder(0)),
        (Engine::Sqlite, Store::Memory(0)),
        (Engine::Postgres, Store::Folder(65_536)),
        (Engine::Postgres, Store::Folder(1_000_000)),
    ] {
        let Some(fixture) = filled(engine, store) else { continue };
        let target = fixture.folder.path().join("export");
        under_writers(&fixture, || {
            fixture
                .db
                .service
                .storage()
                .export_files(&target, |_, _| std::ops::ControlFlow::Continue(()))
                .map(drop)
                .expect("exported");
        });
        let mut files = BTreeMap::new();
        collect(&target.join("assets"), &mut files);
        assert_complete(&files);
    }
}

fn collect(folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path.display().to_string(), fs::read(&path).expect("a file"));
        }
    }
}
