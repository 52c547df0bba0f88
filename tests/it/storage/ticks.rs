//! Blocking callers whose thread stops polling from time to time, as the thread of a Python caller does between two checks for
//! signals.

use std::{sync::mpsc, thread, time::Duration};

use bytes::Bytes;
use townsquare::{
    blocking::{Client, wait_while},
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::test_database::Engine;

use super::{
    content::{content, id_of},
    fixture::{Fixture, SMALL, Store},
};

const TICK: Duration = Duration::from_millis(10);

/// Long enough for all uploads of a test on a loaded machine; only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a thread does.
type Work = Box<dyn FnOnce(&Client) + Send>;

/// Waits for a future and stops polling it every millisecond.
pub(super) fn wait_with_ticks<F: Future>(future: F) -> F::Output {
    match wait_while(future, TICK, || Ok::<(), ()>(())) {
        Ok(output) => output,
        Err(()) => panic!("no tick fails"),
    }
}

fn put(client: &Client, path: &str, data: impl Into<Bytes>) {
    wait_with_ticks(client.inner().storage().upload("assets", path, data, UploadOptions::new())).expect("uploaded");
}

/// Runs each of `works` on a thread of its own.
fn all_return(fixture: &Fixture, works: Vec<Work>) {
    let (ended, ends) = mpsc::channel();
    let count = works.len();
    for (number, work) in works.into_iter().enumerate() {
        let (client, ended) = (fixture.db.service.clone(), ended.clone());
        thread::spawn(move || {
            work(&client);
            ended.send(number).expect("the test waits");
        });
    }
    drop(ended);
    let mut returned: Vec<_> = (0..count).map_while(|_| ends.recv_timeout(PATIENCE).ok()).collect();
    returned.sort_unstable();
    assert_eq!(returned, (0..count).collect::<Vec<_>>(), "the threads that returned");
}

#[test]
fn uploads_of_a_large_and_a_small_file_to_one_path_return() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(SMALL)).expect("SQLite is always there");
    let sizes = [30_000_000, 10];
    let contents = sizes.map(|size| Bytes::from(content(fastrand::u64(..), size)));
    let writer = |number: usize| -> Work {
        let contents = contents.clone();
        Box::new(move |client| (0..24).for_each(|round| put(client, "file", contents[(number + round) % 2].clone())))
    };
    all_return(&fixture, vec![writer(0), writer(1)]);
    id_of(&fixture.get("assets", "file"), &sizes);
}

#[test]
fn threads_that_write_read_move_and_delete_the_same_paths_return() {
    for limit in [0, SMALL] {
        let fixture = Fixture::on(Engine::Sqlite, Store::Folder(limit)).expect("SQLite is always there");
        let sizes = [10, 65_536, 65_537, 300_000];
        let worker = |number: usize| -> Work {
            Box::new(move |client| {
                let storage = client.inner().storage();
                for round in 0..6 {
                    put(client, "file", content(fastrand::u64(..), sizes[(number + round) % sizes.len()]));
                    match number % 4 {
                        0 => drop(wait_with_ticks(storage.move_file("assets", "file", "other", Overwrite::Replace))),
                        1 => drop(wait_with_ticks(storage.copy("assets", "other", "file", Overwrite::Replace))),
                        2 => drop(wait_with_ticks(storage.delete("assets", "file"))),
                        _ => drop(wait_with_ticks(storage.download("assets", "file"))),
                    }
                }
            })
        };
        all_return(&fixture, (0..64).map(worker).collect());
        for path in ["file", "other"] {
            if let Ok(data) = fixture.db.service.storage().download("assets", path) {
                id_of(&data, &sizes);
            }
        }
        let report = fixture.db.service.storage().repair().expect("repaired");
        assert_eq!((report.orphans_removed, report.rows_removed, &report.mismatched[..]), (0, 0, &[][..]));
    }
}
