//! 64 writers of one path in two processes, whose threads stop polling from time to time. The last acknowledged write wins as a
//! whole; with `if_match` exactly one write wins each round.

use std::{process::Child, sync::Barrier, thread};

use townsquare::{ErrorKind, blocking::Client, storage::UploadOptions};
use townsquare_tests::{
    subprocess::{join_child, name_of, role},
    test_database::Engine,
};

use super::{
    content::{child_of, content, id_of, inherited_store},
    fixture::{Fixture, SMALL, Store},
    ticks::wait_with_ticks,
};

const THREADS: u64 = 32;
const SIZES: [usize; 4] = [8, 65_536, 65_537, 200_000];
const WRITES: u64 = 6;
const ROUNDS: u64 = 8;

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_with_32_writers() {
    let work: fn(&Client) = match role().as_deref() {
        Some("overwrite") => overwrite,
        Some("compete") => compete,
        _ => return,
    };
    let client = Client::open(inherited_store()).expect("opens").as_service();
    let ready = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                ready.wait();
                work(&client);
            });
        }
    });
    client.close();
}

#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn overwrite(client: &Client) {
    for _ in 0..WRITES {
        let id = fastrand::u64(..);
        let data = content(id, SIZES[(id % 4) as usize]);
        let info = wait_with_ticks(client.inner().storage().upload("assets", "a/file", data, UploadOptions::new()))
            .expect("uploaded");
        println!("\nACK {} {} {id}", info.updated_at.as_microsecond(), info.etag);
        let found =
            wait_with_ticks(client.inner().storage().download("assets", "a/file")).expect("there is always a version");
        id_of(&found, &SIZES);
    }
}

/// Writes round `n + 1` over the version of round `n`, until the last round is written.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn compete(client: &Client) {
    let storage = client.inner().storage();
    loop {
        let version = wait_with_ticks(storage.stat("assets", "a/file")).expect("there is always a version");
        let round: u64 = version.metadata["round"].parse().expect("a number");
        if round == ROUNDS {
            return;
        }
        let data = content(round + 1, SIZES[(round % 4) as usize]);
        let options = UploadOptions::new().if_match(version.etag).metadata("round", (round + 1).to_string());
        match wait_with_ticks(storage.upload("assets", "a/file", data, options)) {
            Ok(_) => println!("\nWON {round}"),
            Err(error) => assert_eq!((error.kind(), error.status()), (ErrorKind::Conflict, 412), "{error:?}"),
        }
    }
}

/// Runs two processes with 32 writers each, and returns the lines that begin with `word`.
fn lines_of_two_processes(fixture: &Fixture, role: &str, word: &str) -> Vec<String> {
    let test = name_of(&child_process_with_32_writers);
    let children: [Child; 2] = [(); 2].map(|()| child_of(fixture, test, role).spawn().expect("starts"));
    let mut lines = Vec::new();
    for child in children {
        let output = join_child(child);
        let said = String::from_utf8_lossy(&output.stdout);
        lines.extend(said.lines().filter_map(|line| line.strip_prefix(word)).map(|line| line.trim().to_owned()));
    }
    lines
}

fn on_each_folder(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for limit in [0, SMALL] {
            if let Some(fixture) = Fixture::on(engine, Store::Folder(limit)) {
                test(&fixture);
            }
        }
    }
}

fn assert_whole(fixture: &Fixture, size: u64) {
    assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/a/file"], size));
    let report = fixture.db.service.storage().repair().expect("repaired");
    assert_eq!((report.finished, report.orphans_removed, report.rows_removed), (0, 0, 0));
    assert!(report.mismatched.is_empty(), "{:?}", report.mismatched);
}

#[test]
fn the_last_of_64_writers_in_two_processes_wins_whole() {
    on_each_folder(|fixture| {
        let acknowledged = lines_of_two_processes(fixture, "overwrite", "ACK");
        assert_eq!(acknowledged.len() as u64, 2 * THREADS * WRITES);
        let mut versions: Vec<(i64, &str, u64)> = acknowledged
            .iter()
            .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
                [time, etag, id] => (time.parse().expect("a time"), etag, id.parse().expect("an id")),
                _ => panic!("{line}"),
            })
            .collect();
        versions.sort_unstable();
        assert!(versions.windows(2).all(|pair| pair[0].0 < pair[1].0), "updated_at grows with every write");
        let info = fixture.db.service.storage().stat("assets", "a/file").expect("found");
        let (time, etag, id) = versions[versions.len() - 1];
        assert_eq!((info.updated_at.as_microsecond(), info.etag.as_str()), (time, etag));
        assert_eq!(id_of(&fixture.get("assets", "a/file"), &SIZES), id);
        assert_whole(fixture, info.size);
    });
}

#[test]
fn with_if_match_exactly_one_of_64_writers_in_two_processes_wins_each_round() {
    on_each_folder(|fixture| {
        let options = UploadOptions::new().metadata("round", "0");
        fixture.db.service.storage().upload("assets", "a/file", content(0, 8), options).expect("uploaded");
        let mut won = lines_of_two_processes(fixture, "compete", "WON");
        won.sort_unstable();
        let expected: Vec<_> = (0..ROUNDS).map(|round| round.to_string()).collect();
        assert_eq!(won, expected);
        let found = fixture.get("assets", "a/file");
        assert_eq!(id_of(&found, &SIZES), ROUNDS);
        assert_whole(fixture, found.len() as u64);
    });
}
