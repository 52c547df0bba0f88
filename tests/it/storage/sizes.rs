//! Files that grow and shrink across the limit of inline files.

use townsquare::blocking::wait;

use super::town::{bytes, on_every_store};

on_every_store! {
    fn a_file_crosses_the_limit_both_ways(town: &Town) {
        let storage = town.db.service.storage();
        for (round, size) in (0u8..).zip([10, 65_536, 65_537, 65_536, 200_000, 0, 100_000, 100_001, 5]) {
            let info = town.put("assets", "a", bytes(size, round));
            assert!(town.get("assets", "a") == bytes(size, round), "{size}");
            assert_eq!(wait(storage.stat("assets", "a")).expect("found"), info);
            let expected = town.expected_objects(&["assets/a"], size as u64);
            assert_eq!(town.objects(), expected, "the object of an inline file is removed: {size}");
            let contents = super::files::own(town, "SELECT count(*) FROM townsquare.file_contents");
            assert_eq!(town.db.raw.value(&contents), if size as u64 > town.limit() { "0" } else { "1" });
        }
    }

    fn another_client_with_another_limit_reads_and_writes_the_same_files(town: &Town) {
        if matches!(town.store, super::town::Store::Memory(_)) {
            return;
        }
        let other = wait(townsquare::Client::open(town.config().inline_file_limit(1_000))).expect("opened");
        let service = other.as_service();
        for (round, size) in (0u8..).zip([10, 5_000, 70_000, 100, 2_000]) {
            town.put("assets", "a", bytes(size, round));
            assert!(wait(service.storage().download("assets", "a")).expect("read") == bytes(size, round));
            super::town::put(&service, "assets", "a", bytes(size, round + 100)).expect("written");
            assert!(town.get("assets", "a") == bytes(size, round + 100));
        }
        wait(other.close());
    }
}
