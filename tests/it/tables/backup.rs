//! Copies of a SQLite database while writers go on, and back (issue "tables").

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use townsquare::{Client, Config, ErrorKind, NewFidget, NewSpace, blocking::wait};
use townsquare_tests::{on_engine, outside::Outside, store::Store, temp::TempFolder, town::refused};

on_engine!(
    sqlite,
    Sqlite,
    a_copy_taken_under_writers_is_whole,
    a_copy_put_back_has_every_row,
    a_backup_overwrites_nothing,
    a_restore_refuses_what_is_not_a_sound_copy_of_ours,
    a_restore_overwrites_nothing,
);

on_engine!(postgres, Postgres, postgres_has_tools_of_its_own_for_that);

fn in_folder(folder: &std::path::Path) -> Client {
    wait(Client::open(Config::new().data_dir(folder).catalog_api_key(""))).expect("opens")
}

fn a_copy_taken_under_writers_is_whole(store: &Store) {
    let folder = TempFolder::new();
    let space = store.space();
    let stop = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut written = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let pair = vec![NewFidget::of_type("a"), NewFidget::of_type("b")];
                        wait(store.service.fidgets().create_fidgets(space.id, pair)).expect("writers go on");
                        written += 2;
                    }
                    written
                })
            })
            .collect();
        for number in 0..5 {
            let before = store.outside.count("fidgets");
            let target = folder.join(&format!("{number}.db"));
            wait(store.client.backup(&target)).expect("copied");
            let after = store.outside.count("fidgets");
            let copy = Outside::sqlite(&target);
            assert_eq!(copy.value("PRAGMA integrity_check"), "ok");
            assert!(copy.rows("PRAGMA foreign_key_check").is_empty());
            let copied = copy.count("fidgets");
            assert!((before..=after).contains(&copied), "{before} <= {copied} <= {after}");
            assert_eq!(copied % 2, 0, "no write is half there");
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("no panic")).sum::<usize>()
    });
    assert_eq!(store.outside.count("fidgets"), written, "writers lost nothing");
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 5, "nothing beside the copies");
}

fn a_copy_put_back_has_every_row(store: &Store) {
    let space = store.space();
    let fidget = store.fidget(space.id, "x");
    let community = store.community("town");
    let folder = TempFolder::new();
    let copy = folder.join("copy.db");
    wait(store.client.backup(&copy)).expect("copied");
    wait(store.service.spaces().create_space(NewSpace::named("later"))).expect("not in the copy");
    let data = folder.join("deep/data");
    Client::restore(&copy, &data).expect("restored");
    let client = in_folder(&data);
    let service = client.as_service();
    assert_eq!(wait(service.spaces().get_space(space.id)).expect("there"), space);
    assert_eq!(wait(service.fidgets().get_fidget(fidget.id)).expect("there"), fidget);
    let same = wait(service.communities().save_community_config("town", townsquare::CommunityPatch::new()));
    assert_eq!(same.expect("there"), community);
    let outside = Outside::sqlite(&data.join("townsquare.db"));
    assert_eq!(outside.count("spaces"), 1);
    wait(service.spaces().create_space(NewSpace::named("new"))).expect("and it takes more");
    wait(client.close());
}

fn a_backup_overwrites_nothing(store: &Store) {
    let folder = TempFolder::new();
    let target = folder.join("copy.db");
    fs::write(&target, "mine").expect("a file");
    let error = refused(ErrorKind::InvalidInput, wait(store.client.backup(&target)));
    assert!(error.to_string().starts_with("Backup failed: ") && error.message().contains("copy.db"), "{error}");
    assert_eq!(fs::read(&target).expect("a file"), b"mine");
    wait(store.client.backup(folder.join("no/such/folder.db"))).expect_err("no such folder");
}

fn a_restore_refuses_what_is_not_a_sound_copy_of_ours(store: &Store) {
    let folder = TempFolder::new();
    store.community("town");
    let good = folder.join("good.db");
    wait(store.client.backup(&good)).expect("copied");
    let newer = folder.join("newer.db");
    fs::copy(&good, &newer).expect("a copy");
    Outside::sqlite(&newer).run("INSERT INTO townsquare_migrations VALUES (999, 'future', '2030')");
    let foreign = folder.join("foreign.db");
    Outside::sqlite(&foreign).run("CREATE TABLE x (y)");
    let damaged = folder.join("damaged.db");
    let mut bytes = fs::read(&good).expect("a file");
    let half = bytes.len() / 2;
    bytes[half..].fill(0xA5);
    fs::write(&damaged, &bytes).expect("a file");
    let short = folder.join("short.db");
    fs::write(&short, &bytes[..5_000]).expect("a file");
    let text = folder.join("text.db");
    fs::write(&text, "a letter").expect("a file");
    for bad in [newer, foreign, damaged, short, text, folder.join("none.db"), folder.path().to_owned()] {
        let data = folder.join("data");
        let error = refused(ErrorKind::Config, Client::restore(&bad, &data));
        assert!(error.to_string().starts_with("Restore failed: "), "{error}");
        assert!(!data.join("townsquare.db").exists(), "{}", bad.display());
    }
    Client::restore(&good, folder.join("data")).expect("the good one");
}

fn a_restore_overwrites_nothing(store: &Store) {
    let folder = TempFolder::new();
    let copy = folder.join("copy.db");
    wait(store.client.backup(&copy)).expect("copied");
    let data = folder.join("data");
    let client = in_folder(&data);
    refused(ErrorKind::Config, Client::restore(&copy, &data));
    wait(client.as_service().spaces().create_space(NewSpace::named("x"))).expect("the client goes on");
    wait(client.close());
    refused(ErrorKind::Config, Client::restore(&copy, &data));
    assert_eq!(Outside::sqlite(&data.join("townsquare.db")).count("spaces"), 1);
}

fn postgres_has_tools_of_its_own_for_that(store: &Store) {
    let folder = TempFolder::new();
    let error = refused(ErrorKind::InvalidInput, wait(store.client.backup(folder.join("x"))));
    assert!(error.to_string().starts_with("Backup failed: ") && error.message().contains("pg_dump"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}
