//! Upload, download, stat and list (SPEC 4.4).

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use townsquare::{
    ErrorKind,
    blocking::Client,
    storage::{ListFiles, UploadOptions},
};

use super::fixture::{assert_refused, bytes, on_every_store, paths, put};

on_every_store! {
    fn an_uploaded_file_is_downloaded_and_described(fixture: &Fixture) {
        for size in [0, 1, 5_000, 65_536, 65_537, 300_000] {
            let (data, path) = (bytes(size, 1), format!("images/of {size}.png"));
            let options = UploadOptions::new().metadata("author", "ann").cache_control(60);
            let storage = fixture.db.service.storage();
            let info = storage.upload("assets", &path, data.clone(), options).expect("uploaded");
            assert_eq!((info.bucket.as_str(), info.path.as_str(), info.size), ("assets", path.as_str(), size as u64));
            assert_eq!((info.content_type.as_str(), info.cache_control, info.owner_id), ("image/png", 60, None));
            assert_eq!(info.metadata, [("author".to_owned(), "ann".to_owned())].into());
            assert_eq!(info.updated_at, fixture.db.now());
            assert_eq!(storage.stat("assets", &path).expect("found"), info);
            assert!(fixture.get("assets", &path) == data, "{size}");
            let reader = storage.reader("assets", &path).expect("opened");
            assert_eq!(reader.info(), &info);
        }
    }

    fn an_upload_has_the_defaults_of_spec_4_4(fixture: &Fixture) {
        let info = fixture.put("assets", "notes/tabOrder", "[1]");
        assert_eq!((info.cache_control, info.content_type.as_str()), (3_600, "application/json"));
        fixture.put("assets", "notes/tabOrder", "[2]");
        assert_eq!(fixture.get("assets", "notes/tabOrder"), "[2]", "upsert is true");
    }

    fn a_missing_file_is_not_found(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        let kind = ErrorKind::NotFound;
        assert_refused(storage.download("assets", "a"), kind, 404, "Download failed: File not found");
        assert_refused(storage.stat("assets", "a"), kind, 404, "Get file failed: File not found");
        assert_refused(storage.delete("assets", "a"), kind, 404, "Delete failed: File not found");
        assert_refused(storage.list("nowhere", ListFiles::new()), kind, 404, "List files failed: File not found");
        let upload = put(&fixture.db.service, "nowhere", "a", "x");
        assert_refused(upload, kind, 404, "Upload failed: File not found");
    }

    fn each_write_gives_a_new_etag_and_a_later_time(fixture: &Fixture) {
        let mut last = fixture.put("assets", "a", bytes(100_000, 1));
        for size in [100_000, 100_000, 10, 10, 100_000] {
            let info = fixture.put("assets", "a", bytes(size, 1));
            assert_ne!(info.etag, last.etag);
            assert!(info.updated_at > last.updated_at, "{} {}", info.updated_at, last.updated_at);
            last = info;
        }
        fixture.db.clock.advance(Duration::from_secs(1));
        assert_eq!(fixture.put("assets", "a", "x").updated_at, fixture.db.now());
    }

    fn a_deleted_file_is_gone_with_its_bytes(fixture: &Fixture) {
        for size in [10, 100_000] {
            fixture.put("assets", "a/b", bytes(size, 1));
            fixture.db.service.storage().delete("assets", "a/b").expect("deleted");
            let storage = fixture.db.service.storage();
            assert!(storage.stat("assets", "a/b").is_err() && storage.download("assets", "a/b").is_err());
            assert_eq!(fixture.objects(), fixture.expected_objects(&[""; 0], 0));
            assert_eq!(fixture.db.raw.value(&own(fixture, "SELECT count(*) FROM townsquare.file_contents")), "0");
            assert_eq!(fixture.db.raw.value(&own(fixture, "SELECT count(*) FROM townsquare.file_outbox")), "0");
        }
    }

    fn large_files_lie_at_their_path_for_other_tools(fixture: &Fixture) {
        fixture.put("assets", "images/a.bin", bytes(100_000, 1));
        assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/images/a.bin"], 100_000));
        fixture.put("assets", "images/a.bin", "small");
        assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/images/a.bin"], 5));
    }

    fn ranges_are_clipped_to_the_file(fixture: &Fixture) {
        let data = bytes(100_000, 7);
        fixture.put("assets", "a", data.clone());
        let storage = fixture.db.service.storage();
        for (start, end) in [(0, 0), (0, 10), (99_990, 100_000), (99_990, 200_000), (100_000, 100_001), (5, 70_000)] {
            let part = storage.download_range("assets", "a", start..end).expect("a range");
            assert!(part == data[start as usize..(end as usize).min(data.len())], "{start}..{end}");
        }
        #[allow(clippy::reversed_empty_ranges, reason = "the range is refused")]
        for bad in [100_001..100_002, 10..9] {
            let message = "Download failed: Invalid file or request";
            assert_refused(storage.download_range("assets", "a", bad), ErrorKind::InvalidInput, 400, message);
        }
    }

    fn a_list_is_in_the_order_of_the_bytes_and_pages_by_key(fixture: &Fixture) {
        let mut names = ["B", "a", "a.txt", "a/1", "a/2", "a0", "b/ä", "b/z", "b/\u{10FFFF}x", "c"].map(str::to_owned);
        names.sort();
        for name in names.iter().rev().filter(|name| *name != "a") {
            fixture.put("assets", name, "x");
        }
        let names: Vec<_> = names.iter().filter(|name| *name != "a").cloned().collect();
        assert_eq!(paths(&fixture.db.client, "assets"), names);
        let storage = fixture.db.client.storage();
        let mut pages = Vec::new();
        let mut page = ListFiles::new().limit(4);
        loop {
            let files = storage.list("assets", page.clone()).expect("a page");
            let Some(last) = files.last() else { break };
            page = page.after(&last.path);
            pages.extend(files.into_iter().map(|file| file.path));
        }
        assert_eq!(pages, names);
        for prefix in ["", "a", "a/", "b/", "b/\u{10FFFF}", "z", "a/1"] {
            let found = storage.list("assets", ListFiles::with_prefix(prefix)).expect("a list");
            let expected: Vec<_> = names.iter().filter(|name| name.starts_with(prefix)).cloned().collect();
            assert_eq!(found.into_iter().map(|file| file.path).collect::<Vec<_>>(), expected, "{prefix}");
        }
        let before = storage.list("assets", ListFiles::with_prefix("b/").after("a")).expect("a list");
        assert_eq!(before.len(), 3, "a key before the prefix leaves nothing out");
        for limit in [0, 1_001] {
            let message = "List files failed: Invalid file or request";
            let refused = storage.list("assets", ListFiles::new().limit(limit));
            assert_refused(refused, ErrorKind::InvalidInput, 400, message);
        }
        for no_path in ["\0", "a\0"] {
            let refused = storage.list("assets", ListFiles::new().after(no_path));
            assert_refused(refused, ErrorKind::InvalidInput, 400, "List files failed: Invalid file or request");
        }
        for position in ["..", "a//", "/", "a\nb", "e\u{301}", &"a".repeat(2_000)] {
            storage.list("assets", ListFiles::new().after(position)).expect("a place in the order");
        }
    }

    fn a_writer_changes_the_file_when_it_finishes(fixture: &Fixture) {
        let client = &fixture.db.service;
        let storage = client.storage();
        let data = bytes(200_000, 3);
        let mut writer = storage.writer("assets", "w", UploadOptions::new()).expect("a writer");
        for part in data.chunks(1_000) {
            writer.write_all(part).expect("written");
        }
        assert!(storage.stat("assets", "w").is_err(), "not before it finishes");
        assert_eq!(writer.finish().expect("finished").size, 200_000);
        let mut read = Vec::new();
        storage.reader("assets", "w").expect("a reader").read_to_end(&mut read).expect("read");
        assert!(read == data);
        let mut dropped = storage.writer("assets", "w", UploadOptions::new()).expect("a writer");
        dropped.write_all(&data[..150_000]).expect("written");
        drop(dropped);
        assert_eq!(storage.stat("assets", "w").expect("the old one").size, 200_000);
        storage.upload_reader("assets", "r", &data[..], UploadOptions::new()).expect("uploaded");
        assert!(fixture.get("assets", "r") == data);
    }

    fn chunks_and_reads_of_one_reader_are_the_file_in_order(fixture: &Fixture) {
        for size in [10_usize, 300_000] {
            let data = bytes(size, 4);
            let storage = fixture.db.service.storage();
            let mut writer = storage.writer("assets", "c", UploadOptions::new()).expect("a writer");
            writer.write_chunk(data[..size / 2].to_vec().into()).expect("taken");
            writer.write_all(&data[size / 2..]).expect("written");
            writer.finish().expect("finished");
            let mut reader = storage.reader("assets", "c").expect("a reader");
            let mut read = vec![0; 7];
            reader.read_exact(&mut read).expect("the beginning");
            while let Some(chunk) = reader.next_chunk().expect("read") {
                assert!(!chunk.is_empty(), "the end is no empty chunk");
                read.extend_from_slice(&chunk);
            }
            assert!(read == data, "{size}");
            assert_eq!(reader.next_chunk().expect("the end"), None);
            assert_eq!(reader.read(&mut [0; 7]).expect("the end"), 0);
        }
    }

    fn a_writer_stores_nothing_for_a_caller_who_did_not_open_it(fixture: &Fixture) {
        const PASSWORD: &str = "correct horse";
        let client = fixture.db.another();
        for address in ["ann@town.example", "bob@town.example"] {
            fixture.db.service.auth().sign_up(address, PASSWORD).expect("signed up");
        }
        let next_callers: [fn(&Client); 2] = [
            |client| drop(client.auth().sign_in("bob@town.example", PASSWORD).expect("signed in")),
            |client| client.auth().sign_out().expect("signed out"),
        ];
        for size in [10, 200_000] {
            for next in next_callers {
                client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
                let mut writer = client.storage().writer("assets", "w", UploadOptions::new()).expect("a writer");
                writer.write_all(&bytes(size, 1)).expect("written");
                next(&client);
                assert_refused(writer.finish(), ErrorKind::Unauthorized, 401, "Upload failed: Unauthorized file access");
                assert!(!fixture.db.service.storage().exists("assets", "w").expect("asked"));
            }
            // The same user with another session, and with refreshed tokens.
            client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in");
            let mut writer = client.storage().writer("assets", "again", UploadOptions::new()).expect("a writer");
            writer.write_all(&bytes(size, 1)).expect("written");
            client.auth().sign_in("ann@town.example", PASSWORD).expect("signed in again");
            client.auth().refresh_session().expect("refreshed");
            writer.finish().expect("hers");
        }
        client.close();
    }

    fn a_reader_fails_once_its_client_is_closed(fixture: &Fixture) {
        let client = Client::open(fixture.config()).expect("opens");
        for (path, size) in [("small", 10), ("large", 300_000)] {
            put(&client.as_service(), "assets", path, bytes(size, 1)).expect("uploaded");
        }
        let readers = |path| [(); 3].map(|()| client.as_service().storage().reader("assets", path).expect("opened"));
        let mut readers = readers("small").into_iter().chain(readers("large")).collect::<Vec<_>>();
        for reader in readers.iter_mut().step_by(3) {
            reader.read_exact(&mut [0; 2]).expect("the first bytes");
        }
        // At its end.
        readers[1].read_to_end(&mut Vec::new()).expect("read");
        client.close();
        for mut reader in readers {
            let closed = "Download failed: The client is closed";
            assert_eq!(reader.read(&mut [0; 2]).expect_err("closed").to_string(), closed);
            for result in [reader.next_chunk().map(Option::unwrap_or_default), reader.read_at(1..3)] {
                let error = result.expect_err("closed");
                assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Closed, closed));
            }
            assert!(reader.info().size >= 10);
        }
    }

    fn a_reader_gives_one_version_while_others_overwrite_and_delete(fixture: &Fixture) {
        let data = bytes(3_000_000, 4);
        fixture.put("assets", "a", data.clone());
        let mut readers: Vec<_> =
            (0..3).map(|_| fixture.db.service.storage().reader("assets", "a").expect("opened")).collect();
        let mut read = vec![0; 1_000];
        readers[0].read_exact(&mut read).expect("a chunk");
        fixture.put("assets", "a", bytes(2_000_000, 5));
        fixture.db.service.storage().delete("assets", "a").expect("deleted");
        readers[0].read_to_end(&mut read).expect("the rest");
        assert!(read == data);
        let ranges = (0..12u64).map(|number| number * 250_000..(number + 1) * 250_000);
        let read: Vec<u8> = ranges.flat_map(|range| readers[1].read_at(range).expect("a range")).collect();
        assert!(read == data);
        // Ranges out of order, where the store keeps the old version.
        for start in if fixture.is_s3() { 0..0 } else { 0..3 } {
            let range = (2 - start) * 1_000_000..(2 - start) * 1_000_000 + 10;
            let expected = &data[range.start as usize..range.end as usize];
            assert!(readers[2].read_at(range).expect("a range") == expected);
        }
    }
}

/// The SQL with the names of the library's own tables on this engine.
pub(super) fn own(fixture: &super::fixture::Fixture, sql: &str) -> String {
    match fixture.db.engine {
        townsquare_tests::test_database::Engine::Sqlite => sql.replace("townsquare.", "townsquare_"),
        townsquare_tests::test_database::Engine::Postgres => sql.to_owned(),
    }
}
