//! `check`, `repair`, `backup`, `restore` and `seed`.

use std::fs;

use townsquare_tests::raw_sql::RawConnection;

use crate::fixture::Fixture;
#[cfg(unix)]
use crate::fixture::interrupted;

#[test]
fn a_sound_database_has_no_findings() {
    let town = Fixture::seeded();
    assert_eq!(town.run(&["check", "--full", "--json"]).json(), serde_json::json!({ "findings": [] }));
    assert_eq!(town.run(&["check"]).succeeded().out, "");
}

#[test]
fn check_finds_a_stray_object_and_repair_removes_it() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    let stray = town.path("town/files/assets/stray");
    fs::write(&stray, "x").expect("a file");
    let ran = town.run(&["check", "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let orphan = &found["findings"][0];
    assert_eq!((&orphan["code"], &orphan["severity"]), (&"orphan_object".into(), &"warning".into()), "{found}");
    assert!(orphan["message"].as_str().is_some_and(|message| message.contains("stray")), "{found}");

    town.run(&["repair"]).failed(2, "There is no terminal to confirm this on");
    let planned = town.run(&["repair", "--dry-run", "--json"]);
    assert_eq!((planned.code, planned.out), (3, ran.out));
    assert!(stray.exists());
    assert_eq!(town.run(&["repair", "--yes", "--json"]).json()["orphans_removed"], 1);
    assert!(!stray.exists());
    town.run(&["check"]).succeeded();
    let planned = town.run(&["repair", "--dry-run"]);
    assert_eq!((planned.code, planned.out.as_str()), (0, ""));
    assert!(planned.err.contains("nothing to repair"), "{}", planned.err);

    fs::write(&stray, "x").expect("a file");
    let unasked = town.run(&["check", "--fix"]);
    assert!(unasked.code == 2 && unasked.out.contains("orphan_object") && stray.exists(), "{unasked:?}");
    assert_eq!(town.run(&["check", "--fix", "--yes", "--json"]).json(), serde_json::json!({ "findings": [] }));
    assert!(!stray.exists());
}

#[test]
fn a_command_that_only_reads_claims_no_store() {
    let town = Fixture::new();
    let store = format!("storage_url=file://{}", town.path("store").display());
    fs::create_dir(town.path("store")).expect("a folder");
    let on = |folder: &str, command: &[&str]| town.run(&[command, &["--data-dir", folder, "--set", &store]].concat());
    let text = town.file("a.txt", "hello");
    on("first", &["seed", "--users", "1", "--spaces", "1"]).succeeded();
    on("first", &["files", "put", &text, "assets/a.txt"]).succeeded();
    fs::create_dir(town.path("copy")).expect("a folder");
    fs::copy(town.path("first/townsquare.db"), town.path("copy/townsquare.db")).expect("a copy");
    let dry_run = on("copy", &["repair", "--dry-run"]);
    assert!(dry_run.code == 3 && dry_run.out.contains("store_of_original"), "{dry_run:?}");
    for command in [
        &["repair", "--dry-run"][..],
        &["check", "--full"],
        &["stats"],
        &["export", "-"],
        &["files", "ls", "assets"],
        &["files", "sync", "store", "assets", "--dry-run"],
        &["users", "list"],
        &["users", "sessions", "nobody"],
    ] {
        on("copy", &[command, &["--set", "claim_store=true"]].concat());
        on("first", &["files", "put", &text, "assets/b.txt"]).succeeded();
    }
    on("copy", &["repair", "--yes", "--set", "claim_store=true"]).succeeded();
    on("first", &["users", "list"]).failed(2, "the object store is not the one with the files of this database");
}

#[test]
fn a_download_does_not_replace_the_open_database() {
    let town = Fixture::seeded();
    let text = town.file("a.txt", "hello");
    for name in ["a", "b/townsquare.db"] {
        town.run(&["files", "put", &text, &format!("assets/{name}")]).succeeded();
    }
    let database = town.path("town/townsquare.db");
    let target = database.to_string_lossy();
    town.run(&["files", "get", "assets/a", &target]).failed(2, "it is a file of a database that this process has open");
    let folder = town.path("town");
    let down = town.run(&["files", "sync", &folder.to_string_lossy(), "assets/b", "--down"]);
    assert!(down.code != 0 && down.err.contains("it is a file of a database that this process has open"), "{down:?}");
    town.run(&["check", "--full"]).succeeded();
}

#[test]
fn check_needs_a_database() {
    let town = Fixture::new();
    town.run(&["check"]).failed(4, "There is no database");
    assert!(!town.path("town").exists());
    for command in
        [&["check"][..], &["users", "list"], &["backup", "copy.db"], &["repair", "--yes"], &["files", "ls", "assets"]]
    {
        let typo = [command, &["--database-url", "sqlite:typo.db"]].concat();
        town.run(&typo).failed(4, "There is no database");
    }
    assert!(town.names("").is_empty(), "{:?}", town.names(""));
    fs::write(town.path("typo.db"), "").expect("a file");
    town.run(&["check", "--database-url", "sqlite:typo.db"]).failed(4, "There is no townsquare in the database");
    assert_eq!(fs::read(town.path("typo.db")).expect("the file"), b"");
}

#[test]
fn check_of_a_damaged_file_is_no_success() {
    let town = Fixture::new();
    fs::create_dir(town.path("town")).expect("a folder");
    fs::write(town.path("town/townsquare.db"), "no database".repeat(1_000)).expect("a file");
    town.run(&["check"]).failed(1, "townsquare.db");
}

/// A database with a large file, and its backup `copy.db`.
fn backed_up() -> Fixture {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    town.run(&["backup", "copy.db"]).succeeded();
    town
}

#[test]
fn a_backup_is_restored_with_its_files() {
    let town = backed_up();
    town.run(&["backup", "copy.db"]).failed(2, "exists");
    town.run(&["restore", "copy.db"]).failed(2, "Restore failed");
    town.run(&["restore", "missing.db", "elsewhere"]).failed(4, "missing.db");
    town.run(&["restore", "copy.db", "elsewhere", "--database-url", "sqlite:x.db"]).failed(2, "database_url");
    let store = format!("file://{}", town.path("other-files").display());
    for url in [&store, "s3://town-files"] {
        town.run(&["restore", "copy.db", "elsewhere", "--set", &format!("storage_url={url}")]).failed(2, "storage_url");
    }
    // The options of the folder that the restore fills.
    fs::create_dir(town.path("elsewhere")).expect("a folder");
    fs::write(town.path("elsewhere/townsquare.toml"), format!("storage_url = \"{store}\"")).expect("a file");
    town.run(&["restore", "copy.db", "elsewhere"]).failed(2, "storage_url");
    fs::remove_dir_all(town.path("elsewhere")).expect("it is removed");
    town.run(&["backup", "-"]).failed(2, "standard output");
    fs::write(town.path("broken.db"), "x".repeat(9_000)).expect("a file");
    town.run(&["restore", "broken.db", "elsewhere"]).failed(1, "broken.db is not a SQLite database");
    town.run(&["restore", "copy.db", "elsewhere"]).succeeded();
    let users = |folder: &str| town.run(&["users", "list", "--json", "--data-dir", folder]).json();
    assert_eq!(users("elsewhere"), users("town"));
    assert_eq!(town.run(&["files", "get", "assets/large", "--data-dir", "elsewhere"]).succeeded().out.len(), 100_000);
    town.run(&["check", "--full", "--data-dir", "elsewhere"]).succeeded();
}

#[test]
fn a_dry_run_of_a_restore_changes_nothing() {
    let town = backed_up();
    let names = town.names("");
    let tried = town.run(&["restore", "copy.db", "new/deep", "--dry-run", "--json"]);
    assert_eq!(tried.json(), serde_json::json!({ "restored": null }));
    town.run(&["restore", "copy.db", "--dry-run"]).failed(2, "a restore does not overwrite a database");
    fs::create_dir(town.path("held")).expect("a folder");
    fs::write(town.path("held/townsquare.db-wal"), "x").expect("a file");
    let tried = town.run(&["restore", "copy.db", "held", "--dry-run"]);
    assert!(tried.code == 2 && tried.err.contains("townsquare.db-wal exists"), "{tried:?}");
    assert_eq!(town.names("held"), ["townsquare.db-wal"]);
    fs::create_dir_all(town.path("held/files/assets")).expect("a folder");
    fs::remove_file(town.path("held/townsquare.db-wal")).expect("it is removed");
    let tried = town.run(&["restore", "copy.db", "held", "--dry-run"]);
    assert!(tried.code == 2 && tried.err.contains("files has files"), "{tried:?}");
    fs::remove_dir_all(town.path("held/files")).expect("it is removed");
    // What a killed restore leaves keeps programs from making an empty database.
    fs::create_dir(town.path("held/townsquare.db.killed.part")).expect("a folder");
    fs::write(town.path("held/townsquare.db.killed.part/lock"), "").expect("a file");
    let tried = town.run(&["restore", "copy.db", "held", "--dry-run"]);
    assert!(tried.code == 2 && tried.err.contains("was killed before its end: repeat it"), "{tried:?}");
    assert_eq!(town.names("held"), ["townsquare.db.killed.part"]);
    fs::remove_dir_all(town.path("held")).expect("it is removed");
    fs::write(town.path("copy.db.files/assets/large"), "y".repeat(100_000)).expect("a file");
    town.run(&["restore", "copy.db", "new", "--dry-run"]).failed(1, "assets/large is damaged");
    town.run(&["restore", "copy.db", "new/deep"]).failed(1, "assets/large is damaged");
    assert_eq!(town.names(""), names);
}

#[test]
fn a_restored_database_is_verified() {
    let town = Fixture::seeded();
    town.run(&["backup", "copy.db"]).succeeded();
    // No client would open it, and no check of SQLite sees it.
    fs::copy(town.path("copy.db"), town.path("odd.db")).expect("a copy");
    let odd = RawConnection::sqlite(&town.path("odd.db"));
    odd.run("PRAGMA writable_schema = ON");
    odd.run("UPDATE sqlite_schema SET sql = sql || CAST(x'202d2dff' AS TEXT) WHERE type = 'trigger'");
    drop(odd);
    town.run(&["restore", "odd.db", "new", "--dry-run"]).failed(1, "a statement of its schema is not UTF-8");
    let restored = town.run(&["restore", "copy.db", "new", "--verify", "--json"]).json();
    assert_eq!((&restored["restored"], &restored["findings"]), (&"new".into(), &serde_json::json!([])));
    // A finding of a check that a restore does not look for.
    RawConnection::sqlite(&town.path("copy.db")).run("DROP INDEX townsquare_sessions_user_id");
    let found = town.run(&["restore", "copy.db", "other", "--verify"]);
    assert!(found.code == 3 && found.out.contains("index_missing"), "{found:?}");
    assert!(found.err.contains("The database is in other"), "{found:?}");
}

#[test]
fn seed_adds_the_numbers_that_it_says() {
    let town = Fixture::new();
    let added = town.run(&["seed", "--users", "2", "--spaces", "5", "--fidgets", "1", "--json"]).json();
    assert_eq!(added, serde_json::json!({ "users": 2, "spaces": 5, "fidgets": 5 }));
    // A second run adds as many.
    town.run(&["seed", "--users", "1", "--spaces", "0"]).succeeded();
    let users = town.run(&["users", "list", "--json"]).json();
    let users = users["users"].as_array().expect("users");
    assert_eq!(users.len(), 3);
    let spaces = |user: &serde_json::Value| {
        let lines = town.run(&["users", "export", user["id"].as_str().expect("an id")]).json_lines();
        lines.iter().filter(|line| line["table"] == "spaces").count()
    };
    assert_eq!(users.iter().map(spaces).sum::<usize>(), 5);
    for option in ["--users", "--spaces", "--fidgets"] {
        assert_eq!(town.run(&["seed", option, "18446744073709551615"]).code, 2, "{option}");
    }
}

/// `open` would make the triggers anew if their text is not that of the library.
#[test]
fn check_and_backup_change_no_schema() {
    let town = Fixture::seeded();
    let database = town.path("town/townsquare.db");
    let mut bytes = fs::read(&database).expect("the database");
    let text = b"CREATE TRIGGER ";
    let places: Vec<_> = (0..bytes.len() - text.len()).filter(|place| bytes[*place..].starts_with(text)).collect();
    assert!(!places.is_empty(), "the file has triggers");
    places.iter().for_each(|place| bytes[place + 7..place + 14].make_ascii_lowercase());
    fs::write(&database, &bytes).expect("the file");
    for command in [&["check"][..], &["backup", "copy.db"], &["users", "list"]] {
        town.run(command).failed(
            2,
            "The triggers of the database are not those of this library, and this command leaves the schema",
        );
    }
    assert!(fs::read(&database).expect("the database") == bytes, "the file is unchanged");
}

#[test]
#[cfg(unix)]
fn a_signal_ends_a_backup_and_leaves_nothing() {
    use nix::sys::signal::Signal;

    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(150_000_000));
    town.run(&["files", "put", &large, "assets/large", "--set", "max_file_size=200000000"]).succeeded();
    fs::create_dir(town.path("out")).expect("a folder");
    let start = || town.command(&["backup", "out/copy.db"]).spawn().expect("it starts");
    let empty = || {
        fs::remove_dir_all(town.path("out")).expect("a folder");
        fs::create_dir(town.path("out")).expect("a folder");
    };
    let output = interrupted(Signal::SIGINT, start, || !town.names("out").is_empty(), empty);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && error.starts_with("townsquare: Interrupted\ntry: "), "{error}");
    assert!(town.names("out").is_empty(), "{:?}", town.names("out"));
}
