//! Backups of a SQLite database during writes, and their restore.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    spaces::{NewFidget, NewSpace},
};
use townsquare_tests::{fixture::assert_kind, on_engine, raw_sql::RawConnection, temp_dir};

fn open_in(folder: &std::path::Path) -> Client {
    Client::open(Config::new().data_dir(folder).catalog_api_key("")).expect("opens")
}

on_engine! { Sqlite in sqlite;
    fn a_backup_during_writes_is_consistent(db: &TestDatabase) {
        let folder = temp_dir();
        let space = db.space();
        let stop = AtomicBool::new(false);
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut written = 0;
                        while !stop.load(Ordering::Relaxed) {
                            let pair = vec![NewFidget::of_type("a"), NewFidget::of_type("b")];
                            db.service.fidgets().create_fidgets(space.id, pair).expect("writers go on");
                            written += 2;
                        }
                        written
                    })
                })
                .collect();
            for number in 0..5 {
                let before = db.raw.count("fidgets");
                let target = folder.path().join(format!("{number}.db"));
                db.client.backup(&target).expect("copied");
                let after = db.raw.count("fidgets");
                let copy = RawConnection::sqlite(&target);
                assert_eq!(copy.value("PRAGMA integrity_check"), "ok");
                assert!(copy.rows("PRAGMA foreign_key_check").is_empty());
                let copied = copy.count("fidgets");
                assert!((before..=after).contains(&copied), "{before} <= {copied} <= {after}");
                assert_eq!(copied % 2, 0, "no write is half there");
            }
            stop.store(true, Ordering::Relaxed);
            writers.into_iter().map(|writer| writer.join().expect("no panic")).sum::<usize>()
        });
        assert_eq!(db.raw.count("fidgets"), written, "writers lost nothing");
        let left = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 5, "nothing beside the copies");
    }

    fn a_restored_backup_has_every_row(db: &TestDatabase) {
        let space = db.space();
        let fidget = db.fidget(space.id, "x");
        let community = db.community("town");
        let folder = temp_dir();
        let copy = folder.path().join("copy.db");
        db.client.backup(&copy).expect("copied");
        db.service.spaces().create_space(NewSpace::named("later")).expect("not in the copy");
        let data = folder.path().join("deep/data");
        Client::restore(&copy, &data).expect("restored");
        let client = open_in(&data);
        let service = client.as_service();
        assert_eq!(service.spaces().get_space(space.id).expect("there"), space);
        assert_eq!(service.fidgets().get_fidget(fidget.id).expect("there"), fidget);
        let same = service.communities().save_community_config("town", townsquare::communities::CommunityPatch::new());
        assert_eq!(same.expect("there"), community);
        let raw = RawConnection::sqlite(&data.join("townsquare.db"));
        assert_eq!(raw.count("spaces"), 1);
        service.spaces().create_space(NewSpace::named("new")).expect("and it takes more");
        client.close();
    }

    fn sessions_and_tokens_of_a_backup_are_valid_after_a_restore(db: &TestDatabase) {
        let folder = temp_dir();
        let auth = db.service.auth();
        let (email, password) = ("ann@town.example", "correct horse");
        let user = auth.sign_up(email, password).expect("signed up");
        let session = auth.create_session(email, password).expect("a session");
        let recovery = auth.create_recovery_token(email).expect("asked").expect("a token");
        let verification = auth.create_verification_token(user.id).expect("a token");
        let (copy, data_dir) = (folder.path().join("copy.db"), folder.path().join("restored"));
        db.client.backup(&copy).expect("copied");
        // What happens to the original does not concern the copy.
        auth.set_password(user.id, "battery staple").expect("set");
        Client::restore(&copy, &data_dir).expect("restored");
        let config = Config::new().data_dir(&data_dir).catalog_api_key("").clock(db.clock.clock());
        let restored = Client::open(config).expect("opens");
        let auth = restored.as_service();
        restored.as_user(&session.access_token).expect("the session is valid");
        auth.auth().verify_email(&verification).expect("the token is valid");
        auth.auth().recover(&recovery, "a new passphrase").expect("the token is valid");
        restored.close();
    }

    fn a_backup_to_a_path_that_cannot_be_written_is_refused(db: &TestDatabase) {
        let folder = temp_dir();
        for target in [folder.path().join("missing/copy.db"), "".into(), folder.path().join("a\0b")] {
            let error = assert_kind(ErrorKind::Config, db.client.backup(&target));
            assert!(error.explanation().starts_with("Correct the path"), "{}", error.explanation());
        }
    }

    fn backup_refuses_an_existing_target(db: &TestDatabase) {
        let folder = temp_dir();
        let target = folder.path().join("copy.db");
        fs::write(&target, "mine").expect("a file");
        let error = assert_kind(ErrorKind::InvalidInput, db.client.backup(&target));
        assert!(error.to_string().starts_with("Backup failed: ") && error.message().contains("copy.db"), "{error}");
        assert_eq!(fs::read(&target).expect("a file"), b"mine");
        db.client.backup(folder.path().join("no/such/folder.db")).expect_err("no such folder");
    }

    fn a_damaged_database_has_no_backup(db: &TestDatabase) {
        let folder = temp_dir();
        let client = open_in(folder.path());
        let service = client.as_service();
        let spaces = (0..2_000).map(|number| NewSpace::named(format!("space {number}"))).collect();
        service.spaces().create_spaces(spaces).expect("created");
        client.close();
        let file = folder.path().join("townsquare.db");
        let page: usize = RawConnection::sqlite(&file)
            .value("SELECT pageno FROM dbstat WHERE name = 'spaces' AND pagetype = 'leaf' LIMIT 1 OFFSET 3")
            .parse()
            .expect("a page");
        let size: usize = RawConnection::sqlite(&file).value("PRAGMA page_size").parse().expect("a size");
        let mut bytes = fs::read(&file).expect("a file");
        bytes[(page - 1) * size..page * size].fill(0xFF);
        fs::write(&file, &bytes).expect("a file");
        let client = open_in(folder.path());
        let target = folder.path().join("copy.db");
        let error = client.backup(&target).expect_err("damaged");
        assert_eq!((error.kind(), error.code()), (ErrorKind::Internal, Some("XX001")), "{error}");
        assert_eq!(error.explanation(), "The database is damaged: restore it from a backup.");
        let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("copy")), "{left:?}");
        db.client.backup(&target).expect("another database is sound");
    }

    fn restore_refuses_an_invalid_backup(db: &TestDatabase) {
        let folder = temp_dir();
        db.community("town");
        let good = folder.path().join("good.db");
        db.client.backup(&good).expect("copied");
        let newer = folder.path().join("newer.db");
        fs::copy(&good, &newer).expect("a copy");
        RawConnection::sqlite(&newer).run("INSERT INTO townsquare_migrations (version, name, applied_at, minimum_version) VALUES (999, 'future', '2030', 999)");
        let foreign = folder.path().join("foreign.db");
        RawConnection::sqlite(&foreign).run("CREATE TABLE x (y)");
        let damaged = folder.path().join("damaged.db");
        let mut bytes = fs::read(&good).expect("a file");
        let half = bytes.len() / 2;
        bytes[half..].fill(0xA5);
        fs::write(&damaged, &bytes).expect("a file");
        let short = folder.path().join("short.db");
        fs::write(&short, &bytes[..5_000]).expect("a file");
        let text = folder.path().join("text.db");
        fs::write(&text, "a letter").expect("a file");
        for bad in [newer, foreign, damaged, short, text, folder.path().join("none.db"), folder.path().to_owned()] {
            let data = folder.path().join("data");
            let error = assert_kind(ErrorKind::Config, Client::restore(&bad, &data));
            assert!(error.to_string().starts_with("Restore failed: "), "{error}");
            let is_damaged = ["damaged.db", "short.db", "text.db"].iter().any(|name| bad.ends_with(name));
            assert_eq!(error.code(), is_damaged.then_some("XX001"), "{error}");
            assert_eq!(error.explanation().contains("The backup is damaged"), is_damaged, "{}", error.explanation());
            assert!(!folder.path().join("data").exists(), "{error}");
            assert!(!data.join("townsquare.db").exists(), "{}", bad.display());
        }
        Client::restore(&good, folder.path().join("data")).expect("the good one");
    }

    fn restore_says_what_is_at_a_path_that_is_no_backup(db: &TestDatabase) {
        let folder = temp_dir();
        let (data, pipe, good) = (folder.path().join("data"), folder.path().join("pipe"), folder.path().join("good.db"));
        db.client.backup(&good).expect("copied");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo starts");
        assert!(made.success(), "{made}");
        for (source, message) in [
            (folder.path().join("none"), "There is no backup at PATH"),
            (good.join("below"), "There is no backup at PATH"),
            (folder.path().to_owned(), "PATH is no backup: it is a folder"),
            (pipe, "PATH is no backup: it is a device, a pipe or a socket"),
        ] {
            let error = assert_kind(ErrorKind::Config, Client::restore(&source, &data));
            assert_eq!(error.message(), message.replace("PATH", &source.display().to_string()));
            assert!(error.explanation().starts_with("Correct the path"), "{}", error.explanation());
        }
        assert!(!data.exists());
    }

    fn restore_refuses_an_existing_database(db: &TestDatabase) {
        let folder = temp_dir();
        let copy = folder.path().join("copy.db");
        db.client.backup(&copy).expect("copied");
        let data = folder.path().join("data");
        let client = open_in(&data);
        assert_kind(ErrorKind::Config, Client::restore(&copy, &data));
        client.as_service().spaces().create_space(NewSpace::named("x")).expect("the client goes on");
        client.close();
        assert_kind(ErrorKind::Config, Client::restore(&copy, &data));
        assert_eq!(RawConnection::sqlite(&data.join("townsquare.db")).count("spaces"), 1);
    }
}

on_engine! { Postgres in postgres;
    fn backup_on_postgres_is_refused(db: &TestDatabase) {
        let folder = temp_dir();
        let error = assert_kind(ErrorKind::InvalidInput, db.client.backup(folder.path().join("x")));
        assert!(error.to_string().starts_with("Backup failed: ") && error.message().contains("pg_dump"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
