//! Files that grow and shrink across the limit of inline files.

use super::fixture::{bytes, on_every_store};

on_every_store! {
    fn a_file_crosses_the_limit_both_ways(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        for (round, size) in (0u8..).zip([10, 65_536, 65_537, 65_536, 200_000, 0, 100_000, 100_001, 5]) {
            let info = fixture.put("assets", "a", bytes(size, round));
            assert!(fixture.get("assets", "a") == bytes(size, round), "{size}");
            assert_eq!(storage.stat("assets", "a").expect("found"), info);
            let expected = fixture.expected_objects(&["assets/a"], size as u64);
            assert_eq!(fixture.objects(), expected, "the object of an inline file is removed: {size}");
            let contents = super::files::own(fixture, "SELECT count(*) FROM townsquare.file_contents");
            assert_eq!(fixture.db.raw.value(&contents), if size as u64 > fixture.limit() { "0" } else { "1" });
        }
    }

    fn another_client_with_another_limit_reads_and_writes_the_same_files(fixture: &Fixture) {
        if matches!(fixture.store, super::fixture::Store::Memory(_)) {
            return;
        }
        let other = townsquare::blocking::Client::open(fixture.config().inline_file_limit(1_000)).expect("opened");
        let service = other.as_service();
        for (round, size) in (0u8..).zip([10, 5_000, 70_000, 100, 2_000]) {
            fixture.put("assets", "a", bytes(size, round));
            assert!(service.storage().download("assets", "a").expect("read") == bytes(size, round));
            super::fixture::put(&service, "assets", "a", bytes(size, round + 100)).expect("written");
            assert!(fixture.get("assets", "a") == bytes(size, round + 100));
        }
        other.close();
    }
}
