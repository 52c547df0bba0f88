//! `if_match` and `upsert` (DESIGN 7).

use townsquare::{ErrorKind, storage::UploadOptions};

use super::fixture::{assert_refused, bytes, on_every_store};

const CHANGED: &str = "Upload failed: Storage error: The file has another version than if_match";
const EXISTS: &str = "Upload failed: Storage error: The file already exists";

on_every_store! {
    fn if_match_writes_only_over_the_named_version(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        let write = |size: usize, etag: &str| {
            storage.upload("assets", "a", bytes(size, 2), UploadOptions::new().if_match(etag))
        };
        for size in [10, 100_000] {
            assert_refused(write(size, "0123"), ErrorKind::Conflict, 412, CHANGED);
            let first = write(size, "").expect("there is no file");
            assert_refused(write(size, ""), ErrorKind::Conflict, 412, CHANGED);
            let second = write(100_010 - size, &first.etag).expect("the version");
            assert_refused(write(size, &first.etag), ErrorKind::Conflict, 412, CHANGED);
            assert_eq!(storage.stat("assets", "a").expect("found"), second, "a refused write changes nothing");
            storage.delete("assets", "a").expect("deleted");
            assert_refused(write(size, &second.etag), ErrorKind::Conflict, 412, CHANGED);
        }
        let hostile = storage.upload("assets", "a", "x", UploadOptions::new().if_match("a\0b"));
        let refused = "Upload failed: Invalid file or request";
        assert_refused(hostile, ErrorKind::InvalidInput, 400, refused);
        assert_eq!(fixture.objects(), fixture.expected_objects(&[""; 0], 0));
    }

    fn without_upsert_an_existing_file_stays(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        for size in [10, 100_000] {
            let path = format!("of {size}");
            let write = |seed| storage.upload("assets", &path, bytes(size, seed), UploadOptions::new().upsert(false));
            write(1).expect("there is no file");
            assert_refused(write(2), ErrorKind::AlreadyExists, 409, EXISTS);
            assert!(fixture.get("assets", &path) == bytes(size, 1));
        }
    }

    fn of_concurrent_writers_with_if_match_one_wins_each_round(fixture: &Fixture) {
        let mut etag = fixture.put("assets", "a", "start").etag;
        for round in 0..3u8 {
            let outcomes: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..6u8).map(|number| {
                    let (storage, etag) = (fixture.db.service.storage(), etag.clone());
                    scope.spawn(move || {
                        let size = if number % 2 == 0 { 50 } else { 80_000 };
                        let data = bytes(size, round * 10 + number);
                        let options = UploadOptions::new().if_match(etag);
                        (data.clone(), storage.upload("assets", "a", data, options))
                    })
                }).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            let winners: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).collect();
            assert_eq!(winners.len(), 1, "{:?}", outcomes.iter().map(|(_, outcome)| outcome).collect::<Vec<_>>());
            let (data, Ok(info)) = winners[0] else { unreachable!("a winner") };
            assert!(fixture.get("assets", "a") == *data);
            etag.clone_from(&info.etag);
            assert_eq!(fixture.db.service.storage().stat("assets", "a").expect("found"), *info);
        }
    }

    fn concurrent_writers_leave_one_whole_version(fixture: &Fixture) {
        let sizes = [10, 70_000, 200, 150_000, 65_536, 65_537];
        std::thread::scope(|scope| {
            for (number, size) in (0u8..).zip(sizes) {
                let fixture = &fixture;
                scope.spawn(move || {
                    for round in 0..4 {
                        fixture.put("assets", "a", bytes(size, number * 10 + round));
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        match fixture.db.service.storage().download("assets", "a") {
                            Ok(data) => assert!(is_one_of(&data, &sizes), "{} bytes", data.len()),
                            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error:?}"),
                        }
                    }
                });
            }
        });
        let data = fixture.get("assets", "a");
        assert!(is_one_of(&data, &sizes));
        let info = fixture.db.service.storage().stat("assets", "a").expect("found");
        assert_eq!(info.size, data.len() as u64);
        assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/a"], info.size));
        assert_eq!(fixture.db.service.storage().repair().expect("repaired").finished, 0);
    }
}

fn is_one_of(data: &[u8], sizes: &[usize]) -> bool {
    let size = data.len();
    let Some(number) = sizes.iter().position(|known| *known == size) else { return false };
    (0..4).any(|round| data == bytes(size, u8::try_from(number).expect("few") * 10 + round))
}
